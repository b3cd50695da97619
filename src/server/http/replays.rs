//! Reprocessing: what it would take, starting it, how it goes, ending it, and what it changed.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use claude_mem_projections::{EventFilter, Store};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{Answer, Given, Named, Problem, Refusal},
    feed::given,
    generations::Made,
    state::{Site, lock},
    time_params::{rfc3339, time},
};
use crate::shared::{self, Shared};
use claude_mem_core::{app::App, failure::Failure, settings::ProviderName};
use claude_mem_distill::{
    Overrides, Prepared, ReplayRequest, RunReport, concurrency, prompts::Instructions, take_lock,
};
use claude_mem_memory::{
    resolve::{only_recorded_project, session, unknown_project},
    store,
};

/// The one that runs, or that ran last.
#[derive(Debug, Default)]
pub(super) struct Running {
    last: Mutex<Option<Arc<Run>>>,
    count: AtomicU64,
}

impl Running {
    /// How the last one stands.
    pub(super) fn look(&self) -> Option<Replay> {
        lock(&self.last).as_ref().map(|run| lock(&run.replay).clone())
    }

    fn is_at_work(&self) -> bool {
        self.look().is_some_and(|replay| matches!(replay.state, "asking" | "folding"))
    }
}

#[derive(Debug)]
struct Run {
    is_cancelled: AtomicBool,
    replay: Mutex<Replay>,
}

/// A reprocessing, as it goes.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Replay {
    /// Counts those that this worker has started.
    id: String,
    /// `asking`, `folding`, `finished`, `failed` or `cancelled`.
    state: &'static str,
    /// Its number; null if nothing has to be asked.
    generation: Option<u32>,
    /// Questions answered.
    asked: usize,
    /// Questions in all.
    total: usize,
    /// Questions given up on.
    parked: usize,
    tokens_in: u64,
    tokens_out: u64,
    /// Null if the price is not known.
    cost_usd: Option<f64>,
    /// What happened, if it did not finish.
    message: Option<String>,
    started_at: String,
}

/// What to reprocess, and how.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags on the command line, too")]
struct Wanted {
    /// From this moment on: `2026-03-01`, `3d`.
    since: Option<String>,
    /// Up to this moment; a day counts whole.
    until: Option<String>,
    /// The name or key of a project.
    project: Option<String>,
    /// The watched program's id of a session, or its beginning.
    session: Option<String>,
    /// Whom to ask.
    provider: Option<String>,
    /// Which model.
    model: Option<String>,
    /// Instructions in place of those in force, as they are: no path from a request is opened. Unless it is a
    /// shadow, they stay in force for new events.
    prompt_text: Option<String>,
    /// Ask again even where a reply under the same prompts is recorded.
    #[serde(default)]
    fresh: bool,
    /// Make it to be compared, not to be shown.
    #[serde(default)]
    shadow: bool,
    /// Only say what it would take.
    #[serde(default)]
    dry_run: bool,
    /// Go beyond what may be spent in a day.
    #[serde(default)]
    yes: bool,
}

/// What it would take.
#[derive(Debug, Serialize, ToSchema)]
struct Estimate {
    /// Events in the range.
    events: u64,
    /// Those that have to be asked about.
    events_to_ask: usize,
    questions: usize,
    /// Calls of a model.
    calls: usize,
    tokens_in: u64,
    tokens_out: u64,
    /// Null if the price is not known.
    cost_usd: Option<f64>,
    provider: String,
    model: String,
    prompt_version: String,
    /// Its number; null if nothing would be different afterwards.
    generation: Option<u32>,
    /// Whether it goes on with one that was interrupted.
    is_begun: bool,
    /// Whether it costs more than is left of the day.
    is_beyond_cap: bool,
}

/// Every reprocessing there was.
#[derive(Debug, Serialize, ToSchema)]
struct Replays {
    /// The latest first.
    items: Vec<Made>,
    /// The one that this worker runs, or ran last.
    running: Option<Replay>,
}

pub(super) fn routes() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new().routes(routes!(list, start)).routes(routes!(progress, cancel))
}

/// Every reprocessing there was, and the one that runs.
#[utoipa::path(get, path = "/api/replays", tag = "replays", security(("token" = [])),
    responses((status = 200, body = Replays), (status = "4XX", body = Problem)))]
async fn list(State(site): State<Arc<Site>>) -> Answer<Replays> {
    let generations = site.read(|store, _| Ok(store.generations()?)).await?;
    let items = generations.into_iter().map(Made::from).collect();
    Ok(Json(Replays { items, running: site.running.look() }))
}

