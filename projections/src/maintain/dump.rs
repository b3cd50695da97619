//! Dumps the tables as text, so that two databases can be compared byte for byte.

use crate::{
    error::{Error, Result},
    store::{Store, schema},
};
use rusqlite::types::ValueRef;
use std::{fmt::Write as _, io};

/// The position where reading continues depends on when segments are rolled and compacted, so the
/// dump contains the place of the last event instead.
const CHECKPOINT: &str =
    "select one, log, (select coalesce(max(seq), 0) from events where host = 0), events, at_us,
     kinds
     from checkpoint";

/// The identity of the log that a row comes from.
const LOG: &str = "coalesce((select hex(id) from hosts where log = row.host),
    (select hex(log) from checkpoint where row.host = 0))";
/// The same for sessions, where `host` is the name of the machine.
const LOG_OF_SESSION: &str = "coalesce((select hex(id) from hosts where log = row.log),
    (select hex(log) from checkpoint where row.log = 0))";
/// The key of a row's project, and its session.
const PLACE: &str = "(select key from projects where id = row.project),
    (select session from sessions where id = row.session)";
/// The number of a reprocessing on the machine where it was started.
const GENERATION: &str = "row.generation % 1000000";

impl Store {
    /// The rows of a query, one per line, columns separated by `|`.
    pub fn dump(&self, sql: &str) -> Result<String> {
        let mut text = String::new();
        self.each_line(sql, |line| {
            text.push_str(line);
            text.push('\n');
            Ok(())
        })?;
        Ok(text)
    }

    /// Every table, in a fixed order. The internal tables of the full-text indexes are left out:
    /// they depend on when rows were added, and [`check_index`](Self::check_index) checks them.
    pub fn write_dump(&self, out: &mut impl io::Write) -> Result<()> {
        let failed = |source| Error::Io { action: "write", path: "dump".into(), source };
        for table in self.table_names()? {
            writeln!(out, "-- {table}").map_err(failed)?;
            let columns = self.stored_columns(&table)?;
            let order = if columns.len() > 1 { "1, 2" } else { "1" };
            let sql = match table.as_str() {
                "checkpoint" => CHECKPOINT.to_owned(),
                _ => format!("select {} from {table} order by {order}", columns.join(", ")),
            };
            self.each_line(&sql, |line| writeln!(out, "{line}").map_err(failed))?;
        }
        Ok(())
    }

