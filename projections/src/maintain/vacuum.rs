//! Making the database small, and leaving nothing of what was removed in it or beside it.

use crate::{
    error::{Error, Result},
    fold::{fts_rebuild::INDEXES, rebuild::lock_rebuild},
    store::{
        Store,
        files::{COMPANIONS, SCRATCH, beside, lock_exclusive},
    },
};
use std::{fs, path::Path};

/// What tidying came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Vacuumed {
    /// Bytes of the database and its write-ahead log before.
    pub bytes_before: u64,
    /// And after.
    pub bytes_after: u64,
    /// Whether somebody was reading all along, so that pages of before are still in the write-ahead log.
    pub is_log_in_use: bool,
}

impl Store {
    /// Merges the full-text indexes, gives back what is free, and empties the write-ahead log.
    pub fn vacuum(&self) -> Result<Vacuumed> {
        let Some(path) = self.path() else { return Ok(Vacuumed::default()) };
        let bytes_before = size(path);
        for index in INDEXES {
            let sql = format!("insert into {index} ({index}) values ('optimize')");
            self.connection.execute(&sql, ())?;
        }
        self.connection.execute_batch("vacuum; pragma analysis_limit = 400; pragma optimize")?;
        let is_log_in_use: bool =
            self.connection.query_row("pragma wal_checkpoint(truncate)", (), |row| row.get(0))?;
        Ok(Vacuumed { bytes_before, bytes_after: size(path), is_log_in_use })
    }

    /// From now on everything is drawn again before anything is folded: the log itself has changed.
    pub fn mark_outdated(&self) -> Result<()> {
        self.connection.execute("update projections set version = 0", ())?;
        Ok(())
    }

    /// Removes databases that were set aside because they could not be used, and one whose drawing was cut
    /// short: what was forgotten since may be in them. Says how many bytes that were.
    pub fn remove_leftovers(&self) -> Result<u64> {
        let Some(path) = self.path() else { return Ok(0) };
        let mut bytes = 0;
        let _replacing = lock_exclusive(path)?;
        if let Ok(_rebuilding) = lock_rebuild(path) {
            for suffix in SCRATCH {
                bytes += remove(&beside(&beside(path, ".new"), suffix))?;
            }
        }
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return Ok(bytes) };
        let aside = format!("{}.broken-", name.to_string_lossy());
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&aside) {
                bytes += remove(&entry.path())?;
            }
        }
        Ok(bytes)
    }
}

fn size(path: &Path) -> u64 {
    let len = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
    len(path) + len(&beside(path, COMPANIONS[0]))
}

/// Says how many bytes it had; none if it was not there. A directory that stood in the place of a database
/// was not made by us and stays.
fn remove(path: &Path) -> Result<u64> {
    let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(0) };
    if metadata.is_dir() {
        return Ok(0);
    }
    fs::remove_file(path).map_err(|source| Error::Io {
        action: "remove",
        path: path.into(),
        source,
    })?;
    Ok(metadata.len())
}
