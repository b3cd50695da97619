//! Sessions by the watched program's own id: what is told of them, and how they are told.

use std::{collections::BTreeMap, sync::Arc};

use axum::{Json, extract::State};
use claude_mem_projections::{SessionQuery, Store};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    dto::{Item, Observation, Prompt, Session, Summary},
    error::{Answer, Asked, Given, Named, Problem, Refusal},
    feed::LIMIT_MAX,
    ingest::{Queued, SessionEvent, capture, record},
    state::Site,
};
use claude_mem_capture::{Captured, IncomingKind};
use claude_mem_core::app::App;
use claude_mem_memory::store;
use claude_mem_privacy::is_only_task_notification;

/// Sessions on a page, unless told.
const LIMIT: u32 = 20;
/// Memories of a story. A session that has more is not read to its end by anybody.
const STORY_MAX: u32 = 2000;

pub(super) fn routes() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new()
        .routes(routes!(init))
        .routes(routes!(observations))
        .routes(routes!(summarize))
        .routes(routes!(complete))
        .routes(routes!(list))
        .routes(routes!(story))
}

/// A session that begins or goes on, and what the user said.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Init {
    content_session_id: String,
    /// The name of the project, where there is no folder.
    project: Option<String>,
    /// Where the session works.
    cwd: Option<String>,
    /// What the user said.
    prompt: Option<String>,
    /// Which program is watched.
    platform_source: Option<String>,
}

/// What became of it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Begun {
    /// The number of the session.
    pub(super) session_db_id: Option<i64>,
    /// How many prompts the user has submitted in it.
    pub(super) prompt_number: u32,
    pub(super) skipped: bool,
    /// Why: `private`, `project_excluded`, `internal_protocol`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<&'static str>,
    pub(super) context_injected: bool,
    pub(super) status: &'static str,
}

/// Begins a session, or goes on with it, and records what the user said.
#[utoipa::path(post, path = "/api/sessions/init", tag = "sessions", security(("token" = [])),
    request_body = Init,
    responses((status = 200, body = Begun), (status = "4XX", body = Problem)))]
async fn init(State(site): State<Arc<Site>>, Given(init): Given<Init>) -> Answer<Begun> {
    let event = SessionEvent {
        session: init.content_session_id,
        platform: init.platform_source,
        cwd: init.cwd,
        project: init.project,
        ..SessionEvent::default()
    };
    begin(&site, event, init.prompt).await.map(Json)
}

/// Records that a session goes on, and what the user said in it.
pub(super) async fn begin(
    site: &Arc<Site>,
    event: SessionEvent,
    prompt: Option<String>,
) -> Result<Begun, Refusal> {
    if prompt.as_deref().is_some_and(|prompt| is_only_task_notification(prompt.trim())) {
        return Ok(Begun::skipped("internal_protocol"));
    }
    let session = event.session.clone();
    let is_new = {
        let session = session.clone();
        site.read(move |store, _| {
            Ok(store.session_views(SessionQuery::Id(&session), 0)?.is_empty())
        })
        .await?
    };
    let mut events = Vec::new();
    let mut reason = None;
    if is_new || prompt.is_none() {
        match capture(site, IncomingKind::SessionStart, event.clone()).await? {
            Captured::Event { envelope, event } => events.push((envelope, event)),
            Captured::Skipped(skip) => return Ok(Begun::skipped(skip.reason())),
        }
    }
    if let Some(prompt) = prompt {
        match capture(site, IncomingKind::Prompt, event.field("prompt", Some(prompt))).await? {
            Captured::Event { envelope, event } => {
                let is_private = matches!(
                    &event, claude_mem_events::Event::PromptSubmitted(said) if said.is_private);
                reason = is_private.then_some("private");
                events.push((envelope, event));
            }
            Captured::Skipped(skip) => return Ok(Begun::skipped(skip.reason())),
        }
    }
    site.shared.append_all(events).await.map_err(Refusal::failed)?;
    let told = site
        .write(move |store, app| {
            let log = store::open_log(app)?;
            store::fold_for(store, &log, store::WAIT_MAX)?;
            Ok(store.session_views(SessionQuery::Id(&session), now_us(app))?.pop())
        })
        .await?;
    Ok(Begun {
        session_db_id: told.as_ref().map(|told| told.id),
        prompt_number: told.map_or(0, |told| told.prompts),
        skipped: reason.is_some(),
        reason,
        context_injected: false,
        status: "initialized",
    })
}

