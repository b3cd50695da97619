//! `claude-mem sql`: query the database.

use clap::Args;
use serde_json::{Map, Value};

use super::table::{Column, Table};
use claude_mem_core::{app::App, failure::Failure};
use claude_mem_memory::store;

/// Query the database with SQL
///
/// Nothing can be changed. The views `sdk_sessions`, `user_prompts`, `observations` and
/// `session_summaries` have the columns of the TypeScript claude-mem. For a first look:
/// `claude-mem sql "select id, type, title from observations order by id desc limit 5"`
#[derive(Debug, Args)]
pub(crate) struct Sql {
    /// One statement
    statement: String,
    /// Print one JSON object per row
    #[arg(long)]
    json: bool,
}

impl Sql {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let store = store::read_folded(app)?;
        let found = store.query_sql(&self.statement).map_err(|error| {
            Failure::usage(error.to_string()).remedy(
                "list tables and views with `claude-mem sql \"select name from sqlite_schema\"`",
            )
        })?;
        if self.json {
            return found.rows.into_iter().try_for_each(|row| {
                let row: Map<String, Value> = found.columns.iter().cloned().zip(row).collect();
                app.output.json(&row)
            });
        }
        let columns: Vec<Column> = found.columns.into_iter().map(Column::text).collect();
        let mut table = Table::new(columns);
        for row in found.rows {
            table.row(row.into_iter().map(|value| match value {
                Value::Null => String::new(),
                Value::String(text) => text,
                value => value.to_string(),
            }));
        }
        table.print(app)
    }
}
