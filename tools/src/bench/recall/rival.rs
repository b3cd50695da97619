//! Simpler searches in the same rows: the whole query as one phrase, or a scan for each word.

use super::sample::Question;
use crate::bench::BenchResult;
use rusqlite::{Connection, OpenFlags, params_from_iter};
use std::path::Path;

pub(super) struct Rival(Connection);

impl Rival {
    pub(super) fn open(path: &Path) -> BenchResult<Self> {
        Ok(Self(Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?))
    }

    /// The query in quotes.
    pub(super) fn phrase(&self, question: &Question) -> BenchResult<Vec<i64>> {
        let sql = "\
            select rowid from observations_fts where observations_fts match ?1 order by rank \
            limit 10";
        let mut statement = self.0.prepare_cached(sql)?;
        let ids = statement.query_map([format!("\"{}\"", question.text)], |row| row.get(0))?;
        Ok(ids.collect::<Result<_, _>>()?)
    }

    /// The rows with most of the words, found by `like`: the simplest search without an index that
    /// finds as much.
    pub(super) fn like(&self, question: &Question) -> BenchResult<Vec<i64>> {
        let one = |at: usize| format!("(title like ?{at} or narrative like ?{at})");
        let each: Vec<String> = (1..=question.words.len()).map(one).collect();
        let sql = format!(
            "select id from observations where is_visible and ({}) order by {} desc, at_us desc \
             limit 10",
            each.join(" or "),
            each.join(" + ")
        );
        let mut statement = self.0.prepare_cached(&sql)?;
        let patterns = question.words.iter().map(|word| format!("%{word}%"));
        let ids = statement.query_map(params_from_iter(patterns), |row| row.get(0))?;
        Ok(ids.collect::<Result<_, _>>()?)
    }
}
