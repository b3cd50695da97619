//! `timeline`: the second step, what happened around something.

use std::fmt::Write as _;

use claude_mem_projections::{
    Store,
    search::MemoryId,
    timeline::{Anchor, TimelineQuery, TimelineWindow},
};

use super::{
    Server,
    arguments::{Arguments, Parameter, Takes, optional},
    search::EVERYWHERE,
    text::{cell, label, local, moment},
    tools::{Effect, Tool},
};
use claude_mem_core::failure::Failure;
use claude_mem_memory::store;

const DEPTH: usize = 10;

const PARAMETERS: &[Parameter] = &[
    optional(
        "anchor",
        Takes::Anchor,
        "An ID (12, \"S3\", \"P9\") or a moment (2026-03-01T14:30). Without anchor and query: now.",
    ),
    optional("query", Takes::Text, "Instead of an anchor: words, whose best match is the anchor"),
    optional(
        "depth_before",
        Takes::Number(0, 500),
        "How many memories before the anchor (default 10)",
    ),
    optional(
        "depth_after",
        Takes::Number(0, 500),
        "How many memories after the anchor (default 10)",
    ),
    optional(
        "project",
        Takes::Text,
        "Name of a project, or \"*\" for all (default: the anchor's; for a moment, this project)",
    ),
];

pub(super) static TOOL: Tool = Tool {
    name: "timeline",
    title: "Timeline of memory",
    description: "Step 2: see what happened before and after a memory or a moment: prompts, observations and \
                  summaries in order. Without anchor and query: the latest in this project.",
    parameters: PARAMETERS,
    effect: Effect::Reads,
    run,
};

fn run(server: &mut Server<'_>, arguments: &Arguments) -> Result<String, Failure> {
    let store = store::read_folded(server.app)?;
    let here = store::project_meant(server.app, &store, None)?;
    let anchor = anchor(server, arguments)?;
    let project = arguments.text("project");
    let mut timeline = TimelineQuery {
        before: arguments.number("depth_before").unwrap_or(DEPTH),
        after: arguments.number("depth_after").unwrap_or(DEPTH),
        project: project.filter(|name| *name != EVERYWHERE).map(Into::into),
        is_everywhere: project == Some(EVERYWHERE),
        anchor,
    };
    // A memory brings its own project along.
    let is_here = project.is_none() && !matches!(timeline.anchor, Anchor::Memory(_));
    if is_here {
        timeline.project = Some(here.key);
    }
    let mut found = store.timeline(&timeline)?;
    if is_here && found.hint.is_some() {
        timeline.project = None;
        found = store.timeline(&timeline)?;
    }
    match found.hint {
        Some(hint) if matches!(timeline.anchor, Anchor::Memory(_)) => {
            Err(Failure::new(hint).remedy("find its ID with search"))
        }
        Some(hint) => Ok(format!("No anchor: {hint}")),
        None if found.moments.is_empty() => Ok(format!("Nothing is remembered of {}", here.label)),
        None => written(&store, &found),
    }
}

fn anchor(server: &Server<'_>, arguments: &Arguments) -> Result<Anchor, Failure> {
    let now = server.app.clock.now();
    match (arguments.anchor("anchor"), arguments.text("query")) {
        (Some(_), Some(_)) => Err(Failure::new("give either anchor or query, not both")),
        (None, Some(query)) => Ok(Anchor::Query(query.into())),
        (None, None) => Ok(Anchor::Time(u64::try_from(now.as_microsecond()).unwrap_or(0))),
        (Some(text), None) => match text.parse::<MemoryId>() {
            Ok(name) => Ok(Anchor::Memory(name)),
            Err(_) => match moment(arguments, "anchor", |when| when.start(now)) {
                Ok(Some(at_us)) => Ok(Anchor::Time(at_us)),
                _ => Err(Failure::new(format!("`{}` is neither an ID nor a moment", cell(&text)))
                    .remedy("give 12, \"S3\", \"P9\" or 2026-03-01T14:30; words go into query")),
            },
        },
    }
}

/// A heading for each day, a line for each memory, the anchor marked.
fn written(store: &Store, found: &TimelineWindow) -> Result<String, Failure> {
    let mut text = String::new();
    if let Some(anchor) = found.anchor.map(|name| store.memory_source(name)).transpose()?.flatten()
    {
        let project = cell(&anchor.project);
        let _ = writeln!(text, "{project}, around {} ({})", anchor.name, cell(&anchor.title));
    }
    let mut day = String::new();
    let mut is_passed = found.anchor.is_some();
    for hit in &found.moments {
        if !is_passed && hit.at_us >= found.at_us {
            is_passed = true;
            let _ = writeln!(text, "--- {}", local(found.at_us, "%Y-%m-%d %H:%M"));
        }
        let date = local(hit.at_us, "%Y-%m-%d");
        if date != day {
            let _ = writeln!(text, "## {date}");
            day = date;
        }
        let (time, label, title) = (local(hit.at_us, "%H:%M"), label(hit), cell(&hit.title));
        let mark = if Some(hit.name) == found.anchor { " <- anchor" } else { "" };
        let _ = writeln!(text, "{} | {time} | {label} | {title}{mark}", hit.name);
    }
    Ok(text)
}
