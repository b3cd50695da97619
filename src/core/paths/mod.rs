//! Paths of the data directory and of the user's home.

pub mod data_dir;

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use crate::{
    environment::Environment,
    os::{self, CreateOptionsExt as _},
};

/// The directories of one user. They are created on the first write.
#[derive(Debug, Clone)]
pub struct Paths {
    /// `~`, if known.
    pub home: Option<PathBuf>,
    /// `~/.claude-mem`, or `CLAUDE_MEM_DATA_DIR`.
    pub data: PathBuf,
}

/// No data directory: `HOME` is unknown.
#[derive(Debug, PartialEq, Eq)]
pub struct NoHome;

impl fmt::Display for NoHome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(os::NO_HOME)
    }
}

impl Paths {
    /// Finds the directories. Reads nothing from disk unless `HOME` is missing.
    pub fn find(environment: &Environment) -> Result<Self, NoHome> {
        let home = os::home(environment);
        let data = match (environment.get("CLAUDE_MEM_DATA_DIR"), &home) {
            (Some(chosen), home) => expand_tilde(Path::new(&chosen), home.as_deref()),
            (None, Some(home)) => home.join(".claude-mem"),
            (None, None) => return Err(NoHome),
        };
        Ok(Self { home, data })
    }

    /// The log's segments.
    pub fn log(&self) -> PathBuf {
        self.data.join("log")
    }

    /// The database.
    pub fn memory(&self) -> PathBuf {
        self.data.join("memory.db")
    }

    /// Copies of other hosts' logs.
    pub fn foreign(&self) -> PathBuf {
        self.data.join("foreign")
    }

    /// The settings file.
    pub fn settings(&self) -> PathBuf {
        self.data.join("settings.json")
    }

    /// Secrets, kept apart from the settings, so that those can be shared.
    pub fn credentials(&self) -> PathBuf {
        self.data.join(".env")
    }

    /// A page that redirects a browser to the viewer. It contains a login link, so only its owner
    /// may read it.
    pub fn viewer_page(&self) -> PathBuf {
        self.data.join("viewer.html")
    }

    /// The public keys of browsers that may open the viewer without a new link.
    pub fn viewer_browsers(&self) -> PathBuf {
        self.data.join("browsers.json")
    }

    /// The encryption key of uploads, if any.
    pub fn ship_key(&self) -> PathBuf {
        self.data.join("ship.key")
    }

    /// The state of shipping.
    pub fn ship_state(&self) -> PathBuf {
        self.data.join("ship.json")
    }

    /// The lock file of shipping.
    pub fn ship_lock(&self) -> PathBuf {
        self.data.join("ship.lock")
    }

    /// Creates the data directory, private to this user, or checks an existing one.
    pub fn create_data(&self) -> io::Result<()> {
        create_private(&self.data)?;
        data_dir::check(self)
            .map_err(|refused| io::Error::new(io::ErrorKind::PermissionDenied, refused.to_string()))
    }
}

/// Creates a directory and its parents, for this user only.
pub fn create_private(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).owner_only().create(dir)
}

/// Replaces a leading `~` by the home directory, as a shell does.
pub fn expand_tilde(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_path_buf(),
    }
}

/// The path as users write it: `~` for their home directory.
pub fn with_tilde(path: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) => Path::new("~").join(rest).display().to_string(),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_directory_is_in_the_home_directory_unless_set() {
        let home = Environment::fixed(&[("HOME", "/home/ada")]);
        assert_eq!(Paths::find(&home).unwrap().data, Path::new("/home/ada/.claude-mem"));
        let environment =
            Environment::fixed(&[("HOME", "/home/ada"), ("CLAUDE_MEM_DATA_DIR", "~/elsewhere")]);
        assert_eq!(Paths::find(&environment).unwrap().data, Path::new("/home/ada/elsewhere"));
    }

    #[test]
    fn a_new_data_directory_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let outer = tempfile::tempdir().unwrap();
        let paths = Paths { home: None, data: outer.path().join("a/b") };
        paths.create_data().unwrap();
        paths.create_data().unwrap();
        assert_eq!(fs::metadata(&paths.data).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
