//! What happens, as it happens: server-sent events that can be resumed.
//!
//! What is told comes from the tables, by place in the log: our own, and those of other machines as they are pulled.
//! So whoever was cut off names the last places it heard of and misses nothing, also if another worker answers by then.

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
    dto::{Item, Session},
    error::{Asked, Problem, Refusal},
    health::state,
    projects::named,
    sessions::now_us,
    state::Site,
};
use crate::shared::Change;
use claude_mem_core::app::App;

/// Who may listen at the same time.
pub(super) const STREAMS_MAX: usize = 16;
/// What waits for a slow listener; then the tables wait for it, and nothing else.
const FRAMES_MAX: usize = 64;
/// Events told at once.
const NEWS_MAX: u32 = 200;
/// Whoever missed more than this loads the page again.
const MISSED_MAX: u32 = 500;
/// A comment this often tells proxies and us that the other side is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Where to go on.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Since {
    /// As the header `Last-Event-ID`, for whoever cannot set it.
    #[serde(rename = "lastEventId")]
    #[param(rename = "lastEventId")]
    last_event_id: Option<String>,
}

pub(super) fn routes() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new().routes(routes!(stream))
}

/// What happens, as it happens. Each event is JSON with a `type`; its id says how far it goes.
#[utoipa::path(get, path = "/stream", tag = "stream", params(Since), security(("token" = [])),
    responses((status = 200, body = String, content_type = "text/event-stream"),
        (status = "4XX", body = Problem)))]
async fn stream(
    State(site): State<Arc<Site>>,
    headers: HeaderMap,
    Asked(since): Asked<Since>,
) -> Result<Response, Refusal> {
    let room = Arc::clone(&site.streams).try_acquire_owned();
    let room = room.map_err(|_| Refusal::busy(format!("{STREAMS_MAX} are listening already")))?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let asked = since.last_event_id.as_deref().filter(|id| !id.is_empty()).map(str::parse);
    let asked =
        asked.transpose().map_err(|_| Refusal::bad("`lastEventId` is no id of an event"))?;
    let last = last.or(asked);
    let (frames, told) = mpsc::channel(FRAMES_MAX);
    let teller = Teller { site: Arc::clone(&site), frames };
    tokio::spawn(async move {
        let _busy = teller.site.shared.busy();
        let ending = Arc::clone(&teller.site.shared);
        tokio::select! {
            _ = teller.tell(last) => {}
            // A page that was closed makes room at once, though nothing happens that it could be told.
            () = teller.frames.closed() => {}
            () = ending.ended() => {}
        }
        drop(room);
    });
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Ok(Sse::new(ReceiverStream::new(told)).keep_alive(keep_alive).into_response())
}

struct Teller {
    site: Arc<Site>,
    frames: mpsc::Sender<Result<Event, Infallible>>,
}

/// Nobody listens any more, or nothing can be read.
struct Over;

impl Teller {
    async fn tell(&self, last: Option<FeedPosition>) -> Result<(), Over> {
        let mut changes = self.site.shared.changes.subscribe();
        let presence = &self.site.shared.presence;
        let connected = json!({"version": presence.version, "instance": presence.instance});
        self.send("connected", connected, None).await?;
        let mut after = self.begin(last).await?;
        self.processing().await?;
        if let Some(replay) = self.site.running.look() {
            self.send("replay_progress", json!({"replay": replay}), None).await?;
        }
        loop {
            match changes.recv().await {
                Err(RecvError::Closed) => return Ok(()),
                // Whatever was missed is in the tables.
                Ok(Change::Folded) | Err(RecvError::Lagged(_)) => {
                    after = self.news(after).await?;
                }
                Ok(Change::Processing { .. }) => self.processing().await?,
                Ok(Change::Replay { .. }) => {
                    let replay = self.site.running.look();
                    self.send("replay_progress", json!({"replay": replay}), None).await?;
                }
            }
        }
    }

