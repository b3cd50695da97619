//! `timeline`: the second step, memories around an anchor.

use std::fmt::Write as _;

use claude_mem_projections::{Store, search::MemoryId, timeline::TimelineWindow};

use super::{
    Server,
    arguments::{Arguments, Parameter, ParameterType, optional},
    search::EVERYWHERE,
    tools::{Effect, Tool},
};
use crate::hit_table::{cell, timeline_table};
use claude_mem_core::failure::Failure;
use claude_mem_memory::{
    resolve::current_project,
    store,
    timeline::{DEPTH, TimelineAnchor, TimelineRequest, TimelineScope, timeline},
};

const PARAMETERS: &[Parameter] = &[
    optional(
        "anchor",
        ParameterType::Anchor,
        "ID (12, \"S3\", \"P9\") or time (2026-03-01T14:30); default: now",
    ),
    optional("query", ParameterType::Text, "Instead of anchor: its best match"),
    optional("depth_before", ParameterType::Number(0, 500), "Memories before it (default 10)"),
    optional("depth_after", ParameterType::Number(0, 500), "Memories after it (default 10)"),
    optional(
        "project",
        ParameterType::Text,
        "Name, or \"*\" for all (default: the anchor's, else this one)",
    ),
    optional(
        "type",
        ParameterType::List,
        "As in search: observations, sessions, prompts, bugfix ...",
    ),
];

pub(super) static TIMELINE: Tool = Tool {
    name: "timeline",
    title: "Timeline of memories",
    description: "Step 2: what happened before and after a memory or a time: prompts, \
        observations and summaries in order.",
    parameters: PARAMETERS,
    effect: Effect::Reads,
    run,
};

fn run(server: &mut Server<'_>, arguments: &Arguments) -> Result<String, Failure> {
    let store = store::read_folded(server.app)?;
    let anchor = match (arguments.anchor("anchor"), arguments.text("query")) {
        (Some(_), Some(_)) => return Err(Failure::new("pass either anchor or query, not both")),
        (Some(text), None) => TimelineAnchor::IdOrTime(text),
        (None, Some(query)) => TimelineAnchor::Query(query.into()),
        (None, None) => TimelineAnchor::Now,
    };
    let is_id =
        matches!(&anchor, TimelineAnchor::IdOrTime(text) if text.parse::<MemoryId>().is_ok());
    let request = TimelineRequest {
        anchor,
        before: arguments.number("depth_before").unwrap_or(DEPTH),
        after: arguments.number("depth_after").unwrap_or(DEPTH),
        scope: match arguments.text("project") {
            Some(EVERYWHERE) => TimelineScope::All,
            Some(name) => TimelineScope::Named(name.into()),
            None => TimelineScope::CurrentFirst,
        },
        types: arguments.list("type"),
    };
    let found = timeline(server.app, &store, &request)?;
    match found.hint {
        Some(hint) if is_id => Err(Failure::new(hint).remedy("find its ID with search")),
        Some(hint) => Ok(format!("No anchor: {hint}")),
        None if found.moments.is_empty() => {
            Ok(format!("There are no memories of {}", current_project(server.app).label))
        }
        None => written(&store, &found),
    }
}

/// The anchor, then the table.
fn written(store: &Store, found: &TimelineWindow) -> Result<String, Failure> {
    let mut text = String::new();
    if let Some(anchor) = found.anchor.map(|name| store.memory_source(name)).transpose()?.flatten()
    {
        let project = cell(&anchor.project);
        let _ = writeln!(text, "{project}, around {} ({})", anchor.name, cell(&anchor.title));
    }
    Ok(text + &timeline_table(found))
}
