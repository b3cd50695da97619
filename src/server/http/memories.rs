//! Single memories: read, save, and look up by number.

use std::sync::Arc;

use axum::{Json, extract::State, http::HeaderMap};
use claude_mem_projections::{
    Store,
    search::{Kind, MemoryId},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{ApiError, ApiResult, JsonBody, PathParam},
    feed::{LIMIT_MAX, list},
    items::{Item, Observation, Prompt, Summary},
    state::AppState,
};
use claude_mem_memory::remember::{Note, note_scope, remember_in};

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new()
        .routes(routes!(observation))
        .routes(routes!(summary))
        .routes(routes!(prompt))
        .routes(routes!(batch))
        .routes(routes!(save))
}

/// Returns an observation, also a superseded one.
#[utoipa::path(get, path = "/api/observation/{id}", tag = "reading", params(("id" = i64, Path)),
    responses((status = 200, body = Observation)))]
async fn observation(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<i64>,
) -> ApiResult<Observation> {
    one(&state, MemoryId { kind: Kind::Observation, id }, Item::observation).await
}

/// Returns a summary.
#[utoipa::path(get, path = "/api/summary/{id}", tag = "reading", params(("id" = i64, Path)),
    responses((status = 200, body = Summary)))]
async fn summary(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<i64>,
) -> ApiResult<Summary> {
    one(&state, MemoryId { kind: Kind::Summary, id }, Item::summary).await
}

/// Returns a prompt.
#[utoipa::path(get, path = "/api/prompt/{id}", tag = "reading", params(("id" = i64, Path)),
    responses((status = 200, body = Prompt)))]
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
#[utoipa::path(post, path = "/api/observations/batch", tag = "reading", request_body = Batch,
    responses((status = 200, body = Vec<Observation>)))]
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
#[utoipa::path(post, path = "/api/memory/save", tag = "writing", request_body = SaveMemoryRequest,
    responses((status = 200, body = Saved)))]
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
