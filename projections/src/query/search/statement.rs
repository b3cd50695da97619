//! Compares two memories: of memories with the same meaning, a session receives one.
//!
//! Memories with different files, names, numbers, negations or limits are never merged, even if
//! everything else is similar. Without vectors the words must be the same in the same order, apart
//! from their endings and from filler words. With vectors, one of them can have more detail.

use super::tokens::base_form;
use crate::fts_terms::is_unspaced;
use std::collections::BTreeSet;

/// The similarity of vectors from which memories mean the same. In 1,100 observations of coding
/// sessions, pairs with the same names and files and a different meaning have at most .80.
const SAME_SIMILARITY_MIN: f64 = 0.9;

/// Words that do not affect the meaning.
const FILLERS: &[&str] = &[
    "a", "already", "an", "also", "are", "be", "been", "has", "have", "is", "just", "now", "the",
    "was", "were",
];

/// Negations, limits and numbers: they change the meaning of a sentence.
const TURNS: &[&str] = &[
    "all", "always", "both", "cannot", "eight", "except", "five", "four", "hardly", "if", "kein",
    "keine", "nein", "never", "nicht", "nine", "no", "none", "nor", "not", "off", "one", "only",
    "or", "seven", "six", "some", "ten", "three", "two", "unless", "until", "when", "while",
    "without", "не", "нет", "ни", "yok", "değil",
];

/// The normalized title, type and files of a memory, for comparison.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Statement {
    kind: String,
    /// The words of the title in their order, without fillers and endings.
    words: Vec<String>,
    /// Files, names, numbers, negations and limits.
    marks: BTreeSet<String>,
}

impl Statement {
    /// The statement of an observation; `None` without a title.
    pub fn of<'a>(
        kind: &str,
        title: &str,
        files: impl IntoIterator<Item = &'a str>,
    ) -> Option<Self> {
        let mut words = Vec::new();
        let mut marks: BTreeSet<String> =
            files.into_iter().map(|file| format!("/{file}")).collect();
        for word in title.split(is_between).map(trimmed).filter(|word| !word.is_empty()) {
            let lower = word.to_lowercase();
            if is_mark(word, &lower) {
                marks.insert(lower.clone());
                words.push(lower);
            } else if !FILLERS.contains(&lower.as_str()) {
                words.push(base_form(word));
            }
        }
        (!words.is_empty()).then(|| Self { kind: kind.to_owned(), words, marks })
    }

    /// Compares two statements. `similarity` returns the centered cosine of their vectors; it is
    /// called only if the result depends on it.
    pub fn is_same<E>(
        &self,
        other: &Self,
        similarity: impl FnOnce() -> Result<Option<f64>, E>,
    ) -> Result<bool, E> {
        if self == other {
            return Ok(true);
        }
        let is_readable = !self.words.iter().any(|word| word.contains(is_unspaced));
        let is_possible = is_readable
            && (&self.kind, &self.marks) == (&other.kind, &other.marks)
            && (self.contains(other) || other.contains(self));
        let is_similar = |similarity| similarity >= SAME_SIMILARITY_MIN;
        Ok(is_possible && similarity()?.is_some_and(is_similar))
    }

    /// Checks that the other's words are a subsequence of these.
    fn contains(&self, other: &Self) -> bool {
        let mut words = self.words.iter();
        other.words.iter().all(|word| words.any(|own| own == word))
    }
}

fn is_between(letter: char) -> bool {
    letter.is_whitespace() || "`\"“”‘()[]{}<>,;=|→…—".contains(letter)
}

/// The sign of a number stays.
fn trimmed(word: &str) -> &str {
    let word = word.trim_end_matches(|letter: char| !letter.is_alphanumeric());
    let inner = word.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    match word.strip_suffix(inner) {
        Some(before)
            if before.ends_with('-') && inner.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            &word[before.len() - 1..]
        }
        _ => inner,
    }
}

fn is_mark(word: &str, lower: &str) -> bool {
    let has_inner_capital = word.chars().skip(1).any(char::is_uppercase);
    let has_joint = word.contains(['_', '/', '\\', '.', ':', '-', '\'', '’', '@', '#', '$', '%']);
    has_inner_capital || has_joint || word.contains(char::is_numeric) || TURNS.contains(&lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_same(one: &str, other: &str, similarity: Option<f64>) -> bool {
        let statement = |title| Statement::of("bugfix", title, ["src/cart.rs"]).unwrap();
        statement(one).is_same(&statement(other), || Ok::<_, ()>(similarity)).unwrap()
    }

    #[test]
    fn the_same_words_have_the_same_meaning() {
        let pairs = [
            ("Reader skips torn frames now", "reader skips  torn frames."),
            ("The cart is rounded once", "Cart rounded once"),
            ("Fixed the login timeout", "Fixes login timeouts"),
        ];
        for (one, other) in pairs {
            assert!(is_same(one, other, None), "{one} / {other}");
        }
    }

    #[test]
    fn with_vectors_one_may_have_more_detail() {
        let (one, other) =
            ("Fixed the login timeout", "Fixed the login timeout of returning guests");
        assert!(!is_same(one, other, None));
        assert!(!is_same(one, other, Some(0.8)));
        assert!(is_same(one, other, Some(0.95)));
    }

    #[test]
    fn files_names_numbers_negations_and_other_words_distinguish_memories() {
        let pairs = [
            ("Raised limit to 10", "Raised limit to 11"),
            ("Set delay to -1", "Set delay to 1"),
            ("Moved the cart to the shop", "Moved the shop to the cart"),
            ("Deploy works", "Deploy works only on Linux"),
            ("Deploy works", "Deploy does not work"),
            ("Deploy works", "Deploy doesn't work"),
            ("Two branches are left", "Three branches are left"),
            ("Fixed a crash in the payment service", "Fixed a crash in the invoice service"),
            ("Enabled the cache", "Disabled the cache"),
            ("Fixed read_reply", "Fixed read_request"),
            ("Fixed readReply", "Fixed readreply calls"),
            ("Fixed main.go", "Fixed main.rs"),
            ("提交所有文件", "提交所有文件并推送"),
        ];
        for (one, other) in pairs {
            assert!(!is_same(one, other, Some(0.99)), "{one} / {other}");
        }
        let of = |kind, file| Statement::of(kind, "Fixed the total", [file]).unwrap();
        for other in [of("bugfix", "b.rs"), of("decision", "a.rs")] {
            assert_eq!(of("bugfix", "a.rs").is_same(&other, || Ok::<_, ()>(Some(1.0))), Ok(false));
        }
        assert_eq!(Statement::of("bugfix", " . ", ["a.rs"]), None);
    }
}
