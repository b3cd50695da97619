//! Rows imported from another store.

use crate::{
    error::Result,
    fold::{
        observations,
        projection::{Projection, Rows},
        sessions, summaries, tool_uses,
    },
    fts_terms,
    store::sql_values::some,
    text::one_line,
};
use claude_mem_events::{Event, Imported, Recorded, ToolUsed};
use rusqlite::params;
use serde_json::{Map, Value};

/// Imports. Each row keeps its original id, because users quote it.
pub(crate) struct Imports;

impl Projection for Imports {
    fn name(&self) -> &'static str {
        "imports"
    }

    fn version(&self) -> u32 {
        2
    }

    fn apply(&self, rows: &Rows<'_>, event: &Recorded) -> Result<()> {
        match &event.event {
            Event::Imported(imported) => import(rows, event, imported),
            _ => Ok(()),
        }
    }
}

fn import(rows: &Rows<'_>, event: &Recorded, imported: &Imported) -> Result<()> {
    let row = serde_json::from_str::<Map<String, Value>>(&imported.row);
    // Rows contain these texts, so a new text needs a new version.
    let refused = match &row {
        Err(_) => Some("the row is no JSON object"),
        Ok(_) if !KINDS.contains(&imported.table.as_str()) => {
            Some("rows of this kind are not known")
        }
        Ok(_) => None,
    };
    let sql = "insert or ignore into imports
                   (seq, event, at_us, source, origin, kind, upstream_id, refused)
               values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let (seq, at_us) = (event.seq.raw() as i64, event.at_us() as i64);
    let Imported { source, origin, table, row_id, .. } = imported;
    let values = params![seq, event.id.as_bytes(), at_us, source, origin, table, row_id, refused];
    let is_new = rows.run(sql, values)? > 0;
    match row {
        Ok(row) if is_new && refused.is_none() => insert(rows, event, imported, &Columns(row)),
        _ => Ok(()),
    }
}

const KINDS: [&str; 5] = ["session", "prompt", "observation", "summary", "pending"];

fn insert(rows: &Rows<'_>, event: &Recorded, imported: &Imported, row: &Columns) -> Result<()> {
    match imported.table.as_str() {
        "session" => session(rows, event, imported, row),
        "prompt" => prompt(rows, event, imported, row),
        "observation" => observation(rows, event, imported, row),
        "summary" => summary(rows, event, imported, row),
        _ => pending(rows, event, imported, row),
    }
}

/// The columns of an imported row, parsed leniently.
struct Columns(Map<String, Value>);

impl Columns {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str().filter(|text| !text.trim().is_empty())
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.0.get(name)?.as_i64()
    }

    /// A time in milliseconds (very old rows: seconds), as microseconds.
    fn time_us(&self, name: &str) -> Option<i64> {
        match self.number(name)? {
            seconds if seconds < 100_000_000_000 => seconds.checked_mul(1_000_000),
            millis => millis.checked_mul(1000),
        }
    }

    /// A list: an array, an array as JSON text, a string as JSON text, or plain text.
    fn list(&self, name: &str) -> Vec<String> {
        let value = match self.0.get(name) {
            Some(Value::String(text)) if text.trim().is_empty() => return Vec::new(),
            Some(Value::String(text)) => {
                serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()))
            }
            Some(value) => value.clone(),
            None => return Vec::new(),
        };
        match value {
            Value::Array(items) => {
                items.iter().filter_map(|item| item.as_str().map(one_line)).collect()
            }
            Value::String(text) => vec![one_line(&text)],
            _ => Vec::new(),
        }
    }

    /// Keywords, without the explanation after a colon.
    fn concepts(&self, kind: &str) -> Vec<String> {
        let word =
            |concept: String| concept.split(':').next().unwrap_or_default().trim().to_owned();
        let is_kept = |concept: &String| !concept.is_empty() && concept != kind;
        self.list("concepts").into_iter().map(word).filter(is_kept).collect()
    }
}

fn session(rows: &Rows<'_>, event: &Recorded, imported: &Imported, row: &Columns) -> Result<()> {
    let Some(session) = sessions::place(rows, event)?.session else { return Ok(()) };
    let started_at = row.time_us("started_at_epoch").unwrap_or(event.at_us() as i64);
    let ended_at = row.time_us("completed_at_epoch").or_else(|| {
        // Some rows have an end status but no end time.
        row.text("status").filter(|status| *status != "active").map(|_| started_at)
    });
    let sql = "update sessions set upstream_id = ?2, title = ?3,
                   memory_session = coalesce(memory_session, ?4),
                   started_at_us = min(started_at_us, ?5), ended_at_us = coalesce(ended_at_us, ?6)
               where id = ?1";
    let values = params![
        session,
        imported.row_id,
        row.text("custom_title"),
        row.text("memory_session_id"),
        started_at,
        ended_at,
    ];
    rows.run(sql, values)?;
    Ok(())
}

