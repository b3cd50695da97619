//! Single memories: read, save, and look up by number or file.

use std::sync::Arc;

use axum::{Json, extract::State, http::HeaderMap};
use claude_mem_projections::{
    Store,
    search::{Kind, MemoryId, Search},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    dto::{Item, Observation, Prompt, Summary},
    error::{ApiError, ApiResult, JsonBody, PathParam, Problem, QueryParams},
    feed::{LIMIT_MAX, list},
    state::AppState,
};
use claude_mem_memory::remember::{Note, note_scope, remember_in};

/// Default of `limit`.
const BY_FILE: usize = 15;

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new()
        .routes(routes!(observation))
        .routes(routes!(summary))
        .routes(routes!(prompt))
        .routes(routes!(batch))
        .routes(routes!(by_file))
        .routes(routes!(save))
}

/// Returns an observation, also a superseded one.
#[utoipa::path(get, path = "/api/observation/{id}", tag = "reading", security(("token" = [])),
    params(("id" = i64, Path)),
    responses((status = 200, body = Observation), (status = "4XX", body = Problem)))]
async fn observation(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<i64>,
) -> ApiResult<Observation> {
    one(&state, MemoryId { kind: Kind::Observation, id }, Item::observation).await
}

/// Returns a summary.
#[utoipa::path(get, path = "/api/summary/{id}", tag = "reading", security(("token" = [])),
    params(("id" = i64, Path)),
    responses((status = 200, body = Summary), (status = "4XX", body = Problem)))]
async fn summary(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<i64>,
) -> ApiResult<Summary> {
    one(&state, MemoryId { kind: Kind::Summary, id }, Item::summary).await
}

/// Returns a prompt.
#[utoipa::path(get, path = "/api/prompt/{id}", tag = "reading", security(("token" = [])),
    params(("id" = i64, Path)),
    responses((status = 200, body = Prompt), (status = "4XX", body = Problem)))]
async fn prompt(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<i64>,
) -> ApiResult<Prompt> {
    one(&state, MemoryId { kind: Kind::Prompt, id }, Item::prompt).await
}

async fn one<T: Send + 'static>(
    state: &Arc<AppState>,
    name: MemoryId,
    pick: fn(Item) -> Option<T>,
) -> ApiResult<T> {
    let found = move |store: &Store| match store.list_rows(&[name])?.pop() {
        Some(row) => Ok(pick(Item::from(row))),
        None => match store.forgotten_memory(name)? {
            Some(forgetting) => Err(ApiError::forgotten(name, forgetting)),
            None => Ok(None),
        },
    };
    let found = state.read(move |store, _| found(store)).await?;
    found.map(Json).ok_or_else(|| ApiError::not_found(format!("there is no memory {name}")))
}

/// Observations to return.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Batch {
    /// Numbers: an array, JSON in a string, or a comma-separated string.
    #[schema(value_type = Vec<i64>)]
    ids: Value,
    /// `date_desc` or `date_asc` [default: the order of `ids`].
    order_by: Option<String>,
    /// Maximum number of results.
    limit: Option<usize>,
    /// Only this project.
    project: Option<String>,
}

/// Returns observations by number.
#[utoipa::path(post, path = "/api/observations/batch", tag = "reading", security(("token" = [])),
    request_body = Batch,
    responses((status = 200, body = Vec<Observation>), (status = "4XX", body = Problem)))]
