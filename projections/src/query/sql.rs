//! SQL of the user, on the tables and on views with the names that the design documents use.

use crate::{Store, error::Result};
use rusqlite::types::ValueRef;
use serde_json::Value;

/// Views of this connection alone. They have the columns of `migrations/0006_views.sql`, and those
/// of the design documents that came before. `observations` replaces our table of that name.
const DOCUMENTED_VIEWS: &str = "
    create temp view if not exists sdk_sessions as
    select *, content_session_id as claude_session_id, memory_session_id as sdk_session_id,
        user_prompt as first_user_prompt, null as worker_port from main.sdk_sessions;
    create temp view if not exists user_prompts as
    select *, content_session_id as claude_session_id, session_db_id as session_id,
        prompt_text as prompt from main.user_prompts;
    create temp view if not exists observations as
    select *, memory_session_id as sdk_session_id,
        coalesce(narrative, subtitle, title) as text from main.sdk_observations;
    create temp view if not exists session_summaries as
    select *, memory_session_id as sdk_session_id,
        concat_ws(char(10), request, investigated, learned, completed, next_steps) as summary
    from main.session_summaries;
    pragma query_only = on;";

/// The result of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct SqlRows {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Values of each row; bytes are written in hex.
    pub rows: Vec<Vec<Value>>,
}

impl Store {
    /// Runs one statement that only reads. The connection can write nothing afterwards.
    pub fn query_sql(&self, sql: &str) -> Result<SqlRows> {
        self.connection.execute_batch(DOCUMENTED_VIEWS)?;
        let mut statement = self.connection.prepare(sql)?;
        let columns = statement.column_names().map(str::to_owned).collect();
        let count = statement.column_count();
        let rows = statement.query_map((), |row| {
            (0..count).map(|at| row.get_ref(at).map(json)).collect::<rusqlite::Result<_>>()
        })?;
        Ok(SqlRows { columns, rows: rows.collect::<rusqlite::Result<_>>()? })
    }
}

fn json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
        ValueRef::Blob(bytes) => {
            bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
        }
    }
}
