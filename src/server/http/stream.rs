//! Live updates: server-sent events that can be resumed.
//!
//! Updates come from the database, by position in our own log and in those of other hosts. A client
//! that reconnects sends the last positions it received and misses nothing, even after a restart of
//! the worker.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::State,
    http::HeaderMap,
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use claude_mem_projections::{FeedChange, FeedEntry, FeedPosition, SessionQuery, Store};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{broadcast::error::RecvError, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{ApiError, QueryParams},
    health::pending_work,
    items::{Item, Session},
    projects::named,
    sessions::now_us,
    state::AppState,
};
use crate::shared::Change;
use claude_mem_core::app::App;

/// Maximum number of concurrent streams.
pub(super) const STREAMS_MAX: usize = 16;
/// Frames buffered for a slow client. Beyond that, reading for this client pauses.
const FRAMES_MAX: usize = 64;
/// Maximum number of events read at once.
const NEWS_MAX: u32 = 200;
/// A client that missed more events reloads the page.
const MISSED_MAX: u32 = 500;
/// Interval of comments that keep proxies from closing the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Position to resume from.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct StreamParams {
    /// Alternative to the header `Last-Event-ID`.
    #[serde(rename = "lastEventId")]
    #[param(rename = "lastEventId")]
    last_event_id: Option<String>,
}

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(stream))
}

/// Streams live updates. Each event is JSON with a `type`; its ID is the position to resume from.
#[utoipa::path(get, path = "/stream", tag = "stream", params(StreamParams),
    responses((status = 200, body = String, content_type = "text/event-stream")))]
async fn stream(
    State(state): State<Arc<AppState>>,
    headers: HeaderMap,
    QueryParams(since): QueryParams<StreamParams>,
) -> Result<Response, ApiError> {
    let room = Arc::clone(&state.streams).try_acquire_owned();
    let room =
        room.map_err(|_| ApiError::busy(format!("{STREAMS_MAX} streams are open already")))?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let asked = since.last_event_id.as_deref().filter(|id| !id.is_empty()).map(str::parse);
    let asked =
        asked.transpose().map_err(|_| ApiError::bad("`lastEventId` is not the ID of an event"))?;
    let last = last.or(asked);
    let (frames, view) = mpsc::channel(FRAMES_MAX);
    let writer = StreamWriter { state: Arc::clone(&state), frames };
    tokio::spawn(async move {
        let _busy = writer.state.shared.busy();
        let ending = Arc::clone(&writer.state.shared);
        tokio::select! {
            _ = writer.run(last) => {}
            // Detect a closed page at once, even without updates to send.
            () = writer.frames.closed() => {}
            () = ending.ended() => {}
        }
        drop(room);
    });
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Ok(Sse::new(ReceiverStream::new(view)).keep_alive(keep_alive).into_response())
}

struct StreamWriter {
    state: Arc<AppState>,
    frames: mpsc::Sender<Result<Event, Infallible>>,
}

/// The client is gone, or the database cannot be read.
struct Closed;

impl StreamWriter {
    async fn run(&self, last: Option<FeedPosition>) -> Result<(), Closed> {
        let mut changes = self.state.shared.changes.subscribe();
        let instance = &self.state.shared.instance;
        let connected = json!({"version": instance.version, "instance": instance.run_id});
        self.send("connected", connected, None).await?;
        let mut after = self.begin(last).await?;
        self.processing().await?;
        if let Some(replay) = self.state.running.look() {
            self.send("replay_progress", json!({"replay": replay}), None).await?;
        }
        loop {
            match changes.recv().await {
                Err(RecvError::Closed) => return Ok(()),
                // The database has everything that was missed.
                Ok(Change::Folded) | Err(RecvError::Lagged(_)) => {
                    after = self.news(after).await?;
                }
                Ok(Change::Processing { .. }) => self.processing().await?,
                Ok(Change::Replay { .. }) => {
                    let replay = self.state.running.look();
                    self.send("replay_progress", json!({"replay": replay}), None).await?;
                }
            }
        }
    }

    /// Sends the initial data, and what was missed. Returns the new position.
    async fn begin(&self, last: Option<FeedPosition>) -> Result<FeedPosition, Closed> {
        let read = self.state.read(|store, _| Ok((named(store)?, store.feed_end()?)));
        let (projects, newest) = read.await.map_err(|_| Closed)?;
        let projects = serde_json::to_value(projects).map_err(|_| Closed)?;
        if let Some(last) = last {
            self.send("initial_load", projects, None).await?;
            return self.news(last).await;
        }
        self.send("initial_load", projects, Some(&newest)).await?;
        Ok(newest)
    }

