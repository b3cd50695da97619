//! The API of the first versions of claude-mem: sessions by number.

use std::{sync::Arc, time::Duration};

use axum::{Json, extract::State};
use claude_mem_projections::{SessionQuery, SessionView};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    dto::Session,
    error::{ApiError, ApiResult, JsonBody, PathParam, Problem},
    ingest::{SessionEvent, record},
    sessions::{SessionInit, begin, now_us},
    state::AppState,
};
use claude_mem_capture::IncomingKind;
use claude_mem_core::settings::table::DELETE_TIMEOUT;

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new()
        .routes(routes!(init))
        .routes(routes!(observations))
        .routes(routes!(summarize))
        .routes(routes!(status))
        .routes(routes!(delete))
}

/// The prompt.
#[derive(Debug, Deserialize, ToSchema)]
struct LegacyPrompt {
    /// The prompt.
    #[serde(alias = "userPrompt", alias = "user_prompt")]
    prompt: Option<String>,
    /// Project name.
    project: Option<String>,
}

/// A tool use.
#[derive(Debug, Deserialize, ToSchema)]
struct LegacyToolUse {
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
    /// The client's ID of this tool use.
    tool_use_id: Option<String>,
}

/// The end of a turn.
#[derive(Debug, Default, Deserialize, ToSchema)]
struct LegacyStop {
    last_user_message: Option<String>,
    last_assistant_message: Option<String>,
}

/// Result of recording an event.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LegacyQueued {
    /// `queued`, or `skipped`.
    status: &'static str,
    /// Why it was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// Number of other pending events of the session.
    queue_length: u32,
}

/// Status of a session.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LegacySessionStatus {
    session_db_id: i64,
    /// Session ID of the provider's conversation.
    sdk_session_id: Option<String>,
    project: String,
    /// Status of the session; `failed` after it was deleted, until it continues.
    status: String,
    /// Pending events.
    queue_length: u32,
    prompt_number: u32,
    session: Session,
}

/// Result of deleting a session.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LegacyDeleted {
    /// `deleted`.
    status: &'static str,
    /// Whether the provider request has ended in time.
    is_stopped: bool,
}

/// Starts or continues a known session.
#[utoipa::path(post, path = "/sessions/{id}/init", tag = "seed", security(("token" = [])),
    params(("id" = i64, Path)), request_body = LegacyPrompt,
    responses((status = 200, body = SessionInit), (status = "4XX", body = Problem)))]
async fn init(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<i64>,
    JsonBody(body): JsonBody<LegacyPrompt>,
) -> ApiResult<SessionInit> {
    let view = find(&state, id).await?;
    let view = view.ok_or_else(|| ApiError::not_found(format!("there is no session {id}")))?;
    let event = SessionEvent { project: body.project, ..event_of(id, Some(view)) };
    begin(&state, event, body.prompt).await.map(Json)
}

/// Records a tool use. Starts an unknown session.
#[utoipa::path(post, path = "/sessions/{id}/observations", tag = "seed", security(("token" = [])),
    params(("id" = i64, Path)), request_body = LegacyToolUse,
    responses((status = 200, body = LegacyQueued), (status = "4XX", body = Problem)))]
async fn observations(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<i64>,
    JsonBody(used): JsonBody<LegacyToolUse>,
) -> ApiResult<LegacyQueued> {
    let view = find(&state, id).await?;
    let queue_length = view.as_ref().map_or(0, |view| view.outstanding);
    let mut event = event_of(id, view);
    event.cwd = used.cwd.or(event.cwd);
    let event = event
        .field("tool_name", Some(used.tool_name))
        .raw("tool_input", used.tool_input)
        .raw("tool_response", used.tool_response)
        .raw("tool_output", used.tool_output)
        .field("tool_use_id", used.tool_use_id);
    let reason = record(&state, IncomingKind::ToolUse, event).await?;
    Ok(Json(LegacyQueued::of(reason, queue_length)))
}

