//! Edits one member of another program's JSON file and keeps every other byte.
//!
//! Some programs allow comments in their files. They are kept, like white space and the format of
//! numbers (`json_text.rs`).

mod json_text;

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use crate::{
    os,
    user_file::{self, Readers},
};

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

/// The byte order mark that editors on Windows write.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Why a file could not be read or written.
#[derive(Debug)]
pub struct Unusable {
    file: PathBuf,
    reason: String,
}

impl Unusable {
    pub fn new(file: &Path, reason: impl fmt::Display) -> Self {
        Self { file: file.into(), reason: reason.to_string() }
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be used: {}", self.file.display(), self.reason)
    }
}

/// An object in a file, open for changes. [`save`](Self::save) writes it.
#[derive(Debug)]
pub struct Document {
    file: PathBuf,
    original: Option<String>,
    members: Map<String, Value>,
    /// The text with all changes, without a byte order mark.
    text: String,
    is_changed: bool,
}

impl Document {
    /// Reads the file. A missing or empty file is an empty object.
    pub fn open(file: &Path) -> Result<Self, Unusable> {
        let original = read(file)?;
        let text = original.as_deref().unwrap_or("\n").trim_start_matches(BYTE_ORDER_MARK);
        let text = match text.trim() {
            "" => format!("{{}}{}", if text.ends_with('\n') { "\n" } else { "" }),
            _ => text.to_owned(),
        };
        let members = match json_text::parse(&text) {
            Ok(Value::Object(members)) => members,
            Ok(_) => return Err(Unusable::new(file, "it is not a JSON object")),
            Err(error) => {
                return Err(Unusable::new(file, format_args!("it is not valid JSON ({error})")));
            }
        };
        Ok(Self { file: file.into(), original, members, text, is_changed: false })
    }

    /// Whether the file is standard JSON: without comments and trailing commas.
    pub fn is_plain(&self) -> bool {
        serde_json::from_str::<IgnoredAny>(&self.text).is_ok()
    }

    /// The path of the file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The file's text before any change; `None` if there was no file.
    pub fn original(&self) -> Option<&str> {
        self.original.as_deref()
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The names of its members.
    pub fn members(&self) -> Vec<&str> {
        self.members.keys().map(String::as_str).collect()
    }

    /// Whether saving would write anything.
    pub fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// A member's value, or null.
    pub fn get(&self, key: &str) -> Value {
        self.members.get(key).cloned().unwrap_or_default()
    }

    /// Changes a member where it differs, or appends it. Null removes it.
    pub fn set(&mut self, key: &str, value: &Value) {
        if self.get(key) == *value {
            return;
        }
        self.is_changed = true;
        self.text = json_text::set(&self.text, &self.members, key, value);
        if value.is_null() {
            self.members.shift_remove(key);
        } else {
            self.members.insert(key.into(), value.clone());
        }
    }

    /// The file's text as it would be written.
    pub fn text(&self) -> String {
        let has_mark = self.original.as_ref().is_some_and(|it| it.starts_with(BYTE_ORDER_MARK));
        format!("{}{}", if has_mark { BYTE_ORDER_MARK } else { "" }, self.text)
    }

    /// Replaces the file if anything changed. Creates its directory if necessary.
    pub fn save(&self) -> Result<(), Unusable> {
        if !self.is_changed {
            return Ok(());
        }
        let dir = self.file.parent().unwrap_or(Path::new("/"));
        os::create_dirs_for_all(dir)
            .and_then(|()| user_file::write(&self.file, self.text().as_bytes(), Readers::Owner))
            .map_err(|error| Unusable::new(&self.file, error))
    }
}

fn read(file: &Path) -> Result<Option<String>, Unusable> {
    match user_file::read(file) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|error| Unusable::new(file, error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Unusable::new(file, error)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn edited(before: &str, key: &str, value: &Value) -> String {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file.json");
        fs::write(&file, before).unwrap();
        let mut document = Document::open(&file).unwrap();
        document.set(key, value);
        document.save().unwrap();
        fs::read_to_string(&file).unwrap()
    }

    #[test]
    fn every_other_byte_stays() {
        let before =
            "{\n    \"z\": 1.10,\n    \"a\": { \"y\":12345678901234567890123 },\n    \"é\": []\n}";
        let after = "\
            {\n    \"z\": 1.10,\n    \"a\": { \"y\":12345678901234567890123 },\n    \
            \"é\": [],\n    \"new\": {\n        \"b\": 1\n    }\n}";
        assert_eq!(edited(before, "new", &json!({"b": 1})), after);
        assert_eq!(edited(after, "new", &Value::Null), before);
        assert_eq!(edited(before, "missing", &Value::Null), before);
    }

    #[test]
    fn a_file_keeps_its_format() {
        let cases = [
            ("{\"a\":1,\"b\":[1, 2]}", "{\"a\":3,\"b\":[1, 2]}"),
            ("{}", "{\n  \"a\": 3\n}"),
            ("", "{\n  \"a\": 3\n}"),
            ("\u{feff}{\n\t\"a\": 1\n}\n", "\u{feff}{\n\t\"a\": 3\n}\n"),
            ("{\"a\":1,\"a\":2}\n", "{\"a\":1,\"a\":3}\n"),
        ];
        for (before, after) in cases {
            assert_eq!(edited(before, "a", &json!(3)), after, "{before:?}");
        }
    }

    #[test]
    fn a_file_without_an_object_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file.json");
        for (text, reason) in [("[1]", "not a JSON object"), ("{\"a\": ", "not valid JSON")] {
            fs::write(&file, text).unwrap();
            let error = Document::open(&file).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        fs::write(&file, b"{\"\xff\": 1}").unwrap();
        assert!(Document::open(&file).is_err());
    }
}
