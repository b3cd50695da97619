//! Windows 10 and later. The standard library opens files such that others may rename and remove
//! them.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Seek as _},
    os::windows::{
        fs::{FileExt as _, OpenOptionsExt as _},
        io::AsRawHandle as _,
    },
    path::{Component, Path, PathBuf, Prefix},
    ptr,
};

use windows_sys::Win32::{
    Foundation::ERROR_LOCK_VIOLATION,
    Security::Cryptography::{BCRYPT_USE_SYSTEM_PREFERRED_RNG, BCryptGenRandom},
    Storage::FileSystem::{
        BY_HANDLE_FILE_INFORMATION, FILE_FLAG_OPEN_REPARSE_POINT, GetFileInformationByHandle,
        LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, UnlockFile,
    },
    System::IO::{OVERLAPPED, OVERLAPPED_0, OVERLAPPED_0_0},
};

use super::Lock;
use super::{CreateOptionsExt, OpenOptionsExt};

/// A lock on a range of bytes prevents access by others, and a shared one even writes by its owner.
/// So one byte far after the end of any file is locked instead.
const LOCKED: u64 = 0x7FFF_FFFF_FFFF_FF00;

/// Positioned reads and writes, with the names of the Unix trait.
pub trait FileExt {
    /// Reads up to as many bytes as the buffer holds; 0 at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Fills the buffer, or fails.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes everything.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
}

impl FileExt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.seek_read(buffer, offset)
    }

    fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.seek_read(buffer, offset)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => {
                    buffer = &mut buffer[count..];
                    offset += count as u64;
                }
            }
        }
        Ok(())
    }

    fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.seek_write(bytes, offset)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => {
                    bytes = &bytes[count..];
                    offset += count as u64;
                }
            }
        }
        Ok(())
    }
}

/// Files in a user's profile are accessible by that user only.
impl CreateOptionsExt for OpenOptions {
    fn owner_only(&mut self) -> &mut Self {
        self
    }
}

impl CreateOptionsExt for DirBuilder {
    fn owner_only(&mut self) -> &mut Self {
        self
    }
}

/// There are no pipes in the file system.
impl OpenOptionsExt for OpenOptions {
    fn no_wait(&mut self) -> &mut Self {
        self
    }

    fn no_wait_or_follow(&mut self) -> &mut Self {
        self.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT)
    }
}

/// The file index of a path.
pub fn inode(path: &Path) -> io::Result<u64> {
    inode_of(&File::open(path)?)
}

/// The file index of a path, and the file's length.
pub fn inode_and_len(path: &Path) -> io::Result<(u64, u64)> {
    let file = File::open(path)?;
    Ok((inode_of(&file)?, len(&file)?))
}

/// The file index of an open file.
#[expect(unsafe_code, reason = "the standard library has no such call yet")]
pub fn inode_of(file: &File) -> io::Result<u64> {
    let mut found = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open as long as `file` is, and `found` is written to during the call
    // only.
    let is_found = unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut found) };
    checked(is_found)?;
    Ok((u64::from(found.nFileIndexHigh) << 32) | u64::from(found.nFileIndexLow))
}

/// Length in bytes.
pub fn len(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.len())
}

/// The current offset of the file. After an append that is the end of what was appended.
pub fn position(mut file: &File) -> io::Result<u64> {
    file.stream_position()
}

/// Opens a lock file, and creates it if necessary. Its content is irrelevant, so it is neither read
/// nor truncated.
pub fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).open(path)
}

