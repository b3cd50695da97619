//! Maintenance that a hook has no time for.

use crate::{
    Error, Options,
    directory::Directory,
    write::{roll, seal, spill},
};
use std::{path::Path, sync::Arc, time::Duration};

/// What [`maintain`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Maintained {
    /// Records merged from spill files.
    pub merged: u64,
    /// Segments sealed.
    pub sealed: u64,
    /// Temporary files of processes that died.
    pub removed: u64,
}

/// Writing a file of a few bytes never takes this long.
const TEMPORARY_AGE_MAX: Duration = Duration::from_secs(3600);

/// Merges spilled records, seals full segments, restores the reserve, and removes temporary files
/// of dead processes. May run concurrently with anything, and be killed at any point.
pub fn maintain(dir: &Path, options: &Options) -> Result<Maintained, Error> {
    let directory = Directory::new(dir, Arc::clone(&options.disk));
    let merged = spill::merge(dir, options)?;
    let sealed = seal::seal_rolled(&directory, options.index_interval_bytes)?;
    if options.disk.inode(&directory.active()).is_ok() {
        roll::ensure_reserve(&directory, options.reserve_bytes);
    }
    Ok(Maintained { merged, sealed, removed: remove_temporary(&directory) })
}

fn remove_temporary(directory: &Directory) -> u64 {
    let is_old = |path: &Path| directory.disk.age(path).is_ok_and(|age| age > TEMPORARY_AGE_MAX);
    let mut count = 0;
    for dir in [directory.path.clone(), directory.spill()] {
        let names = directory.disk.list(&dir).unwrap_or_default();
        let paths = names.iter().filter(|name| name.ends_with(".tmp")).map(|name| dir.join(name));
        count += paths.filter(|path| is_old(path) && directory.disk.remove(path).is_ok()).count();
    }
    count as u64
}
