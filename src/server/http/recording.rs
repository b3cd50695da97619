//! Recording of sessions: by the client's session ID, and as in the first versions of claude-mem by
//! the number of the session.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    body::Bytes,
    extract::State,
    routing::{delete, get, post},
};
use claude_mem_projections::{SessionQuery, SessionView};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{ApiError, ApiResult, JsonBody, PathParam},
    items::Session,
    session_event::{Queued, SessionEvent, capture, record},
    sessions::now_us,
    state::AppState,
};
use claude_mem_capture::{Captured, IncomingKind};
use claude_mem_core::settings::table::DELETE_TIMEOUT;
use claude_mem_events::{Event, SessionEnded};
use claude_mem_memory::store;
use claude_mem_privacy::{Author, typed};

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new()
        .routes(routes!(init))
        .routes(routes!(observations))
        .routes(routes!(summarize))
        .routes(routes!(complete))
        // IDE extensions written for the first versions of claude-mem use these paths.
        .route("/sessions/init", post(init))
        .route("/sessions/observations", post(observations))
        .route("/sessions/summarize", post(summarize))
        .route("/sessions/complete", post(complete))
        .route("/sessions/{id}/init", post(init_numbered))
        .route("/sessions/{id}/observations", post(record_numbered::<ToolUseRequest>))
        .route("/sessions/{id}/summarize", post(record_numbered::<StopRequest>))
        .route("/sessions/{id}/status", get(status))
        .route("/sessions/{id}", delete(cancel))
}

/// A request that becomes one event.
trait SessionRequest: DeserializeOwned + Send {
    const KIND: IncomingKind;

    /// The event, or the reason why there is none.
    fn event(self) -> Result<SessionEvent, &'static str>;
}

/// The start of a session, or its next prompt.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SessionInitRequest {
    /// The client's session ID.
    #[serde(default, alias = "claudeSessionId", alias = "sessionId")]
    content_session_id: String,
    /// Project name, for sessions without a folder.
    project: Option<String>,
    /// Working directory.
    cwd: Option<String>,
    #[serde(alias = "userPrompt", alias = "user_prompt")]
    prompt: Option<String>,
    /// The client, such as `claude-code`.
    platform_source: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SessionInit {
    /// Number of the session.
    session_db_id: Option<i64>,
    /// Number of prompts in the session.
    prompt_number: u32,
    skipped: bool,
    /// Reason: `private`, `project_excluded`, `internal_protocol`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    context_injected: bool,
    status: &'static str,
}

/// Starts or continues a session, and records the prompt.
#[utoipa::path(post, path = "/api/sessions/init", tag = "sessions",
    request_body = SessionInitRequest, responses((status = 200, body = SessionInit)))]
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

/// Continues a known session.
async fn init_numbered(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<i64>,
    JsonBody(init): JsonBody<SessionInitRequest>,
) -> ApiResult<SessionInit> {
    let view = known(&state, id).await?;
    let event = SessionEvent { project: init.project, ..numbered_event(id, Some(&view)) };
    begin(&state, event, init.prompt).await.map(Json)
}

async fn begin(
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
                let is_private =
                    matches!(&event, Event::PromptSubmitted(prompt) if prompt.is_private);
                reason = is_private.then_some("private");
                events.push((envelope, event));
            }
            Captured::Skipped(skip) => return Ok(SessionInit::skipped(skip.reason())),
        }
    }
    state.shared.append_all(events).await.map_err(ApiError::failed)?;
    let view = view_after_fold(state, session).await?;
    Ok(SessionInit {
        session_db_id: view.as_ref().map(|view| view.id),
        prompt_number: view.map_or(0, |view| view.prompts),
        skipped: reason.is_some(),
        reason,
        context_injected: false,
        status: "initialized",
    })
}

