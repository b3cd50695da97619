//! `install.json`: what was written where, so that exactly that can be taken out again.

use std::{
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

/// Everything `claude-mem install` did and did not yet undo.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// The binary that hooks call.
    pub program: String,
    /// When, in UTC.
    pub installed_at: String,
    /// Files of others with something of ours in them.
    pub edited: Vec<Edited>,
    /// Files that are ours alone.
    pub written: Vec<Written>,
    /// Folders that were made for those files, a parent before its children.
    pub folders: Vec<PathBuf>,
}

/// A file of somebody else's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Edited {
    /// Which.
    pub file: PathBuf,
    /// What it was before; `None` if there was no such file.
    pub backup: Option<PathBuf>,
    /// Its hash after we wrote it. If it is still that, the backup can be put back byte for byte.
    pub sha256: String,
}

/// A file of ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Written {
    /// Which.
    pub file: PathBuf,
    /// Its hash. If it is no longer that, it became the user's.
    pub sha256: String,
}

impl Manifest {
    /// Where it is kept.
    pub fn file(paths: &Paths) -> PathBuf {
        paths.data.join("install.json")
    }

    /// What is installed; nothing, if nothing was.
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

    /// Keeps it; removes the file once there is nothing left to undo.
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

    /// Saves a changed document and remembers how to undo that. The backup is on disk before the file is
    /// touched, and the manifest knows of it before either: a crash in between leaves only too much to undo.
    pub fn edit(
        &mut self,
        paths: &Paths,
        document: &Document,
        stamp: &str,
    ) -> Result<(), Unusable> {
        if !document.is_changed() {
            return Ok(());
        }
        let known = self.edited.iter().position(|edited| edited.file == document.file());
        let is_untouched = |edited: &Edited| {
            document.original().is_some_and(|text| hash(text.as_bytes()) == edited.sha256)
        };
        // Somebody changed the file since: the old backup would undo their work too.
        let backup = match known.map(|at| self.edited.remove(at)) {
            Some(edited) if is_untouched(&edited) => edited.backup,
            _ => backed_up(paths, document, stamp)?,
        };
        let sha256 = hash(document.text().as_bytes());
        self.edited.push(Edited { file: document.file().into(), backup, sha256 });
        self.note_folders(document.file());
        self.save(paths)?;
        document.save()
    }

    /// Writes a file of ours, unless somebody else's is in its place. Says whether it is ours now.
    pub fn write(&mut self, paths: &Paths, file: &Path, text: &str) -> Result<bool, Unusable> {
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
        self.written.push(Written { file: file.into(), sha256: hash(text.as_bytes()) });
        self.note_folders(file);
        self.save(paths)?;
        let written = os::create_dirs_for_all(file.parent().unwrap_or(file))
            .and_then(|()| user_file::write(file, text.as_bytes(), Readers::Owner));
        written.map_err(|error| Unusable::new(file, error)).map(|()| true)
    }

    /// Notes the folders that writing this file will make.
    fn note_folders(&mut self, file: &Path) {
        let missing = file.ancestors().skip(1).take_while(|dir| !dir.exists());
        let missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        let new = missing.into_iter().rev().filter(|dir| !self.folders.contains(dir));
        self.folders.extend(new.collect::<Vec<_>>());
    }

    /// Removes the folders that were made and are empty. One with something in it is the user's now.
    pub fn remove_folders(&mut self) {
        for folder in self.folders.drain(..).rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

impl Edited {
    /// Puts the backup back if nobody touched the file since. Says whether that was possible.
    pub fn restore(&self) -> io::Result<bool> {
        if !user_file::read(&self.file).is_ok_and(|bytes| hash(&bytes) == self.sha256) {
            return Ok(false);
        }
        match &self.backup {
            None => remove(&self.file).map(|()| true),
            Some(backup) => match fs::read(backup) {
                Ok(bytes) => user_file::write(&self.file, &bytes, Readers::Owner).map(|()| true),
                Err(_) => Ok(false),
            },
        }
    }
}

impl Written {
    /// Removes the file if nobody touched it since. Says whether it is gone.
    pub fn remove(&self) -> io::Result<bool> {
        match user_file::read(&self.file) {
            Ok(bytes) if hash(&bytes) == self.sha256 => remove(&self.file).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            _ => Ok(false),
        }
    }
}

fn backed_up(paths: &Paths, document: &Document, stamp: &str) -> Result<Option<PathBuf>, Unusable> {
    let Some(text) = document.original() else { return Ok(None) };
    let dir = paths.data.join("backups");
    let name = document.file().file_name().unwrap_or_default().to_string_lossy();
    let backup = dir.join(format!("{stamp}-{}", name.trim_start_matches('.')));
    create_private(&dir)
        .and_then(|()| user_file::write(&backup, text.as_bytes(), Readers::Owner))
        .map_err(|error| Unusable::new(&backup, error))?;
    Ok(Some(backup))
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
