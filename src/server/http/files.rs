//! Files that memories are about.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use claude_mem_core::app::App;
use claude_mem_projections::{FileCount, Store};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{ApiError, QueryParams},
    feed::given,
    state::AppState,
    time_params::{epoch, rfc3339},
};

/// Default and maximum number of files.
const LIMIT: u32 = 200;
const LIMIT_MAX: u32 = 1000;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct FileParams {
    /// Project name or key.
    project: Option<String>,
    limit: Option<u32>,
}

/// Files, those with most memories first.
#[derive(Debug, Serialize, ToSchema)]
struct Files {
    items: Vec<FileItem>,
}

/// A file.
#[derive(Debug, Serialize, ToSchema)]
struct FileItem {
    file: String,
    project: String,
    /// Number of observations that name it.
    observations: u64,
    /// How many of them changed it.
    changes: u64,
    last_at: String,
    /// Milliseconds since 1970.
    last_at_epoch: u64,
}

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(files))
}

/// Lists the files that most of the newest 20,000 observations name.
#[utoipa::path(get, path = "/api/files", tag = "reading", params(FileParams),
    responses((status = 200, body = Files)))]
async fn files(
    State(state): State<Arc<AppState>>,
    QueryParams(params): QueryParams<FileParams>,
) -> Result<Response, ApiError> {
    let limit = params.limit.unwrap_or(LIMIT).min(LIMIT_MAX);
    let project = given(params.project);
    let item = |found: FileCount| FileItem {
        file: found.file,
        project: found.project,
        observations: found.observations,
        changes: found.changes,
        last_at: rfc3339(found.at_us),
        last_at_epoch: epoch(found.at_us),
    };
    let question = format!("files {limit} {}", project.as_deref().unwrap_or_default());
    let found = move |store: &Store, _: &App| {
        let found = store.file_counts(project.as_deref(), limit)?;
        Ok(Files { items: found.into_iter().map(item).collect() })
    };
    state.read_cached(question, found).await
}