impl Begun {
    fn skipped(reason: &'static str) -> Self {
        Self {
            session_db_id: None,
            prompt_number: 0,
            skipped: true,
            reason: Some(reason),
            context_injected: false,
            status: "skipped",
        }
    }
}

/// A tool that was used.
#[derive(Debug, Deserialize, ToSchema)]
struct Used {
    #[serde(rename = "contentSessionId")]
    content_session_id: String,
    /// As the assistant calls it: `Read`, `Bash`.
    tool_name: String,
    /// What it was given.
    #[schema(value_type = Option<Value>)]
    tool_input: Option<Box<RawValue>>,
    /// What came back.
    #[schema(value_type = Option<Value>)]
    tool_response: Option<Box<RawValue>>,
    /// Where it ran.
    cwd: Option<String>,
    /// The client's id of this use; told twice, it is recorded once.
    tool_use_id: Option<String>,
    /// The subagent that used it.
    #[serde(rename = "agentId")]
    agent_id: Option<String>,
    /// The kind of that subagent.
    #[serde(rename = "agentType")]
    agent_type: Option<String>,
    /// Which program is watched.
    #[serde(rename = "platformSource")]
    platform_source: Option<String>,
}

/// Records that a tool was used.
#[utoipa::path(post, path = "/api/sessions/observations", tag = "sessions", security(("token" = [])),
    request_body = Used,
    responses((status = 200, body = Queued), (status = "4XX", body = Problem)))]
async fn observations(State(site): State<Arc<Site>>, Given(used): Given<Used>) -> Answer<Queued> {
    let event = SessionEvent {
        session: used.content_session_id,
        platform: used.platform_source,
        cwd: used.cwd,
        ..SessionEvent::default()
    };
    let event = event
        .field("tool_name", Some(used.tool_name))
        .raw("tool_input", used.tool_input)
        .raw("tool_response", used.tool_response)
        .field("tool_use_id", used.tool_use_id)
        .field("agent_id", used.agent_id)
        .field("agent_type", used.agent_type);
    Ok(Json(Queued::of(record(&site, IncomingKind::ToolUse, event).await?)))
}

/// An assistant that stopped.
#[derive(Debug, Deserialize, ToSchema)]
struct Stopped {
    #[serde(rename = "contentSessionId")]
    content_session_id: String,
    /// What it said last.
    last_assistant_message: Option<String>,
    /// What the user said last.
    last_user_message: Option<String>,
    /// Where it stands.
    cwd: Option<String>,
    /// The subagent, if it is one: those are not summed up.
    #[serde(rename = "agentId")]
    agent_id: Option<String>,
    /// Which program is watched.
    #[serde(rename = "platformSource")]
    platform_source: Option<String>,
}

/// Records that the assistant stopped: a good moment to sum up.
#[utoipa::path(post, path = "/api/sessions/summarize", tag = "sessions", security(("token" = [])),
    request_body = Stopped,
    responses((status = 200, body = Queued), (status = "4XX", body = Problem)))]
async fn summarize(
    State(site): State<Arc<Site>>,
    Given(stopped): Given<Stopped>,
) -> Answer<Queued> {
    if stopped.agent_id.is_some_and(|agent| !agent.is_empty()) {
        return Ok(Json(Queued::of(Some("subagent_context"))));
    }
    let event = SessionEvent {
        session: stopped.content_session_id,
        platform: stopped.platform_source,
        cwd: stopped.cwd,
        ..SessionEvent::default()
    };
    let event = event
        .field("last_assistant_message", Some(stopped.last_assistant_message.unwrap_or_default()))
        .field("last_user_message", stopped.last_user_message);
    Ok(Json(Queued::of(record(&site, IncomingKind::Stop, event).await?)))
}

/// A session that ended.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Ended {
    content_session_id: String,
    /// Why.
    reason: Option<String>,
    /// Which program is watched.
    platform_source: Option<String>,
}

/// Records that a session ended.
#[utoipa::path(post, path = "/api/sessions/complete", tag = "sessions", security(("token" = [])),
    request_body = Ended,
    responses((status = 200, body = Queued), (status = "4XX", body = Problem)))]
