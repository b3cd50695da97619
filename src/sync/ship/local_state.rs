//! The state of shipping on this machine: for `status`, and to detect a remote that was rolled
//! back.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::Path,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::ship::{Error, remote_head::Head};
use claude_mem_core::{
    os::open_lock,
    paths::Paths,
    user_file::{self, Readers},
};

/// Stored in `ship.json`. It can be lost without harm.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub place: String,
    pub host: String,
    pub number: u64,
    /// The last shipped segment,
    pub segment: u64,
    /// and how many bytes of it.
    pub offset: u64,
    pub log_bytes: u64,
    /// When the remote was last complete, microseconds since 1970.
    pub shipped_us: u64,
    pub tried_us: u64,
    pub error: Option<String>,
}

/// While idle, the state is written at most this often.
const WRITE_EVERY_US: u64 = 60_000_000;

impl State {
    /// Reads the state of the configured remote; `None` if it is missing or unreadable.
    pub fn load(paths: &Paths) -> Option<Self> {
        Self::read(&paths.ship_state())
    }

    pub(super) fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// Records the result of an attempt: the head of the remote, or the error.
    pub(super) fn update(
        path: &Path,
        place: &str,
        now_us: u64,
        result: Result<Option<&Head>, &Error>,
    ) {
        let before = Self::read(path).filter(|state| state.place == place).unwrap_or_default();
        let mut state = Self {
            place: place.into(),
            tried_us: now_us,
            error: result.err().map(ToString::to_string),
            ..before.clone()
        };
        if let Ok(Some(head)) = result {
            let last = head.segments().pop();
            state = Self {
                host: head.host.to_string(),
                number: head.number,
                segment: last.as_ref().map_or(0, |last| last.number),
                offset: last.as_ref().map_or(0, |last| last.bytes),
                log_bytes: head.bytes(),
                shipped_us: now_us,
                ..state
            };
        }
        let is_changed = state.number != before.number || state.error != before.error;
        // When idle, nothing is written. The file is optional, so errors are ignored.
        if is_changed || now_us.saturating_sub(before.tried_us) > WRITE_EVERY_US {
            let _ = state.save(path);
        }
    }

    fn save(&self, path: &Path) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(self).expect("a state is plain data");
        user_file::write(path, &text, Readers::Owner)
            .map_err(|error| Error::io("write", path, error))
    }
}

/// The lock file of shipping: one process ships at a time.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "held for its drop")] File);

const LOCK_WAITS_MAX: u32 = 600;
const LOCK_PAUSE: Duration = Duration::from_millis(100);

impl Lock {
    /// Waits for the lock, at most about one minute.
    pub(super) async fn take(path: &Path) -> Result<Self, Error> {
        let failed = |error: io::Error| Error::io("lock", path, error);
        let file = open_lock(path).map_err(failed)?;
        for _ in 0..LOCK_WAITS_MAX {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_PAUSE).await,
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        Err(failed(io::Error::other("another process has been shipping for a minute")))
    }
}
