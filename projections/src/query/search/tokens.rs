//! Splits text into words, as FTS5 does.

use crate::fts_terms::is_unspaced;
use std::{borrow::Cow, ops::Range};

/// The words of `text` with their positions: runs of letters and digits, also split where a script
/// without spaces begins or ends.
pub(crate) fn words(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    let is_inside = |c: char| c.is_alphanumeric() || is_mark(c);
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + text[from..].find(is_inside)?;
        let is_first_unspaced = text[start..].starts_with(is_unspaced);
        let goes_on =
            |c: char| is_mark(c) || c.is_alphanumeric() && is_unspaced(c) == is_first_unspaced;
        let end = text[start..].find(|c| !goes_on(c)).map_or(text.len(), |len| start + len);
        from = end;
        Some((start..end, &text[start..end]))
    })
}

/// The text without placeholders such as `[redacted:private]`.
pub(super) fn without_placeholders(text: &str) -> Cow<'_, str> {
    const OPEN: &str = "[redacted:";
    const BYTES_MAX: usize = 64;
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(OPEN) {
        let bytes = &rest.as_bytes()[at..rest.len().min(at + BYTES_MAX)];
        let length = bytes.iter().position(|byte| *byte == b']').map_or(OPEN.len(), |end| end + 1);
        kept += &rest[..at];
        kept.push(' ');
        rest = &rest[at + length..];
    }
    if kept.is_empty() { Cow::Borrowed(rest) } else { Cow::Owned(kept + rest) }
}

/// A word in lower case without its ending, to compare words of queries and titles with each other.
/// The index has stems of its own.
pub(super) fn base_form(word: &str) -> String {
    const ENDINGS: [&str; 5] = ["ing", "ed", "es", "s", "e"];
    const CHARS_MIN: usize = 3;
    let lower = word.to_lowercase();
    let base = |ending| lower.strip_suffix(ending).filter(|base| base.len() >= CHARS_MIN);
    let end = ENDINGS.into_iter().find_map(base).map_or(lower.len(), str::len);
    lower[..end].to_owned()
}

/// Combining accents.
fn is_mark(c: char) -> bool {
    matches!(c as u32, 0x0300..=0x036F | 0x1DC0..=0x1DFF | 0x20D0..=0x20F0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_contain_no_words() {
        let table = [
            ("a [redacted:private] b[redacted:aws-access-key]c", "a b c"),
            ("[redacted:private][redacted:jwt]", ""),
            ("redacted: private, [redacted: é", "redacted: private, é"),
        ];
        for (text, kept) in table {
            let found = without_placeholders(text);
            let words: Vec<&str> = found.split_whitespace().collect();
            assert_eq!(words.join(" "), kept, "{text}");
        }
    }

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        let joined = |text| words(text).map(|(_, word)| word).collect::<Vec<_>>().join(" ");
        assert_eq!(joined("Reading `src/main_loop.rs`: 42!"), "Reading src main loop rs 42");
        assert_eq!(joined(" \u{1F600} -- Cafe\u{301}"), "Cafe\u{301}");
        assert_eq!(joined("使用Redis缓存"), "使用 Redis 缓存");
    }

    #[test]
    fn forms_of_a_word_have_one_base() {
        for forms in [["fail", "fails", "failing"], ["Cache", "caches", "cached"]] {
            assert!(forms.iter().all(|form| base_form(form) == base_form(forms[0])), "{forms:?}");
        }
        assert_eq!(["is", "ing", "über"].map(base_form), ["is", "ing", "über"]);
    }
}
