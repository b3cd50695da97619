//! Sessions by the client's ID: recording and reading.

use std::{collections::BTreeMap, sync::Arc};

use axum::{Json, extract::State, routing::post};
use claude_mem_projections::{SessionQuery, Store};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    dto::{Item, Observation, Prompt, Session, Summary},
    error::{ApiError, ApiResult, JsonBody, PathParam, Problem, QueryParams},
    feed::LIMIT_MAX,
    ingest::{Queued, SessionEvent, capture, record},
    state::AppState,
};
use claude_mem_capture::{Captured, IncomingKind};
use claude_mem_core::app::App;
use claude_mem_memory::store;
use claude_mem_privacy::{Author, typed};

/// Default page size.
const LIMIT: u32 = 20;
/// Maximum number of memories in a story.
const STORY_MAX: u32 = 2000;

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    // IDE extensions written for the first versions of claude-mem use the short paths.
    OpenApiRouter::new()
        .route("/sessions/init", post(init))
        .route("/sessions/observations", post(observations))
        .route("/sessions/summarize", post(summarize))
        .route("/sessions/complete", post(complete))
        .routes(routes!(init))
        .routes(routes!(observations))
        .routes(routes!(summarize))
        .routes(routes!(complete))
        .routes(routes!(list))
        .routes(routes!(story))
}

/// The start of a session, or its next prompt.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SessionInitRequest {
    /// The client's session ID.
    #[serde(alias = "claudeSessionId", alias = "sessionId")]
    content_session_id: String,
    /// Project name, for sessions without a folder.
    project: Option<String>,
    /// Working directory.
    cwd: Option<String>,
    /// The prompt.
    #[serde(alias = "userPrompt")]
    prompt: Option<String>,
    /// The client, such as `claude-code`.
    platform_source: Option<String>,
}

/// Result.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionInit {
    /// Number of the session.
    pub(super) session_db_id: Option<i64>,
    /// Number of prompts in the session.
    pub(super) prompt_number: u32,
    pub(super) skipped: bool,
    /// Reason: `private`, `project_excluded`, `internal_protocol`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<&'static str>,
    pub(super) context_injected: bool,
    pub(super) status: &'static str,
}

/// Starts or continues a session, and records the prompt.
#[utoipa::path(post, path = "/api/sessions/init", tag = "sessions", security(("token" = [])),
    request_body = SessionInitRequest,
    responses((status = 200, body = SessionInit), (status = "4XX", body = Problem)))]
async fn init(
    State(state): State<Arc<AppState>>,
    JsonBody(init): JsonBody<SessionInitRequest>,
) -> ApiResult<SessionInit> {
    let event = SessionEvent {
        session: init.content_session_id,
        platform: init.platform_source,
        cwd: init.cwd,
        project: init.project,
        ..SessionEvent::default()
    };
    begin(&state, event, init.prompt).await.map(Json)
}

/// Records the start of a session, and the prompt.
pub(super) async fn begin(
    state: &Arc<AppState>,
    event: SessionEvent,
    prompt: Option<String>,
) -> Result<SessionInit, ApiError> {
    if prompt.as_deref().is_some_and(|prompt| typed(prompt).author == Author::Client) {
        return Ok(SessionInit::skipped("internal_protocol"));
    }
    let session = event.session.clone();
    let is_new = {
        let session = session.clone();
        state
            .read(move |store, _| {
                Ok(store.session_views(SessionQuery::Id(&session), 0)?.is_empty())
            })
            .await?
    };
    let mut events = Vec::new();
    let mut reason = None;
    if is_new || prompt.is_none() {
        match capture(state, IncomingKind::SessionStart, event.clone()).await? {
            Captured::Event { envelope, event } => events.push((envelope, event)),
            Captured::Skipped(skip) => return Ok(SessionInit::skipped(skip.reason())),
        }
    }
    if let Some(prompt) = prompt {
        match capture(state, IncomingKind::Prompt, event.field("prompt", Some(prompt))).await? {
            Captured::Event { envelope, event } => {
                let is_private = matches!(
                    &event, claude_mem_events::Event::PromptSubmitted(prompt) if prompt.is_private);
                reason = is_private.then_some("private");
                events.push((envelope, event));
            }
            Captured::Skipped(skip) => return Ok(SessionInit::skipped(skip.reason())),
        }
    }
    state.shared.append_all(events).await.map_err(ApiError::failed)?;
    let view = state
        .write(move |store, app| {
            let log = store::open_log(app)?;
            store::fold_for(store, &log, store::WAIT_MAX)?;
            Ok(store.session_views(SessionQuery::Id(&session), now_us(app))?.pop())
        })
        .await?;
    Ok(SessionInit {
        session_db_id: view.as_ref().map(|view| view.id),
        prompt_number: view.map_or(0, |view| view.prompts),
        skipped: reason.is_some(),
        reason,
        context_injected: false,
        status: "initialized",
    })
}

