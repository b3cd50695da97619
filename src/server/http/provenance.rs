//! Where a memory comes from: the events it was made of, the reply that says it, and what others made of them.

use std::sync::Arc;

use axum::{Json, extract::State};
use claude_mem_events::{Event, EventItem, EventReader, Recorded, Seq};
use claude_mem_log::Log;
use claude_mem_projections::{
    Store,
    details::{MemoryBody, MemoryDetails, SourceEvent},
    search::{Kind, MemoryId},
};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    dto::Item,
    error::{Answer, Named, Problem, Refusal},
    state::Site,
    time_params::{epoch, rfc3339},
};
use claude_mem_core::app::App;
use claude_mem_memory::{
    context::{FileState, file_states},
    store,
};

/// Longer texts are cut: a page shows what an event was about, `claude-mem log --raw` shows all of it.
const TEXT_CHARS_MAX: usize = 20_000;
/// Events whose content is read from the log.
const SOURCES_MAX: usize = 100;

/// Where a memory comes from.
#[derive(Debug, Serialize, ToSchema)]
struct Provenance {
    /// `12`, `S3`, `P9`.
    id: String,
    /// `observation`, `summary`, `prompt`.
    kind: &'static str,
    /// `agent`, `user`, `import`; `hook` for prompts.
    origin: String,
    /// The event that it was made of, or the reply that says it.
    event: String,
    /// Where that is in the log.
    seq: String,
    created_at: String,
    /// Whether others have taken its place.
    is_superseded: bool,
    reply: Option<Reply>,
    /// The events that the reply answers.
    sources: Vec<Told>,
    /// What became of the files that it names.
    freshness: Vec<File>,
    /// Everything that was said of the same events, the earliest generation first.
    generations: Vec<Generation>,
}

/// The reply that says it.
#[derive(Debug, Serialize, ToSchema)]
struct Reply {
    provider: String,
    model: String,
    /// The hash of the prompt texts in force.
    prompt_version: String,
    generation: u32,
    /// How many memories were read from it, which share what it cost.
    memories: u32,
    tokens_in: u64,
    tokens_out: u64,
    cost_usd: f64,
    duration_ms: u64,
    /// What was said; null if it is not in the log any more.
    text: Option<String>,
}

/// One event.
#[derive(Debug, Serialize, ToSchema)]
struct Told {
    seq: String,
    event: String,
    /// Such as `ToolUsed`.
    kind: &'static str,
    created_at: String,
    /// Milliseconds since 1970.
    created_at_epoch: u64,
    tool: Option<String>,
    /// What the tool was given, what the user said, or what was said last.
    input: Option<String>,
    /// What came back.
    output: Option<String>,
    /// Whether only the beginning is here.
    is_clipped: bool,
}

/// A file, and what became of it since.
#[derive(Debug, Serialize, ToSchema)]
struct File {
    file: String,
    /// `same`, `changed`, `gone` or `unknown`.
    state: &'static str,
}

/// What one reply made of the same events.
#[derive(Debug, Serialize, ToSchema)]
struct Generation {
    generation: u32,
    is_current: bool,
    provider: String,
    model: String,
    prompt_version: String,
    created_at: String,
    memories: Vec<Item>,
}

pub(super) fn routes() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new()
        .routes(routes!(of_observation))
        .routes(routes!(of_summary))
        .routes(routes!(of_prompt))
}

/// Where an observation comes from.
#[utoipa::path(get, path = "/api/observation/{id}/provenance", tag = "reading",
    security(("token" = [])), params(("id" = i64, Path)),
    responses((status = 200, body = Provenance), (status = "4XX", body = Problem)))]
async fn of_observation(
    State(site): State<Arc<Site>>,
    Named(id): Named<i64>,
) -> Answer<Provenance> {
    of(&site, MemoryId { kind: Kind::Observation, id }).await
}

/// Where a summary comes from.
#[utoipa::path(get, path = "/api/summary/{id}/provenance", tag = "reading",
    security(("token" = [])), params(("id" = i64, Path)),
    responses((status = 200, body = Provenance), (status = "4XX", body = Problem)))]
async fn of_summary(State(site): State<Arc<Site>>, Named(id): Named<i64>) -> Answer<Provenance> {
    of(&site, MemoryId { kind: Kind::Summary, id }).await
}

/// Where a prompt comes from.
#[utoipa::path(get, path = "/api/prompt/{id}/provenance", tag = "reading",
    security(("token" = [])), params(("id" = i64, Path)),
    responses((status = 200, body = Provenance), (status = "4XX", body = Problem)))]
async fn of_prompt(State(site): State<Arc<Site>>, Named(id): Named<i64>) -> Answer<Provenance> {
    of(&site, MemoryId { kind: Kind::Prompt, id }).await
}

async fn of(site: &Arc<Site>, name: MemoryId) -> Answer<Provenance> {
    let found = move |store: &Store, app: &App| {
        let details = store.details(&[name])?.pop();
        let details =
            details.ok_or_else(|| Refusal::not_found(format!("there is no memory {name}")))?;
        described(store, app, details)
    };
    site.read(found).await.map(Json)
}

