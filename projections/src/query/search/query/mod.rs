//! Parses a query. Every text is valid.
//!
//! Each word is a separate term, because a phrase or an AND of a natural question finds nothing.
//! `"…"` is a phrase, `+word` is required, `-word` is excluded, `word*` is a prefix. A longer text,
//! such as a prompt, has no operators: its quotes cite, and its `-m` is a flag. Compound names are searched as a whole
//! and by their parts. A run of a script without spaces is a whole sentence, so each of its
//! character pairs is a term; in quotes it stays together.

use super::{
    Search,
    stop_words::{is_stop_pair, is_stop_word},
    tokens,
};
use crate::fts_terms;
use serde::Serialize;
use std::{borrow::Cow, fmt::Write as _};

/// Longer queries are cut: they are pasted by mistake.
const QUERY_BYTES_MAX: usize = 8 << 10;
/// Maximum number of terms.
pub(super) const TERMS_MAX: usize = 64;
/// A text with more words than this has no operators.
const QUERY_WORDS_MAX: usize = 8;
/// A shorter word that is being typed is not completed: too many words start with it.
const TYPED_CHARS_MIN: usize = 2;

/// A parsed query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// Words and phrases.
    pub terms: Vec<Term>,
    pub excluded: Vec<Term>,
    /// Stop words that were dropped.
    pub dropped: Vec<String>,
    /// Why nothing can be found.
    pub hint: Option<&'static str>,
    /// Positions of terms that are next to each other in the query.
    pub(super) pairs: Vec<(usize, usize)>,
    /// Whether a quote has no end.
    pub(super) is_unclosed: bool,
    /// The position of the word that is being typed.
    pub(super) typed: Option<usize>,
}

/// One word or phrase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Term {
    /// In lower case, as typed.
    pub text: String,
    /// Whether every hit must contain it.
    pub is_required: bool,
    /// How it is matched.
    #[serde(rename = "match")]
    pub shape: Shape,
    /// Its words without their endings: terms with the same ones are one.
    #[serde(skip)]
    pub(super) base: String,
    /// The text to search the index for instead of `text`, if that finds more.
    #[serde(skip)]
    pub(super) shortened: Option<String>,
}

/// How a term is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Adjacent words.
    Words,
    /// Adjacent words, the last of which is a prefix.
    Beginning,
    /// Characters of a script without spaces, anywhere.
    Characters,
}

impl Query {
    /// Parses a query.
    pub fn parse(text: &str) -> Self {
        Self::parse_as(text, false)
    }

    /// The query of a search. While it is typed, its last word may be the start of one.
    pub(super) fn of(search: &Search) -> Self {
        Self::parse_as(&search.query, search.is_typing)
    }

    fn parse_as(text: &str, is_typing: bool) -> Self {
        let mut query = Self::default();
        if text.len() > QUERY_BYTES_MAX {
            query.hint = Some("the query is too long: a few words find more");
            return query;
        }
        let text = without_operators(text);
        query.is_unclosed = text.matches('"').count() % 2 == 1;
        let mut rest = &*text;
        while let Some((clause, after)) = Clause::next(rest) {
            #[cfg(test)]
            crate::scan_counter::add(rest.len() - after.len());
            match is_typing && after.is_empty() && clause.is_incomplete(query.terms.is_empty()) {
                true => query.add_typed(&clause),
                false => query.add(&clause),
            }
            rest = after;
        }
        query.keep_stop_words_if_alone();
        query.add_pairs_of_words(&text);
        query.excluded.truncate(TERMS_MAX);
        if query.terms.is_empty() {
            query.hint = Some(match (text.trim().is_empty(), query.excluded.is_empty()) {
                (true, _) => "the query is empty: name a word, a file or an error message",
                (_, false) => "`-word` only excludes memories: add a word to look for",
                (_, true) => {
                    "the query has no letters or digits: name a word, a file or an error message"
                }
            });
        }
        query
    }

    /// Adds the words of a text without operators.
    pub(super) fn add_plain(&mut self, text: &str) {
        self.add_words(&Clause { sign: None, text, is_quoted: false, is_open: false });
    }

    fn add_typed(&mut self, clause: &Clause<'_>) {
        self.add(&Clause { is_open: true, ..*clause });
        self.typed = self.terms.iter().position(|term| term.shape == Shape::Beginning);
    }

    /// Drops the last letter of the search text for the word that is being typed. Returns false if
    /// too few are left. The index contains stems: none starts with `deploymen`, but one with
    /// `deploy`. The text of a memory decides whether it contains the word.
    pub(super) fn shorten_typed(&mut self) -> bool {
        const CHARS_MIN: usize = 4;
        let Some(term) = self.typed.and_then(|at| self.terms.get_mut(at)) else { return false };
        let mut shorter = term.shortened.clone().unwrap_or_else(|| term.text.clone());
        // Only letters that SQLite can lower.
        let is_word = term.text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_long = shorter.len() > CHARS_MIN && is_word;
        if is_long {
            shorter.pop();
            term.shortened = Some(shorter);
        }
        is_long
    }