/// The session of this client's ID, with all events so far.
async fn view_after_fold(
    state: &Arc<AppState>,
    session: String,
) -> Result<Option<SessionView>, ApiError> {
    state
        .write(move |store, app| {
            let log = store::open_log(app)?;
            store::fold_for(store, &log, store::WAIT_MAX)?;
            Ok(store.session_views(SessionQuery::Id(&session), now_us(app))?.pop())
        })
        .await
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
    #[serde(default, rename = "contentSessionId", alias = "claudeSessionId", alias = "sessionId")]
    content_session_id: String,
    /// As the assistant calls it: `Read`, `Bash`.
    tool_name: String,
    /// JSON, or a string that contains JSON.
    #[schema(value_type = Option<Value>)]
    tool_input: Option<Box<RawValue>>,
    #[schema(value_type = Option<Value>)]
    tool_response: Option<Box<RawValue>>,
    /// Another name of `tool_response`.
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

impl SessionRequest for ToolUseRequest {
    const KIND: IncomingKind = IncomingKind::ToolUse;

    fn event(self) -> Result<SessionEvent, &'static str> {
        let event = SessionEvent {
            session: self.content_session_id,
            platform: self.platform_source,
            cwd: self.cwd,
            ..SessionEvent::default()
        };
        Ok(event
            .field("tool_name", Some(self.tool_name))
            .raw("tool_input", self.tool_input)
            .raw("tool_response", self.tool_response)
            .raw("tool_output", self.tool_output)
            .field("tool_use_id", self.tool_use_id)
            .field("agent_id", self.agent_id)
            .field("agent_type", self.agent_type))
    }
}

/// The end of a turn.
#[derive(Debug, Deserialize, ToSchema)]
struct StopRequest {
    /// The client's session ID.
    #[serde(default, rename = "contentSessionId", alias = "claudeSessionId", alias = "sessionId")]
    content_session_id: String,
    last_assistant_message: Option<String>,
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

impl SessionRequest for StopRequest {
    const KIND: IncomingKind = IncomingKind::Stop;

    fn event(self) -> Result<SessionEvent, &'static str> {
        if self.agent_id.is_some_and(|agent| !agent.is_empty()) {
            return Err("subagent_context");
        }
        let event = SessionEvent {
            session: self.content_session_id,
            platform: self.platform_source,
            cwd: self.cwd,
            ..SessionEvent::default()
        };
        let last_message = self.last_assistant_message.unwrap_or_default();
        Ok(event
            .field("last_assistant_message", Some(last_message))
            .field("last_user_message", self.last_user_message))
    }
}

/// The end of a session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SessionEndRequest {
    /// The client's session ID.
    #[serde(default, alias = "claudeSessionId", alias = "sessionId")]
    content_session_id: String,
    reason: Option<String>,
    /// The client, such as `claude-code`.
    platform_source: Option<String>,
}

impl SessionRequest for SessionEndRequest {
    const KIND: IncomingKind = IncomingKind::SessionEnd;

    fn event(self) -> Result<SessionEvent, &'static str> {
        let event = SessionEvent {
            session: self.content_session_id,
            platform: self.platform_source,
            ..SessionEvent::default()
        };
        Ok(event.field("reason", Some(self.reason.unwrap_or_else(|| "complete".into()))))
    }
}

async fn record_request<R: SessionRequest>(state: &Arc<AppState>, request: R) -> ApiResult<Queued> {
    let reason = match request.event() {
        Ok(event) => record(state, R::KIND, event).await?,
        Err(reason) => Some(reason),
    };
    Ok(Json(Queued::of(reason)))
}

/// Records a tool use.
#[utoipa::path(post, path = "/api/sessions/observations", tag = "sessions",
    request_body = ToolUseRequest, responses((status = 200, body = Queued)))]
async fn observations(
    State(state): State<Arc<AppState>>,
    JsonBody(used): JsonBody<ToolUseRequest>,
) -> ApiResult<Queued> {
    record_request(&state, used).await
}

/// Records the end of a turn, which is then summarized.
#[utoipa::path(post, path = "/api/sessions/summarize", tag = "sessions",
    request_body = StopRequest, responses((status = 200, body = Queued)))]