impl SessionInit {
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

/// A tool use.
#[derive(Debug, Deserialize, ToSchema)]
struct ToolUseRequest {
    /// The client's session ID.
    #[serde(rename = "contentSessionId", alias = "claudeSessionId", alias = "sessionId")]
    content_session_id: String,
    /// As the assistant calls it: `Read`, `Bash`.
    tool_name: String,
    /// Input: JSON, or a string that contains JSON.
    #[schema(value_type = Option<Value>)]
    tool_input: Option<Box<RawValue>>,
    /// Output.
    #[schema(value_type = Option<Value>)]
    tool_response: Option<Box<RawValue>>,
    /// Another name of the output.
    #[schema(value_type = Option<Value>)]
    tool_output: Option<Box<RawValue>>,
    /// Working directory.
    cwd: Option<String>,
    /// The client's ID of this tool use; duplicates are recorded once.
    tool_use_id: Option<String>,
    /// ID of the subagent.
    #[serde(rename = "agentId")]
    agent_id: Option<String>,
    /// Type of the subagent.
    #[serde(rename = "agentType")]
    agent_type: Option<String>,
    /// The client, such as `claude-code`.
    #[serde(rename = "platformSource")]
    platform_source: Option<String>,
}

/// Records a tool use.
#[utoipa::path(post, path = "/api/sessions/observations", tag = "sessions",
    security(("token" = [])),
    request_body = ToolUseRequest,
    responses((status = 200, body = Queued), (status = "4XX", body = Problem)))]
async fn observations(
    State(state): State<Arc<AppState>>,
    JsonBody(used): JsonBody<ToolUseRequest>,
) -> ApiResult<Queued> {
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
        .raw("tool_output", used.tool_output)
        .field("tool_use_id", used.tool_use_id)
        .field("agent_id", used.agent_id)
        .field("agent_type", used.agent_type);
    Ok(Json(Queued::of(record(&state, IncomingKind::ToolUse, event).await?)))
}

/// The end of a turn.
#[derive(Debug, Deserialize, ToSchema)]
struct StopRequest {
    /// The client's session ID.
    #[serde(rename = "contentSessionId", alias = "claudeSessionId", alias = "sessionId")]
    content_session_id: String,
    /// Last message of the assistant.
    last_assistant_message: Option<String>,
    /// Last message of the user.
    last_user_message: Option<String>,
    /// Working directory.
    cwd: Option<String>,
    /// ID of the subagent. Its turns are not summarized.
    #[serde(rename = "agentId")]
    agent_id: Option<String>,
    /// The client, such as `claude-code`.
    #[serde(rename = "platformSource")]
    platform_source: Option<String>,
}

/// Records the end of a turn, which is then summarized.
#[utoipa::path(post, path = "/api/sessions/summarize", tag = "sessions", security(("token" = [])),
    request_body = StopRequest,
    responses((status = 200, body = Queued), (status = "4XX", body = Problem)))]
async fn summarize(
    State(state): State<Arc<AppState>>,
    JsonBody(stopped): JsonBody<StopRequest>,
) -> ApiResult<Queued> {
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
    Ok(Json(Queued::of(record(&state, IncomingKind::Stop, event).await?)))
}

/// The end of a session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SessionEndRequest {
    /// The client's session ID.
    #[serde(alias = "claudeSessionId", alias = "sessionId")]
    content_session_id: String,
    /// Reason.
    reason: Option<String>,
    /// The client, such as `claude-code`.
    platform_source: Option<String>,
}

