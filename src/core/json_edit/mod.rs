//! Edits one member of another program's JSON file and keeps every other byte.
//!
//! A parser would not write numbers and the order of keys back as they were. So only the outermost
//! object is parsed; its members stay text. In a file with comments, which some programs allow, the
//! text itself is changed (`commented.rs`).

mod commented;

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use crate::{
    os,
    user_file::{self, Readers},
};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

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
    members: Vec<(String, Box<RawValue>)>,
    indent: Option<String>,
    /// The text with all changes, if it has comments.
    commented: Option<String>,
    is_changed: bool,
}

impl Document {
    /// Reads the file. A missing or empty file is an empty object.
    pub fn open(file: &Path) -> Result<Self, Unusable> {
        let original = read(file)?;
        let text = original.as_deref().unwrap_or_default().trim_start_matches(BYTE_ORDER_MARK);
        let mut commented = None;
        let members = match parse(file, text) {
            _ if text.trim().is_empty() => Vec::new(),
            Ok(members) => members,
            Err(error) => {
                commented = Some(text.to_owned());
                parse(file, &commented::blanked(text)).map_err(|_| error)?
            }
        };
        let indent = indent(text);
        Ok(Self { file: file.into(), original, members, indent, commented, is_changed: false })
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
        self.members.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Whether saving would write anything.
    pub fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// A member's value, or null.
    pub fn get(&self, key: &str) -> Value {
        let found = self.members.iter().rfind(|(name, _)| name == key);
        found.and_then(|(_, raw)| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    /// Replaces a member in place, or appends it. Null removes it.
    pub fn set(&mut self, key: &str, value: &Value) {
        if self.get(key) == *value {
            return;
        }
        self.is_changed = true;
        if let Some(text) = self.commented.take() {
            let rendered = (!value.is_null()).then(|| self.rendered(value));
            let rendered = rendered.as_deref().map(RawValue::get);
            let indent = self.indent.as_deref();
            self.commented = Some(commented::set(&text, key, rendered, indent));
        }
        if value.is_null() {
            self.members.retain(|(name, _)| name != key);
            return;
        }
        let raw = self.rendered(value);
        match self.members.iter_mut().rfind(|(name, _)| name == key) {
            Some((_, existing)) => *existing = raw,
            None => self.members.push((key.into(), raw)),
        }
    }

    /// The file's text as it would be written.
    pub fn text(&self) -> String {
        let (before, between, colon, after) = match &self.indent {
            Some(indent) => (format!("\n{indent}"), format!(",\n{indent}"), ": ", "\n"),
            None => (String::new(), ",".into(), ":", ""),
        };
        let members: Vec<String> = self
            .members
            .iter()
            .map(|(key, raw)| format!("{}{colon}{}", Value::from(key.as_str()), raw.get()))
            .collect();
        let original = self.original.as_deref().unwrap_or("\n");
        let mark = if original.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK } else { "" };
        if let Some(text) = &self.commented {
            return format!("{mark}{text}");
        }
        let end = if original.ends_with('\n') { "\n" } else { "" };
        if members.is_empty() {
            return format!("{mark}{{}}{end}");
        }
        format!("{mark}{{{before}{}{after}}}{end}", members.join(&between))
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

    /// Indents a value like the members of the file.
    fn rendered(&self, value: &Value) -> Box<RawValue> {
        let text = match &self.indent {
            None => value.to_string(),
            Some(indent) => pretty(value, indent).replace('\n', &format!("\n{indent}")),
        };
        RawValue::from_string(text)
            .unwrap_or_else(|_| to_raw_value(value).expect("a JSON value is valid JSON"))
    }
}

fn read(file: &Path) -> Result<Option<String>, Unusable> {
    match user_file::read(file) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|error| Unusable::new(file, error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Unusable::new(file, error)),
    }
}

fn parse(file: &Path, text: &str) -> Result<Vec<(String, Box<RawValue>)>, Unusable> {
    match serde_json::from_str::<Members>(text) {
        Ok(Members(members)) => Ok(members),
        Err(_) if serde_json::from_str::<Value>(text).is_ok() => {
            Err(Unusable::new(file, "it is not a JSON object"))
        }
        Err(error) => Err(Unusable::new(file, format_args!("it is not valid JSON ({error})"))),
    }
}

/// The white space before the first member; `None` for a file written on one line.
fn indent(text: &str) -> Option<String> {
    let text = text.trim();
    let Some(inside) = text.strip_prefix('{') else { return Some("  ".into()) };
    let first = inside.trim_start_matches(['\r', ' ']).strip_prefix('\n');
    match first {
        Some(line) => {
            let white = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
            Some(if white.is_empty() { "  ".into() } else { white.into() })
        }
        None if text == "{}" => Some("  ".into()),
        None => None,
    }
}

fn pretty(value: &Value, indent: &str) -> String {
    let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    serde::Serialize::serialize(value, &mut serializer).expect("a JSON value can be written");
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

/// The members of an object in their order.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
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
        let after = "{\n    \"z\": 1.10,\n    \"a\": { \"y\":12345678901234567890123 },\n    \"é\": [],\n    \
                     \"new\": {\n        \"b\": 1\n    }\n}";
        assert_eq!(edited(before, "new", &json!({"b": 1})), after);
        assert_eq!(edited(after, "new", &Value::Null), before);
        assert_eq!(edited(before, "missing", &Value::Null), before);
    }

    #[test]
    fn a_file_keeps_its_manner() {
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
    fn what_is_no_object_is_refused() {
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