async fn complete(State(site): State<Arc<Site>>, Given(ended): Given<Ended>) -> Answer<Queued> {
    let event = SessionEvent {
        session: ended.content_session_id,
        platform: ended.platform_source,
        ..SessionEvent::default()
    };
    let event = event.field("reason", Some(ended.reason.unwrap_or_else(|| "complete".into())));
    Ok(Json(Queued::of(record(&site, IncomingKind::SessionEnd, event).await?)))
}

/// Which sessions.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Wanted {
    offset: Option<u32>,
    limit: Option<u32>,
    /// The name or key of a project.
    project: Option<String>,
}

/// One page of sessions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Sessions {
    items: Vec<Session>,
    has_more: bool,
    offset: u32,
    limit: u32,
}

/// Sessions, the latest first.
#[utoipa::path(get, path = "/api/sessions", tag = "reading", params(Wanted), security(("token" = [])),
    responses((status = 200, body = Sessions), (status = "4XX", body = Problem)))]
async fn list(State(site): State<Arc<Site>>, Asked(wanted): Asked<Wanted>) -> Answer<Sessions> {
    let limit = wanted.limit.unwrap_or(LIMIT).min(LIMIT_MAX as u32);
    let offset = wanted.offset.unwrap_or(0);
    let found = move |store: &Store, app: &App| {
        let project = wanted.project.as_deref().filter(|name| !name.is_empty());
        let which = SessionQuery::Latest { project, offset, limit: limit + 1 };
        let mut told = store.session_views(which, now_us(app))?;
        let has_more = told.len() > limit as usize;
        told.truncate(limit as usize);
        let items = told.into_iter().map(Session::from).collect();
        Ok(Sessions { items, has_more, offset, limit })
    };
    site.read(found).await.map(Json)
}

/// A session, turn by turn.
#[derive(Debug, Serialize, ToSchema)]
struct Story {
    session: Session,
    turns: Vec<Turn>,
}

/// What came of one prompt.
#[derive(Debug, Default, Serialize, ToSchema)]
struct Turn {
    prompt_number: u32,
    prompt: Option<Prompt>,
    /// Which tools were used, the most used first.
    tools: Vec<Tool>,
    observations: Vec<Observation>,
    /// What it came to; the last one, if it was summed up several times.
    summary: Option<Summary>,
}

/// How often a tool was used.
#[derive(Debug, Serialize, ToSchema)]
struct Tool {
    tool: String,
    count: u32,
}

/// A session as a story: what was asked, what was done, what was learnt.
#[utoipa::path(get, path = "/api/session/{id}", tag = "reading", security(("token" = [])),
    params(("id" = String, Path, description = "its number, or the watched program's id of it")),
    responses((status = 200, body = Story), (status = "4XX", body = Problem)))]
async fn story(State(site): State<Arc<Site>>, Named(id): Named<String>) -> Answer<Story> {
    site.read(move |store, app| tell(store, app, &id)).await.map(Json)
}

fn tell(store: &Store, app: &App, id: &str) -> Result<Story, Refusal> {
    let mut told = store.session_views(SessionQuery::Id(id), now_us(app))?;
    if let (true, Ok(number)) = (told.is_empty(), id.parse()) {
        told = store.session_views(SessionQuery::Number(number), now_us(app))?;
    }
    let session =
        told.pop().ok_or_else(|| Refusal::not_found(format!("there is no session {id}")))?;
    let mut turns: BTreeMap<u32, Turn> = BTreeMap::new();
    for item in store
        .list_rows(&store.session_memories(session.id, STORY_MAX)?)?
        .into_iter()
        .map(Item::from)
    {
        let turn = turns.entry(item.prompt_number().unwrap_or(0)).or_default();
        match item {
            Item::Observation(observation) => turn.observations.push(observation),
            Item::Summary(summary) => turn.summary = Some(summary),
            Item::Prompt(prompt) => turn.prompt = Some(prompt),
        }
    }
    for uses in store.session_tool_counts(session.id)? {
        let turn = turns.entry(uses.prompt_number).or_default();
        turn.tools.push(Tool { tool: uses.tool, count: uses.count });
    }
    let numbered = |(prompt_number, turn): (u32, Turn)| Turn { prompt_number, ..turn };
    let turns = turns.into_iter().map(numbered).collect();
    Ok(Story { session: session.into(), turns })
}

/// Now, in microseconds since 1970.
pub(super) fn now_us(app: &App) -> u64 {
    app.clock.now().as_microsecond().cast_unsigned()
}
