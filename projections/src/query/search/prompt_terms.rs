//! Extracts the words of a prompt that can identify a memory.

use super::{
    Query, Term,
    query::link_path,
    stop_words::{is_conversation, is_stop_word},
    tokens,
};
use std::collections::HashSet;

/// Longer prompts are pasted text; their subject is at the start.
const PROMPT_BYTES_MAX: usize = 4 << 10;

/// The words of a prompt that can name its subject, and which of them are names.
#[derive(Debug, Default)]
pub(super) struct PromptTerms {
    pub(super) query: Query,
    /// For each term: whether it is a name of something, rather than an ordinary word.
    pub(super) is_name: Vec<bool>,
    /// For each term: whether a memory must contain it or a similar one. Never set for a prompt.
    pub(super) is_needed: Vec<bool>,
}

impl PromptTerms {
    pub(super) fn of(prompt: &str) -> Self {
        let prompt = beginning(prompt, PROMPT_BYTES_MAX);
        let mut query = Query::default();
        let mut names = HashSet::new();
        let mut is_first = true;
        for word in prompt.split_whitespace() {
            let word = if word.contains("://") { link_path(word).unwrap_or("") } else { word };
            if let Some(name) = name(word, is_first) {
                names.insert(name);
            }
            query.add_plain(word);
            is_first = word.ends_with(['.', '!', '?', ':', '*', '#', '-']);
        }
        query.terms.retain(|term| names.contains(&term.text) || names_subject(&term.text));
        shorten(&mut query.terms, |term| names.contains(&term.text));
        let is_name = query.terms.iter().map(|term| names.contains(&term.text)).collect();
        let is_needed = vec![false; query.terms.len()];
        Self { query, is_name, is_needed }
    }

    /// A single ordinary word, such as `continue`, identifies no subject.
    pub(super) fn is_enough(&self) -> bool {
        self.query.terms.len() > 1 || self.is_name.contains(&true)
    }
}

/// Each term is a lookup, for which a session waits.
const LOOKED_UP_MAX: usize = 16;

/// Keeps the names, and then the first terms, in their order.
pub(super) fn shorten(terms: &mut Vec<Term>, is_name: impl Fn(&Term) -> bool) {
    let names = terms.iter().filter(|term| is_name(term)).count().min(LOOKED_UP_MAX);
    let mut left = [LOOKED_UP_MAX - names, names];
    terms.retain(|term| {
        let left = &mut left[usize::from(is_name(term))];
        let is_kept = *left > 0;
        *left = left.saturating_sub(1);
        is_kept
    });
}

/// The start of a text, at most this many bytes.
pub(super) fn beginning(text: &str, bytes_max: usize) -> &str {
    let end = (0..=text.len().min(bytes_max)).rfind(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// The name in a word, in lower case: an identifier, a file name, a number of three or more digits,
/// or a capitalized word that does not start a sentence.
pub(super) fn name(word: &str, is_first: bool) -> Option<String> {
    let is_edge = |c: char| !c.is_alphanumeric();
    let word = word.trim_matches(is_edge);
    let file = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let stem = file.split('.').next().unwrap_or(file);
    let is_file = stem.len() < word.len() && stem.len() > 3;
    let joined: String = stem.chars().filter(|c| !matches!(c, '_' | '-')).collect();
    let mut chars = joined.chars();
    let first = chars.next()?;
    let is_capitalized = first.is_uppercase() && !is_first;
    let is_camel = joined.chars().any(char::is_lowercase) && chars.any(char::is_uppercase);
    let digits = joined.chars().filter(char::is_ascii_digit).count();
    let is_number = digits > 2 && digits == joined.len();
    let is_mixed = digits > 0 && digits < joined.len();
    let is_snake = stem.contains('_') && joined.len() > 3;
    let is_name = is_file || is_capitalized || is_camel || is_number || is_mixed || is_snake;
    let name = joined.to_lowercase();
    let is_word = tokens::words(&name).count() == 1 && name.chars().count() > 2;
    (is_name && is_word && !is_stop_word(&name) && names_subject(&name)).then_some(name)
}

/// Returns false for words of conversation, parts of addresses and short numbers: they do not name
/// a subject.
pub(super) fn names_subject(word: &str) -> bool {
    let is_short_number = word.len() < 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    !is_short_number && !is_conversation(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan_counter;

    /// The terms; names in brackets.
    fn terms(prompt: &str) -> String {
        let PromptTerms { query, is_name, .. } = PromptTerms::of(prompt);
        let term = |(term, is_name): (&Term, &bool)| match is_name {
            true => format!("[{}]", term.text),
            false => term.text.clone(),
        };
        query.terms.iter().zip(&is_name).map(term).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_of_conversation_are_dropped_and_names_are_recognized() {
        let table = [
            ("Why did we move off Postgres?", "[postgres]"),
            ("ok, looks great now", ""),
            ("continue", ""),
            ("option 1", ""),
            ("The cache is slow again.", "cache slow"),
            ("see https://git.example.com/acme/shop/issues/7668", "[7668]"),
            (
                "https://git.example.com/acme/shop/blob/main/src/color/gradient.go",
                "color [gradient]",
            ),
            ("open https://shop.example.com/assistant/", "open assistant"),
            ("http://shop.example.com", ""),
            ("fix src/color/gradient.go", "src color [gradient]"),
            ("rename readReply to read_reply", "rename [readreply] read reply"),
            ("-x \"a b\" +must", "x b must"),
            ("缓存很慢", "缓存 存很 很慢"),
        ];
        for (prompt, expected) in table {
            assert_eq!(terms(prompt), expected, "{prompt}");
        }
    }

    #[test]
    fn hostile_prompts_are_read_in_linear_time() {
        scan_counter::assert_linear(|fragment, size| {
            PromptTerms::of(&fragment.repeat(size / fragment.len()));
        });
    }
}
