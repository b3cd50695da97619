//! Health, readiness and progress of the worker.

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    auth::Caller,
    error::{ApiError, ApiResult},
    state::AppState,
};
use crate::shared::{Shared, health::Health, queue_history::Sample};
use claude_mem_core::format::count;
use claude_mem_distill::{failing, setup};

/// Health of the worker. Details need the token.
#[derive(Debug, Serialize, ToSchema)]
struct HealthResponse {
    /// `ok`, `degraded` if no provider is available or the queue only grows, `unhealthy` without
    /// progress.
    status: &'static str,
    version: String,
    /// Milliseconds since 1970.
    timestamp: i64,
    #[serde(flatten)]
    #[schema(value_type = Object)]
    everything: Map<String, Value>,
}

/// Version of the program.
#[derive(Debug, Serialize, ToSchema)]
struct Version {
    version: String,
}

/// Readiness of the server.
#[derive(Debug, Serialize, ToSchema)]
struct Readiness {
    /// `ready`.
    status: &'static str,
}

/// Pending work.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Processing {
    pub(super) is_processing: bool,
    /// Pending tool uses and stops.
    pub(super) queue_depth: u64,
    /// Parked tool uses and stops.
    pub(super) parked: u64,
    /// Why nothing is distilled, or only by the built-in rules; null without a problem.
    pub(super) problem: Option<DistillProblem>,
}

/// Why distilling does not work, and what to do about it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DistillProblem {
    message: String,
    /// What happens meanwhile.
    meaning: String,
    remedy: String,
}

/// Pending work, and its history.
#[derive(Debug, Serialize, ToSchema)]
struct ProcessingStatus {
    #[serde(flatten)]
    now: Processing,
    /// One sample per minute, oldest first.
    history: Vec<Sample>,
}

pub(super) fn open_routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new()
        .routes(routes!(health))
        .routes(routes!(api_health))
        .routes(routes!(readiness))
        .routes(routes!(version))
}

pub(super) fn closed_routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(processing, process)).routes(routes!(processing_status))
}

/// Returns the worker's health.
#[utoipa::path(get, path = "/health", tag = "health",
    responses((status = 200, body = HealthResponse), (status = 503, body = HealthResponse)))]
async fn health(
    State(state): State<Arc<AppState>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, ApiError> {
    look(&state, caller).await
}

/// Alias of `/health`.
#[utoipa::path(get, path = "/api/health", tag = "health",
    responses((status = 200, body = HealthResponse), (status = 503, body = HealthResponse)))]
async fn api_health(
    State(state): State<Arc<AppState>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, ApiError> {
    look(&state, caller).await
}

async fn look(state: &Arc<AppState>, caller: Caller) -> Result<Response, ApiError> {
    state.shared.recheck().await;
    let shared = Arc::clone(&state.shared);
    let health = state.block(move || Ok(Health::look(&shared))).await?;
    let status = if health.is_well() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut response = HealthResponse {
        status: health.status,
        version: health.version.clone(),
        timestamp: state.shared.clock.now().as_millisecond(),
        everything: Map::new(),
    };
    if caller.is_authorized
        && let Ok(Value::Object(everything)) = serde_json::to_value(&health)
    {
        response.everything = everything;
        response.everything.insert("tables".into(), state.entries());
        for name in ["status", "version"] {
            response.everything.shift_remove(name);
        }
    }
    Ok((status, Json(response)).into_response())
}

/// Returns `ready` as soon as the server responds.
#[utoipa::path(get, path = "/api/readiness", tag = "health",
    responses((status = 200, body = Readiness)))]
async fn readiness() -> Json<Readiness> {
    Json(Readiness { status: "ready" })
}

/// Version of the program.
#[utoipa::path(get, path = "/api/version", tag = "health",
    responses((status = 200, body = Version)))]
async fn version(State(state): State<Arc<AppState>>) -> Json<Version> {
    Json(Version { version: state.shared.instance.version.clone() })
}

/// Pending work.
#[utoipa::path(get, path = "/api/processing", tag = "health",
    responses((status = 200, body = Processing)))]
async fn processing(State(state): State<Arc<AppState>>) -> ApiResult<Processing> {
    pending_work(&state).await.map(Json)
}

/// Returns pending work, and its history over the last hours.
#[utoipa::path(get, path = "/api/processing-status", tag = "health",
    responses((status = 200, body = ProcessingStatus)))]
async fn processing_status(State(state): State<Arc<AppState>>) -> ApiResult<ProcessingStatus> {
    let now = pending_work(&state).await?;
    Ok(Json(ProcessingStatus { now, history: state.shared.queue.samples() }))
}

/// Makes the worker check for pending work now.
#[utoipa::path(post, path = "/api/processing", tag = "health",
    responses((status = 200, body = Processing)))]
async fn process(State(state): State<Arc<AppState>>) -> ApiResult<Processing> {
    state.shared.wake();
    pending_work(&state).await.map(Json)
}

/// Counts pending work.
pub(super) async fn pending_work(state: &Arc<AppState>) -> Result<Processing, ApiError> {
    let shared = Arc::clone(&state.shared);
    state
        .block(move || {
            let health = Health::look(&shared);
            Ok(Processing {
                is_processing: health.distilling > 0,
                queue_depth: health.unanswered.events,
                parked: health.parked,
                problem: problem(&shared, &health),
            })
        })
        .await
}

/// What the user should know about distilling: a failing provider, a reached cap, parked requests.
fn problem(shared: &Shared, health: &Health) -> Option<DistillProblem> {
    let app = shared.app();
    let failing = shared.read(|store| {
        store.map(|store| failing(store, &setup(&app))).transpose().map_err(Into::into)
    });
    if let Some(found) = failing.ok().flatten().flatten() {
        return Some(DistillProblem {
            message: format!("{} fails: {}", found.outage.provider, found.outage.message),
            meaning: found.meanwhile.into(),
            remedy: found.outage.remedy,
        });
    }
    if let Some(why) = &health.provider.message {
        return Some(DistillProblem {
            message: why.clone(),
            meaning: "events stay pending".into(),
            remedy: "see `claude-mem doctor`".into(),
        });
    }
    (health.parked > 0).then(|| DistillProblem {
        message: format!("{} parked", count(health.parked, "event")),
        meaning: "their requests failed repeatedly".into(),
        remedy: "try them again with `claude-mem distill retry`".into(),
    })
}
