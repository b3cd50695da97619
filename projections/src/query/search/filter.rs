//! Filters of a search, in addition to its words.

use super::{Kind, Search};
use rusqlite::types::Value;

/// Conditions on rows of one kind, and their values in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    conditions: Vec<String>,
    pub(crate) values: Vec<Value>,
}

impl Filter {
    /// `None` if no row of this kind can match.
    pub(crate) fn of(search: &Search, kind: Kind) -> Option<Self> {
        let is_observation = kind == Kind::Observation;
        let wants_types = !search.types.is_empty() || !search.concepts.is_empty();
        let wants_files = !search.files.is_empty();
        if (wants_types && !is_observation) || (wants_files && kind == Kind::Prompt) {
            return None;
        }
        let mut filter = Self::default();
        filter.times(search);
        // A list without words shows valid observations, and with a mark those that a rule found to
        // be replaced, because rules can be wrong. A search by words also finds the others, with a
        // mark.
        if is_observation && search.query.trim().is_empty() {
            let sql = "(not row.is_retired
                or row.is_replaced and row.verdict is null and not row.is_corrected
                and row.repeats is null)";
            filter.add(sql, []);
        }
        if let Some(session) = &search.session {
            let sql =
                "row.session in (select id from sessions where substr(session, 1, length(?)) = ?)";
            filter.add(sql, [session.clone(), session.clone()]);
        }
        if let Some(host) = search.host {
            filter.conditions.push("row.host = ?".into());
            filter.values.push(Value::Integer(host.into()));
        }
        if let Some(client) = &search.client {
            let sql = "row.session in (select id from sessions where client = ?)";
            filter.add(sql, [client.clone()]);
        }
        if !search.types.is_empty() {
            let marks = vec!["?"; search.types.len()].join(", ");
            filter.add(&format!("row.type in ({marks})"), search.types.clone());
        }
        for concept in &search.concepts {
            let sql =
                "exists (select 1 from json_each(row.concepts) where lower(value) = lower(?))";
            filter.add(sql, [concept.clone()]);
        }
        let written = if is_observation { "files_modified" } else { "files_edited" };
        filter.files(written, &search.files);
        Some(filter)
    }

    fn times(&mut self, search: &Search) {
        if let Some(since_us) = search.since_us {
            self.conditions.push("row.at_us >= ?".into());
            self.values.push(Value::Integer(since_us as i64));
        }
        if let Some(until_us) = search.until_us {
            self.conditions.push("row.at_us < ?".into());
            self.values.push(Value::Integer(until_us as i64));
        }
    }

    /// Matches any of these files by its path or the end of it, or everything below a folder.
    fn files(&mut self, written: &str, files: &[String]) {
        if files.is_empty() {
            return;
        }
        let is_file = "instr('/' || value || '/', '/' || ltrim(?, '/') || '/') > 0";
        let sql = format!(
            "exists (select 1 from (select value from json_each(row.files_read) union all
                                    select value from json_each(row.{written}))
                     where {})",
            vec![is_file; files.len()].join(" or ")
        );
        let plain = |file: &String| file.trim_start_matches("./").trim_end_matches('/').to_owned();
        self.add(&sql, files.iter().map(plain));
    }

    pub(super) fn add(&mut self, condition: &str, values: impl IntoIterator<Item = String>) {
        self.conditions.push(condition.into());
        self.values.extend(values.into_iter().map(Value::Text));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// ` and …` for each condition.
    pub(crate) fn sql(&self) -> String {
        self.conditions.iter().map(|condition| format!(" and {condition}")).collect()
    }
}
