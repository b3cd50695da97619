//! Reprocessing: estimate, start, progress and cancellation.

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
    error::{ApiError, ApiResult, JsonBody, PathParam},
    feed::given,
    generations::GenerationSummary,
    state::{AppState, lock},
    time_params::{rfc3339, time},
};
use crate::shared::{self, Shared};
use claude_mem_core::{app::App, failure::Failure, settings::ProviderName};
use claude_mem_distill::{
    Overrides, PreparedReplay, ReplayOptions, ReplayRequest, RunReport, concurrency,
    prompts::Instructions, take_lock,
};
use claude_mem_memory::{
    resolve::{only_recorded_project, session, unknown_project},
    store,
};

/// The current or last reprocessing.
#[derive(Debug, Default)]
pub(super) struct CurrentReplay {
    last: Mutex<Option<Arc<Run>>>,
    count: AtomicU64,
}

impl CurrentReplay {
    pub(super) fn look(&self) -> Option<Replay> {
        lock(&self.last).as_ref().map(|run| lock(&run.replay).clone())
    }

    fn is_running(&self) -> bool {
        self.look().is_some_and(|replay| matches!(replay.state, "distilling" | "folding"))
    }
}

#[derive(Debug)]
struct Run {
    is_cancelled: AtomicBool,
    replay: Mutex<Replay>,
}

/// Progress of a reprocessing.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Replay {
    /// Counter of reprocessings in this worker.
    id: String,
    /// `distilling`, `folding`, `finished`, `failed` or `cancelled`.
    state: &'static str,
    /// Generation; null if no request is needed.
    generation: Option<u32>,
    /// Completed requests.
    answered: usize,
    /// All requests.
    total: usize,
    /// Parked requests.
    parked: usize,
    tokens_in: u64,
    tokens_out: u64,
    /// Null if the price is unknown.
    cost_usd: Option<f64>,
    /// The reason, if it did not finish.
    message: Option<String>,
    started_at: String,
}

/// Selection and options of a reprocessing.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "the same flags as on the command line")]
struct ReplayBody {
    /// Start time: `2026-03-01`, `3d`.
    since: Option<String>,
    /// End time; a date includes the whole day.
    until: Option<String>,
    /// Project name or key.
    project: Option<String>,
    /// Session ID of the client, or a prefix of it.
    session: Option<String>,
    /// Provider.
    provider: Option<String>,
    /// Model.
    model: Option<String>,
    /// Text of the instructions, not a path: no path from a request is opened. Unless `shadow` is
    /// set, they apply to new events, too.
    prompt_text: Option<String>,
    /// Ignore recorded responses and send every request again.
    #[serde(default)]
    fresh: bool,
    /// Keep the current memories; only compare.
    #[serde(default)]
    shadow: bool,
    /// Only estimate.
    #[serde(default)]
    dry_run: bool,
    /// Exceed the daily cap.
    #[serde(default)]
    yes: bool,
}

/// Estimate of a reprocessing.
#[derive(Debug, Serialize, ToSchema)]
struct Estimate {
    /// Selected events.
    events: u64,
    /// Events that need a request.
    events_to_distill: usize,
    requests: usize,
    /// Model calls.
    calls: usize,
    tokens_in: u64,
    tokens_out: u64,
    /// Null if the price is unknown.
    cost_usd: Option<f64>,
    provider: String,
    model: String,
    prompt_version: String,
    /// Generation; null if nothing would change.
    generation: Option<u32>,
    /// Whether it continues an interrupted one.
    is_begun: bool,
    /// Whether it exceeds the daily cap.
    is_beyond_cap: bool,
}

/// All reprocessings.
#[derive(Debug, Serialize, ToSchema)]
struct Replays {
    /// Latest first.
    items: Vec<GenerationSummary>,
    /// The current or last reprocessing of this worker.
    running: Option<Replay>,
}

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(list, start)).routes(routes!(progress, cancel))
}

/// Lists reprocessings, and the current one.
#[utoipa::path(get, path = "/api/replays", tag = "replays",
    responses((status = 200, body = Replays)))]
