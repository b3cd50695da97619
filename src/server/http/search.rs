//! Search.

use std::sync::Arc;

use axum::{Json, extract::State};
use claude_mem_projections::{
    Store,
    search::{Hit, Order, Search},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{ApiError, ApiResult, QueryParams},
    feed::{LIMIT_MAX, given, list},
    items::{Item, Observation, Prompt, Summary},
    state::AppState,
    time_params::time,
};
use crate::hit_table::hit_table;
use claude_mem_core::app::App;
use claude_mem_memory::{
    memory_json::HitJson,
    search::{ProjectScope, kinds_and_types, search},
    semantic::Ranking,
};

const LIMIT: usize = 40;
const OFFSET_MAX: usize = 10_000;

/// Query and filters.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct SearchParams {
    /// Words to find. Supports `"a phrase"`, `+required`, `-excluded` and `prefix*`.
    query: Option<String>,
    /// Whether the query is being typed: its last word also matches words that start with it.
    typing: Option<bool>,
    /// `observations`, `sessions` (summaries) or `prompts`; anything else counts as `obs_type`.
    #[serde(rename = "type")]
    #[param(rename = "type")]
    type_: Option<String>,
    /// Observation types, separated by commas.
    obs_type: Option<String>,
    /// Concepts, separated by commas.
    concepts: Option<String>,
    /// Files or folders, separated by commas; the end of a path is enough.
    files: Option<String>,
    /// Alias of `files`.
    #[serde(rename = "filePath")]
    #[param(rename = "filePath")]
    file_path: Option<String>,
    /// Project name or key.
    project: Option<String>,
    /// Session ID of the client, or a prefix of it.
    session: Option<String>,
    /// Number of the machine that recorded it; 0 is this one.
    host: Option<u8>,
    /// Only sessions of this client, such as `codex`.
    client: Option<String>,
    /// Start time: `2026-03-01`, `3d`, or milliseconds since 1970.
    #[serde(rename = "dateStart", alias = "date_start", alias = "date_from")]
    #[param(rename = "dateStart")]
    date_start: Option<String>,
    /// End time; a date includes the whole day.
    #[serde(rename = "dateEnd", alias = "date_end", alias = "date_to")]
    #[param(rename = "dateEnd")]
    date_end: Option<String>,
    limit: Option<usize>,
    offset: Option<usize>,
    /// `relevance`, `date_desc` or `date_asc`.
    #[serde(rename = "orderBy")]
    #[param(rename = "orderBy")]
    order_by: Option<String>,
    /// `text` adds a table for a model.
    #[param(inline)]
    format: Option<ResultFormat>,
    /// Also return the hits in full.
    rows: Option<bool>,
}

/// Whether the response also contains a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ResultFormat {
    Json,
    Text,
}

/// Search results.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Results {
    query: String,
    /// By what the hits are ranked.
    ranking: Ranking,
    /// Number of memories that contain a word of the query. There is one hit per turn, so there can
    /// be fewer hits.
    total_results: usize,
    /// Number of further memories that are near by meaning.
    near_results: usize,
    /// Whether `totalResults` is a lower bound.
    is_capped: bool,
    /// Whether more hits follow.
    has_more: bool,
    /// Hits of all kinds in one order.
    hits: Vec<HitJson>,
    /// The hits in full, by kind.
    observations: Vec<Observation>,
    sessions: Vec<Summary>,
    prompts: Vec<Prompt>,
    /// A hint if there are few results.
    hint: Option<String>,
    /// The query with similar words in place of those that no memory contains.
    suggestion: Option<String>,
    /// As a table, if `format` is `text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Vec<Text>>,
}

/// Text for a model.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Text {
    /// `text`.
    #[serde(rename = "type")]
    type_: &'static str,
    text: String,
}

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(search_all))
}

/// Finds memories by their words.
#[utoipa::path(get, path = "/api/search", tag = "reading", params(SearchParams),
    responses((status = 200, body = Results)))]
async fn search_all(
    State(state): State<Arc<AppState>>,
    QueryParams(params): QueryParams<SearchParams>,
) -> ApiResult<Results> {
    state.read(move |store, app| find(store, app, params)).await.map(Json)
}

fn find(store: &Store, app: &App, params: SearchParams) -> Result<Results, ApiError> {
    let is_text = params.format == Some(ResultFormat::Text);
    let has_rows = params.rows.unwrap_or(true) && !is_text;
    let request = request(app, params)?;
    let response = search(app, store, ProjectScope::Requested, &request)?;
    let found = response.results;
    let mut results = Results {
        query: request.query,
        ranking: response.ranking,
        total_results: found.matched,
        near_results: found.near,
        is_capped: found.is_capped,
        has_more: found.has_more,
        hint: found.hint,
        suggestion: found.suggestion,
        ..Results::default()
    };
    if is_text {
        results.content = Some(vec![table(&found.hits, results.hint.as_deref())]);
    }
    if has_rows {
        let names: Vec<_> = found.hits.iter().map(|hit| hit.name).collect();
        for item in store.list_rows(&names)?.into_iter().map(Item::from) {
            match item {
                Item::Observation(observation) => results.observations.push(observation),
                Item::Summary(summary) => results.sessions.push(summary),
                Item::Prompt(prompt) => results.prompts.push(prompt),
            }
        }
    }
    results.hits = found.hits.into_iter().map(HitJson::from).collect();
    Ok(results)
}

fn request(app: &App, params: SearchParams) -> Result<Search, ApiError> {
    let now = app.clock.now();
    let types = list(params.obs_type.as_deref());
    let (kinds, types) = kinds_and_types(list(params.type_.as_deref()), types);
    let mut files = list(params.files.as_deref());
    files.extend(list(params.file_path.as_deref()));
    let order = match params.order_by.as_deref().unwrap_or_default() {
        "" | "relevance" => Order::Relevance,
        "date_desc" => Order::Newest,
        "date_asc" => Order::Oldest,
        _ => return Err(ApiError::bad("`orderBy` must be `relevance`, `date_desc` or `date_asc`")),
    };
    Ok(Search {
        query: params.query.unwrap_or_default(),
        is_typing: params.typing.unwrap_or_default(),
        project: given(params.project),
        kinds,
        types,
        concepts: list(params.concepts.as_deref()),
        files,
        since_us: time("dateStart", params.date_start.as_deref())?.map(|when| when.start_us(now)),
        until_us: time("dateEnd", params.date_end.as_deref())?.map(|when| when.end_us(now)),
        session: given(params.session),
        host: params.host,
        client: given(params.client),
        limit: params.limit.unwrap_or(LIMIT).min(LIMIT_MAX),
        offset: params.offset.unwrap_or(0).min(OFFSET_MAX),
        order,
        is_explained: false,
    })
}

/// Hits as a table, for a model.
fn table(hits: &[Hit], hint: Option<&str>) -> Text {
    Text::new(match hits.is_empty() {
        true => format!("No match: {}\n", hint.unwrap_or("there are no memories yet")),
        false => hit_table(hits),
    })
}

impl Text {
    pub(super) fn new(text: String) -> Self {
        Self { type_: "text", text }
    }
}
