//! Estimates how common the word is that is being typed.
//!
//! FTS5 merges the postings of all words with a prefix before it returns the first row, again in
//! every statement. With `th` that is half of the index: 50 ms per statement at 100,000 memories,
//! and a search has four for each kind. The newest rows show how common a prefix is, and a very
//! common prefix selects nothing.

use super::{
    candidates::newest, query::Query, score::Matcher, searching::Searching, statistics::Statistics,
};
use crate::error::Result;

/// In smaller indexes every prefix is fast.
pub(super) const INDEX_ROWS_MIN: f64 = 20_000.0;
/// Number of the newest rows to read.
const SAMPLE_ROWS: usize = 200;
/// With fewer matches the sample is not reliable, and the index is used.
const FOUND_ROWS_MIN: usize = 5;
/// From this share on, the index is not searched for the word. It still affects the score.
const EVERYWHERE: f64 = 0.1;

/// The word that is being typed, if it is common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Typed {
    /// Its position among the terms.
    pub(crate) term: usize,
    /// The share of rows that contain it.
    pub(crate) share: f64,
}

impl Typed {
    /// Checks that it is in too many rows to select any.
    pub(crate) fn is_everywhere(&self) -> bool {
        self.share >= EVERYWHERE
    }
}

impl Searching<'_> {
    /// Looks for the word that is being typed in the newest rows. `None` if it is rare, or if every
    /// row must or must not contain some word: the index decides that.
    pub(super) fn sample_typed(&self, query: &Query) -> Result<Option<Typed>> {
        let Some(term) = query.typed else { return Ok(None) };
        if !query.excluded.is_empty() || query.terms.iter().any(|term| term.is_required) {
            return Ok(None);
        }
        let Some((kind, filter)) = self.kinds().into_iter().next() else { return Ok(None) };
        let connection = &self.store.connection;
        if Statistics::of(connection, kind)?.rows < INDEX_ROWS_MIN {
            return Ok(None);
        }
        let word = Query { terms: vec![query.terms[term].clone()], ..Query::default() };
        let matcher = Matcher::new(&word);
        let sql = format!(
            "select concat_ws(' ', {}, identifiers) from {} where id = ?1",
            kind.columns().join(", "),
            kind.table()
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let ids = newest(connection, kind, &filter, self.projects.as_deref(), SAMPLE_ROWS)?;
        let mut found = 0;
        for id in &ids {
            let text: String = statement.query_row([id], |row| row.get(0))?;
            found += usize::from(matcher.terms_in(&text).next().is_some());
        }
        let share = found as f64 / ids.len().max(1) as f64;
        Ok((found >= FOUND_ROWS_MIN).then_some(Typed { term, share }))
    }
}