fn described(store: &Store, app: &App, details: MemoryDetails) -> Result<Provenance, Refusal> {
    let log = store::open_log(app)?;
    let MemoryDetails { name, at_us, provenance, .. } = details;
    let sources = match &provenance.reply {
        Some(_) => provenance.sources,
        // What no agent said is its own source.
        None => vec![SourceEvent {
            seq: provenance.seq,
            event: provenance.event.clone(),
            kind: "",
            at_us,
            tool: None,
        }],
    };
    let sources: Result<Vec<_>, Refusal> =
        sources.into_iter().take(SOURCES_MAX).map(|source| told(&log, source)).collect();
    let reply = match provenance.reply {
        None => None,
        Some(reply) => Some(Reply {
            provider: reply.provider,
            model: reply.model,
            prompt_version: reply.prompt_version,
            generation: reply.generation,
            memories: reply.memories,
            tokens_in: reply.tokens_in,
            tokens_out: reply.tokens_out,
            cost_usd: reply.cost_micros as f64 / 1e6,
            duration_ms: reply.duration_ms,
            text: said(&log, provenance.seq)?,
        }),
    };
    let files = match &details.body {
        MemoryBody::Observation { files_read, files_modified: files, .. }
        | MemoryBody::Summary { files_read, files_edited: files, .. } => {
            files_read.iter().chain(files).cloned().collect()
        }
        MemoryBody::Prompt { .. } => Vec::new(),
    };
    Ok(Provenance {
        id: name.to_string(),
        kind: name.kind.name(),
        origin: provenance.origin,
        event: provenance.event,
        seq: provenance.seq.to_string(),
        created_at: rfc3339(at_us),
        is_superseded: details.is_superseded,
        reply,
        sources: sources?,
        freshness: freshness(store, name, files, at_us)?,
        generations: generations(store, name)?,
    })
}

/// The event at a place, if it is still there.
fn recorded(log: &Log, seq: Seq) -> Result<Option<Recorded>, Refusal> {
    Ok(match EventReader::from(log, seq).next()? {
        Some(EventItem::Event(recorded)) if recorded.seq == seq => Some(recorded),
        _ => None,
    })
}

fn said(log: &Log, seq: Seq) -> Result<Option<String>, Refusal> {
    Ok(match recorded(log, seq)?.map(|recorded| recorded.event) {
        Some(Event::AgentReplied(replied)) => Some(clipped(&replied.reply).0),
        _ => None,
    })
}

fn told(log: &Log, source: SourceEvent) -> Result<Told, Refusal> {
    let recorded = recorded(log, source.seq)?;
    let kind = recorded.as_ref().map_or(source.kind, |recorded| recorded.event.name());
    let (input, output) = match recorded.map(|recorded| recorded.event) {
        Some(Event::ToolUsed(used)) => {
            let output = if used.output.is_empty() { used.error } else { used.output };
            (Some(used.input), Some(output))
        }
        Some(Event::PromptSubmitted(said)) => (Some(said.prompt), None),
        Some(Event::SummaryRequested(stop)) => {
            (Some(stop.last_user_message), Some(stop.last_assistant_message))
        }
        Some(Event::MemoryAdded(added)) => (Some(added.text), None),
        _ => (None, None),
    };
    let clip =
        |part: Option<String>| part.filter(|part| !part.is_empty()).map(|part| clipped(&part));
    let (input, output) = (clip(input), clip(output));
    let is_clipped = [&input, &output].into_iter().flatten().any(|(_, is_clipped)| *is_clipped);
    Ok(Told {
        seq: source.seq.to_string(),
        event: source.event,
        kind,
        created_at: rfc3339(source.at_us),
        created_at_epoch: epoch(source.at_us),
        tool: source.tool,
        input: input.map(|(text, _)| text),
        output: output.map(|(text, _)| text),
        is_clipped,
    })
}

fn clipped(text: &str) -> (String, bool) {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => (text[..end].to_owned(), true),
        None => (text.to_owned(), false),
    }
}

fn freshness(
    store: &Store,
    name: MemoryId,
    mut files: Vec<String>,
    at_us: u64,
) -> Result<Vec<File>, Refusal> {
    let mut seen = std::collections::HashSet::new();
    files.retain(|file| seen.insert(file.clone()));
    let Some(root) = store.project_root_of(name)? else { return Ok(Vec::new()) };
    let states = file_states(root.as_ref(), &files, at_us);
    let word = |state| match state {
        FileState::Same => "same",
        FileState::Changed => "changed",
        FileState::Gone => "gone",
        FileState::Unknown => "unknown",
    };
    Ok(files
        .into_iter()
        .zip(states)
        .map(|(file, state)| File { file, state: word(state) })
        .collect())
}

fn generations(store: &Store, name: MemoryId) -> Result<Vec<Generation>, Refusal> {
    let mut generations = Vec::new();
    for telling in store.alternatives(name)? {
        generations.push(Generation {
            generation: telling.generation,
            is_current: telling.is_current,
            provider: telling.provider,
            model: telling.model,
            prompt_version: telling.prompt_version,
            created_at: rfc3339(telling.at_us),
            memories: store.list_rows(&telling.memories)?.into_iter().map(Item::from).collect(),
        });
    }
    Ok(generations)
}