    /// Tells what a page needs first, and what was missed. Gives the place up to which that is.
    async fn begin(&self, last: Option<FeedPosition>) -> Result<FeedPosition, Over> {
        let read = self.site.read(|store, _| Ok((named(store)?, store.feed_end()?)));
        let (projects, newest) = read.await.map_err(|_| Over)?;
        let projects = serde_json::to_value(projects).map_err(|_| Over)?;
        if let Some(last) = last {
            self.send("initial_load", projects, None).await?;
            return self.news(last).await;
        }
        self.send("initial_load", projects, Some(&newest)).await?;
        Ok(newest)
    }

    /// Tells everything that was not heard, and gives how far that goes.
    async fn news(&self, mut after: FeedPosition) -> Result<FeedPosition, Over> {
        loop {
            let heard = after.clone();
            let read = self.site.read(move |store, app| news(store, app, &heard));
            let (told, until) = read.await.map_err(|_| Over)?;
            for (type_, body, id) in told {
                self.send(type_, body, id.as_ref()).await?;
            }
            if until == after {
                return Ok(after);
            }
            after = until;
        }
    }

    async fn processing(&self) -> Result<(), Over> {
        let state = state(&self.site).await.map_err(|_| Over)?;
        let body = serde_json::to_value(state).map_err(|_| Over)?;
        self.send("processing_status", body, None).await
    }

    async fn send(
        &self,
        type_: &str,
        mut body: Value,
        id: Option<&FeedPosition>,
    ) -> Result<(), Over> {
        let timestamp = self.site.shared.clock.now().as_millisecond();
        if let Value::Object(fields) = &mut body {
            fields.insert("type".into(), type_.into());
            fields.insert("timestamp".into(), timestamp.into());
        }
        let mut event = Event::default().data(body.to_string());
        if let Some(id) = id {
            event = event.id(id.to_string());
        }
        self.frames.send(Ok(event)).await.map_err(|_| Over)
    }
}

type Frame = (&'static str, Value, Option<FeedPosition>);

/// The next piece of what was not heard, and how far it goes. A great many things at once, such as all that another
/// machine ever did, are one: everything is to be looked at again.
fn news(
    store: &Store,
    app: &App,
    after: &FeedPosition,
) -> Result<(Vec<Frame>, FeedPosition), Refusal> {
    if store.changes_count_after(after, MISSED_MAX + 1)? > MISSED_MAX.into() {
        let newest = store.feed_end()?;
        return Ok((vec![("reload", json!({}), Some(newest.clone()))], newest));
    }
    let (news, until) = store.changes_after(after, NEWS_MAX)?;
    let (mut told, mut heard) = (Vec::new(), after.clone());
    for one in news {
        let mut frames = frames(store, app, &one)?;
        // Only the last frame of an event says so: whoever is cut off between two of them hears both again.
        heard.reach(one.seq);
        if let Some((_, _, id)) = frames.last_mut() {
            *id = Some(heard.clone());
        }
        told.extend(frames);
    }
    Ok((told, until))
}

/// One piece of news as it is sent.
fn frames(store: &Store, app: &App, news: &FeedEntry) -> Result<Vec<Frame>, Refusal> {
    let session = |id: i64| -> Result<Value, Refusal> {
        let told =
            store.session_views(SessionQuery::Number(id), now_us(app))?.pop().map(Session::from);
        Ok(json!({"session": told}))
    };
    Ok(match &news.what {
        FeedChange::SessionStarted(id) => vec![("session_started", session(*id)?, None)],
        FeedChange::SessionEnded(id) => vec![("session_completed", session(*id)?, None)],
        FeedChange::Prompt(name) => items(store, std::slice::from_ref(name))?,
        FeedChange::Memories(names) => items(store, names)?,
        FeedChange::ToolUsed { session, tool, prompt_number } => {
            let told = store.session_views(SessionQuery::Number(*session), now_us(app))?.pop();
            let (id, project) = told.map(|told| (told.session, told.project)).unzip();
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
) -> Result<Vec<Frame>, Refusal> {
    let listed = store.list_rows(names)?.into_iter().filter(|listed| !listed.is_superseded);
    let frame = |item: Item| match item {
        Item::Observation(row) => ("new_observation", json!({"observation": row}), None),
        Item::Summary(row) => ("new_summary", json!({"summary": row}), None),
        Item::Prompt(row) => ("new_prompt", json!({"prompt": row}), None),
    };
    Ok(listed.map(Item::from).map(frame).collect())
}
