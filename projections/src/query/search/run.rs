//! Runs a search.

use super::{
    Explanation, Hit, Kind, Meaning, MemoryId, Order, Query, Search, SearchResults, WeightedTerm,
    candidates::{self, CandidateSearch, Candidates, in_projects},
    meaning::NEAR_ROWS,
    score::Scorer,
    searching::Searching,
    statistics::Statistics,
    turns::TurnHit,
    typed::Typed,
};
use crate::{Store, error::Result};
use rusqlite::{params_from_iter, types::Value};

/// The weights of a query's terms for one kind.
struct Weights {
    kind: Kind,
    worths: Vec<f64>,
    average_words: f64,
}

/// Number of rows that are scored. Two or three times as many found no more in any measured set.
const SCORED_ROWS: usize = 150;
/// The same while a query is being typed. Reading rows to score them is most of the work, and the
/// next letter starts over.
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
        let query = match search.is_typing {
            true => Query::parse_typing(&search.query),
            false => Query::parse(&search.query),
        };
        let projects =
            search.project.as_deref().map(|name| self.projects_named(name)).transpose()?;
        let mut found =
            SearchResults { hint: query.hint.map(Into::into), query, ..SearchResults::default() };
        if let (Some(name), Some([])) = (&search.project, projects.as_deref()) {
            found.hint = Some(format!("no project is called `{name}`"));
            return Ok(found);
        }
        let mut searching = Searching::new(self, search, projects);
        if search.query.trim().is_empty() {
            searching.list(&mut found)?;
            return Ok(found);
        }
        if found.hint.is_some() {
            return Ok(found);
        }
        let typed = searching.sample_typed(&found.query)?;
        if typed.is_none() {
            searching.complete_typed(&mut found.query)?;
        }
        let (mut unknown, weights) = searching.by_words(typed, &mut found)?;
        if let Some(meaning) = meaning.filter(|_| search.has_meaning()) {
            searching.by_meaning(meaning, &weights, &mut found)?;
        }
        let hits = searching.hits(&found.query)?;
        if hits.is_empty() {
            found.query.typed.into_iter().for_each(|at| unknown[at] = true);
            found.matched = 0;
        }
        found.has_more |= hits.len() > search.offset.saturating_add(search.limit);
        found.hits = searching.show(hits, &found.query)?;
        found.suggestion = searching.respelled(&found.query, &unknown)?;
        found.hint = match &found.suggestion {
            Some(suggestion) => Some(format!("did you mean `{suggestion}`?")),
            None if found.query.is_unclosed && !search.is_typing => {
                Some("the last quote is not closed: what follows it is one phrase".into())
            }
            None if found.hits.is_empty() => Some(self.why_empty(search, found.matched)?),
            None => None,
        };
        Ok(found)
    }

    /// The row ids of the projects with this name or key, and of all that were merged into them.
    pub fn projects_named(&self, name: &str) -> Result<Vec<i64>> {
        let sql = "select id from projects where owner in (select owner from projects
                       where label = ?1 or key = ?1) order by id";
        let mut statement = self.connection.prepare_cached(sql)?;
        let ids = statement.query_map([name], |row| row.get(0))?;
        Ok(ids.collect::<rusqlite::Result<_>>()?)
    }
}

impl Store {
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

impl Searching<'_> {
    /// Returns which terms no memory contains, and the weights of the terms for each kind.
    fn by_words(
        &mut self,
        typed: Option<Typed>,
        found: &mut SearchResults,
    ) -> Result<(Vec<bool>, Vec<Weights>)> {
        let mut unknown = vec![true; found.query.terms.len()];
        let mut weights = Vec::new();
        for (kind, filter) in self.kinds() {
            let statistics = Statistics::of(&self.store.connection, kind)?;
            let gathering = CandidateSearch {
                connection: &self.store.connection,
                kind,
                query: &found.query,
                filter: &filter,
                projects: self.projects.as_deref(),
                also: None,
                typed,
            };
            let scored_rows = match self.search.is_typing {
                true => TYPING_SCORED_ROWS,
                false => SCORED_ROWS,
            };
            let rows_max = scored_rows.max(2 * (self.search.offset + self.search.limit));
            let candidates = gathering.gather(statistics, rows_max)?;
            found.matched += candidates.matched;
            found.is_capped |= candidates.is_capped;
            found.has_more |= candidates.rows.len() < candidates.matched;
            for (unknown, (rows, _)) in unknown.iter_mut().zip(&candidates.terms) {
                *unknown &= *rows < 1.0;
            }
            if self.search.is_explained {
                let all: Vec<usize> = (0..found.query.terms.len()).collect();
                let expression = gathering.within(&candidates::any(&found.query, &all));
                found.explanation.push(explain(kind, &found.query, &candidates, expression));
            }
            let worths: Vec<f64> = candidates.terms.iter().map(|(_, worth)| *worth).collect();
            let average_words = statistics.average_words;
            let scorer = Scorer::new(&found.query, worths.clone(), average_words);
            self.score(&scorer, kind, candidates.rows)?;
            weights.push(Weights { kind, worths, average_words });
        }
        Ok((unknown, weights))
    }

