//! Edits one member of another program's JSON file. Comments, white space and the format of numbers
//! stay elsewhere.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use crate::{
    os,
    user_file::{self, Readers},
};

use jsonc_parser::{
    ParseOptions,
    cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode},
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
    is_busy: bool,
}

impl Unusable {
    pub fn new(file: &Path, reason: impl fmt::Display) -> Self {
        Self { file: file.into(), reason: reason.to_string(), is_busy: false }
    }

    /// The file could not be replaced.
    pub fn not_replaced(file: &Path, error: &io::Error) -> Self {
        let is_busy = error.kind() == io::ErrorKind::ResourceBusy;
        Self { is_busy, ..Self::new(file, error) }
    }

    /// Another program changed the file at the same time: another attempt may succeed.
    pub fn is_busy(&self) -> bool {
        self.is_busy
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
        let members = match parse(&text) {
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
        let mut members = self.members.clone();
        if value.is_null() {
            members.shift_remove(key);
        } else {
            members.insert(key.into(), value.clone());
        }
        self.text = edited(&self.text, &self.members, &members);
        self.members = members;
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
        let original = self.original.as_ref().map(String::as_bytes);
        let text = self.text();
        os::create_dirs_for_all(dir)
            .and_then(|()| {
                user_file::replace(&self.file, original, text.as_bytes(), Readers::Owner)
            })
            .map_err(|error| Unusable::not_replaced(&self.file, &error))
    }
}

fn read(file: &Path) -> Result<Option<String>, Unusable> {
    match user_file::read(file) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|error| Unusable::new(file, error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Unusable::new(file, error)),
    }
}

/// The value of a text that can contain comments and trailing commas.
fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).or_else(|error| {
        let root = CstRootNode::parse(text, &options()).map_err(|_| error.to_string())?;
        root.to_serde_value().ok_or_else(|| error.to_string())
    })
}

/// JSON with comments and trailing commas, and nothing else that is lenient.
fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// The text with the members `new` in place of `old`.
fn edited(text: &str, old: &Map<String, Value>, new: &Map<String, Value>) -> String {
    let root = CstRootNode::parse(text, &options()).ok();
    let object = root.as_ref().and_then(CstRootNode::object_value);
    if let (Some(root), Some(object)) = (root, object) {
        update_object(&object, old, new);
        let edited = root.to_string();
        if parse(&edited).is_ok_and(|value| value.as_object() == Some(new)) {
            return edited;
        }
    }
    // Nested members of the same name: the value contains only the last one.
    format!("{:#}\n", Value::Object(new.clone()))
}

fn update_object(object: &CstObject, old: &Map<String, Value>, new: &Map<String, Value>) {
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        while let Some(property) = property(object, name) {
            property.remove();
        }
    }
    for (name, value) in new {
        match (old.get(name), property(object, name)) {
            (Some(old), _) if old == value => {}
            (Some(old), Some(property)) => {
                if !property.value().is_some_and(|node| update_inside(&node, old, value)) {
                    property.set_value(input(value));
                }
            }
            _ => {
                object.append(name, input(value));
            }
        }
    }
}

/// Of members with the same name, the last one counts.
fn property(object: &CstObject, name: &str) -> Option<CstObjectProp> {
    let is_named = |it: &CstObjectProp| it.decoded_name().as_deref() == Some(name);
    object.properties().into_iter().rfind(is_named)
}

/// Changes only what differs inside of an object or array; false for other values.
fn update_inside(node: &CstNode, old: &Value, new: &Value) -> bool {
    match (node.as_object(), node.as_array(), old, new) {
        (Some(object), _, Value::Object(old), Value::Object(new)) => {
            update_object(&object, old, new);
        }
        (_, Some(array), Value::Array(old), Value::Array(new)) => update_items(&array, old, new),
        _ => return false,
    }
    true
}