/// Records the end of a turn. Starts an unknown session.
#[utoipa::path(post, path = "/sessions/{id}/summarize", tag = "seed", security(("token" = [])),
    params(("id" = i64, Path)), request_body = Option<LegacyStop>,
    responses((status = 200, body = LegacyQueued), (status = "4XX", body = Problem)))]
async fn summarize(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<i64>,
    body: axum::body::Bytes,
) -> ApiResult<LegacyQueued> {
    let stopped = match body.trim_ascii() {
        b"" => None,
        body => serde_json::from_slice::<Option<LegacyStop>>(body)
            .map_err(|error| ApiError::bad(format!("invalid body: {error}")))?,
    };
    let stopped = stopped.unwrap_or_default();
    let view = find(&state, id).await?;
    let queue_length = view.as_ref().map_or(0, |view| view.outstanding);
    let event = event_of(id, view)
        .field("last_assistant_message", Some(stopped.last_assistant_message.unwrap_or_default()))
        .field("last_user_message", stopped.last_user_message);
    let reason = record(&state, IncomingKind::Stop, event).await?;
    Ok(Json(LegacyQueued::of(reason, queue_length)))
}

/// Status of a session.
#[utoipa::path(get, path = "/sessions/{id}/status", tag = "seed", security(("token" = [])),
    params(("id" = i64, Path)),
    responses((status = 200, body = LegacySessionStatus), (status = "4XX", body = Problem)))]
async fn status(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<i64>,
) -> ApiResult<LegacySessionStatus> {
    let view = find(&state, id).await?;
    let view = view.ok_or_else(|| ApiError::not_found(format!("there is no session {id}")))?;
    let session_db_id = view.id;
    let session = Session::from(view);
    Ok(Json(LegacySessionStatus {
        session_db_id,
        sdk_session_id: session.memory_session_id.clone(),
        project: session.project.clone(),
        status: match state.shared.is_cancelled(&session.content_session_id) {
            true => "failed".into(),
            false => session.status.clone(),
        },
        queue_length: session.queue_depth,
        prompt_number: session.prompts,
        session,
    }))
}

/// Cancels the provider request of a session, and marks the session as failed. Pending events stay
/// in the log, and are distilled when the session continues.
#[utoipa::path(delete, path = "/sessions/{id}", tag = "seed", security(("token" = [])),
    params(("id" = i64, Path)),
    responses((status = 200, body = LegacyDeleted), (status = "4XX", body = Problem)))]
async fn delete(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<i64>,
) -> ApiResult<LegacyDeleted> {
    let view = find(&state, id).await?;
    let view = view.ok_or_else(|| ApiError::not_found(format!("there is no session {id}")))?;
    let shared = Arc::clone(&state.shared);
    let seconds = state.block(move || Ok(shared.app().settings.get(&DELETE_TIMEOUT))).await?;
    let time_max = Duration::from_secs(seconds);
    let is_stopped = state.shared.cancel_session(&view.session, time_max).await;
    Ok(Json(LegacyDeleted { status: "deleted", is_stopped }))
}

impl LegacyQueued {
    fn of(reason: Option<&'static str>, queue_length: u32) -> Self {
        let status = if reason.is_none() { "queued" } else { "skipped" };
        Self { status, reason, queue_length }
    }
}

/// Session ID for a client that only has a number.
fn session_name(id: i64) -> String {
    format!("session-{id}")
}

/// The session that was started with this number, else the one that has it in the database.
async fn find(state: &Arc<AppState>, id: i64) -> Result<Option<SessionView>, ApiError> {
    state
        .read(move |store, app| {
            let mut view = store.session_views(SessionQuery::Id(&session_name(id)), now_us(app))?;
            if view.is_empty() {
                view = store.session_views(SessionQuery::Number(id), now_us(app))?;
            }
            Ok(view.pop())
        })
        .await
}

fn event_of(id: i64, view: Option<SessionView>) -> SessionEvent {
    match view {
        None => SessionEvent { session: session_name(id), ..SessionEvent::default() },
        Some(view) => SessionEvent {
            session: view.session,
            platform: Some(view.client),
            ..SessionEvent::default()
        },
    }
}
