//! Provenance of a memory: source events, response, and other generations.

use std::sync::Arc;

use axum::{Json, extract::State};
use claude_mem_events::{Event, Seq};
use claude_mem_log::Log;
use claude_mem_projections::{
    Store,
    details::{MemoryBody, MemoryDetails, ObservationBody, SourceEvent, SummaryBody},
    local_seq,
    search::{Kind, MemoryId},
};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{ApiError, ApiResult, PathParam},
    items::Item,
    state::AppState,
    time_params::{epoch, rfc3339},
};
use claude_mem_core::app::App;
use claude_mem_memory::{
    context::{FileState, file_states},
    event_subject::{input_subject, one_line, response_titles, subject},
    memory_json::MarksJson,
    store,
};

/// Longer texts are cut; `claude-mem log --raw` shows all of it.
const TEXT_CHARS_MAX: usize = 20_000;
/// Maximum number of source events with content.
const SOURCES_MAX: usize = 100;

/// Provenance of a memory.
#[derive(Debug, Serialize, ToSchema)]
struct Provenance {
    /// `12`, `S3`, `P9`.
    id: String,
    /// `observation`, `summary`, `prompt`.
    kind: &'static str,
    /// `agent`, `user`, `import`; `hook` for prompts.
    origin: String,
    /// ID of the response event, or of its own event.
    event: String,
    /// Position of that event in the log.
    seq: String,
    created_at: String,
    /// Whether other memories replaced it.
    is_superseded: bool,
    /// How it is marked.
    #[serde(flatten)]
    marks: MarksJson,
    /// How often an observation was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    reply: Option<Reply>,
    /// Source events.
    sources: Vec<EventDetail>,
    /// State of its files.
    freshness: Vec<File>,
    /// Memories of the same events, earliest generation first.
    generations: Vec<Generation>,
}

/// How often an observation was used.
#[derive(Debug, Serialize, ToSchema)]
struct Usage {
    /// Number of sessions that were given it in full.
    sessions: u64,
    /// How often the assistant fetched it over MCP.
    fetches: u64,
}

/// The response that contains it.
#[derive(Debug, Serialize, ToSchema)]
struct Reply {
    provider: String,
    model: String,
    /// Hash of the prompt texts.
    prompt_version: String,
    generation: u32,
    /// Number of memories that share its cost.
    memories: u32,
    tokens_in: u64,
    tokens_out: u64,
    cost_usd: f64,
    duration_ms: u64,
    /// Text of the response; null if the log no longer has it.
    text: Option<String>,
}

/// A source event.
#[derive(Debug, Serialize, ToSchema)]
struct EventDetail {
    seq: String,
    event: String,
    /// Such as `ToolUsed`.
    kind: &'static str,
    created_at: String,
    /// Milliseconds since 1970.
    created_at_epoch: u64,
    tool: Option<String>,
    /// The command, file or first words on one line; empty if the event is gone.
    subject: String,
    /// The tool's input, the prompt, or the last message.
    input: Option<String>,
    /// Output.
    output: Option<String>,
    /// Whether the tool failed.
    has_failed: bool,
    /// Whether the text is cut.
    is_clipped: bool,
}

/// A file, and its state since.
#[derive(Debug, Serialize, ToSchema)]
struct File {
    file: String,
    /// `same`, `changed`, `gone` or `unknown`.
    state: &'static str,
}

/// A memory of the same events in a generation.
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

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new()
        .routes(routes!(of_observation))
        .routes(routes!(of_summary))
        .routes(routes!(of_prompt))
}

/// Returns the provenance of an observation.
#[utoipa::path(get, path = "/api/observation/{id}/provenance", tag = "reading",
    params(("id" = i64, Path)), responses((status = 200, body = Provenance)))]
async fn of_observation(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<i64>,
) -> ApiResult<Provenance> {
    of(&state, MemoryId { kind: Kind::Observation, id }).await
}

/// Returns the provenance of a summary.
#[utoipa::path(get, path = "/api/summary/{id}/provenance", tag = "reading",
    params(("id" = i64, Path)), responses((status = 200, body = Provenance)))]
async fn of_summary(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<i64>,
) -> ApiResult<Provenance> {
    of(&state, MemoryId { kind: Kind::Summary, id }).await
}

/// Returns the provenance of a prompt.
#[utoipa::path(get, path = "/api/prompt/{id}/provenance", tag = "reading",
    params(("id" = i64, Path)), responses((status = 200, body = Provenance)))]
async fn of_prompt(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<i64>,
) -> ApiResult<Provenance> {
    of(&state, MemoryId { kind: Kind::Prompt, id }).await
}

async fn of(state: &Arc<AppState>, name: MemoryId) -> ApiResult<Provenance> {
    let found = move |store: &Store, app: &App| {
        let details = store.details(&[name])?.pop();
        let details =
            details.ok_or_else(|| ApiError::not_found(format!("there is no memory {name}")))?;
        to_provenance(store, app, details)
    };
    state.read(found).await.map(Json)
}

