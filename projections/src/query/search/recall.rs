//! Finds the memories relevant to a prompt or a failure, if any.
//!
//! A person reads search results and tries again. These memories are added to a prompt that did not
//! request any, so a hit needs evidence: a statement with two words of the prompt that few memories
//! contain, or one name, or a meaning that is clearly nearer to the prompt than usual in the
//! project. For a failed command, at least one word must be from its error.

use super::{
    Kind, Meaning, MemoryId, Score, Search,
    candidates::{CandidateSearch, Candidates, worth},
    filter::Filter,
    meaning::{fuse, nearest, usual_cosine},
    prompt_terms::PromptTerms,
    run::new_ids,
    scope::Scope,
    score::{Scored, score},
    statement::Statement,
    text_index::terms_in,
    turns::newer_first_where_close,
};
use crate::{
    Store,
    error::Result,
    query::context::WIDE,
    store::sql_values::{items, number},
};
use rusqlite::{named_params, params_from_iter, types::Value};
use std::collections::BTreeSet;

/// A word in more rows than this is common: a session waits.
const RARE_ROWS_MAX: usize = 1000;
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
        let mut scope = Scope::new(self, &search, projects);
        let kind = Kind::Observation;
        let mut filter = Filter::of(&search, kind).unwrap_or_default();
        filter.add("not row.is_retired", []);
        if !recall.session.is_empty() {
            let sql = "(row.session is null or row.session is not
                            (select id from sessions where session = ? and log = 0))";
            filter.add(sql, [recall.session.to_owned()]);
        }
        let no_filter = Filter::default();
        let by_words = scope.candidates_of(kind, &no_filter, &terms.query, RARE_ROWS_MAX);
        let mut candidates = CandidateSearch { also, ..by_words }.candidates(GATHERED_ROWS)?;
        candidates.rows = self.passing(&filter, candidates.rows, SCORED_ROWS)?;
        scope.kinds = vec![(kind, filter)];
        let near = match meaning {
            Some(meaning) => nearest(&scope, meaning, NEAR_ROWS)?,
            None => Vec::new(),
        };
        let mut scored = score(self, &terms.query, &candidates, &new_ids(&candidates, &near))?;
        if also.is_none() {
            let projects = scope.projects.as_deref().unwrap_or_default();
            scored.extend(self.wide_candidates(recall, projects, terms, &candidates)?);
        }
        let mut usual = f64::INFINITY;
        if let Some(meaning) = meaning {
            usual = usual_cosine(&scope, meaning)?;
            scored = fuse(scored, meaning, usual)?;
        }
        scored.sort_by(|left, right| {
            right.score.total.total_cmp(&left.score.total).then(right.id.cmp(&left.id))
        });
        let evidence = Evidence { terms, candidates: &candidates, is_failure: also.is_some() };
        let is_near = |score: &Score| score.cosine.is_some_and(|it| it - usual >= CLEARLY_NEARER);
        let (mut hits, mut best) = (Vec::new(), 0.0);
        for memory in &scored {
            if memory.score.total < best * SHARE_OF_BEST_MIN {
                break;
            }
            let statements = || self.statements_of(memory.id.id);
            if is_near(&memory.score) || evidence.is_enough(&memory.met, statements)? {
                best = f64::max(best, memory.score.total);
                hits.push(memory);
            }
        }
        newer_first_where_close(&mut hits, |hit| (hit.score.total, hit.at_us));
        let mut wide_hits = 0;
        hits.retain(|hit| {
            wide_hits += usize::from(hit.is_elsewhere);
            !hit.is_elsewhere || wide_hits <= WIDE_HITS
        });
        let ids = hits.into_iter().map(|hit| hit.id.id).collect();
        Ok(self.without_repeats(ids, meaning)?.into_iter().take(recall.limit).collect())
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

    /// The newest notes of other projects that apply to this one. They count as notes of average
    /// length in this project.
    fn wide_candidates(
        &self,
        recall: &Recall<'_>,
        projects: &[i64],
        terms: &PromptTerms,
        candidates: &Candidates,
    ) -> Result<Vec<Scored>> {
        let kind = Kind::Observation;
        let sql = format!(
            "select id, project, at_us, {} as text from observations row
             where is_visible and {WIDE} and at_us < :until
             order by at_us desc, id desc limit :limit",
            kind.text()
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(named_params! {
            ":root": recall.root.trim_end_matches('/'),
            ":until": i64::try_from(recall.until_us).unwrap_or(i64::MAX),
            ":limit": WIDE_SCORED,
        })?;
        let (mut notes, mut texts) = (Vec::new(), Vec::<String>::new());
        while let Some(row) = rows.next()? {
            if !projects.contains(&row.get("project")?) {
                notes.push((row.get("id")?, number(row, 2)?));
                texts.push(row.get("text")?);
            }
        }
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let met = terms_in(&texts, &terms.query.terms)?;
        let scored = notes.into_iter().zip(met).filter(|(_, met)| !met.is_empty());
        let scored = scored.map(|((id, at_us), met)| {
            let bm25 = met.iter().map(|at| candidates.terms[*at].worth).sum();
            let score = Score::new(&candidates.terms, &met, bm25);
            let id = MemoryId { kind, id };
            Scored { id, at_us, turn: None, chars: 0, met, is_elsewhere: true, score }
        });
        Ok(scored.collect())
    }
}

