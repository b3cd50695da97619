//! Finds the memories relevant to a prompt or a failure, if any.
//!
//! A person reads search results and tries again. These memories are added to a prompt that did not
//! request any, so a hit needs evidence: a statement with two words of the prompt that few memories
//! contain, or one name, or a meaning that is clearly nearer to the prompt than usual in the
//! project. For a failed command, at least one word must be from its error.

use super::{
    Kind, Meaning, MemoryId, Search,
    candidates::CandidateSearch,
    filter::Filter,
    prompt_terms::PromptTerms,
    repeats::Statement,
    score::{Matcher, Score, Scorer},
    searching::{Searching, newer_first_where_close},
    statements::terms_in,
    statistics::Statistics,
};
use crate::{Store, error::Result, query::context::WIDE, store::sql_values::items};
use rusqlite::{named_params, params_from_iter, types::Value};
use std::collections::BTreeSet;

/// Maximum number of memories that are looked up.
const GATHERED_ROWS: usize = 200;
/// Maximum number of memories that are scored.
const SCORED_ROWS: usize = 60;
/// Minimum evidence of a prompt's words together, in one statement of a memory: in a long memory,
/// distant words match by chance. 1 is a word that a single memory contains.
const EVIDENCE_IN_STATEMENT_MIN: f64 = 0.8;
/// Minimum evidence of a failure's words, anywhere in a memory: its title may name the command, and
/// a fact the error.
const EVIDENCE_OF_FAILURE_MIN: f64 = 1.0;
/// The same if one of the words is a name, of a prompt or a failure.
const EVIDENCE_OF_NAME_MIN: f64 = 0.5;
/// Maximum number of memories that are found by meaning.
const NEAR_ROWS: usize = 20;
/// How much nearer than usual a memory must be to need no other evidence.
const CLEARLY_NEARER: f64 = 0.15;
/// Maximum number of notes of other projects that are scored, and of those that are hits.
const WIDE_SCORED: i64 = 100;
const WIDE_HITS: usize = 2;
/// Maximum number of hits that are compared with each other. A session is given fewer.
const COMPARED_MAX: usize = 12;
/// Hits with a smaller share of the best score are left out.
const SHARE_OF_BEST_MIN: f64 = 0.5;

/// A prompt, and the memories to search.
#[derive(Debug, Clone, Default)]
pub struct Recall<'a> {
    /// The text of the prompt. No character of it is an operator.
    pub prompt: &'a str,
    /// The key of the project.
    pub project: &'a str,
    /// The folder of the project, for notes that apply to a folder tree.
    pub root: &'a str,
    /// Only memories before this time, in microseconds since 1970.
    pub until_us: u64,
    /// Excludes the memories of this session, which are in its history.
    pub session: &'a str,
    /// Maximum number of memories.
    pub limit: usize,
}

/// A failed command, and the memories to search.
#[derive(Debug, Clone, Default)]
pub struct FailureRecall<'a> {
    /// The command.
    pub command: &'a str,
    /// Its output.
    pub error: &'a str,
    /// The key of the project.
    pub project: &'a str,
    /// Only memories before this time, in microseconds since 1970.
    pub until_us: u64,
    /// Excludes the memories of this session, which are in its history.
    pub session: &'a str,
    /// Maximum number of memories.
    pub limit: usize,
}

/// The expression for memories about pitfalls, and about problems with their solution.
const LESSONS: &str = "concepts : (\"gotcha\" OR \"problem solution\")";

impl Store {
    /// The ids of the observations relevant to a prompt, best first. Empty if there is too little
    /// evidence.
    pub fn recall(&self, recall: &Recall<'_>, meaning: Option<&dyn Meaning>) -> Result<Vec<i64>> {
        self.recall_by(&PromptTerms::of(recall.prompt), recall, None, meaning)
    }

    /// The ids of the observations about failures like this one, best first. Empty if there is too
    /// little evidence.
    pub fn recall_failure(&self, failure: &FailureRecall<'_>) -> Result<Vec<i64>> {
        let FailureRecall { command, error, project, until_us, session, limit } = *failure;
        let recall = Recall { prompt: "", project, root: "", until_us, session, limit };
        self.recall_by(&PromptTerms::of_failure(command, error), &recall, Some(LESSONS), None)
    }

