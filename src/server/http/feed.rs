//! Memories in lists, the newest first: of one kind, or all in one feed.

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
    dto::{Item, Observation, Prompt, Summary},
    error::{Answer, Asked, Problem, Refusal},
    state::Site,
    time_params::time,
};
use claude_mem_core::app::App;

/// Rows on a page, unless told.
const LIMIT: usize = 20;
/// Rows on the largest page.
pub(super) const LIMIT_MAX: usize = 100;
/// How far an offset may go; `before` goes on from any page at the same price.
const OFFSET_MAX: usize = 100_000;

/// Which memories, and which page of them.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Wanted {
    /// How many to leave out.
    offset: Option<usize>,
    /// How many; 100 at most.
    limit: Option<usize>,
    /// Behind this one: `nextBefore` of the page before.
    before: Option<String>,
    /// The name or key of a project.
    project: Option<String>,
    /// The watched program's id of a session, or its beginning.
    session: Option<String>,
    /// Types of observations, separated by commas.
    #[serde(rename = "type")]
    #[param(rename = "type")]
    type_: Option<String>,
    /// Concepts that observations must have, separated by commas.
    concepts: Option<String>,
    /// Files or folders that they must be about, separated by commas.
    files: Option<String>,
    /// From this moment on: `2026-03-01`, `3d`, or milliseconds since 1970.
    since: Option<String>,
    /// Up to this moment; a day counts whole.
    until: Option<String>,
    /// `observation`, `summary`, `prompt`, separated by commas. Only for the feed.
    kinds: Option<String>,
}

/// One page of a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Page<T> {
    items: Vec<T>,
    /// Whether there are more behind it.
    has_more: bool,
    /// What to give as `before` for the next page.
    next_before: Option<String>,
    offset: usize,
    limit: usize,
}

pub(super) fn routes() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new()
        .routes(routes!(feed))
        .routes(routes!(observations))
        .routes(routes!(summaries))
        .routes(routes!(prompts))
}

/// Everything that is remembered, the newest first.
#[utoipa::path(get, path = "/api/feed", tag = "reading", params(Wanted), security(("token" = [])),
    responses((status = 200, body = Page<Item>), (status = "4XX", body = Problem)))]
async fn feed(State(site): State<Arc<Site>>, Asked(wanted): Asked<Wanted>) -> Answer<Page<Item>> {
    let kinds = match list(wanted.kinds.as_deref()) {
        kinds if kinds.is_empty() => Kind::ALL.to_vec(),
        kinds => kinds
            .iter()
            .map(|kind| kind.parse())
            .collect::<Result<_, _>>()
            .map_err(|_| Refusal::bad("`kinds` are `observation`, `summary` and `prompt`"))?,
    };
    page(&site, wanted, kinds, Some).await
}

/// Observations, the newest first.
#[utoipa::path(get, path = "/api/observations", tag = "reading", params(Wanted), security(("token" = [])),
    responses((status = 200, body = Page<Observation>), (status = "4XX", body = Problem)))]
async fn observations(
    State(site): State<Arc<Site>>,
    Asked(wanted): Asked<Wanted>,
) -> Answer<Page<Observation>> {
    page(&site, wanted, vec![Kind::Observation], Item::observation).await
}

/// Summaries, the newest first.
#[utoipa::path(get, path = "/api/summaries", tag = "reading", params(Wanted), security(("token" = [])),
    responses((status = 200, body = Page<Summary>), (status = "4XX", body = Problem)))]
async fn summaries(
    State(site): State<Arc<Site>>,
    Asked(wanted): Asked<Wanted>,
) -> Answer<Page<Summary>> {
    page(&site, wanted, vec![Kind::Summary], Item::summary).await
}

/// Prompts, the newest first.
#[utoipa::path(get, path = "/api/prompts", tag = "reading", params(Wanted), security(("token" = [])),
    responses((status = 200, body = Page<Prompt>), (status = "4XX", body = Problem)))]
async fn prompts(
    State(site): State<Arc<Site>>,
    Asked(wanted): Asked<Wanted>,
) -> Answer<Page<Prompt>> {
    page(&site, wanted, vec![Kind::Prompt], Item::prompt).await
}

async fn page<T: Send + 'static>(
    site: &Arc<Site>,
    wanted: Wanted,
    kinds: Vec<Kind>,
    pick: fn(Item) -> Option<T>,
) -> Answer<Page<T>> {
    let found = move |store: &Store, app: &App| {
        let before: Option<PageCursor> = wanted
            .before
            .as_deref()
            .filter(|mark| !mark.is_empty())
            .map(str::parse)
            .transpose()
            .map_err(|_| Refusal::bad("`before` is not the `nextBefore` of another page"))?;
        let limit = wanted.limit.unwrap_or(LIMIT).min(LIMIT_MAX);
        let offset = wanted.offset.unwrap_or(0).min(OFFSET_MAX);
        let search = Search {
            kinds,
            project: given(wanted.project),
            types: list(wanted.type_.as_deref()),
            concepts: list(wanted.concepts.as_deref()),
            files: list(wanted.files.as_deref()),
            since_us: time("since", wanted.since.as_deref())?
                .map(|when| when.start_us(app.clock.now())),
            until_us: time("until", wanted.until.as_deref())?
                .map(|when| when.end_us(app.clock.now())),
            session: given(wanted.session),
            // One more tells whether there is one more.
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
    site.read(found).await.map(Json)
}

/// Words separated by commas.
pub(super) fn list(text: Option<&str>) -> Vec<String> {
    let words = text.unwrap_or_default().split(',').map(str::trim);
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// A text, if it was given and is not blank.
pub(super) fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}
