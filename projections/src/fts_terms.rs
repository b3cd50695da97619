//! Additional search terms for the full-text index: parts of compound names, words next to a script
//! without spaces, and character pairs of such scripts.

use std::collections::HashSet;

/// The two additional columns of an indexed row; `None` if there is nothing to add.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FtsTerms {
    /// Parts of compound names.
    pub(crate) identifiers: Option<String>,
    /// Pairs of characters.
    pub(crate) grams: Option<String>,
}

/// The additional columns for a row with these texts.
pub(crate) fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> FtsTerms {
    let mut parts = Parts::default();
    let mut grams = String::new();
    for text in texts {
        parts.add(text);
        if !text.is_ascii() {
            add_grams(text, &mut grams);
        }
    }
    let filled = |text: String| (!text.is_empty()).then_some(text);
    FtsTerms { identifiers: filled(parts.text), grams: filled(grams) }
}

/// The parts of the compound names in a text: `readReply` gives `read reply`, and `snake_case`
/// gives `snakecase`, because FTS5 splits words only at characters that are neither letters nor
/// digits. `使用Redis缓存` gives `redis` for the same reason. Each name once.
pub(crate) fn identifiers(text: &str) -> String {
    let mut parts = Parts::default();
    parts.add(text);
    parts.text
}

/// Whether a script has no spaces between words, so that its text is searched by character.
pub(crate) fn is_unspaced(c: char) -> bool {
    matches!(c as u32,
        0x0E00..=0x0EFF            // Thai, Lao
        | 0x1000..=0x109F          // Myanmar
        | 0x1780..=0x17FF          // Khmer
        | 0x3005..=0x3007          // 々 〆 〇
        | 0x3040..=0x30FF          // Hiragana, Katakana
        | 0x3400..=0x4DBF          // Han
        | 0x4E00..=0x9FFF
        | 0xAC00..=0xD7AF          // Hangul
        | 0xF900..=0xFAFF
        | 0xFF66..=0xFF9F          // half-width Katakana
        | 0x20000..=0x3FFFF)
}

#[derive(Default)]
struct Parts {
    seen: HashSet<u64>,
    text: String,
}

impl Parts {
    fn add(&mut self, text: &str) {
        let is_inside = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        for run in text.split(|c: char| !is_inside(c)) {
            let is_mixed = !run.is_ascii() && run.contains(is_unspaced);
            for name in run.split(|c: char| is_mixed && is_unspaced(c)) {
                let is_name = name.len() > 2 && is_compound(name);
                if (is_name || is_mixed && !name.is_empty()) && self.seen.insert(hash(name)) {
                    let name = name.trim_matches(['_', '-']);
                    if is_mixed {
                        self.separate();
                        self.text.extend(name.chars().flat_map(char::to_lowercase));
                    }
                    if is_name {
                        self.add_name(name);
                    }
                }
            }
        }
    }

    fn add_name(&mut self, name: &str) {
        let mut previous = None;
        let mut chars = name.chars().peekable();
        let mut has_humps = false;
        let start = self.text.len();
        self.separate();
        while let Some(c) = chars.next() {
            let next_is_lower = chars.peek().is_some_and(|next| next.is_lowercase());
            let is_hump = previous.is_some_and(|previous: char| {
                c.is_uppercase() && (!previous.is_uppercase() || next_is_lower)
            });
            match c {
                '_' | '-' => self.separate(),
                _ => {
                    if is_hump && previous.is_some_and(char::is_alphanumeric) {
                        has_humps = true;
                        self.separate();
                    }
                    self.text.extend(c.to_lowercase());
                }
            }
            previous = Some(c);
        }
        if !has_humps {
            // FTS5 splits `snake_case` by itself; only the joined form is missing.
            self.text.truncate(start);
        }
        if name.contains(['_', '-']) {
            self.separate();
            let whole = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase);
            self.text.extend(whole);
        }
    }

    fn separate(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with(' ') {
            self.text.push(' ');
        }
    }
}

fn is_compound(name: &str) -> bool {
    // Fast path: nearly all words are plain.
    if name.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return false;
    }
    let inner = name.trim_matches(['_', '-']);
    let mut previous_is_lower = false;
    let mut uppers = 0;
    inner.chars().any(|c| {
        let is_hump = c.is_uppercase() && previous_is_lower;
        let ends_acronym = c.is_lowercase() && uppers > 1;
        uppers = if c.is_uppercase() { uppers + 1 } else { 0 };
        previous_is_lower = c.is_lowercase() || c.is_numeric();
        c == '_' || c == '-' || is_hump || ends_acronym
    })
}

fn hash(name: &str) -> u64 {
    // FNV-1a: the same on every machine. A collision only omits one name of one row.
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn add_grams(text: &str, out: &mut String) {
    for run in text.split(|c: char| !is_unspaced(c)).filter(|run| !run.is_empty()) {
        let mut rest = run.chars();
        while let Some(first) = rest.next() {
            if !out.is_empty() {
                out.push(' ');
            }
            out.push(first);
            out.extend(rest.clone().next());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compound_names_give_their_parts_and_their_whole() {
        let table = [
            ("readReply", "read reply"),
            ("HTTPServer2Go", "http server2 go"),
            ("snake_case", "snakecase"),
            ("a-b.c", "ab"),
            ("path/to/fileName.rs", "file name"),
            ("XML_readReply", "xml read reply xmlreadreply"),
            ("plain words, UPPER and Title", ""),
            ("same_name same_name", "samename"),
            ("__init__", ""),
            ("--flag-name", "flagname"),
            ("straßenBahn", "straßen bahn"),
            ("使用Redis缓存和readReply。", "redis readreply read reply"),
            ("記憶は日本語", ""),
        ];
        for (text, parts) in table {
            assert_eq!(identifiers(text), parts, "{text}");
        }
    }

    #[test]
    fn text_without_spaces_gives_pairs() {
        let grams = |text| of([text]).grams.unwrap_or_default();
        assert_eq!(grams("記憶 of 日本語"), "記憶 憶 日本 本語 語");
        assert_eq!(grams("plain"), "");
        assert_eq!(of(["readReply", "記憶"]).grams.as_deref(), Some("記憶 憶"));
        assert_eq!(of(["plain"]), FtsTerms::default());
    }
}
