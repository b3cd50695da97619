//! Generations: the reprocessings there were, and which of them is shown.

use std::sync::Arc;

use axum::{Json, extract::State};
use claude_mem_projections::{Generation, Store};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{Answer, Named, Problem, Refusal},
    state::Site,
    time_params::rfc3339,
};
use claude_mem_core::app::App;
use claude_mem_distill::adopt;
use claude_mem_memory::store;

/// A reprocessing, as it was recorded.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "they are what was recorded of it")]
pub(super) struct Made {
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

pub(super) fn routes() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new().routes(routes!(show))
}

/// What became of it.
#[derive(Debug, Serialize, ToSchema)]
struct Adopted {
    success: bool,
}

/// Shows a generation that is complete: its memories are then the ones that are remembered.
#[utoipa::path(post, path = "/api/replays/{generation}/adopt", tag = "replays",
    params(("generation" = u32, Path)), security(("token" = [])),
    responses((status = 200, body = Adopted), (status = "4XX", body = Problem)))]
async fn show(State(site): State<Arc<Site>>, Named(generation): Named<u32>) -> Answer<Adopted> {
    let done = move |store: &mut Store, app: &mut App| {
        if !is_there(store, generation)? {
            return Err(Refusal::conflict(format!("generation {generation} is not complete")));
        }
        let log = store::open_log(app)?;
        adopt(app, store, &log, generation)?;
        store::fold(store, &log)?;
        Ok(Adopted { success: true })
    };
    site.write(done).await.map(Json)
}

/// Whether a generation is complete. The first is memory as it was made.
pub(super) fn is_there(store: &Store, generation: u32) -> Result<bool, Refusal> {
    let generations = store.generations()?;
    match generations.iter().find(|known| known.generation == generation) {
        Some(known) => Ok(known.is_finished),
        None if generation == 0 => Ok(true),
        None => Err(Refusal::not_found(format!("there is no generation {generation}"))),
    }
}

impl From<Generation> for Made {
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
