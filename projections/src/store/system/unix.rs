//! Linux and macOS.

use crate::{
    error::{Error, Result},
    store::files::{lock_exclusive, remove_companions, rename},
};
use claude_mem_log::system;
use std::path::Path;

/// The page size of a database during a rebuild; larger pages are faster.
pub(crate) const SCRATCH_PAGE_BYTES: u32 = 8192;

/// Replaces the old file with the new one, while others wait to open it. The old write-ahead log
/// must be removed first: SQLite would apply it to the new file. Connections to the old file keep
/// reading it; SQLite notices that the file has moved before it touches the new companion files.
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
