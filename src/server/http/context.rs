//! The context that a new session receives.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};
use claude_mem_projections::Store;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{ApiError, ApiResult, QueryParams},
    feed::list,
    state::AppState,
};
use claude_mem_capture::{ContextMax, project::ProjectId};
use claude_mem_core::app::App;
use claude_mem_memory::{
    context::{ContextMoment, Page, Request, compose},
    resolve::recorded_project,
};

/// Maximum of `budget`.
const BUDGET_MAX: usize = 100_000;

/// The project, and how much.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ContextParams {
    /// Folder, key or name of the project.
    project: Option<String>,
    /// Project names, separated by commas; the last one is used.
    projects: Option<String>,
    /// Only memories of sessions of this client, such as `codex`.
    client: Option<String>,
    /// Maximum number of tokens [default: the setting].
    budget: Option<usize>,
    /// Use the maximum budget.
    full: Option<bool>,
}

/// The context of a new session, and its size.
#[derive(Debug, Serialize, ToSchema)]
struct Preview {
    project: String,
    /// Exactly what is injected; empty without memories.
    text: String,
    tokens: usize,
    tokens_max: usize,
    bytes: usize,
    /// Number of observations in the text.
    observations: usize,
    /// Number of observations in the project.
    observations_total: u64,
}

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(inject)).routes(routes!(preview))
}

/// Returns the context of a new session as text. It is empty for a project without memories.
#[utoipa::path(get, path = "/api/context/inject", tag = "reading", params(ContextParams),
    responses((status = 200, body = String, content_type = "text/plain")))]
async fn inject(
    State(state): State<Arc<AppState>>,
    QueryParams(params): QueryParams<ContextParams>,
) -> Result<Response, ApiError> {
    let found = state.read(move |store, app| look(store, app, &params)).await?;
    let text = found.and_then(|(_, page)| page).map_or_else(String::new, |page| page.text);
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response())
}

/// Returns the context of a new session, and its size in tokens.
#[utoipa::path(get, path = "/api/context/preview", tag = "reading", params(ContextParams),
    responses((status = 200, body = Preview)))]
async fn preview(
    State(state): State<Arc<AppState>>,
    QueryParams(params): QueryParams<ContextParams>,
) -> ApiResult<Preview> {
    let found = state.read(move |store, app| look(store, app, &params)).await?;
    let (project, page) =
        found.ok_or_else(|| ApiError::not_found("there is no recorded project of that name"))?;
    let page = page.unwrap_or_default();
    Ok(Json(Preview {
        project: project.label,
        tokens: page.tokens,
        tokens_max: page.tokens_max,
        bytes: page.text.len(),
        observations: page.observations,
        observations_total: page.observations_total,
        text: page.text,
    }))
}

/// The project and its context; `None` if nothing is recorded of it.
fn look(
    store: &Store,
    app: &App,
    params: &ContextParams,
) -> Result<Option<(ProjectId, Option<Page>)>, ApiError> {
    let named = list(params.projects.as_deref()).pop();
    let name = params.project.clone().filter(|name| !name.trim().is_empty()).or(named);
    let name = name.ok_or_else(|| ApiError::bad("`project` is required"))?;
    let Some(project) = recorded_project(store, name.trim())? else {
        return Ok(None);
    };
    let budget = match params.full {
        Some(true) => Some(BUDGET_MAX),
        _ => params.budget.map(|budget| budget.min(BUDGET_MAX)),
    };
    let request = Request {
        project: &project,
        now: app.clock.now(),
        moment: ContextMoment::Start,
        reads_auto_memory: false,
        client: params.client.as_deref().filter(|name| !name.trim().is_empty()),
        budget,
        size_max: ContextMax::Unlimited,
    };
    let page = compose(store, &app.settings, &request)?;
    Ok(Some((project, page)))
}
