//! `install.json`: the files and entries that were written, so that uninstalling removes exactly
//! those.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use claude_mem_core::{
    json_edit::{Document, Unusable},
    os,
    paths::{Paths, create_private},
    user_file::{self, Readers, remove},
};

/// All changes by `claude-mem install` that are not undone yet.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// The binary that hooks call.
    pub program: String,
    /// Time of the installation, in UTC.
    pub installed_at: String,
    /// Files of others that contain our entries.
    pub edited: Vec<Edited>,
    /// Files that we own.
    pub written: Vec<OwnedFile>,
    /// Folders created for those files, parents first.
    pub folders: Vec<PathBuf>,
}

/// A file of another owner that we edited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Edited {
    /// The file.
    pub file: PathBuf,
    /// Copy of the original; `None` if the file did not exist.
    pub backup: Option<PathBuf>,
    /// Hash after our edit. If it still matches, the backup can be restored byte for byte.
    pub sha256: String,
}

/// A file that we own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OwnedFile {
    /// The file.
    pub file: PathBuf,
    /// Hash of what we wrote. If it differs, the user has changed the file and owns it now.
    pub sha256: String,
}

/// A changed file of another owner, not yet written.
#[derive(Debug, Clone)]
pub struct TextChange {
    pub file: PathBuf,
    /// `None` if there was no file.
    pub original: Option<String>,
    pub text: String,
}

impl TextChange {
    /// Reads a file; a missing one is empty.
    pub fn open(file: &Path) -> Result<Self, Unusable> {
        let original = match user_file::read_to_string(file) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Unusable::new(file, error)),
        };
        let text = original.clone().unwrap_or_default();
        Ok(Self { file: file.into(), original, text })
    }

    pub fn is_changed(&self) -> bool {
        self.original.as_ref() != Some(&self.text)
    }

    /// Replaces the file. Creates its directory if necessary.
    pub fn save(&self) -> Result<(), Unusable> {
        let dir = self.file.parent().unwrap_or(Path::new("/"));
        let original = self.original.as_ref().map(String::as_bytes);
        os::create_dirs_for_all(dir)
            .and_then(|()| {
                user_file::replace(&self.file, original, self.text.as_bytes(), Readers::Owner)
            })
            .map_err(|error| Unusable::not_replaced(&self.file, &error))
    }
}

impl From<&Document> for TextChange {
    fn from(document: &Document) -> Self {
        let original = document.original().map(str::to_owned);
        let text = match (document.is_changed(), &original) {
            (false, Some(original)) => original.clone(),
            _ => document.text(),
        };
        Self { file: document.file().into(), original, text }
    }
}

impl Manifest {
    /// Path of the manifest.
    pub fn file(paths: &Paths) -> PathBuf {
        paths.data.join("install.json")
    }