async fn list(State(state): State<Arc<AppState>>) -> ApiResult<Replays> {
    let generations = state.read(|store, _| Ok(store.generations()?)).await?;
    let items = generations.into_iter().map(GenerationSummary::from).collect();
    Ok(Json(Replays { items, running: state.running.look() }))
}

/// Estimates or starts a reprocessing. Without a range, provider, model, prompt, `fresh` or
/// `shadow` it rebuilds the database from the log, and sends no request.
#[utoipa::path(post, path = "/api/replays", tag = "replays", request_body = ReplayBody,
    responses((status = 200, body = Estimate), (status = 202, body = Replay)))]
async fn start(
    State(state): State<Arc<AppState>>,
    JsonBody(body): JsonBody<ReplayBody>,
) -> Result<Response, ApiError> {
    if !body.dry_run && state.running.is_running() {
        return Err(ApiError::conflict("a reprocessing is running"));
    }
    let (is_dry, is_meant) = (body.dry_run, body.yes);
    let (app, store, prepared, is_beyond_cap) = state
        .write(move |_, app| {
            let mut store = store::open(app)?;
            let log = store::open_log(app)?;
            store::fold(&mut store, &log)?;
            let request = request(app, &store, &body)?;
            let prepared = PreparedReplay::new(app, &store, &log, &request)
                .map_err(|failure| ApiError::unfit(&failure))?;
            let is_beyond_cap = prepared.is_beyond_cap(app, &store)?;
            let app = App::new(app.environment.clone(), app.paths.clone());
            Ok((app, store, prepared, is_beyond_cap))
        })
        .await?;
    if is_dry {
        return Ok(Json(Estimate::of(&prepared, is_beyond_cap)).into_response());
    }
    if is_beyond_cap && !is_meant {
        let refusal = ApiError::too_expensive("this exceeds the daily cap");
        return Err(refusal.remedy("exceed the cap with `yes`"));
    }
    let is_limited = !is_meant && !is_beyond_cap;
    let replay = begin(&state, app, store, prepared, is_limited)?;
    Ok((StatusCode::ACCEPTED, Json(replay)).into_response())
}

fn begin(
    state: &Arc<AppState>,
    app: App,
    store: Store,
    prepared: PreparedReplay,
    is_limited: bool,
) -> Result<Replay, ApiError> {
    let replay = Replay {
        id: (state.running.count.fetch_add(1, Ordering::SeqCst) + 1).to_string(),
        state: "distilling",
        generation: prepared.is_needed.then_some(prepared.generation),
        answered: 0,
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
        let mut last = lock(&state.running.last);
        let is_running =
            |run: &Arc<Run>| matches!(lock(&run.replay).state, "distilling" | "folding");
        if last.as_ref().is_some_and(is_running) {
            return Err(ApiError::conflict("a reprocessing is running"));
        }
        *last = Some(Arc::clone(&run));
    }
    let shared = Arc::clone(&state.shared);
    thread::spawn(move || {
        let _busy = shared.busy();
        let ended = work(&shared, &run, app, store, prepared, is_limited);
        let mut replay = lock(&run.replay);
        (replay.state, replay.message) = match ended {
            Ok(()) => ("finished", None),
            Err(_) if run.is_cancelled.load(Ordering::SeqCst) => {
                ("cancelled", Some("responses are kept; start it again to continue".into()))
            }
            Err(failure) => ("failed", Some(failure.parts().0.to_owned())),
        };
        drop(replay);
        notify(&shared, &run);
    });
    Ok(replay)
}

/// Distills and folds, or rebuilds the database: the same steps as `claude-mem replay`.
fn work(
    shared: &Arc<Shared>,
    run: &Run,
    mut app: App,
    mut store: Store,
    mut prepared: PreparedReplay,
    is_limited: bool,
) -> Result<(), Failure> {
    if !prepared.is_needed {
        lock(&run.replay).state = "folding";
        notify(shared, run);
        store.rebuild(&store::open_log(&app)?, |_| ())?;
        return Ok(());
    }
    let _lock = take_lock(&mut app)?;
    let should_continue = |report: &RunReport| {
        note(run, report);
        notify(shared, run);
        !run.is_cancelled.load(Ordering::SeqCst)
    };
    let concurrency = concurrency(&app);
    let options =
        ReplayOptions { is_limited, concurrency, allows_gaps: false, prints_waiting: false };
    prepared.run(&app, &mut store, &options, &should_continue)?;
    Ok(())
}

