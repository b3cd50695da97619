//! What was worked on, and what observations can be about.

use std::{collections::BTreeMap, sync::Arc};

use axum::{Json, extract::State};
use claude_mem_projections::Store;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{Answer, Problem, Refusal},
    state::Site,
    time_params::{epoch, rfc3339},
};
use claude_mem_memory::modes::mode;

/// What was worked on.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Projects {
    /// Their names.
    pub(super) projects: Vec<String>,
    /// The programs that are watched.
    pub(super) sources: Vec<String>,
    /// Names of projects by program.
    pub(super) projects_by_source: BTreeMap<String, Vec<String>>,
}

/// A project, and how much there is of it.
#[derive(Debug, Serialize, ToSchema)]
struct Detail {
    /// What people call it.
    project: String,
    /// What it is known by.
    key: String,
    root: Option<String>,
    sessions: u64,
    events: u64,
    observations: u64,
    summaries: u64,
    tokens: u64,
    cost_usd: f64,
    last_at: Option<String>,
    /// Milliseconds since 1970.
    last_at_epoch: Option<u64>,
}

/// Names, and details.
#[derive(Debug, Serialize, ToSchema)]
struct Known {
    #[serde(flatten)]
    projects: Projects,
    details: Vec<Detail>,
}

/// Types and concepts of observations.
#[derive(Debug, Serialize, ToSchema)]
struct Words {
    types: Vec<Word>,
    concepts: Vec<Word>,
}

/// A type or a concept.
#[derive(Debug, Serialize, ToSchema)]
struct Word {
    id: String,
    /// What it means.
    means: String,
    /// How it is shown.
    icon: String,
}

pub(super) fn routes() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new().routes(routes!(projects)).routes(routes!(types))
}

/// What was worked on, the latest first.
#[utoipa::path(get, path = "/api/projects", tag = "reading", security(("token" = [])),
    responses((status = 200, body = Known), (status = "4XX", body = Problem)))]
async fn projects(State(site): State<Arc<Site>>) -> Answer<Known> {
    let found = |store: &Store| {
        let details = store
            .project_stats()?
            .into_iter()
            .filter(|share| share.sessions > 0 || share.observations > 0);
        let details = details.map(|share| Detail {
            project: share.label,
            key: share.key,
            root: share.root,
            sessions: share.sessions,
            events: share.events,
            observations: share.observations,
            summaries: share.summaries,
            tokens: share.tokens,
            cost_usd: share.cost_micros as f64 / 1e6,
            last_at: share.at_us.map(rfc3339),
            last_at_epoch: share.at_us.map(epoch),
        });
        Ok(Known { details: details.collect(), projects: named(store)? })
    };
    site.read(move |store, _| found(store)).await.map(Json)
}

/// The names of all projects.
pub(super) fn named(store: &Store) -> Result<Projects, Refusal> {
    let mut known = Projects::default();
    for (name, platforms) in store.project_names()? {
        for platform in platforms {
            known.projects_by_source.entry(platform).or_default().push(name.clone());
        }
        known.projects.push(name);
    }
    known.sources = known.projects_by_source.keys().cloned().collect();
    Ok(known)
}

/// What observations can be about, in the mode that is set.
#[utoipa::path(get, path = "/api/types", tag = "reading", security(("token" = [])),
    responses((status = 200, body = Words), (status = "4XX", body = Problem)))]
async fn types(State(site): State<Arc<Site>>) -> Answer<Words> {
    let shared = Arc::clone(&site.shared);
    let found = move || {
        let mode = mode(&shared.app())?;
        let types = mode.types.into_iter().map(|word| (word.id, word.means, word.icon));
        let concepts = mode.concepts.into_iter().map(|word| (word.id, word.means, word.icon));
        let word = |(id, means, icon)| Word { id, means, icon };
        Ok(Words { types: types.map(word).collect(), concepts: concepts.map(word).collect() })
    };
    site.block(found).await.map(Json)
}
