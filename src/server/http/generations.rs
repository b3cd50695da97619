//! Generations: past reprocessings, and which one is current.

use std::sync::Arc;

use axum::{Json, extract::State};
use claude_mem_projections::{Generation, Store};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{ApiError, ApiResult, PathParam},
    state::AppState,
    time_params::rfc3339,
};
use claude_mem_core::app::App;
use claude_mem_distill::adopt;
use claude_mem_memory::store;

/// A recorded reprocessing.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "the fields of the recorded event")]
pub(super) struct GenerationSummary {
    generation: u32,
    created_at: String,
    prompt_version: String,
    provider: String,
    model: String,
    since: Option<String>,
    until: Option<String>,
    project: Option<String>,
    session: Option<String>,
    is_fresh: bool,
    is_shadow: bool,
    is_finished: bool,
    is_current: bool,
}

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(show))
}

/// Result.
#[derive(Debug, Serialize, ToSchema)]
struct Adopted {
    success: bool,
}

/// Makes a complete generation the current one.
#[utoipa::path(post, path = "/api/replays/{generation}/adopt", tag = "replays",
    params(("generation" = u32, Path)), responses((status = 200, body = Adopted)))]
async fn show(
    State(state): State<Arc<AppState>>,
    PathParam(generation): PathParam<u32>,
) -> ApiResult<Adopted> {
    let done = move |store: &mut Store, app: &mut App| {
        if !is_there(store, generation)? {
            return Err(ApiError::conflict(format!("generation {generation} is incomplete")));
        }
        let log = store::open_log(app)?;
        adopt(app, store, &log, generation)?;
        store::fold(store, &log)?;
        Ok(Adopted { success: true })
    };
    state.write(done).await.map(Json)
}

/// Whether a generation is complete. Generation 0 is the original.
pub(super) fn is_there(store: &Store, generation: u32) -> Result<bool, ApiError> {
    let generations = store.generations()?;
    match generations.iter().find(|known| known.generation == generation) {
        Some(known) => Ok(known.is_finished),
        None if generation == 0 => Ok(true),
        None => Err(ApiError::not_found(format!("there is no generation {generation}"))),
    }
}

impl From<Generation> for GenerationSummary {
    fn from(generation: Generation) -> Self {
        let Generation { range, .. } = generation;
        Self {
            generation: generation.generation,
            created_at: rfc3339(generation.at_us),
            prompt_version: generation.prompt_version,
            provider: generation.provider,
            model: generation.model,
            since: range.since_us.map(rfc3339),
            until: range.until_us.map(rfc3339),
            project: range.project,
            session: range.session,
            is_fresh: generation.is_fresh,
            is_shadow: generation.is_shadow,
            is_finished: generation.is_finished,
            is_current: generation.is_current,
        }
    }
}
