//! State shared by all requests: the worker, open databases, and limits.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    body::Bytes,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};
use claude_mem_projections::{FeedPosition, SessionQuery, Store};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{
    body_limit, error::ApiError, replays::CurrentReplay, stream, viewer_login::ViewerLogin,
};
use crate::shared::Shared;
use claude_mem_capture::{CLAUDE_CODE, project::ProjectId};
use claude_mem_core::app::App;
use claude_mem_memory::{resolve::reported_project, store};

/// Maximum number of requests that use the database at the same time.
const JOBS_MAX: usize = 4;
/// Maximum number of open databases kept for later requests.
const STORES_MAX: usize = 2;
/// Page cache of each database. The system caches the file, too; a larger cache only made the
/// worker grow with the database, to 64 MB.
const CACHE_KB_MAX: u32 = 512;
/// Maximum number of cached projects, of cached clients, and of cached answers.
const CACHED_MAX: usize = 256;
/// Maximum age of a cached answer.
const ANSWER_AGE_MAX: Duration = Duration::from_secs(60);

/// State shared by all requests.
#[derive(Debug)]
pub(super) struct AppState {
    pub(super) shared: Arc<Shared>,
    pub(super) viewers: ViewerLogin,
    pub(super) bodies: Semaphore,
    pub(super) streams: Arc<Semaphore>,
    pub(super) running: CurrentReplay,
    jobs: Semaphore,
    stores: Mutex<Vec<Store>>,
    projects: Mutex<HashMap<String, ProjectId>>,
    /// Answers that take long to compute, by question.
    answers: Mutex<HashMap<String, Answer>>,
    /// The clients of recent sessions.
    clients: Mutex<HashMap<String, String>>,
}

/// An answer, and the position of the database that it was read at.
#[derive(Debug, Clone)]
struct Answer {
    position: FeedPosition,
    at: Instant,
    body: Bytes,
}

impl AppState {
    pub(super) fn new(shared: Arc<Shared>) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            viewers: ViewerLogin::new()?,
            bodies: Semaphore::new(body_limit::UNITS_MAX),
            streams: Arc::new(Semaphore::new(stream::STREAMS_MAX)),
            running: CurrentReplay::default(),
            jobs: Semaphore::new(JOBS_MAX),
            stores: Mutex::default(),
            projects: Mutex::default(),
            answers: Mutex::default(),
            clients: Mutex::default(),
            shared,
        }))
    }

    /// Reads from the database.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Store, &App) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let state = Arc::clone(self);
        self.block(move || {
            let app = state.shared.app();
            let store = state.store(&app)?;
            let searching = state.shared.searching();
            let found = work(&store, &app);
            drop(searching);
            state.keep(store);
            found
        })
        .await
    }

    /// Reads from the database, unless nothing was recorded since the same question was answered.
    /// Hiding a host records nothing, so an answer counts for a short time only.
    pub(super) async fn read_cached<T: Serialize>(
        self: &Arc<Self>,
        question: String,
        work: impl FnOnce(&Store, &App) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<Response, ApiError> {
        let state = Arc::clone(self);
        let read = self.read(move |store, app| {
            let position = store.feed_end()?;
            let known = lock(&state.answers).get(&question).cloned();
            if let Some(known) = known
                && known.position == position
                && known.at.elapsed() < ANSWER_AGE_MAX
            {
                return Ok(known.body);
            }
            let body = serde_json::to_vec(&work(store, app)?);
            let body = Bytes::from(body.map_err(|error| ApiError::failed(error.to_string()))?);
            let answer = Answer { position, at: Instant::now(), body: body.clone() };
            remember(&state.answers, question, answer);
            Ok(body)
        });
        Ok(([(CONTENT_TYPE, "application/json")], read.await?).into_response())
    }

    /// Appends events and indexes them.
    pub(super) async fn write<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&mut Store, &mut App) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let state = Arc::clone(self);
        self.block(move || {
            let mut app = state.shared.app();
            let mut store = store::open(&mut app)?;
            let done = work(&mut store, &mut app);
            // Wake the main loop, because events may have been appended.
            state.shared.wake();
            done
        })
        .await
    }

    /// Runs blocking work on another thread, up to `JOBS_MAX` at once.
    pub(super) async fn block<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let _room =
            self.jobs.acquire().await.map_err(|_| ApiError::busy("the worker is stopping"))?;
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|_| Err(ApiError::failed("internal error: the request panicked")))
    }

    /// The project of a folder or name from a request: a known one, else one with only a name.
    /// Does not access the disk.
    pub(super) async fn project(
        self: &Arc<Self>,
        folder: &str,
        name: &str,
        session: &str,
    ) -> Result<ProjectId, ApiError> {
        let key = format!("{folder}\n{name}\n{}", if folder.is_empty() { session } else { "" });
        if let Some(known) = lock(&self.projects).get(&key) {
            return Ok(known.clone());
        }
        let (folder, name, session) = (folder.to_owned(), name.to_owned(), session.to_owned());
        let found = self
            .read(move |store, _| Ok(reported_project(store, &folder, &name, &session)?))
            .await?;
        remember(&self.projects, key, found.clone());
        Ok(found)
    }

    /// The client of a session: the given one, else the one that was given before. A program may
    /// name it only once; without this, its later events would be of another session.
    pub(super) async fn client(
        self: &Arc<Self>,
        given: Option<String>,
        session: &str,
    ) -> Result<String, ApiError> {
        let known = lock(&self.clients).get(session).cloned();
        let client = match (given, known) {
            (Some(given), Some(known)) if given == known => return Ok(known),
            (None, Some(known)) => return Ok(known),
            (Some(given), _) => given,
            (None, None) => {
                let session = session.to_owned();
                let recorded = self
                    .read(move |store, _| Ok(store.session_views(SessionQuery::Id(&session), 0)?))
                    .await?;
                recorded.into_iter().next().map_or(CLAUDE_CODE.name.into(), |view| view.client)
            }
        };
        remember(&self.clients, session.to_owned(), client.clone());
        Ok(client)
    }

    /// Sizes of the caches, to detect leaks.
    pub(super) fn entries(&self) -> Value {
        let (links, keys) = self.viewers.entries();
        json!({
            "projects": lock(&self.projects).len(),
            "answers": lock(&self.answers).len(),
            "clients": lock(&self.clients).len(),
            "databases": lock(&self.stores).len(),
            "links": links,
            "keys": keys,
            "deleted_sessions": self.shared.cancelled_entries(),
            "unconfirmed_answers": self.shared.unconfirmed(),
        })
    }

    fn store(&self, app: &App) -> Result<Store, ApiError> {
        let mut stores = lock(&self.stores);
        stores.retain(|store| !store.is_replaced() && !store.is_wal_replaced());
        if let Some(store) = stores.pop() {
            return Ok(store);
        }
        drop(stores);
        match Store::open_read_only(&app.paths.memory())? {
            Some(store) => {
                store.limit_cache(CACHE_KB_MAX)?;
                Ok(store)
            }
            // No event is indexed yet.
            None => Ok(Store::in_memory()?),
        }
    }

    fn keep(&self, store: Store) {
        let mut stores = lock(&self.stores);
        if stores.len() < STORES_MAX && store.path().is_some() {
            stores.push(store);
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds an entry; a full cache is emptied first.
fn remember<T>(cache: &Mutex<HashMap<String, T>>, key: String, value: T) {
    let mut cache = lock(cache);
    if cache.len() >= CACHED_MAX {
        cache.clear();
    }
    cache.insert(key, value);
}
