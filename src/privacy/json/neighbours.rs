//! Redacts neighboring strings of a JSON array as one text.
//!
//! A client sends a diff as an array of lines, and a tool responds with several text blocks. A
//! `<private>` or a key may start in one string and end in another. Arrays of arguments and headers
//! have the name in one string and the secret in the next.

use crate::{
    json::{name_of, scalar_length},
    json_strings::{end_of_string, unescape},
    redact_secrets,
    secrets::{self, Found, Scan},
    tags, work,
};

/// The maximum depth of text in an array element. Each byte is skipped once for every enclosing
/// array within this depth.
const DEPTH_MAX: usize = 4;

/// Headers whose value is a secret, anywhere in an array.
const HEADERS: [&str; 5] =
    ["authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"];

/// Consecutive strings of one array, with no other array between them.
pub(super) struct Neighbours<'a> {
    /// The start and the raw content of each.
    strings: Vec<(usize, &'a str)>,
    /// Whether they are elements, as opposed to the texts of blocks.
    are_elements: bool,
    /// Whether they are all elements of the array.
    is_whole_list: bool,
    /// The offset up to which the array was read.
    pub(super) end: usize,
}

impl<'a> Neighbours<'a> {
    /// The strings of the array from `start` on. Invalid JSON ends them; the caller handles it.
    pub(super) fn gather(raw: &'a str, start: usize, is_list_start: bool) -> Self {
        let mut found =
            Self { strings: Vec::new(), are_elements: true, is_whole_list: false, end: start };
        let mut at = start;
        while let Some(end) = found.element(raw, skip_blanks(raw, at)) {
            found.end = end;
            at = skip_blanks(raw, end);
            if raw.as_bytes().get(at) != Some(&b',') {
                found.is_whole_list = is_list_start && raw.as_bytes().get(at) == Some(&b']');
                break;
            }
            at += 1;
        }
        work::count(found.end - start + 1);
        found
    }

    /// Reads the element at `at`, and returns its end; `None` if it is an array or too deep.
    fn element(&mut self, raw: &'a str, at: usize) -> Option<usize> {
        match raw.as_bytes().get(at)? {
            b'"' => {
                let string = string_at(raw, at)?;
                self.strings.push((at, string));
                Some(at + string.len() + 2)
            }
            b'{' => self.block(raw, at),
            _ => Some(at + scalar_length(&raw.as_bytes()[at..])?),
        }
    }

    /// Reads the text of the object at `start`, and skips everything else.
    fn block(&mut self, raw: &'a str, start: usize) -> Option<usize> {
        let (mut at, mut depth) = (start, 0);
        let (mut name, mut is_value) = ("", false);
        loop {
            match raw.as_bytes().get(at)? {
                b'"' => {
                    let string = string_at(raw, at)?;
                    match (is_value, depth, name) {
                        (false, ..) => name = string,
                        (true, 1, "text") => {
                            self.strings.push((at, string));
                            self.are_elements = false;
                        }
                        _ => {}
                    }
                    at += string.len() + 1;
                }
                b'{' | b'[' if depth == DEPTH_MAX => {
                    work::count(at - start);
                    return None;
                }
                b'{' | b'[' => (depth, is_value) = (depth + 1, false),
                b'}' | b']' if depth == 1 => return Some(at + 1),
                b'}' | b']' => depth -= 1,
                b':' => is_value = true,
                b',' => is_value = false,
                _ => {}
            }
            at += 1;
        }
    }

    /// Replacements for strings that change, by offset. Empty if the work limit is reached: then
    /// none of the strings is written.
    pub(super) fn clean(self, redact: bool) -> Vec<(usize, String)> {
        let may_matter = |(_, string): &(usize, &str)| may_matter(string.as_bytes(), redact);
        let is_command = redact && self.are_elements && is_command(&self.strings);
        let matters = is_command || self.strings.iter().any(may_matter);
        if self.strings.len() < 2 || !matters {
            return Vec::new();
        }
        let joint = if is_command { ' ' } else { '\n' };
        let Some(joined) = Joined::of(&self.strings, joint) else { return Vec::new() };
        let before = joined.parts();
        let mut after = joined.clean(redact);
        if redact && self.are_elements {
            for (pair, text) in before.windows(2).zip(&mut after[1..]) {
                self.redact_named(&pair[0], text);
            }
        }
        if work::is_over() {
            return Vec::new();
        }
        let changed = before.iter().zip(after).zip(&self.strings);
        changed
            .filter(|((before, after), _)| *before != after)
            .map(|((_, after), (at, _))| (*at, after))
            .collect()
    }

