//! Runs a search: parse, select candidates, score, fuse with meaning, group by turn, render.

use super::{
    Explanation, Hit, Kind, Meaning, MemoryId, Order, Query, Search, SearchResults, WeightedTerm,
    candidates::{self, Candidates, RARE_ROWS_MAX},
    meaning,
    scope::Scope,
    score::{Scored, score},
    turns::{TurnHit, group},
};
use crate::{Store, error::Result};
use rusqlite::{params_from_iter, types::Value};

/// Number of rows that are scored. Two or three times as many found no more in any measured set.
const SCORED_ROWS: usize = 150;
/// The same while a query is being typed: the next letter starts over.
const TYPING_SCORED_ROWS: usize = 60;

impl Store {
    /// Searches memories by words.
    pub fn search(&self, search: &Search) -> Result<SearchResults> {
        self.search_by(search, None)
    }

    /// Searches memories by words, and by meaning if the query has one.
    pub fn search_by(
        &self,
        search: &Search,
        meaning: Option<&dyn Meaning>,
    ) -> Result<SearchResults> {
        let query = Query::of(search);
        let projects =
            search.project.as_deref().map(|name| self.projects_named(name)).transpose()?;
        let mut found =
            SearchResults { hint: query.hint.map(Into::into), query, ..SearchResults::default() };
        if let (Some(name), Some([])) = (&search.project, projects.as_deref()) {
            found.hint = Some(format!("no project is called `{name}`"));
            return Ok(found);
        }
        let scope = Scope::new(self, search, projects);
        if search.query.trim().is_empty() {
            return list(&scope, found);
        }
        if found.hint.is_some() {
            return Ok(found);
        }
        scope.complete_typed(&mut found.query)?;
        let candidates = candidates(&scope, &mut found)?;
        let near = match meaning.filter(|_| search.has_meaning()) {
            Some(meaning) => Some((meaning, meaning::near(&scope, meaning)?)),
            None => None,
        };
        let mut scored = Vec::new();
        for candidates in &candidates {
            let others = near.as_ref().map(|(_, near)| new_ids(candidates, near));
            let others = others.unwrap_or_default();
            scored.extend(score(self, &found.query, candidates, &others)?);
        }
        if let Some((meaning, _)) = near {
            scored = meaning::fuse(scored, meaning, meaning::usual_cosine(&scope, meaning)?)?;
            found.near = scored.iter().filter(|memory| memory.met.is_empty()).count();
            found.is_by_meaning = true;
        }
        let hits = group(&scope, &scored, &found.query)?;
        render(&scope, &candidates, &scored, hits, found)
    }

    /// The row ids of the projects with this name or key, and of all that were merged into them.
    pub fn projects_named(&self, name: &str) -> Result<Vec<i64>> {
        let sql = "select id from projects where owner in (select owner from projects
                       where label = ?1 or key = ?1) order by id";
        let mut statement = self.connection.prepare_cached(sql)?;
        let ids = statement.query_map([name], |row| row.get(0))?;
        Ok(ids.collect::<rusqlite::Result<_>>()?)
    }

    /// What to do if nothing was found.
    fn why_empty(&self, search: &Search, matched: usize) -> Result<String> {
        let known: Vec<String> =
            self.type_stats(0, None)?.into_iter().map(|(type_, _)| type_).collect();
        let unknown = search.types.iter().find(|type_| !known.contains(type_));
        Ok(match unknown.filter(|_| !known.is_empty()) {
            Some(unknown) => {
                format!("no observation has the type `{unknown}`; there are {}", known.join(", "))
            }
            None => no_hits(search, matched, self.is_empty()?).into(),
        })
    }

    fn is_empty(&self) -> Result<bool> {
        let sql =
            "select not exists (select 1 from prompts) and not exists (select 1 from observations)";
        Ok(self.connection.prepare_cached(sql)?.query_row((), |row| row.get(0))?)
    }
}

fn no_hits(search: &Search, matched: usize, is_empty: bool) -> &'static str {
    let is_filtered = search.project.is_some()
        || search.session.is_some()
        || search.client.is_some()
        || search.since_us.is_some()
        || search.until_us.is_some()
        || !(search.types.is_empty() && search.concepts.is_empty() && search.files.is_empty())
        || search.kinds.len() < Kind::ALL.len();
    match (matched > 0, is_filtered) {
        _ if is_empty => "there are no memories yet; the next recorded session adds the first ones",
        (true, _) => "there are no more hits; use a lower offset",
        (_, true) => "try fewer filters",
        _ => "try fewer or other words, or the start of one, such as `migr*`",
    }
}

/// The rows with words of the query, for each kind.
fn candidates(scope: &Scope<'_>, found: &mut SearchResults) -> Result<Vec<Candidates>> {
    let Scope { search, .. } = scope;
    let scored_rows = if search.is_typing { TYPING_SCORED_ROWS } else { SCORED_ROWS };
    let rows_max = scored_rows.max(search.offset.saturating_add(search.limit).saturating_mul(2));
    let mut all = Vec::new();
    for (kind, filter) in &scope.kinds {
        let selection = scope.candidates_of(*kind, filter, &found.query, RARE_ROWS_MAX);
        let candidates = selection.candidates(rows_max)?;
        let (matched, is_capped) = selection.matched(&candidates)?;
        found.matched += matched;
        found.is_capped |= is_capped;
        found.has_more |= candidates.rows.len() < matched;
        if search.is_explained {
            let terms: Vec<usize> = (0..found.query.terms.len()).collect();
            let expression = selection.within(&candidates::any(&found.query, &terms));
            let explanation = explain(&found.query, &candidates, expression, matched);
            found.explanation.push(explanation);
        }
        all.push(candidates);
    }
    Ok(all)
}

