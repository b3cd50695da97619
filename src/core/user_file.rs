//! Reads and writes files at paths that the user chose.
//!
//! A chosen path can be anything: a file, a symbolic link, a device such as `/dev/null`, a FIFO.
//! Renaming a temporary file over it is right for a regular file only; over `/dev/null` it breaks
//! the whole machine. So every command that writes to such a path does it here:
//!
//! - a regular file, or a new one, is written to a temporary file next to it and renamed, so that a
//!   reader or a crash finds the old content or the new. Mode and owner of the old file are kept;
//! - of a symbolic link, the target is written; the link stays. A dangling link has its target
//!   created;
//! - a device, a pipe or a FIFO is written in place, as a shell redirection does;
//! - a read-only file is rejected, also for root.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read as _, Write},
    path::{Path, PathBuf},
};

use crate::os::{self, CreateOptionsExt as _, OpenOptionsExt as _};

/// No configuration file is larger. Some clients keep past prompts in it.
const READ_BYTES_MAX: u64 = 256 << 20;
/// The same limit as in Linux.
const LINKS_MAX: usize = 40;
/// More leftovers than this in one directory are not an accident.
const DRAFTS_MAX: u32 = 1000;

/// Who may read a new file. An existing file keeps its mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Its owner.
    Owner,
    /// Everyone.
    Everyone,
    /// Everyone, who may also run it.
    EveryoneRuns,
}

/// Writes the whole content, or leaves a regular file unchanged.
pub fn write(path: &Path, bytes: &[u8], readers: Readers) -> io::Result<()> {
    let mut out = UserFile::create(path, readers)?;
    out.write_all(bytes)?;
    out.commit()
}

/// As [`write()`], but only if the file still has the content that the new one was made from. Another
/// program may have written it meanwhile: then the error is [`io::ErrorKind::ResourceBusy`].
pub fn replace(
    path: &Path,
    original: Option<&[u8]>,
    bytes: &[u8],
    readers: Readers,
) -> io::Result<()> {
    let mut out = UserFile::create(path, readers)?;
    out.write_all(bytes)?;
    // Flushing takes milliseconds, so the content is compared after it.
    out.out.sync_all()?;
    let current = match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        other => Some(other?),
    };
    if current.as_deref() != original {
        let problem = "another program changed it at the same time";
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, problem));
    }
    out.commit()
}

/// Writes a new file for its owner only. Fails if it exists.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = follow(path)?.unwrap_or_else(|| path.into());
    let mut out = OpenOptions::new().write(true).create_new(true).owner_only().open(target)?;
    os::give_to_owner(&out)?;
    out.write_all(bytes)?;
    out.sync_all()
}

/// Reads a regular file to its end. Anything else is an error: a FIFO would block and a device may
/// never end.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_with_metadata(path).map(|(bytes, _)| bytes)
}

/// As [`read`], for text.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

/// As [`read`], with the file's metadata.
pub(crate) fn read_with_metadata(path: &Path) -> io::Result<(Vec<u8>, Metadata)> {
    let file = OpenOptions::new().read(true).no_wait().open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    if found.len() > READ_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 256 MB"));
    }
    let mut bytes = Vec::with_capacity(found.len() as usize);
    file.take(READ_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok((bytes, found))
}

/// Removes a file. Of a symbolic link the target is removed; the link stays.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(follow(path)?.unwrap_or_else(|| path.into())) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// An output that is being written. Dropped without [`commit`](Self::commit), a regular file stays
/// as it was.
#[derive(Debug)]
pub struct UserFile {
    out: File,
    /// The temporary file and the name it gets; `None` if the output is written in place.
    draft: Option<(PathBuf, PathBuf)>,
}

