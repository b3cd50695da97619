//! Compares the words of two decisions: does the later one replace the choice of the earlier one?
//!
//! A false match hides a valid memory, so three conditions must be met: the later title names what
//! it replaces, the earlier title chose all of that, and both share a further word. The lists are
//! part of the fold: after a change, increase the version of the projection.

use std::collections::BTreeSet;

/// Longer titles and texts are cut.
const TITLE_CHARS_MAX: usize = 300;
const TEXT_CHARS_MAX: usize = 2000;
/// Maximum number of words in the name of the replaced option.
const PHRASE_WORDS_MAX: usize = 6;

/// Words before a former choice.
const GIVES_UP: &[&str] = &[
    "replaced",
    "replaces",
    "replace",
    "dropped",
    "drop",
    "removed",
    "remove",
    "abandoned",
    "reverted",
    "retired",
    "stopped using",
    "stop using",
    "no longer use",
    "no longer uses",
    "got rid of",
];

/// Verbs of change: `from` or `off` soon after them precedes a former choice.
const CHANGES: &[&str] = &[
    "changed",
    "converted",
    "migrate",
    "migrated",
    "move",
    "moved",
    "ported",
    "switch",
    "switched",
];
const CHANGED_WORDS_MAX: usize = 6;

/// Words before an alternative, which may never have been in use.
const ALTERNATIVES: &[&str] = &[
    "instead of",
    "rather than",
    "in place of",
    "not",
    "statt",
    "anstelle von",
    "au lieu de",
    "en lugar de",
    "en vez de",
    "вместо",
];

/// Words before an option that was not chosen, and perhaps never in use.
const REJECTS: &[&str] =
    &["over", "without", "no", "never", "against", "avoid", "avoids", "avoided"];

/// Words that end the name of a rejected option.
const BOUNDARIES: &[&str] = &[
    "to", "with", "by", "because", "since", "so", "for", "as", "when", "while", "and", "or", "in",
    "on", "at", "from", "which", "that", "after", "due", "into", "until", "than", "but", "of",
    "before", "if",
];

/// Words without meaning for the subject of a decision.
const COMMON: &[&str] = &[
    "about", "all", "also", "always", "and", "any", "are", "because", "been", "both", "but", "can",
    "change", "changed", "choice", "choose", "chose", "chosen", "code", "could", "decided",
    "decision", "default", "does", "done", "each", "every", "existing", "file", "files", "for",
    "from", "had", "has", "have", "into", "its", "just", "keep", "keeps", "kept", "made", "make",
    "more", "need", "needs", "new", "not", "now", "old", "one", "only", "our", "own", "per",
    "picked", "project", "same", "should", "since", "some", "such", "test", "tests", "than",
    "that", "the", "their", "them", "then", "there", "they", "this", "use", "used", "user", "uses",
    "using", "want", "was", "were", "what", "when", "where", "which", "while", "will", "with",
    "without", "work", "works", "would", "you", "your",
];

/// The words of a decision, by role.
#[derive(Debug, Default)]
pub(super) struct DecisionText {
    /// The words of its title about the new choice.
    chosen: BTreeSet<String>,
    given_up: Vec<RejectedOption>,
    /// The words of its title and narrative.
    all: BTreeSet<String>,
}

/// An option that a decision rejects.
#[derive(Debug)]
struct RejectedOption {
    words: BTreeSet<String>,
    /// One of the words is a name of something.
    has_name: bool,
    kind: Marker,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marker {
    GivesUp,
    Alternative,
    Rejects,
}

/// One word of a title.
struct Word<'a> {
    lower: String,
    text: &'a str,
    /// The sentence or clause ends after it.
    is_last: bool,
}

