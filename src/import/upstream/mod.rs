//! Imports the memory of the TypeScript claude-mem, from its database or an export.
//!
//! Event ids derive from the content of a row, not from its number, so that the database, a copy
//! and an export give the same events.

mod names;
mod source;

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use claude_mem_events::{Envelope, Event, Id, Imported, SummaryRequested};
use claude_mem_projections::{UpstreamRow, UpstreamTable as Table};
use names::Names;
use serde_json::{Map, Value};
use source::{Problem, Source};

use crate::{
    DATABASE,
    home::Home,
    sink::{Sink, stable_id},
    upstream_rows::{redacted_row, text, time_us, written},
};
use claude_mem_capture::{CLAUDE_CODE, envelope};
use claude_mem_core::{app::App, failure::Failure, progress::Progress};
use claude_mem_privacy::redact_text;

/// The client name of imported rows.
const SOURCE: &str = "claude-mem-ts";

/// Imports a database, the folder that contains it, or an export.
pub(super) fn import_upstream(app: &App, sink: &mut Sink<'_>, path: &Path) -> Result<(), Failure> {
    let inner = path.join(DATABASE);
    let path = if inner.is_file() { &inner } else { path };
    let source = Source::open(path)?;
    let mut import = Import::new(app, sink, source.origin(path)?);
    import.learn(&source);
    import.sink.progress = Progress::items("importing", source.rows() as usize);
    for table in Table::ALL {
        let read = source.read(table, |row| {
            import.sink.progress.advance(1);
            import.take(table, &row)
        });
        match read {
            Ok(()) => {}
            Err(Problem::Ours(failure)) => return Err(failure),
            // Other tables may be intact.
            Err(Problem::Source(error)) => {
                let damage = format!("{}: {error}", table.name());
                import.sink.report.damage.push(damage);
            }
        }
    }
    Ok(())
}

/// A session, as referenced by other rows.
#[derive(Debug, Clone, Default)]
struct Session {
    content: String,
    platform: String,
    project: String,
    time_us: Option<u64>,
}

struct Import<'a, 's> {
    home: Home<'a>,
    sink: &'a mut Sink<'s>,
    origin: String,
    names: Names,
    by_memory: HashMap<String, Session>,
    by_row: HashMap<i64, String>,
    by_content: HashMap<String, Session>,
    /// Sessions whose first prompt has its own row.
    prompted: HashSet<String>,
    /// Sessions whose prompts and tool uses are in our log.
    recorded: HashMap<String, bool>,
}

impl<'a, 's> Import<'a, 's> {
    fn new(app: &'a App, sink: &'a mut Sink<'s>, origin: String) -> Self {
        Self {
            home: Home::new(app),
            names: Names::new(app),
            sink,
            origin,
            by_memory: HashMap::new(),
            by_row: HashMap::new(),
            by_content: HashMap::new(),
            prompted: HashSet::new(),
            recorded: HashMap::new(),
        }
    }

    /// Reads the sessions that later rows refer to. Errors are reported by the later pass.
    fn learn(&mut self, source: &Source) {
        let _ = source.read(Table::Sessions, |row| {
            self.learn_session(&row);
            Ok(())
        });
        let _ = source.read(Table::Prompts, |row| {
            if row.get("prompt_number").and_then(Value::as_i64) == Some(1) {
                let content = self.content_of(&row);
                self.prompted.insert(content);
            }
            Ok(())
        });
        let _ = source.read(Table::Pending, |row| {
            let session = self.session_of(&row);
            self.names.learn_folder(&session.project, text(&row, "cwd"));
            Ok(())
        });
    }

    fn learn_session(&mut self, row: &UpstreamRow) {
        let platform = match text(row, "platform_source") {
            "" | "claude" => CLAUDE_CODE.name,
            other => other,
        };
        let session = Session {
            content: text(row, "content_session_id").into(),
            platform: platform.into(),
            project: project_name(row).into(),
            time_us: time_us(row, &["started_at", "created_at"]),
        };
        self.names.learn_session(&session.project, &session.content);
        let memory = text(row, "memory_session_id");
        if !memory.is_empty() {
            self.by_memory.insert(memory.into(), session.clone());
        }
        if let Some(id) = row.get("id").and_then(Value::as_i64) {
            self.by_row.insert(id, session.content.clone());
        }
        self.by_content.insert(session.content.clone(), session);
    }

    /// Prompts and pending rows refer to a session by row number or by the client's id.
    fn content_of(&self, row: &UpstreamRow) -> String {
        let by_row = row.get("session_db_id").and_then(Value::as_i64);
        let found = by_row.and_then(|id| self.by_row.get(&id));
        found.cloned().unwrap_or_else(|| text(row, "content_session_id").into())
    }

    /// The session of a row. An unknown one gets a generated id, so that its memories stay
    /// together.
    fn session_of(&self, row: &UpstreamRow) -> Session {
        let memory = text(row, "memory_session_id");
        let content = self.content_of(row);
        let found = self.by_content.get(&content).or_else(|| self.by_memory.get(memory));
        found.cloned().unwrap_or_else(|| {
            let content = match (content.is_empty(), memory.is_empty()) {
                (false, _) => content,
                (true, false) => format!("orphan-{memory}"),
                (true, true) => format!("orphan-{}", self.origin),
            };
            Session { content, platform: CLAUDE_CODE.name.into(), ..Session::default() }
        })
    }

