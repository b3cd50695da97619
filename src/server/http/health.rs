//! Whether the worker is there, ready, and getting on.

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
    auth::Visitor,
    error::{Answer, Problem, Refusal},
    state::Site,
};
use crate::shared::{health::Health, queue_history::Sample};

/// How the worker is. Whoever shows the token is told everything.
#[derive(Debug, Serialize, ToSchema)]
struct Condition {
    /// `ok`, `degraded` if nobody can be asked or the queue only grows, `unhealthy` if there is no progress.
    status: &'static str,
    version: String,
    /// Milliseconds since 1970.
    timestamp: i64,
    #[serde(flatten)]
    #[schema(value_type = Object)]
    everything: Map<String, Value>,
}

/// Of the program.
#[derive(Debug, Serialize, ToSchema)]
struct Version {
    version: String,
}

/// Whether requests are answered.
#[derive(Debug, Serialize, ToSchema)]
struct Readiness {
    /// `ready`.
    status: &'static str,
}

/// What waits for an answer.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Processing {
    pub(super) is_processing: bool,
    /// Tool uses and stops that wait.
    pub(super) queue_depth: u64,
    /// Those that were given up on.
    pub(super) parked: u64,
}

/// What waits, and how much did in the last hours.
#[derive(Debug, Serialize, ToSchema)]
struct ProcessingStatus {
    #[serde(flatten)]
    now: Processing,
    /// One sample a minute, the oldest first.
    history: Vec<Sample>,
}

pub(super) fn open_routes() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new()
        .routes(routes!(health))
        .routes(routes!(api_health))
        .routes(routes!(readiness))
        .routes(routes!(version))
}

pub(super) fn closed_routes() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new().routes(routes!(processing, process)).routes(routes!(processing_status))
}

/// How the worker is.
#[utoipa::path(get, path = "/health", tag = "health",
    responses((status = 200, body = Condition), (status = 503, body = Condition), (status = "4XX", body = Problem)))]
async fn health(
    State(site): State<Arc<Site>>,
    Extension(visitor): Extension<Visitor>,
) -> Result<Response, Refusal> {
    look(&site, visitor).await
}

/// How the worker is, under another name.
#[utoipa::path(get, path = "/api/health", tag = "health",
    responses((status = 200, body = Condition), (status = 503, body = Condition), (status = "4XX", body = Problem)))]
async fn api_health(
    State(site): State<Arc<Site>>,
    Extension(visitor): Extension<Visitor>,
) -> Result<Response, Refusal> {
    look(&site, visitor).await
}

async fn look(site: &Arc<Site>, visitor: Visitor) -> Result<Response, Refusal> {
    let shared = Arc::clone(&site.shared);
    let health = site.block(move || Ok(Health::look(&shared))).await?;
    let status = if health.is_well() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut told = Condition {
        status: health.status,
        version: health.version.clone(),
        timestamp: site.shared.clock.now().as_millisecond(),
        everything: Map::new(),
    };
    if visitor.is_known
        && let Ok(Value::Object(everything)) = serde_json::to_value(&health)
    {
        told.everything = everything;
        told.everything.insert("tables".into(), site.entries());
        for name in ["status", "version"] {
            told.everything.shift_remove(name);
        }
    }
    Ok((status, Json(told)).into_response())
}

/// Whether requests are answered: they are, or nobody would say so.
#[utoipa::path(get, path = "/api/readiness", tag = "health",
    responses((status = 200, body = Readiness), (status = "4XX", body = Problem)))]
async fn readiness() -> Json<Readiness> {
    Json(Readiness { status: "ready" })
}

/// Of the program.
#[utoipa::path(get, path = "/api/version", tag = "health",
    responses((status = 200, body = Version), (status = "4XX", body = Problem)))]
async fn version(State(site): State<Arc<Site>>) -> Json<Version> {
    Json(Version { version: site.shared.presence.version.clone() })
}

/// What waits for an answer.
#[utoipa::path(get, path = "/api/processing", tag = "health", security(("token" = [])),
    responses((status = 200, body = Processing), (status = "4XX", body = Problem)))]
async fn processing(State(site): State<Arc<Site>>) -> Answer<Processing> {
    state(&site).await.map(Json)
}

/// What waits for an answer, and how much did in the last hours.
#[utoipa::path(get, path = "/api/processing-status", tag = "health", security(("token" = [])),
    responses((status = 200, body = ProcessingStatus), (status = "4XX", body = Problem)))]
async fn processing_status(State(site): State<Arc<Site>>) -> Answer<ProcessingStatus> {
    let now = state(&site).await?;
    Ok(Json(ProcessingStatus { now, history: site.shared.queue.samples() }))
}

/// Has the worker look now what there is to do.
#[utoipa::path(post, path = "/api/processing", tag = "health", security(("token" = [])),
    responses((status = 200, body = Processing), (status = "4XX", body = Problem)))]
async fn process(State(site): State<Arc<Site>>) -> Answer<Processing> {
    site.shared.wake();
    state(&site).await.map(Json)
}

/// What waits for an answer at this moment.
pub(super) async fn state(site: &Arc<Site>) -> Result<Processing, Refusal> {
    let shared = Arc::clone(&site.shared);
    site.block(move || {
        let health = Health::look(&shared);
        Ok(Processing {
            is_processing: health.asking > 0,
            queue_depth: health.unanswered.events,
            parked: health.parked,
        })
    })
    .await
}