    fn add(&mut self, clause: &Clause<'_>) {
        match clause.sign {
            Some('-') => self.excluded.extend(clause.as_one(false)),
            Some(_) => clause.as_one(true).into_iter().for_each(|term| self.push(term)),
            None if clause.is_quoted => {
                clause.as_one(false).into_iter().for_each(|term| self.push(term));
            }
            None => self.add_words(clause),
        }
    }

    fn add_words(&mut self, clause: &Clause<'_>) {
        let text = end_of_link(clause.text);
        let parts = fts_terms::identifiers(text);
        let mut words = tokens::words(text).map(|(_, word)| word).collect::<Vec<_>>();
        if clause.is_open
            && let Some(last) = words.pop()
        {
            self.push(Term::new(&[last], Shape::Beginning, false));
        }
        for word in words.into_iter().chain(tokens::words(&parts).map(|(_, word)| word)) {
            if word.starts_with(fts_terms::is_unspaced) {
                self.add_pairs(word);
            } else if is_stop_word(&word.to_lowercase()) {
                self.dropped.push(word.to_lowercase());
            } else {
                self.push(Term::new(&[word], Shape::Words, false));
            }
        }
    }

    /// A memory with words next to each other, as in the query, is more likely about the same.
    fn add_pairs_of_words(&mut self, text: &str) {
        let position = |word: &str| {
            let word = Term::new(&[word], Shape::Words, false);
            let is_it = |term: &Term| (&term.base, term.shape) == (&word.base, word.shape);
            self.terms.iter().position(is_it)
        };
        let words: Vec<_> = tokens::words(text).map(|(_, word)| position(word)).collect();
        let pairs = words.windows(2).filter_map(|pair| pair[0].zip(pair[1]));
        self.pairs = pairs.filter(|(left, right)| left != right).take(TERMS_MAX).collect();
    }

    /// Adds the pairs of a run of characters, or its only one.
    fn add_pairs(&mut self, run: &str) {
        let ends = run.char_indices().map(|(at, c)| at + c.len_utf8()).skip(1);
        let pairs = run.char_indices().zip(ends).map(|((start, _), end)| &run[start..end]);
        let alone = (run.chars().count() == 1).then_some(run);
        for pair in pairs.chain(alone) {
            match is_stop_pair(pair) {
                true => self.dropped.push(pair.to_owned()),
                false => self.push(Term::new(&[pair], Shape::Characters, false)),
            }
        }
    }

    fn push(&mut self, term: Term) {
        let known = |other: &&mut Term| other.base == term.base && other.shape == term.shape;
        #[cfg(test)]
        crate::scan_counter::add(self.terms.len() + term.text.len());
        let is_full = self.terms.len() == TERMS_MAX;
        match self.terms.iter_mut().find(known) {
            Some(other) => other.is_required |= term.is_required,
            // A comparison with every earlier term would take quadratic time.
            None if is_full => {}
            None => self.terms.push(term),
        }
    }

    /// A query of stop words only, such as `to be`, keeps them.
    fn keep_stop_words_if_alone(&mut self) {
        self.dropped.dedup();
        if self.terms.is_empty() && self.excluded.is_empty() {
            for word in std::mem::take(&mut self.dropped) {
                let is_unspaced = word.starts_with(fts_terms::is_unspaced);
                let shape = if is_unspaced { Shape::Characters } else { Shape::Words };
                self.push(Term::new(&[&word], shape, false));
            }
        }
    }
}

impl Term {
    pub(super) fn new(words: &[&str], shape: Shape, is_required: bool) -> Self {
        let text = words.join(" ").to_lowercase();
        let base = match shape {
            Shape::Words => words.iter().map(|word| tokens::base_form(word) + " ").collect(),
            Shape::Beginning | Shape::Characters => text.clone(),
        };
        Self { text, is_required, shape, base, shortened: None }
    }

    /// The FTS5 expression. Between the quotes are only letters, digits and spaces, so no query can
    /// inject syntax.
    pub(crate) fn expression(&self) -> String {
        match self.shape {
            Shape::Words => format!("\"{}\"", self.text),
            Shape::Beginning => format!("\"{}\" *", self.shortened.as_ref().unwrap_or(&self.text)),
            Shape::Characters => characters(&self.text),
        }
    }
}

/// The last two parts of the path of a URL; its host if it has no path. The start of a URL is not
/// specific: host, owner and repository are the same in every link of a project.
fn end_of_link(text: &str) -> &str {
    let Some((_, address)) = text.split_once("://") else { return text };
    link_path(text).unwrap_or(address)
}

