//! Forgets memories, and undoes it.

use std::sync::Arc;

use axum::{Json, extract::State};
use claude_mem_projections::search::{Kind, MemoryId};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{ApiError, ApiResult, PathParam},
    state::AppState,
    time_params::rfc3339,
};
use claude_mem_memory::forget;

/// Maximum number of listed forget operations.
const LISTED_MAX: usize = 100;
/// Titles of each.
const TITLES_MAX: usize = 5;

/// Result of forgetting a memory.
#[derive(Debug, Serialize, ToSchema)]
struct ForgetResult {
    success: bool,
    id: String,
    /// `observation`, `summary` or `prompt`.
    kind: &'static str,
    /// ID for undo, which works until the log is compacted.
    forgetting: String,
    /// Memories forgotten with it, because they were distilled from it.
    also: Vec<String>,
}

/// All forget operations.
#[derive(Debug, Serialize, ToSchema)]
struct Forgettings {
    /// Latest first.
    items: Vec<Forgetting>,
}

/// A forget operation.
#[derive(Debug, Serialize, ToSchema)]
struct Forgetting {
    id: String,
    created_at: String,
    /// Number of memories it removed.
    memories: u64,
    /// The titles of up to five of them, or its conditions; empty after a compaction.
    titles: Vec<String>,
    /// Whether it was undone.
    is_void: bool,
    /// Whether a compaction followed, so that it cannot be undone.
    is_final: bool,
}

/// Result of an undo.
#[derive(Debug, Serialize, ToSchema)]
struct UndoResult {
    success: bool,
    /// Number of restored memories.
    memories: u64,
}

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new()
        .routes(routes!(forget_observation))
        .routes(routes!(forget_summary))
        .routes(routes!(forget_prompt))
        .routes(routes!(list))
        .routes(routes!(undo))
}

/// Forgets an observation.
#[utoipa::path(delete, path = "/api/observation/{id}", tag = "writing", params(("id" = i64, Path)),
    responses((status = 200, body = ForgetResult)))]
async fn forget_observation(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<i64>,
) -> ApiResult<ForgetResult> {
    forget(&state, MemoryId { kind: Kind::Observation, id }).await
}

/// Forgets a summary.
#[utoipa::path(delete, path = "/api/summary/{id}", tag = "writing", params(("id" = i64, Path)),
    responses((status = 200, body = ForgetResult)))]
async fn forget_summary(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<i64>,
) -> ApiResult<ForgetResult> {
    forget(&state, MemoryId { kind: Kind::Summary, id }).await
}

/// Forgets a prompt, and what was distilled from it.
#[utoipa::path(delete, path = "/api/prompt/{id}", tag = "writing", params(("id" = i64, Path)),
    responses((status = 200, body = ForgetResult)))]
async fn forget_prompt(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<i64>,
) -> ApiResult<ForgetResult> {
    forget(&state, MemoryId { kind: Kind::Prompt, id }).await
}

async fn forget(state: &Arc<AppState>, name: MemoryId) -> ApiResult<ForgetResult> {
    let done = state
        .write(move |store, app| {
            if store.memory_source(name)?.is_none() {
                return Err(ApiError::not_found(format!("there is no memory {name}")));
            }
            let taken = forget::find(store, &[name])?;
            let also = taken.also.iter().map(|memory| memory.name.to_string()).collect();
            let forgetting = forget::forget(app, store, &taken, "")?.to_string();
            Ok(ForgetResult {
                success: true,
                id: name.id.to_string(),
                kind: name.kind.name(),
                forgetting,
                also,
            })
        })
        .await?;
    Ok(Json(done))
}

/// Lists forget operations, latest first.
#[utoipa::path(get, path = "/api/forgettings", tag = "reading",
    responses((status = 200, body = Forgettings)))]
async fn list(State(state): State<Arc<AppState>>) -> ApiResult<Forgettings> {
    state
        .read(|store, app| {
            let mut found = store.forgettings("")?;
            found.retain(|forgetting| !forgetting.is_undoing);
            found.truncate(LISTED_MAX);
            let mut items = Vec::with_capacity(found.len());
            for found in found {
                items.push(Forgetting {
                    id: found.event.to_string(),
                    created_at: rfc3339(found.at_us),
                    memories: found.memories,
                    titles: forget::forgotten_titles(app, store, &found, TITLES_MAX)?,
                    is_void: found.is_void,
                    is_final: found.is_final,
                });
            }
            Ok(Forgettings { items })
        })
        .await
        .map(Json)
}

/// Undoes a forget operation. Works until the log is compacted.
#[utoipa::path(post, path = "/api/forgettings/{id}/undo", tag = "writing",
    params(("id" = String, Path, description = "`forgetting` in the response to the deletion")),
    responses((status = 200, body = UndoResult)))]
async fn undo(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<String>,
) -> ApiResult<UndoResult> {
    // Unlike the command line, this accepts no prefix of an ID.
    if claude_mem_events::Id::parse(&id).is_none() {
        return Err(ApiError::bad("this is not the ID of a forget operation"));
    }
    let memories = state
        .write(move |store, app| {
            if store.forgettings(&id)?.is_empty() {
                return Err(ApiError::not_found("there is no forget operation with this ID"));
            }
            forget::undo(app, store, &id).map_err(|failure| ApiError::conflicting(&failure))
        })
        .await?;
    Ok(Json(UndoResult { success: true, memories }))
}
