//! Splits text into words and folds them as FTS5 does.

use super::stem::stem;
use crate::fts_terms::is_unspaced;
use std::ops::Range;
use unicode_normalization::UnicodeNormalization;

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

/// The words of `text` without those of placeholders such as `[redacted:private]`.
pub(crate) fn words_without_placeholders(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    const OPEN: &str = "[redacted:";
    const BYTES_MAX: usize = 64;
    let mut end = 0;
    words(text).filter(move |(range, _)| {
        let open = range.start.saturating_sub(1);
        if range.start >= end && text.as_bytes()[open..].starts_with(OPEN.as_bytes()) {
            let rest = &text.as_bytes()[open..text.len().min(open + BYTES_MAX)];
            end = rest.iter().position(|byte| *byte == b']').map_or(end, |length| open + length);
        }
        range.start >= end
    })
}

/// A word as it is in the index: lower case, without accents, stemmed. `out` is reused, because a
/// search reads a hundred thousand words.
pub(crate) fn fold(word: &str, out: &mut String) {
    fold_unstemmed(word, out);
    stem(out);
}

/// A word in lower case, without accents.
pub(crate) fn fold_unstemmed(word: &str, out: &mut String) {
    out.clear();
    if word.is_ascii() {
        out.extend(word.bytes().map(|byte| byte.to_ascii_lowercase() as char));
    } else {
        out.extend(word.nfd().filter(|c| !is_mark(*c)).flat_map(char::to_lowercase).nfc());
    }
}

/// Combining accents.
fn is_mark(c: char) -> bool {
    matches!(c as u32, 0x0300..=0x036F | 0x1DC0..=0x1DFF | 0x20D0..=0x20F0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> Vec<String> {
        let mut out = String::new();
        let fold = |(_, word)| {
            fold(word, &mut out);
            out.clone()
        };
        words(text).map(fold).collect()
    }

    #[test]
    fn placeholders_contain_no_words() {
        let joined = |text| {
            words_without_placeholders(text).map(|(_, word)| word).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(joined("a [redacted:private] b[redacted:aws-access-key]c"), "a b c");
        assert_eq!(joined("[redacted:private][redacted:jwt]"), "");
        assert_eq!(joined("redacted: private, [redacted: é"), "redacted private redacted é");
    }

    #[test]
    fn words_are_runs_of_letters_and_digits_in_one_form() {
        assert_eq!(
            folded("Reading `src/main_loop.rs`: 42!"),
            ["read", "src", "main", "loop", "rs", "42"]
        );
        assert_eq!(folded("Café CAFE\u{301} naïve Ärger"), ["cafe", "cafe", "naiv", "arger"]);
        assert_eq!(folded(" \u{1F600} -- "), [""; 0]);
        assert_eq!(folded("使用Redis缓存"), ["使用", "redi", "缓存"]);
    }
}
