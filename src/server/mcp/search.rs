//! `search`: the first step, IDs and titles.

use std::fmt::Write as _;

use claude_mem_projections::search::{Order, Search, SearchResults};

use super::{
    Server,
    arguments::{Arguments, Parameter, ParameterType, optional},
    tools::{Effect, Tool},
};
use crate::hit_table::{cell, hit_table};
use claude_mem_core::{failure::Failure, time_arg::When};
use claude_mem_memory::{
    search::{ProjectScope, kinds_and_types, matches, search},
    semantic::Ranking,
    store,
};
use jiff::Timestamp;

/// All projects, as `project`.
pub(super) const EVERYWHERE: &str = "*";
const LIMIT: usize = 40;

const PARAMETERS: &[Parameter] = &[
    optional(
        "query",
        ParameterType::Text,
        "Words: names of files, functions, errors. Supports \"a phrase\", +required, -excluded, \
         prefix*. Without it: the newest.",
    ),
    optional("limit", ParameterType::Number(1, 1000), "Default 40"),
    optional("offset", ParameterType::Number(0, 1_000_000), "Skip this many"),
    optional(
        "project",
        ParameterType::Text,
        "Name, or \"*\" for all (default: this one, else all)",
    ),
    optional(
        "type",
        ParameterType::List,
        "observations, sessions (summaries), prompts, or as obs_type",
    ),
    optional("obs_type", ParameterType::List, "bugfix, decision, discovery, ..."),
    optional("concepts", ParameterType::List, "All of these"),
    optional("files", ParameterType::List, "Files or folders; the end of a path is enough"),
    optional("client", ParameterType::Text, "Coding agent: claude-code, codex, ..."),
    optional("session", ParameterType::Text, "ID of a session, or its prefix"),
    optional("dateStart", ParameterType::Anchor, "2026-03-01, 2026-03-01T14:30:00Z, 3d"),
    optional("dateEnd", ParameterType::Anchor, "The same, inclusive"),
    optional(
        "orderBy",
        ParameterType::Choice(&["relevance", "date_desc", "date_asc"]),
        "Default relevance",
    ),
];

pub(super) static SEARCH: Tool = Tool {
    name: "search",
    title: "Search memory",
    description: "Step 1: find memories of earlier sessions by words. Returns IDs, times, types, \
        titles and tokens to read, by day and file, the best match first. Then use timeline or \
        get_observations.",
    parameters: PARAMETERS,
    effect: Effect::Reads,
    run,
};

fn run(server: &mut Server<'_>, arguments: &Arguments) -> Result<String, Failure> {
    let store = store::read_folded(server.app)?;
    let request = request(arguments, server.app.clock.now())?;
    let scope = match arguments.text("project") {
        None => ProjectScope::CurrentFirst,
        Some(_) => ProjectScope::Requested,
    };
    let found = search(server.app, &store, scope, &request)?;
    let results = &found.results;
    let label = found.project.as_deref().unwrap_or("all projects");
    if results.hits.is_empty() {
        let hint = results.hint.as_deref().unwrap_or("there are no memories yet");
        return Ok(match &found.no_match_in {
            Some(current) => format!("No match in {current} or any other project: {hint}"),
            None => format!("No match in {label}: {hint}"),
        });
    }
    let table = hit_table(&results.hits);
    if let Some(current) = &found.no_match_in {
        let heading = heading(results, &request, "other projects");
        return Ok(format!("No match in {current}. {heading}\n{table}"));
    }
    let mut text = format!("{}\n{table}", heading(results, &request, label));
    if let Some(hint) = &results.hint {
        let _ = writeln!(text, "Hint: {hint}");
    }
    if found.ranking == Ranking::WordsWithoutEndpoint {
        text.push_str("Searched by words alone, because the embedding endpoint failed\n");
    }
    if found.matches_elsewhere > 0 {
        let others = found.matches_elsewhere;
        let _ = writeln!(text, "Other projects have {others} more: project=\"{EVERYWHERE}\"");
    }
    Ok(text)
}

fn request(arguments: &Arguments, now: Timestamp) -> Result<Search, Failure> {
    let (kinds, types) = kinds_and_types(arguments.list("type"), arguments.list("obs_type"));
    Ok(Search {
        query: arguments.text("query").unwrap_or_default().into(),
        is_typing: false,
        project: arguments.text("project").filter(|name| *name != EVERYWHERE).map(Into::into),
        kinds,
        types,
        concepts: arguments.list("concepts"),
        files: arguments.list("files"),
        since_us: time(arguments, "dateStart")?.map(|when| when.start_us(now)),
        until_us: time(arguments, "dateEnd")?.map(|when| when.end_us(now)),
        session: arguments.text("session").map(Into::into),
        host: None,
        client: arguments.text("client").map(Into::into),
        limit: arguments.number("limit").unwrap_or(LIMIT),
        offset: arguments.number("offset").unwrap_or(0),
        order: match arguments.text("orderBy") {
            Some("date_desc") => Order::Newest,
            Some("date_asc") => Order::Oldest,
            _ => Order::Relevance,
        },
        is_explained: false,
    })
}

/// Number of matches, the range shown, and how to get the next page.
fn heading(found: &SearchResults, search: &Search, label: &str) -> String {
    let (first, last) = (search.offset + 1, search.offset + found.hits.len());
    let label = cell(label);
    if search.query.is_empty() {
        // Without words there is no total.
        let more = if found.has_more { format!("; more: offset={last}") } else { String::new() };
        return format!("{label}: {first}-{last}, by time{more}");
    }
    let matches = matches(found);
    match found.has_more {
        true => format!("{label}: {matches}; {first}-{last} shown, more: offset={last}"),
        false => format!("{label}: {matches}"),
    }
}

/// A time argument: text, or a number since 1970.
fn time(arguments: &Arguments, name: &str) -> Result<Option<When>, Failure> {
    let Some(text) = arguments.anchor(name) else { return Ok(None) };
    When::from_api(&text).map(Some).map_err(|error| {
        Failure::new(format!("`{name}` is not a time: `{}`", cell(&text))).remedy(error.to_string())
    })
}
