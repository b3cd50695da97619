//! The events of the log, newest first: a window that can be followed.

use std::sync::Arc;

use axum::{Json, extract::State};
use claude_mem_core::app::App;
use claude_mem_events::{Event, Seq};
use claude_mem_projections::{EventQuery, Store};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{ApiError, ApiResult, PathParam, QueryParams},
    feed::{LIMIT_MAX, given},
    provenance::{clipped, subject_of, texts},
    state::AppState,
    time_params::{epoch, rfc3339},
};
use claude_mem_memory::store;

/// Default page size.
const LIMIT: usize = 50;

/// Filters and paging of events.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct EventParams {
    /// A kind, such as `ToolUsed`.
    kind: Option<String>,
    /// Project name or key.
    project: Option<String>,
    /// Session ID of the client, or a prefix of it.
    session: Option<String>,
    /// Only events before this place: `seq` of the last event of another page.
    before: Option<String>,
    /// Only events after this place: `seq` of the newest known event.
    after: Option<String>,
    /// Maximum number of results, up to 100.
    limit: Option<usize>,
}

/// A page of events.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EventPage {
    /// Newest first. Forgotten events are left out.
    items: Vec<EventItem>,
    has_more: bool,
    /// All kinds.
    kinds: &'static [&'static str],
}

/// An event.
#[derive(Debug, Serialize, ToSchema)]
struct EventItem {
    /// Place in the log.
    seq: String,
    id: String,
    /// Such as `ToolUsed`.
    kind: &'static str,
    created_at: String,
    /// Milliseconds since 1970.
    created_at_epoch: u64,
    /// Session ID of the client.
    session: Option<String>,
    /// Project name.
    project: Option<String>,
    tool: Option<String>,
    /// The command, file or first words on one line.
    subject: String,
    has_failed: bool,
}

/// The content of an event.
#[derive(Debug, Serialize, ToSchema)]
struct EventText {
    input: Option<String>,
    output: Option<String>,
    is_clipped: bool,
}

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(one))
}

/// Lists events of this machine's log, newest first.
#[utoipa::path(get, path = "/api/events", tag = "reading", params(EventParams),
    responses((status = 200, body = EventPage)))]
async fn list(
    State(state): State<Arc<AppState>>,
    QueryParams(params): QueryParams<EventParams>,
) -> ApiResult<EventPage> {
    let limit = params.limit.unwrap_or(LIMIT).min(LIMIT_MAX);
    let kind = given(params.kind);
    if kind.as_deref().is_some_and(|kind| !Event::NAMES.contains(&kind)) {
        return Err(ApiError::bad("`kind` must be a kind of event, such as `ToolUsed`"));
    }
    let query = EventQuery {
        kind,
        project: given(params.project),
        session: given(params.session),
        before: given(params.before).map(|text| place(&text)).transpose()?,
        after: given(params.after).map(|text| place(&text)).transpose()?,
        // One extra row shows whether more follow.
        limit: limit as u32 + 1,
    };
    let found = move |store: &Store, app: &App| {
        let mut rows = store.event_rows(&query)?;
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let log = store::open_log(app)?;
        let mut items = Vec::with_capacity(rows.len());
        for row in rows {
            let event = store::event_at(&log, row.seq)?.map(|recorded| recorded.event);
            let used = match &event {
                Some(Event::ToolUsed(used)) => Some(used),
                _ => None,
            };
            items.push(EventItem {
                seq: row.seq.to_string(),
                id: row.event.to_string(),
                kind: row.kind,
                created_at: rfc3339(row.at_us),
                created_at_epoch: epoch(row.at_us),
                session: row.session,
                project: row.project,
                tool: used.map(|used| used.tool.clone()),
                has_failed: used.is_some_and(|used| used.has_failed),
                subject: event.as_ref().map(subject_of).unwrap_or_default(),
            });
        }
        Ok(EventPage { items, has_more, kinds: Event::NAMES })
    };
    state.read(found).await.map(Json)
}

/// Returns the content of an event: input and output of a tool, or the text of a prompt.
#[utoipa::path(get, path = "/api/events/{seq}", tag = "reading",
    params(("seq" = String, Path, description = "place in the log")),
    responses((status = 200, body = EventText)))]
async fn one(
    State(state): State<Arc<AppState>>,
    PathParam(seq): PathParam<String>,
) -> ApiResult<EventText> {
    let seq = place(&seq)?;
    let found = move |store: &Store, app: &App| {
        let gone = || ApiError::not_found(format!("there is no event at {seq}"));
        // Whether it is forgotten is in the database only.
        let next = Some(seq.next());
        let query = EventQuery { before: next, limit: 1, ..EventQuery::default() };
        let row = store.event_rows(&query)?.pop().filter(|row| row.seq == seq).ok_or_else(gone)?;
        let event = store::event_at(&store::open_log(app)?, row.seq)?.ok_or_else(gone)?.event;
        let (input, output) = texts(event);
        let clip = |part: Option<String>| {
            part.filter(|part| !part.is_empty()).map(|part| clipped(&part)).unzip()
        };
        let ((input, cut), (output, is_cut)) = (clip(input), clip(output));
        let is_clipped = cut.unwrap_or(false) || is_cut.unwrap_or(false);
        Ok(EventText { input, output, is_clipped })
    };
    state.read(found).await.map(Json)
}

/// A place in the log: `segment:offset`.
fn place(text: &str) -> Result<Seq, ApiError> {
    let parsed = text.split_once(':').and_then(|(segment, offset)| {
        let (segment, offset): (u32, u32) = (segment.parse().ok()?, offset.parse().ok()?);
        (segment < 1 << 23).then(|| Seq::new(segment.into(), offset.into()))
    });
    parsed.ok_or_else(|| ApiError::bad(format!("`{text}` is not a position in the log")))
}