impl UserFile {
    /// Opens the output. A FIFO waits for its reader here.
    pub fn create(path: &Path, readers: Readers) -> io::Result<Self> {
        let in_place = |out| Self { out, draft: None };
        let existing = match fs::metadata(path) {
            Ok(found) if !found.is_file() && !found.is_dir() => {
                return Ok(in_place(OpenOptions::new().write(true).open(path)?));
            }
            Ok(found) => Some(found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let Some(target) = follow(path)? else {
            // `/dev/stdout` and similar: the file is already open, possibly for appending.
            return Ok(in_place(OpenOptions::new().append(true).open(path)?));
        };
        match &existing {
            Some(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Some(found) if found.permissions().readonly() || !os::may_write(&target) => {
                let problem =
                    "the file is read-only; allow writing first, for example with `chmod u+w`";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
            }
            _ => {}
        }
        let (out, draft) = create_draft(dir_of(&target))?;
        // From here on, dropping it removes the draft.
        let file = Self { out, draft: Some((draft.clone(), target)) };
        match (existing, readers) {
            (Some(found), _) => {
                os::copy_owner(&found, &file.out);
                file.out.set_permissions(found.permissions())?;
            }
            (None, Readers::Owner) => os::give_to_owner(&file.out)?,
            (None, readers) => os::open_to_all(&draft, readers == Readers::EveryoneRuns)?,
        }
        Ok(file)
    }

    /// Puts the written bytes in place.
    pub fn commit(mut self) -> io::Result<()> {
        let Some((draft, target)) = &self.draft else {
            return Ok(());
        };
        self.out.sync_all()?;
        os::rename(draft, target)?;
        let dir = dir_of(target).to_path_buf();
        self.draft = None;
        os::sync_dir(&dir)
    }
}

impl Write for UserFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for UserFile {
    fn drop(&mut self) {
        if let Some((draft, _)) = &self.draft {
            let _ = fs::remove_file(draft);
        }
    }
}

/// The path after all symbolic links of the last component are followed. It need not exist. `None`
/// for a link to an open file of a process, which has no path.
fn follow(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() => {}
            _ => return Ok(Some(path)),
        }
        let dir = dir_of(&path);
        if dir.ends_with("fd") && os::canonicalize(dir)?.starts_with("/proc") {
            return Ok(None);
        }
        path = dir.join(fs::read_link(&path)?);
    }
    Err(io::Error::other("there are too many symbolic links"))
}

fn dir_of(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if dir.as_os_str().is_empty() => Path::new("."),
        Some(dir) => dir,
        None => Path::new("/"),
    }
}

/// A new file, opened exclusively, so that a link under its name is not followed.
fn create_draft(dir: &Path) -> io::Result<(File, PathBuf)> {
    let mut number = 0;
    loop {
        let draft = dir.join(format!(".claude-mem-{}-{number}.tmp", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).owner_only().open(&draft) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < DRAFTS_MAX => {
                number += 1;
            }
            opened => return Ok((opened?, draft)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
        write(path, bytes, Readers::Owner)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_replaced_file_keeps_its_mode_and_the_links_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("dotfiles.json"), dir.path().join("settings.json"));
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("settings.2.json", &link).unwrap();
        symlink(&real, dir.path().join("settings.2.json")).unwrap();
        replace(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        assert_eq!(mode(&real), 0o640);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "no draft is left");
    }

    #[test]
    fn a_dangling_link_has_its_target_created_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        symlink("real", &link).unwrap();
        replace(&link, b"new").unwrap();
        assert_eq!((fs::read(&real).unwrap().as_slice(), mode(&real)), (b"new".as_slice(), 0o600));
        remove(&link).unwrap();
        assert!(!real.exists() && fs::symlink_metadata(&link).unwrap().is_symlink());
        symlink("loop", dir.path().join("loop")).unwrap();
        assert!(replace(&dir.path().join("loop"), b"new").is_err());
    }

    #[test]
    fn new_files_have_the_requested_mode() {
        let dir = tempfile::tempdir().unwrap();
        for (readers, expected) in
            [(Readers::Owner, 0o600), (Readers::Everyone, 0o644), (Readers::EveryoneRuns, 0o755)]
        {
            let file = dir.path().join(format!("{readers:?}"));
            write(&file, b"x", readers).unwrap();
            assert_eq!(mode(&file), expected, "{readers:?}");
        }
    }

    #[test]
    fn a_failed_replacement_leaves_the_old_file_and_no_draft() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        fs::create_dir_all(file.join("not empty")).unwrap();
        assert!(replace(&file, b"new").is_err());
        let abandoned = dir.path().join("abandoned");
        fs::write(&abandoned, "old").unwrap();
        let mut out = UserFile::create(&abandoned, Readers::Owner).unwrap();
        out.write_all(b"half").unwrap();
        drop(out);
        assert_eq!(fs::read_to_string(&abandoned).unwrap(), "old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_file_that_changed_since_it_was_read_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        fs::write(&file, "theirs").unwrap();
        for original in [None, Some(&b"old"[..])] {
            let error = super::replace(&file, original, b"new", Readers::Owner).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "theirs");
        super::replace(&file, Some(b"theirs"), b"new", Readers::Owner).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_read_only_file_is_rejected_even_for_root() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
        let error = replace(&file, b"new").unwrap_err();
        assert!(error.to_string().contains("read-only"), "{error}");
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), mode(&file)), ("old", 0o444));
    }

    #[test]
    fn only_regular_files_of_bounded_size_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let (fifo, huge) = (dir.path().join("fifo"), dir.path().join("huge"));
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
        File::create(&huge).unwrap().set_len(1 << 40).unwrap();
        for path in [&fifo, &huge, Path::new("/dev/zero"), dir.path()] {
            assert!(read(path).is_err(), "{}", path.display());
        }
    }
}
