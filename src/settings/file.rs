//! `settings.json`, read with forgiveness.

use std::{io, path::Path};

use serde_json::{Map, Value};

use crate::{document::Unusable, user_file};

/// Reads one JSON object. A file that is not there is an empty one: asking costs one failed `open`.
/// Never changes the file, whatever is in it.
pub(super) fn read_object(file: &Path) -> Result<Map<String, Value>, Unusable> {
    let bytes = match user_file::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(error) => return Err(Unusable::new(file, error)),
    };
    // Editors on Windows put a byte order mark in front, which JSON does not know.
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    if text.trim_ascii().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_slice(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Unusable::new(file, "it is not a JSON object")),
        Err(error) => Err(Unusable::new(file, format_args!("it is not valid JSON ({error})"))),
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
