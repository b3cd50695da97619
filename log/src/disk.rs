//! The file system calls of the log. Tests use a simulated disk with torn writes, lost writes,
//! false success and no space.

use std::{
    fmt::Debug,
    fs, io,
    io::Write as _,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::system::{self, CreateOptionsExt as _, FileExt as _};
pub use crate::system::{FileMap, Lock};

/// A file system.
pub trait Disk: Debug + Send + Sync {
    /// Creates a directory and its parents, for the owner only. No error if it exists.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Opens an existing file for reading and appending.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Opens an existing file for reading.
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Creates a new file for reading and appending, for the owner only.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Opens a small file for overwriting, creating it if necessary.
    fn open_marker(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// The inode of a path.
    fn inode(&self, path: &Path) -> io::Result<u64>;
    /// Creates a hard link.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Renames atomically.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// The names in a directory, in no order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Syncs the names in a directory.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// The time since the last modification of a file.
    fn age(&self, path: &Path) -> io::Result<Duration>;
    /// Microseconds since 1970. Never used for ordering.
    fn now_us(&self) -> u64;
    /// Waits for another process.
    fn pause(&self, time: Duration);
}

/// An open file.
pub trait File: Debug + Send + Sync {
    /// One `write` at the end of the file. Returns the number of bytes written, and the end of the
    /// file then.
    fn append(&self, bytes: &[u8]) -> io::Result<AppendResult>;
    /// Overwrites. Only for small marker files.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Reads up to as many bytes as the buffer holds; 0 at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file is empty.
    fn is_empty(&self) -> io::Result<bool> {
        self.len().map(|len| len == 0)
    }
    /// Its inode.
    fn inode(&self) -> io::Result<u64>;
    /// Returns once all written data is on disk.
    fn sync(&self) -> io::Result<()>;
    /// Takes a lock if it is free. It ends with the process.
    fn try_lock(&self, lock: Lock) -> io::Result<bool>;
    /// Releases the lock.
    fn unlock(&self) -> io::Result<()>;
    /// Allocates space without writing.
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// Whether the file is on a network file system, where concurrent appends are a race.
    fn is_shared_over_network(&self) -> bool;
    /// Maps the file, which is complete; `None` if it has to be read.
    fn map(&self) -> Option<FileMap> {
        None
    }
}

/// The result of a `write`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendResult {
    /// Number of bytes written.
    pub bytes: usize,
    /// The end of the file after these bytes.
    pub end: u64,
}

/// The operating system's file system.
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
        // After the clock was set back, the file counts as old.
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
    fn append(&self, bytes: &[u8]) -> io::Result<AppendResult> {
        loop {
            match (&self.0).write(bytes) {
                // The kernel sets the offset of an appending file to the end of its own write,
                // under the lock of that write, so this is exact even if other processes append.
                Ok(bytes) => {
                    let end = system::position(&self.0)?;
                    return Ok(AppendResult { bytes, end });
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

    fn map(&self) -> Option<FileMap> {
        match self.is_shared_over_network() {
            true => None,
            false => FileMap::new(&self.0),
        }
    }
}