fn prompt(rows: &Rows<'_>, event: &Recorded, imported: &Imported, row: &Columns) -> Result<()> {
    let id = rows.numbers("prompts", 1)?;
    let place = sessions::place(rows, event)?;
    let Some(session) = place.session else { return Ok(()) };
    let number = row.number("prompt_number").unwrap_or(place.prompt_number + 1);
    let text = row.text("prompt_text");
    let words = fts_terms::of(text);
    let sql = "insert into prompts (id, event, seq, at_us, session, project, number, turn, text,
                   is_private, submitter, identifiers, grams, upstream_id)
               values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, 0, 'user', ?9, ?10, ?11)";
    rows.run(
        sql,
        params![
            id,
            event.id.as_bytes(),
            event.seq.raw() as i64,
            row.time_us("created_at_epoch").unwrap_or(event.at_us() as i64),
            session,
            place.project,
            number,
            text,
            words.identifiers,
            words.grams,
            imported.row_id,
        ],
    )?;
    rows.places.borrow_mut().clear();
    let sql = "update sessions set prompt_number = max(prompt_number, ?2), turn = max(turn, ?2)
               where id = ?1";
    rows.run(sql, (session, number))?;
    Ok(())
}

fn observation(
    rows: &Rows<'_>,
    event: &Recorded,
    imported: &Imported,
    row: &Columns,
) -> Result<()> {
    let id = rows.numbers("observations", 1)?;
    let place = sessions::place(rows, event)?;
    let kind = row.text("type");
    let is_by_hand = row.text("memory_session_id").is_some_and(|id| id.starts_with("manual-"));
    let (facts, concepts) = (row.list("facts"), row.concepts(kind.unwrap_or_default()));
    let (files_read, files_modified) = (row.list("files_read"), row.list("files_modified"));
    let imported_row = observations::Row {
        number: 1,
        at_us: row.time_us("created_at_epoch").unwrap_or(event.at_us() as i64),
        session: place.session,
        project: place.project,
        prompt_number: row.number("prompt_number"),
        origin: if is_by_hand { "user" } else { "import" },
        kind,
        title: row.text("title"),
        subtitle: row.text("subtitle"),
        narrative: row.text("narrative").or(row.text("text")),
        facts: &facts,
        concepts: &concepts,
        files_read: &files_read,
        files_modified: &files_modified,
        agent_type: row.text("agent_type"),
        model: row.text("generated_by_model"),
        tokens: row.number("discovery_tokens").unwrap_or(0),
        metadata: row.text("metadata"),
        is_visible: true,
        upstream_id: some(&imported.row_id),
        ..observations::Row::default()
    };
    imported_row.insert(rows, event, id)
}

fn summary(rows: &Rows<'_>, event: &Recorded, imported: &Imported, row: &Columns) -> Result<()> {
    let id = rows.numbers("summaries", 1)?;
    let place = sessions::place(rows, event)?;
    let (files_read, files_edited) = (row.list("files_read"), row.list("files_edited"));
    let texts = ["request", "investigated", "learned", "completed", "next_steps", "notes"];
    let imported_row = summaries::Row {
        at_us: row.time_us("created_at_epoch").unwrap_or(event.at_us() as i64),
        session: place.session,
        project: place.project,
        prompt_number: row.number("prompt_number"),
        origin: "import",
        texts: texts.map(|name| row.text(name)),
        files_read: &files_read,
        files_edited: &files_edited,
        tokens: row.number("discovery_tokens").unwrap_or(0),
        is_visible: true,
        upstream_id: some(&imported.row_id),
        ..summaries::Row::default()
    };
    imported_row.insert(rows, event, id)
}

/// A tool use that the other store never distilled.
fn pending(rows: &Rows<'_>, event: &Recorded, imported: &Imported, row: &Columns) -> Result<()> {
    let Some(used) = tool_used(row) else { return Ok(()) };
    if let Some(session) = sessions::place(rows, event)?.session {
        rows.run("update sessions set tool_uses = tool_uses + 1 where id = ?1", [session])?;
    }
    tool_uses::insert(rows, event, &used, Some(&imported.row_id))
}

fn tool_used(row: &Columns) -> Option<ToolUsed> {
    let text = |name| row.text(name).unwrap_or_default().to_owned();
    Some(ToolUsed {
        tool: row.text("tool_name")?.to_owned(),
        input: text("tool_input"),
        output: text("tool_response"),
        tool_use_id: text("tool_use_id"),
        cwd: text("cwd"),
        agent_id: text("agent_id"),
        agent_type: text("agent_type"),
        ..ToolUsed::default()
    })
}

/// The tool use in an imported row, if it is one that is pending.
pub fn imported_tool_use(imported: &Imported) -> Option<ToolUsed> {
    let row = serde_json::from_str(&imported.row).ok().map(Columns)?;
    if imported.table == "pending" { tool_used(&row) } else { None }
}
