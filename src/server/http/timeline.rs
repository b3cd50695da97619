//! Memories around a memory, a time, or the best match of a query.

use std::sync::Arc;

use axum::{Json, extract::State};
use claude_mem_projections::Store;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{ApiError, ApiResult, QueryParams},
    feed::{given, list},
    search::{ResultFormat, Text},
    state::AppState,
};
use crate::hit_table::timeline_table;
use claude_mem_core::app::App;
use claude_mem_memory::{
    memory_json::HitJson,
    timeline::{DEPTH, TimelineAnchor, TimelineRequest, TimelineScope, timeline},
};

const DEPTH_MAX: usize = 100;

/// Anchor and size of the timeline.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct TimelineParams {
    /// A memory (`12`, `S3`, `P9`) or a time.
    anchor: Option<String>,
    /// Words; the best match is the anchor.
    query: Option<String>,
    /// Number of memories before it.
    depth_before: Option<usize>,
    /// Number of memories after it.
    depth_after: Option<usize>,
    /// Project name or key [default: the anchor's].
    project: Option<String>,
    /// Types of observations, or `observations`, `sessions`, `prompts`, separated by commas.
    #[serde(rename = "type")]
    #[param(rename = "type")]
    type_: Option<String>,
    /// `text` adds a table for a model.
    #[param(inline)]
    format: Option<ResultFormat>,
}

/// Memories in chronological order.
#[derive(Debug, Serialize, ToSchema)]
struct TimelineResponse {
    /// The anchor, if it is a memory.
    anchor: Option<String>,
    moments: Vec<HitJson>,
    /// As a table, if `format` is `text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Vec<Text>>,
}

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(show_timeline))
}

/// Returns memories around a memory or a time.
#[utoipa::path(get, path = "/api/timeline", tag = "reading", params(TimelineParams),
    responses((status = 200, body = TimelineResponse)))]
async fn show_timeline(
    State(state): State<Arc<AppState>>,
    QueryParams(params): QueryParams<TimelineParams>,
) -> ApiResult<TimelineResponse> {
    state.read(move |store, app| look(store, app, params)).await.map(Json)
}

fn look(store: &Store, app: &App, params: TimelineParams) -> Result<TimelineResponse, ApiError> {
    let anchor = match (given(params.anchor), given(params.query)) {
        (Some(anchor), None) => TimelineAnchor::IdOrTime(anchor),
        (None, Some(query)) => TimelineAnchor::Query(query),
        _ => return Err(ApiError::bad("pass either `anchor` or `query`")),
    };
    let depth = |depth: Option<usize>| depth.unwrap_or(DEPTH).min(DEPTH_MAX);
    let request = TimelineRequest {
        anchor,
        before: depth(params.depth_before),
        after: depth(params.depth_after),
        scope: given(params.project).map_or(TimelineScope::OfAnchor, TimelineScope::Named),
        types: list(params.type_.as_deref()),
    };
    let found = timeline(app, store, &request)?;
    if let Some(hint) = found.hint {
        return Err(ApiError::not_found(hint));
    }
    let is_text = params.format == Some(ResultFormat::Text);
    let content = is_text.then(|| vec![Text::new(timeline_table(&found))]);
    let anchor = found.anchor.map(|name| name.to_string());
    let moments = found.moments.into_iter().map(HitJson::from).collect();
    Ok(TimelineResponse { anchor, moments, content })
}
