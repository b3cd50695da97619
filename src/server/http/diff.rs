//! Differences between generations.

use std::sync::Arc;

use axum::{Json, extract::State};
use claude_mem_projections::{ComparedObservation, Store};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{ApiResult, PathParam, QueryParams},
    generations::is_there,
    state::AppState,
    time_params::rfc3339,
};
use claude_mem_distill::{Change, changes};

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(diff))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct DiffParams {
    /// The generation to compare with [default: what it replaced].
    before: Option<u32>,
}

/// The differences of a generation.
#[derive(Debug, Serialize, ToSchema)]
struct Diff {
    generation: u32,
    before: Option<u32>,
    /// Number of identical observations.
    same: usize,
    changed: Vec<Reworded>,
    added: Vec<DiffObservation>,
    removed: Vec<DiffObservation>,
}

/// An observation before and after.
#[derive(Debug, Serialize, ToSchema)]
struct Reworded {
    before: DiffObservation,
    after: DiffObservation,
}

/// The compared fields of an observation.
#[derive(Debug, Serialize, ToSchema)]
struct DiffObservation {
    session: String,
    prompt_number: Option<u32>,
    created_at: String,
    #[serde(rename = "type")]
    type_: String,
    title: String,
    subtitle: String,
    narrative: String,
    facts: Vec<String>,
    files: Vec<String>,
}

/// Returns what a generation changed, or would change.
#[utoipa::path(get, path = "/api/replays/{generation}/diff", tag = "replays",
    params(DiffParams, ("generation" = u32, Path)), responses((status = 200, body = Diff)))]
async fn diff(
    State(state): State<Arc<AppState>>,
    PathParam(generation): PathParam<u32>,
    QueryParams(DiffParams { before }): QueryParams<DiffParams>,
) -> ApiResult<Diff> {
    let found = move |store: &Store| {
        is_there(store, generation)?;
        let found = changes(
            store.replaced_observations(generation, before)?,
            store.generation_observations(generation)?,
        );
        let mut diff = Diff {
            generation,
            before,
            same: 0,
            changed: Vec::new(),
            added: Vec::new(),
            removed: Vec::new(),
        };
        for change in found {
            match change {
                Change::Same(_) => diff.same += 1,
                Change::Gone(old) => diff.removed.push(old.into()),
                Change::New(new) => diff.added.push(new.into()),
                Change::Reworded(old, new) => {
                    diff.changed.push(Reworded { before: old.into(), after: new.into() });
                }
            }
        }
        Ok(diff)
    };
    state.read(move |store, _| found(store)).await.map(Json)
}

impl From<ComparedObservation> for DiffObservation {
    fn from(compared: ComparedObservation) -> Self {
        Self {
            session: compared.session,
            prompt_number: compared.prompt_number,
            created_at: rfc3339(compared.at_us),
            type_: compared.kind,
            title: compared.title,
            subtitle: compared.subtitle,
            narrative: compared.narrative,
            facts: compared.facts,
            files: compared.files,
        }
    }
}
