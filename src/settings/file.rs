//! `settings.json` on disk: read with forgiveness, written whole.

use std::{
    fmt, fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

/// Why a settings file could not be used.
#[derive(Debug)]
pub(crate) struct Unusable {
    file: PathBuf,
    reason: String,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be used: {}", self.file.display(), self.reason)
    }
}

/// Reads one JSON object. A file that is not there is an empty one: asking costs one failed `open`.
/// Never changes the file, whatever is in it.
pub(crate) fn read_object(file: &Path) -> Result<Map<String, Value>, Unusable> {
    let unusable = |reason: String| Unusable { file: file.into(), reason };
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(error) => return Err(unusable(error.to_string())),
    };
    // Editors on Windows put a byte order mark in front, which JSON does not know.
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    if text.trim_ascii().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_slice(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(unusable("it is not a JSON object".into())),
        Err(error) => Err(unusable(format!("it is not valid JSON ({error})"))),
    }
}

/// The settings in such an object. Once they stood one level down, under `env`; those count where the top
/// level says nothing.
pub(super) fn flatten(mut object: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Object(nested)) = object.shift_remove("env") {
        for (key, value) in nested {
            object.entry(key).or_insert(value);
        }
    }
    object
}

/// A value as text: numbers and booleans are what their writer meant.
pub(super) fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Array(items) => {
            items.iter().map(as_text).collect::<Option<Vec<_>>>().map(|words| words.join(","))
        }
        Value::Null | Value::Object(_) => None,
    }
}

/// Replaces the file by this object, indented as people expect. See [`replace`].
pub(crate) fn write_object(file: &Path, object: &Map<String, Value>) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(object)?;
    text.push(b'\n');
    replace(file, &text)
}

/// Replaces a file so that a reader, or a crash, finds the old text or the new and nothing between. What a
/// symbolic link points to is replaced, not the link. Permissions are kept; a new file is its owner's.
pub(crate) fn replace(file: &Path, text: &[u8]) -> io::Result<()> {
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.into());
    let dir = file.parent().unwrap_or(Path::new("/"));
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let draft = dir.join(format!(".{name}.{}.tmp", std::process::id()));
    let written = write_draft(&draft, &file, text).and_then(|()| fs::rename(&draft, &file));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written?;
    fs::File::open(dir)?.sync_all()
}

fn write_draft(draft: &Path, file: &Path, text: &[u8]) -> io::Result<()> {
    let mut opened =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(draft)?;
    if let Ok(existing) = fs::metadata(file) {
        opened.set_permissions(existing.permissions())?;
    }
    opened.write_all(text)?;
    opened.sync_all()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_replaced_file_keeps_its_mode_and_the_link_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("dotfiles.json"), dir.path().join("settings.json"));
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&real, &link).unwrap();
        replace(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "no draft is left");
    }

    #[test]
    fn a_failed_replacement_leaves_the_old_file_and_no_draft() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        fs::create_dir_all(file.join("not empty")).unwrap();
        assert!(replace(&file, b"new").is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn key_order_survives_a_round_trip() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        fs::write(&file, "{\"z\":1,\"a\":{\"y\":1.0,\"b\":12345678901234567890}}").unwrap();
        let object = read_object(&file).unwrap();
        write_object(&file, &object).unwrap();
        let expected = "{\n  \"z\": 1,\n  \"a\": {\n    \"y\": 1.0,\n    \"b\": 12345678901234567890\n  }\n}\n";
        assert_eq!(fs::read_to_string(&file).unwrap(), expected);
    }
}