async fn batch(
    State(state): State<Arc<AppState>>,
    JsonBody(batch): JsonBody<Batch>,
) -> ApiResult<Vec<Observation>> {
    let mut ids = numbers(&batch.ids)
        .ok_or_else(|| ApiError::bad("`ids` must be a list of whole numbers"))?;
    if ids.len() > 10 * LIMIT_MAX {
        return Err(ApiError::bad(format!("at most {} observations per request", 10 * LIMIT_MAX)));
    }
    let order = batch.order_by.unwrap_or_default();
    if !matches!(order.as_str(), "" | "relevance" | "date_desc" | "date_asc") {
        return Err(ApiError::bad("`orderBy` must be `date_desc` or `date_asc`"));
    }
    let mut found = move |store: &Store| {
        if let Some(project) = &batch.project {
            let projects = store.projects_named(project)?;
            let belongs = |id: &i64| {
                store.is_memory_of(MemoryId { kind: Kind::Observation, id: *id }, &projects)
            };
            let kept: Result<Vec<bool>, _> = ids.iter().map(belongs).collect();
            let mut kept = kept?.into_iter();
            ids.retain(|_| kept.next().unwrap_or(false));
        }
        let names: Vec<MemoryId> =
            ids.iter().map(|id| MemoryId { kind: Kind::Observation, id: *id }).collect();
        let mut listed = store.list_rows(&names)?;
        match order.as_str() {
            "date_desc" => listed.sort_by_key(|row| std::cmp::Reverse((row.at_us, row.name))),
            "date_asc" => listed.sort_by_key(|row| (row.at_us, row.name)),
            _ => {}
        }
        listed.truncate(batch.limit.unwrap_or(usize::MAX));
        Ok(listed.into_iter().map(Item::from).filter_map(Item::observation).collect())
    };
    state.read(move |store, _| found(store)).await.map(Json)
}

/// Parses an array, JSON in a string, or a comma-separated string.
fn numbers(ids: &Value) -> Option<Vec<i64>> {
    match ids {
        Value::Array(ids) => ids.iter().map(number).collect(),
        Value::Number(_) => Some(vec![ids.as_i64()?]),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(ids @ (Value::Array(_) | Value::Number(_))) => numbers(&ids),
            _ => list(Some(text)).iter().map(|id| id.parse().ok()).collect(),
        },
        _ => None,
    }
}

/// An ID: `12` or `"12"`.
fn number(id: &Value) -> Option<i64> {
    id.as_i64().or_else(|| id.as_str()?.parse().ok())
}

/// Observations about files.
#[derive(Debug, Serialize, ToSchema)]
struct AboutFiles {
    observations: Vec<Observation>,
    count: usize,
}

/// Lists observations about files, newest first.
#[utoipa::path(get, path = "/api/observations/by-file", tag = "reading", security(("token" = [])),
    params(("path" = String, Query, description = "a path or the end of one; can be repeated"),
        ("projects" = Option<String>, Query, description = "project names, separated by commas"),
        ("limit" = Option<usize>, Query)),
    responses((status = 200, body = AboutFiles), (status = "4XX", body = Problem)))]
async fn by_file(
    State(state): State<Arc<AppState>>,
    QueryParams(asked): QueryParams<Vec<(String, String)>>,
) -> ApiResult<AboutFiles> {
    let all = |name: &'static str| {
        let named =
            asked.iter().filter(move |(key, value)| key == name && !value.trim().is_empty());
        named.map(|(_, value)| value.clone())
    };
    let paths: Vec<String> = all("path").take(10).collect();
    if paths.is_empty() {
        return Err(ApiError::bad("`path` is required"));
    }
    let limit = match all("limit").next() {
        None => BY_FILE,
        Some(limit) => limit.parse().map_err(|_| ApiError::bad("`limit` must be a number"))?,
    };
    let mut projects: Vec<Option<String>> =
        all("projects").flat_map(|names| list(Some(&names))).map(Some).collect();
    if projects.is_empty() {
        projects.push(None);
    }
    let found = move |store: &Store| {
        let mut marks = Vec::new();
        for project in &projects {
            for path in &paths {
                let search = Search {
                    kinds: vec![Kind::Observation],
                    project: project.clone(),
                    files: vec![path.clone()],
                    limit: limit.min(LIMIT_MAX),
                    ..Search::default()
                };
                marks.extend(store.page(&search, None)?);
            }
        }
        marks.sort_unstable_by(|one, other| other.cmp(one));
        marks.dedup();
        let names: Vec<MemoryId> = marks
            .iter()
            .map(claude_mem_projections::PageCursor::name)
            .take(limit.min(LIMIT_MAX))
            .collect();
        let listed = store.list_rows(&names)?.into_iter();
        let observations: Vec<_> = listed.map(Item::from).filter_map(Item::observation).collect();
        Ok(AboutFiles { count: observations.len(), observations })
    };
    state.read(move |store, _| found(store)).await.map(Json)
}