async fn summarize(
    State(state): State<Arc<AppState>>,
    JsonBody(stopped): JsonBody<StopRequest>,
) -> ApiResult<Queued> {
    record_request(&state, stopped).await
}

/// Records the end of a session.
#[utoipa::path(post, path = "/api/sessions/complete", tag = "sessions",
    request_body = SessionEndRequest, responses((status = 200, body = Queued)))]
async fn complete(
    State(state): State<Arc<AppState>>,
    JsonBody(ended): JsonBody<SessionEndRequest>,
) -> ApiResult<Queued> {
    record_request(&state, ended).await
}

/// Records an event of the session with this number, which begins by itself. The body may be empty.
async fn record_numbered<R: SessionRequest>(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<i64>,
    body: Bytes,
) -> ApiResult<Queued> {
    let body = if body.trim_ascii().is_empty() { b"{}" } else { &body[..] };
    let request: R = serde_json::from_slice(body)
        .map_err(|error| ApiError::bad(format!("invalid body: {error}")))?;
    let view = find(&state, id).await?;
    let queue_length = view.as_ref().map_or(0, |view| view.outstanding);
    let SessionEvent { session, platform, .. } = numbered_event(id, view.as_ref());
    let reason = match request.event() {
        Ok(event) => record(&state, R::KIND, SessionEvent { session, platform, ..event }).await?,
        Err(reason) => Some(reason),
    };
    Ok(Json(Queued { queue_length: Some(queue_length), ..Queued::of(reason) }))
}

/// The status of the session with this number.
async fn status(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<i64>,
) -> ApiResult<Value> {
    let view = known(&state, id).await?;
    let session_db_id = view.id;
    let session = Session::from(view);
    Ok(Json(json!({
        "sessionDbId": session_db_id,
        "sdkSessionId": session.memory_session_id,
        "project": session.project,
        "status": session.status,
        "queueLength": session.queue_depth,
        "promptNumber": session.prompts,
        "session": session,
    })))
}

/// Cancels the provider request of a session, and records that the session has failed. Its pending
/// events stay in the log, and are distilled when the session continues.
async fn cancel(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<i64>,
) -> ApiResult<Value> {
    let view = known(&state, id).await?;
    let shared = Arc::clone(&state.shared);
    let seconds = state.block(move || Ok(shared.app().settings.get(&DELETE_TIMEOUT))).await?;
    let ended = numbered_event(id, Some(&view)).field("reason", Some(SessionEnded::CANCELLED));
    record(&state, IncomingKind::SessionEnd, ended).await?;
    let is_stopped = state.shared.cancel_session(&view.session, Duration::from_secs(seconds)).await;
    view_after_fold(&state, view.session).await?;
    Ok(Json(json!({"status": "deleted", "isStopped": is_stopped})))
}

/// The client's ID of a session that was started with a number alone.
fn numbered_name(id: i64) -> String {
    format!("session-{id}")
}

async fn known(state: &Arc<AppState>, id: i64) -> Result<SessionView, ApiError> {
    let view = find(state, id).await?;
    view.ok_or_else(|| ApiError::not_found(format!("there is no session {id}")))
}

/// The session that was started with this number, else the one that has it in the database.
async fn find(state: &Arc<AppState>, id: i64) -> Result<Option<SessionView>, ApiError> {
    state
        .read(move |store, app| {
            let mut view =
                store.session_views(SessionQuery::Id(&numbered_name(id)), now_us(app))?;
            if view.is_empty() {
                view = store.session_views(SessionQuery::Number(id), now_us(app))?;
            }
            Ok(view.pop())
        })
        .await
}

fn numbered_event(id: i64, view: Option<&SessionView>) -> SessionEvent {
    SessionEvent {
        session: view.map_or_else(|| numbered_name(id), |view| view.session.clone()),
        platform: view.map(|view| view.client.clone()),
        ..SessionEvent::default()
    }
}
