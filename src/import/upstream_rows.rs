//! Converts a row of the TypeScript claude-mem for storage.

use claude_mem_projections::UpstreamRow;
use jiff::Timestamp;
use serde_json::{Map, Value};

use claude_mem_privacy::{Policy, redact_json, redact_text};

/// Columns that are dropped: internal ones, and the one that may contain private text.
const DROPPED: [&str; 9] = [
    "id",
    "user_prompt",
    "worker_port",
    "prompt_counter",
    "synced_at",
    "origin_device_id",
    "origin_local_id",
    "sync_rev",
    "content_hash",
];
/// Columns with lists, in several formats.
const LISTS: [&str; 5] = ["facts", "concepts", "files_read", "files_modified", "files_edited"];
/// Columns with JSON.
const JSON: [&str; 3] = ["tool_input", "tool_response", "metadata"];

/// A column as text; empty if it is missing.
pub(super) fn text<'a>(row: &'a UpstreamRow, name: &str) -> &'a str {
    row.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A column of any type, as text.
pub(super) fn written(row: &UpstreamRow, name: &str) -> String {
    match row.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// The time in microseconds, from the number or else from the text. Very old numbers are seconds.
pub(super) fn time_us(row: &UpstreamRow, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| {
        let number = row.get(&format!("{name}_epoch")).and_then(Value::as_u64);
        let by_number = number.filter(|number| *number > 0).and_then(|number| match number {
            seconds if seconds < 100_000_000_000 => seconds.checked_mul(1_000_000),
            millis => millis.checked_mul(1000),
        });
        by_number.or_else(|| parsed(text(row, name))).filter(|time_us| *time_us < TIME_US_MAX)
    })
}

/// The year 3000: later values are not seconds.
const TIME_US_MAX: u64 = 32_503_680_000_000_000;

/// ISO 8601, or the format of SQLite.
fn parsed(text: &str) -> Option<u64> {
    let time: Timestamp =
        text.parse().or_else(|_| format!("{}Z", text.replace(' ', "T")).parse()).ok()?;
    u64::try_from(time.as_microsecond()).ok()
}

/// The row without private text, secrets and dropped columns.
pub(super) fn redacted_row(row: &UpstreamRow, policy: Policy) -> Map<String, Value> {
    let mut taken = 0;
    let mut kept = Map::new();
    for (name, value) in row {
        if DROPPED.contains(&name.as_str()) || value.is_null() {
            continue;
        }
        let policy = policy.after(taken);
        let value = match value {
            value if LISTS.contains(&name.as_str()) => list(value, policy),
            Value::String(text) if JSON.contains(&name.as_str()) => {
                Value::String(redact_json(text, policy))
            }
            Value::String(text) => Value::String(redact_text(text, policy).unless_private()),
            Value::Number(_) | Value::Bool(_) => value.clone(),
            other => Value::String(redact_json(&other.to_string(), policy)),
        };
        taken += value.as_str().map_or(16, str::len);
        kept.insert(name.clone(), value);
    }
    kept
}

/// Converts a list, a list as JSON text, a JSON string or plain text to a list.
fn list(value: &Value, policy: Policy) -> Value {
    let items = match value {
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Array(items)) => items,
            Ok(Value::String(text)) => vec![Value::String(text)],
            _ => vec![Value::String(text.clone())],
        },
        Value::Array(items) => items.clone(),
        _ => Vec::new(),
    };
    let mut taken = 0;
    let clean = |item: &Value| {
        let text = redact_text(item.as_str()?, policy.after(taken)).unless_private();
        taken += text.len();
        (!text.trim().is_empty()).then_some(Value::String(text))
    };
    Value::Array(items.iter().filter_map(clean).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(value: &Value) -> UpstreamRow {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn times_are_seconds_or_milliseconds_or_text() {
        let cases = [
            (json!({"created_at_epoch": 1_700_000_000}), Some(1_700_000_000_000_000)),
            (json!({"created_at_epoch": 1_700_000_000_123_u64}), Some(1_700_000_000_123_000)),
            (json!({"created_at": "2023-11-14T22:13:20.000Z"}), Some(1_700_000_000_000_000)),
            (json!({"created_at": "2023-11-14 22:13:20"}), Some(1_700_000_000_000_000)),
            (json!({"created_at_epoch": 0, "created_at": "soon"}), None),
            (json!({"created_at_epoch": u64::MAX}), None),
            (json!({}), None),
        ];
        for (columns, expected) in cases {
            assert_eq!(time_us(&row(&columns), &["created_at"]), expected, "{columns}");
        }
    }

    #[test]
    fn lists_are_lists_however_they_were_written_and_nothing_private_is_kept() {
        let found = redacted_row(
            &row(&json!({
                "id": 7,
                "facts": "[\"one\", \"<private>x</private>\", 3]",
                "files_read": "src/a.rs",
                "concepts": "\"how-it-works\"",
                "narrative": "a <private>walrus</private> b",
                "user_prompt": "walrus",
                "tool_input": "{\"a\": \"<private>walrus</private>\"}",
                "discovery_tokens": 5,
            })),
            Policy::default(),
        );
        let expected = json!({
            "facts": ["one"],
            "files_read": ["src/a.rs"],
            "concepts": ["how-it-works"],
            "narrative": "a [redacted:private] b",
            "tool_input": "{\"a\": \"[redacted:private]\"}",
            "discovery_tokens": 5,
        });
        assert_eq!(Value::Object(found), expected);
    }
}
