//! Finds Claude Code on this machine and checks that it runs.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use super::launch;
use crate::providers::{Refusal, Setup};
use claude_mem_core::{
    os::{CLIENT, ProcessTree, is_executable, output_within},
    settings::table,
};

/// The client needs 0.3 s to print its version on a fast machine.
const VERSION_TIME_MAX: Duration = Duration::from_secs(20);

/// Install locations below the home directory, for processes without the `PATH` of a login shell.
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

/// The executable, or one line with the reason why there is none.
pub(super) fn executable(setup: &Setup<'_>) -> Result<PathBuf, Refusal> {
    if let Some(chosen) = setup.settings.get(&table::CLAUDE_CODE_PATH) {
        let path = claude_mem_core::paths::expand_tilde(&chosen, setup.paths.home.as_deref());
        return match check(setup, &path) {
            Ok(_) => Ok(path),
            Err(why) => {
                let chosen = chosen.display();
                Err(Refusal::of_settings(format!("CLAUDE_CODE_PATH={chosen}: {why}")))
            }
        };
    }
    let mut reason = "no `claude` on the PATH: install Claude Code or set CLAUDE_CODE_PATH".into();
    for path in candidates(setup).into_iter().filter(|path| is_executable(path)) {
        match check(setup, &path) {
            Ok(_) => return Ok(path),
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

/// The version of the installed client; `None` if there is none that runs.
pub fn client_version(setup: &Setup<'_>) -> Option<[u32; 3]> {
    let path = executable(setup).ok()?;
    parse(&check(setup, &path).ok()?)
}

/// The number in `2.1.325 (Claude Code)`.
fn parse(version: &str) -> Option<[u32; 3]> {
    let mut parts = version.split_whitespace().next()?.splitn(3, '.');
    let mut part = || {
        let part = parts.next()?;
        part.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    Some([part()?, part()?, part()?])
}

/// A file with the time of its last change and its size.
type FileStamp = (PathBuf, Option<SystemTime>, u64);

/// Files that printed a version, with that version. Failed ones are checked again.
static VERIFIED: Mutex<Vec<(FileStamp, String)>> = Mutex::new(Vec::new());

/// Runs the executable with `--version`, unless it is verified already.
fn check(setup: &Setup<'_>, path: &Path) -> Result<String, String> {
    let meta = fs::metadata(path).map_err(|error| error.to_string())?;
    let file = (path.to_owned(), meta.modified().ok(), meta.len());
    let verified = || VERIFIED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, version)) = verified().iter().find(|(known, _)| *known == file) {
        return Ok(version.clone());
    }
    let version = version(setup, path)?;
    verified().push((file, version.clone()));
    Ok(version)
}

fn version(setup: &Setup<'_>, path: &Path) -> Result<String, String> {
    let mut command = Command::new(path);
    command.arg("--version").env_clear().envs(launch::environment(setup));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let started = ProcessTree::start(&mut command);
    let (child, family) = started.map_err(|error| format!("cannot be run: {error}"))?;
    let output = output_within(child, &family, VERSION_TIME_MAX)
        .map_err(|error| error.to_string())?
        .ok_or_else(|| format!("did not print its version within {VERSION_TIME_MAX:?}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    match output.status.success() && stdout.starts_with(|c: char| c.is_ascii_digit()) {
        true => Ok(stdout.into_owned()),
        false => Err(format!("is not Claude Code ({}, `{}`)", output.status, stdout.trim())),
    }
}

#[cfg(test)]
mod version_tests {
    use super::parse;

    #[test]
    fn versions_are_numbers() {
        assert_eq!(parse("2.1.325 (Claude Code)\n"), Some([2, 1, 325]));
        assert_eq!(parse("2.1.78-beta.1"), Some([2, 1, 78]));
        for odd in ["", "2", "2.1", "2.x.1", "99999999999.1.1"] {
            assert_eq!(parse(odd), None, "{odd}");
        }
    }
}
