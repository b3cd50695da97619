//! A supervisor between this process and Claude Code, so that Claude Code never outlives this
//! process.
//!
//! We start our own program as `claude-mem __agent-child watch …`. It starts Claude Code, waits for
//! it, and kills it with all descendants when its own parent is gone. If the supervisor dies first,
//! the system kills Claude Code. All of them share one process group.

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

use super::ProcessTree;

/// The internal command that starts the supervisor.
pub const COMMAND: &str = "__agent-child";

/// How often the supervisor checks its parent. The kernel only reports the parent's death by a
/// signal, which would kill the supervisor before it can kill the others.
const LOOK: Duration = Duration::from_millis(200);

/// The exit code of shells for a program that cannot be run.
const NOT_RUN: u8 = 127;

/// Our own program, even if its file was replaced by a newer version.
pub fn launcher() -> PathBuf {
    let own = PathBuf::from("/proc/self/exe");
    if own.exists() { own } else { env::current_exe().unwrap_or_else(|_| "claude-mem".into()) }
}

/// A command that supervises another program. Its arguments follow.
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
        ProcessTree::own().end();
        std::process::exit(1);
    });
    let own = getpid().as_raw_nonzero().to_string();
    let mut client = Command::new(launcher());
    client.arg0("claude-mem").args([COMMAND, "become", &own]).arg(program).args(rest);
    let status = client.spawn().and_then(|mut client| client.wait());
    ProcessTree::own().end_below();
    match status {
        Ok(status) => code(status),
        Err(error) => complain(&error.to_string()),
    }
}

/// Replaces this process with Claude Code, which the kernel kills when the supervisor dies.
fn turn_into(parent: Pid, program: &OsStr, rest: impl Iterator<Item = OsString>) -> u8 {
    die_with_parent();
    // The supervisor may have died before the request.
    if getppid() != Some(parent) {
        return 1;
    }
    let error = Command::new(program).args(rest).exec();
    complain(&format!("{}: {error}", program.display()))
}

#[cfg(target_os = "linux")]
fn adopt_orphans() {
    // Orphans of Claude Code become our children and can be found. Without it, only the process
    // group is killed.
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

/// The exit code, or 128 plus the signal, as in shells.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
