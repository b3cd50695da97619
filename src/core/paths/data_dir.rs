//! Access to the data directory: its owner alone.
//!
//! Everything we create is private because of the process's umask ([`os::make_files_private`]).
//! That leaves two cases, checked here with one `stat`: a directory of another user is rejected,
//! and an existing directory with wider modes, as the TypeScript claude-mem leaves it, is tightened
//! once.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use super::Paths;
use crate::os;

/// Entries of the data directory that are ours alone.
pub const OURS: &[&str] = &[
    "bin",
    "log",
    "foreign",
    "memory.db",
    "memory.db-wal",
    "memory.db-shm",
    "memory.db.rebuild",
    "memory.db.new",
    "memory.db.new-fts",
    "memory.db.lock",
    "prompts",
    "modes",
    "worker.lock",
    "worker.json",
    "worker.port",
    "worker.sock",
    "worker.wake",
    "worker.attempts",
    "ask.lock",
    "injection.lock",
    "private",
    "answers",
    "failures",
    "starts",
    "dropped-events",
    "dropped-events.d",
    "observer-sessions",
    "logs",
    "backups",
    "install.json",
    "ship.key",
    "ship.json",
    "ship.lock",
    "restoring",
    "settings.good",
    "viewer.html",
    "vectors",
];
/// Ours as well, unless the TypeScript claude-mem shares them.
pub const SHARED: &[&str] = &["settings.json", ".env"];
/// The database of the TypeScript claude-mem, by which its data directory is known.
pub const UPSTREAM_DATABASE: &str = "claude-mem.db";

/// The data directory belongs to another user.
#[derive(Debug, PartialEq, Eq)]
pub struct OtherOwner {
    pub dir: PathBuf,
    pub owner: u32,
    pub user: u32,
}

impl fmt::Display for OtherOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dir, owner, user } = self;
        write!(f, "{} belongs to user {owner}, and you are user {user}", dir.display())
    }
}

/// Rejects a directory of another user, and tightens the modes of one that others can enter. A
/// missing directory is accepted.
#[inline]
pub fn check(paths: &Paths) -> Result<(), OtherOwner> {
    let Ok((owner, is_open)) = os::owner_and_openness(&paths.data) else { return Ok(()) };
    let user = os::user();
    if owner != user {
        return Err(OtherOwner { dir: paths.data.clone(), owner, user });
    }
    if is_open {
        // What cannot be changed, as on a FAT disk, is reported by `doctor`.
        let _ = tighten(paths);
    }
    Ok(())
}

/// Removes all access of others from the directory and from our files in it. The directory comes
/// last: if the process is killed halfway, the next one finds it open and starts again.
///
/// A directory that contains other files keeps its mode: it may be `/srv` or a home directory, and
/// closing that would lock out other users and services. Our files in it are private anyway.
pub fn tighten(paths: &Paths) -> io::Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(&paths.data)? {
        names.push(entry?.file_name());
    }
    let is_ours = |name: &std::ffi::OsString| {
        name.to_str().is_some_and(|name| {
            OURS.contains(&name) || SHARED.contains(&name) || name.starts_with("memory.db.broken-")
        })
    };
    let is_dedicated = names.iter().all(is_ours)
        || names.iter().any(|name| name == UPSTREAM_DATABASE)
        || paths.home.as_ref().is_some_and(|home| paths.data == home.join(".claude-mem"));
    for name in &names {
        let path = paths.data.join(name);
        match is_ours(name) {
            true => tighten_tree(&path)?,
            false if is_dedicated => tighten_one(&path).map(|_| ())?,
            false => {}
        }
    }
    if is_dedicated {
        os::close_to_others(&paths.data)?;
    }
    Ok(())
}

fn tighten_tree(path: &Path) -> io::Result<()> {
    if !tighten_one(path)? {
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        tighten_tree(&entry?.path())?;
    }
    Ok(())
}

/// Tightens one file or directory, and returns whether it is a directory. Skips links.
fn tighten_one(path: &Path) -> io::Result<bool> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        // Another process has just removed the file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if !found.is_symlink() && os::is_open_to_others(&found) {
        os::close_to_others(path)?;
        if fs::symlink_metadata(path).is_ok_and(|found| os::is_open_to_others(&found)) {
            return Err(io::Error::other("this file system ignores permissions"));
        }
    }
    Ok(found.is_dir())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    fn with(names: &[&str]) -> (tempfile::TempDir, Paths) {
        let outer = tempfile::tempdir().unwrap();
        let paths = Paths { home: None, data: outer.path().join("data") };
        fs::create_dir(&paths.data).unwrap();
        for name in names {
            let file = paths.data.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "x").unwrap();
            for path in file.ancestors().take_while(|path| path.starts_with(&paths.data)) {
                let mode = if path == file { 0o644 } else { 0o755 };
                fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
        (outer, paths)
    }

    #[test]
    fn a_directory_of_ours_is_closed_with_everything_in_it() {
        for names in [
            &["memory.db", "log/spill/1", "settings.json"][..],
            &["claude-mem.db", "worker.pid", "memory.db"],
        ] {
            let (_outer, paths) = with(names);
            check(&paths).unwrap();
            assert_eq!(mode(&paths.data), 0o700);
            for name in names {
                assert_eq!(mode(&paths.data.join(name)), 0o600, "{name}");
            }
        }
    }

    #[test]
    fn a_directory_with_other_things_in_it_keeps_its_mode_and_ours_are_closed() {
        let (_outer, paths) = with(&["memory.db", "log/active.log", "public_html/index.html"]);
        check(&paths).unwrap();
        let of = |name: &str| mode(&paths.data.join(name));
        assert_eq!((mode(&paths.data), of("public_html/index.html")), (0o755, 0o644));
        assert_eq!((of("memory.db"), of("log"), of("log/active.log")), (0o600, 0o700, 0o600));
    }

    #[test]
    fn links_and_what_they_point_to_stay_as_they_are() {
        let (outer, paths) = with(&["memory.db"]);
        let outside = outer.path().join("outside");
        fs::write(&outside, "x").unwrap();
        fs::set_permissions(&outside, fs::Permissions::from_mode(0o644)).unwrap();
        symlink(&outside, paths.data.join("settings.json")).unwrap();
        check(&paths).unwrap();
        assert_eq!((mode(&outside), mode(&paths.data)), (0o644, 0o700));
    }
}
