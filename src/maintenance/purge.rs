//! Removes forgotten content from files next to the log and the database.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use claude_mem_projections::{Eraser, Store};
use memchr::memmem;

use claude_mem_core::{app::App, failure::Failure};

/// Deletes old databases, damaged bytes that may contain forgotten content, and diagnostics, which
/// may quote anything. Returns the number of bytes.
pub(super) fn purge_forgotten(
    app: &App,
    store: &Store,
    forgotten: &Eraser,
) -> Result<u64, Failure> {
    let mut bytes = store.remove_leftovers()?;
    for path in files(&app.paths.log().join("quarantine")) {
        if is_suspect(&path, store, forgotten)? {
            bytes += remove(&path)?;
        }
    }
    for path in files(&app.paths.data.join("logs")) {
        bytes += remove(&path)?;
    }
    Ok(bytes)
}

/// Whether damaged bytes may contain forgotten content: they come from a segment with forgotten
/// records, or contain the id of one. A spilled file is always suspect.
fn is_suspect(path: &Path, store: &Store, forgotten: &Eraser) -> Result<bool, Failure> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let segment = name.split_once('-').and_then(|(number, _)| u64::from_str_radix(number, 16).ok());
    let Some(segment) = segment else { return Ok(true) };
    if store.has_forgotten_in(segment)? {
        return Ok(true);
    }
    let Ok(bytes) = fs::read(path) else { return Ok(true) };
    Ok(forgotten.forgotten().iter().any(|id| memmem::find(&bytes, id).is_some()))
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect()
}

fn remove(path: &Path) -> Result<u64, Failure> {
    let bytes = fs::metadata(path).map_or(0, |metadata| metadata.len());
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::new(format!("{} cannot be removed: {error}", path.display()))
                .meaning("something that was forgotten may still be in it"))
        }
        _ => Ok(bytes),
    }
}

/// Deletes every file that may contain data removed from the log.
pub(super) fn purge_all(app: &App, store: &Store) -> Result<u64, Failure> {
    let mut bytes = store.remove_leftovers()?;
    for dir in [app.paths.log().join("quarantine"), app.paths.data.join("logs")] {
        for path in files(&dir) {
            bytes += remove(&path)?;
        }
    }
    Ok(bytes)
}
