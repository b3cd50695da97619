//! What several machines agree on: the dump that is the same wherever the same logs were folded.
//!
//! Numbers of rows, projects and logs are given on each machine, so they are replaced by what names the same
//! thing everywhere: the event, the key of the project, the identity of the log. Where a project lies, and
//! what only stands for the way it was folded, is left out.

use crate::{
    error::{Error, Result},
    store::Store,
};
use std::io;

/// The identity of the log that a row comes from.
const LOG: &str = "coalesce((select hex(id) from hosts where log = row.host),
    (select hex(log) from checkpoint where row.host = 0))";
/// The same for sessions, where `host` is the name of the machine.
const LOG_OF_SESSION: &str = "coalesce((select hex(id) from hosts where log = row.log),
    (select hex(log) from checkpoint where row.log = 0))";
/// Names the project of a row, and the session.
const PLACE: &str = "(select key from projects where id = row.project),
    (select session from sessions where id = row.session)";
/// The number of a reprocessing as it is where it was started.
const GENERATION: &str = "row.generation % 1000000";

impl Store {
    /// Writes what does not depend on which machine folded the logs, or in which order they arrived.
    pub fn write_shared_dump(&self, out: &mut impl io::Write) -> Result<()> {
        let failed = |source| Error::Io { action: "write", path: "dump".into(), source };
        for (table, columns) in tables() {
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
}

/// Each table with what is shared of it.
fn tables() -> Vec<(&'static str, String)> {
    // Line breaks within a text would part a row.
    let text = |column: &str| format!("replace(row.{column}, char(10), '\\n')");
    let texts =
        |columns: &[&str]| columns.iter().map(|name| text(name)).collect::<Vec<_>>().join(", ");
    let event = "hex(row.event)";
    let by = |column: &str| format!("(select hex(event) from replies where seq = row.{column})");
    vec![
        ("projects", "row.key, row.label, row.is_label_given,
            (select key from projects as other where other.id = row.merged_into),
            (select key from projects as other where other.id = row.owner)".into()),
        ("sessions", format!(
            "{LOG_OF_SESSION}, {event}, replace(row.platform, '@' || row.log, ''), row.session, row.memory_session, row.host,
             (select key from projects where id = row.project), row.source, row.cwd, row.model,
             row.transcript_path, row.started_at_us, row.at_us, row.ended_at_us, row.end_reason, row.prompt_id,
             row.prompt_number, row.turn, row.is_turn_open, {}, row.upstream_id,
             row.forgotten_by is not null", text("title"))),
        ("prompts", format!(
            "{LOG}, {event}, row.id % 1000000000, row.at_us, {PLACE}, row.number, row.turn, {},
             row.is_private, row.submitter, row.prompt_id, row.cwd, row.upstream_id", text("text"))),
        ("tool_uses", format!(
            "{LOG}, {event}, row.at_us, {PLACE}, row.prompt_number, row.turn, row.tool, row.tool_use_id,
             row.has_failed, row.is_interrupt, row.files_read, row.files_written, row.cwd, row.agent_id,
             row.agent_type, row.duration_ms, row.bytes, {}, row.attempts, row.is_parked, row.upstream_id",
            by("answered_by"))),
        ("stops", format!(
            "{LOG}, {event}, row.at_us, {PLACE}, row.prompt_number, row.turn, row.scope, row.agent_id,
             row.agent_type, row.background_tasks, row.bytes, {}, row.attempts, row.is_parked",
            by("answered_by"))),
        ("replies", format!(
            "{LOG}, {event}, row.at_us, {PLACE}, row.provider, row.model, row.prompt_version, {GENERATION},
             row.attempt, row.verdict, row.observations, row.summaries, row.is_cut, row.cost_micros,
             row.bytes, row.sources, row.is_current, row.superseded_by % 1000000")),
        ("observations", format!(
            "{LOG}, {event}, row.id % 1000000000, row.number, row.at_us, {PLACE}, row.prompt_number, row.origin,
             row.type, {}, row.agent_type, row.provider, row.model, row.prompt_version, {GENERATION},
             row.tokens, row.is_visible, row.superseded_by % 1000000, row.upstream_id",
            texts(&["title", "subtitle", "narrative", "facts", "concepts", "files_read",
                "files_modified", "metadata"]))),
        ("summaries", format!(
            "{LOG}, {event}, row.id % 1000000000, row.number, row.at_us, {PLACE}, row.prompt_number, row.origin,
             {}, row.provider, row.model, row.prompt_version, {GENERATION}, row.tokens, row.is_visible,
             row.superseded_by % 1000000, row.upstream_id",
            texts(&["request", "investigated", "learned", "completed", "next_steps", "notes",
                "files_read", "files_edited"]))),
        ("reprocesses", format!(
            "{LOG}, {event}, {GENERATION}, row.at_us, row.prompt_version, row.provider, row.model,
             row.finished_at_us, row.is_current")),
        ("forgettings", format!(
            "{LOG}, {event}, row.at_us, hex(row.undoes), row.is_void, {}", text("reason"))),
    ]
}