/// Says what a reprocessing would take, or starts it. Without a range, provider, model, prompt, `fresh` or
/// `shadow` memory is rebuilt from the log as it is, without a request to a model.
#[utoipa::path(post, path = "/api/replays", tag = "replays", security(("token" = [])),
    request_body = Wanted,
    responses((status = 200, body = Estimate), (status = 202, body = Replay),
        (status = "4XX", body = Problem)))]
async fn start(
    State(site): State<Arc<Site>>,
    Given(wanted): Given<Wanted>,
) -> Result<Response, Refusal> {
    if !wanted.dry_run && site.running.is_at_work() {
        return Err(Refusal::conflict("a reprocessing is running"));
    }
    let (is_dry, is_meant) = (wanted.dry_run, wanted.yes);
    let (app, store, prepared, is_beyond_cap) = site
        .write(move |_, app| {
            let mut store = store::open(app)?;
            let log = store::open_log(app)?;
            store::fold(&mut store, &log)?;
            let request = request(app, &store, &wanted)?;
            let prepared = Prepared::new(app, &store, &log, &request)
                .map_err(|failure| Refusal::unfit(&failure))?;
            let is_beyond_cap = prepared.is_beyond_cap(app, &store)?;
            let app = App::new(app.environment.clone(), app.paths.clone());
            Ok((app, store, prepared, is_beyond_cap))
        })
        .await?;
    if is_dry {
        return Ok(Json(Estimate::of(&prepared, is_beyond_cap)).into_response());
    }
    if is_beyond_cap && !is_meant {
        let refusal = Refusal::too_expensive("this is more than is left of the day's cap");
        return Err(refusal.remedy("spend it all the same with `yes`"));
    }
    let is_limited = !is_meant && !is_beyond_cap;
    let replay = begin(&site, app, store, prepared, is_limited)?;
    Ok((StatusCode::ACCEPTED, Json(replay)).into_response())
}

fn begin(
    site: &Arc<Site>,
    app: App,
    store: Store,
    prepared: Prepared,
    is_limited: bool,
) -> Result<Replay, Refusal> {
    let replay = Replay {
        id: (site.running.count.fetch_add(1, Ordering::SeqCst) + 1).to_string(),
        state: "asking",
        generation: prepared.is_needed.then_some(prepared.generation),
        asked: 0,
        total: prepared.estimate.requests,
        parked: 0,
        tokens_in: 0,
        tokens_out: 0,
        cost_usd: Some(0.0),
        message: None,
        started_at: rfc3339(super::sessions::now_us(&app)),
    };
    let run =
        Arc::new(Run { is_cancelled: AtomicBool::new(false), replay: Mutex::new(replay.clone()) });
    {
        let mut last = lock(&site.running.last);
        let is_at_work = |run: &Arc<Run>| matches!(lock(&run.replay).state, "asking" | "folding");
        if last.as_ref().is_some_and(is_at_work) {
            return Err(Refusal::conflict("a reprocessing is running"));
        }
        *last = Some(Arc::clone(&run));
    }
    let shared = Arc::clone(&site.shared);
    thread::spawn(move || {
        let _busy = shared.busy();
        let ended = work(&shared, &run, app, store, prepared, is_limited);
        let mut replay = lock(&run.replay);
        (replay.state, replay.message) = match ended {
            Ok(()) => ("finished", None),
            Err(_) if run.is_cancelled.load(Ordering::SeqCst) => {
                ("cancelled", Some("what was answered is kept; start it again to go on".into()))
            }
            Err(failure) => ("failed", Some(failure.parts().0.to_owned())),
        };
        drop(replay);
        tell(&shared, &run);
    });
    Ok(replay)
}

/// Asks, and then draws everything again: the same steps as `claude-mem replay`.
fn work(
    shared: &Arc<Shared>,
    run: &Run,
    mut app: App,
    mut store: Store,
    mut prepared: Prepared,
    is_limited: bool,
) -> Result<(), Failure> {
    if prepared.is_needed {
        let _asking = take_lock(&mut app)?;
        let go_on = |asked: &RunReport| {
            note(run, asked);
            tell(shared, run);
            !run.is_cancelled.load(Ordering::SeqCst)
        };
        let threads = concurrency(&app);
        let asked = prepared.run(&app, &store, (is_limited, threads), &go_on)?;
        note(run, &asked);
        // A reply that could not be appended in time was put aside. It must be in the log before its end.
        let log = store::open_log(&app)?;
        if let Some(failure) = undone(&asked) {
            store::fold(&mut store, &log)?;
            return Err(failure);
        }
        prepared.finish(&app)?;
    }
    lock(&run.replay).state = "folding";
    tell(shared, run);
    let log = store::open_log(&app)?;
    store.rebuild(&log, |_| ())?;
    Ok(())
}

