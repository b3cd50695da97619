//! `search`: the first step, IDs and titles.

use std::fmt::Write as _;

use claude_mem_projections::{
    Store,
    search::{Kind, Order, Search, SearchResults},
};

use super::{
    Server,
    arguments::{Arguments, Parameter, Takes, optional},
    text::{cell, moment, table},
    tools::{Effect, Tool},
};
use claude_mem_core::{failure::Failure, format};
use claude_mem_memory::store;

/// All projects, as `project`.
pub(super) const EVERYWHERE: &str = "*";
const LIMIT: usize = 20;

const PARAMETERS: &[Parameter] = &[
    optional(
        "query",
        Takes::Text,
        "Words that the memory would contain: names of files, functions, errors. Each counts by itself. \
         \"a phrase\", +must, -not and begin* are understood. Without it the newest memories are listed.",
    ),
    optional("limit", Takes::Number(1, 1000), "At most so many (default 20)"),
    optional("offset", Takes::Number(0, 1_000_000), "Leave out so many before them (default 0)"),
    optional(
        "project",
        Takes::Text,
        "Name of a project, or \"*\" for all (default: this project, and all if it has no match)",
    ),
    optional(
        "type",
        Takes::List,
        "observations, sessions (summaries) or prompts; or a type as in obs_type",
    ),
    optional("obs_type", Takes::List, "Types of observations, such as bugfix, decision, discovery"),
    optional("concepts", Takes::List, "Only observations with all of these concepts"),
    optional(
        "files",
        Takes::List,
        "Only what is about these files or folders; the end of a path is enough",
    ),
    optional("session", Takes::Text, "Only this session; the beginning of its id is enough"),
    optional(
        "dateStart",
        Takes::Anchor,
        "From this moment on: 2026-03-01, 2026-03-01T14:30:00Z, 3d",
    ),
    optional("dateEnd", Takes::Anchor, "Up to this moment; a day counts whole"),
    optional(
        "orderBy",
        Takes::Choice(&["relevance", "date_desc", "date_asc"]),
        "Order of the hits (default relevance)",
    ),
];

pub(super) static TOOL: Tool = Tool {
    name: "search",
    title: "Search memory",
    description: "Step 1: find memories of earlier sessions by their words. Returns a table of IDs, times, \
                  types and titles, the best first. Then use timeline or get_observations with the IDs.",
    parameters: PARAMETERS,
    effect: Effect::Reads,
    run,
};

fn run(server: &mut Server<'_>, arguments: &Arguments) -> Result<String, Failure> {
    let store = store::read_folded(server.app)?;
    let here = store::project_meant(server.app, &store, None)?;
    let mut search = request(server, arguments)?;
    let (is_default, label) = match arguments.text("project") {
        Some(EVERYWHERE) => (false, "all projects".to_owned()),
        Some(name) => {
            search.project = Some(name.into());
            (false, name.to_owned())
        }
        None => {
            search.project = Some(here.key);
            (true, here.label)
        }
    };
    let found = store.search(&search)?;
    if found.hits.is_empty() && is_default && found.query.hint.is_none() {
        return elsewhere(&store, &search, &label);
    }
    if found.hits.is_empty() {
        let hint = found.hint.as_deref().unwrap_or("nothing is remembered yet");
        return Ok(format!("No match in {label}: {hint}"));
    }
    let mut text = format!("{}\n{}", heading(&found, &search, &label), table(&found.hits));
    if search.project.is_some() && !search.query.is_empty() {
        let all = store.search(&everywhere(&search))?.matched;
        if let Some(others @ 1..) = all.checked_sub(found.matched) {
            let more = format_args!("Other projects have {others} more: project=\"{EVERYWHERE}\"");
            let _ = writeln!(text, "{more}");
        }
    }
    Ok(text)
}

fn request(server: &Server<'_>, arguments: &Arguments) -> Result<Search, Failure> {
    let now = server.app.clock.now();
    let mut kinds = Vec::new();
    let mut types = arguments.list("obs_type");
    for type_ in arguments.list("type") {
        match type_.parse() {
            Ok(kind) => kinds.push(kind),
            Err(_) => types.push(type_),
        }
    }
    Ok(Search {
        query: arguments.text("query").unwrap_or_default().into(),
        kinds: if kinds.is_empty() { Kind::ALL.to_vec() } else { kinds },
        types,
        concepts: arguments.list("concepts"),
        files: arguments.list("files"),
        since_us: moment(arguments, "dateStart", |when| when.start(now))?,
        until_us: moment(arguments, "dateEnd", |when| when.end(now))?,
        session: arguments.text("session").map(Into::into),
        limit: arguments.number("limit").unwrap_or(LIMIT),
        offset: arguments.number("offset").unwrap_or(0),
        order: match arguments.text("orderBy") {
            Some("date_desc") => Order::Newest,
            Some("date_asc") => Order::Oldest,
            _ => Order::Relevance,
        },
        ..Search::default()
    })
}

fn everywhere(search: &Search) -> Search {
    Search { project: None, limit: 1, offset: 0, ..search.clone() }
}

/// This project has nothing: whatever there is comes from others, and says so.
fn elsewhere(store: &Store, search: &Search, label: &str) -> Result<String, Failure> {
    let search = Search { project: None, ..search.clone() };
    let found = store.search(&search)?;
    if found.hits.is_empty() {
        let hint = found.hint.as_deref().unwrap_or("nothing is remembered yet");
        return Ok(format!("No match in {label} or any other project: {hint}"));
    }
    let heading = heading(&found, &search, "other projects");
    Ok(format!("No match in {label}. {heading}\n{}", table(&found.hits)))
}

/// How many there are, which of them are shown, and how to get the next.
fn heading(found: &SearchResults, search: &Search, label: &str) -> String {
    let (first, last) = (search.offset + 1, search.offset + found.hits.len());
    let label = cell(label);
    if search.query.is_empty() {
        // Without words nothing is counted: there is more if the page is full.
        let more = if found.hits.len() == search.limit {
            format!("; older ones: offset={last}")
        } else {
            String::new()
        };
        return format!("{label}: {first}-{last}, by time{more}");
    }
    let matches = format::count(found.matched, "match");
    if last < found.matched {
        format!("{label}: {matches}; {first}-{last} shown, more: offset={last}")
    } else {
        format!("{label}: {matches}")
    }
}