/// Takes a lock if it is free. It ends with the process, and does not prevent reads and writes.
#[expect(unsafe_code, reason = "the standard library locks the very bytes that are to be written")]
pub fn try_lock(file: &File, lock: Lock) -> io::Result<bool> {
    let kind = match lock {
        Lock::Shared => 0,
        Lock::Exclusive => LOCKFILE_EXCLUSIVE_LOCK,
    };
    let at = OVERLAPPED_0_0 { Offset: LOCKED as u32, OffsetHigh: (LOCKED >> 32) as u32 };
    let mut at = OVERLAPPED {
        Internal: 0,
        InternalHigh: 0,
        Anonymous: OVERLAPPED_0 { Anonymous: at },
        hEvent: ptr::null_mut(),
    };
    let flags = kind | LOCKFILE_FAIL_IMMEDIATELY;
    // SAFETY: the handle is open as long as `file` is. Calls on it are synchronous, so `at` is not
    // used afterwards.
    let is_locked = unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &raw mut at) };
    match checked(is_locked) {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(ERROR_LOCK_VIOLATION.cast_signed()) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Releases the lock.
#[expect(unsafe_code, reason = "the counterpart of `try_lock`")]
pub fn unlock(file: &File) -> io::Result<()> {
    let (low, high) = (LOCKED as u32, (LOCKED >> 32) as u32);
    // SAFETY: the handle is open as long as `file` is.
    checked(unsafe { UnlockFile(file.as_raw_handle(), low, high, 1, 0) })
}

/// Renames: atomically, where the file system supports that for an open target. Otherwise the
/// target is renamed first, and the name does not exist for a short time.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && to.is_file() => {
            let mut aside = to.as_os_str().to_owned();
            aside.push(format!(".{}.tmp", std::process::id()));
            fs::rename(to, &aside).map_err(|_| error)?;
            let moved = fs::rename(from, to);
            // Restores the target after a failure; else it is removed once no process has it open.
            let _ = if moved.is_err() { fs::rename(&aside, to) } else { fs::remove_file(&aside) };
            moved
        }
        other => other,
    }
}

/// Syncs a file that others wrote. That needs write access.
pub fn sync_file(file: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).open(file)?.sync_all()
}

/// NTFS journals its names, and there is no call to sync them.
pub fn sync_dir(_dir: &Path) -> io::Result<()> {
    Ok(())
}

/// Allocates space by writing.
pub fn allocate(file: &File, len: u64) -> io::Result<()> {
    file.write_all_at(&vec![0; len as usize], 0)
}

/// Unknown here.
pub fn is_shared_over_network(_file: &File) -> bool {
    false
}

/// Fills the bits with random data, if available now.
pub fn is_filled_at_random(bits: &mut [u8; 8]) -> bool {
    fill_at_random(bits).is_ok()
}

/// Fills `bytes` with cryptographically random data, or fails: a guessable key is worse than none.
#[expect(unsafe_code, reason = "the standard library keeps its randomness to itself")]
pub fn fill_at_random(bytes: &mut [u8]) -> io::Result<()> {
    let (start, len) = (bytes.as_mut_ptr(), bytes.len() as u32);
    // SAFETY: writes at most the length of the buffer, during the call only.
    let status =
        unsafe { BCryptGenRandom(ptr::null_mut(), start, len, BCRYPT_USE_SYSTEM_PREFERRED_RNG) };
    if status == 0 { Ok(()) } else { Err(io::Error::other("the system has no randomness")) }
}

/// The path without links and dots, in the usual form: the system adds `\\?\`, which few programs
/// understand.
pub fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    let full = fs::canonicalize(path)?;
    let mut parts = full.components();
    let Some(Component::Prefix(prefix)) = parts.next() else { return Ok(full) };
    let mut plain = match prefix.kind() {
        Prefix::VerbatimDisk(letter) => OsString::from(format!("{}:", char::from(letter))),
        Prefix::VerbatimUNC(server, share) => {
            let mut root = OsString::from(r"\\");
            root.push(server);
            root.push(r"\");
            root.push(share);
            root
        }
        _ => return Ok(full),
    };
    plain.push(parts.as_path());
    Ok(plain.into())
}

/// A path for a URI, before escaping: `/C:/Users/ada`.
pub fn uri_path(path: &Path) -> Vec<u8> {
    let text = path.to_string_lossy().replace('\\', "/");
    let has_letter = text.as_bytes().get(1) == Some(&b':');
    if has_letter { format!("/{text}") } else { text }.into_bytes()
}

fn checked(is_done: i32) -> io::Result<()> {
    if is_done == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
