//! Selects memories by their words, and ranks them with FTS5's BM25.
//!
//! FTS5 ranks every row that matches, and counts the rows of every word. With common words that
//! takes half a second over a million rows. So rare words select the rows, and common ones only if
//! all are common.

use super::{Filter, Kind, Query, query::Term};
use crate::error::Result;
use rusqlite::{Connection, params_from_iter, types::Value};
use std::collections::HashSet;

/// A word in more rows than this is common.
pub(super) const RARE_ROWS_MAX: usize = 5000;
/// Matches are counted up to this number.
const COUNTED_ROWS_MAX: usize = 2000;
/// The weight of a word in the title; elsewhere it is 1.
const TITLE_WEIGHT: f64 = 2.0;

/// The rows with words of a query.
#[derive(Debug)]
pub(crate) struct Candidates {
    pub(crate) kind: Kind,
    /// Row ids and BM25 scores, best first.
    pub(crate) rows: Vec<(i64, f64)>,
    /// What they match; empty if no row has a word.
    expression: String,
    /// For each term of the query.
    pub(crate) terms: Vec<TermRows>,
    /// Number of rows in the searched projects, up to a limit.
    pub(crate) rows_in_scope: f64,
}

#[derive(Debug)]
pub(crate) struct TermRows {
    /// Their number; estimated for a common term.
    pub(crate) count: f64,
    /// The weight of the term: higher for a rare one.
    pub(crate) worth: f64,
    /// `None` for a common term among others: then any row counts as having it.
    rows: Option<HashSet<i64>>,
}

impl TermRows {
    pub(crate) fn contains(&self, id: i64) -> bool {
        self.rows.as_ref().is_none_or(|rows| rows.contains(&id))
    }

    fn is_rare(&self) -> bool {
        self.rows.is_some()
    }
}

pub(crate) struct CandidateSearch<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) kind: Kind,
    pub(crate) query: &'a Query,
    pub(crate) filter: &'a Filter,
    /// Row ids of projects; `None` for all.
    pub(crate) projects: Option<&'a [i64]>,
    /// An expression that every candidate must match, in addition to the words.
    pub(crate) also: Option<&'a str>,
    /// A word in more rows than this is common.
    pub(crate) rare_rows_max: usize,
}

