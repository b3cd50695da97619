//! Sessions by their number, as the first versions of claude-mem had them.

use std::{sync::Arc, time::Duration};

use axum::{Json, extract::State};
use claude_mem_projections::{SessionQuery, SessionView};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    dto::Session,
    error::{Answer, Given, Named, Problem, Refusal},
    ingest::{SessionEvent, record},
    sessions::{Begun, begin, now_us},
    state::Site,
};
use claude_mem_capture::IncomingKind;
use claude_mem_core::settings::table::DELETE_TIMEOUT;

pub(super) fn routes() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new()
        .routes(routes!(init))
        .routes(routes!(observations))
        .routes(routes!(summarize))
        .routes(routes!(status))
        .routes(routes!(delete))
}

/// What the user said.
#[derive(Debug, Deserialize, ToSchema)]
struct Said {
    /// What the user said.
    #[serde(alias = "userPrompt", alias = "user_prompt")]
    prompt: Option<String>,
    /// The name of the project.
    project: Option<String>,
}

/// A tool that was used.
#[derive(Debug, Deserialize, ToSchema)]
struct ToolUse {
    /// As the assistant calls it: `Read`, `Bash`.
    tool_name: String,
    /// What it was given.
    #[schema(value_type = Option<Value>)]
    tool_input: Option<Box<RawValue>>,
    /// What came back; `tool_output` is understood, too.
    #[serde(alias = "tool_output")]
    #[schema(value_type = Option<Value>)]
    tool_response: Option<Box<RawValue>>,
    /// Where it ran.
    cwd: Option<String>,
    /// The client's id of this use.
    tool_use_id: Option<String>,
}

/// What was said last.
#[derive(Debug, Default, Deserialize, ToSchema)]
struct LastWords {
    last_user_message: Option<String>,
    last_assistant_message: Option<String>,
}

/// What becomes of something that was told.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Waiting {
    /// `queued`, or `skipped`.
    status: &'static str,
    /// Why it was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// How much of the session waits for an answer, this not yet counted.
    queue_length: u32,
}

/// How a session stands.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Standing {
    session_db_id: i64,
    /// The agent's id of its conversation.
    sdk_session_id: Option<String>,
    project: String,
    /// As the session's own; `failed` after it was deleted, until it goes on.
    status: String,
    /// How much of it waits for an answer.
    queue_length: u32,
    prompt_number: u32,
    session: Session,
}

/// What became of a session that was deleted.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Deleted {
    /// `deleted`.
    status: &'static str,
    /// Whether the request to the agent has ended. If not, it did not end in time.
    is_stopped: bool,
}

/// Begins, or goes on with, a session that is known.
#[utoipa::path(post, path = "/sessions/{id}/init", tag = "seed", security(("token" = [])),
    params(("id" = i64, Path)), request_body = Said,
    responses((status = 200, body = Begun), (status = "4XX", body = Problem)))]
async fn init(
    State(site): State<Arc<Site>>,
    Named(id): Named<i64>,
    Given(said): Given<Said>,
) -> Answer<Begun> {
    let told = find(&site, id).await?;
    let told = told.ok_or_else(|| Refusal::not_found(format!("there is no session {id}")))?;
    let event = SessionEvent { project: said.project, ..event_of(id, Some(told)) };
    begin(&site, event, said.prompt).await.map(Json)
}

/// Records that a tool was used. A session that is not known begins.
#[utoipa::path(post, path = "/sessions/{id}/observations", tag = "seed", security(("token" = [])),
    params(("id" = i64, Path)), request_body = ToolUse,
    responses((status = 200, body = Waiting), (status = "4XX", body = Problem)))]
async fn observations(
    State(site): State<Arc<Site>>,
    Named(id): Named<i64>,
    Given(used): Given<ToolUse>,
) -> Answer<Waiting> {
    let told = find(&site, id).await?;
    let queue_length = told.as_ref().map_or(0, |told| told.outstanding);
    let mut event = event_of(id, told);
    event.cwd = used.cwd.or(event.cwd);
    let event = event
        .field("tool_name", Some(used.tool_name))
        .raw("tool_input", used.tool_input)
        .raw("tool_response", used.tool_response)
        .field("tool_use_id", used.tool_use_id);
    let reason = record(&site, IncomingKind::ToolUse, event).await?;
    Ok(Json(Waiting::of(reason, queue_length)))
}