    /// Adds memories that are near, and ranks all by words and meaning.
    fn by_meaning(
        &mut self,
        meaning: &dyn Meaning,
        weights: &[Weights],
        found: &mut SearchResults,
    ) -> Result<()> {
        let filters = self.kinds().into_iter().collect();
        let wanted = NEAR_ROWS.max(self.search.offset.saturating_add(self.search.limit));
        let near = self.near(meaning, &filters, wanted)?;
        for Weights { kind, worths, average_words } in weights {
            let is_new =
                |memory: &&MemoryId| memory.kind == *kind && !self.scored.contains_key(memory);
            let ids = near.iter().filter(is_new).map(|memory| memory.id).collect();
            let scorer = Scorer::new(&found.query, worths.clone(), *average_words);
            self.score_near(&scorer, *kind, ids)?;
        }
        self.fuse(meaning)?;
        found.near = self.scored.values().filter(|(score, _)| score.words <= 0.0).count();
        found.is_by_meaning = true;
        Ok(())
    }

    /// Without words: all rows that match the filters, newest first.
    fn list(&mut self, found: &mut SearchResults) -> Result<()> {
        let direction = if self.search.order == Order::Oldest { "asc" } else { "desc" };
        let mut listed = Vec::new();
        for (kind, filter) in self.kinds() {
            let sql = format!(
                "select id, at_us from visible_{} row where 1{}{} order by at_us {direction},
                 id {direction}
                 limit ?",
                kind.table(),
                filter.sql(),
                in_projects(self.projects.as_deref())
            );
            let mut values = filter.values;
            let rows_max = self.search.offset.saturating_add(self.search.limit);
            values.push(Value::Integer(i64::try_from(rows_max).unwrap_or(i64::MAX)));
            let before = listed.len();
            let mut statement = self.store.connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params_from_iter(values))?;
            while let Some(row) = rows.next()? {
                let at_us: i64 = row.get(1)?;
                listed.push((at_us, MemoryId { kind, id: row.get(0)? }));
            }
            // There may be no more; counting them would read every row.
            found.is_capped |= rows_max > 0 && listed.len() - before == rows_max;
        }
        listed.sort_by_key(|(at_us, name)| {
            (if self.search.order == Order::Oldest { *at_us } else { -at_us }, *name)
        });
        found.matched = listed.len();
        found.has_more =
            found.is_capped || found.matched > self.search.offset.saturating_add(self.search.limit);
        let hits = listed.into_iter().map(|(_, name)| TurnHit::listed(name)).collect();
        found.hits = self.show(hits, &found.query)?;
        found.hint = match found.hits.is_empty() {
            true => Some(self.store.why_empty(self.search, found.matched)?),
            false => None,
        };
        Ok(())
    }

    fn show(&self, hits: Vec<TurnHit>, query: &Query) -> Result<Vec<Hit>> {
        let page = hits.into_iter().skip(self.search.offset).take(self.search.limit);
        let hits = page.map(|turn| {
            let Some(mut hit) = self.store.hit(turn.shown, query)? else { return Ok(None) };
            hit.score = turn.score;
            hit.also = turn.also;
            let scored = self.scored.get(&turn.best).filter(|_| self.search.is_explained);
            hit.explanation = scored.map(|(score, _)| score.clone());
            if !self.scored.is_empty() && !self.scored.contains_key(&turn.shown) {
                // Its prompt has the words.
                let best = self.store.hit(turn.best, query)?;
                hit.snippet = best.map(|best| best.snippet).unwrap_or_default();
            }
            Ok(Some(hit))
        });
        hits.filter_map(Result::transpose).collect()
    }
}

fn explain(kind: Kind, query: &Query, candidates: &Candidates, expression: String) -> Explanation {
    let weighed = query.terms.iter().zip(&candidates.terms);
    let terms = weighed
        .map(|(term, (rows, worth))| WeightedTerm {
            term: term.clone(),
            rows: *rows,
            worth: *worth,
        })
        .collect();
    Explanation { kind, terms, expression, matched: candidates.matched }
}
