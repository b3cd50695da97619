//! Reads `settings.json` leniently.

use std::{fs::Metadata, io, path::Path};

use serde_json::{Map, Value};

use super::Kind;
use crate::{json_edit::Unusable, user_file};

/// Reads the file; `None` if it is missing, which costs one failed `open`.
pub(super) fn read(file: &Path) -> Result<Option<(Vec<u8>, Metadata)>, Unusable> {
    match user_file::read_with_metadata(file) {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Unusable::new(file, error)),
    }
}

/// The settings in the text of the file. Older files have them one level down, under `env`; those
/// are used if the top level lacks them.
pub(super) fn parse(file: &Path, bytes: &[u8]) -> Result<Map<String, Value>, Unusable> {
    // Editors on Windows add a byte order mark, which is not valid JSON.
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if text.trim_ascii().is_empty() {
        // Unlike `{}`, an empty file is an error: an interrupted save leaves one.
        return Err(Unusable::new(file, "it is empty"));
    }
    let mut object = match serde_json::from_slice(text) {
        Ok(Value::Object(object)) => object,
        Ok(_) => return Err(Unusable::new(file, "it is not a JSON object")),
        Err(error) => {
            return Err(Unusable::new(file, format_args!("it is not valid JSON ({error})")));
        }
    };
    match object.shift_remove("env") {
        None | Some(Value::Null) => {}
        Some(Value::Object(nested)) => {
            for (key, value) in nested {
                object.entry(key).or_insert(value);
            }
        }
        Some(_) => return Err(Unusable::new(file, "`env` is not a JSON object")),
    }
    Ok(object)
}

/// A value as text: numbers and booleans are accepted, but not in a list of names. `None` if the
/// type does not fit the setting.
pub(super) fn as_text(value: &Value, kind: Kind) -> Option<String> {
    match (value, kind) {
        (Value::String(text), _) => Some(text.clone()),
        (Value::Number(number), kind) if kind != Kind::List => Some(number.to_string()),
        (Value::Bool(flag), kind) if kind != Kind::List => Some(flag.to_string()),
        (Value::Array(items), Kind::List) => {
            // Joined by commas, an item with a comma would become two.
            let word = |item| as_text(item, kind).filter(|word| !word.contains(','));
            let words = items.iter().map(word);
            words.collect::<Option<Vec<_>>>().map(|words| words.join(","))
        }
        _ => None,
    }
}