/// Records that the assistant stopped. A session that is not known begins.
#[utoipa::path(post, path = "/sessions/{id}/summarize", tag = "seed", security(("token" = [])),
    params(("id" = i64, Path)), request_body = Option<LastWords>,
    responses((status = 200, body = Waiting), (status = "4XX", body = Problem)))]
async fn summarize(
    State(site): State<Arc<Site>>,
    Named(id): Named<i64>,
    body: axum::body::Bytes,
) -> Answer<Waiting> {
    let stopped = match body.trim_ascii() {
        b"" => None,
        body => serde_json::from_slice::<Option<LastWords>>(body)
            .map_err(|error| Refusal::bad(format!("the body cannot be read: {error}")))?,
    };
    let stopped = stopped.unwrap_or_default();
    let told = find(&site, id).await?;
    let queue_length = told.as_ref().map_or(0, |told| told.outstanding);
    let event = event_of(id, told)
        .field("last_assistant_message", Some(stopped.last_assistant_message.unwrap_or_default()))
        .field("last_user_message", stopped.last_user_message);
    let reason = record(&site, IncomingKind::Stop, event).await?;
    Ok(Json(Waiting::of(reason, queue_length)))
}

/// How a session stands.
#[utoipa::path(get, path = "/sessions/{id}/status", tag = "seed", security(("token" = [])),
    params(("id" = i64, Path)),
    responses((status = 200, body = Standing), (status = "4XX", body = Problem)))]
async fn status(State(site): State<Arc<Site>>, Named(id): Named<i64>) -> Answer<Standing> {
    let told = find(&site, id).await?;
    let told = told.ok_or_else(|| Refusal::not_found(format!("there is no session {id}")))?;
    let session_db_id = told.id;
    let session = Session::from(told);
    Ok(Json(Standing {
        session_db_id,
        sdk_session_id: session.memory_session_id.clone(),
        project: session.project.clone(),
        status: match site.shared.is_left(&session.content_session_id) {
            true => "failed".into(),
            false => session.status.clone(),
        },
        queue_length: session.queue_depth,
        prompt_number: session.prompts,
        session,
    }))
}

/// Cancels the request to the agent about a session, and marks the session failed. What is pending stays in the log,
/// and is distilled when the session goes on.
#[utoipa::path(delete, path = "/sessions/{id}", tag = "seed", security(("token" = [])),
    params(("id" = i64, Path)),
    responses((status = 200, body = Deleted), (status = "4XX", body = Problem)))]
async fn delete(State(site): State<Arc<Site>>, Named(id): Named<i64>) -> Answer<Deleted> {
    let told = find(&site, id).await?;
    let told = told.ok_or_else(|| Refusal::not_found(format!("there is no session {id}")))?;
    let shared = Arc::clone(&site.shared);
    let seconds = site.block(move || Ok(shared.app().settings.get(&DELETE_TIMEOUT))).await?;
    let time_max = Duration::from_secs(seconds);
    let is_stopped = site.shared.leave(&told.session, time_max).await;
    Ok(Json(Deleted { status: "deleted", is_stopped }))
}

impl Waiting {
    fn of(reason: Option<&'static str>, queue_length: u32) -> Self {
        let status = if reason.is_none() { "queued" } else { "skipped" };
        Self { status, reason, queue_length }
    }
}

/// What a session is called that somebody has only a number of.
fn called(id: i64) -> String {
    format!("session-{id}")
}

/// The session that was begun under this number, else the one that has it.
async fn find(site: &Arc<Site>, id: i64) -> Result<Option<SessionView>, Refusal> {
    site.read(move |store, app| {
        let mut told = store.session_views(SessionQuery::Id(&called(id)), now_us(app))?;
        if told.is_empty() {
            told = store.session_views(SessionQuery::Number(id), now_us(app))?;
        }
        Ok(told.pop())
    })
    .await
}

fn event_of(id: i64, told: Option<SessionView>) -> SessionEvent {
    match told {
        None => SessionEvent { session: called(id), ..SessionEvent::default() },
        Some(told) => SessionEvent {
            session: told.session,
            platform: Some(told.platform),
            ..SessionEvent::default()
        },
    }
}