impl CandidateSearch<'_> {
    pub(crate) fn candidates(&self, rows_max: usize) -> Result<Candidates> {
        let rows_in_scope = self.rows_in_scope()?;
        let terms = self.query.terms.iter().map(|term| self.term_rows(term, rows_in_scope));
        let terms = terms.collect::<Result<Vec<_>>>()?;
        let mut found = Candidates {
            kind: self.kind,
            rows: Vec::new(),
            expression: String::new(),
            terms,
            rows_in_scope,
        };
        let (rare, common): (Vec<usize>, Vec<usize>) = (0..found.terms.len())
            .filter(|at| found.terms[*at].count > 0.0)
            .partition(|at| found.terms[*at].is_rare());
        let selecting = if rare.is_empty() { &common } else { &rare };
        if selecting.is_empty() {
            return Ok(found);
        }
        let selected = any(self.query, selecting);
        for at in common.iter().filter(|_| !rare.is_empty()) {
            let among = format!("({selected}) AND {}", self.query.terms[*at].expression());
            found.terms[*at].rows = Some(self.ids(&self.within_scope(&among), usize::MAX)?);
        }
        found.expression = self.within(&selected);
        // A row with a pair has both words, so pairs affect the order only.
        let terms = &self.query.terms;
        let is_selecting =
            |(left, right): &&(usize, usize)| selecting.contains(left) && selecting.contains(right);
        let pairs = self.query.pairs.iter().filter(is_selecting);
        let pairs = pairs
            .map(|(left, right)| format!(" OR \"{} {}\"", terms[*left].text, terms[*right].text));
        let ranking = self.within(&(selected + &pairs.collect::<String>()));
        found.rows = self.ranked(&ranking, rows_max)?;
        Ok(found)
    }

    /// The number of rows that match, and whether there are more.
    pub(crate) fn matched(&self, found: &Candidates) -> Result<(usize, bool)> {
        if found.expression.is_empty() {
            return Ok((0, false));
        }
        let index = self.kind.index();
        let sql =
            format!("select count(*) from (select 1 from {index} {} limit ?)", self.matching());
        let values = self.matching_values(&found.expression, COUNTED_ROWS_MAX);
        let mut statement = self.connection.prepare_cached(&sql)?;
        let rows: i64 = statement.query_row(params_from_iter(values), |row| row.get(0))?;
        Ok((rows as usize, rows as usize == COUNTED_ROWS_MAX))
    }

    /// The best rows that match an expression, with their BM25 scores.
    fn ranked(&self, expression: &str, rows_max: usize) -> Result<Vec<(i64, f64)>> {
        let index = self.kind.index();
        let title = if self.kind == Kind::Prompt { 1.0 } else { TITLE_WEIGHT };
        // The others are parts of names and character pairs.
        let others = ", 1.0".repeat(self.kind.columns().len() + 1);
        let sql = format!(
            "select {index}.rowid, -bm25({index}, {title:?}{others}, 0.0) from {index} {}
             order by 2 desc, 1 desc limit ?",
            self.matching()
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let rows = statement
            .query_map(params_from_iter(self.matching_values(expression, rows_max)), |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The condition on rows of the index: the words and the filter.
    fn matching(&self) -> String {
        let index = self.kind.index();
        let join = match self.filter.is_empty() {
            true => String::new(),
            false => format!("join {} row on row.id = {index}.rowid", self.kind.table()),
        };
        format!("{join} where {index} match ?{}", self.filter.sql())
    }

    fn matching_values(&self, expression: &str, rows_max: usize) -> Vec<Value> {
        let mut values = vec![Value::Text(expression.into())];
        values.extend(self.filter.values.iter().cloned());
        values.push(Value::Integer(rows_max as i64));
        values
    }

    fn term_rows(&self, term: &Term, rows_in_scope: f64) -> Result<TermRows> {
        let expression = self.within_scope(&term.expression());
        let rows = match &term.shortened {
            None => self.ids(&expression, self.rare_rows_max)?,
            Some(_) => self.ids_with_text(&expression, &term.text)?,
        };
        let (count, rows) = match rows.len() < self.rare_rows_max {
            true => (rows.len() as f64, Some(rows)),
            // More than were read, less than all.
            false => ((rows.len() as f64 * rows_in_scope.max(rows.len() as f64)).sqrt(), None),
        };
        Ok(TermRows { count, worth: worth(count, rows_in_scope), rows })
    }

    fn ids(&self, expression: &str, rows_max: usize) -> Result<HashSet<i64>> {
        let index = self.kind.index();
        let sql = format!("select rowid from {index} where {index} match ?1 limit ?2");
        let rows_max = i64::try_from(rows_max).unwrap_or(i64::MAX);
        let mut statement = self.connection.prepare_cached(&sql)?;
        let ids = statement.query_map((expression, rows_max), |row| row.get(0))?;
        Ok(ids.collect::<rusqlite::Result<_>>()?)
    }

    /// The index contains stems: none starts with `deploymen`, but one with `deploy`. The text of
    /// a row decides whether it contains the word.
    fn ids_with_text(&self, expression: &str, text: &str) -> Result<HashSet<i64>> {
        let (index, table) = (self.kind.index(), self.kind.table());
        let sql = format!(
            "select row.id from {index} join {table} row on row.id = {index}.rowid
             where {index} match ?1 and instr(lower({}), ?2) > 0 limit ?3",
            self.kind.text()
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let values = (expression, text, self.rare_rows_max as i64);
        let ids = statement.query_map(values, |row| row.get(0))?;
        Ok(ids.collect::<rusqlite::Result<_>>()?)
    }

    /// Whether a word is rare is decided within the searched projects.
    fn rows_in_scope(&self) -> Result<f64> {
        let index = self.kind.index();
        let rows_max = 4 * self.rare_rows_max as i64;
        let rows: i64 = match self.scope() {
            None => {
                let sql = format!("select count(*) from (select 1 from {index}_docsize limit ?1)");
                self.connection.prepare_cached(&sql)?.query_row([rows_max], |row| row.get(0))?
            }
            Some(scope) => {
                let sql = format!(
                    "select count(*) from (select 1 from {index} where {index} match ?1 limit ?2)"
                );
                let mut statement = self.connection.prepare_cached(&sql)?;
                statement.query_row((scope, rows_max), |row| row.get(0))?
            }
        };
        Ok(rows as f64)
    }

    fn scope(&self) -> Option<String> {
        let projects = self.projects?.iter().map(|id| format!("\"inproject{id}\""));
        let projects = projects.collect::<Vec<_>>().join(" OR ");
        Some(format!("scope : ({})", if projects.is_empty() { "\"\"".into() } else { projects }))
    }

    pub(super) fn within_scope(&self, expression: &str) -> String {
        match self.scope() {
            Some(scope) => format!("{scope} AND ({expression})"),
            None => format!("({expression})"),
        }
    }

    /// Adds the required and the excluded terms to an expression.
    pub(crate) fn within(&self, expression: &str) -> String {
        let mut within = self.within_scope(expression);
        for term in self.query.terms.iter().filter(|term| term.is_required) {
            within = format!("{within} AND ({})", term.expression());
        }
        if let Some(also) = self.also {
            within = format!("{within} AND ({also})");
        }
        if !self.query.excluded.is_empty() {
            let excluded: Vec<_> = self.query.excluded.iter().map(Term::expression).collect();
            within = format!("({within}) NOT ({})", excluded.join(" OR "));
        }
        within
    }
}

/// The weight of a term that `found` of `rows` rows contain.
pub(crate) fn worth(found: f64, rows: f64) -> f64 {
    (1.0 + (rows - found + 0.5).max(0.5) / (found + 0.5)).ln()
}

pub(crate) fn any(query: &Query, terms: &[usize]) -> String {
    let terms: Vec<_> = terms.iter().map(|at| query.terms[*at].expression()).collect();
    terms.join(" OR ")
}