    /// Redacts a string that follows the name of a secret: an option, a header, or the first of two
    /// strings.
    fn redact_named(&self, before: &str, text: &mut String) {
        let is_header = HEADERS.iter().any(|header| before.eq_ignore_ascii_case(header));
        let is_pair = self.strings.len() == 2 && self.is_whole_list;
        if text.starts_with('-') || !(before.starts_with('-') || is_header || is_pair) {
            return;
        }
        let name = name_of(before.as_bytes());
        if let Some(hidden) =
            name.and_then(|name| redact_secrets(text, Some(name), true, usize::MAX))
        {
            *text = hidden;
        }
    }
}

/// Whether a raw string may contain something that continues in the next one.
fn may_matter(raw: &[u8], redact: bool) -> bool {
    memchr::memchr(b'<', raw).is_some()
        || memchr::memmem::find(raw, b"u00").is_some()
        || redact && secrets::may_hold(raw)
}

/// The texts of several strings, joined.
struct Joined {
    text: String,
    /// The start of each.
    starts: Vec<usize>,
    /// The separator.
    joint: char,
}

impl Joined {
    /// `None` if one of the strings is invalid.
    fn of(strings: &[(usize, &str)], joint: char) -> Option<Self> {
        let (mut text, mut starts) = (String::new(), Vec::with_capacity(strings.len()));
        for (_, string) in strings {
            if !starts.is_empty() {
                text.push(joint);
            }
            starts.push(text.len());
            unescape(string, &mut text)?;
        }
        Some(Self { text, starts, joint })
    }

    fn parts(&self) -> Vec<String> {
        let ends = self.starts.iter().copied().skip(1).chain([self.text.len()]).enumerate();
        let parts = self.starts.iter().zip(ends).map(|(start, (number, end))| {
            let part = &self.text[*start..end];
            let is_last = number + 1 == self.starts.len();
            let without = part.strip_suffix(self.joint).filter(|_| !is_last);
            without.unwrap_or(part).to_owned()
        });
        parts.collect()
    }

    fn clean(self, redact: bool) -> Vec<String> {
        let Self { text, mut starts, joint } = self;
        let (mut text, _) = tags::strip_joined(text, &mut starts);
        if redact {
            text = redacted(&text, &mut starts);
        }
        Self { text, starts, joint }.parts()
    }
}

/// Replaces the secrets of the joined text and updates `starts`.
fn redacted(text: &str, starts: &mut [usize]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut starts = starts.iter_mut().peekable();
    let mut at = 0;
    let mut scan = Scan::new(text.as_bytes());
    loop {
        let found = scan.next();
        let to = found.map_or(text.len(), |found| found.start);
        while let Some(start) = starts.next_if(|start| **start <= to) {
            *start = out.len() + start.saturating_sub(at);
        }
        out.push_str(&text[at..to]);
        let Some(Found { end, rule, .. }) = found else { return out };
        out.extend(["[redacted:", rule, "]"]);
        at = end;
    }
}

/// Whether the strings are a command and its arguments, not the lines of a diff: some are options,
/// and none starts like a line of a diff or has several lines.
fn is_command(strings: &[(usize, &str)]) -> bool {
    let is_option = |(_, string): &(usize, &str)| string.starts_with('-');
    let is_line =
        |(_, string): &(usize, &str)| string.starts_with([' ', '+']) || string.contains("\\n");
    strings.iter().any(is_option) && !strings.iter().all(is_option) && !strings.iter().any(is_line)
}

/// The raw content of the string at `at`.
fn string_at(raw: &str, at: usize) -> Option<&str> {
    let rest = &raw[at + 1..];
    end_of_string(rest.as_bytes()).map(|end| &rest[..end])
}

fn skip_blanks(raw: &str, at: usize) -> usize {
    let rest = &raw.as_bytes()[at..];
    at + rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count()
}

#[cfg(test)]
mod tests {
    use crate::{Policy, redact_json};

    fn check(cases: &[(&str, &str)]) {
        for (raw, expected) in cases {
            let redacted = redact_json(raw, Policy::default());
            assert_eq!(&redacted, expected, "{raw}");
            assert_eq!(redact_json(&redacted, Policy::default()), redacted, "{raw}");
        }
    }

