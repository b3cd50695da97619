//! Splits a large payload into fields without parsing the long strings in it.
//!
//! A parser stops at every escape, which in a megabyte of output is every line. The end of a string
//! is found from its quotation marks alone. The content of long strings is not checked here;
//! redaction reads it again.

use serde::de::IgnoredAny;

use super::FIELDS_MAX;
use claude_mem_privacy::end_of_string;

/// Smaller payloads, and values without a string of this length, are left to the parser.
const STRING_BYTES_MIN: usize = 256 << 10;

/// The fields of a large object. `None` if it is small or malformed; the parser gives better
/// errors.
pub(super) fn large_payload(text: &str) -> Option<Vec<(String, &str)>> {
    if text.len() < STRING_BYTES_MIN {
        return None;
    }
    let mut fields = Vec::new();
    let mut rest = text.trim_ascii().strip_prefix('{')?;
    loop {
        let quoted = rest.trim_ascii_start();
        let name_end = 2 + end_of_string(quoted.as_bytes().strip_prefix(b"\"")?)?;
        let name = serde_json::from_str(&quoted[..name_end]).ok()?;
        rest = quoted[name_end..].trim_ascii_start().strip_prefix(':')?.trim_ascii_start();
        let Value { end, is_long } = value(rest.as_bytes())?;
        let json = rest[..end].trim_ascii_end();
        if !is_long {
            serde_json::from_str::<IgnoredAny>(json).ok()?;
        }
        fields.push((name, json));
        rest = match rest.as_bytes()[end] {
            b',' if fields.len() < FIELDS_MAX => &rest[end + 1..],
            b'}' if rest.len() == end + 1 => return Some(fields),
            _ => return None,
        };
    }
}

struct Value {
    /// The offset of the comma or bracket after it.
    end: usize,
    /// It contains a long string.
    is_long: bool,
}

fn value(rest: &[u8]) -> Option<Value> {
    let mut open = Vec::new();
    let mut is_long = false;
    let mut at = 0;
    loop {
        match rest.get(at)? {
            b'"' => {
                let length = end_of_string(&rest[at + 1..])?;
                is_long |= length >= STRING_BYTES_MIN;
                at += length + 1;
            }
            b'{' => open.push(b'}'),
            b'[' => open.push(b']'),
            b',' | b'}' | b']' if open.is_empty() => return Some(Value { end: at, is_long }),
            closing @ (b'}' | b']') if open.pop() != Some(*closing) => return None,
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_object_is_split_into_its_fields() {
        let long = "a \\\"line\\\\\\n".repeat(STRING_BYTES_MIN / 8);
        let text = format!(
            " {{\"a\\\"\" : {{\"x\": [1, \"{long}\", {{}}], \"y\": \"}},\"}} , \
             \"b\":\"{long}\",\"c\": -1.5e3 }}\n"
        );
        let fields = large_payload(&text).unwrap();
        let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a\"", "b", "c"]);
        assert_eq!(fields[0].1, format!("{{\"x\": [1, \"{long}\", {{}}], \"y\": \"}},\"}}"));
        assert_eq!((fields[1].1, fields[2].1), (&*format!("\"{long}\""), "-1.5e3"));
    }

    #[test]
    fn a_malformed_object_is_left_to_the_parser() {
        let long = "x".repeat(STRING_BYTES_MIN);
        let whole = format!("{{\"a\":\"{long}\",\"b\":[1]}}");
        assert!(large_payload(&whole).is_some());
        for (from, to) in [
            ("[1]}", "[1]"),
            ("[1]", "[1}"),
            ("[1]", "[01]"),
            ("[1]", ""),
            ("\"b\"", "b"),
            ("{", ""),
            ("[1]}", "[1]}}"),
        ] {
            assert!(large_payload(&whole.replace(from, to)).is_none(), "{from} {to}");
        }
        assert!(large_payload(&whole[..whole.len() - 8]).is_none());
        assert!(large_payload("{}").is_none());
    }
}
