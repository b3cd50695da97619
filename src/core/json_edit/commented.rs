//! Changes one member of a JSON text that has comments or a comma after its last member.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Value, value::RawValue};
use std::{fmt, ops::Range};

/// The text with blanks in place of comments and of commas before a closing bracket. Every other
/// byte stays where it is.
pub(super) fn blanked(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = bytes.to_vec();
    let mut comma = None;
    let mut at = 0;
    while at < bytes.len() {
        let end = match (bytes[at], bytes.get(at + 1)) {
            (b'"', _) => {
                comma = None;
                end_of_string(bytes, at)
            }
            (b'/', Some(b'/')) => find(bytes, at, b"\n").unwrap_or(bytes.len()),
            (b'/', Some(b'*')) => find(bytes, at + 2, b"*/").map_or(bytes.len(), |end| end + 2),
            _ => at + 1,
        };
        match bytes[at] {
            b'/' if end > at + 1 => {
                for byte in &mut plain[at..end] {
                    if !byte.is_ascii_whitespace() {
                        *byte = b' ';
                    }
                }
            }
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    plain[comma] = b' ';
                }
            }
            byte if !byte.is_ascii_whitespace() => comma = None,
            _ => {}
        }
        at = end;
    }
    String::from_utf8(plain).unwrap_or_else(|_| text.to_owned())
}

fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

fn find(bytes: &[u8], start: usize, wanted: &[u8]) -> Option<usize> {
    let rest = bytes.get(start..)?;
    rest.windows(wanted.len()).position(|part| part == wanted).map(|at| start + at)
}

/// The text with this member set; removed without a value. A new member comes last.
pub(super) fn set(text: &str, key: &str, value: Option<&str>, indent: Option<&str>) -> String {
    let plain = blanked(text);
    let Ok(Spans(members)) = serde_json::from_str::<Spans<'_>>(&plain) else {
        return text.to_owned();
    };
    let place = |raw: &RawValue| -> Range<usize> {
        let start = raw.get().as_ptr() as usize - plain.as_ptr() as usize;
        start..start + raw.get().len()
    };
    let values: Vec<Range<usize>> = members.iter().map(|(_, raw)| place(raw)).collect();
    let known = members.iter().rposition(|(name, _)| name == key);
    let spliced = |range: Range<usize>, new: &str| {
        format!("{}{new}{}", &text[..range.start], &text[range.end..])
    };
    match (known, value) {
        (Some(at), Some(value)) => spliced(values[at].clone(), value),
        (None, None) => text.to_owned(),
        (None, Some(value)) => {
            let line = indent.map_or_else(String::new, |indent| format!("\n{indent}"));
            let member = format!("{line}{}: {value}", Value::from(key));
            let open = || plain.find('{').map_or(0, |at| at + 1);
            let (at, comma) = values.last().map_or_else(|| (open(), ""), |last| (last.end, ","));
            spliced(at..at, &format!("{comma}{member}"))
        }
        // With the comma before it, or the one after it.
        (Some(0), None) => {
            let start = plain.find('{').map_or(0, |at| at + 1);
            let end = values[0].end;
            let comma = plain[end..].find(',').filter(|_| values.len() > 1);
            spliced(start..comma.map_or(end, |comma| end + comma + 1), "")
        }
        (Some(at), None) => spliced(values[at - 1].end..values[at].end, ""),
    }
}

/// The members of an object, with their values where they are in the text.
struct Spans<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Spans<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Spans<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Spans<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Spans(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "{\n  // mine: \"é\", {\n  \"a\": \"// no\", /* keep */\n  \"b\": [1, 2,],\n}\n";

    #[test]
    fn comments_stay_when_a_member_comes_changes_and_goes() {
        let added = set(TEXT, "new", Some("{\"x\": 1}"), Some("  "));
        let expected = TEXT.replace("[1, 2,],", "[1, 2,],\n  \"new\": {\"x\": 1},");
        assert_eq!(added, expected);
        assert_eq!(set(&added, "new", None, Some("  ")), TEXT);
        let changed = set(TEXT, "a", Some("7"), Some("  "));
        assert_eq!(changed, TEXT.replace("\"// no\"", "7"));
        assert!(set(TEXT, "a", None, Some("  ")).contains("/* keep */"));
        assert_eq!(set("{} // empty", "a", Some("1"), None), "{\"a\": 1} // empty");
    }

    #[test]
    fn blanked_text_is_json_of_the_same_length() {
        let plain = blanked(TEXT);
        assert_eq!(plain.len(), TEXT.len());
        let value: Value = serde_json::from_str(&plain).unwrap();
        assert_eq!(value, serde_json::json!({"a": "// no", "b": [1, 2]}));
        for odd in ["", "/", "/*", "//", "\"", "\"\\", "{\"a\": 1, /", ",}"] {
            assert_eq!(blanked(odd).len(), odd.len());
            set(odd, "a", Some("1"), None);
        }
    }
}