    /// Reads the manifest; empty if nothing is installed.
    pub fn load(paths: &Paths) -> Result<Self, Unusable> {
        let file = Self::file(paths);
        match user_file::read(&file) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).map_err(|error| Unusable::new(&file, error))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(Unusable::new(&file, error)),
        }
    }

    /// Writes the manifest; removes the file once there is nothing to undo.
    pub fn save(&self, paths: &Paths) -> Result<(), Unusable> {
        let file = Self::file(paths);
        let is_empty = self.edited.is_empty() && self.written.is_empty() && self.folders.is_empty();
        let saved = if is_empty {
            remove(&file)
        } else {
            let mut text = serde_json::to_vec_pretty(self).expect("a manifest is plain data");
            text.push(b'\n');
            paths.create_data().and_then(|()| user_file::write(&file, &text, Readers::Owner))
        };
        saved.map_err(|error| Unusable::new(&file, error))
    }

    /// Saves a changed file of another owner, and records how to undo it. The manifest is written
    /// first, then the backup, then the file: after a crash, the manifest may list too much, but
    /// never too little.
    pub fn edit(
        &mut self,
        paths: &Paths,
        change: &TextChange,
        stamp: &str,
    ) -> Result<(), Unusable> {
        if !change.is_changed() {
            return Ok(());
        }
        let known = self.edited.iter().position(|edited| edited.file == change.file);
        let is_untouched = |edited: &Edited| {
            change.original.as_ref().is_some_and(|text| hash(text.as_bytes()) == edited.sha256)
        };
        // The file was changed since: the old backup would undo that change, too.
        let backup = match known.map(|at| self.edited.remove(at)) {
            Some(edited) if is_untouched(&edited) => edited.backup,
            _ => backed_up(paths, change, stamp)?,
        };
        let sha256 = hash(change.text.as_bytes());
        self.edited.push(Edited { file: change.file.clone(), backup, sha256 });
        self.note_folders(&change.file);
        self.save(paths)?;
        change.save()
    }

    /// Writes a file of ours, unless a file of another owner exists. Returns whether it is ours
    /// now.
    pub fn write(
        &mut self,
        paths: &Paths,
        file: &Path,
        text: &str,
        readers: Readers,
    ) -> Result<bool, Unusable> {
        let known = self.written.iter().position(|written| written.file == file);
        let current = match user_file::read(file) {
            Ok(bytes) => Some(hash(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(_) => return Ok(false),
        };
        let is_ours = match (&current, known) {
            (None, _) => true,
            (Some(current), Some(at)) => *current == self.written[at].sha256,
            (Some(current), None) => *current == hash(text.as_bytes()),
        };
        if !is_ours {
            return Ok(false);
        }
        known.map(|at| self.written.remove(at));
        self.written.push(OwnedFile { file: file.into(), sha256: hash(text.as_bytes()) });
        self.note_folders(file);
        self.save(paths)?;
        let written = os::create_dirs_for_all(file.parent().unwrap_or(file))
            .and_then(|()| user_file::write(file, text.as_bytes(), readers));
        written.map_err(|error| Unusable::new(file, error)).map(|()| true)
    }

    /// Records the folders that writing this file creates.
    fn note_folders(&mut self, file: &Path) {
        let missing = file.ancestors().skip(1).take_while(|dir| !dir.exists());
        let missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        let new = missing.into_iter().rev().filter(|dir| !self.folders.contains(dir));
        self.folders.extend(new.collect::<Vec<_>>());
    }

    /// Removes created folders that are empty.
    pub fn remove_folders(&mut self) {
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
        self.folders.retain(|folder| folder.exists());
    }
}

impl Edited {
    /// Restores the backup if the file is unchanged since. Returns whether it did.
    pub fn restore(&self) -> io::Result<bool> {
        let current = user_file::read(&self.file).ok();
        let Some(current) = current.filter(|bytes| hash(bytes) == self.sha256) else {
            return Ok(false);
        };
        let Some(backup) = &self.backup else { return remove(&self.file).map(|()| true) };
        let Ok(bytes) = user_file::read(backup) else { return Ok(false) };
        match user_file::replace(&self.file, Some(&current), &bytes, Readers::Owner) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Ok(false),
            other => other.map(|()| true),
        }
    }
}

impl OwnedFile {
    /// Removes the file if it is unchanged since. Returns whether it did.
    pub fn remove(&self) -> io::Result<bool> {
        match user_file::read(&self.file) {
            Ok(bytes) if hash(&bytes) == self.sha256 => remove(&self.file).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            _ => Ok(false),
        }
    }
}

fn backed_up(paths: &Paths, change: &TextChange, stamp: &str) -> Result<Option<PathBuf>, Unusable> {
    let Some(text) = &change.original else { return Ok(None) };
    let dir = paths.data.join("backups");
    let name = |path: Option<&OsStr>| {
        let name = path.unwrap_or_default().to_string_lossy();
        name.trim_start_matches('.').to_owned()
    };
    // Files of several clients have the same name.
    let folder = name(change.file.parent().and_then(Path::file_name));
    let backup = dir.join(format!("{stamp}-{folder}-{}", name(change.file.file_name())));
    create_private(&dir)
        .and_then(|()| user_file::write(&backup, text.as_bytes(), Readers::Owner))
        .map_err(|error| Unusable::new(&backup, error))?;
    Ok(Some(backup))
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
