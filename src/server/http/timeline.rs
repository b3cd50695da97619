//! What happened around a memory, a moment, or the best match of a query.

use std::sync::Arc;

use axum::{Json, extract::State};
use claude_mem_projections::Store;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{Answer, Asked, Problem, Refusal},
    feed::given,
    search::{Text, table},
    state::Site,
};
use claude_mem_core::app::App;
use claude_mem_memory::{
    memory_json::HitJson,
    timeline::{DEPTH, TimelineAnchor, TimelineRequest, TimelineScope, timeline},
};

const DEPTH_MAX: usize = 100;

/// Where to look.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Wanted {
    /// A memory (`12`, `S3`, `P9`) or a moment.
    anchor: Option<String>,
    /// Words; the best match is the middle.
    query: Option<String>,
    /// Memories before it.
    depth_before: Option<usize>,
    /// Memories behind it.
    depth_after: Option<usize>,
    /// The name or key of a project; the anchor's own, if not given.
    project: Option<String>,
    /// `json`, or `text` for a table.
    format: Option<String>,
}

/// What happened there, in order.
#[derive(Debug, Serialize, ToSchema)]
struct Around {
    /// The memory in the middle, if it is one.
    anchor: Option<String>,
    moments: Vec<HitJson>,
    /// As a table, if `format` is `text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Vec<Text>>,
}

pub(super) fn routes() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new().routes(routes!(show_timeline))
}

/// What happened around a memory or a moment.
#[utoipa::path(get, path = "/api/timeline", tag = "reading", params(Wanted), security(("token" = [])),
    responses((status = 200, body = Around), (status = "4XX", body = Problem)))]
async fn show_timeline(
    State(site): State<Arc<Site>>,
    Asked(wanted): Asked<Wanted>,
) -> Answer<Around> {
    site.read(move |store, app| look(store, app, wanted)).await.map(Json)
}

fn look(store: &Store, app: &App, wanted: Wanted) -> Result<Around, Refusal> {
    let anchor = match (given(wanted.anchor), given(wanted.query)) {
        (Some(anchor), None) => TimelineAnchor::IdOrTime(anchor),
        (None, Some(query)) => TimelineAnchor::Query(query),
        _ => return Err(Refusal::bad("give either `anchor` or `query`")),
    };
    let depth = |depth: Option<usize>| depth.unwrap_or(DEPTH).min(DEPTH_MAX);
    let request = TimelineRequest {
        anchor,
        before: depth(wanted.depth_before),
        after: depth(wanted.depth_after),
        scope: given(wanted.project).map_or(TimelineScope::OfAnchor, TimelineScope::Named),
    };
    let found = timeline(app, store, &request)?;
    if let Some(hint) = found.hint {
        return Err(Refusal::not_found(hint));
    }
    let is_text = wanted.format.as_deref() == Some("text");
    let content = is_text.then(|| vec![table(&found.moments, None)]);
    let anchor = found.anchor.map(|name| name.to_string());
    let moments = found.moments.into_iter().map(HitJson::from).collect();
    Ok(Around { anchor, moments, content })
}
