//! Selects the rows that are worth scoring.
//!
//! FTS5's own ranking is slow: it looks up the length of every matching row and counts the rows of
//! every word, so a query with common words takes half a second over a million rows. Here rare
//! words select the candidates, and common words are only looked up among those. One or two hundred
//! rows are then scored with all words (`score.rs`). Only if every word is common are some matches
//! skipped: candidates are then rows with all words, rows with a word in the title, and the newest
//! ones.

use super::{
    Kind, Query, filter::Filter, query::Term, spans::Spans, statistics::Statistics, typed::Typed,
};
use crate::error::{Error, Result};
use rusqlite::{Connection, params_from_iter, types::Value};

/// A word in more rows than this is common.
const RARE_ROWS_MAX: i64 = 5000;
/// For hooks, a word in more rows than this is common. It is in 1 of 100 among 100,000.
const SCANNED_ROWS_MAX: i64 = 1000;
/// How many rows are counted before their total is estimated.
const SCOPE_SCANNED_ROWS_MAX: i64 = 2000;
/// If all words are common, this many rows are taken for each.
const COMMON_ROWS_MAX: i64 = 2000;
/// If the only word is one that is being typed and in every tenth row, this many rows are taken.
const RECENT_ROWS: usize = 300;

/// Which rows of an expression to read.
#[derive(Clone, Copy)]
enum RowSelection {
    /// This many, newest first.
    Newest(i64),
    /// This share of the rows, the newest ones. With several terms, reading backwards takes five
    /// times as long.
    Share(f64),
}

/// Extra weight of a word in the title of a row.
const NAMED: f64 = 0.25;

/// Candidate rows, and the weights of the terms.
#[derive(Debug)]
pub(crate) struct Candidates {
    /// Best first.
    pub(crate) rows: Vec<i64>,
    /// Number of rows considered.
    pub(crate) matched: usize,
    /// Whether more rows match than were considered.
    pub(crate) is_capped: bool,
    /// For each term: the number of rows, and its weight.
    pub(crate) terms: Vec<(f64, f64)>,
    /// Number of rows in the searched projects.
    pub(crate) rows_in_scope: f64,
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
    /// How common the word that is being typed is, if a sample shows it.
    pub(crate) typed: Option<Typed>,
}

