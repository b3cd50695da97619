//! Which memories a search covers: projects, kinds and filters.

use super::{Filter, Kind, MemoryId, Search, candidates::CandidateSearch, query::Query};
use crate::{Store, error::Result};
use rusqlite::{params_from_iter, types::Value};

/// What a search covers.
pub(super) struct Scope<'a> {
    pub(super) store: &'a Store,
    pub(super) search: &'a Search,
    /// Row ids; `None` for all.
    pub(super) projects: Option<Vec<i64>>,
    /// The kinds that can match, and their filters.
    pub(super) kinds: Vec<(Kind, Filter)>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(store: &'a Store, search: &'a Search, projects: Option<Vec<i64>>) -> Self {
        let kinds = Kind::ALL.into_iter().filter(|kind| search.kinds.contains(kind));
        let kinds = kinds.filter_map(|kind| Some((kind, Filter::of(search, kind)?))).collect();
        Self { store, search, projects, kinds }
    }

    pub(super) fn filter(&self, kind: Kind) -> Option<&Filter> {
        self.kinds.iter().find(|(known, _)| *known == kind).map(|(_, filter)| filter)
    }

    pub(super) fn candidates_of<'s>(
        &'s self,
        kind: Kind,
        filter: &'s Filter,
        query: &'s Query,
        rare_rows_max: usize,
    ) -> CandidateSearch<'s> {
        CandidateSearch {
            connection: &self.store.connection,
            kind,
            query,
            filter,
            projects: self.projects.as_deref(),
            also: None,
            rare_rows_max,
        }
    }

    /// Whether a memory passes the filters of its kind.
    pub(super) fn passes(&self, memory: MemoryId) -> Result<bool> {
        let Some(filter) = self.filter(memory.kind) else { return Ok(false) };
        let sql = self.passing_sql(memory.kind, filter, "row.id = ?");
        let values = [Value::Integer(memory.id)].into_iter().chain(filter.values.iter().cloned());
        let mut statement = self.store.connection.prepare_cached(&sql)?;
        Ok(statement.exists(params_from_iter(values))?)
    }

    /// All memories that pass the filters.
    pub(super) fn all_passing(&self) -> Result<Vec<MemoryId>> {
        let mut passing = Vec::new();
        for (kind, filter) in &self.kinds {
            let sql = self.passing_sql(*kind, filter, "1");
            let mut statement = self.store.connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params_from_iter(&filter.values))?;
            while let Some(row) = rows.next()? {
                passing.push(MemoryId { kind: *kind, id: row.get(0)? });
            }
        }
        Ok(passing)
    }

    fn passing_sql(&self, kind: Kind, filter: &Filter, condition: &str) -> String {
        let (table, filter, projects) = (kind.table(), filter.sql(), self.in_projects());
        format!("select row.id from visible_{table} row where {condition}{filter}{projects}")
    }

    /// A condition on the project of a row.
    pub(super) fn in_projects(&self) -> String {
        self.projects.as_ref().map_or_else(String::new, |projects| {
            let ids: Vec<String> = projects.iter().map(ToString::to_string).collect();
            format!(" and row.project in ({})", ids.join(", "))
        })
    }
}
