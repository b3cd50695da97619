//! What a request has at hand: the worker, the tables, and room to work.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use claude_mem_projections::Store;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{body_limit, error::Refusal, replays::Running, stream, viewer_login::ViewerLogin};
use crate::shared::Shared;
use claude_mem_capture::project::ProjectId;
use claude_mem_core::app::App;
use claude_mem_memory::{resolve::reported_project, store};

/// Requests that read or write at the same time. The others wait: tables are read by few at once.
const JOBS_MAX: usize = 4;
/// Open databases that are kept for the next request.
const STORES_MAX: usize = 2;
/// What each of them keeps in memory. The system keeps the file in memory, too, and a larger cache here only made the
/// worker grow with the database, to 64 MB.
const CACHE_KB_MAX: u32 = 512;
/// Folders whose projects are remembered.
const PROJECTS_MAX: usize = 256;

/// One for all requests.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) shared: Arc<Shared>,
    pub(super) viewers: ViewerLogin,
    pub(super) bodies: Semaphore,
    pub(super) streams: Arc<Semaphore>,
    pub(super) running: Running,
    jobs: Semaphore,
    stores: Mutex<Vec<Store>>,
    projects: Mutex<HashMap<String, ProjectId>>,
}

impl Site {
    pub(super) fn new(shared: Arc<Shared>) -> Arc<Self> {
        Arc::new(Self {
            viewers: ViewerLogin::default(),
            bodies: Semaphore::new(body_limit::UNITS_MAX),
            streams: Arc::new(Semaphore::new(stream::STREAMS_MAX)),
            running: Running::default(),
            jobs: Semaphore::new(JOBS_MAX),
            stores: Mutex::default(),
            projects: Mutex::default(),
            shared,
        })
    }

    /// Reads from the tables as they are.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Store, &App) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let site = Arc::clone(self);
        self.block(move || {
            let app = site.shared.app();
            let store = site.store(&app)?;
            let found = work(&store, &app);
            site.keep(store);
            found
        })
        .await
    }

    /// Writes: appends events and folds them.
    pub(super) async fn write<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&mut Store, &mut App) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let site = Arc::clone(self);
        self.block(move || {
            let mut app = site.shared.app();
            let mut store = store::open(&mut app)?;
            let done = work(&mut store, &mut app);
            // Whatever was appended, the loop wants to know of it.
            site.shared.wake();
            done
        })
        .await
    }

    /// Does what blocks on a thread of its own, and never too much of it at once.
    pub(super) async fn block<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let _room = self.jobs.acquire().await.map_err(|_| Refusal::busy("it is ending"))?;
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|_| Err(Refusal::failed("this request failed in an unexpected way")))
    }

    /// The project of a folder or of a name that somebody told: one that is known, else one that is only a
    /// name. Nothing is looked up on disk.
    pub(super) async fn project(
        self: &Arc<Self>,
        folder: &str,
        name: &str,
        session: &str,
    ) -> Result<ProjectId, Refusal> {
        let key = format!("{folder}\n{name}\n{}", if folder.is_empty() { session } else { "" });
        if let Some(known) = lock(&self.projects).get(&key) {
            return Ok(known.clone());
        }
        let (folder, name, session) = (folder.to_owned(), name.to_owned(), session.to_owned());
        let found = self
            .read(move |store, _| Ok(reported_project(store, &folder, &name, &session)?))
            .await?;
        let mut projects = lock(&self.projects);
        if projects.len() >= PROJECTS_MAX {
            projects.clear();
        }
        projects.insert(key, found.clone());
        Ok(found)
    }

    /// How many entries each table has that could grow with use, to detect leaks.
    pub(super) fn entries(&self) -> Value {
        let (links, keys) = self.viewers.entries();
        json!({
            "projects": lock(&self.projects).len(),
            "databases": lock(&self.stores).len(),
            "links": links,
            "keys": keys,
            "deleted_sessions": self.shared.left_entries(),
            "unconfirmed_answers": self.shared.unconfirmed(),
        })
    }

    fn store(&self, app: &App) -> Result<Store, Refusal> {
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
            // Nothing was folded yet, and nothing is remembered.
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
