//! Labels: patterns for what a session should leave in memory.

use std::{fs, path::Path};

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use claude_mem_core::failure::Failure;

/// The labels of a set of sessions. Unknown members are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Labels {
    pub(super) recall: Vec<Recall>,
    pub(super) user_rules: Vec<UserRule>,
    pub(super) next_session: Vec<NeededFact>,
    pub(super) silent: Vec<SilentPrompt>,
}

/// The expected memories of one session.
#[derive(Debug, Deserialize)]
pub(super) struct Recall {
    pub(super) session: String,
    #[serde(default)]
    pub(super) wanted: Vec<WantedMemory>,
    #[serde(default)]
    pub(super) false_if_said: Vec<FalseStatement>,
}

/// A thing worth remembering. One memory must match all patterns.
#[derive(Debug, Deserialize)]
pub(super) struct WantedMemory {
    pub(super) kind: String,
    #[serde(default)]
    pub(super) text: String,
    pub(super) match_all_in_one_row: Vec<Pattern>,
}

/// A statement that no observation may contain.
#[derive(Debug, Deserialize)]
pub(super) struct FalseStatement {
    #[serde(rename = "match", alias = "regex", alias = "pattern")]
    pub(super) pattern: Pattern,
}

/// A standing wish of the user.
#[derive(Debug, Deserialize)]
pub(super) struct UserRule {
    pub(super) session: String,
    #[serde(default)]
    pub(super) rule: String,
    #[serde(rename = "match", alias = "regex")]
    pub(super) pattern: Pattern,
}

/// A fact that this session needed, and that an earlier one had established.
#[derive(Debug, Deserialize)]
pub(super) struct NeededFact {
    pub(super) session: String,
    /// The first prompt of the session.
    pub(super) prompt: String,
    full_prompt: Option<String>,
    #[serde(default)]
    pub(super) need: String,
    #[serde(rename = "match")]
    pub(super) pattern: Pattern,
}

/// A prompt to which nothing of the past matters.
#[derive(Debug, Deserialize)]
pub(super) struct SilentPrompt {
    pub(super) session: String,
    pub(super) prompt: String,
}

/// More of a prompt does not help a search.
const QUERY_CHARS_MAX: usize = 400;

impl NeededFact {
    /// The prompt on one line, as a query.
    pub(super) fn query(&self) -> String {
        let prompt = self.full_prompt.as_ref().unwrap_or(&self.prompt);
        let mut query = String::new();
        for (at, word) in prompt.split(char::is_whitespace).enumerate() {
            if at > 0 && !query.ends_with(' ') {
                query.push(' ');
            }
            query.push_str(word);
        }
        query.chars().take(QUERY_CHARS_MAX).collect()
    }
}

impl Labels {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.display();
        let bytes = fs::read(path)
            .map_err(|error| Failure::new(format!("{name} cannot be read: {error}")))?;
        serde_json::from_slice(&bytes).map_err(|error| {
            Failure::new(format!("{name} is invalid: {error}"))
                .remedy("the format of labels is described in docs/evaluation.md")
        })
    }
}

/// A regular expression that ignores case, and whose `.` matches line breaks. It takes linear time.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Pattern {
    found: Regex,
    /// Lookaheads at the start of the text, and whether they must match.
    lookaheads: Vec<(Regex, bool)>,
}

