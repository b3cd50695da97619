//! Runs a search.

use super::{
    Explanation, Hit, Kind, MemoryId, Order, Query, Score, Search, SearchResults, WeightedTerm,
    candidates::{self, Candidates, Gathering},
    filter::Filter,
    score::{Column, Role, Scorer},
    statistics::Statistics,
};
use crate::{Store, error::Result, store::sql_values::number};
use rusqlite::{params_from_iter, types::Value};
use std::collections::HashMap;

/// Number of rows that are scored. Two or three times as many found no more in any measured set.
const SCORED_ROWS: usize = 150;
/// Scores that differ by less than this share count as equal: the newer row comes first.
const CLOSE: f64 = 0.01;

impl Store {
    /// Searches memories.
    pub fn search(&self, search: &Search) -> Result<SearchResults> {
        let query = Query::parse(&search.query);
        let projects =
            search.project.as_deref().map(|name| self.projects_named(name)).transpose()?;
        let mut found =
            SearchResults { hint: query.hint.map(Into::into), query, ..SearchResults::default() };
        if let (Some(name), Some([])) = (&search.project, projects.as_deref()) {
            found.hint = Some(format!("no project is called `{name}`"));
            return Ok(found);
        }
        let mut searching = Searching { store: self, search, projects, scored: HashMap::new() };
        if search.query.trim().is_empty() {
            searching.list(&mut found)?;
            return Ok(found);
        }
        if found.hint.is_some() {
            return Ok(found);
        }
        searching.by_words(&mut found)?;
        let order = searching.order();
        found.hits = searching.show(order, &found.query)?;
        if found.hits.is_empty() {
            let hint = match self.is_empty()? {
                true => {
                    "nothing is remembered yet: that begins with the next session that is recorded"
                }
                false => hint(search, found.matched),
            };
            found.hint = Some(hint.into());
        }
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
    fn is_empty(&self) -> Result<bool> {
        let sql =
            "select not exists (select 1 from prompts) and not exists (select 1 from observations)";
        Ok(self.connection.prepare_cached(sql)?.query_row((), |row| row.get(0))?)
    }
}

fn hint(search: &Search, matched: usize) -> &'static str {
    let is_filtered = search.project.is_some()
        || search.session.is_some()
        || search.since_us.is_some()
        || search.until_us.is_some()
        || !(search.types.is_empty() && search.concepts.is_empty() && search.files.is_empty())
        || search.kinds.len() < Kind::ALL.len();
    match (matched > 0, is_filtered) {
        (true, _) => "there are no more hits: begin at a lower offset",
        (_, true) => "nothing matches within these filters: leave some out",
        _ => "nothing matches: try fewer or other words, or a beginning such as `migr*`",
    }
}

/// The state of a running search.
pub(super) struct Searching<'a> {
    pub(super) store: &'a Store,
    pub(super) search: &'a Search,
    pub(super) projects: Option<Vec<i64>>,
    pub(super) scored: HashMap<MemoryId, (Score, u64)>,
}