    /// Writes what does not depend on which machine folded the logs, or in which order they
    /// arrived.
    ///
    /// Ids of rows, projects and hosts differ between machines, so they are replaced by the
    /// event id, the key of the project, and the identity of the log. Folders of projects, and
    /// rows that depend on the order of folding, are left out.
    pub fn write_shared_dump(&self, out: &mut impl io::Write) -> Result<()> {
        let failed = |source| Error::Io { action: "write", path: "dump".into(), source };
        for (table, columns) in shared_columns() {
            writeln!(out, "-- {table}").map_err(failed)?;
            let sql = format!("select {columns} from {table} as row");
            let mut lines: Vec<String> = self.dump(&sql)?.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            for line in lines {
                writeln!(out, "{line}").map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Checks that the full-text indexes match the tables.
    pub fn check_index(&self) -> Result<()> {
        for table in ["observations_fts", "summaries_fts", "prompts_fts"] {
            let sql = format!("insert into {table} ({table}, rank) values ('integrity-check', 1)");
            self.connection.execute(&sql, ())?;
        }
        Ok(())
    }

    /// Missing tables and indexes, and the damage that SQLite finds; empty if the database is
    /// intact.
    pub fn damage(&self) -> Result<Vec<String>> {
        let mut statement = self.connection.prepare("pragma quick_check(20)")?;
        let lines = statement.query_map((), |row| row.get::<_, String>(0))?;
        let mut lines: Vec<String> = lines.collect::<rusqlite::Result<_>>()?;
        lines.retain(|line| line != "ok");
        let missing = schema::missing(&self.connection)?;
        lines.extend(missing.into_iter().map(|name| format!("`{name}` is missing")));
        Ok(lines)
    }

    fn table_names(&self) -> Result<Vec<String>> {
        let sql = "select name from sqlite_schema where type = 'table'
                   and name not like '%\\_fts%' escape '\\'
                   and name not like 'sqlite%' order by name";
        let mut statement = self.connection.prepare(sql)?;
        let names = statement.query_map((), |row| row.get(0))?;
        Ok(names.collect::<rusqlite::Result<_>>()?)
    }

    /// The columns of a table, without generated ones.
    fn stored_columns(&self, table: &str) -> Result<Vec<String>> {
        let sql = "select name from pragma_table_info(?1) order by cid";
        self.rows(sql, [table], |row| row.get(0))
    }

    fn each_line(&self, sql: &str, mut line: impl FnMut(&str) -> Result<()>) -> Result<()> {
        let mut statement = self.connection.prepare(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query(())?;
        let mut text = String::new();
        while let Some(row) = rows.next()? {
            text.clear();
            for column in 0..columns {
                if column > 0 {
                    text.push('|');
                }
                write_value(row.get_ref(column)?, &mut text);
            }
            line(&text)?;
        }
        Ok(())
    }
}

/// Each table with its shared columns.
#[expect(clippy::too_many_lines, reason = "one entry per table")]
fn shared_columns() -> Vec<(&'static str, String)> {
    // A line break within a text would split a row.
    let text = |column: &str| format!("replace(row.{column}, char(10), '\\n')");
    let texts =
        |columns: &[&str]| columns.iter().map(|name| text(name)).collect::<Vec<_>>().join(", ");
    let event = "hex(row.event)";
    let by = |column: &str| format!("(select hex(event) from replies where seq = row.{column})");
    vec![
        (
            "projects",
            "row.key, row.label, row.is_label_given,
            (select key from projects as other where other.id = row.merged_into),
            (select key from projects as other where other.id = row.owner)"
                .into(),
        ),
        (
            "sessions",
            format!(
                "{LOG_OF_SESSION}, {event}, replace(row.platform, '@' || row.log, ''), row.session,
                 row.memory_session, row.host, (select key from projects where id = row.project),
                 row.source, row.cwd, row.model, row.transcript_path, row.started_at_us, row.at_us,
                 row.ended_at_us, row.end_reason, row.prompt_id, row.prompt_number, row.turn,
                 row.is_turn_open, {}, row.upstream_id, row.forgotten_by is not null",
                text("title")
            ),
        ),
        (
            "prompts",
            format!(
                "{LOG}, {event}, row.id % 1000000000, row.at_us, {PLACE}, row.number, row.turn, {},
                 row.is_private, row.submitter, row.prompt_id, row.cwd, row.upstream_id",
                text("text")
            ),
        ),
        (
            "tool_uses",
            format!(
                "{LOG}, {event}, row.at_us, {PLACE}, row.prompt_number, row.turn, row.tool,
                 row.tool_use_id, row.has_failed, row.is_interrupt, row.files_read,
                 row.files_written, row.cwd, row.agent_id, row.agent_type, row.duration_ms,
                 row.bytes, {}, row.attempts, row.is_parked, row.upstream_id",
                by("answered_by")
            ),
        ),
        (
            "stops",
            format!(
                "{LOG}, {event}, row.at_us, {PLACE}, row.prompt_number, row.turn, row.scope,
                 row.agent_id, row.agent_type, row.background_tasks, row.bytes, {}, row.attempts,
                 row.is_parked",
                by("answered_by")
            ),
        ),
        (
            "replies",
            format!(
                "{LOG}, {event}, row.at_us, {PLACE}, row.provider, row.model, row.prompt_version,
                 {GENERATION}, row.attempt, row.verdict, row.observations, row.summaries,
                 row.is_cut, row.cost_micros, row.bytes, row.sources, row.is_current,
                 row.superseded_by % 1000000"
            ),
        ),
        (
            "observations",
            format!(
                "{LOG}, {event}, row.id % 1000000000, row.number, row.at_us, {PLACE},
                 row.prompt_number, row.origin, row.type, {}, row.agent_type, row.provider,
                 row.model, row.prompt_version, {GENERATION}, row.tokens, row.is_visible,
                 row.superseded_by % 1000000, row.upstream_id, row.is_pinned, row.is_edited,
                 row.verdict, row.is_corrected, row.repeats % 1000000000, row.is_replaced,
                 row.edited_by, row.pinned_by",
                texts(&[
                    "title",
                    "subtitle",
                    "narrative",
                    "facts",
                    "concepts",
                    "files_read",
                    "files_modified",
                    "metadata"
                ])
            ),
        ),
        (
            "summaries",
            format!(
                "{LOG}, {event}, row.id % 1000000000, row.number, row.at_us, {PLACE},
                 row.prompt_number, row.origin, {}, row.provider, row.model, row.prompt_version,
                 {GENERATION}, row.tokens, row.is_visible, row.superseded_by % 1000000,
                 row.upstream_id",
                texts(&[
                    "request",
                    "investigated",
                    "learned",
                    "completed",
                    "next_steps",
                    "notes",
                    "files_read",
                    "files_edited"
                ])
            ),
        ),
        (
            "corrections",
            format!("{}, row.number, {}, row.target % 1000000000", by("seq"), text("title")),
        ),
        ("replacements", "row.target % 1000000000, row.observation % 1000000000".into()),
        (
            "revisions",
            format!(
                "{event}, row.at_us, hex(row.target), row.number, row.what, row.type, {},
                 hex(row.by_event), row.by_number, row.author",
                texts(&["title", "narrative", "because"])
            ),
        ),
        (
            "reprocesses",
            format!(
            "{LOG}, {event}, {GENERATION}, row.at_us, row.prompt_version, row.provider, row.model,
             row.finished_at_us, row.is_current"),
        ),
        (
            "injections",
            format!(
            "(select hex(event) from events where seq = row.seq), row.position, row.at_us, {PLACE},
             row.moment, {event}, row.number"),
        ),
        (
            "forgettings",
            format!("{LOG}, {event}, row.at_us, hex(row.undoes), row.is_void, {}", text("reason")),
        ),
    ]
}

fn write_value(value: ValueRef<'_>, text: &mut String) {
    let written = match value {
        ValueRef::Null => Ok(()),
        ValueRef::Integer(number) => write!(text, "{number}"),
        ValueRef::Real(number) => write!(text, "{number}"),
        ValueRef::Text(bytes) => write!(text, "{}", String::from_utf8_lossy(bytes)),
        ValueRef::Blob(bytes) => bytes.iter().try_for_each(|byte| write!(text, "{byte:02x}")),
    };
    written.expect("a string takes everything");
}
