//! Finds the folder for an encoded directory name, in which every character except letters and
//! digits was replaced by a hyphen. The name does not show which hyphens were separators, but the
//! existing folders usually do.

use std::{
    fs,
    path::{Path, PathBuf},
};

use claude_mem_core::os::canonicalize;

/// A name with many hyphens can match many folders. The search stops at this number.
const LOOKED_INTO_MAX: usize = 500;

/// The folder below `root` that has this encoded path; `None` if there is none, or if there are
/// several.
pub(super) fn find(root: &Path, encoded: &str) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut open = vec![(root.to_owned(), encoded)];
    let mut looked_into = 0;
    while let Some((dir, rest)) = open.pop() {
        looked_into += 1;
        if looked_into > LOOKED_INTO_MAX {
            return None;
        }
        // An unreadable folder does not belong to the user.
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            let name = encode(&entry.file_name().to_string_lossy());
            let Some(below) = rest.strip_prefix(name.as_str()) else { continue };
            let path = entry.path();
            match below.strip_prefix('-') {
                _ if below.is_empty() && path.is_dir() => found.push(path),
                Some(below) if path.is_dir() => open.push((path, below)),
                _ => {}
            }
        }
    }
    let first = found.pop()?;
    let real = canonicalize(&first).ok();
    // A link leads to the same folder.
    found.iter().all(|other| canonicalize(other).ok() == real).then_some(first)
}

fn encode(name: &str) -> String {
    name.chars().map(|sign| if sign.is_ascii_alphanumeric() { sign } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_found_by_its_encoded_path_unless_two_have_it() {
        let dir = tempfile::tempdir().unwrap();
        let folder = |path: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(&path).unwrap();
            path
        };
        let app = folder("me/my.app");
        let hidden = folder("me/.config/zed_1");
        fs::write(dir.path().join("me/file"), "").unwrap();
        assert_eq!(find(dir.path(), "me-my-app"), Some(app));
        assert_eq!(find(dir.path(), "me--config-zed-1"), Some(hidden));
        for none in ["me-my", "me-file", "me-my-app-x", "", "-me"] {
            assert_eq!(find(dir.path(), none), None, "{none}");
        }
        folder("me/my/app");
        assert_eq!(find(dir.path(), "me-my-app"), None);
    }
}
