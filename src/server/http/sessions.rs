//! Reading sessions: the list, and each turn by turn.

use std::{collections::BTreeMap, sync::Arc};

use axum::{Json, extract::State};
use claude_mem_projections::{SessionQuery, Store};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{ApiError, ApiResult, PathParam, QueryParams},
    feed::LIMIT_MAX,
    items::{Item, Observation, Prompt, Session, Summary},
    state::AppState,
};
use claude_mem_core::app::App;

/// Default page size.
const LIMIT: u32 = 20;
/// Maximum number of memories in a story.
const STORY_MAX: u32 = 2000;

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(story))
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
    responses((status = 200, body = Sessions)))]
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
#[utoipa::path(get, path = "/api/session/{id}", tag = "reading",
    params(("id" = String, Path, description = "number of the session, or the client's session ID")),
    responses((status = 200, body = Story)))]
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