/// A memory to save.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SaveMemoryRequest {
    /// Text.
    text: String,
    /// Title.
    title: Option<String>,
    /// Project name or key [default: the latest project].
    project: Option<String>,
    /// An observation type, or `note`.
    #[serde(rename = "type")]
    type_: Option<String>,
    /// Concepts to find it by.
    #[serde(default)]
    concepts: Vec<String>,
    /// Related files.
    #[serde(default)]
    files: Vec<String>,
    /// Give it to sessions of all projects.
    #[serde(default)]
    global: bool,
    /// Give it to sessions of all projects in this folder.
    tree: Option<String>,
}

/// Result.
#[derive(Debug, Serialize, ToSchema)]
struct Saved {
    success: bool,
    /// Number of the memory; null if it is not indexed yet.
    id: Option<String>,
    title: String,
    project: String,
    message: String,
    /// Whether private text or secrets were removed.
    is_redacted: bool,
}

/// Saves a memory.
#[utoipa::path(post, path = "/api/memory/save", tag = "writing", security(("token" = [])),
    request_body = SaveMemoryRequest,
    responses((status = 200, body = Saved), (status = "4XX", body = Problem)))]
async fn save(
    State(state): State<Arc<AppState>>,
    headers: HeaderMap,
    JsonBody(written): JsonBody<SaveMemoryRequest>,
) -> ApiResult<Saved> {
    // Only browsers set this header: with it the user writes in the viewer, without it a program
    // does.
    let via = if headers.contains_key("sec-fetch-site") { "viewer" } else { "http" };
    let name = match written.project.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
        Some(name) => name.to_owned(),
        None => state
            .read(|store, _| Ok(store.latest_project()?))
            .await?
            .ok_or_else(|| ApiError::bad("`project` is required: there is no project yet"))?,
    };
    let project = state.project("", &name, "").await?;
    let saved = state
        .write(move |store, app| {
            let scope = note_scope(written.global, written.tree.as_deref())
                .map_err(|failure| ApiError::unfit(&failure))?;
            let note = Note {
                scope,
                title: written.title.unwrap_or_default(),
                text: written.text,
                type_: written.type_.unwrap_or_default(),
                concepts: written.concepts,
                files: written.files,
                project: Some(name),
                via,
            };
            let saved = remember_in(app, store, &note, &project, String::new())
                .map_err(|failure| ApiError::unfit(&failure))?;
            Ok((note, saved))
        })
        .await?;
    let (note, saved) = saved;
    let id = saved.name.map(|name| name.to_string());
    let message =
        id.as_ref().map_or_else(|| "Remembered".into(), |id| format!("Remembered as {id}"));
    let (project, is_redacted) = (saved.place, saved.is_redacted);
    let title = if is_redacted { String::new() } else { note.title };
    Ok(Json(Saved { success: true, id, title, project, message, is_redacted }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ids_are_accepted_in_every_format() {
        for ids in [json!([1, 2]), json!(["1", "2"]), json!("[1,2]"), json!("1, 2")] {
            assert_eq!(numbers(&ids), Some(vec![1, 2]), "{ids}");
        }
        assert_eq!((numbers(&json!([])), numbers(&json!(""))), (Some(vec![]), Some(vec![])));
        for ids in [json!(["a"]), json!("1,b"), json!([1.5]), json!({}), json!(null)] {
            assert_eq!(numbers(&ids), None, "{ids}");
        }
    }
}
