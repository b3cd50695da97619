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

/// The size of a page in a database that is being drawn: what SQLite makes by itself, because what is put into a
/// database that others have open has to fit its pages.
pub(crate) const SCRATCH_PAGE_BYTES: u32 = 4096;

/// Between two attempts while somebody else writes.
const PAUSE: Duration = Duration::from_millis(10);

/// Puts what is in the new file into the old one, in one transaction: SQLite opens files there such that nobody
/// can replace them. Those who have it open go on with what is new.
pub(crate) fn replace(path: &Path, scratch: &Path) -> Result<()> {
    let replacing = lock_exclusive(path)?;
    let from = Connection::open(scratch)?;
    let mut to = Connection::open(path)?;
    to.busy_timeout(BUSY)?;
    Backup::new(&from, &mut to)?.run_to_completion(i32::MAX, PAUSE, None)?;
    drop((from, to, replacing));
    remove_scratch(scratch)
}