impl Store {
    /// The first rows that pass the filter, at most `rows_max`. A lookup of every candidate would
    /// take longer than all other steps.
    fn passing(
        &self,
        filter: &Filter,
        rows: Vec<(i64, f64)>,
        rows_max: usize,
    ) -> Result<Vec<(i64, f64)>> {
        let sql = format!("select 1 from observations row where row.id = ?{}", filter.sql());
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut passing = Vec::new();
        for (id, bm25) in rows {
            if passing.len() == rows_max {
                break;
            }
            let values = [Value::Integer(id)].into_iter().chain(filter.values.iter().cloned());
            if statement.exists(params_from_iter(values))? {
                passing.push((id, bm25));
            }
        }
        Ok(passing)
    }
}

/// Decides whether a memory matches a prompt by more than chance.
struct Evidence<'a> {
    terms: &'a PromptTerms,
    candidates: &'a Candidates,
    is_failure: bool,
}

impl Evidence<'_> {
    /// `statements` reads the statements of the memory. It is called only if the result depends on
    /// them.
    fn is_enough(
        &self,
        met: &BTreeSet<usize>,
        statements: impl FnOnce() -> Result<Vec<String>>,
    ) -> Result<bool> {
        if self.terms.is_needed.contains(&true) && !met.iter().any(|at| self.terms.is_needed[*at]) {
            return Ok(false);
        }
        let has_name = met.iter().any(|at| self.terms.is_name[*at]);
        if has_name && self.of(met) >= EVIDENCE_OF_NAME_MIN {
            return Ok(true);
        }
        let are_enough = |met: &BTreeSet<usize>, min| met.len() > 1 && self.of(met) >= min;
        if self.is_failure {
            return Ok(are_enough(met, EVIDENCE_OF_FAILURE_MIN));
        }
        if !are_enough(met, EVIDENCE_IN_STATEMENT_MIN) {
            return Ok(false);
        }
        let statements = statements()?;
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        let met = terms_in(&statements, &self.terms.query.terms)?;
        Ok(met.iter().any(|met| are_enough(met, EVIDENCE_IN_STATEMENT_MIN)))
    }

    /// The amount of evidence in these terms.
    fn of(&self, terms: &BTreeSet<usize>) -> f64 {
        let once = worth(1.0, self.candidates.rows_in_scope);
        terms.iter().map(|at| self.candidates.terms[*at].worth).sum::<f64>() / once
    }
}

#[cfg(test)]
#[path = "recall_tests.rs"]
mod tests;
