//! Suggests words that memories contain for those that none contains.
//!
//! The vocabulary is read from the index, one letter of the alphabet at a time. It contains stems,
//! so the word itself is taken from a memory with that stem.

use super::{Kind, Query, Shape, Term, scope::Scope, tokens};
use crate::error::Result;
use rusqlite::OptionalExtension;
use std::{cmp::Reverse, collections::HashMap};

/// Longer queries are sentences, in which an unknown word does not matter.
const TERMS_MAX: usize = 6;
/// Shorter words have too many neighbours.
const CHARS_MIN: usize = 4;
/// Words of this length may differ in two letters, shorter ones in one.
const CHARS_FOR_TWO: usize = 8;
/// Maximum number of stems that are compared.
const STEMS_MAX: usize = 200_000;
/// How many similar stems are looked up.
const TRIES: usize = 5;

impl Scope<'_> {
    /// The text of the query with unknown words replaced. `None` if there are none, or nothing is
    /// similar.
    pub(super) fn suggested_spelling(
        &self,
        query: &Query,
        unknown: &[bool],
    ) -> Result<Option<String>> {
        if query.terms.len() > TERMS_MAX {
            return Ok(None);
        }
        let mut replaced = HashMap::new();
        for (term, _) in query.terms.iter().zip(unknown).filter(|(_, unknown)| **unknown) {
            if let Some(word) = self.similar_word(term)? {
                replaced.insert(term.text.clone(), word);
            }
        }
        if replaced.is_empty() {
            return Ok(None);
        }
        let typed = &self.search.query;
        let mut text = String::with_capacity(typed.len());
        let mut copied = 0;
        for (range, word) in tokens::words(typed) {
            if let Some(word) = replaced.get(&word.to_lowercase()) {
                text += &typed[copied..range.start];
                text += word;
                copied = range.end;
            }
        }
        text += &typed[copied..];
        Ok((copied > 0).then_some(text))
    }

    fn similar_word(&self, term: &Term) -> Result<Option<String>> {
        let is_word = term.shape != Shape::Characters && term.text.chars().all(char::is_alphabetic);
        if !is_word || term.text.chars().count() < CHARS_MIN {
            return Ok(None);
        }
        let base = tokens::base_form(&term.text);
        let mut similar = Vec::new();
        for (kind, _) in &self.kinds {
            self.add_similar_stems(*kind, &base, &mut similar)?;
        }
        similar.sort();
        similar.dedup_by(|next, before| next.2 == before.2);
        for (_, _, stem, kind) in similar.into_iter().take(TRIES) {
            if let Some(word) = self.word_with_stem(kind, &stem, &term.text)?
                && self.is_known(kind, &word)?
            {
                return Ok(Some(word));
            }
        }
        Ok(None)
    }

    /// Adds stems that begin with the same letter: distance, number of memories, stem, kind.
    fn add_similar_stems(
        &self,
        kind: Kind,
        stem: &str,
        similar: &mut Vec<(usize, Reverse<i64>, String, Kind)>,
    ) -> Result<()> {
        let chars = stem.chars().count();
        let distance_max = if chars < CHARS_FOR_TWO { 1 } else { 2 };
        let first: String = stem.chars().take(1).collect();
        let index = kind.index();
        self.store.connection.execute_batch(&format!(
            "create virtual table if not exists temp.{index}_stems using fts5vocab (main, {index},
             row);
             create virtual table if not exists temp.{index}_places using fts5vocab (main, {index},
             instance)"
        ))?;
        let sql = format!(
            "select term, doc from temp.{index}_stems where term >= ?1 and term < ?1 || \
             char(0x10FFFF) limit ?2"
        );
        let mut statement = self.store.connection.prepare_cached(&sql)?;
        let mut rows = statement.query((first, STEMS_MAX as i64))?;
        while let Some(row) = rows.next()? {
            let other = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
            if other.chars().count().abs_diff(chars) > distance_max {
                continue;
            }
            let distance = strsim::osa_distance(stem, other);
            if (1..=distance_max).contains(&distance) {
                similar.push((distance, Reverse(row.get(1)?), other.to_owned(), kind));
            }
        }
        Ok(())
    }

    /// The word of a memory with this stem that is most similar, in lower case.
    fn word_with_stem(&self, kind: Kind, stem: &str, similar: &str) -> Result<Option<String>> {
        let connection = &self.store.connection;
        let sql = format!("select doc from temp.{}_places where term = ?1 limit 1", kind.index());
        let id: Option<i64> =
            connection.prepare_cached(&sql)?.query_row([stem], |row| row.get(0)).optional()?;
        let sql = format!("select {} from {} row where id = ?1", kind.text(), kind.table());
        let text: Option<String> =
            connection.prepare_cached(&sql)?.query_row([id], |row| row.get(0)).optional()?;
        let text = tokens::without_placeholders(text.as_deref().unwrap_or_default()).to_lowercase();
        // A stem can end in another letter than its word: `libraries` has `librari`.
        let beginning = &stem[..stem.char_indices().next_back().map_or(0, |(last, _)| last)];
        let words = tokens::words(&text).map(|(_, word)| word);
        let words = words.filter(|word| word.starts_with(beginning));
        let best = words.min_by_key(|word| strsim::osa_distance(word, similar));
        Ok(best.map(str::to_owned))
    }

    /// Whether the searched projects contain a word.
    fn is_known(&self, kind: Kind, word: &str) -> Result<bool> {
        let (index, query) = (kind.index(), Query::default());
        let term = Term::new(&[word], Shape::Words, false);
        let words = self.candidates_of(kind, &self.kinds[0].1, &query, 1);
        let sql = format!("select 1 from {index} where {index} match ?1 limit 1");
        let mut statement = self.store.connection.prepare_cached(&sql)?;
        Ok(statement.exists([words.within_scope(&term.expression())])?)
    }

    /// Drops letters from the end of the word that is being typed until a memory contains a word
    /// that begins with it.
    pub(super) fn complete_typed(&self, query: &mut Query) -> Result<()> {
        const LETTERS_MAX: usize = 4;
        let Some(at) = query.typed else { return Ok(()) };
        let mut shorter = query.clone();
        for _ in 0..=LETTERS_MAX {
            for (kind, _) in &self.kinds {
                let index = kind.index();
                let sql = format!("select 1 from {index} where {index} match ?1 limit 1");
                let expression = shorter.terms[at].expression();
                let mut statement = self.store.connection.prepare_cached(&sql)?;
                if statement.exists([expression])? {
                    *query = shorter;
                    return Ok(());
                }
            }
            if !shorter.shorten_typed() {
                break;
            }
        }
        Ok(())
    }
}
