//! `claude-mem show`: memories in full, with provenance.

use std::{convert::Infallible, fmt::Write as _, str::FromStr};

use clap::Args;
use claude_mem_events::{Recorded, Seq};
use claude_mem_projections::{
    Correction, EventFilter, Retired, Store, Usage,
    details::{MemoryBody, MemoryDetails, Provenance, SourceEvent},
    local_seq,
    search::MemoryId,
};
use serde::Serialize;

use super::{hit_labels, log, report::session_text};
use claude_mem_core::{
    app::{App, Output},
    failure::Failure,
    format::{self, count, number},
    time_arg::local,
    wrap::cut,
};
use claude_mem_distill::dollars;
use claude_mem_memory::{
    event_subject::subject,
    memory_json::DetailsJson,
    report::{GroupBy, report},
    resolve,
    semantic::{RelatedMemory, related},
    store,
};

/// Show memories with their provenance, or a whole session
///
/// Each memory is printed with up to five related memories of its project, with its source events,
/// with the model, prompt and cost of the response that contains it, and with the number of
/// sessions that used it. A session is printed with what was asked, done, failed, left open and
/// committed in it.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Observations (`12`), summaries (`S3`), prompts (`P9`), or IDs of sessions; a unique prefix
    /// is enough
    #[arg(value_name = "ID", required = true)]
    ids: Vec<Target>,
    /// List every file and source event
    #[arg(long, short)]
    all: bool,
    /// Print the source events as recorded
    #[arg(long)]
    raw: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// Without `--all`, a list of files or source events ends after this many.
const ENTRIES_MAX: usize = 10;

/// What to show.
#[derive(Debug, Clone)]
enum Target {
    Memory(MemoryId),
    /// The client's id of a session, or its beginning.
    Session(String),
}

impl FromStr for Target {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(text.parse().map_or_else(|_| Self::Session(text.to_owned()), Self::Memory))
    }
}

impl Show {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let store = store::read_folded(app)?;
        let (mut memories, mut sessions) = (Vec::new(), Vec::new());
        for target in &self.ids {
            match target {
                Target::Memory(name) => memories.push(*name),
                Target::Session(name) => sessions.push(resolve::session(&store, name)?),
            }
        }
        for session in &sessions {
            self.print_session(app, &store, session)?;
        }
        let found = store.details(&memories)?;
        for (at, details) in found.iter().enumerate() {
            let events = if self.raw { Some(sources(app, &details.provenance)?) } else { None };
            // A memory is shown even if the model cannot be used; `doctor` reports it.
            let related = related(app, &store, details.name, &details.project).unwrap_or_default();
            if self.json {
                print_json(app, details, events.as_deref(), &related)?;
                continue;
            }
            if at + sessions.len() > 0 {
                app.output.line("")?;
            }
            let entries_max = if self.all { usize::MAX } else { ENTRIES_MAX };
            let mut text = whole(app, details, &related, entries_max);
            for event in events.iter().flatten() {
                let _ = write!(text, "\n{}", log::event_text::event_text(event, &app.output));
            }
            app.output.line(text.trim_end())?;
        }
        missing(&memories, &found)
    }

    fn print_session(&self, app: &mut App, store: &Store, session: &str) -> Result<(), Failure> {
        #[derive(Serialize)]
        struct SessionJson<'a> {
            session: &'a str,
            #[serde(flatten)]
            report: claude_mem_memory::report::Report,
        }
        let filter = EventFilter { session: Some(session.to_owned()), ..EventFilter::default() };
        let report = report(app, store, &filter, GroupBy::Branch)?;
        if self.json {
            return app.output.json(&SessionJson { session, report });
        }
        let text = session_text(session, &report);
        app.output.line(app.output.page(text.trim_end()))
    }
}

fn missing(requested: &[MemoryId], found: &[MemoryDetails]) -> Result<(), Failure> {
    let is_there = |name: &&MemoryId| found.iter().any(|details| details.name == **name);
    let missing: Vec<String> =
        requested.iter().filter(|name| !is_there(name)).map(|name| format!("`{name}`")).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(format!("there is no memory {}", missing.join(", ")))
        .meaning("it may have been forgotten")
        .remedy("find others with `claude-mem search`"))
}

/// The source events of a memory, or its own event if it has none.
fn sources(app: &App, provenance: &Provenance) -> Result<Vec<Recorded>, Failure> {
    let log = store::open_log_of(app, provenance.seq)?;
    let places: Vec<Seq> = match provenance.sources.is_empty() {
        true => vec![provenance.seq],
        false => provenance.sources.iter().map(|source| source.seq).collect(),
    };
    let mut events = Vec::new();
    for place in places {
        events.extend(store::event_at(&log, place)?);
    }
    Ok(events)
}