impl CandidateSearch<'_> {
    pub(crate) fn gather(&self, statistics: Statistics, rows_max: usize) -> Result<Candidates> {
        let rows = self.rows_in_scope(statistics)?;
        let spans = Spans::of(self.connection, self.kind)?;
        let mut terms = Vec::new();
        for (at, term) in self.query.terms.iter().enumerate() {
            let found = match self.typed.filter(|typed| typed.term == at) {
                Some(typed) => typed.share * rows,
                None => self.count(term, &spans)?,
            };
            terms.push((found, worth(found, rows)));
        }
        let mut scores = Scores::default();
        let is_rare = |at: usize| terms[at].0 < RARE_ROWS_MAX as f64;
        let unread = self.typed.filter(Typed::is_everywhere).map(|typed| typed.term);
        let read = (0..terms.len()).filter(|at| Some(*at) != unread);
        let (rare, common): (Vec<_>, Vec<_>) = read.partition(|at| is_rare(*at));
        let anchors: Vec<_> = rare.iter().filter(|at| terms[**at].0 > 0.0).copied().collect();
        for &at in &anchors {
            let expression = self.query.terms[at].expression();
            self.add(&expression, terms[at].1, &mut scores)?;
        }
        if unread.is_some() && rare.is_empty() && common.is_empty() {
            return self.recent(terms, rows);
        }
        match anchors.is_empty() {
            true => self.add_common(&common, &terms, (rows, &spans), &mut scores)?,
            false => self.add_among(&any(self.query, &anchors), &common, &terms, &mut scores)?,
        }
        let (rows_in_scope, is_capped) = (rows, scores.is_capped);
        let (rows, matched) = scores.best(rows_max);
        Ok(Candidates { rows, matched, is_capped, terms, rows_in_scope })
    }

    /// Candidates by rare words alone, with one short scan per word. Common words only affect the
    /// score. For hooks, which a session waits for.
    pub(crate) fn gather_rare(&self, rows_max: usize) -> Result<Candidates> {
        let spans = Spans::of(self.connection, self.kind)?;
        let index = self.kind.index();
        let sql = format!("select rowid from {index} where {index} match ?1 limit ?2");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut scan = |expression: &str, rows_max: i64| {
            let ids = statement.query_map((self.within(expression), rows_max), |row| row.get(0))?;
            let ids = ids.collect::<rusqlite::Result<Vec<i64>>>()?;
            let is_all = (ids.len() as i64) < rows_max;
            let seen = ids.last().filter(|_| !is_all).map_or(spans.len(), |last| spans.upto(*last));
            let share = (spans.len() as f64 / seen.max(1) as f64).max(1.0);
            Ok::<_, Error>((ids.len() as f64 * share, if is_all { ids } else { Vec::new() }))
        };
        let everything = self.scope().unwrap_or_else(|| "\"\"".into());
        let (rows_in_scope, _) = scan(&everything, SCOPE_SCANNED_ROWS_MAX)?;
        let (mut terms, mut scores) = (Vec::new(), Scores::default());
        for term in &self.query.terms {
            let (found, ids) = scan(&term.expression(), SCANNED_ROWS_MAX)?;
            let worth = worth(found, rows_in_scope);
            terms.push((found, worth));
            scores.rows.extend(ids.into_iter().map(|id| (id, worth)));
        }
        let (rows, matched) = scores.best(rows_max);
        Ok(Candidates { rows, matched, is_capped: false, terms, rows_in_scope })
    }

    /// Adds common words, only for rows with rare ones.
    fn add_among(
        &self,
        rare: &str,
        common: &[usize],
        terms: &[(f64, f64)],
        scores: &mut Scores,
    ) -> Result<()> {
        for &at in common {
            let expression = format!("({rare}) AND {}", self.query.terms[at].expression());
            self.add(&expression, terms[at].1, scores)?;
        }
        Ok(())
    }

    /// Adds candidates if all words are common.
    fn add_common(
        &self,
        common: &[usize],
        terms: &[(f64, f64)],
        (rows, spans): (f64, &Spans),
        scores: &mut Scores,
    ) -> Result<()> {
        let all: Vec<_> = common.iter().map(|at| self.query.terms[*at].expression()).collect();
        if all.len() > 1 {
            let worth = common.iter().map(|at| terms[*at].1).sum();
            let share: f64 = common.iter().map(|at| (terms[*at].0 / rows).min(1.0)).product();
            // Far enough back to contain enough rows with all words, if words are independent.
            let enough = 2.0 * COMMON_ROWS_MAX as f64;
            let newest = enough / share.max(f64::MIN_POSITIVE) / rows.max(1.0);
            self.add_newest(&all.join(" AND "), RowSelection::Share(newest), spans, worth, scores)?;
        }
        let newest = RowSelection::Newest(COMMON_ROWS_MAX);
        let name = self.kind.columns()[0];
        for (expression, at) in all.iter().zip(common) {
            let worth = terms[*at].1;
            if !expression.starts_with("grams") && self.kind != Kind::Prompt {
                let named = format!("{name} : {expression}");
                self.add_newest(&named, newest, spans, worth * NAMED, scores)?;
            }
            self.add_newest(expression, newest, spans, worth, scores)?;
        }
        Ok(())
    }

    /// The newest rows, independent of their words.
    fn recent(&self, terms: Vec<(f64, f64)>, rows_in_scope: f64) -> Result<Candidates> {
        let rows = newest(self.connection, self.kind, self.filter, self.projects, RECENT_ROWS)?;
        let share = self.typed.map_or(0.0, |typed| typed.share);
        let matched = (rows.len() as f64 * share) as usize;
        Ok(Candidates { rows, matched, is_capped: true, terms, rows_in_scope })
    }

    /// Adds every row that matches.
    fn add(&self, expression: &str, worth: f64, scores: &mut Scores) -> Result<()> {
        self.add_part(expression, "", &[], worth, scores).map(drop)
    }

    /// Adds the newest rows that match. Row ids rise with time for each host.
    fn add_newest(
        &self,
        expression: &str,
        reach: RowSelection,
        spans: &Spans,
        worth: f64,
        scores: &mut Scores,
    ) -> Result<()> {
        let index = self.kind.index();
        for (first, last) in spans.each() {
            let (part, numbers) = match reach {
                RowSelection::Newest(rows_max) => (
                    format!("and {index}.rowid between ? and ? order by rowid desc limit ?"),
                    vec![first, last, rows_max],
                ),
                RowSelection::Share(share) => {
                    let len = (last - first + 1) as f64;
                    let first = first + (len * (1.0 - share)).max(0.0) as i64;
                    (format!("and {index}.rowid between ? and ?"), vec![first, last])
                }
            };
            let added = self.add_part(expression, &part, &numbers, worth, scores)?;
            if let RowSelection::Newest(rows_max) = reach {
                scores.is_capped |= added as i64 == rows_max;
            }
        }
        Ok(())
    }

    /// Returns the number of rows.
    fn add_part(
        &self,
        expression: &str,
        part: &str,
        numbers: &[i64],
        worth: f64,
        scores: &mut Scores,
    ) -> Result<usize> {
        let index = self.kind.index();
        let join = match self.filter.is_empty() {
            true => String::new(),
            false => format!("join {} row on row.id = {index}.rowid", self.kind.table()),
        };
        let sql = format!(
            "select {index}.rowid from {index} {join} where {index} match ?{} {part}",
            self.filter.sql()
        );
        let mut values = vec![Value::Text(self.within(expression))];
        values.extend(self.filter.values.iter().cloned());
        values.extend(numbers.iter().copied().map(Value::Integer));
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        let before = scores.rows.len();
        while let Some(row) = rows.next()? {
            scores.rows.push((row.get(0)?, worth));
        }
        Ok(scores.rows.len() - before)
    }

    /// The number of rows with a term. Above the limit for rare words it is estimated from the
    /// density of the first ones.
    pub(super) fn count(&self, term: &Term, spans: &Spans) -> Result<f64> {
        let index = self.kind.index();
        let sql = format!(
            "select count(*), max(rowid) from
                 (select rowid from {index} where {index} match ?1 limit ?2)"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let expression = self.within_scope(&term.expression());
        let (count, last): (i64, Option<i64>) = statement
            .query_row((expression, RARE_ROWS_MAX), |row| Ok((row.get(0)?, row.get(1)?)))?;
        let all = spans.len();
        let seen = last.filter(|_| count == RARE_ROWS_MAX).map_or(all, |last| spans.upto(last));
        Ok(count as f64 * (all as f64 / seen.max(1) as f64).max(1.0))
    }

    /// Whether a word is rare is decided within the searched projects.
    fn rows_in_scope(&self, statistics: Statistics) -> Result<f64> {
        let Some(scope) = self.scope() else { return Ok(statistics.rows) };
        let index = self.kind.index();
        let sql =
            format!("select count(*) from (select 1 from {index} where {index} match ?1 limit ?2)");
        let rows: i64 = self
            .connection
            .prepare_cached(&sql)?
            .query_row((scope, 4 * RARE_ROWS_MAX), |row| row.get(0))?;
        Ok(if rows < 4 * RARE_ROWS_MAX { rows as f64 } else { statistics.rows })
    }

    fn scope(&self) -> Option<String> {
        let projects = self.projects?.iter().map(|id| format!("\"inproject{id}\""));
        let projects = projects.collect::<Vec<_>>().join(" OR ");
        Some(format!("scope : ({})", if projects.is_empty() { "\"\"".into() } else { projects }))
    }

    fn within_scope(&self, expression: &str) -> String {
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

/// A condition on the project of a row.
pub(super) fn in_projects(projects: Option<&[i64]>) -> String {
    projects.map_or_else(String::new, |projects| {
        let ids: Vec<String> = projects.iter().map(ToString::to_string).collect();
        format!(" and row.project in ({})", ids.join(", "))
    })
}

/// Ids of the newest rows that match the filters.
pub(super) fn newest(
    connection: &Connection,
    kind: Kind,
    filter: &Filter,
    projects: Option<&[i64]>,
    rows_max: usize,
) -> Result<Vec<i64>> {
    let sql = format!(
        "select id from visible_{} row where 1{}{} order by at_us desc, id desc limit ?",
        kind.table(),
        filter.sql(),
        in_projects(projects)
    );
    let mut values = filter.values.clone();
    values.push(Value::Integer(i64::try_from(rows_max).unwrap_or(i64::MAX)));
    let mut statement = connection.prepare_cached(&sql)?;
    let ids = statement.query_map(params_from_iter(values), |row| row.get(0))?;
    Ok(ids.collect::<rusqlite::Result<_>>()?)
}

/// The weight of a term that `found` of `rows` rows contain.
pub(crate) fn worth(found: f64, rows: f64) -> f64 {
    (1.0 + (rows - found + 0.5).max(0.5) / (found + 0.5)).ln()
}

pub(crate) fn any(query: &Query, terms: &[usize]) -> String {
    let terms: Vec<_> = terms.iter().map(|at| query.terms[*at].expression()).collect();
    terms.join(" OR ")
}

/// What each word adds to each row. Sorting once is faster than a lookup per row.
#[derive(Default)]
struct Scores {
    rows: Vec<(i64, f64)>,
    is_capped: bool,
}

impl Scores {
    /// The `rows_max` best rows, newer ones first if equal, and the number of all.
    fn best(mut self, rows_max: usize) -> (Vec<i64>, usize) {
        self.rows.sort_unstable_by_key(|(id, _)| *id);
        self.rows.dedup_by(|next, before| {
            let is_same = next.0 == before.0;
            before.1 += if is_same { next.1 } else { 0.0 };
            is_same
        });
        let mut rows = self.rows;
        let matched = rows.len();
        let order = |left: &(i64, f64), right: &(i64, f64)| {
            right.1.total_cmp(&left.1).then(right.0.cmp(&left.0))
        };
        if matched > rows_max {
            rows.select_nth_unstable_by(rows_max, order);
            rows.truncate(rows_max);
        }
        rows.sort_unstable_by(order);
        (rows.into_iter().map(|(id, _)| id).collect(), matched)
    }
}
