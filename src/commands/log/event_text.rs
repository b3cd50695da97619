//! Events as text: one line each, or in full.

use std::fmt::Write as _;

use claude_mem_events::{Event, Gap, Recorded};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;

use super::json::{compact, fields};
use crate::commands::table::GAP;
use claude_mem_core::{
    app::Output,
    wrap::{cut, fit, width},
};
use claude_mem_memory::event_subject::subject;

/// Fits the longest name among the common kinds.
const KIND_COLUMNS: usize = 16;
const PLACE_COLUMNS: usize = 9;
const LABEL_COLUMNS: usize = 14;
/// With less space than this next to the other columns, the subject gets a separate line.
const SUBJECT_COLUMNS_MIN: usize = 60;

/// Place, time, session, project, kind, subject, and the ID of a tool use: on one line, or two on a
/// narrow terminal.
pub(super) fn event_row(recorded: &Recorded, output: &Output) -> String {
    let place = format!("{:>PLACE_COLUMNS$}", recorded.seq.to_string());
    let time = time(recorded, "%Y-%m-%d %H:%M:%S");
    let session: String = plain(&recorded.envelope.session).chars().take(8).collect();
    let label = &recorded.envelope.project.label;
    let kind = recorded.event.name();
    let tool_use = match &recorded.event {
        Event::ToolUsed(used) => plain(&used.tool_use_id),
        _ => String::new(),
    };
    let taken = width(&place) + width(&time) + 8 + LABEL_COLUMNS + KIND_COLUMNS + 5 * GAP;
    let mut subject = one_line(&subject(&recorded.event));
    let mut is_below = false;
    let label = match output.columns() {
        Some(columns) => {
            is_below = columns.saturating_sub(taken) < SUBJECT_COLUMNS_MIN;
            let taken = if is_below { PLACE_COLUMNS + GAP } else { taken };
            let room = columns.saturating_sub(taken + width(&tool_use) + GAP);
            subject = cut(&subject, room);
            fit(&one_line(label), LABEL_COLUMNS)
        }
        None => format!("{:LABEL_COLUMNS$}", one_line(label)),
    };
    let line = format!(
        "{}  {}  {}  {label}  {}",
        output.dim(&place),
        output.dim(&time),
        output.dim(&format!("{session:8}")),
        output.paint(colour(&recorded.event), &format!("{kind:KIND_COLUMNS$}")),
    );
    let subject = format!("{subject}  {}", output.dim(&tool_use));
    let text = match is_below {
        true => format!("{line}\n{:1$}{subject}", "", PLACE_COLUMNS + GAP),
        false => format!("{line}  {subject}"),
    };
    text.trim_end().to_owned()
}

/// All fields of an event.
pub(in crate::commands) fn event_text(recorded: &Recorded, output: &Output) -> String {
    let envelope = &recorded.envelope;
    let mut text = String::new();
    let name = output.paint(colour(&recorded.event), recorded.event.name());
    let _ = writeln!(text, "{name} {}  {}", recorded.seq, output.dim(&recorded.id.to_string()));
    let head = [
        ("time", time(recorded, "%Y-%m-%d %H:%M:%S%.6f %:z")),
        ("session", plain(&envelope.session)),
        (
            "project",
            format!("{} ({})", plain(&envelope.project.label), plain(&envelope.project.key)),
        ),
        ("root", plain(&envelope.project.root)),
        ("branch", plain(&envelope.branch)),
        ("commit", plain(&envelope.commit)),
        ("host", plain(&envelope.host)),
        ("platform", plain(&envelope.platform)),
    ];
    for (name, value) in head {
        field(&mut text, output, name, &value);
    }
    for (name, value) in fields(&recorded.event) {
        field(&mut text, output, &name, &plain(&written(&value)));
    }
    text
}

pub(super) fn gap(gap: &Gap, output: &Output) -> String {
    let place = format!("{:>PLACE_COLUMNS$}", format!("{}:{}", gap.segment, gap.offset));
    format!("{}  {}", output.dim(&place), output.paint("31", &format!("damaged: {gap}")))
}

fn field(text: &mut String, output: &Output, name: &str, value: &str) {
    if value.is_empty() {
        return;
    }
    let padded = output.dim(&format!("{name:>22}"));
    let mut start = padded.as_str();
    for line in value.lines() {
        let line = output.hanging(24, &format!("{start:22}  {line}"));
        let _ = writeln!(text, "{line}");
        start = "";
    }
}

/// A readable value: indented JSON, or plain text.
fn written(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.starts_with(['{', '[']) => spread(text),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => String::new(),
        other => format!("{other:#}"),
    }
}

fn spread(json: &str) -> String {
    let pretty = serde_json::from_str::<Value>(json).map(|value| format!("{value:#}"));
    // Nested too deeply to indent: print it on one line.
    pretty.unwrap_or_else(|_| {
        compact(json).map_or_else(|| json.to_owned(), |line| line.get().to_owned())
    })
}

fn time(recorded: &Recorded, format: &str) -> String {
    let micros = recorded.at_us().cast_signed();
    let moment = Timestamp::from_microsecond(micros).unwrap_or_default();
    moment.to_zoned(TimeZone::system()).strftime(format).to_string()
}

/// The text without terminal control characters, except line breaks.
fn plain(text: &str) -> String {
    let shown = |c: char| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

fn one_line(text: &str) -> String {
    plain(text).replace(['\n', '\t'], " ")
}

fn colour(event: &Event) -> &'static str {
    match event {
        Event::ToolUsed(used) if used.has_failed => "31",
        Event::InputUnreadable(_) | Event::AgentFailed(_) => "31",
        Event::PromptSubmitted(_) => "32",
        Event::ToolUsed(_) => "36",
        Event::SummaryRequested(_) | Event::AgentReplied(_) => "35",
        Event::SessionStarted(_) | Event::SessionEnded(_) => "34",
        _ => "33",
    }
}