fn note(run: &Run, report: &RunReport) {
    let mut replay = lock(&run.replay);
    (replay.answered, replay.parked) = (report.answered, report.parked);
    (replay.tokens_in, replay.tokens_out) = (report.spent.tokens_in, report.spent.tokens_out);
    replay.cost_usd = report.spent.cost_micros.map(dollars);
}

fn notify(shared: &Arc<Shared>, run: &Run) {
    let replay = lock(&run.replay).clone();
    shared.notify(shared::Change::Replay {
        generation: replay.generation.unwrap_or(0),
        done: replay.answered,
        total: replay.total,
        is_finished: !matches!(replay.state, "distilling" | "folding"),
    });
    if replay.state != "distilling" {
        shared.wake();
    }
}

fn request<'a>(
    app: &App,
    store: &Store,
    body: &'a ReplayBody,
) -> Result<ReplayRequest<'a>, ApiError> {
    let project = given(body.project.clone())
        .map(|name| only_recorded_project(store, &name)?.ok_or_else(|| unknown_project(&name)));
    let session = given(body.session.clone()).map(|name| session(store, &name));
    Ok(ReplayRequest {
        range: EventFilter {
            since_us: time("since", body.since.as_deref())?
                .map(|when| when.start_us(app.clock.now())),
            until_us: time("until", body.until.as_deref())?
                .map(|when| when.end_us(app.clock.now())),
            project: project.transpose()?,
            session: session.transpose()?,
        },
        overrides: Overrides {
            provider: given(body.provider.clone()).map(|name| provider(&name)).transpose()?,
            model: body.model.as_deref().filter(|name| !name.is_empty()),
            prompt: body.prompt_text.as_deref().map(Instructions::Text),
            ..Overrides::default()
        },
        is_fresh: body.fresh,
        is_shadow: body.shadow,
    })
}

fn provider(name: &str) -> Result<ProviderName, ApiError> {
    ProviderName::find(name).ok_or_else(|| ApiError::bad(format!("there is no provider `{name}`")))
}

/// Returns the progress of a reprocessing.
#[utoipa::path(get, path = "/api/replays/{id}", tag = "replays", params(("id" = String, Path)),
    responses((status = 200, body = Replay)))]
async fn progress(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<String>,
) -> ApiResult<Replay> {
    let replay = state.running.look().filter(|replay| replay.id == id);
    replay.map(Json).ok_or_else(|| ApiError::not_found(format!("there is no reprocessing {id}")))
}

/// Cancels a reprocessing after the current requests. It can be continued.
#[utoipa::path(delete, path = "/api/replays/{id}", tag = "replays", params(("id" = String, Path)),
    responses((status = 200, body = Replay)))]
async fn cancel(
    State(state): State<Arc<AppState>>,
    PathParam(id): PathParam<String>,
) -> ApiResult<Replay> {
    let run = lock(&state.running.last).clone();
    let run = run.filter(|run| lock(&run.replay).id == id);
    let run = run.ok_or_else(|| ApiError::not_found(format!("there is no reprocessing {id}")))?;
    if lock(&run.replay).state == "distilling" {
        run.is_cancelled.store(true, Ordering::SeqCst);
    }
    let replay = lock(&run.replay).clone();
    Ok(Json(replay))
}

fn dollars(micros: u64) -> f64 {
    micros as f64 / 1e6
}

impl Estimate {
    fn of(prepared: &PreparedReplay, is_beyond_cap: bool) -> Self {
        let PreparedReplay { estimate, prompt_set, .. } = prepared;
        Self {
            events: prepared.events,
            events_to_distill: estimate.events,
            requests: estimate.requests,
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