/// The ids of memories of a kind that are near, and not among the candidates.
pub(super) fn new_ids(candidates: &Candidates, near: &[MemoryId]) -> Vec<i64> {
    let is_new = |id: &i64| candidates.rows.iter().all(|(known, _)| known != id);
    near.iter()
        .filter(|memory| memory.kind == candidates.kind)
        .map(|memory| memory.id)
        .filter(is_new)
        .collect()
}

/// Without words: all rows that match the filters, newest first.
fn list(scope: &Scope<'_>, mut found: SearchResults) -> Result<SearchResults> {
    let Scope { store, search, .. } = scope;
    let direction = if search.order == Order::Oldest { "asc" } else { "desc" };
    let rows_max = search.offset.saturating_add(search.limit);
    let mut listed = Vec::new();
    for (kind, filter) in &scope.kinds {
        let sql = format!(
            "select id, at_us from visible_{} row where 1{}{} order by at_us {direction},
             id {direction} limit ?",
            kind.table(),
            filter.sql(),
            scope.in_projects()
        );
        let mut values = filter.values.clone();
        values.push(Value::Integer(i64::try_from(rows_max).unwrap_or(i64::MAX)));
        let before = listed.len();
        let mut statement = store.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            let at_us: i64 = row.get(1)?;
            listed.push((at_us, MemoryId { kind: *kind, id: row.get(0)? }));
        }
        // There may be no more; counting them would read every row.
        found.is_capped |= rows_max > 0 && listed.len() - before == rows_max;
    }
    listed.sort_by_key(|(at_us, id)| {
        (if search.order == Order::Oldest { *at_us } else { -at_us }, *id)
    });
    found.matched = listed.len();
    found.has_more = found.is_capped || found.matched > rows_max;
    let hits = listed.into_iter().map(|(_, id)| TurnHit::new(id, 0.0)).collect();
    found.hits = show(scope, &[], hits, &found.query)?;
    found.hint = match found.hits.is_empty() {
        true => Some(store.why_empty(search, found.matched)?),
        false => None,
    };
    Ok(found)
}

/// Reads the requested page of hits, and adds what to do about words that no memory contains.
fn render(
    scope: &Scope<'_>,
    candidates: &[Candidates],
    scored: &[Scored],
    hits: Vec<TurnHit>,
    mut found: SearchResults,
) -> Result<SearchResults> {
    let Scope { store, search, .. } = scope;
    let is_unknown = |at: usize| candidates.iter().all(|kind| kind.terms[at].count < 1.0);
    let mut unknown: Vec<bool> = (0..found.query.terms.len()).map(is_unknown).collect();
    if hits.is_empty() {
        found.query.typed.into_iter().for_each(|at| unknown[at] = true);
        found.matched = 0;
    }
    found.has_more |= hits.len() > search.offset.saturating_add(search.limit);
    found.hits = show(scope, scored, hits, &found.query)?;
    found.suggestion = scope.suggested_spelling(&found.query, &unknown)?;
    found.hint = match &found.suggestion {
        Some(suggestion) => Some(format!("did you mean `{suggestion}`?")),
        None if found.query.is_unclosed && !search.is_typing => {
            Some("the last quote is not closed: what follows it is one phrase".into())
        }
        None if found.hits.is_empty() => Some(store.why_empty(search, found.matched)?),
        None => None,
    };
    Ok(found)
}

fn show(
    scope: &Scope<'_>,
    scored: &[Scored],
    hits: Vec<TurnHit>,
    query: &Query,
) -> Result<Vec<Hit>> {
    let Scope { store, search, .. } = scope;
    let page = hits.into_iter().skip(search.offset).take(search.limit);
    let scored = |id: MemoryId| scored.iter().find(|memory| memory.id == id);
    let hits = page.map(|turn| {
        let Some(mut hit) = store.hit(turn.shown, query)? else { return Ok(None) };
        hit.score = turn.score;
        hit.also = turn.also;
        if turn.best != turn.shown && scored(turn.shown).is_none() {
            // Its prompt has the words.
            let best = store.hit(turn.best, query)?;
            hit.snippet = best.map(|best| best.snippet).unwrap_or_default();
        }
        let explained = scored(turn.best).filter(|_| search.is_explained);
        hit.explanation = explained.map(|memory| memory.score.clone());
        Ok(Some(hit))
    });
    hits.filter_map(Result::transpose).collect()
}

fn explain(
    query: &Query,
    candidates: &Candidates,
    expression: String,
    matched: usize,
) -> Explanation {
    let weighed = query.terms.iter().zip(&candidates.terms);
    let terms = weighed
        .map(|(term, rows)| WeightedTerm {
            term: term.clone(),
            rows: rows.count,
            worth: rows.worth,
        })
        .collect();
    Explanation { kind: candidates.kind, terms, expression, matched }
}