impl DecisionText {
    pub(super) fn of(title: &str, narrative: &str) -> Self {
        let title: String = title.chars().take(TITLE_CHARS_MAX).collect();
        // A title can be `answer — question`. The question names all options, so it is left out.
        let answer = title.split(" — ").next().unwrap_or_default();
        let words = words(answer);
        let mut text = Self::default();
        let (mut at, mut changed_at) = (0, None);
        while at < words.len() {
            let word = words[at].lower.as_str();
            if CHANGES.contains(&word) {
                changed_at = Some(at);
            }
            let is_soon = changed_at.is_some_and(|start| at - start <= CHANGED_WORDS_MAX);
            let marker = match word {
                "from" | "off" if is_soon => Some((Marker::GivesUp, 1)),
                _ => marker(&words[at..]),
            };
            if let Some((kind, length)) = marker {
                let start = at + length;
                let given_up = RejectedOption::read(&words[start..], kind, start == 0);
                at = start + given_up.1;
                text.given_up.push(given_up.0);
                continue;
            }
            text.chosen.extend(rare(&words[at]));
            at += 1;
        }
        let narrative: String = narrative.chars().take(TEXT_CHARS_MAX).collect();
        text.all = self::words(&title).iter().filter_map(rare).collect();
        text.all.extend(self::words(&narrative).iter().filter_map(rare));
        text
    }

    /// True if it withdraws something. Only then can it replace a decision.
    pub(super) fn gives_something_up(&self) -> bool {
        self.given_up.iter().any(RejectedOption::is_definite)
    }

    /// True if it withdraws the choice of `earlier`.
    pub(super) fn replaces(&self, earlier: &Self) -> bool {
        self.given_up.iter().any(|given_up| {
            let words = &given_up.words;
            let is_new = |word: &&String| !words.contains(*word);
            let is_common_subject = match given_up.kind {
                Marker::GivesUp => self.all.intersection(&earlier.all).any(|word| is_new(&word)),
                _ => self.chosen.intersection(&earlier.chosen).any(|word| is_new(&word)),
            };
            given_up.is_definite()
                && words.is_subset(&earlier.chosen)
                && words.is_disjoint(&self.chosen)
                && is_common_subject
        })
    }
}

impl RejectedOption {
    /// Reads it from the words after its marker. Returns the number of words that it takes.
    fn read(words: &[Word<'_>], kind: Marker, is_start: bool) -> (Self, usize) {
        let mut given_up = Self { words: BTreeSet::new(), has_name: false, kind };
        let mut count = 0;
        for word in words.iter().take(PHRASE_WORDS_MAX) {
            if count > 0 && BOUNDARIES.contains(&word.lower.as_str()) {
                break;
            }
            count += 1;
            if let Some(rare) = rare(word) {
                given_up.has_name |= is_name(word.text, is_start && count == 1);
                given_up.words.insert(rare);
            }
            if word.is_last {
                break;
            }
        }
        (given_up, count)
    }

    /// True if it names one thing.
    fn is_definite(&self) -> bool {
        self.kind != Marker::Rejects && (self.has_name || self.words.len() > 1)
    }
}

fn words(text: &str) -> Vec<Word<'_>> {
    text.split_whitespace()
        .filter_map(|text| {
            let word = text.trim_matches(|c: char| !c.is_alphanumeric());
            let lower = word.to_lowercase();
            let is_last = text.ends_with([',', ';', '.', ':', ')', '!', '?', '。', '，']);
            (!word.is_empty()).then_some(Word { lower, text, is_last })
        })
        .collect()
}

