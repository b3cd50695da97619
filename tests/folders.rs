//! Folders in tests: the files below one, those that contain a text, and copies.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// All regular files below a folder, sorted; none if it does not exist.
pub(crate) fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().map(Result::unwrap) {
        match entry.path() {
            path if path.is_dir() => found.extend(files_below(&path)),
            path if path.is_file() => found.push(path),
            _ => {}
        }
    }
    found.sort();
    found
}

/// The files below a folder that contain a text.
pub(crate) fn files_with(dir: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = files_below(dir);
    // A worker may delete a file meanwhile.
    found.retain(|path| contains(&fs::read(path).unwrap_or_default(), text));
    found
}

pub(crate) fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Copies all regular files of a folder, with its subfolders.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    for path in files_below(from) {
        let target = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(&path, target).unwrap();
    }
}