/// Items that stay keep their position. An unwanted item is removed if the next wanted one comes
/// later or if there are too many; otherwise it is replaced by the wanted one.
fn update_items(array: &CstArray, old: &[Value], new: &[Value]) {
    let mut kept = 0;
    for (at, item) in old.iter().enumerate() {
        let (rest, wanted) = (&old[at + 1..], &new[kept..]);
        let Some(node) = array.elements().into_iter().nth(kept) else { return };
        let next = wanted.first().filter(|next| {
            wanted.contains(item) || rest.len() < wanted.len() && !rest.contains(next)
        });
        match next {
            None => node.remove(),
            Some(next) => {
                if item != next && !update_inside(&node, item, next) {
                    node.remove();
                    array.insert(kept, input(next));
                }
                kept += 1;
            }
        }
    }
    for item in &new[kept..] {
        array.append(input(item));
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.clone(), input(value)));
            CstInputValue::Object(members.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn changed(before: &str, key: &str, value: &Value) -> String {
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
        assert_eq!(changed(before, "new", &json!({"b": 1})), after);
        assert_eq!(changed(after, "new", &Value::Null), before);
        assert_eq!(changed(before, "missing", &Value::Null), before);
    }

    #[test]
    fn a_file_keeps_its_format() {
        let cases = [
            ("{\"a\":1,\"b\":[1, 2]}", "{\"a\":3,\"b\":[1, 2]}"),
            ("{}", "{\n  \"a\": 3\n}"),
            ("", "{\n  \"a\": 3\n}"),
            ("\u{feff}{\n\t\"a\": 1\n}\n", "\u{feff}{\n\t\"a\": 3\n}\n"),
            ("{\"a\":1,\"a\":1}\n", "{\"a\":1,\"a\":3}\n"),
            ("{\r\n\t\"b\": 1.50\r\n}", "{\r\n\t\"b\": 1.50,\r\n\t\"a\": 3\r\n}"),
        ];
        for (before, after) in cases {
            assert_eq!(changed(before, "a", &json!(3)), after, "{before:?}");
        }
    }

    #[test]
    fn comments_stay_when_members_and_items_come_and_go() {
        let before = "{\n  // mine: \"é\", {\n  \"a\": \"// no\", /* keep */\n  \"hooks\": { // all\n    \
            \"Stop\": [{ \"x\": 1.0 }], // two\n  }, // hooks\n}\n";
        assert_eq!(changed(before, "a", &json!(7)), before.replace("\"// no\"", "7"));
        let hooks = json!({"Stop": [{"x": 1.0}, {"y": 2}], "New": [4]});
        let added = changed(before, "hooks", &hooks);
        for value in [hooks, json!({"Stop": [{"y": 2}]}), json!({}), Value::Null] {
            let after = changed(&added, "hooks", &value);
            assert!(after.contains("// mine: ") && after.contains("/* keep */"), "{after}");
            assert!(value.is_null() || after.contains("// all"), "{after}");
            assert_eq!(parse(&after).unwrap()["hooks"], value, "{after}");
        }
    }

    #[test]
    fn every_value_that_is_set_is_read_back() {
        let values = [
            json!(1),
            json!({}),
            json!([]),
            json!({"a": {"b": [1, {"c": null}]}, "d": "x\n\"y\""}),
            json!({"a": {"b": [{"c": null}]}}),
            json!([[1], [2], {"a": 1}]),
            json!([[2], {"a": 2}, [1]]),
        ];
        let texts = [
            "{}",
            "{ }\n",
            "{ // none\n}",
            "{\n}",
            "{\"k\":1}",
            "{ \"k\" : {\"a\":{}}, }",
            "{ // c\n \"k\": [1, // d\n 2 // e\n ] /* f\n g */ }",
            "{ \"z\": 1 // c\n, \"k\": 2, \"y\": 3 // d\n}",
            "{\"k\": 1, \"k\": 2}",
        ];
        for text in texts {
            for (first, second) in
                values.iter().flat_map(|it| values.iter().map(move |to| (it, to)))
            {
                let mut text = text.to_owned();
                for value in [first, second, &Value::Null, first] {
                    let Value::Object(old) = parse(&text).unwrap() else { panic!("{text}") };
                    let mut new = old.clone();
                    new.insert("k".into(), value.clone());
                    text = edited(&text, &old, &new);
                    assert_eq!(parse(&text).unwrap()["k"], *value, "{text}");
                }
            }
        }
        for odd in ["/", "/*", "//", "\"", "\"\\", "{\"a\": 1, /", ",}", "{a: 1}", "{'a': 1}"] {
            assert!(parse(odd).is_err(), "{odd}");
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