    fn recall_by(
        &self,
        terms: &PromptTerms,
        recall: &Recall<'_>,
        also: Option<&str>,
        meaning: Option<&dyn Meaning>,
    ) -> Result<Vec<i64>> {
        if !terms.is_enough() {
            return Ok(Vec::new());
        }
        let search = Search { until_us: Some(recall.until_us), ..Search::default() };
        let projects = Some(self.projects_named(recall.project)?);
        let mut searching = Searching::new(self, &search, projects);
        let kind = Kind::Observation;
        let mut filter = Filter::of(&search, kind).unwrap_or_default();
        filter.add("not row.is_retired", []);
        if !recall.session.is_empty() {
            let sql = "(row.session is null or row.session is not
                            (select id from sessions where session = ? and log = 0))";
            filter.add(sql, [recall.session.to_owned()]);
        }
        let gathering = CandidateSearch {
            connection: &self.connection,
            kind,
            query: &terms.query,
            filter: &Filter::default(),
            projects: searching.projects.as_deref(),
            also,
            typed: None,
        };
        let statistics = Statistics::of(&self.connection, kind)?;
        let candidates = gathering.gather_rare(GATHERED_ROWS)?;
        let rows = self.passing(&filter, candidates.rows, SCORED_ROWS)?;
        let worths: Vec<f64> = candidates.terms.iter().map(|(_, worth)| *worth).collect();
        let is_failure = also.is_some();
        let rows_in_scope = candidates.rows_in_scope;
        let matcher = Matcher::new(&terms.query);
        let evidence =
            Evidence { terms, worths: &worths, rows: rows_in_scope, is_failure, matcher };
        let scorer = Scorer::new(&terms.query, worths.clone(), statistics.average_words);
        let wide = match also {
            None => {
                self.wide_note_ids(recall, searching.projects.as_deref().unwrap_or_default())?
            }
            Some(_) => Vec::new(),
        };
        searching.score(&scorer, kind, rows)?;
        searching.score(&scorer, kind, wide.clone())?;
        let is_near: Box<dyn Fn(&Score) -> bool> = match meaning {
            None => Box::new(|_| false),
            Some(meaning) => {
                let near = searching.near(meaning, &[(kind, filter)].into(), NEAR_ROWS)?;
                let is_new = |name: &MemoryId| !searching.scored.contains_key(name);
                let near = near.into_iter().filter(is_new).map(|name| name.id).collect();
                searching.score_near(&scorer, kind, near)?;
                let fusion = searching.fuse(meaning)?;
                let is_clear = move |cosine| fusion.nearness(cosine) >= CLEARLY_NEARER;
                Box::new(move |score| score.cosine.is_some_and(is_clear))
            }
        };
        let mut ranked: Vec<(&MemoryId, &Score)> =
            searching.scored.iter().map(|(name, (score, _))| (name, score)).collect();
        ranked.sort_by(|(left_name, left), (right_name, right)| {
            right.total.total_cmp(&left.total).then(right_name.cmp(left_name))
        });
        let (mut hits, mut best) = (Vec::new(), 0.0);
        for (name, score) in ranked {
            if score.total < best * SHARE_OF_BEST_MIN {
                break;
            }
            if is_near(score) || evidence.is_enough(score, || self.statements_of(name.id))? {
                best = f64::max(best, score.total);
                hits.push((*name, score.total));
            }
        }
        newer_first_where_close(&mut hits, |name| {
            searching.scored.get(name).map_or(0, |(_, at_us)| *at_us)
        });
        let close = hits.into_iter().map(|(name, _)| name.id);
        let mut wide_hits = 0;
        let is_admitted = |id: &i64| {
            wide_hits += usize::from(wide.contains(id));
            !wide.contains(id) || wide_hits <= WIDE_HITS
        };
        let admitted: Vec<i64> = close.filter(is_admitted).collect();
        Ok(self.without_repeats(admitted, meaning)?.into_iter().take(recall.limit).collect())
    }

    /// Removes observations that repeat an earlier one in the list. The newest of them takes its
    /// place.
    fn without_repeats(&self, ids: Vec<i64>, meaning: Option<&dyn Meaning>) -> Result<Vec<i64>> {
        let sql =
            "select coalesce(type, ''), coalesce(title, ''), at_us, files_modified, files_read
                   from observations where id = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let name = |id| MemoryId { kind: Kind::Observation, id };
        let mut kept: Vec<(i64, i64, Option<Statement>)> = Vec::new();
        let mut rest = ids.into_iter();
        for id in rest.by_ref().take(COMPARED_MAX) {
            let (at_us, content) = statement.query_row([id], |row| {
                let (kind, title): (String, String) = (row.get(0)?, row.get(1)?);
                let list = |at| row.get::<_, Option<String>>(at).map(|list| items(list.as_deref()));
                let files = [list(3)?, list(4)?].concat();
                let content = Statement::of(&kind, &title, files.iter().map(String::as_str));
                Ok((row.get::<_, i64>(2)?, content))
            })?;
            let mut repeated = None;
            for (at, (other, _, known)) in kept.iter().enumerate() {
                let (Some(content), Some(known)) = (&content, known) else { continue };
                let similarity = || {
                    meaning.map_or(Ok(None), |meaning| meaning.similarity(name(id), name(*other)))
                };
                if content.is_same(known, similarity)? {
                    repeated = Some(at);
                    break;
                }
            }
            match repeated {
                None => kept.push((id, at_us, content)),
                Some(at) if kept[at].1 < at_us => kept[at] = (id, at_us, content),
                Some(_) => {}
            }
        }
        Ok(kept.into_iter().map(|(id, _, _)| id).chain(rest).collect())
    }

    /// The newest notes of other projects that apply to this one.
    fn wide_note_ids(&self, recall: &Recall<'_>, projects: &[i64]) -> Result<Vec<i64>> {
        let sql = format!(
            "select id, project from observations where is_visible and {WIDE} and at_us < :until
             order by at_us desc, id desc limit :limit"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(named_params! {
            ":root": recall.root.trim_end_matches('/'),
            ":until": i64::try_from(recall.until_us).unwrap_or(i64::MAX),
            ":limit": WIDE_SCORED,
        })?;
        let mut ids = Vec::new();
        while let Some(row) = rows.next()? {
            if !projects.contains(&row.get(1)?) {
                ids.push(row.get(0)?);
            }
        }
        Ok(ids)
    }
}