fn print_json(
    app: &mut App,
    details: &MemoryDetails,
    events: Option<&[Recorded]>,
    related: &[RelatedMemory],
) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Raw<'a> {
        #[serde(flatten)]
        details: DetailsJson<'a>,
        /// IDs alone: titles of other memories are not part of this one.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        related: Vec<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        events: Option<Vec<log::json::Shown<'a>>>,
    }
    let events =
        events.map(|events| events.iter().map(|event| log::json::event(event, true)).collect());
    let related = related.iter().map(|other| other.id.as_str()).collect();
    app.output.json(&Raw { details: details.into(), related, events })
}

/// A memory with related ones and its provenance.
pub(super) fn text(app: &App, store: &Store, details: &MemoryDetails) -> String {
    let related = related(app, store, details.name, &details.project).unwrap_or_default();
    whole(app, details, &related, usize::MAX)
}

fn whole(
    app: &App,
    details: &MemoryDetails,
    related: &[RelatedMemory],
    entries_max: usize,
) -> String {
    let output = &app.output;
    let mut text = heading(details, output);
    body(&mut text, output, &details.body, entries_max);
    let related = related.iter().map(|other| format!("{}  {}", other.id, other.title));
    many(&mut text, output, "related", &related.collect::<Vec<_>>(), entries_max);
    // An event that a compaction erased is named by its kind alone.
    let recorded = sources(app, &details.provenance).unwrap_or_default();
    provenance(&mut text, output, details, &recorded, entries_max);
    usage(&mut text, output, details.usage.unwrap_or_default());
    text
}

/// A memory without its provenance.
pub(super) fn brief(details: &MemoryDetails, output: &Output) -> String {
    let mut text = heading(details, output);
    body(&mut text, output, &details.body, ENTRIES_MAX);
    text
}

fn heading(details: &MemoryDetails, output: &Output) -> String {
    let time = local(details.at_us, "%Y-%m-%d %H:%M:%S");
    let type_ = details.body.observation().and_then(|body| body.type_.as_deref());
    let kind = type_.unwrap_or(details.kind.name());
    let mark =
        |is_set: bool, text: &str| if is_set { format!("  ({text})") } else { String::new() };
    let by = |author: &Option<String>| match author.as_deref() {
        None => "",
        Some("claude") => " by Claude",
        Some(_) => " by a program",
    };
    let marks = &details.marks;
    let pinned = mark(marks.is_pinned, &format!("pinned{}", by(&marks.pinned_by)));
    let edited = mark(marks.is_edited, &format!("edited{}", by(&marks.edited_by)));
    let superseded = superseded(details);
    let name = output.paint("1", &details.name.to_string());
    let kind = output.paint("34", kind);
    let place = output.dim(&format!("{time}  {}", hit_labels::plain(&details.project)));
    let scope = match details.tree.as_deref() {
        None => String::new(),
        Some("") => "  (for all projects)".into(),
        Some(folder) => format!("  (for all projects in {})", hit_labels::plain(folder)),
    };
    format!("{name}  {kind}  {place}{scope}{pinned}{edited}{superseded}\n")
}

/// Whether it is wrong or superseded, and by what.
fn superseded(details: &MemoryDetails) -> String {
    match &details.marks.retired {
        Some(Retired::Superseded(Correction { by: Some((id, title)), .. })) => {
            let title = hit_labels::plain(title.as_deref().unwrap_or_default());
            format!("  (superseded by {id}{}{title})", if title.is_empty() { "" } else { ": " })
        }
        Some(Retired::Superseded(Correction { by: None, at_us })) => {
            format!("  (withdrawn {})", local(*at_us, "%Y-%m-%d %H:%M:%S"))
        }
        Some(wrong @ Retired::Wrong { .. }) => {
            format!("  ({})", hit_labels::plain(&wrong.to_string()))
        }
        None if details.is_superseded => "  (superseded)".into(),
        None => String::new(),
    }
}