/// Why the generation is not complete, if it is not.
fn undone(asked: &RunReport) -> Option<Failure> {
    match &asked.stopped {
        Some(stopped) => Some(Failure::new(stopped.message())),
        None if asked.parked > 0 => Some(Failure::new("some questions could not be answered")),
        None => None,
    }
}

fn note(run: &Run, asked: &RunReport) {
    let mut replay = lock(&run.replay);
    (replay.asked, replay.parked) = (asked.answered, asked.parked);
    (replay.tokens_in, replay.tokens_out) = (asked.spent.tokens_in, asked.spent.tokens_out);
    replay.cost_usd = asked.spent.cost_micros.map(dollars);
}

fn tell(shared: &Arc<Shared>, run: &Run) {
    let replay = lock(&run.replay).clone();
    shared.tell(shared::Change::Replay {
        generation: replay.generation.unwrap_or(0),
        done: replay.asked,
        total: replay.total,
        is_finished: !matches!(replay.state, "asking" | "folding"),
    });
    if replay.state != "asking" {
        shared.wake();
    }
}

fn request<'a>(app: &App, store: &Store, wanted: &'a Wanted) -> Result<ReplayRequest<'a>, Refusal> {
    let project = given(wanted.project.clone())
        .map(|name| only_recorded_project(store, &name)?.ok_or_else(|| unknown_project(&name)));
    let session = given(wanted.session.clone()).map(|name| session(store, &name));
    Ok(ReplayRequest {
        range: EventFilter {
            since_us: time("since", wanted.since.as_deref())?
                .map(|when| when.start_us(app.clock.now())),
            until_us: time("until", wanted.until.as_deref())?
                .map(|when| when.end_us(app.clock.now())),
            project: project.transpose()?,
            session: session.transpose()?,
        },
        overrides: Overrides {
            provider: given(wanted.provider.clone()).map(|name| provider(&name)).transpose()?,
            model: wanted.model.as_deref().filter(|name| !name.is_empty()),
            prompt: wanted.prompt_text.as_deref().map(Instructions::Text),
            ..Overrides::default()
        },
        is_fresh: wanted.fresh,
        is_shadow: wanted.shadow,
    })
}

fn provider(name: &str) -> Result<ProviderName, Refusal> {
    ProviderName::find(name).ok_or_else(|| Refusal::bad(format!("there is no provider `{name}`")))
}

/// How a reprocessing goes.
#[utoipa::path(get, path = "/api/replays/{id}", tag = "replays", security(("token" = [])),
    params(("id" = String, Path)),
    responses((status = 200, body = Replay), (status = "4XX", body = Problem)))]
async fn progress(State(site): State<Arc<Site>>, Named(id): Named<String>) -> Answer<Replay> {
    let replay = site.running.look().filter(|replay| replay.id == id);
    replay.map(Json).ok_or_else(|| Refusal::not_found(format!("there is no reprocessing {id}")))
}

/// Ends a reprocessing after the questions under way. It can be gone on with.
#[utoipa::path(delete, path = "/api/replays/{id}", tag = "replays", security(("token" = [])),
    params(("id" = String, Path)),
    responses((status = 200, body = Replay), (status = "4XX", body = Problem)))]
async fn cancel(State(site): State<Arc<Site>>, Named(id): Named<String>) -> Answer<Replay> {
    let run = lock(&site.running.last).clone();
    let run = run.filter(|run| lock(&run.replay).id == id);
    let run = run.ok_or_else(|| Refusal::not_found(format!("there is no reprocessing {id}")))?;
    if lock(&run.replay).state == "asking" {
        run.is_cancelled.store(true, Ordering::SeqCst);
    }
    let replay = lock(&run.replay).clone();
    Ok(Json(replay))
}

fn dollars(micros: u64) -> f64 {
    micros as f64 / 1e6
}

impl Estimate {
    fn of(prepared: &Prepared, is_beyond_cap: bool) -> Self {
        let Prepared { estimate, prompt_set, .. } = prepared;
        Self {
            events: prepared.events,
            events_to_ask: estimate.events,
            questions: estimate.requests,
            calls: estimate.calls,
            tokens_in: estimate.spent.tokens_in,
            tokens_out: estimate.spent.tokens_out,
            cost_usd: estimate.spent.cost_micros.map(dollars),
            provider: prompt_set.provider.clone(),
            model: prompt_set.model.clone(),
            prompt_version: prompt_set.version.clone(),
            generation: prepared.is_needed.then_some(prepared.generation),
            is_begun: prepared.is_begun,
            is_beyond_cap,
        }
    }
}