impl Store {
    /// The first rows that pass the filter, at most `rows_max`. A lookup of every candidate would
    /// take longer than all other steps.
    fn passing(&self, filter: &Filter, ids: Vec<i64>, rows_max: usize) -> Result<Vec<i64>> {
        let sql = format!("select 1 from observations row where row.id = ?{}", filter.sql());
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut passing = Vec::new();
        for id in ids {
            if passing.len() == rows_max {
                break;
            }
            let values = [Value::Integer(id)].into_iter().chain(filter.values.iter().cloned());
            if statement.exists(params_from_iter(values))? {
                passing.push(id);
            }
        }
        Ok(passing)
    }
}

/// Decides whether a memory matches a prompt by more than chance.
struct Evidence<'a> {
    terms: &'a PromptTerms,
    worths: &'a [f64],
    /// Number of memories of the project.
    rows: f64,
    is_failure: bool,
    matcher: Matcher<'a>,
}

impl Evidence<'_> {
    /// `statements` reads the statements of the memory. It is called only if the result depends on
    /// them.
    fn is_enough(
        &self,
        score: &Score,
        statements: impl FnOnce() -> Result<Vec<String>>,
    ) -> Result<bool> {
        let met: BTreeSet<usize> = (0..self.worths.len())
            .filter(|at| score.terms.get(*at).is_some_and(|score| *score > 0.0))
            .collect();
        if self.terms.is_needed.contains(&true) && !met.iter().any(|at| self.terms.is_needed[*at]) {
            return Ok(false);
        }
        let has_name = met.iter().any(|at| self.terms.is_name[*at]);
        if has_name && self.of(&met) >= EVIDENCE_OF_NAME_MIN {
            return Ok(true);
        }
        let are_enough = |met: &BTreeSet<usize>, min| met.len() > 1 && self.of(met) >= min;
        if self.is_failure {
            return Ok(are_enough(&met, EVIDENCE_OF_FAILURE_MIN));
        }
        if !are_enough(&met, EVIDENCE_IN_STATEMENT_MIN) {
            return Ok(false);
        }
        let is_about = |statement: &String| {
            let met = terms_in(&self.matcher, &self.terms.query, statement);
            are_enough(&met, EVIDENCE_IN_STATEMENT_MIN)
        };
        Ok(statements()?.iter().any(is_about))
    }

    /// The amount of evidence in these terms.
    fn of(&self, terms: &BTreeSet<usize>) -> f64 {
        let once = super::candidates::worth(1.0, self.rows);
        terms.iter().map(|at| self.worths[*at]).sum::<f64>() / once
    }
}

#[cfg(test)]
#[path = "recall_tests.rs"]
mod tests;