fn body(text: &mut String, output: &Output, body: &MemoryBody, entries_max: usize) {
    match body {
        MemoryBody::Observation(body) => {
            if let Some(title) = &body.title {
                let _ = writeln!(text, "{}", output.paint("1", &hit_labels::plain(title)));
            }
            one(text, output, "", body.subtitle.as_deref());
            one(text, output, "", body.narrative.as_deref());
            many(text, output, "facts", &body.facts, usize::MAX);
            many(text, output, "concepts", &body.concepts, usize::MAX);
            many(text, output, "read", &body.files_read, entries_max);
            many(text, output, "modified", &body.files_modified, entries_max);
        }
        MemoryBody::Summary(body) => {
            one(text, output, "request", body.request.as_deref());
            one(text, output, "investigated", body.investigated.as_deref());
            one(text, output, "learned", body.learned.as_deref());
            one(text, output, "completed", body.completed.as_deref());
            one(text, output, "next steps", body.next_steps.as_deref());
            one(text, output, "notes", body.notes.as_deref());
            many(text, output, "read", &body.files_read, entries_max);
            many(text, output, "edited", &body.files_edited, entries_max);
        }
        MemoryBody::Prompt { text: prompt } => {
            one(text, output, "", prompt.as_deref().or(Some("(private)")));
        }
    }
}

fn one(text: &mut String, output: &Output, name: &str, value: Option<&str>) {
    let Some(value) = value else { return };
    let name = if name.is_empty() { String::new() } else { output.dim(&format!("{name}: ")) };
    let _ = writeln!(text, "{name}{value}");
}

fn many(text: &mut String, output: &Output, name: &str, values: &[String], entries_max: usize) {
    if !values.is_empty() {
        let _ = writeln!(text, "{}", output.dim(&format!("{name}:")));
        for value in values.iter().take(entries_max) {
            let _ = writeln!(text, "  - {}", hit_labels::plain(value));
        }
        if let Some(more) = rest(values.len(), entries_max) {
            let _ = writeln!(text, "  - {more}");
        }
    }
}

/// Says what a list leaves out.
fn rest(number: usize, entries_max: usize) -> Option<String> {
    let more = number.checked_sub(entries_max).filter(|more| *more > 0)?;
    Some(format!("and {} more; list them with `--all`", format::number(more)))
}

fn usage(text: &mut String, output: &Output, Usage { sessions, fetches }: Usage) {
    if sessions + fetches > 0 {
        let sessions = count(sessions, "session");
        let line = format!("given to {sessions}, fetched {}", count(fetches, "time"));
        let _ = writeln!(text, "{}", output.dim(&line));
    }
}

fn provenance(
    text: &mut String,
    output: &Output,
    details: &MemoryDetails,
    recorded: &[Recorded],
    entries_max: usize,
) {
    let Provenance { origin, event, seq, host, branch, reply, sources } = &details.provenance;
    let made = match (&reply, origin.as_str()) {
        (Some(reply), _) => format!("{} {}", reply.provider, reply.model),
        (None, "user") => "written by hand".into(),
        (None, "hook") => "prompt".into(),
        (None, origin) => origin.to_owned(),
    };
    let of = |word: &str, name: &Option<String>| {
        name.as_ref().map(|name| format!(", {word} {name}")).unwrap_or_default()
    };
    let (client, host) = (of("in", &details.client), of("on", host));
    let mut lines = vec![format!("{made}{client}{host}{}", of("branch", branch))];
    if let Some(reply) = reply {
        let generation = match reply.generation {
            0 => String::new(),
            generation => format!(", generation {generation}"),
        };
        let mut line = format!("prompt {}{generation}", reply.prompt_version);
        if reply.tokens_in > 0 {
            let _ = write!(
                line,
                ", {} tokens in, {} out, {}, {:.1} s, for {}",
                number(reply.tokens_in),
                number(reply.tokens_out),
                dollars(reply.cost_micros),
                reply.duration_ms as f64 / 1000.0,
                count(reply.memories, "memory")
            );
        }
        lines.push(line);
    }
    lines.push(format!("event {event} at {}", local_seq(*seq)));
    let places = sources.iter().map(|source| local_seq(source.seq).to_string().len()).max();
    for SourceEvent { seq, kind, .. } in sources.iter().take(entries_max) {
        let place = local_seq(*seq);
        let found = recorded.iter().find(|recorded| recorded.seq == place);
        let what = found.map(|recorded| subject(&recorded.event)).unwrap_or_default();
        // The tool is in the description, and the long ones are events that `--raw` prints.
        let kind = if *kind == "ToolUsed" { String::new() } else { format!("{kind}  ") };
        let line = format!("from {:1$}  {kind}{what}", place.to_string(), places.unwrap_or(0));
        lines.push(output.columns().map_or_else(|| line.clone(), |columns| cut(&line, columns)));
    }
    lines.extend(rest(sources.len(), entries_max));
    for line in lines {
        let _ = writeln!(text, "{}", output.dim(hit_labels::plain(line.trim_end()).as_str()));
    }
}
