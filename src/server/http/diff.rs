//! What a reprocessing changed, or would.

use std::sync::Arc;

use axum::{Json, extract::State};
use claude_mem_projections::{ComparedObservation, Store};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{Answer, Asked, Named, Problem},
    generations::is_there,
    state::Site,
    time_params::rfc3339,
};
use claude_mem_distill::{Change, changes};

pub(super) fn routes() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new().routes(routes!(diff))
}

/// Which other generation.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Against {
    /// The earlier of two; what it took the place of, if not given.
    before: Option<u32>,
}

/// What a generation changed.
#[derive(Debug, Serialize, ToSchema)]
struct Diff {
    generation: u32,
    before: Option<u32>,
    /// How many are told in the same words.
    same: usize,
    changed: Vec<Reworded>,
    added: Vec<Short>,
    removed: Vec<Short>,
}

/// Told in other words.
#[derive(Debug, Serialize, ToSchema)]
struct Reworded {
    before: Short,
    after: Short,
}

/// An observation, as far as it is compared.
#[derive(Debug, Serialize, ToSchema)]
struct Short {
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

/// What a generation changed, or would.
#[utoipa::path(get, path = "/api/replays/{generation}/diff", tag = "replays", params(Against,
        ("generation" = u32, Path)), security(("token" = [])),
    responses((status = 200, body = Diff), (status = "4XX", body = Problem)))]
async fn diff(
    State(site): State<Arc<Site>>,
    Named(generation): Named<u32>,
    Asked(Against { before }): Asked<Against>,
) -> Answer<Diff> {
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
    site.read(move |store, _| found(store)).await.map(Json)
}

impl From<ComparedObservation> for Short {
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
