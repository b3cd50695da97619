//! Adds records to a vector file, and rewrites it.

use std::{
    collections::hash_map::RandomState,
    fs::{DirBuilder, File, OpenOptions},
    hash::BuildHasher as _,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use claude_mem_log::system::{self, CreateOptionsExt as _, FileExt as _};

use crate::{
    Digest, MemoryKey, ModelId, Vectors,
    format::{HEADER_BYTES, Header, encode_record},
    records::Records,
    vectors::NONE,
};

/// Minimum number of unused records for a rewrite.
const USELESS_MIN: usize = 256;
/// Attempts to take the write lock: it is held for one write, for an erasure, or for a rewrite.
const LOCK_TRIES: u32 = 6000;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// One embedded text of a memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    pub digest: Digest,
    /// `None` if the file has this text already.
    pub vector: Option<Vec<f32>>,
}

/// The result of [`VectorWriter::put`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// The memory has exactly these windows.
    Done,
    /// The memory was forgotten or changed while it was embedded.
    Outdated,
    /// The file was deleted, replaced or truncated. Open it again.
    Replaced,
}

/// The only process that adds vectors.
#[derive(Debug)]
pub struct VectorWriter {
    path: PathBuf,
    file: File,
    vectors: Vectors,
    write_lock: WriteLock,
    _one_writer: File,
}

impl VectorWriter {
    /// Opens the file of a model for writing. Creates it, and replaces a file that cannot be used.
    /// `None` while another process writes.
    pub fn open(path: &Path, model: ModelId, center: &[f32]) -> io::Result<Option<Self>> {
        let Some(dir) = path.parent() else { return Err(io::ErrorKind::InvalidInput.into()) };
        DirBuilder::new().recursive(true).owner_only().create(dir)?;
        let one_writer = system::open_lock(&dir.join("embed.lock"))?;
        if !system::try_lock(&one_writer, system::Lock::Exclusive)? {
            return Ok(None);
        }
        let write_lock = WriteLock::open(dir)?;
        let found = Vectors::open(path, model, center)?;
        let (total, useful) = found.as_ref().map_or((0, 0), Vectors::used);
        let useless = total - useful;
        let is_wasteful = useless > USELESS_MIN && useless * 4 > total;
        let mut header = Header { dimensions: center.len(), model, file: 0, erasures: 0 };
        if found.is_none() || is_wasteful {
            header.file = RandomState::new().hash_one(total);
            let _held = write_lock.hold()?;
            // Again under the lock: records may have been erased since.
            rewrite(path, &header, Vectors::open(path, model, center)?.as_ref())?;
        }
        let Some(vectors) = Vectors::open(path, model, center)? else { return Ok(None) };
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Some(Self { path: path.into(), file, vectors, write_lock, _one_writer: one_writer }))
    }

    /// The file as it was when it was opened for writing.
    pub fn vectors(&self) -> &Vectors {
        &self.vectors
    }

    /// Stores exactly these windows for a memory. Call it once per memory.
    ///
    /// `is_current` is called under the write lock, directly before the write. Forgetting a memory
    /// first hides it in the database and then erases its vectors under the same lock. So either
    /// this call sees that it is hidden, or the erasure sees the records of this call.
    pub fn put(
        &mut self,
        key: MemoryKey,
        windows: &[Window],
        is_current: impl FnOnce() -> bool,
    ) -> io::Result<Put> {
        let _held = self.write_lock.hold()?;
        if !self.is_in_place() {
            return Ok(Put::Replaced);
        }
        if !is_current() {
            return Ok(Put::Outdated);
        }
        let record_bytes = self.vectors.records.header.record_bytes();
        for (number, digest) in self.vectors.records_of(key).iter().zip(self.vectors.digests(key)?)
        {
            if windows.iter().all(|window| window.digest != digest) {
                let at = HEADER_BYTES + *number as usize * record_bytes;
                self.file.write_all_at(&vec![0; record_bytes], at as u64)?;
            }
        }
        let mut bytes = Vec::new();
        for (number, window) in windows.iter().enumerate() {
            if let Some(vector) = &window.vector {
                let center = &self.vectors.center;
                encode_record(&mut bytes, key, number as u16, &window.digest, vector, center);
            }
        }
        // A torn record at the end is overwritten.
        let records = (self.file.metadata()?.len() as usize).saturating_sub(HEADER_BYTES);
        let end = HEADER_BYTES + records - records % record_bytes;
        self.file.write_all_at(&bytes, end as u64)?;
        Ok(Put::Done)
    }

    /// Whether the file at the path is the opened one, and has all its records.
    fn is_in_place(&self) -> bool {
        let ours = &self.vectors.records;
        Records::open(&self.path, &ours.header.model, ours.header.dimensions).is_ok_and(|found| {
            found.is_some_and(|found| {
                found.header.file == ours.header.file && found.count >= ours.count
            })
        })
    }
}

/// The lock of all processes that change files in the directory. Held for a short time.
#[derive(Debug)]
pub(crate) struct WriteLock(File);

impl WriteLock {
    pub(crate) fn open(dir: &Path) -> io::Result<Self> {
        Ok(Self(system::open_lock(&dir.join("write.lock"))?))
    }

    pub(crate) fn hold(&self) -> io::Result<LockGuard<'_>> {
        for _ in 0..LOCK_TRIES {
            if system::try_lock(&self.0, system::Lock::Exclusive)? {
                return Ok(LockGuard(&self.0));
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        Err(io::Error::new(io::ErrorKind::WouldBlock, "another process is writing vectors"))
    }
}

/// Releases the lock when dropped.
pub(crate) struct LockGuard<'a>(&'a File);

impl Drop for LockGuard<'_> {
    fn drop(&mut self) {
        let _ = system::unlock(self.0);
    }
}

/// Replaces the file by one with only the valid records of the old one.
fn rewrite(path: &Path, header: &Header, old: Option<&Vectors>) -> io::Result<()> {
    let new = path.with_extension("new");
    let _ = std::fs::remove_file(&new);
    let file = OpenOptions::new().write(true).create_new(true).owner_only().open(&new)?;
    let mut out = io::BufWriter::with_capacity(1 << 20, file);
    out.write_all(&header.encode())?;
    if let Some(old) = old {
        let record_bytes = header.record_bytes();
        old.records.each_piece(0..old.records.count, |first, bytes| {
            let memories = &old.memory_of[first..];
            for (bytes, memory) in bytes.chunks_exact(record_bytes).zip(memories) {
                if *memory != NONE {
                    out.write_all(bytes)?;
                }
            }
            Ok(())
        })?;
    }
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    system::rename(&new, path)
}
