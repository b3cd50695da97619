//! Client of the worker: find, start and stop it.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

pub use super::line_socket::ask;
use super::version::is_newer;
use crate::instance::Instance;
use claude_mem_core::worker_process::{ATTEMPTS, start};
use claude_mem_core::{
    failure::Failure,
    os::{Urgency, terminate},
    worker_process::is_worker_running,
};

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum time to start.
const START_MAX: Duration = Duration::from_secs(15);
/// Maximum time to stop on request, and then on SIGTERM. Requests in progress and open connections
/// take at most five seconds.
const STOP_MAX: Duration = Duration::from_secs(12);
const KILL_MAX: Duration = Duration::from_secs(3);

/// Result of starting the worker.
#[derive(Debug, PartialEq, Eq)]
pub enum Started {
    /// A new worker is running.
    New(Instance),
    /// It replaced an older version.
    InsteadOf(Instance, String),
    /// A worker was already running.
    AlreadyThere(Instance),
}

/// The worker of this data directory, if one is running.
pub fn find(data: &Path) -> Option<Instance> {
    // A worker that is starting has not written the file yet.
    let deadline = Instant::now() + Duration::from_secs(2);
    while is_worker_running(data) {
        match Instance::read(data) {
            Some(instance) => return Some(instance),
            None if Instant::now() > deadline => return None,
            None => thread::sleep(POLL_INTERVAL),
        }
    }
    None
}

/// How often hooks have started the worker without success.
pub fn failed_starts(data: &Path) -> u64 {
    std::fs::metadata(data.join(ATTEMPTS)).map_or(0, |found| found.len())
}

/// Starts the worker unless one of this version or newer is running; returns when it responds.
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
            .meaning("hooks keep recording, and events stay pending in the log")
    })?;
    let deadline = Instant::now() + START_MAX;
    while Instant::now() < deadline {
        if let Some(found) = Instance::read(data)
            && ask(data, &json!({"type": "ping"})).is_ok_and(|answer| answer["pid"] == found.pid)
        {
            return Ok(match older {
                Some(version) => Started::InsteadOf(found, version),
                None => Started::New(found),
            });
        }
        // Another worker may have won the lock, and ours has exited.
        if child.try_wait().ok().flatten().is_some() && !is_worker_running(data) {
            break;
        }
        thread::sleep(POLL_INTERVAL);
    }
    Err(Failure::new("the worker did not start")
        .meaning("hooks keep recording, and events stay pending in the log")
        .remedy("see why with `claude-mem worker run`, or in `claude-mem worker logs`"))
}

/// Stops the worker: by request, then by SIGTERM, then by SIGKILL, which loses nothing. Returns
/// whether one was running.
pub fn stop(data: &Path) -> Result<bool, Failure> {
    if !is_worker_running(data) {
        return Ok(false);
    }
    let pid = find(data).map(|found| found.pid);
    if ask(data, &json!({"type": "stop"})).is_ok() && has_ended(data, STOP_MAX) {
        return Ok(true);
    }
    for (urgency, time_max) in [(Urgency::Asked, STOP_MAX), (Urgency::Killed, KILL_MAX)] {
        // The lock is held, so the process in `worker.json` is still running.
        if let Some(pid) = pid
            && is_worker_running(data)
        {
            terminate(pid, urgency);
        }
        if has_ended(data, time_max) {
            return Ok(true);
        }
    }
    Err(Failure::new("the worker did not stop")
        .meaning("it still holds worker.lock")
        .remedy("find its process with `claude-mem worker status`"))
}

fn has_ended(data: &Path, time_max: Duration) -> bool {
    let deadline = Instant::now() + time_max;
    while is_worker_running(data) {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(POLL_INTERVAL);
    }
    true
}
