//! The words of a prompt that can point to a memory.

use super::{Query, stop_words::is_stop_word, tokens};
use std::collections::HashSet;

/// Longer prompts are pasted text; what they are about is said at their start.
const PROMPT_BYTES_MAX: usize = 4 << 10;

/// The words of a prompt that say something, and which of them are names.
#[derive(Debug, Default)]
pub(super) struct PromptTerms {
    pub(super) query: Query,
    /// For each term: whether it is a name of something, rather than an ordinary word.
    pub(super) is_name: Vec<bool>,
}

impl PromptTerms {
    pub(super) fn of(prompt: &str) -> Self {
        let prompt = &prompt[..prompt.floor_char_boundary(PROMPT_BYTES_MAX)];
        let mut query = Query::default();
        let mut names = HashSet::new();
        let mut is_first = true;
        for word in prompt.split_whitespace() {
            let word = after_host(word);
            if let Some(name) = name(word, is_first) {
                names.insert(name);
            }
            query.add_plain(word);
            is_first = word.ends_with(['.', '!', '?', ':', '*', '#', '-']);
        }
        query.terms.retain(|term| names.contains(&term.text) || is_telling(&term.text));
        let is_name = query.terms.iter().map(|term| names.contains(&term.text)).collect();
        Self { query, is_name }
    }

    /// A single ordinary word, such as `continue`, is about nothing.
    pub(super) fn is_enough(&self) -> bool {
        self.query.terms.len() > 1 || self.is_name.contains(&true)
    }
}

/// The part of an address behind its host, or the whole word.
fn after_host(word: &str) -> &str {
    match word.split_once("://") {
        Some((_, address)) => address.split_once('/').map_or("", |(_, path)| path),
        None => word,
    }
}

/// The name that a word is, in lower case: an identifier, the name of a file, a number of three or
/// more digits, or a capitalized word that does not begin a sentence.
fn name(word: &str, is_first: bool) -> Option<String> {
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
    (is_name && is_word && !is_stop_word(&name) && is_telling(&name)).then_some(name)
}

/// Whether a word says what a prompt is about. Words of conversation and of addresses do not, nor
/// do short numbers.
fn is_telling(word: &str) -> bool {
    !(word.bytes().all(|byte| byte.is_ascii_digit()) && word.len() < 3)
        && CONVERSATION.binary_search(&word).is_err()
}

/// Words that people say to an assistant whatever the subject. Sorted, for a binary search.
const CONVERSATION: &[&str] = &[
    "already",
    "also",
    "analyse",
    "analyze",
    "another",
    "best",
    "better",
    "can",
    "check",
    "checked",
    "com",
    "continue",
    "correct",
    "create",
    "currently",
    "done",
    "everything",
    "explain",
    "fine",
    "first",
    "fix",
    "following",
    "give",
    "go",
    "good",
    "great",
    "have",
    "hello",
    "help",
    "hi",
    "http",
    "https",
    "implement",
    "investigate",
    "issue",
    "just",
    "know",
    "last",
    "let",
    "like",
    "list",
    "look",
    "looks",
    "made",
    "make",
    "maybe",
    "move",
    "need",
    "new",
    "nice",
    "no",
    "now",
    "ok",
    "okay",
    "one",
    "option",
    "options",
    "perfect",
    "plan",
    "please",
    "problem",
    "review",
    "run",
    "see",
    "seem",
    "seems",
    "show",
    "still",
    "sure",
    "tell",
    "thank",
    "thanks",
    "that",
    "things",
    "think",
    "this",
    "try",
    "update",
    "use",
    "wait",
    "want",
    "way",
    "work",
    "working",
    "works",
    "would",
    "www",
    "yeah",
    "yep",
    "yes",
];