    fn take(&mut self, table: Table, row: &UpstreamRow) -> Result<(), Failure> {
        let session = self.session_of(row);
        let name = match project_name(row) {
            "" => session.project.as_str(),
            name => name,
        };
        let time_us = time_us(row, &["created_at", "started_at"]).or(session.time_us);
        let Some(time_us) = time_us else {
            self.sink.refuse(format!("{}: rows without a time", table.name()));
            return Ok(());
        };
        let Some(project) = self.names.project(name, &mut self.home, self.sink.store)? else {
            self.sink.leave_out("rows of projects that are excluded");
            return Ok(());
        };
        let envelope = envelope(&session.platform, &session.content, project);
        match table {
            Table::Sessions => {
                self.first_prompt(row, time_us, &envelope)?;
                self.add("session", row, time_us, &envelope, &["platform_source"])
            }
            Table::Prompts if self.is_recorded(&envelope)? => {
                self.sink.report.known += 1;
                Ok(())
            }
            Table::Prompts => {
                self.add("prompt", row, time_us, &envelope, &["prompt_number", "prompt_text"])
            }
            Table::Observations => {
                let columns = ["title", "subtitle", "narrative", "text", "facts"];
                self.add("observation", row, time_us, &envelope, &columns)
            }
            Table::Summaries => {
                let columns = ["prompt_number", "request", "learned", "completed", "next_steps"];
                self.add("summary", row, time_us, &envelope, &columns)
            }
            Table::Pending => self.pending(row, time_us, &envelope),
        }
    }

    /// The first prompt of a session, if it has no separate row.
    fn first_prompt(
        &mut self,
        row: &UpstreamRow,
        time_us: u64,
        envelope: &Envelope,
    ) -> Result<(), Failure> {
        let prompt = text(row, "user_prompt");
        let is_elsewhere = self.prompted.contains(&envelope.session);
        if prompt.trim().is_empty() || is_elsewhere || self.is_recorded(envelope)? {
            return Ok(());
        }
        let mut first = Map::new();
        first.insert("id".into(), format!("session-{}", written(row, "id")).into());
        first.insert("prompt_number".into(), 1.into());
        first.insert("prompt_text".into(), prompt.into());
        self.add("prompt", &first, time_us, envelope, &["prompt_number", "prompt_text"])
    }

    /// Whether our log has the prompts and tool uses of this session, from hooks or from its
    /// transcript.
    fn is_recorded(&mut self, envelope: &Envelope) -> Result<bool, Failure> {
        if let Some(known) = self.recorded.get(&envelope.session) {
            return Ok(*known);
        }
        let events = self.sink.store.events_of_session(&envelope.platform, &envelope.session)?;
        let is_captured =
            |(_, kind): &(Id, u16)| matches!(Event::name_of(*kind), "PromptSubmitted" | "ToolUsed");
        let is_recorded = events.iter().any(is_captured);
        self.recorded.insert(envelope.session.clone(), is_recorded);
        Ok(is_recorded)
    }

    fn pending(
        &mut self,
        row: &UpstreamRow,
        time_us: u64,
        envelope: &Envelope,
    ) -> Result<(), Failure> {
        if text(row, "status") == "processed" {
            self.sink.leave_out("pending rows that were processed");
            return Ok(());
        }
        if self.is_recorded(envelope)? {
            self.sink.report.known += 1;
            return Ok(());
        }
        let columns = ["tool_use_id", "tool_name", "tool_input", "prompt_number"];
        if text(row, "message_type") != "summarize" {
            if text(row, "tool_name").is_empty() {
                self.sink.refuse("pending_messages: rows without a tool");
                return Ok(());
            }
            return self.add("pending", row, time_us, envelope, &columns);
        }
        let policy = self.home.policy;
        let id = identity("stop", row, time_us, envelope, &columns);
        self.sink.add("SummaryRequested", id, envelope, || {
            let stop = SummaryRequested {
                last_user_message: redact_text(text(row, "last_user_message"), policy).text,
                last_assistant_message: redact_text(text(row, "last_assistant_message"), policy)
                    .text,
                cwd: text(row, "cwd").into(),
                ..SummaryRequested::default()
            };
            stop.into()
        })
    }

    /// Adds one row; `columns` are those that distinguish it from others of its session and
    /// time.
    fn add(
        &mut self,
        what: &'static str,
        row: &UpstreamRow,
        time_us: u64,
        envelope: &Envelope,
        columns: &[&str],
    ) -> Result<(), Failure> {
        let (policy, origin) = (self.home.policy, &self.origin);
        let id = identity(what, row, time_us, envelope, columns);
        self.sink.add(what, id, envelope, || {
            let mut row_cleaned = redacted_row(row, policy);
            if row.contains_key("created_at_epoch") || row.contains_key("created_at") {
                // Always in milliseconds.
                row_cleaned.insert("created_at_epoch".into(), (time_us / 1000).into());
            }
            let imported = Imported {
                source: SOURCE.into(),
                origin: origin.clone(),
                table: what.into(),
                row_id: written(row, "id"),
                row: Value::Object(row_cleaned).to_string(),
            };
            imported.into()
        })
    }
}

fn identity(
    what: &str,
    row: &UpstreamRow,
    time_us: u64,
    envelope: &Envelope,
    columns: &[&str],
) -> Id {
    let texts: Vec<String> = columns.iter().map(|name| written(row, name)).collect();
    let mut parts = vec![SOURCE, what, &envelope.platform, &envelope.session];
    parts.extend(texts.iter().map(String::as_str));
    stable_id(time_us, &parts)
}

/// The project name in the source. Worktrees are `parent/worktree` there; here they belong to the
/// parent.
fn project_name(row: &UpstreamRow) -> &str {
    match text(row, "merged_into_project") {
        "" => text(row, "project").split('/').next().unwrap_or_default(),
        merged => merged,
    }
}