impl Searching<'_> {
    fn kinds(&self) -> Vec<(Kind, Filter)> {
        let kinds = Kind::ALL.into_iter().filter(|kind| self.search.kinds.contains(kind));
        kinds.filter_map(|kind| Some((kind, Filter::of(self.search, kind)?))).collect()
    }

    fn by_words(&mut self, found: &mut SearchResults) -> Result<()> {
        for (kind, filter) in self.kinds() {
            let statistics = Statistics::of(&self.store.connection, kind)?;
            let gathering = Gathering {
                connection: &self.store.connection,
                kind,
                query: &found.query,
                filter: &filter,
                projects: self.projects.as_deref(),
            };
            let rows_max = SCORED_ROWS.max(2 * (self.search.offset + self.search.limit));
            let candidates = gathering.gather(statistics, rows_max)?;
            found.matched += candidates.matched;
            if self.search.is_explained {
                let all: Vec<usize> = (0..found.query.terms.len()).collect();
                let expression = gathering.within(&candidates::any(&found.query, &all));
                found.explanation.push(explain(kind, &found.query, &candidates, expression));
            }
            let worths = candidates.terms.iter().map(|(_, worth)| *worth).collect();
            let scorer = Scorer::new(&found.query, worths, statistics.average_words);
            self.score(&scorer, kind, candidates.rows)?;
        }
        Ok(())
    }

    pub(super) fn score(&mut self, scorer: &Scorer<'_>, kind: Kind, ids: Vec<i64>) -> Result<()> {
        let columns = kind.columns();
        let sql = format!(
            "select at_us, {}, identifiers from {} where id = ?1",
            columns.join(", "),
            kind.table()
        );
        let mut statement = self.store.connection.prepare_cached(&sql)?;
        for id in ids {
            let mut rows = statement.query([id])?;
            let Some(row) = rows.next()? else { continue };
            let mut texts = Vec::with_capacity(columns.len() + 1);
            for at in 0..=columns.len() {
                let role = match at {
                    0 if kind != Kind::Prompt => Role::MemoryId,
                    at if at == columns.len() => Role::Parts,
                    _ => Role::Text,
                };
                let text = row.get_ref(at + 1)?.as_str_or_null().map_err(rusqlite::Error::from)?;
                texts.extend(text.map(|text| Column { text, role }));
            }
            let score = scorer.score(&texts);
            // The index also contains the words of placeholders, which are not recorded text.
            let has_placeholder = || texts.iter().any(|column| column.text.contains("[redacted:"));
            if score.total > 0.0 || !has_placeholder() {
                self.scored.insert(MemoryId { kind, id }, (score, number(row, 0)?));
            }
        }
        Ok(())
    }

    /// The ids of the hits in order, with their scores.
    fn order(&self) -> Vec<(MemoryId, f64)> {
        let mut order: Vec<(MemoryId, f64)> =
            self.scored.iter().map(|(name, (score, _))| (*name, score.total)).collect();
        // At the same time, an observation comes before a summary or a prompt.
        let precedes = |left: &MemoryId, right: &MemoryId| {
            left.kind.cmp(&right.kind).then(right.id.cmp(&left.id))
        };
        order.sort_by(|left, right| {
            right.1.total_cmp(&left.1).then_with(|| precedes(&left.0, &right.0))
        });
        let time = |name: &MemoryId| self.scored.get(name).map_or(0, |(_, at_us)| *at_us);
        match self.search.order {
            Order::Relevance => newer_first_where_close(&mut order, time),
            Order::Newest => order.sort_by_key(|(name, _)| (std::cmp::Reverse(time(name)), *name)),
            Order::Oldest => order.sort_by_key(|(name, _)| (time(name), *name)),
        }
        order
    }

    fn projects_sql(&self) -> String {
        let Some(projects) = &self.projects else { return String::new() };
        let ids: Vec<String> = projects.iter().map(ToString::to_string).collect();
        format!(" and row.project in ({})", ids.join(", "))
    }

    /// Without words: all rows that match the filters, newest first.
    fn list(&mut self, found: &mut SearchResults) -> Result<()> {
        let direction = if self.search.order == Order::Oldest { "asc" } else { "desc" };
        let mut listed = Vec::new();
        for (kind, filter) in self.kinds() {
            let sql = format!(
                "select id, at_us from visible_{} row where 1{}{} order by at_us {direction}, id {direction}
                 limit ?",
                kind.table(),
                filter.sql(),
                self.projects_sql()
            );
            let mut values = filter.values;
            values.push(Value::Integer((self.search.offset + self.search.limit) as i64));
            let mut statement = self.store.connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params_from_iter(values))?;
            while let Some(row) = rows.next()? {
                let at_us: i64 = row.get(1)?;
                listed.push((at_us, MemoryId { kind, id: row.get(0)? }));
            }
        }
        listed.sort_by_key(|(at_us, name)| {
            (if self.search.order == Order::Oldest { *at_us } else { -at_us }, *name)
        });
        found.matched = listed.len();
        let order = listed.into_iter().map(|(_, name)| (name, 0.0)).collect();
        found.hits = self.show(order, &found.query)?;
        found.hint = found.hits.is_empty().then(|| hint(self.search, found.matched).into());
        Ok(())
    }

    fn show(&self, order: Vec<(MemoryId, f64)>, query: &Query) -> Result<Vec<Hit>> {
        let page = order.into_iter().skip(self.search.offset).take(self.search.limit);
        let hits = page.map(|(name, score)| {
            let mut hit = self.store.hit(name, query)?;
            if let Some(hit) = &mut hit {
                hit.score = score;
                let scored = self.scored.get(&name).filter(|_| self.search.is_explained);
                hit.explanation = scored.map(|(score, _)| score.clone());
            }
            Ok(hit)
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

pub(super) fn newer_first_where_close(
    order: &mut [(MemoryId, f64)],
    time: impl Fn(&MemoryId) -> u64,
) {
    let mut rest = order;
    while let Some((_, best)) = rest.first() {
        let least = best * (1.0 - CLOSE);
        let close = rest.iter().take_while(|(_, score)| *score >= least).count();
        let (group, after) = rest.split_at_mut(close.max(1));
        group.sort_by_key(|(name, _)| std::cmp::Reverse(time(name)));
        rest = after;
    }
}
