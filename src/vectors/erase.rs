//! Erases records: overwrites forgotten ones with zeros, in every vector file, immediately.
//!
//! A vector reveals the subject of its text, so it is erased with the text. Files of all models are
//! processed, because the setting may select their model again.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::Path,
};

use claude_mem_log::system::FileExt as _;

use crate::{
    format::{ERASURES_AT, HEADER_BYTES, Header, Record},
    writer::WriteLock,
};

/// Records read at once.
const BATCH: usize = 1024;

/// Overwrites all records for which `is_forgotten`, and returns how many there were. A directory
/// that does not exist has none.
///
/// Damaged records are overwritten, too, and unreadable files are deleted: their content is
/// unknown.
pub fn erase(
    dir: &Path,
    mut is_forgotten: impl FnMut(&Header, Record<'_>) -> bool,
) -> io::Result<u64> {
    if !dir.is_dir() {
        return Ok(0);
    }
    let write_lock = WriteLock::open(dir)?;
    let _held = write_lock.hold()?;
    let mut erased = 0;
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("bin") => erased += erase_in(&path, &mut is_forgotten)?,
            // Left by a killed rewrite: a running one would hold the lock.
            Some("new") => fs::remove_file(&path)?,
            _ => {}
        }
    }
    Ok(erased)
}

fn erase_in(
    path: &Path,
    is_forgotten: &mut impl FnMut(&Header, Record<'_>) -> bool,
) -> io::Result<u64> {
    if !fs::metadata(path)?.is_file() {
        fs::remove_file(path)?;
        return Ok(0);
    }
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let mut bytes = [0; HEADER_BYTES];
    let read = read_at(&file, &mut bytes, 0)?;
    let Some(header) = Header::decode(&bytes[..read]) else {
        fs::remove_file(path)?;
        return Ok(0);
    };
    let record_bytes = header.record_bytes();
    let zeros = vec![0; record_bytes];
    let mut buffer = vec![0; record_bytes * BATCH];
    let (mut at, mut erased) = (HEADER_BYTES as u64, 0);
    loop {
        let read = read_at(&file, &mut buffer, at)?;
        for (number, bytes) in buffer[..read].chunks(record_bytes).enumerate() {
            let is_to_go = match Record::decode(bytes) {
                Some(record) if bytes.len() == record_bytes => is_forgotten(&header, record),
                _ => bytes.iter().any(|byte| *byte != 0),
            };
            if is_to_go {
                let at = at + (number * record_bytes) as u64;
                file.write_all_at(&zeros[..bytes.len()], at)?;
                erased += 1;
            }
        }
        at += read as u64;
        if read < buffer.len() {
            break;
        }
    }
    if erased > 0 {
        let erasures = header.erasures.wrapping_add(1);
        file.write_all_at(&erasures.to_le_bytes(), ERASURES_AT)?;
        file.sync_data()?;
    }
    Ok(erased)
}

/// Reads until the buffer is full or the file ends.
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
