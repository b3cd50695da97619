//! `get_observations`: the third step, full text.

use std::fmt::Write as _;

use claude_mem_projections::details::{MemoryBody, MemoryDetails, Provenance};

use super::{
    Server,
    arguments::{Arguments, Parameter, ParameterType, optional, required},
    search::EVERYWHERE,
    tools::{Effect, Tool},
};
use claude_mem_core::{failure::Failure, format, safe_text::as_quotation, time_arg::local};
use claude_mem_memory::{fetches::record_fetch, resolve, store};

/// Clients silently cut longer texts.
const TEXT_BYTES_MAX: usize = 60_000;

const PARAMETERS: &[Parameter] = &[
    required("ids", ParameterType::Ids, "[12, 13, \"S3\", \"P9\"]"),
    optional(
        "orderBy",
        ParameterType::Choice(&["date_desc", "date_asc"]),
        "Default: the order of ids",
    ),
    optional("limit", ParameterType::Number(1, 1000), "Default: all"),
    optional("project", ParameterType::Text, "Only of this project"),
];

pub(super) static GET_OBSERVATIONS: Tool = Tool {
    name: "get_observations",
    title: "Read memories in full",
    description: "Step 3: full text of observations, summaries and prompts, with their sources. \
        Request all IDs you need in one call, and only those.",
    parameters: PARAMETERS,
    effect: Effect::Reads,
    run,
};

fn run(server: &mut Server<'_>, arguments: &Arguments) -> Result<String, Failure> {
    let store = store::read_folded(server.app)?;
    let ids = arguments.ids("ids");
    let mut found = store.details(&ids)?;
    let is_found = |name: &&_| found.iter().any(|details: &MemoryDetails| details.name == **name);
    let missing: Vec<String> =
        ids.iter().filter(|id| !is_found(id)).map(ToString::to_string).collect();
    if let Some(project) = arguments.text("project").filter(|name| *name != EVERYWHERE) {
        let project = resolve::named_project(server.app, &store, Some(project))?;
        found.retain(|details| details.project == project.label);
    }
    match arguments.text("orderBy") {
        Some("date_asc") => found.sort_by_key(|details| details.at_us),
        Some(_) => found.sort_by_key(|details| std::cmp::Reverse(details.at_us)),
        None => {}
    }
    found.truncate(arguments.number("limit").unwrap_or(usize::MAX));
    let mut text = String::new();
    let mut left = found.iter();
    let mut fetched = Vec::new();
    while text.len() < TEXT_BYTES_MAX
        && let Some(details) = left.next()
    {
        text += &written(details);
        text.push('\n');
        fetched.push(details.name);
    }
    record_fetch(server.app, &store, &fetched, text.len());
    let left: Vec<String> = left.map(|details| details.name.to_string()).collect();
    if !left.is_empty() {
        let _ = writeln!(text, "Not shown, request them in another call: {}", left.join(", "));
    }
    if !missing.is_empty() {
        let missing = missing.join(", ");
        if found.is_empty() {
            return Err(Failure::new(format!("there is no memory {missing}"))
                .remedy("find IDs with search"));
        }
        let _ = writeln!(text, "There is no memory {missing}");
    }
    if text.is_empty() {
        text += "None of them belongs to this project";
    }
    Ok(text)
}

fn written(details: &MemoryDetails) -> String {
    let mut text = heading(details);
    let mut line = |name: &str, value: &Option<String>| {
        if let Some(value) = value {
            let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
            let _ = writeln!(text, "{name}{}", as_quotation(value.trim()));
        }
    };
    match &details.body {
        MemoryBody::Observation(body) => {
            line("", &body.subtitle);
            line("", &body.narrative);
            for fact in &body.facts {
                let _ = writeln!(text, "- {}", as_quotation(fact));
            }
            list(&mut text, "concepts", &body.concepts);
            list(&mut text, "files read", &body.files_read);
            list(&mut text, "files modified", &body.files_modified);
        }
        MemoryBody::Summary(body) => {
            line("investigated", &body.investigated);
            line("learned", &body.learned);
            line("completed", &body.completed);
            line("next steps", &body.next_steps);
            line("notes", &body.notes);
            list(&mut text, "files read", &body.files_read);
            list(&mut text, "files edited", &body.files_edited);
        }
        MemoryBody::Prompt { text: prompt } => line("", prompt),
    }
    let _ = writeln!(text, "from: {}", origin(&details.provenance));
    text
}

/// `# 12 bugfix: title`, then time and project.
fn heading(details: &MemoryDetails) -> String {
    let (kind, title) = match &details.body {
        MemoryBody::Observation(body) => {
            (body.type_.as_deref().unwrap_or("observation"), body.title.as_deref())
        }
        MemoryBody::Summary(body) => ("summary", body.request.as_deref()),
        MemoryBody::Prompt { .. } => ("prompt", None),
    };
    let mut text = format!("# {} {kind}", details.name);
    if let Some(title) = title {
        let _ = write!(text, ": {}", title.trim());
    }
    let when = local(details.at_us, "%Y-%m-%d %H:%M");
    let _ = write!(text, "\n{when}, {}", details.project);
    if let Some(session) = &details.session {
        let session = session.split('-').next().unwrap_or_default();
        let _ = write!(text, ", session {session}");
    }
    let marks = &details.marks;
    let by_user = [
        (marks.is_pinned && marks.pinned_by.is_none(), ", pinned"),
        (marks.is_edited && marks.edited_by.is_none(), ", edited by hand"),
    ];
    for (is_set, mark) in by_user {
        text += if is_set { mark } else { "" };
    }
    text += &marks.authors("");
    match &marks.retired {
        Some(retired) => {
            let _ = write!(text, ", {retired}");
            if let Some((_, Some(title))) = marks.correction().and_then(|it| it.by.as_ref()) {
                let _ = write!(text, " ({})", title.trim());
            }
        }
        None if details.is_superseded => text += ", superseded by a later reprocessing",
        None => {}
    }
    text.push('\n');
    text
}

fn list(text: &mut String, name: &str, values: &[String]) {
    if !values.is_empty() {
        let _ = writeln!(text, "{name}: {}", values.join(", "));
    }
}

/// The author, and the source events.
fn origin(provenance: &Provenance) -> String {
    let Some(reply) = &provenance.reply else {
        return match provenance.origin.as_str() {
            "user" => "written by the user".into(),
            "claude" => "written by Claude".into(),
            "program" => "written by a program over HTTP".into(),
            "hook" => "the user's prompt".into(),
            origin => origin.to_owned(),
        };
    };
    let mut tools: Vec<&str> =
        provenance.sources.iter().filter_map(|source| source.tool.as_deref()).collect();
    tools.dedup();
    let events = format::count(provenance.sources.len(), "event");
    let tools = if tools.is_empty() { String::new() } else { format!(" ({})", tools.join(", ")) };
    format!("{} {}, from {events}{tools}", reply.provider, reply.model)
}
