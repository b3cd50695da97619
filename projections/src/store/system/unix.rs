//! Linux, macOS and their kin.

use crate::{
    error::{Error, Result},
    store::files::{lock_exclusive, remove_companions, rename},
};
use claude_mem_log::system;
use std::path::Path;

/// The size of a page in a database that is being drawn, which is faster with large ones.
pub(crate) const SCRATCH_PAGE_BYTES: u32 = 8192;

/// Puts the new file in the place of the old one. Whoever opens meanwhile waits. The old write-ahead log
/// must go first: SQLite would read it into the new file. Those who have the old one open keep reading it,
/// and SQLite notices that it has moved before it would touch what is in its place.
pub(crate) fn replace(path: &Path, scratch: &Path) -> Result<()> {
    let failed = |path: &Path| {
        let path = path.into();
        move |source| Error::Io { action: "sync", path, source }
    };
    system::sync_file(scratch).map_err(failed(scratch))?;
    let _replacing = lock_exclusive(path)?;
    remove_companions(path);
    rename(scratch, path)?;
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => system::sync_dir(parent).map_err(failed(parent)),
        None => Ok(()),
    }
}
