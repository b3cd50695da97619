//! Finding memories again.

use std::{fmt::Write as _, sync::Arc};

use axum::{Json, extract::State};
use claude_mem_projections::{
    Store,
    search::{Hit, Kind, Order},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    dto::{Item, Observation, Prompt, Summary},
    error::{Answer, Asked, Problem, Refusal},
    feed::{LIMIT_MAX, given, list},
    state::Site,
    time_params::{rfc3339, time},
};
use claude_mem_core::app::App;
use claude_mem_memory::{
    memory_json::HitJson,
    search::{ProjectScope, SearchRequest, kinds_and_types, search},
};

const LIMIT: usize = 20;
const OFFSET_MAX: usize = 10_000;

/// What to find, and among what.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Wanted {
    /// Words that the memory would contain; `"a phrase"`, `+must`, `-not` and `begin*` are understood.
    query: Option<String>,
    /// `observations`, `sessions` (summaries) or `prompts`; anything else counts as `obs_type`.
    #[serde(rename = "type")]
    #[param(rename = "type")]
    type_: Option<String>,
    /// Types of observations, separated by commas.
    obs_type: Option<String>,
    /// Concepts, separated by commas.
    concepts: Option<String>,
    /// Files or folders, separated by commas; the end of a path is enough.
    files: Option<String>,
    /// Another name for `files`.
    #[serde(rename = "filePath")]
    #[param(rename = "filePath")]
    file_path: Option<String>,
    /// The name or key of a project.
    project: Option<String>,
    /// The watched program's id of a session, or its beginning.
    session: Option<String>,
    /// From this moment on: `2026-03-01`, `3d`, or milliseconds since 1970.
    #[serde(rename = "dateStart", alias = "date_start", alias = "date_from")]
    #[param(rename = "dateStart")]
    date_start: Option<String>,
    /// Up to this moment; a day counts whole.
    #[serde(rename = "dateEnd", alias = "date_end", alias = "date_to")]
    #[param(rename = "dateEnd")]
    date_end: Option<String>,
    limit: Option<usize>,
    offset: Option<usize>,
    /// `relevance`, `date_desc` or `date_asc`.
    #[serde(rename = "orderBy")]
    #[param(rename = "orderBy")]
    order_by: Option<String>,
    /// `json`, or `text` for a table.
    format: Option<String>,
    /// Whether the hits are also given in full.
    rows: Option<bool>,
}

/// What was found.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Results {
    query: String,
    /// How many memories came into question.
    total_results: usize,
    /// All kinds in one order.
    hits: Vec<HitJson>,
    /// The same in full, by kind.
    observations: Vec<Observation>,
    sessions: Vec<Summary>,
    prompts: Vec<Prompt>,
    /// What to do if that is too little.
    hint: Option<String>,
    /// As a table, if `format` is `text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Vec<Text>>,
}

/// A text for a model.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Text {
    /// `text`.
    #[serde(rename = "type")]
    type_: &'static str,
    text: String,
}

pub(super) fn routes() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new()
        .routes(routes!(search_all))
        .routes(routes!(search_observations))
        .routes(routes!(by_file))
}

/// Finds memories by their words.
#[utoipa::path(get, path = "/api/search", tag = "reading", params(Wanted), security(("token" = [])),
    responses((status = 200, body = Results), (status = "4XX", body = Problem)))]
async fn search_all(
    State(site): State<Arc<Site>>,
    Asked(wanted): Asked<Wanted>,
) -> Answer<Results> {
    site.read(move |store, app| find(store, app, wanted, &[])).await.map(Json)
}

/// Finds observations by their words.
#[utoipa::path(get, path = "/api/search/observations", tag = "reading", params(Wanted),
    security(("token" = [])),
    responses((status = 200, body = Results), (status = "4XX", body = Problem)))]
async fn search_observations(
    State(site): State<Arc<Site>>,
    Asked(wanted): Asked<Wanted>,
) -> Answer<Results> {
    site.read(move |store, app| find(store, app, wanted, &[Kind::Observation])).await.map(Json)
}

/// Finds what is about a file or a folder.
#[utoipa::path(get, path = "/api/search/by-file", tag = "reading", params(Wanted),
    security(("token" = [])),
    responses((status = 200, body = Results), (status = "4XX", body = Problem)))]
async fn by_file(State(site): State<Arc<Site>>, Asked(wanted): Asked<Wanted>) -> Answer<Results> {
    let files = [&wanted.file_path, &wanted.files];
    if files.into_iter().all(|files| list(files.as_deref()).is_empty()) {
        return Err(Refusal::bad("`filePath` is required"));
    }
    let kinds = [Kind::Observation, Kind::Summary];
    site.read(move |store, app| find(store, app, wanted, &kinds)).await.map(Json)
}

fn find(store: &Store, app: &App, wanted: Wanted, kinds: &[Kind]) -> Result<Results, Refusal> {
    let is_text = wanted.format.as_deref() == Some("text");
    let has_rows = wanted.rows.unwrap_or(true) && !is_text;
    let request = request(wanted, kinds)?;
    let found = search(app, store, &request)?.results;
    let mut results = Results {
        query: request.query,
        total_results: found.matched,
        hint: found.hint,
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

fn request(wanted: Wanted, kinds: &[Kind]) -> Result<SearchRequest, Refusal> {
    let types = list(wanted.obs_type.as_deref());
    let (named, types) = kinds_and_types(list(wanted.type_.as_deref()), types);
    let mut files = list(wanted.files.as_deref());
    files.extend(list(wanted.file_path.as_deref()));
    let order = match wanted.order_by.as_deref().unwrap_or_default() {
        "" | "relevance" => Order::Relevance,
        "date_desc" => Order::Newest,
        "date_asc" => Order::Oldest,
        _ => return Err(Refusal::bad("`orderBy` is `relevance`, `date_desc` or `date_asc`")),
    };
    Ok(SearchRequest {
        query: wanted.query.unwrap_or_default(),
        scope: ProjectScope::named_or(given(wanted.project), ProjectScope::All),
        kinds: if named.is_empty() { kinds.to_vec() } else { named },
        types,
        concepts: list(wanted.concepts.as_deref()),
        files,
        since: time("dateStart", wanted.date_start.as_deref())?,
        until: time("dateEnd", wanted.date_end.as_deref())?,
        session: given(wanted.session),
        limit: wanted.limit.unwrap_or(LIMIT).min(LIMIT_MAX),
        offset: wanted.offset.unwrap_or(0).min(OFFSET_MAX),
        order,
        is_explained: false,
    })
}

/// Hits as a table, for whoever hands it to a model.
pub(super) fn table(hits: &[Hit], hint: Option<&str>) -> Text {
    let mut table = String::new();
    if hits.is_empty() {
        table = format!("No match: {}\n", hint.unwrap_or("nothing is remembered yet"));
    } else {
        table += "| ID | Time | Type | Title |\n|---|---|---|---|\n";
    }
    for hit in hits {
        let type_ = hit.type_.as_deref().unwrap_or(hit.kind.name());
        let title = hit.title.replace('|', "\\|");
        let _ = writeln!(table, "| {} | {} | {type_} | {title} |", hit.name, rfc3339(hit.at_us));
    }
    Text { type_: "text", text: table }
}
