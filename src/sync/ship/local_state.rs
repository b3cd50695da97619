//! What this machine remembers of its shipping: for `status`, and against remotes that forget.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::Path,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::ship::Error;
use claude_mem_core::{
    os::open_lock,
    paths::Paths,
    user_file::{self, Readers},
};

/// Kept in `ship.json`. Losing it loses nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Where to.
    pub place: String,
    /// Whose log, as in the remote.
    pub host: String,
    /// The newest entry there.
    pub number: u64,
    /// How far: the last segment,
    pub segment: u64,
    /// and how much of it.
    pub offset: u64,
    /// Bytes of log that are there.
    pub log_bytes: u64,
    /// When something was last there in full, microseconds since 1970.
    pub shipped_us: u64,
    /// When shipping was last tried.
    pub tried_us: u64,
    /// Why that failed, if it did.
    pub error: Option<String>,
}

impl State {
    /// How far shipping to a remote is; nothing if that cannot be read.
    pub fn load(paths: &Paths) -> Option<Self> {
        Self::read(&paths.ship_state())
    }

    /// The same, of the copy whose state is in this file.
    pub(super) fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// Remembers.
    pub(super) fn save(&self, path: &Path) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(self).expect("a state is plain data");
        user_file::write(path, &text, Readers::Owner)
            .map_err(|error| Error::io("write", path, error))
    }
}

/// Held by whoever ships, so that the worker and a command do not do the same at the same time.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "held for its drop")] File);

const LOCK_WAITS_MAX: u32 = 600;
const LOCK_PAUSE: Duration = Duration::from_millis(100);

impl Lock {
    /// Waits its turn, for about a minute.
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