impl Pattern {
    pub(super) fn matches(&self, text: &str) -> bool {
        let is_met =
            |(lookahead, must_match): &(Regex, bool)| lookahead.is_match(text) == *must_match;
        self.lookaheads.iter().all(is_met) && self.found.is_match(text)
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;

    /// The `regex` crate has no lookaround, because it takes linear time. Lookaheads at the start
    /// are the exception: each becomes a separate pattern. `^(?!.*A).*B` is the usual way to write
    /// "B, but not A".
    fn try_from(text: String) -> Result<Self, String> {
        let compiled = |pattern: &str| {
            let built = RegexBuilder::new(pattern)
                .case_insensitive(true)
                .dot_matches_new_line(true)
                .build();
            // Syntax errors take several lines; the last one has the reason.
            built.map_err(|error| {
                let reason = error.to_string();
                let reason = reason.lines().last().unwrap_or_default();
                format!("pattern `{text}`: {}", reason.trim_start_matches("error: "))
            })
        };
        let mut lookaheads = Vec::new();
        let Some(mut rest) = text.strip_prefix("(?s)").unwrap_or(&text).strip_prefix('^') else {
            return Ok(Self { found: compiled(&text)?, lookaheads });
        };
        while let Some(group) = rest.strip_prefix("(?!").or_else(|| rest.strip_prefix("(?=")) {
            let Some(end) = group_end(group) else { break };
            lookaheads
                .push((compiled(&format!("^(?:{})", &group[..end]))?, rest.starts_with("(?=")));
            rest = &group[end + 1..];
        }
        // The alternatives of the rest all begin at the start.
        let found = match lookaheads.is_empty() {
            true => compiled(&text)?,
            false if has_alternatives(rest) => {
                return Err(format!(
                    "pattern `{text}`: put the part after the lookahead in parentheses"
                ));
            }
            false => compiled(&format!("^{rest}"))?,
        };
        Ok(Self { found, lookaheads })
    }
}

/// The position of the parenthesis that closes the group in which the text begins.
fn group_end(text: &str) -> Option<usize> {
    structure(text).find(|(_, byte, depth)| *byte == b')' && *depth == 0).map(|(at, ..)| at)
}

fn has_alternatives(text: &str) -> bool {
    structure(text).any(|(_, byte, depth)| byte == b'|' && depth == 0)
}

/// Parentheses and bars outside of classes, with their position and depth. Escaped ones are left
/// out.
fn structure(text: &str) -> impl Iterator<Item = (usize, u8, usize)> {
    let (mut depth, mut is_escaped, mut is_in_class) = (0usize, false, false);
    text.bytes().enumerate().filter_map(move |(at, byte)| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b']' => is_in_class = false,
            _ if is_in_class => {}
            b'[' => is_in_class = true,
            b'(' => depth += 1,
            b')' => {
                let outside = depth;
                depth = depth.saturating_sub(1);
                return Some((at, byte, outside));
            }
            b'|' => return Some((at, byte, depth)),
            _ => {}
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Result<Pattern, String> {
        Pattern::try_from(text.to_owned())
    }

    #[test]
    fn patterns_ignore_case_and_span_lines() {
        assert!(pattern("bun.*TEST").unwrap().matches("use Bun\nto test"));
        assert!(pattern("привет").unwrap().matches("ПРИВЕТ"));
        assert!(!pattern("^test").unwrap().matches("a test"));
    }

    #[test]
    fn a_lookahead_at_the_start_excludes_texts() {
        let fails = pattern(r"(?s)^(?!.*(clone|\(external\))).*114 (tests )?fail").unwrap();
        assert!(fails.matches("today\n114 tests fail"));
        assert!(!fails.matches("114 fail in the\nclone"));
        assert!(!fails.matches("(external) 114 fail"));
        let both = pattern("^(?=.*a[)])(?!.*b).*c").unwrap();
        assert!(both.matches("c a)") && !both.matches("c a") && !both.matches("c a) b"));
    }

    #[test]
    fn errors_name_unsupported_syntax() {
        for (text, reason) in [
            ("a(?!b)", "look-around"),
            ("(?<=a)b", "look-around"),
            (r"(a)\1", "backreferences"),
            ("a(", "unclosed group"),
            ("^(?!a)b|c", "in parentheses"),
        ] {
            let error = pattern(text).unwrap_err();
            assert!(error.contains(reason) && error.contains(text), "{error}");
        }
    }

    #[test]
    fn a_query_is_one_line_of_bounded_length() {
        let fact = |prompt: &str| NeededFact {
            session: String::new(),
            prompt: prompt.into(),
            full_prompt: None,
            need: String::new(),
            pattern: pattern("x").unwrap(),
        };
        assert_eq!(fact("a\n\n b\tc ").query(), "a b c ");
        assert_eq!(fact(&"é".repeat(500)).query().chars().count(), 400);
    }
}
