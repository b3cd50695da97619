//! Lists of memories, newest first: of one kind, or all in one feed.

use std::sync::Arc;

use axum::{Json, extract::State};
use claude_mem_projections::{
    PageCursor, Store,
    search::{Kind, Search},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{ApiError, ApiResult, QueryParams},
    items::{Item, Observation, Prompt, Summary},
    state::AppState,
    time_params::time,
};
use claude_mem_core::app::App;

/// Default page size.
const LIMIT: usize = 20;
/// Maximum page size.
pub(super) const LIMIT_MAX: usize = 100;
/// Maximum offset. `before` costs the same on every page.
const OFFSET_MAX: usize = 100_000;

/// Filters and paging of lists.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ListParams {
    /// Number of results to skip.
    offset: Option<usize>,
    /// Maximum number of results, up to 100.
    limit: Option<usize>,
    /// Continue after this result: `nextBefore` of the previous page.
    before: Option<String>,
    /// Project name or key.
    project: Option<String>,
    /// Session ID of the client, or a prefix of it.
    session: Option<String>,
    /// Only sessions of this client, such as `codex`.
    client: Option<String>,
    /// Observation types, separated by commas.
    #[serde(rename = "type")]
    #[param(rename = "type")]
    type_: Option<String>,
    /// Required concepts, separated by commas.
    concepts: Option<String>,
    /// Files or folders, separated by commas.
    files: Option<String>,
    /// Start time: `2026-03-01`, `3d`, or milliseconds since 1970.
    since: Option<String>,
    /// End time; a date includes the whole day.
    until: Option<String>,
    /// Number of the machine that recorded it; 0 is this one.
    host: Option<u8>,
    /// Kinds in the feed: `observation`, `summary`, `prompt`, separated by commas.
    kinds: Option<String>,
}

/// One page of a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Page<T> {
    items: Vec<T>,
    /// Whether more results follow.
    has_more: bool,
    /// Value of `before` for the next page.
    next_before: Option<String>,
    offset: usize,
    limit: usize,
}

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new()
        .routes(routes!(feed))
        .routes(routes!(observations))
        .routes(routes!(summaries))
        .routes(routes!(prompts))
}

/// Lists all memories, newest first.
#[utoipa::path(get, path = "/api/feed", tag = "reading", params(ListParams),
    responses((status = 200, body = Page<Item>)))]
async fn feed(
    State(state): State<Arc<AppState>>,
    QueryParams(params): QueryParams<ListParams>,
) -> ApiResult<Page<Item>> {
    let kinds = match list(params.kinds.as_deref()) {
        kinds if kinds.is_empty() => Kind::ALL.to_vec(),
        kinds => {
            kinds.iter().map(|kind| kind.parse()).collect::<Result<_, _>>().map_err(|_| {
                ApiError::bad("`kinds` must be `observation`, `summary` or `prompt`")
            })?
        }
    };
    page(&state, params, kinds, Some).await
}

/// Lists observations, newest first.
#[utoipa::path(get, path = "/api/observations", tag = "reading", params(ListParams),
    responses((status = 200, body = Page<Observation>)))]
async fn observations(
    State(state): State<Arc<AppState>>,
    QueryParams(params): QueryParams<ListParams>,
) -> ApiResult<Page<Observation>> {
    page(&state, params, vec![Kind::Observation], Item::observation).await
}

/// Lists summaries, newest first.
#[utoipa::path(get, path = "/api/summaries", tag = "reading", params(ListParams),
    responses((status = 200, body = Page<Summary>)))]
async fn summaries(
    State(state): State<Arc<AppState>>,
    QueryParams(params): QueryParams<ListParams>,
) -> ApiResult<Page<Summary>> {
    page(&state, params, vec![Kind::Summary], Item::summary).await
}

/// Lists prompts, newest first.
#[utoipa::path(get, path = "/api/prompts", tag = "reading", params(ListParams),
    responses((status = 200, body = Page<Prompt>)))]
async fn prompts(
    State(state): State<Arc<AppState>>,
    QueryParams(params): QueryParams<ListParams>,
) -> ApiResult<Page<Prompt>> {
    page(&state, params, vec![Kind::Prompt], Item::prompt).await
}

async fn page<T: Send + 'static>(
    state: &Arc<AppState>,
    params: ListParams,
    kinds: Vec<Kind>,
    pick: fn(Item) -> Option<T>,
) -> ApiResult<Page<T>> {
    let found = move |store: &Store, app: &App| {
        let before: Option<PageCursor> = params
            .before
            .as_deref()
            .filter(|mark| !mark.is_empty())
            .map(str::parse)
            .transpose()
            .map_err(|_| ApiError::bad("`before` is not the `nextBefore` of another page"))?;
        let limit = params.limit.unwrap_or(LIMIT).min(LIMIT_MAX);
        let offset = params.offset.unwrap_or(0).min(OFFSET_MAX);
        let search = Search {
            kinds,
            project: given(params.project),
            types: list(params.type_.as_deref()),
            concepts: list(params.concepts.as_deref()),
            files: list(params.files.as_deref()),
            since_us: time("since", params.since.as_deref())?
                .map(|when| when.start_us(app.clock.now())),
            until_us: time("until", params.until.as_deref())?
                .map(|when| when.end_us(app.clock.now())),
            session: given(params.session),
            host: params.host,
            client: given(params.client),
            // One extra row shows whether more follow.
            limit: limit + 1,
            offset,
            ..Search::default()
        };
        let mut marks = store.page(&search, before)?;
        let has_more = marks.len() > limit;
        marks.truncate(limit);
        let next_before = marks.last().filter(|_| has_more).map(ToString::to_string);
        let names: Vec<_> = marks.iter().map(PageCursor::name).collect();
        let items = store.list_rows(&names)?.into_iter().map(Item::from).filter_map(pick).collect();
        Ok(Page { items, has_more, next_before, offset, limit })
    };
    state.read(found).await.map(Json)
}

/// Splits a text at commas.
pub(super) fn list(text: Option<&str>) -> Vec<String> {
    let words = text.unwrap_or_default().split(',').map(str::trim);
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// A parameter that is not blank.
pub(super) fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}
