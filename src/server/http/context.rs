//! What a session is told when it begins.

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
    error::{Answer, Asked, Problem, Refusal},
    feed::list,
    state::Site,
};
use claude_mem_capture::project::ProjectId;
use claude_mem_core::app::App;
use claude_mem_memory::{
    context::{Page, Request, compose},
    resolve::recorded_project,
};

/// Tokens that may be asked for.
const BUDGET_MAX: usize = 100_000;

/// Of which project.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Wanted {
    /// The name or key of a project.
    project: Option<String>,
    /// Names separated by commas; the last one is meant.
    projects: Option<String>,
    /// Tokens that it may cost; as configured, if not given.
    budget: Option<usize>,
    /// As much as fits at all.
    full: Option<bool>,
}

/// What a session would be told, and what that costs it.
#[derive(Debug, Serialize, ToSchema)]
struct Preview {
    project: String,
    /// Exactly what is injected; empty if there is nothing to tell.
    text: String,
    tokens: usize,
    tokens_max: usize,
    bytes: usize,
    /// Observations in it.
    observations: usize,
    /// Observations there are.
    observations_total: u64,
}

pub(super) fn routes() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new().routes(routes!(inject)).routes(routes!(preview))
}

/// What a session in a project is told when it begins, as it is.
#[utoipa::path(get, path = "/api/context/inject", tag = "reading", params(Wanted),
    security(("token" = [])),
    responses((status = 200, body = String, content_type = "text/plain"),
        (status = "4XX", body = Problem)))]
async fn inject(
    State(site): State<Arc<Site>>,
    Asked(wanted): Asked<Wanted>,
) -> Result<Response, Refusal> {
    let (_, page) = site.read(move |store, app| look(store, app, &wanted)).await?;
    let text = page.map_or_else(String::new, |page| page.text);
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response())
}

/// The same, with its price.
#[utoipa::path(get, path = "/api/context/preview", tag = "reading", params(Wanted),
    security(("token" = [])),
    responses((status = 200, body = Preview), (status = "4XX", body = Problem)))]
async fn preview(State(site): State<Arc<Site>>, Asked(wanted): Asked<Wanted>) -> Answer<Preview> {
    let (project, page) = site.read(move |store, app| look(store, app, &wanted)).await?;
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

fn look(store: &Store, app: &App, wanted: &Wanted) -> Result<(ProjectId, Option<Page>), Refusal> {
    let named = list(wanted.projects.as_deref()).pop();
    let name = wanted.project.clone().filter(|name| !name.trim().is_empty()).or(named);
    let name = name.ok_or_else(|| Refusal::bad("`project` is required"))?;
    let Some(project) = recorded_project(store, name.trim())? else {
        return Err(Refusal::not_found(format!("nothing is recorded of a project `{name}`")));
    };
    let budget = match wanted.full {
        Some(true) => Some(BUDGET_MAX),
        _ => wanted.budget.map(|budget| budget.min(BUDGET_MAX)),
    };
    let request = Request { project: &project, now: app.clock.now(), resumed: None, budget };
    let page = compose(store, &app.settings, &request)?;
    Ok((project, page))
}