/// The last two parts of the path of an address, if it has one.
pub(super) fn link_path(text: &str) -> Option<&str> {
    let (_, address) = text.split_once("://")?;
    let (_, path) = address.split_once('/')?;
    let path = path.trim_end_matches('/');
    let start = path.rmatch_indices('/').nth(1).map_or(0, |(at, _)| at + 1);
    Some(&path[start..]).filter(|path| path.contains(char::is_alphanumeric))
}

/// The text without operators, if it has more words than a query: there, `-m` is a flag, `*` marks
/// emphasis, and quotes cite a message. A text that is one quote stays a phrase.
pub(super) fn without_operators(text: &str) -> Cow<'_, str> {
    let is_longer = text.split_whitespace().nth(QUERY_WORDS_MAX).is_some();
    let mut outside = text.split('"').step_by(2);
    if !is_longer || !outside.any(|part| part.contains(char::is_alphanumeric)) {
        return Cow::Borrowed(text);
    }
    let mut previous = ' ';
    let plain = |letter: char| {
        let is_sign = matches!(letter, '+' | '-') && previous.is_whitespace();
        previous = if is_sign || matches!(letter, '"' | '*') { ' ' } else { letter };
        previous
    };
    Cow::Owned(text.chars().map(plain).collect())
}

/// A run of characters is the phrase of its pairs; a single one is the first of a pair, or the last
/// of a run.
fn characters(text: &str) -> String {
    let mut pairs = String::new();
    let mut chars = text.chars().peekable();
    while let Some(first) = chars.next() {
        match chars.peek() {
            Some(second) => write!(pairs, "{first}{second} ").expect("a string takes all"),
            None if pairs.is_empty() => return format!("grams : \"{first}\" *"),
            None => {}
        }
    }
    format!("grams : \"{}\"", pairs.trim_end())
}

/// A part of the query between spaces or quotes.
pub(super) struct Clause<'a> {
    sign: Option<char>,
    text: &'a str,
    is_quoted: bool,
    /// Ends in `*`.
    is_open: bool,
}

impl<'a> Clause<'a> {
    pub(super) fn next(text: &'a str) -> Option<(Self, &'a str)> {
        let text = text.trim_start();
        let first = text.chars().next()?;
        let sign = matches!(first, '+' | '-').then_some(first);
        let body = &text[sign.map_or(0, char::len_utf8)..];
        if let Some(inside) = body.strip_prefix('"') {
            let end = inside.find('"').unwrap_or(inside.len());
            let after = inside[end..].strip_prefix('"').unwrap_or("");
            let is_open = after.starts_with('*');
            return Some((Self { sign, text: &inside[..end], is_quoted: true, is_open }, after));
        }
        let end = body.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(body.len());
        let (text, after) = body.split_at(end);
        let is_open =
            text.ends_with('*') && text.trim_end_matches('*').ends_with(char::is_alphanumeric);
        // Flags such as `--json` and `-m`, and `-1`, are searched for.
        let is_word = text.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let letters = text.chars().filter(|c| c.is_alphabetic()).take(2).count();
        let sign = sign.filter(|sign| is_word && (*sign == '+' || letters == 2));
        Some((Self { sign, text, is_quoted: false, is_open }, after))
    }

    /// Returns true for quotes and signs, which request exact words.
    pub(super) fn is_operator(&self) -> bool {
        self.sign.is_some() || self.is_quoted || self.is_open
    }

    /// Returns true if the last word may be the start of a longer one. A stop word counts only if
    /// `is_alone`: it is the first word of the query.
    fn is_incomplete(&self, is_alone: bool) -> bool {
        let last = tokens::words(self.text).last().map(|(_, word)| word).unwrap_or_default();
        let is_word = !last.starts_with(fts_terms::is_unspaced);
        !self.is_quoted
            && self.sign != Some('-')
            && self.text.ends_with(last)
            && is_word
            && last.chars().count() >= TYPED_CHARS_MIN
            && (is_alone || !is_stop_word(&last.to_lowercase()))
    }

    /// The whole clause as one phrase.
    fn as_one(&self, is_required: bool) -> Vec<Term> {
        let words = tokens::words(self.text).map(|(_, word)| word);
        let (unspaced, spaced): (Vec<_>, Vec<_>) =
            words.partition(|word| word.starts_with(fts_terms::is_unspaced));
        let shape = if self.is_open { Shape::Beginning } else { Shape::Words };
        let characters =
            unspaced.iter().map(|run| Term::new(&[run], Shape::Characters, is_required));
        let mut terms: Vec<Term> = characters.collect();
        if !spaced.is_empty() {
            terms.push(Term::new(&spaced, shape, is_required));
        }
        terms
    }
}

#[cfg(test)]
mod tests;
