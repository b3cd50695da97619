//! The few calls the log makes on a disk. Tests pass in one that tears, drops, lies and fills up.

use std::{
    fmt::Debug,
    fs, io,
    io::Write as _,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

pub use crate::system::Lock;
use crate::system::{self, FileExt as _, Making as _};

/// Names in a directory.
pub trait Disk: Debug + Send + Sync {
    /// Makes a directory, and those above it, for the owner alone. Fine if it exists.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Opens an existing file for reading and appending.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Opens an existing file for reading.
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Makes a file that must not exist, for the owner alone, for reading and appending.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Opens a small file to be overwritten, making it if need be.
    fn open_marker(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Which file a name stands for.
    fn inode(&self, path: &Path) -> io::Result<u64>;
    /// Gives a file a second name, which must not exist.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Moves a name over another, atomically.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Takes a name away.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// The names in a directory, in no order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Makes names given and taken durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// How long ago a file was written to.
    fn age(&self, path: &Path) -> io::Result<Duration>;
    /// Microseconds since 1970. A label; nothing is ever ordered by it.
    fn now_us(&self) -> u64;
    /// Waits a moment for another process.
    fn pause(&self, time: Duration);
}

/// An open file.
pub trait File: Debug + Send + Sync {
    /// One `write` at the end of the file. Says how many bytes were taken, and where the file ended then.
    fn append(&self, bytes: &[u8]) -> io::Result<Written>;
    /// Overwrites. Only for small files that are not the log, such as the marker of the last sync.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Reads up to as many bytes as the buffer holds; 0 at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether there is nothing in it.
    fn is_empty(&self) -> io::Result<bool> {
        self.len().map(|len| len == 0)
    }
    /// Which file this is.
    fn inode(&self) -> io::Result<u64>;
    /// Returns once all that was written is on disk.
    fn sync(&self) -> io::Result<()>;
    /// Takes a lock if it is free. It dies with the process.
    fn try_lock(&self, lock: Lock) -> io::Result<bool>;
    /// Gives the lock back.
    fn unlock(&self) -> io::Result<()>;
    /// Claims space on disk without writing.
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// Whether appending to this file from several processes is a race: a network file system.
    fn is_shared_over_network(&self) -> bool;
}

/// What became of a `write`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// How many bytes were taken.
    pub bytes: usize,
    /// Where the file ended behind them.
    pub end: u64,
}

/// The operating system's.
#[derive(Debug, Clone, Copy)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).owner_only().create(path)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let file = fs::OpenOptions::new().read(true).append(true).open(path)?;
        Ok(Arc::new(RealFile(file)))
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(RealFile(fs::File::open(path)?)))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        let file = options.read(true).append(true).create_new(true).owner_only().open(path)?;
        Ok(Arc::new(RealFile(file)))
    }

    fn open_marker(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        let file =
            options.read(true).write(true).create(true).truncate(false).owner_only().open(path)?;
        Ok(Arc::new(RealFile(file)))
    }

    fn inode(&self, path: &Path) -> io::Result<u64> {
        system::inode(path)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        system::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let names =
            fs::read_dir(dir)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        Ok(names.collect())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        system::sync_dir(dir)
    }

    fn age(&self, path: &Path) -> io::Result<Duration> {
        let modified = fs::metadata(path)?.modified()?;
        // A clock set back would make the file look unborn. Then it counts as old.
        Ok(SystemTime::now().duration_since(modified).unwrap_or(Duration::MAX))
    }

    fn now_us(&self) -> u64 {
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| since.as_micros() as u64)
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

#[derive(Debug)]
struct RealFile(fs::File);

impl File for RealFile {
    fn append(&self, bytes: &[u8]) -> io::Result<Written> {
        loop {
            match (&self.0).write(bytes) {
                // The kernel sets the position of an appending file to where its own write ended, under
                // the lock of that write, so this is exact however many others append.
                Ok(bytes) => {
                    let end = system::position(&self.0)?;
                    return Ok(Written { bytes, end });
                }
                // Nothing was written.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match self.0.read_at(buffer, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    fn len(&self) -> io::Result<u64> {
        system::len(&self.0)
    }

    fn inode(&self) -> io::Result<u64> {
        system::inode_of(&self.0)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn try_lock(&self, lock: Lock) -> io::Result<bool> {
        system::try_lock(&self.0, lock)
    }

    fn unlock(&self) -> io::Result<()> {
        system::unlock(&self.0)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        system::allocate(&self.0, len)
    }

    fn is_shared_over_network(&self) -> bool {
        system::is_shared_over_network(&self.0)
    }
}
