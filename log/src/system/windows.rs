//! Windows 10 and later. The standard library opens files such that others may rename and remove them.

use std::{
    borrow::Cow,
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Seek as _},
    os::windows::{fs::FileExt as _, io::AsRawHandle as _},
    path::{Component, Path, PathBuf, Prefix},
    ptr,
};

use windows_sys::Win32::{
    Foundation::ERROR_LOCK_VIOLATION,
    Security::Cryptography::{BCRYPT_USE_SYSTEM_PREFERRED_RNG, BCryptGenRandom},
    Storage::FileSystem::{
        BY_HANDLE_FILE_INFORMATION, GetFileInformationByHandle, LOCKFILE_EXCLUSIVE_LOCK,
        LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, UnlockFile,
    },
    System::IO::{OVERLAPPED, OVERLAPPED_0, OVERLAPPED_0_0},
};

use super::Lock;
use super::{Making, Opening};

/// A lock keeps others from the bytes it is on, and a shared one even its owner from writing them. So one byte
/// far behind the end of any file is locked, and stands for the whole.
const LOCKED: u64 = 0x7FFF_FFFF_FFFF_FF00;

/// Reading and writing at a place, under the names that other systems have for it.
pub trait FileExt {
    /// Reads up to as many bytes as the buffer holds; 0 at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Fills the buffer, or fails.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all of it.
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

/// Whatever is made in a user's profile is that user's already.
impl Making for OpenOptions {
    fn owner_only(&mut self) -> &mut Self {
        self
    }
}

impl Making for DirBuilder {
    fn owner_only(&mut self) -> &mut Self {
        self
    }
}

/// There are no pipes among files.
impl Opening for OpenOptions {
    fn no_wait(&mut self) -> &mut Self {
        self
    }
}

/// Which file a name stands for.
pub fn inode(path: &Path) -> io::Result<u64> {
    inode_of(&File::open(path)?)
}

/// Which file a name stands for, and how long that is.
pub fn inode_and_len(path: &Path) -> io::Result<(u64, u64)> {
    let file = File::open(path)?;
    Ok((inode_of(&file)?, len(&file)?))
}

/// Which file this is.
#[expect(unsafe_code, reason = "the standard library does not tell yet")]
pub fn inode_of(file: &File) -> io::Result<u64> {
    let mut found = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open as long as `file` is, and `found` is written to during the call only.
    let is_found = unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut found) };
    checked(is_found)?;
    Ok((u64::from(found.nFileIndexHigh) << 32) | u64::from(found.nFileIndexLow))
}

/// Length in bytes.
pub fn len(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.len())
}

/// Where the last read or write ended. Behind an append that is the end of what was appended.
pub fn position(mut file: &File) -> io::Result<u64> {
    file.stream_position()
}

/// Opens a lock file, and creates it if need be. Its content means nothing, so it is neither read nor emptied.
pub fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).open(path)
}

/// Takes a lock if it is free. It dies with the process, and keeps nobody from reading and writing.
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
    // SAFETY: the handle is open as long as `file` is. Calls on it return when they are done, so that nobody
    // uses `at` behind this one.
    let is_locked = unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &raw mut at) };
    match checked(is_locked) {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(ERROR_LOCK_VIOLATION.cast_signed()) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Gives the lock back.
#[expect(unsafe_code, reason = "the counterpart of `try_lock`")]
pub fn unlock(file: &File) -> io::Result<()> {
    let (low, high) = (LOCKED as u32, (LOCKED >> 32) as u32);
    // SAFETY: the handle is open as long as `file` is.
    checked(unsafe { UnlockFile(file.as_raw_handle(), low, high, 1, 0) })
}

/// Moves a name over another: atomically, where the file system can do so with a file that somebody has open.
/// Where not, that one is moved aside first, and for a moment there is none of its name.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && to.is_file() => {
            let mut aside = to.as_os_str().to_owned();
            aside.push(format!(".{}.tmp", std::process::id()));
            fs::rename(to, &aside).map_err(|_| error)?;
            let moved = fs::rename(from, to);
            // What was in the way is back in its place, or gone when nobody has it open any more.
            let _ = if moved.is_err() { fs::rename(&aside, to) } else { fs::remove_file(&aside) };
            moved
        }
        other => other,
    }
}

/// Makes durable what was written to a file by others. Only who may write may ask for that.
pub fn sync_file(file: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).open(file)?.sync_all()
}

/// The file system keeps a journal of its names, and there is no call to bring it to disk.
pub fn sync_dir(_dir: &Path) -> io::Result<()> {
    Ok(())
}

/// Claims space on disk by writing.
pub fn allocate(file: &File, len: u64) -> io::Result<()> {
    file.write_all_at(&vec![0; len as usize], 0)
}

/// Not known here.
pub fn is_shared_over_network(_file: &File) -> bool {
    false
}

/// Fills the bits with randomness, if there is any at this moment.
pub fn is_filled_at_random(bits: &mut [u8; 8]) -> bool {
    fill_at_random(bits).is_ok()
}

/// Fills `bytes` with what nobody can guess, or fails: a guessable key is worse than none.
#[expect(unsafe_code, reason = "the standard library keeps its randomness to itself")]
pub fn fill_at_random(bytes: &mut [u8]) -> io::Result<()> {
    let (start, len) = (bytes.as_mut_ptr(), bytes.len() as u32);
    // SAFETY: no more is written than there is room for, and that during the call only.
    let status =
        unsafe { BCryptGenRandom(ptr::null_mut(), start, len, BCRYPT_USE_SYSTEM_PREFERRED_RNG) };
    if status == 0 { Ok(()) } else { Err(io::Error::other("the system has no randomness")) }
}

/// The path without links and dots, as people and programs write it. The system puts `\\?\` in front, which few
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

/// A path such that two which mean the same are the same, and `/` separates folders.
pub fn comparable(path: &str) -> Cow<'_, str> {
    path.replace('\\', "/").to_lowercase().into()
}

/// A path as a URI has it, before anything in it is escaped: `/C:/Users/ada`.
pub fn uri_path(path: &Path) -> Vec<u8> {
    let text = path.to_string_lossy().replace('\\', "/");
    let has_letter = text.as_bytes().get(1) == Some(&b':');
    if has_letter { format!("/{text}") } else { text }.into_bytes()
}

fn checked(is_done: i32) -> io::Result<()> {
    if is_done == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
