//! Values in payloads and transcripts, in the forms that most clients use.

use serde_json::Value;

/// The text of a string; empty for anything else.
pub(super) fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The items of a list; none for anything else.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The texts of a message's parts, joined by line breaks.
pub(super) fn joined(parts: &[Value]) -> String {
    let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    texts.join("\n")
}