fn to_provenance(store: &Store, app: &App, details: MemoryDetails) -> Result<Provenance, ApiError> {
    let MemoryDetails { name, at_us, provenance, .. } = details;
    let log = store::open_log_of(app, provenance.seq)?;
    let sources = match &provenance.reply {
        Some(_) => provenance.sources,
        // A memory without a response is its own source.
        None => vec![SourceEvent {
            seq: provenance.seq,
            event: provenance.event.clone(),
            kind: "",
            at_us,
            tool: None,
        }],
    };
    let sources: Result<Vec<_>, ApiError> =
        sources.into_iter().take(SOURCES_MAX).map(|source| event_detail(&log, source)).collect();
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
            text: response_text(&log, provenance.seq)?,
        }),
    };
    let files = match &details.body {
        MemoryBody::Observation(ObservationBody { files_read, files_modified: files, .. })
        | MemoryBody::Summary(SummaryBody { files_read, files_edited: files, .. }) => {
            files_read.iter().chain(files).cloned().collect()
        }
        MemoryBody::Prompt { .. } => Vec::new(),
    };
    Ok(Provenance {
        id: name.to_string(),
        kind: name.kind.name(),
        origin: provenance.origin,
        event: provenance.event,
        seq: local_seq(provenance.seq).to_string(),
        created_at: rfc3339(at_us),
        is_superseded: details.is_superseded,
        marks: details.marks.into(),
        usage: details
            .usage
            .map(|usage| Usage { sessions: usage.sessions, fetches: usage.fetches }),
        reply,
        sources: sources?,
        freshness: freshness(store, name, files, at_us)?,
        generations: generations(store, name)?,
    })
}

fn response_text(log: &Log, seq: Seq) -> Result<Option<String>, ApiError> {
    Ok(match store::event_at(log, seq)?.map(|recorded| recorded.event) {
        Some(Event::AgentReplied(replied)) => Some(clipped(&replied.reply).0),
        _ => None,
    })
}

fn event_detail(log: &Log, source: SourceEvent) -> Result<EventDetail, ApiError> {
    let event = store::event_at(log, source.seq)?.map(|recorded| recorded.event);
    let kind = event.as_ref().map_or(source.kind, Event::name);
    let subject = event.as_ref().map(subject_of).unwrap_or_default();
    let has_failed = matches!(&event, Some(Event::ToolUsed(used)) if used.has_failed);
    let (input, output) = event.map(texts).unwrap_or_default();
    let clip =
        |part: Option<String>| part.filter(|part| !part.is_empty()).map(|part| clipped(&part));
    let (input, output) = (clip(input), clip(output));
    let is_clipped = [&input, &output].into_iter().flatten().any(|(_, is_clipped)| *is_clipped);
    Ok(EventDetail {
        seq: local_seq(source.seq).to_string(),
        event: source.event,
        kind,
        created_at: rfc3339(source.at_us),
        created_at_epoch: epoch(source.at_us),
        tool: source.tool,
        subject,
        input: input.map(|(text, _)| text),
        output: output.map(|(text, _)| text),
        has_failed,
        is_clipped,
    })
}

/// The subject without the name of the tool, which has a separate field.
pub(super) fn subject_of(event: &Event) -> String {
    match event {
        Event::ToolUsed(used) => one_line(&input_subject(&used.input)),
        Event::AgentReplied(replied) => one_line(&response_titles(&replied.reply)),
        event => subject(event),
    }
}

/// Input and output of an event.
pub(super) fn texts(event: Event) -> (Option<String>, Option<String>) {
    match event {
        Event::ToolUsed(used) => {
            let output = if used.output.is_empty() { used.error } else { used.output };
            (Some(used.input), Some(output))
        }
        Event::PromptSubmitted(submitted) => (Some(submitted.prompt), None),
        Event::SummaryRequested(stop) => {
            (Some(stop.last_user_message), Some(stop.last_assistant_message))
        }
        Event::MemoryAdded(added) => (Some(added.text), None),
        Event::AgentReplied(replied) => (None, Some(replied.reply)),
        Event::AgentFailed(failed) => (None, Some(failed.message)),
        _ => (None, None),
    }
}

/// The first characters of a text, and whether it was cut.
pub(super) fn clipped(text: &str) -> (String, bool) {
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
) -> Result<Vec<File>, ApiError> {
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

fn generations(store: &Store, name: MemoryId) -> Result<Vec<Generation>, ApiError> {
    let mut generations = Vec::new();
    for alternative in store.alternatives(name)? {
        generations.push(Generation {
            generation: alternative.generation,
            is_current: alternative.is_current,
            provider: alternative.provider,
            model: alternative.model,
            prompt_version: alternative.prompt_version,
            created_at: rfc3339(alternative.at_us),
            memories: store.list_rows(&alternative.memories)?.into_iter().map(Item::from).collect(),
        });
    }
    Ok(generations)
}
