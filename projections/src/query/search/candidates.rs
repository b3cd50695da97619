//! Which rows are worth scoring.
//!
//! The index ranks slowly: it looks up the length of every row that matches, and counts the rows of every
//! word, so a question with common words costs half a second over a million rows. Here rare words say
//! which rows come into question; common words are only looked for among those. A hundred rows or two are
//! then scored with all their words (`score.rs`). Only where every word is common is not every match
//! looked at: then those with all the words, with a word in the title, and the newest.

use super::{Kind, Query, filter::Filter, query::Term, spans::Spans, statistics::Statistics};
use crate::error::Result;
use rusqlite::{Connection, params_from_iter, types::Value};

/// A word in more rows than this is common.
const RARE_ROWS_MAX: i64 = 5000;
/// Where all words are common, so many rows are taken for each.
const COMMON_ROWS_MAX: i64 = 2000;
/// How far to go through the rows of an expression.
#[derive(Clone, Copy)]
enum Reach {
    /// So many of the newest, from the newest on.
    Newest(i64),
    /// This share of the rows, the newest ones. Where several lists are compared, going backwards takes five
    /// times as long.
    Share(f64),
}

/// A word in the name of a row is worth a little more already here.
const NAMED: f64 = 0.25;

/// Rows with a first idea of their worth, and what the words are worth.
#[derive(Debug)]
pub(crate) struct Candidates {
    /// Best first.
    pub(crate) rows: Vec<i64>,
    /// How many came into question.
    pub(crate) matched: usize,
    /// For each term: in how many rows, and what it is worth.
    pub(crate) terms: Vec<(f64, f64)>,
}

pub(crate) struct Gathering<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) kind: Kind,
    pub(crate) query: &'a Query,
    pub(crate) filter: &'a Filter,
    /// Rows of projects; nothing for all of them.
    pub(crate) projects: Option<&'a [i64]>,
}

impl Gathering<'_> {
    pub(crate) fn gather(&self, statistics: Statistics, rows_max: usize) -> Result<Candidates> {
        let rows = self.rows_in_scope(statistics)?;
        let spans = Spans::of(self.connection, self.kind)?;
        let mut terms = Vec::new();
        for term in &self.query.terms {
            let found = self.count(term, &spans)?;
            let worth = (1.0 + (rows - found + 0.5).max(0.5) / (found + 0.5)).ln();
            terms.push((found, worth));
        }
        let mut scores = Scores::default();
        let is_rare = |at: usize| terms[at].0 < RARE_ROWS_MAX as f64;
        let (rare, common): (Vec<_>, Vec<_>) = (0..terms.len()).partition(|at| is_rare(*at));
        let anchors: Vec<_> = rare.iter().filter(|at| terms[**at].0 > 0.0).copied().collect();
        for &at in &anchors {
            let expression = self.query.terms[at].expression();
            self.add(&expression, terms[at].1, &mut scores)?;
        }
        match anchors.is_empty() {
            true => self.add_common(&common, &terms, (rows, &spans), &mut scores)?,
            false => self.add_among(&any(self.query, &anchors), &common, &terms, &mut scores)?,
        }
        let (rows, matched) = scores.best(rows_max);
        Ok(Candidates { rows, matched, terms })
    }

    /// Common words, looked for among the rows with rare ones.
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

    /// Nothing but common words.
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
            // So far back that enough rows have all the words, if those know nothing of each other.
            let enough = 2.0 * COMMON_ROWS_MAX as f64;
            let newest = enough / share.max(f64::MIN_POSITIVE) / rows.max(1.0);
            self.add_newest(&all.join(" AND "), Reach::Share(newest), spans, worth, scores)?;
        }
        let newest = Reach::Newest(COMMON_ROWS_MAX);
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

    /// Every row with this.
    fn add(&self, expression: &str, worth: f64, scores: &mut Scores) -> Result<()> {
        self.add_part(expression, "", &[], worth, scores)
    }

    /// The newest rows with this. Rows of each machine have rising numbers.
    fn add_newest(
        &self,
        expression: &str,
        reach: Reach,
        spans: &Spans,
        worth: f64,
        scores: &mut Scores,
    ) -> Result<()> {
        let index = self.kind.index();
        for (first, last) in spans.each() {
            let (part, numbers) = match reach {
                Reach::Newest(rows_max) => (
                    format!("and {index}.rowid between ? and ? order by rowid desc limit ?"),
                    vec![first, last, rows_max],
                ),
                Reach::Share(share) => {
                    let len = (last - first + 1) as f64;
                    let first = first + (len * (1.0 - share)).max(0.0) as i64;
                    (format!("and {index}.rowid between ? and ?"), vec![first, last])
                }
            };
            self.add_part(expression, &part, &numbers, worth, scores)?;
        }
        Ok(())
    }

    fn add_part(
        &self,
        expression: &str,
        part: &str,
        numbers: &[i64],
        worth: f64,
        scores: &mut Scores,
    ) -> Result<()> {
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
        while let Some(row) = rows.next()? {
            scores.0.push((row.get(0)?, worth));
        }
        Ok(())
    }

    /// In how many rows a term is. Beyond what is rare it is estimated from how densely the first ones stand.
    fn count(&self, term: &Term, spans: &Spans) -> Result<f64> {
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

    /// Words are rare or common within the projects that are searched.
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

    /// With all that is required, and without all that is excluded.
    pub(crate) fn within(&self, expression: &str) -> String {
        let mut within = self.within_scope(expression);
        for term in self.query.terms.iter().filter(|term| term.is_required) {
            within = format!("{within} AND ({})", term.expression());
        }
        if !self.query.excluded.is_empty() {
            let excluded: Vec<_> = self.query.excluded.iter().map(Term::expression).collect();
            within = format!("({within}) NOT ({})", excluded.join(" OR "));
        }
        within
    }
}

pub(crate) fn any(query: &Query, terms: &[usize]) -> String {
    let terms: Vec<_> = terms.iter().map(|at| query.terms[*at].expression()).collect();
    terms.join(" OR ")
}

/// What each word gives to each row. Sorting them once is faster than looking each row up.
#[derive(Default)]
struct Scores(Vec<(i64, f64)>);

impl Scores {
    /// The `rows_max` best, newer ones first among equals, and how many there were.
    fn best(mut self, rows_max: usize) -> (Vec<i64>, usize) {
        self.0.sort_unstable_by_key(|(id, _)| *id);
        self.0.dedup_by(|next, before| {
            let is_same = next.0 == before.0;
            before.1 += if is_same { next.1 } else { 0.0 };
            is_same
        });
        let mut rows = self.0;
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