fn marker(words: &[Word<'_>]) -> Option<(Marker, usize)> {
    let lists = [
        (Marker::GivesUp, GIVES_UP),
        (Marker::Alternative, ALTERNATIVES),
        (Marker::Rejects, REJECTS),
    ];
    lists.into_iter().find_map(|(kind, list)| {
        let found = list.iter().find(|marker| {
            let mut count = 0;
            marker.split(' ').all(|part| {
                count += 1;
                words.get(count - 1).is_some_and(|word| word.lower == part)
            })
        });
        found.map(|marker| (kind, marker.split(' ').count()))
    })
}

/// The word, if it can name a subject: without the `s` of a plural.
fn rare(word: &Word<'_>) -> Option<String> {
    let lower = word.lower.as_str();
    let is_long = lower.chars().count() > 2;
    if !is_long || COMMON.binary_search(&lower).is_ok() {
        return None;
    }
    let singular = lower.strip_suffix('s').filter(|stem| stem.len() > 3 && !stem.ends_with('s'));
    Some(singular.unwrap_or(lower).to_owned())
}

/// A name of something: with a capital letter, a digit, or a character that words do not have.
fn is_name(text: &str, is_first: bool) -> bool {
    let inner = text.trim_end_matches([',', ';', '.', ':', ')', '!', '?']);
    let starts_large = inner.chars().next().is_some_and(char::is_uppercase);
    starts_large && !is_first
        || inner.chars().skip(1).any(char::is_uppercase)
        || inner.contains(|c: char| c.is_ascii_digit() || matches!(c, '_' | '.' | '/' | '`' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaces(later: &str, earlier: &str) -> bool {
        let text = |text: &str| {
            let (title, narrative) = text.split_once(" | ").unwrap_or((text, ""));
            DecisionText::of(title, narrative)
        };
        text(later).gives_something_up() && text(later).replaces(&text(earlier))
    }

    #[test]
    fn the_list_of_common_words_is_sorted() {
        assert!(COMMON.is_sorted());
    }

    #[test]
    fn a_decision_that_withdraws_an_earlier_choice_replaces_it() {
        for (later, earlier) in [
            (
                "Moved off Postgres to SQLite | Backups of the ledger",
                "Chose Postgres for the ledger",
            ),
            (
                "Switched the ledger from Postgres to SQLite",
                "We decided on Postgres for the ledger",
            ),
            ("Use SQLite for the ledger instead of Postgres", "Use Postgres for the ledger"),
            ("The ledger lives in SQLite, not Postgres.", "The ledger lives in Postgres"),
            ("Dropped the retry queue for webhooks", "Send webhooks through a retry queue"),
            (
                "Replaced `moment.js` with `date-fns` in the calendar",
                "Use moment.js in the calendar",
            ),
            (
                "Revert to polling: removed the websocket feed for prices",
                "Prices come by a websocket feed",
            ),
            ("Для корзины SQLite вместо Redis", "Для корзины выбран Redis"),
        ] {
            assert!(replaces(later, earlier), "{later} / {earlier}");
            assert!(!replaces(earlier, later), "{earlier} / {later}");
        }
    }

    #[test]
    fn decisions_that_only_sound_similar_replace_nothing() {
        for (later, earlier) in [
            // It was never chosen.
            (
                "Use Redis for the ledger cache instead of Postgres",
                "Use SQLite for the ledger over Postgres",
            ),
            ("Use SQLite rather than Postgres for the ledger", "The ledger avoids Postgres"),
            ("Use Vitest, not Jest — Jest or Vitest?", "Use Mocha for units — Jest or Mocha?"),
            // Something else is replaced.
            ("Dropped the Postgres port in the ledger", "Use Postgres for the ledger"),
            ("Replaced the ledger icon", "Use Postgres for the ledger"),
            // Another subject.
            ("Moved off Postgres to SQLite | For search", "Chose Postgres for the ledger"),
            ("Use SQLite for carts instead of Postgres", "Use Postgres for the ledger"),
            // One ordinary word is not enough.
            ("Dropped support for the ledger", "Support the ledger in exports"),
            // Nothing is replaced.
            ("Use SQLite for the ledger", "Use Postgres for the ledger"),
            ("Keep Postgres for the ledger", "Use Postgres for the ledger"),
            // It is still valid.
            ("Replaced Postgres 15 by Postgres 16 in the ledger", "Use Postgres for the ledger"),
            ("", ""),
        ] {
            assert!(!replaces(later, earlier), "{later} / {earlier}");
        }
    }
}
