//! Windows.

use crate::{
    error::Result,
    store::{
        files::{lock_exclusive, remove_scratch},
        open::BUSY,
    },
};
use rusqlite::{Connection, backup::Backup};
use std::{path::Path, time::Duration};

/// The page size of a database during a rebuild. It is SQLite's default, because it must match the
/// database that the pages are copied into.
pub(crate) const SCRATCH_PAGE_BYTES: u32 = 4096;

/// Pause between two attempts while another process writes.
const PAUSE: Duration = Duration::from_millis(10);

/// Copies the new file into the old one in one transaction: on Windows, a file that SQLite has open
/// cannot be replaced. Open connections see the new content.
pub(crate) fn replace(path: &Path, scratch: &Path) -> Result<()> {
    let replacing = lock_exclusive(path)?;
    let from = Connection::open(scratch)?;
    let mut to = Connection::open(path)?;
    to.busy_timeout(BUSY)?;
    Backup::new(&from, &mut to)?.run_to_completion(i32::MAX, PAUSE, None)?;
    drop((from, to, replacing));
    remove_scratch(scratch)
}
