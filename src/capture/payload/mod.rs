//! A hook's payload: one JSON object, as sent by a client.
//!
//! Values stay unparsed until they are needed: a megabyte of tool output is scanned once and copied
//! once. No value is rejected for having the wrong type, because a newer client's data may be worth
//! keeping.

mod large_payload;

use std::{borrow::Cow, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::{error::Category, value::RawValue};

use claude_mem_privacy::read_string;

/// The fields of one payload that have not been taken yet.
#[derive(Debug, Clone, Default)]
pub struct Payload<'a> {
    /// Names, and values as JSON.
    fields: Vec<(String, &'a str)>,
}

/// Why an input is not one JSON object.
#[derive(Debug)]
pub(super) struct Malformed {
    /// The error.
    pub(super) error: String,
    /// The end is missing, so the last word may be the first half of a secret.
    pub(super) is_truncated: bool,
}

impl Malformed {
    pub(super) fn new(error: impl Into<String>) -> Self {
        Self { error: error.into(), is_truncated: false }
    }
}

impl From<&serde_json::Error> for Malformed {
    /// Uses our own text: the parser's message may quote the payload, which may be private.
    fn from(error: &serde_json::Error) -> Self {
        let what = match error.classify() {
            Category::Eof => "it ends too early",
            Category::Syntax | Category::Io => "it is not JSON",
            Category::Data => "it is not a JSON object that hooks accept",
        };
        let error_at = format!("{what} (line {}, column {})", error.line(), error.column());
        Self { error: error_at, is_truncated: error.is_eof() }
    }
}

impl<'a> Payload<'a> {
    /// Reads one object. If it is damaged, the fields before the damage are kept.
    pub(super) fn read(text: &'a str) -> (Self, Option<Malformed>) {
        if let Some(fields) = large_payload::large_payload(text) {
            return (Self { fields }, None);
        }
        let mut payload = Self::default();
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let read = Fields(&mut payload.fields)
            .deserialize(&mut deserializer)
            .and_then(|()| deserializer.end());
        (payload, read.err().as_ref().map(Malformed::from))
    }

    /// Takes a field as JSON. `null` counts as absent.
    pub fn take(&mut self, name: &str) -> Option<&'a str> {
        let at = self.fields.iter().position(|(known, _)| known == name)?;
        let (_, value) = self.fields.remove(at);
        Some(value).filter(|json| *json != "null")
    }

    /// Takes a field as text: the content of a string, or any other value as JSON.
    pub fn take_text(&mut self, name: &str) -> Option<Cow<'a, str>> {
        self.take(name).map(text)
    }

    /// Takes a field as text; empty if it is absent.
    pub fn text(&mut self, name: &str) -> Cow<'a, str> {
        self.take_text(name).unwrap_or_default()
    }

    /// Takes a field as JSON; empty if it is absent.
    pub fn json(&mut self, name: &str) -> Cow<'a, str> {
        self.take(name).map_or(Cow::Borrowed(""), Cow::Borrowed)
    }

    /// Whether a field of this name exists, even if it is null.
    pub fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(known, _)| known == name)
    }

    /// Takes the fields of an object; none if the value is not an object.
    #[must_use]
    pub fn take_object(&mut self, name: &str) -> Self {
        self.take(name).map(|json| Self::read(json).0).unwrap_or_default()
    }

    /// Returns a field as JSON without taking it.
    pub fn peek(&self, name: &str) -> Option<&'a str> {
        let (_, value) = self.fields.iter().find(|(known, _)| known == name)?;
        Some(*value).filter(|json| *json != "null")
    }

    /// Returns a field as text without taking it.
    pub fn peek_text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.peek(name).map(text)
    }

    /// Takes a flag; false if it is absent.
    pub fn take_flag(&mut self, name: &str) -> bool {
        self.take(name) == Some("true")
    }

    /// Takes an integer.
    pub fn take_number(&mut self, name: &str) -> Option<u64> {
        self.take(name)?.parse().ok()
    }

    /// The number of elements of a list, without taking it.
    pub fn count(&self, name: &str) -> usize {
        let found = self.fields.iter().find(|(known, _)| known == name);
        let elements = found
            .and_then(|(_, value)| serde_json::from_str::<Vec<serde::de::IgnoredAny>>(value).ok());
        elements.map_or(0, |elements| elements.len())
    }

    /// The fields that were not taken, as one JSON object; empty if there are none.
    pub(super) fn rest(self) -> String {
        if self.fields.is_empty() {
            return String::new();
        }
        let mut object = String::from("{");
        for (name, value) in self.fields {
            if object.len() > 1 {
                object.push(',');
            }
            object.push_str(&serde_json::Value::String(name).to_string());
            object.push(':');
            object.push_str(value);
        }
        object.push('}');
        object
    }
}

