//! Words that identify no memory. They are in the index: a query drops them only if it has others.

use std::{collections::HashSet, sync::LazyLock};

/// Stop words of English.
static STOP: LazyLock<HashSet<&str>> = LazyLock::new(|| set(include_str!("words/stop.txt")));
/// Words of conversation, common to all subjects.
static CONVERSATION: LazyLock<HashSet<&str>> =
    LazyLock::new(|| set(include_str!("words/conversation.txt")));
/// Words that are common in all failures.
static FAILURES: LazyLock<HashSet<&str>> =
    LazyLock::new(|| set(include_str!("words/failures.txt")));

fn set(words: &str) -> HashSet<&str> {
    words.split_whitespace().collect()
}

/// Whether a lower-case word is a stop word.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP.contains(word)
}

/// Whether a lower-case word is one of conversation.
pub(super) fn is_conversation(word: &str) -> bool {
    CONVERSATION.contains(word)
}

/// Whether any failure may contain a lower-case word.
pub(super) fn is_failure(word: &str) -> bool {
    FAILURES.contains(word)
}

/// Returns true for a pair of characters with a grammatical function only: it contains a particle
/// of Chinese or Japanese, or consists of Hiragana. Japanese writes names and nouns in other
/// scripts.
pub(super) fn is_stop_pair(pair: &str) -> bool {
    const PARTICLES: &str = "的了吗呢吧么什怎哪这那们是我你您麼嗎這們をはのにでがとも";
    let is_hiragana = |c: char| ('\u{3041}'..='\u{309F}').contains(&c);
    pair.chars().any(|c| PARTICLES.contains(c)) || pair.chars().all(is_hiragana)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_and_pairs_are_recognized() {
        assert!(["the", "a", "yourselves"].into_iter().all(is_stop_word) && !is_stop_word("error"));
        assert!(is_conversation("please") && is_failure("exit"));
        assert!(["什么", "的登", "です", "限を"].into_iter().all(is_stop_pair));
        assert!(["登录", "制限", "待ち", "로그"].into_iter().all(|pair| !is_stop_pair(pair)));
    }
}
