//! Spawns the worker as a process that outlives its parent.

use std::{
    env,
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, absolute},
    process::{Child, Command, Stdio},
    time::{Duration, SystemTime},
};

use crate::{environment::Environment, os, settings};

/// A file with one byte per failed attempt. Its modification time is the time of the last attempt.
pub const ATTEMPTS: &str = "worker.attempts";
/// The pause after the first attempt; it doubles each time.
const PAUSE_MIN: Duration = Duration::from_secs(5);
/// The pause stops growing after this many doublings, at about ten minutes.
const DOUBLINGS_MAX: u32 = 7;

/// Starts the worker, unless a recent attempt failed. Does not wait for it: if it does not start, a
/// later hook tries again, and events stay pending in the log.
pub fn start_if_due(data: &Path) {
    let attempts = data.join(ATTEMPTS);
    if is_due(&attempts) && note(&attempts).is_ok() {
        let _ = start(data);
    }
}

/// Starts the worker. It inherits no descriptors and no variables that may belong to a project,
/// because it serves all projects.
pub fn start(data: &Path) -> io::Result<Child> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["worker", "run", "--background"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let data = absolute(data)?;
    // Not a folder that the user may want to unmount or delete.
    command.current_dir(&data).env_clear().envs(Environment::of_process().own());
    command.envs(settings::variables(&data.join(".env"))).env("CLAUDE_MEM_DATA_DIR", &data);
    os::start_detached(&mut command)
}

/// Resets the pause, because the worker runs.
pub fn forget_attempts(data: &Path) {
    let _ = fs::remove_file(data.join(ATTEMPTS));
}

fn is_due(attempts: &Path) -> bool {
    let Ok(found) = fs::metadata(attempts) else { return true };
    let doublings = found.len().saturating_sub(1).min(DOUBLINGS_MAX.into()) as u32;
    let since = found.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
    // A modification time in the future means that the clock was wrong.
    since.is_none_or(|since| since >= PAUSE_MIN * 2_u32.pow(doublings))
}

fn note(attempts: &Path) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).open(attempts)?.write_all(b".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failed_attempt_doubles_the_pause() {
        let data = tempfile::tempdir().unwrap();
        let attempts = data.path().join(ATTEMPTS);
        assert!(is_due(&attempts));
        let was = |ago: u64| {
            let at = SystemTime::now() - Duration::from_secs(ago);
            fs::File::open(&attempts).unwrap().set_modified(at).unwrap();
            is_due(&attempts)
        };
        note(&attempts).unwrap();
        assert_eq!([was(3), was(6)], [false, true]);
        note(&attempts).unwrap();
        assert_eq!([was(6), was(11)], [false, true]);
        for _ in 0..100 {
            note(&attempts).unwrap();
        }
        assert_eq!([was(630), was(650)], [false, true]);
        fs::File::open(&attempts)
            .unwrap()
            .set_modified(SystemTime::now() + Duration::from_secs(3600))
            .unwrap();
        assert!(is_due(&attempts));
        forget_attempts(data.path());
        assert!(is_due(&attempts));
    }
}
