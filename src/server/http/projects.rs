//! Projects, and the vocabulary of observations.

use std::{collections::BTreeMap, sync::Arc};

use axum::{Json, extract::State, response::Response};
use claude_mem_projections::Store;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{ApiError, ApiResult, JsonBody},
    state::AppState,
    time_params::{epoch, rfc3339},
};
use claude_mem_core::app::App;
use claude_mem_memory::{modes::mode, projects as service, resolve};

/// Projects.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Projects {
    /// Project names.
    pub(super) projects: Vec<String>,
    /// Clients.
    pub(super) sources: Vec<String>,
    /// Project names by client.
    pub(super) projects_by_source: BTreeMap<String, Vec<String>>,
}

/// A project with its totals.
#[derive(Debug, Serialize, ToSchema)]
struct Detail {
    /// Name.
    project: String,
    /// Key.
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

/// Project names and details.
#[derive(Debug, Serialize, ToSchema)]
struct ProjectList {
    #[serde(flatten)]
    projects: Projects,
    details: Vec<Detail>,
}

/// Values to filter by.
#[derive(Debug, Serialize, ToSchema)]
struct Vocabulary {
    types: Vec<VocabularyTerm>,
    concepts: Vec<VocabularyTerm>,
    /// Machines whose logs are here, this one first; empty if it is the only one.
    hosts: Vec<HostName>,
    /// Clients whose sessions are recorded; empty if there is only one.
    clients: Vec<String>,
}

/// A machine.
#[derive(Debug, Serialize, ToSchema)]
struct HostName {
    /// 0 is this machine.
    number: u8,
    name: String,
}

/// A type or a concept.
#[derive(Debug, Serialize, ToSchema)]
struct VocabularyTerm {
    id: String,
    /// Meaning.
    means: String,
    /// Icon.
    icon: String,
}

/// A new name of a project.
#[derive(Debug, Deserialize, ToSchema)]
struct RenameRequest {
    /// Name or key.
    project: String,
    name: String,
}

/// A project whose memories, now and later, belong to another one.
#[derive(Debug, Deserialize, ToSchema)]
struct MergeRequest {
    /// Name or key.
    from: String,
    /// Name or key.
    into: String,
}

/// A merge to undo.
#[derive(Debug, Deserialize, ToSchema)]
struct SplitRequest {
    /// Name or key of the project that was merged.
    project: String,
}

/// A changed project.
#[derive(Debug, Serialize, ToSchema)]
struct ProjectChanged {
    success: bool,
    key: String,
    /// Key of the project that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    into: Option<String>,
}

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new()
        .routes(routes!(projects))
        .routes(routes!(rename))
        .routes(routes!(merge))
        .routes(routes!(split))
        .routes(routes!(types))
}

/// Gives a project another name.
#[utoipa::path(post, path = "/api/projects/rename", tag = "writing", request_body = RenameRequest,
    responses((status = 200, body = ProjectChanged)))]
async fn rename(
    State(state): State<Arc<AppState>>,
    JsonBody(request): JsonBody<RenameRequest>,
) -> ApiResult<ProjectChanged> {
    let renamed = state.write(move |store, app| {
        let key = recorded(store, &request.project)?;
        Ok(service::rename(app, store, &key, &request.name)?)
    });
    Ok(Json(ProjectChanged { success: true, key: renamed.await?, into: None }))
}

/// Moves everything of a project, now and later, to another one.
#[utoipa::path(post, path = "/api/projects/merge", tag = "writing", request_body = MergeRequest,
    responses((status = 200, body = ProjectChanged)))]
async fn merge(
    State(state): State<Arc<AppState>>,
    JsonBody(request): JsonBody<MergeRequest>,
) -> ApiResult<ProjectChanged> {
    let merged = state.write(move |store, app| {
        let (from, into) = (recorded(store, &request.from)?, recorded(store, &request.into)?);
        Ok(service::merge(app, store, &from, &into)?)
    });
    let (key, into) = merged.await?;
    Ok(Json(ProjectChanged { success: true, key, into: Some(into) }))
}

/// Undoes a merge.
#[utoipa::path(post, path = "/api/projects/split", tag = "writing", request_body = SplitRequest,
    responses((status = 200, body = ProjectChanged)))]
async fn split(
    State(state): State<Arc<AppState>>,
    JsonBody(request): JsonBody<SplitRequest>,
) -> ApiResult<ProjectChanged> {
    let key = state.write(move |store, app| Ok(service::split(app, store, &request.project)?));
    Ok(Json(ProjectChanged { success: true, key: key.await?, into: None }))
}

/// The key of a recorded project. A request opens no folder.
fn recorded(store: &Store, name: &str) -> Result<String, ApiError> {
    resolve::only_recorded_project(store, name)?
        .ok_or_else(|| ApiError::not_found(format!("there is no recorded project `{name}`")))
}

/// Lists projects, latest first.
#[utoipa::path(get, path = "/api/projects", tag = "reading",
    responses((status = 200, body = ProjectList)))]
async fn projects(State(state): State<Arc<AppState>>) -> Result<Response, ApiError> {
    let found = |store: &Store| {
        let details = store
            .project_stats(0)?
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
        Ok(ProjectList { details: details.collect(), projects: named(store)? })
    };
    state.read_cached("projects".into(), move |store, _| found(store)).await
}

pub(super) fn named(store: &Store) -> Result<Projects, ApiError> {
    let mut known = Projects::default();
    for (name, clients) in store.project_names()? {
        for client in clients {
            known.projects_by_source.entry(client).or_default().push(name.clone());
        }
        known.projects.push(name);
    }
    known.sources = known.projects_by_source.keys().cloned().collect();
    Ok(known)
}

/// Lists types and concepts of observations in the current mode, machines and clients.
#[utoipa::path(get, path = "/api/types", tag = "reading",
    responses((status = 200, body = Vocabulary)))]
async fn types(State(state): State<Arc<AppState>>) -> ApiResult<Vocabulary> {
    let found = move |store: &Store, app: &App| {
        let mode = mode(app)?;
        let types = mode.types.into_iter().map(|word| (word.id, word.means, word.icon));
        let concepts = mode.concepts.into_iter().map(|word| (word.id, word.means, word.icon));
        let word = |(id, means, icon)| VocabularyTerm { id, means, icon };
        let others = store.hosts()?.into_iter().filter(|host| !host.is_hidden);
        let clients = named(store)?.sources;
        let mut hosts: Vec<HostName> =
            others.map(|host| HostName { number: host.number, name: host.name }).collect();
        if !hosts.is_empty() {
            hosts.insert(0, HostName { number: 0, name: "this machine".into() });
        }
        Ok(Vocabulary {
            types: types.map(word).collect(),
            concepts: concepts.map(word).collect(),
            hosts,
            clients: if clients.len() > 1 { clients } else { Vec::new() },
        })
    };
    state.read(found).await.map(Json)
}
