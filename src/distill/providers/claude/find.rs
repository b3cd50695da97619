//! Finding Claude Code on this machine, and whether it runs.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, SystemTime},
};

use super::world;
use crate::providers::{Refusal, Setup};
use claude_mem_core::{
    os::{CLIENT, ProcessTree, is_executable},
    settings::table,
};

/// Saying its version takes the client a third of a second on a fast machine.
const VERSION_TIME_MAX: Duration = Duration::from_secs(20);

/// Where installers put it below the home directory, for programs that were not started by a shell and
/// so do not have the user's `PATH`.
const IN_HOME: [&str; 6] = [
    ".local/bin/claude",
    ".claude/local/claude",
    ".claude/local/node_modules/.bin/claude",
    ".npm-global/bin/claude",
    ".bun/bin/claude",
    ".volta/bin/claude",
];

const IN_SYSTEM: [&str; 3] =
    ["/usr/local/bin/claude", "/opt/homebrew/bin/claude", "/usr/bin/claude"];

/// The executable that answers, or one line that says why there is none.
pub(super) fn executable(setup: &Setup<'_>) -> Result<PathBuf, Refusal> {
    if let Some(chosen) = setup.settings.get(&table::CLAUDE_CODE_PATH) {
        let path = claude_mem_core::paths::expand_tilde(&chosen, setup.paths.home.as_deref());
        return match answers(setup, &path) {
            Ok(()) => Ok(path),
            Err(why) => {
                let chosen = chosen.display();
                Err(Refusal::of_settings(format!("CLAUDE_CODE_PATH={chosen}: {why}")))
            }
        };
    }
    let mut reason = "no `claude` on the PATH: install Claude Code or set CLAUDE_CODE_PATH".into();
    for path in candidates(setup).into_iter().filter(|path| is_executable(path)) {
        match answers(setup, &path) {
            Ok(()) => return Ok(path),
            Err(why) => reason = format!("{}: {why}", path.display()),
        }
    }
    Err(Refusal::of_settings(reason))
}

fn candidates(setup: &Setup<'_>) -> Vec<PathBuf> {
    let on_path = setup.environment.get("PATH").unwrap_or_default();
    let on_path = env::split_paths(&on_path).filter(|dir| dir.is_absolute());
    let on_path: Vec<PathBuf> = on_path.map(|dir| dir.join(CLIENT)).collect();
    let home = setup.paths.home.as_deref();
    let in_home = IN_HOME.iter().filter_map(|path| Some(home?.join(path)));
    on_path.into_iter().chain(in_home).chain(IN_SYSTEM.map(PathBuf::from)).collect()
}

/// Files that have answered. A change makes another file of it; one that did not answer is asked again.
static ANSWERED: Mutex<Vec<(PathBuf, Option<SystemTime>, u64)>> = Mutex::new(Vec::new());

/// Asks the executable for its version, unless it has told it before.
fn answers(setup: &Setup<'_>, path: &Path) -> Result<(), String> {
    let meta = fs::metadata(path).map_err(|error| error.to_string())?;
    let file = (path.to_owned(), meta.modified().ok(), meta.len());
    let answered = || ANSWERED.lock().unwrap_or_else(PoisonError::into_inner);
    if answered().contains(&file) {
        return Ok(());
    }
    version(setup, path)?;
    answered().push(file);
    Ok(())
}

fn version(setup: &Setup<'_>, path: &Path) -> Result<(), String> {
    let mut command = Command::new(path);
    command.arg("--version").env_clear().envs(world::environment(setup));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let started = ProcessTree::start(&mut command);
    let (child, family) = started.map_err(|error| format!("cannot be run: {error}"))?;
    let (done, output) = mpsc::channel();
    let waiting = thread::spawn(move || {
        let _ = done.send(child.wait_with_output());
    });
    let Ok(output) = output.recv_timeout(VERSION_TIME_MAX) else {
        family.end();
        drop(waiting.join());
        return Err(format!("did not say its version within {VERSION_TIME_MAX:?}"));
    };
    let output = output.map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout);
    match output.status.success() && said.starts_with(|c: char| c.is_ascii_digit()) {
        true => Ok(()),
        false => Err(format!("is not Claude Code ({}, `{}`)", output.status, said.trim())),
    }
}