    #[test]
    fn a_private_block_is_removed_across_the_lines_of_a_diff() {
        check(&[
            (
                r#"[{"lines":[" a","+<private>","+the WALRUS plan","+</private>","+b"]}]"#,
                r#"[{"lines":[" a","+[redacted:private]","","","+b"]}]"#,
            ),
            (
                r#"["x <private>a", 1, "b", null, "c"]"#,
                r#"["x [redacted:private]", 1, "", null, ""]"#,
            ),
            (r#"["a<private>b",["c"],"d</private>e"]"#, r#"["a[redacted:private]",["c"],"de"]"#),
            (r#"["a\u003cprivate>b","c</private\u003ed"]"#, r#"["a[redacted:private]","d"]"#),
        ]);
    }

    #[test]
    fn a_private_block_is_removed_across_blocks_of_text() {
        check(&[(
            r#"{"content":[{"type":"text","text":"<private>a"},{"type":"text","text":"WALRUS","n":{"text":"kept"}},{"text":"b</private>c"}]}"#,
            r#"{"content":[{"type":"text","text":"[redacted:private]"},{"type":"text","text":"","n":{"text":"kept"}},{"text":"c"}]}"#,
        )]);
    }

    #[test]
    fn a_key_is_replaced_across_the_lines_of_a_diff() {
        let key = "MIIEpAIBAAKCAQEA75mJZ0Zb5u1J8bqv7QMIIEpAIBAAKCAQEA75mJZ0Zb5u1J8";
        for kind in ["RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"] {
            for sign in ["+", "-", " ", ""] {
                let lines: Vec<String> = [
                    format!("{sign}-----BEGIN {kind}-----"),
                    format!("{sign}{key}"),
                    format!("{sign}{key}"),
                    format!("{sign}-----END {kind}-----"),
                    format!("{sign}done"),
                ]
                .into();
                let raw = serde_json::to_string(&lines).unwrap();
                let redacted = redact_json(&raw, Policy::default());
                let after: Vec<String> = serde_json::from_str(&redacted).unwrap();
                assert!(!redacted.contains("AKCAQEA"), "{redacted}");
                assert_eq!((after.len(), after[4].as_str()), (5, lines[4].as_str()), "{redacted}");
            }
        }
    }

    #[test]
    fn a_password_of_netrc_is_replaced_across_the_lines_of_a_diff() {
        check(&[(
            r#"["+machine db.example","+  login ada","-  password hunter2","+x"]"#,
            r#"["+machine db.example","+  login ada","-  password [redacted:password]","+x"]"#,
        )]);
    }

    #[test]
    fn a_password_of_netrc_is_replaced_in_json_within_a_text() {
        for lines in [
            r"machine db\nlogin ada\npassword hunter2\n",
            r"x\nmachine db\n login ada\n password hunter2\n",
        ] {
            let raw = serde_json::to_string(lines).unwrap();
            let redacted = redact_json(&raw, Policy::default());
            assert!(!redacted.contains("hunter2"), "{redacted}");
        }
    }

    #[test]
    fn a_login_is_replaced_in_a_line_that_a_diff_removes() {
        check(&[(
            r#"["-Curl -u ada:hunter2 x","-y"]"#,
            r#"["-Curl -u ada:[redacted:password] x","-y"]"#,
        )]);
    }

    #[test]
    fn values_after_options_and_headers_are_redacted() {
        check(&[
            (
                r#"["psql","--password","hunter2","-v"]"#,
                r#"["psql","--password","[redacted:password]","-v"]"#,
            ),
            (r#"["--password","a b c"]"#, r#"["--password","[redacted:password]"]"#),
            (r#"["curl","-u","me:hunter2","x"]"#, r#"["curl","-u","me:[redacted:password]","x"]"#),
            (
                r#"[["Authorization","Basic dXNlcjpwYXNz"],["Accept","x"]]"#,
                r#"[["Authorization","Basic [redacted:authorization]"],["Accept","x"]]"#,
            ),
            (
                r#"["Host","x","authorization","Basic dXNlcjpwYXNz","Accept","y"]"#,
                r#"["Host","x","authorization","Basic [redacted:authorization]","Accept","y"]"#,
            ),
            (r#"["password","hunter2"]"#, r#"["password","[redacted:password]"]"#),
            // Names of columns are not secrets.
            (r#"["id","password","created_at"]"#, r#"["id","password","created_at"]"#),
            (r#"["--password","--verbose"]"#, r#"["--password","--verbose"]"#),
        ]);
    }

    #[test]
    fn nested_arrays_are_each_read_once() {
        let deep = format!("{}\"<private>\"{}", "[{\"a\":".repeat(50_000), "}]".repeat(50_000));
        let expected = deep.replace("<private>", "[redacted:private]");
        assert_eq!(redact_json(&deep, Policy::default()), expected);
    }
}
