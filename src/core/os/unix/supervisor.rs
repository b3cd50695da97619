//! The process between us and the client, so that the client never outlives us.
//!
//! We start our own program as `claude-mem __agent-child watch …`. It starts the client, waits for it,
//! and ends it with everything below it once its own parent is gone, however that died. The client in
//! turn is killed by the system should the watcher die first. All of them share one process group.

use std::{
    env,
    ffi::{OsStr, OsString},
    io::{self, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    thread,
    time::Duration,
};

use rustix::process::{Pid, getpid, getppid};

use super::Family;

/// How our program is told to be the watcher; nobody types this.
pub const COMMAND: &str = "__agent-child";

/// How often the watcher looks whether its parent is still there. The system tells a process of its
/// parent's death only by a signal, which kills the watcher before it can end the others.
const LOOK: Duration = Duration::from_millis(200);

/// As shells have it: the program could not be run.
const NOT_RUN: u8 = 127;

/// Our own program, also when its file was replaced by a newer version in the meantime.
pub fn launcher() -> PathBuf {
    let own = PathBuf::from("/proc/self/exe");
    if own.exists() { own } else { env::current_exe().unwrap_or_else(|_| "claude-mem".into()) }
}

/// A command that has our program watch over another one, whose arguments are to follow.
pub fn watched(launcher: &Path, program: &Path) -> Command {
    let mut command = Command::new(launcher);
    let own = getpid().as_raw_nonzero().to_string();
    command.arg0("claude-mem").args([COMMAND, "watch", &own]).arg(program);
    command
}

/// `watch PARENT PROGRAM …` or `become PARENT PROGRAM …`.
pub fn main(mut arguments: impl Iterator<Item = OsString>) -> u8 {
    let role = arguments.next();
    let parent = arguments.next().and_then(|text| text.to_str()?.parse().ok());
    let (Some(parent), Some(program)) = (parent.and_then(Pid::from_raw), arguments.next()) else {
        return complain("it is started by claude-mem itself");
    };
    match role.as_deref().and_then(|role| role.to_str()) {
        Some("watch") => watch(parent, program, arguments),
        Some("become") => turn_into(parent, &program, arguments),
        _ => complain("it is started by claude-mem itself"),
    }
}

fn watch(parent: Pid, program: OsString, rest: impl Iterator<Item = OsString>) -> u8 {
    adopt_orphans();
    thread::spawn(move || {
        while getppid() == Some(parent) {
            thread::sleep(LOOK);
        }
        Family::own().end();
        std::process::exit(1);
    });
    let own = getpid().as_raw_nonzero().to_string();
    let mut client = Command::new(launcher());
    client.arg0("claude-mem").args([COMMAND, "become", &own]).arg(program).args(rest);
    let status = client.spawn().and_then(|mut client| client.wait());
    Family::own().end_below();
    match status {
        Ok(status) => code(status),
        Err(error) => complain(&error.to_string()),
    }
}

/// Turns into the client, which from then on is killed when the watcher dies.
fn turn_into(parent: Pid, program: &OsStr, rest: impl Iterator<Item = OsString>) -> u8 {
    die_with_parent();
    // It may have died before it was asked to be told.
    if getppid() != Some(parent) {
        return 1;
    }
    let error = Command::new(program).args(rest).exec();
    complain(&format!("{}: {error}", program.display()))
}

#[cfg(target_os = "linux")]
fn adopt_orphans() {
    // So that whatever the client leaves behind stays below us and can be found. Without it the process
    // group has to do.
    let _ = rustix::process::set_child_subreaper(Some(getpid()));
}

#[cfg(target_os = "linux")]
fn die_with_parent() {
    use rustix::process::{Signal, set_parent_process_death_signal};
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}

#[cfg(not(target_os = "linux"))]
fn adopt_orphans() {}

#[cfg(not(target_os = "linux"))]
fn die_with_parent() {}

fn complain(why: &str) -> u8 {
    let _ = writeln!(io::stderr(), "{COMMAND}: {why}");
    NOT_RUN
}

/// As shells have it: the exit code, or 128 and the signal.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
