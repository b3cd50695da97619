//! Forgetting memories, and taking that back.

use std::sync::Arc;

use axum::{Json, extract::State};
use claude_mem_projections::search::{Kind, MemoryId};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{Answer, Named, Problem, Refusal},
    state::Site,
    time_params::rfc3339,
};
use claude_mem_memory::forget;

/// Forgettings that are listed.
const LISTED_MAX: usize = 200;

/// What was forgotten.
#[derive(Debug, Serialize, ToSchema)]
struct Forgot {
    success: bool,
    id: String,
    /// `observation`, `summary` or `prompt`.
    kind: &'static str,
    /// By which it can be taken back, until the log is compacted.
    forgetting: String,
    /// What went with it, because it was made of it.
    also: Vec<String>,
}

/// Everything that was forgotten.
#[derive(Debug, Serialize, ToSchema)]
struct Forgettings {
    /// The latest first.
    items: Vec<Forgetting>,
}

/// One forgetting.
#[derive(Debug, Serialize, ToSchema)]
struct Forgetting {
    id: String,
    created_at: String,
    /// How many memories it took away.
    memories: u64,
    /// Whether it was taken back.
    is_void: bool,
}

/// What is there again.
#[derive(Debug, Serialize, ToSchema)]
struct Undone {
    success: bool,
    /// How many memories.
    memories: u64,
}

pub(super) fn routes() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new()
        .routes(routes!(forget_observation))
        .routes(routes!(forget_summary))
        .routes(routes!(forget_prompt))
        .routes(routes!(list))
        .routes(routes!(undo))
}

/// Forgets an observation.
#[utoipa::path(delete, path = "/api/observation/{id}", tag = "writing", security(("token" = [])),
    params(("id" = i64, Path)),
    responses((status = 200, body = Forgot), (status = "4XX", body = Problem)))]
async fn forget_observation(
    State(site): State<Arc<Site>>,
    Named(id): Named<i64>,
) -> Answer<Forgot> {
    forget(&site, MemoryId { kind: Kind::Observation, id }).await
}

/// Forgets a summary.
#[utoipa::path(delete, path = "/api/summary/{id}", tag = "writing", security(("token" = [])),
    params(("id" = i64, Path)),
    responses((status = 200, body = Forgot), (status = "4XX", body = Problem)))]
async fn forget_summary(State(site): State<Arc<Site>>, Named(id): Named<i64>) -> Answer<Forgot> {
    forget(&site, MemoryId { kind: Kind::Summary, id }).await
}

/// Forgets a prompt, and what was made of it.
#[utoipa::path(delete, path = "/api/prompt/{id}", tag = "writing", security(("token" = [])),
    params(("id" = i64, Path)),
    responses((status = 200, body = Forgot), (status = "4XX", body = Problem)))]
async fn forget_prompt(State(site): State<Arc<Site>>, Named(id): Named<i64>) -> Answer<Forgot> {
    forget(&site, MemoryId { kind: Kind::Prompt, id }).await
}

async fn forget(site: &Arc<Site>, name: MemoryId) -> Answer<Forgot> {
    let done = site
        .write(move |store, app| {
            if store.memory_source(name)?.is_none() {
                return Err(Refusal::not_found(format!("there is no memory {name}")));
            }
            let taken = forget::find(store, &[name])?;
            let also = taken.also.iter().map(|memory| memory.name.to_string()).collect();
            let forgetting = forget::forget(app, store, &taken, "")?.to_string();
            Ok(Forgot {
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

/// What was forgotten, the latest first.
#[utoipa::path(get, path = "/api/forgettings", tag = "reading", security(("token" = [])),
    responses((status = 200, body = Forgettings), (status = "4XX", body = Problem)))]
async fn list(State(site): State<Arc<Site>>) -> Answer<Forgettings> {
    site.read(|store, _| {
        let mut found = store.forgettings("")?;
        found.retain(|forgetting| !forgetting.is_undoing);
        found.truncate(LISTED_MAX);
        let item = |found: claude_mem_projections::Forgetting| Forgetting {
            id: found.event.to_string(),
            created_at: rfc3339(found.at_us),
            memories: found.memories,
            is_void: found.is_void,
        };
        Ok(Forgettings { items: found.into_iter().map(item).collect() })
    })
    .await
    .map(Json)
}

/// Takes a forgetting back. That works as long as the log still holds what was forgotten.
#[utoipa::path(post, path = "/api/forgettings/{id}/undo", tag = "writing", security(("token" = [])),
    params(("id" = String, Path, description = "`forgetting` of the answer to the deletion")),
    responses((status = 200, body = Undone), (status = "4XX", body = Problem)))]
async fn undo(State(site): State<Arc<Site>>, Named(id): Named<String>) -> Answer<Undone> {
    // The command line takes the beginning of an id; a program has all of it.
    if claude_mem_events::Id::parse(&id).is_none() {
        return Err(Refusal::bad("this is no id of a forgetting"));
    }
    let memories = site
        .write(move |store, app| {
            if store.forgettings(&id)?.is_empty() {
                return Err(Refusal::not_found("there is no such forgetting"));
            }
            forget::undo(app, store, &id).map_err(|failure| Refusal::conflicting(&failure))
        })
        .await?;
    Ok(Json(Undone { success: true, memories }))
}
