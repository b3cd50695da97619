//! Vacuuming: makes the database small and removes all traces of deleted content.

use crate::{
    error::{Error, Result},
    fold::{fts_rebuild::INDEXES, rebuild::lock_rebuild},
    store::{
        Store,
        files::{COMPANIONS, SCRATCH, lock_exclusive, sibling},
    },
};
use std::{fs, path::Path};

/// The result of vacuuming.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Vacuumed {
    /// Bytes of the database and its write-ahead log before.
    pub bytes_before: u64,
    /// The same after.
    pub bytes_after: u64,
    /// Whether a reader kept old pages in the write-ahead log.
    pub is_log_in_use: bool,
}

impl Store {
    /// Merges the full-text indexes, frees unused pages, and truncates the write-ahead log.
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

    /// Requires a rebuild before the next fold: the log itself has changed.
    pub fn mark_outdated(&self) -> Result<()> {
        self.connection.execute("update projections set version = 0", ())?;
        Ok(())
    }

    /// Removes databases that were moved away as unusable, and the file of an interrupted rebuild:
    /// they may contain what was forgotten since. Returns their size in bytes.
    pub fn remove_leftovers(&self) -> Result<u64> {
        let Some(path) = self.path() else { return Ok(0) };
        let mut bytes = 0;
        let _replacing = lock_exclusive(path)?;
        if let Ok(_rebuilding) = lock_rebuild(path) {
            for suffix in SCRATCH {
                bytes += remove(&sibling(&sibling(path, ".new"), suffix))?;
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
    len(path) + len(&sibling(path, COMPANIONS[0]))
}

/// Returns the size of the removed file; 0 if there was none. A directory at that path is not ours
/// and stays.
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
