//! Linux and macOS.

pub use std::os::unix::fs::FileExt;

use std::{
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
};

use super::Lock;
use super::{CreateOptionsExt, OpenOptionsExt};

impl CreateOptionsExt for OpenOptions {
    #[inline]
    fn owner_only(&mut self) -> &mut Self {
        self.mode(0o600)
    }
}

impl CreateOptionsExt for DirBuilder {
    #[inline]
    fn owner_only(&mut self) -> &mut Self {
        self.mode(0o700)
    }
}

impl OpenOptionsExt for OpenOptions {
    #[inline]
    fn no_wait(&mut self) -> &mut Self {
        self.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
    }

    #[inline]
    fn no_wait_or_follow(&mut self) -> &mut Self {
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
        self.custom_flags(flags.bits().cast_signed())
    }
}

/// The inode of a path.
// Not through the standard library, which requests every field of `statx`.
#[inline]
pub fn inode(path: &Path) -> io::Result<u64> {
    Ok(rustix::fs::stat(path)?.st_ino)
}

/// The inode of a path, and the file's length.
pub fn inode_and_len(path: &Path) -> io::Result<(u64, u64)> {
    let found = rustix::fs::stat(path)?;
    Ok((found.st_ino, found.st_size as u64))
}

/// The inode of an open file.
#[inline]
pub fn inode_of(file: &File) -> io::Result<u64> {
    Ok(rustix::fs::fstat(file)?.st_ino)
}

/// Length in bytes.
#[inline]
pub fn len(file: &File) -> io::Result<u64> {
    Ok(rustix::fs::fstat(file)?.st_size as u64)
}

/// The current offset of the file.
#[inline]
pub fn position(file: &File) -> io::Result<u64> {
    Ok(rustix::fs::tell(file)?)
}

/// Opens a lock file, and creates it if necessary. Its content is irrelevant, so it is neither read
/// nor truncated. A symbolic link is rejected, and so is a pipe without a reader.
pub fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).owner_only().no_wait_or_follow();
    options.open(path)
}

/// Takes a lock if it is free. It ends with the process, and does not prevent reads and writes.
#[inline]
pub fn try_lock(file: &File, lock: Lock) -> io::Result<bool> {
    let result = match lock {
        Lock::Shared => file.try_lock_shared(),
        Lock::Exclusive => file.try_lock(),
    };
    match result {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Releases the lock.
#[inline]
pub fn unlock(file: &File) -> io::Result<()> {
    file.unlock()
}

/// Renames atomically.
#[inline]
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)
}

/// Syncs a file that others wrote.
pub fn sync_file(file: &Path) -> io::Result<()> {
    File::open(file)?.sync_all()
}

/// Syncs the names in a directory.
#[inline]
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Allocates space without writing.
#[cfg(target_os = "linux")]
#[inline]
pub fn allocate(file: &File, len: u64) -> io::Result<()> {
    Ok(rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, len)?)
}

/// Allocates space by writing.
#[cfg(not(target_os = "linux"))]
pub fn allocate(file: &File, len: u64) -> io::Result<()> {
    file.write_all_at(&vec![0; len as usize], 0)
}

/// Whether the file is on a network file system, where concurrent appends are a race.
#[cfg(target_os = "linux")]
#[inline]
pub fn is_shared_over_network(file: &File) -> bool {
    /// The kernel's names for these are `NFS_SUPER_MAGIC`, `SMB_…`, `SMB2_…`, `CIFS_…`,
    /// `V9FS_MAGIC`, `AFS_SUPER_MAGIC`, `CODA_…`, `CEPH_…`, `OCFS2_…`, `GFS2_MAGIC`.
    const NETWORK: [u32; 10] = [
        0x6969,
        0x517B,
        0xFE53_4D42,
        0xFF53_4D42,
        0x0102_1997,
        0x5346_414F,
        0x7375_7245,
        0x00C3_6400,
        0x7461_636F,
        0x0116_1970,
    ];
    rustix::fs::fstatfs(file).is_ok_and(|stat| NETWORK.contains(&(stat.f_type as u32)))
}

/// Unknown here.
#[cfg(not(target_os = "linux"))]
pub fn is_shared_over_network(_file: &File) -> bool {
    false
}

/// Fills the bits with random data, if available now.
///
/// A direct system call: in a static binary the usual crate does not find the C library's function
/// and opens two devices instead, with five calls for one.
#[cfg(target_os = "linux")]
#[inline]
pub fn is_filled_at_random(bits: &mut [u8; 8]) -> bool {
    rustix::rand::getrandom(bits, rustix::rand::GetRandomFlags::NONBLOCK) == Ok(8)
}

/// Fills the bits with random data, if available now.
#[cfg(not(target_os = "linux"))]
pub fn is_filled_at_random(bits: &mut [u8; 8]) -> bool {
    fill_at_random(bits).is_ok()
}

/// Fills `bytes` with cryptographically random data, or fails: a guessable key is worse than none.
///
/// Read from the device that every Unix has; no caller needs speed.
pub fn fill_at_random(bytes: &mut [u8]) -> io::Result<()> {
    use std::io::Read as _;
    File::open("/dev/urandom")?.read_exact(bytes)
}

/// The path without symbolic links and dots.
#[inline]
pub fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path)
}

/// A path for a URI, before escaping.
pub fn uri_path(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}