    /// Sends everything after `since`. Returns the new position.
    async fn news(&self, mut after: FeedPosition) -> Result<FeedPosition, Closed> {
        loop {
            let position = after.clone();
            let read = self.state.read(move |store, app| news(store, app, &position));
            let (view, until) = read.await.map_err(|_| Closed)?;
            for (type_, body, id) in view {
                self.send(type_, body, id.as_ref()).await?;
            }
            if until == after {
                return Ok(after);
            }
            after = until;
        }
    }

    async fn processing(&self) -> Result<(), Closed> {
        let status = pending_work(&self.state).await.map_err(|_| Closed)?;
        let body = serde_json::to_value(status).map_err(|_| Closed)?;
        self.send("processing_status", body, None).await
    }

    async fn send(
        &self,
        type_: &str,
        mut body: Value,
        id: Option<&FeedPosition>,
    ) -> Result<(), Closed> {
        let timestamp = self.state.shared.clock.now().as_millisecond();
        if let Value::Object(fields) = &mut body {
            fields.insert("type".into(), type_.into());
            fields.insert("timestamp".into(), timestamp.into());
        }
        let mut event = Event::default().data(body.to_string());
        if let Some(id) = id {
            event = event.id(id.to_string());
        }
        self.frames.send(Ok(event)).await.map_err(|_| Closed)
    }
}

type Frame = (&'static str, Value, Option<FeedPosition>);

/// The next frames, and the new position. Many events at once, such as the whole log of another
/// host, become one `reload`.
fn news(
    store: &Store,
    app: &App,
    after: &FeedPosition,
) -> Result<(Vec<Frame>, FeedPosition), ApiError> {
    if store.changes_count_after(after, MISSED_MAX + 1)? > MISSED_MAX.into() {
        let newest = store.feed_end()?;
        return Ok((vec![("reload", json!({}), Some(newest.clone()))], newest));
    }
    let (news, until) = store.changes_after(after, NEWS_MAX)?;
    let (mut view, mut position) = (Vec::new(), after.clone());
    for one in news {
        let mut frames = frames(store, app, &one)?;
        // Only the last frame of an event has its ID: a client that disconnects in between receives
        // all of them again.
        position.reach(one.seq);
        if let Some((_, _, id)) = frames.last_mut() {
            *id = Some(position.clone());
        }
        view.extend(frames);
    }
    Ok((view, until))
}

/// A change of the database as frames.
fn frames(store: &Store, app: &App, news: &FeedEntry) -> Result<Vec<Frame>, ApiError> {
    let session = |id: i64| -> Result<Value, ApiError> {
        let view =
            store.session_views(SessionQuery::Number(id), now_us(app))?.pop().map(Session::from);
        Ok(json!({"session": view}))
    };
    Ok(match &news.what {
        FeedChange::SessionStarted(id) => vec![("session_started", session(*id)?, None)],
        FeedChange::SessionEnded(id) => vec![("session_completed", session(*id)?, None)],
        FeedChange::Prompt(name) => items(store, std::slice::from_ref(name))?,
        FeedChange::Memories(names) => items(store, names)?,
        FeedChange::ToolUsed { session, tool, prompt_number } => {
            let view = store.session_views(SessionQuery::Number(*session), now_us(app))?.pop();
            let (id, project) = view.map(|view| (view.session, view.project)).unzip();
            let body = json!({"content_session_id": id, "project": project, "tool": tool,
                "prompt_number": prompt_number});
            vec![("observation_queued", body, None)]
        }
        FeedChange::Forgotten(id) => {
            vec![("forgotten", json!({"forgetting": id.to_string()}), None)]
        }
        FeedChange::MemoriesReplaced => vec![("reload", json!({}), None)],
    })
}

fn items(
    store: &Store,
    names: &[claude_mem_projections::search::MemoryId],
) -> Result<Vec<Frame>, ApiError> {
    let listed = store.list_rows(names)?.into_iter().filter(|listed| !listed.is_superseded);
    let frame = |item: Item| match item {
        Item::Observation(row) => ("new_observation", json!({"observation": row}), None),
        Item::Summary(row) => ("new_summary", json!({"summary": row}), None),
        Item::Prompt(row) => ("new_prompt", json!({"prompt": row}), None),
    };
    Ok(listed.map(Item::from).map(frame).collect())
}
