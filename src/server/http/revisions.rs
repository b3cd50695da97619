//! Revises observations: edit, pin, mark as wrong, supersede.

use std::sync::Arc;

use axum::{Json, extract::State, http::HeaderMap};
use claude_mem_projections::search::{Kind, MemoryId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{ApiError, ApiResult, JsonBody, PathParam},
    state::AppState,
};
use claude_mem_memory::revise::{Change, Edit, revise};

/// A change of an observation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
enum RevisionRequest {
    /// Other texts. What is left out stays as it is.
    Edit {
        title: Option<String>,
        text: Option<String>,
        #[serde(rename = "type")]
        type_: Option<String>,
    },
    /// First in the context of new sessions.
    Pin,
    /// Treated like others.
    Unpin,
    /// Wrong, and given to no session.
    Wrong {
        #[serde(default)]
        because: String,
    },
    /// Replaced by another observation, and given to no session.
    Supersede {
        /// Number of that observation.
        by: i64,
    },
    /// Neither wrong nor superseded.
    Restore,
}

/// Result of a revision.
#[derive(Debug, Serialize, ToSchema)]
struct RevisionResult {
    success: bool,
    id: String,
    /// ID of the event.
    event: String,
    /// Whether private text or secrets were removed.
    is_redacted: bool,
}

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(revise_observation))
}

/// Revises an observation.
#[utoipa::path(post, path = "/api/observation/{id}/revisions", tag = "writing",
    params(("id" = i64, Path)), request_body = RevisionRequest,
    responses((status = 200, body = RevisionResult)))]
async fn revise_observation(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<i64>,
    headers: HeaderMap,
    JsonBody(request): JsonBody<RevisionRequest>,
) -> ApiResult<RevisionResult> {
    // Only browsers set this header: with it the user writes in the viewer, without it a program
    // does.
    let via = if headers.contains_key("sec-fetch-site") { "viewer" } else { "http" };
    let name = MemoryId { kind: Kind::Observation, id };
    let change = match request {
        RevisionRequest::Edit { title, text, type_ } => Change::Edit(Edit { title, text, type_ }),
        RevisionRequest::Pin => Change::Pin,
        RevisionRequest::Unpin => Change::Unpin,
        RevisionRequest::Wrong { because } => Change::Wrong(because),
        RevisionRequest::Supersede { by } => {
            Change::Supersede(MemoryId { kind: Kind::Observation, id: by })
        }
        RevisionRequest::Restore => Change::Restore,
    };
    let revised = state
        .write(move |store, app| {
            if store.list_rows(&[name])?.is_empty() {
                return Err(ApiError::not_found(format!("there is no memory {name}")));
            }
            Ok(revise(app, store, name, &change, via)?)
        })
        .await?;
    Ok(Json(RevisionResult {
        success: true,
        id: id.to_string(),
        event: revised.event.to_string(),
        is_redacted: revised.is_redacted,
    }))
}
