//! Related memories.

use std::sync::Arc;

use axum::{Json, extract::State};
use claude_mem_core::app::App;
use claude_mem_memory::semantic::{RelatedMemory, related};
use claude_mem_projections::{Store, search::MemoryId};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{ApiError, ApiResult, PathParam},
    state::AppState,
};

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(related_memories))
}

/// Lists up to five memories of the same project that are most similar to a memory, most similar
/// first.
#[utoipa::path(get, path = "/api/memory/{id}/related", tag = "reading",
    params(("id" = String, Path, description = "`12`, `S3` or `P9`")),
    responses((status = 200, body = Vec<RelatedMemory>)))]
async fn related_memories(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<String>,
) -> ApiResult<Vec<RelatedMemory>> {
    let name: MemoryId =
        id.parse().map_err(|_| ApiError::bad(format!("`{id}` is not the ID of a memory")))?;
    let found = move |store: &Store, app: &App| {
        let row = store.list_rows(&[name])?.pop();
        let row = row.ok_or_else(|| ApiError::not_found(format!("there is no memory {name}")))?;
        Ok(related(app, store, name, &row.project)?)
    };
    state.read(found).await.map(Json)
}
