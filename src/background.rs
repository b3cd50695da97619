//! Distilling in the background: what a hook leaves running when a turn is over, so that nobody has to call
//! `claude-mem project` and nobody waits for it.

use std::{
    env,
    fs::File,
    path::Path,
    process::{Command, Stdio},
};

/// What Claude Code sets for its own children and what would mislead a client started from here.
const NOT_OURS: [&str; 6] = [
    "CLAUDECODE",
    "CLAUDE_PROJECT_DIR",
    "CLAUDE_PID",
    "CLAUDE_EFFORT",
    "CLAUDE_ENV_FILE",
    "AI_AGENT",
];

/// Starts a process that asks and folds what is outstanding, unless one is at it. It is not waited for and
/// outlives the hook: it holds none of our descriptors and leaves our session by itself.
pub(crate) fn start(data: &Path) {
    if is_somebody_at_it(data) {
        return;
    }
    let Ok(program) = env::current_exe() else { return };
    let mut command = Command::new(program);
    command.args(["project", "--due", "--background"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Not a folder that somebody may want to unmount or delete.
    command.current_dir(data);
    for name in NOT_OURS {
        command.env_remove(name);
    }
    // If it cannot be started, the next hook tries again, and everything waits in the log.
    let _ = command.spawn();
}

/// Leaves the session of whoever started this process, so that nothing that ends that one ends us.
pub(crate) fn detach() {
    // It fails for the leader of a group, which has a session of its own already.
    let _ = rustix::process::setsid();
}

/// Whether a process is asking right now.
pub(crate) fn is_somebody_at_it(data: &Path) -> bool {
    File::open(data.join("ask.lock")).is_ok_and(|lock| lock.try_lock_shared().is_err())
}
