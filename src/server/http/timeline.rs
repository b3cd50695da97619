//! What happened around a memory, a moment, or the best match of a query.

use std::sync::Arc;

use axum::{Json, extract::State};
use claude_mem_projections::{
    Store,
    timeline::{Anchor, TimelineQuery},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{Answer, Asked, Problem, Refusal},
    feed::given,
    search::{Found, Text, table},
    state::Site,
    time_params::{End, moment},
};
use claude_mem_core::app::App;

/// Memories on either side, unless told.
const DEPTH: usize = 10;
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
    moments: Vec<Found>,
    /// As a table, if `format` is `text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Vec<Text>>,
}

pub(super) fn routes() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new().routes(routes!(timeline))
}

/// What happened around a memory or a moment.
#[utoipa::path(get, path = "/api/timeline", tag = "reading", params(Wanted), security(("token" = [])),
    responses((status = 200, body = Around), (status = "4XX", body = Problem)))]
async fn timeline(State(site): State<Arc<Site>>, Asked(wanted): Asked<Wanted>) -> Answer<Around> {
    site.read(move |store, app| look(store, app, wanted)).await.map(Json)
}

fn look(store: &Store, app: &App, wanted: Wanted) -> Result<Around, Refusal> {
    let anchor = match (given(wanted.anchor), given(wanted.query)) {
        (Some(anchor), None) => middle(app, &anchor)?,
        (None, Some(query)) => Anchor::Query(query),
        _ => return Err(Refusal::bad("give either `anchor` or `query`")),
    };
    let depth = |depth: Option<usize>| depth.unwrap_or(DEPTH).min(DEPTH_MAX);
    let timeline = TimelineQuery {
        anchor,
        before: depth(wanted.depth_before),
        after: depth(wanted.depth_after),
        project: given(wanted.project),
        is_everywhere: false,
    };
    let found = store.timeline(&timeline)?;
    if let Some(hint) = found.hint {
        return Err(Refusal::not_found(hint));
    }
    let is_text = wanted.format.as_deref() == Some("text");
    let content = is_text.then(|| vec![table(&found.moments, None)]);
    let anchor = found.anchor.map(|name| name.to_string());
    let moments = found.moments.into_iter().map(Found::from).collect();
    Ok(Around { anchor, moments, content })
}

fn middle(app: &App, anchor: &str) -> Result<Anchor, Refusal> {
    if let Ok(name) = anchor.parse() {
        return Ok(Anchor::Memory(name));
    }
    let at_us = moment(app, "anchor", Some(anchor), End::Start)?;
    Ok(Anchor::Time(at_us.unwrap_or(0)))
}
