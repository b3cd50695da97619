//! The file of embedding vectors, and the exact search in it.
//!
//! Vectors are a cache outside the log and the database. Each model has one file, `vectors/<model
//! id>.bin` in the data directory, made of fixed records ([`format`](mod@format)). A record belongs
//! to one *window* of the text of one memory and carries a digest of that text. Deleting the file
//! costs the time to embed everything again, and nothing else.
//!
//! - [`Vectors`] opens the file and finds the nearest memories by comparing the query with every
//!   record.
//! - [`VectorWriter`] adds records and rewrites the file. One process at a time embeds.
//! - [`erase`] overwrites records of forgotten memories in every file, at once.
//!
//! **Read, not mapped.** Another program may truncate the file at any time, and access to a mapping
//! after the end of its file kills the process. So every search reads the file in pieces of 256 KB,
//! and a truncated one is an error. claude-mem never shortens the file: a torn end is overwritten,
//! and a rewritten file replaces the old one by rename.

mod dot;
mod erase;
pub mod format;
mod records;
mod scan;
#[cfg(test)]
mod tests;
mod vectors;
mod writer;

pub use erase::erase;
pub use scan::Scan;
pub use vectors::{Sample, Vectors};
pub use writer::{Put, VectorWriter, Window};

use std::path::{Path, PathBuf};

/// A memory: its kind and its row in the database.
///
/// Kinds have the numbers of `Kind` in `claude-mem-projections`: 0 observation, 1 summary, 2
/// prompt. They are on disk and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryKey {
    pub kind: u8,
    pub row: i64,
}

/// Identifies a model: a digest of its file and of how its texts are cut.
pub type ModelId = [u8; 16];

/// Identifies an embedded text: [`digest`].
pub type Digest = [u8; 16];

/// The digest of a text as embedded by a model.
pub fn digest(model: &ModelId, text: &str) -> Digest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(model).update(text.as_bytes());
    let mut digest = Digest::default();
    digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    digest
}

/// The directory of the vector files in a data directory.
pub fn directory(data: &Path) -> PathBuf {
    data.join("vectors")
}

/// The vector file of a model.
pub fn file(data: &Path, model: &ModelId) -> PathBuf {
    let name: String = model.iter().map(|byte| format!("{byte:02x}")).collect();
    directory(data).join(format!("{name}.bin"))
}
