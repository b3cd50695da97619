//! The worker seen from outside: whether it is there, asking it to end, waiting until it has.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

pub use super::jsonl::ask;
use super::version::is_newer;
use crate::instance::Presence;
use claude_mem_core::worker_process::{ATTEMPTS, start};
use claude_mem_core::{
    failure::Failure,
    os::{Urgency, terminate},
    worker_process::is_worker_running,
};

/// Between two looks whether something has happened that nobody tells us of.
const LOOK: Duration = Duration::from_millis(10);
/// How long a worker is given to come up.
const START_MAX: Duration = Duration::from_secs(15);
/// How long a worker is given to end when asked, and then when told. Questions under way and open
/// connections take it five seconds at most.
const STOP_MAX: Duration = Duration::from_secs(12);
const KILL_MAX: Duration = Duration::from_secs(3);

/// What starting came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Started {
    /// It runs now.
    New(Presence),
    /// An older one made room for it.
    InsteadOf(Presence, String),
    /// One was there.
    AlreadyThere(Presence),
}

/// Who is the worker of this data directory, if somebody is.
pub fn find(data: &Path) -> Option<Presence> {
    // One that is only just starting has not written yet.
    let deadline = Instant::now() + Duration::from_secs(2);
    while is_worker_running(data) {
        match Presence::read(data) {
            Some(presence) => return Some(presence),
            None if Instant::now() > deadline => return None,
            None => thread::sleep(LOOK),
        }
    }
    None
}

/// How often hooks have started the worker since one last did some work.
pub fn attempts_in_vain(data: &Path) -> u64 {
    std::fs::metadata(data.join(ATTEMPTS)).map_or(0, |found| found.len())
}

/// Starts the worker if there is none, or none as new as this program; returns when it answers.
pub fn ensure(data: &Path) -> Result<Started, Failure> {
    let mut older = None;
    if let Some(found) = find(data) {
        if !is_newer(env!("CARGO_PKG_VERSION"), &found.version) {
            return Ok(Started::AlreadyThere(found));
        }
        stop(data)?;
        older = Some(found.version);
    }
    let mut child = start(data).map_err(|error| {
        Failure::new(format!("the worker cannot be started: {error}"))
            .meaning("hooks go on recording, and everything waits in the log")
    })?;
    let deadline = Instant::now() + START_MAX;
    while Instant::now() < deadline {
        if let Some(found) = Presence::read(data)
            && ask(data, &json!({"type": "ping"})).is_ok_and(|answer| answer["pid"] == found.pid)
        {
            return Ok(match older {
                Some(version) => Started::InsteadOf(found, version),
                None => Started::New(found),
            });
        }
        // Another one may have been faster, and then ours has ended.
        if child.try_wait().ok().flatten().is_some() && !is_worker_running(data) {
            break;
        }
        thread::sleep(LOOK);
    }
    Err(Failure::new("the worker did not come up")
        .meaning("hooks go on recording, and everything waits in the log")
        .remedy("see why with `claude-mem worker run`, or in `claude-mem worker logs`"))
}

/// Ends the worker; says whether there was one. It is asked first, then told, then killed: it can be killed
/// at any moment.
pub fn stop(data: &Path) -> Result<bool, Failure> {
    if !is_worker_running(data) {
        return Ok(false);
    }
    let pid = find(data).map(|found| found.pid);
    if ask(data, &json!({"type": "stop"})).is_ok() && has_ended(data, STOP_MAX) {
        return Ok(true);
    }
    for (urgency, time_max) in [(Urgency::Asked, STOP_MAX), (Urgency::Killed, KILL_MAX)] {
        // The lock is held, so that whoever wrote `worker.json` is still there.
        if let Some(pid) = pid
            && is_worker_running(data)
        {
            terminate(pid, urgency);
        }
        if has_ended(data, time_max) {
            return Ok(true);
        }
    }
    Err(Failure::new("the worker did not end")
        .meaning("it still holds worker.lock")
        .remedy("find out who it is with `claude-mem worker status`"))
}

fn has_ended(data: &Path, time_max: Duration) -> bool {
    let deadline = Instant::now() + time_max;
    while is_worker_running(data) {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(LOOK);
    }
    true
}