/// The content of a JSON string; any other JSON as it is written. Unpaired surrogates, which JSON
/// allows and Unicode does not, are replaced.
pub fn text(json: &str) -> Cow<'_, str> {
    if !json.starts_with('"') {
        return Cow::Borrowed(json);
    }
    let mut unescaped = String::new();
    match read_string(json, 1, &mut unescaped) {
        None => Cow::Borrowed(json),
        Some(read) if read.escaped => Cow::Owned(unescaped),
        Some(read) => Cow::Borrowed(&json[1..read.end - 1]),
    }
}

/// The input of a tool, as JSON. Programs other than the client may give it as a JSON string.
pub(crate) fn tool_input(json: Cow<'_, str>) -> Cow<'_, str> {
    if !json.starts_with('"') {
        return json;
    }
    let given = text(&json);
    let is_json = given.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<serde::de::IgnoredAny>(&given).is_ok();
    if is_json { Cow::Owned(given.into_owned()) } else { json }
}

struct Fields<'f, 'a>(&'f mut Vec<(String, &'a str)>);

impl<'a> DeserializeSeed<'a> for Fields<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for Fields<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
            // An object of a million fields is not a payload, and taking fields out of it would
            // take a minute.
            if self.0.len() >= FIELDS_MAX {
                return Err(A::Error::custom("too many fields"));
            }
            self.0.push((name, value.get()));
        }
        Ok(())
    }
}

/// Clients send one or two dozen.
pub(super) const FIELDS_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_fields_are_removed_and_the_rest_is_unchanged() {
        let text = r#"{"b": {"x":  1}, "session_id": "s", "a\"": [ 1.50 ], "none": null}"#;
        let (mut payload, malformed) = Payload::read(text);
        assert!(malformed.is_none());
        assert_eq!(payload.take_text("session_id").as_deref(), Some("s"));
        assert_eq!(payload.take_text("session_id"), None);
        assert_eq!(payload.take("none"), None);
        let mut rest: Vec<String> = payload.fields.iter().map(|(name, _)| name.clone()).collect();
        rest.sort();
        assert_eq!(rest, ["a\"", "b"]);
        let rest = payload.rest();
        assert!(rest.contains(r#""b":{"x":  1}"#) && rest.contains(r#""a\"":[ 1.50 ]"#), "{rest}");
    }

    #[test]
    fn fields_before_the_error_are_parsed() {
        let (mut payload, malformed) =
            Payload::read(r#"{"session_id":"s","cwd":"/p","prompt":"ab"#);
        let malformed = malformed.expect("it has no end");
        assert!(malformed.is_truncated, "{malformed:?}");
        assert_eq!(payload.take_text("session_id").as_deref(), Some("s"));
        for text in ["", "[]", "[{}]", "\"x\"", "{\"a\":\u{0}}", "{} {}", "{1:2}"] {
            assert!(Payload::read(text).1.is_some(), "{text}");
        }
    }

    #[test]
    fn an_error_quotes_nothing_of_the_input() {
        for (text, expected) in [
            ("\"hunter2\"", "it is not a JSON object that hooks accept (line 1, column 9)"),
            ("{\"a\":hunter2}", "it is not JSON (line 1, column 6)"),
            ("{\"a\":\"hunter2", "it ends too early (line 1, column 13)"),
        ] {
            let (_, malformed) = Payload::read(text);
            assert_eq!(malformed.expect("it is no object").error, expected);
        }
    }

    #[test]
    fn other_types_are_text_and_unpaired_surrogates_are_replaced() {
        let cases = [
            (r#""plain""#, "plain"),
            (r#""a\n\u00e4\ud834\udd1e""#, "a\nä𝄞"),
            ("5", "5"),
            (r#"{"a":1}"#, r#"{"a":1}"#),
        ];
        for (json, expected) in cases {
            assert_eq!(text(json), expected);
        }
        let repaired = text(r#""x\ud834y""#);
        assert!(
            repaired.starts_with('x') && repaired.ends_with('y') && repaired.contains('\u{fffd}')
        );
    }

    #[test]
    fn deeply_nested_json_does_not_overflow_the_stack() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
        let (payload, malformed) = Payload::read(&deep);
        assert!(malformed.is_none());
        assert_eq!(payload.rest(), deep);
    }

    #[test]
    fn elements_are_counted_without_taking_the_list() {
        let (payload, _) = Payload::read(r#"{"tasks":[{"a":[1,2]},{}],"odd":{}}"#);
        assert_eq!(
            (payload.count("tasks"), payload.count("odd"), payload.count("none")),
            (2, 0, 0)
        );
    }
}