/// Records the end of a session.
#[utoipa::path(post, path = "/api/sessions/complete", tag = "sessions", security(("token" = [])),
    request_body = SessionEndRequest,
    responses((status = 200, body = Queued), (status = "4XX", body = Problem)))]
async fn complete(
    State(state): State<Arc<AppState>>,
    JsonBody(ended): JsonBody<SessionEndRequest>,
) -> ApiResult<Queued> {
    let event = SessionEvent {
        session: ended.content_session_id,
        platform: ended.platform_source,
        ..SessionEvent::default()
    };
    let event = event.field("reason", Some(ended.reason.unwrap_or_else(|| "complete".into())));
    Ok(Json(Queued::of(record(&state, IncomingKind::SessionEnd, event).await?)))
}

/// Filters and paging of sessions.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct SessionListParams {
    offset: Option<u32>,
    limit: Option<u32>,
    /// Project name or key.
    project: Option<String>,
}

/// A page of sessions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Sessions {
    items: Vec<Session>,
    has_more: bool,
    offset: u32,
    limit: u32,
}

/// Lists sessions, latest first.
#[utoipa::path(get, path = "/api/sessions", tag = "reading", params(SessionListParams),
    security(("token" = [])),
    responses((status = 200, body = Sessions), (status = "4XX", body = Problem)))]
async fn list(
    State(state): State<Arc<AppState>>,
    QueryParams(params): QueryParams<SessionListParams>,
) -> ApiResult<Sessions> {
    let limit = params.limit.unwrap_or(LIMIT).min(LIMIT_MAX as u32);
    let offset = params.offset.unwrap_or(0);
    let found = move |store: &Store, app: &App| {
        let project = params.project.as_deref().filter(|name| !name.is_empty());
        let which = SessionQuery::Latest { project, offset, limit: limit + 1 };
        let mut views = store.session_views(which, now_us(app))?;
        let has_more = views.len() > limit as usize;
        views.truncate(limit as usize);
        let items = views.into_iter().map(Session::from).collect();
        Ok(Sessions { items, has_more, offset, limit })
    };
    state.read(found).await.map(Json)
}

/// A session, turn by turn.
#[derive(Debug, Serialize, ToSchema)]
struct Story {
    session: Session,
    /// What distilling it has cost.
    cost_usd: f64,
    turns: Vec<Turn>,
}

/// A prompt and its results.
#[derive(Debug, Default, Serialize, ToSchema)]
struct Turn {
    prompt_number: u32,
    prompt: Option<Prompt>,
    /// Tools, most used first.
    tools: Vec<Tool>,
    observations: Vec<Observation>,
    /// The last summary.
    summary: Option<Summary>,
}

/// Number of uses of a tool.
#[derive(Debug, Serialize, ToSchema)]
struct Tool {
    tool: String,
    count: u32,
}

/// Returns a session turn by turn, with prompts, observations and summaries.
#[utoipa::path(get, path = "/api/session/{id}", tag = "reading", security(("token" = [])),
    params(("id" = String, Path, description = "number of the session, or the client's session ID")),
    responses((status = 200, body = Story), (status = "4XX", body = Problem)))]
async fn story(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<String>,
) -> ApiResult<Story> {
    state.read(move |store, app| load_story(store, app, &id)).await.map(Json)
}

fn load_story(store: &Store, app: &App, id: &str) -> Result<Story, ApiError> {
    let mut views = store.session_views(SessionQuery::Id(id), now_us(app))?;
    if let (true, Ok(number)) = (views.is_empty(), id.parse()) {
        views = store.session_views(SessionQuery::Number(number), now_us(app))?;
    }
    let session =
        views.pop().ok_or_else(|| ApiError::not_found(format!("there is no session {id}")))?;
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
    let cost_usd = store.session_cost_micros(&session)? as f64 / 1e6;
    Ok(Story { session: session.into(), cost_usd, turns })
}

pub(super) fn now_us(app: &App) -> u64 {
    app.clock.now().as_microsecond().cast_unsigned()
}
