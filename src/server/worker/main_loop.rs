//! The thread that follows the log: folds what is new, tells whoever listens, and has questions put.
//!
//! It waits for one bell. A ring says that the log has grown, and a second passes at most until it looks
//! by itself. It alone holds the tables open for writing; answers come back as events, so that folding them
//! is no other matter than folding anything else.

use std::{
    collections::HashSet,
    fs,
    sync::Arc,
    thread,
    time::{Duration, Instant, SystemTime},
};

use claude_mem_log::{Log, Options, maintain};
use claude_mem_projections::{EventFilter, PendingEvent, PendingKind, PendingTurn, Store};

use super::{
    distill_queue::{Asking, Claim, Put},
    throttle::Pace,
    version::is_newer,
};
use crate::shared::{Change, End, Shared};
use claude_mem_core::worker_process::forget_attempts;
use claude_mem_core::{
    app::App,
    failure::Failure,
    os::{self, WakeListener},
    settings::table::WORKER_IDLE,
};
use claude_mem_distill::{Limits, Plan};
use claude_mem_memory::store;

/// What a missed wake-up costs at most.
const LOOK: Duration = Duration::from_secs(1);
/// What was appended is on disk at most this long after it was noticed.
const UNSYNCED_MAX: Duration = Duration::from_millis(500);
/// After something of our own did not work.
const PAUSE: Duration = Duration::from_secs(5);
/// Turns looked at in one round. More than wait in one round come in the next.
const TURNS_MAX: usize = 1000;
/// How long questions under way are waited for at the end.
const END_MAX: Duration = Duration::from_secs(5);

/// Of the database, in memory.
const CACHE_KB: u32 = 512;

/// The thread's own state.
struct Projecting {
    shared: Arc<Shared>,
    bell: WakeListener,
    app: App,
    settings: Option<SystemTime>,
    store: Store,
    asking: Asking,
    seen: Option<Seen>,
    /// When what was appended is to be brought to disk.
    sync_at: Option<Instant>,
    /// When to plan again though nothing has happened.
    plan_at: Option<Instant>,
    /// Answered by us, but perhaps not folded yet.
    answered: HashSet<[u8; 16]>,
    /// Whether something waits that somebody will be asked about by and by.
    has_prospects: bool,
    active: Instant,
    pace: Pace,
    problem: Option<String>,
}

/// What the log looks like from outside.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
struct Seen {
    active: Option<(u64, u64)>,
    spilled: Option<SystemTime>,
    /// Whether the files of the database are no longer those that are open.
    is_database_replaced: bool,
}

/// What there is to ask.
struct Due {
    plan: Plan,
    /// Events that wait, due or not.
    count: u64,
    oldest_us: Option<u64>,
    now_us: u64,
}

/// What ended a wait.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Heard {
    /// Somebody else appended something.
    Growth,
    /// One of our own threads has something to say, or nobody did.
    Nothing,
}

/// Starts the thread. It ends when the worker does.
pub(super) fn start(
    shared: &Arc<Shared>,
    bell: WakeListener,
) -> Result<thread::JoinHandle<()>, Failure> {
    let mut app = shared.app();
    let store = open(&mut app)?;
    let waker = Arc::clone(shared);
    let projecting = Projecting {
        shared: Arc::clone(shared),
        bell,
        settings: settings_time(&app),
        app,
        store,
        asking: Asking::new(Arc::clone(&shared.left), move || waker.wake()),
        seen: None,
        sync_at: None,
        plan_at: Some(Instant::now()),
        answered: HashSet::new(),
        has_prospects: false,
        active: Instant::now(),
        pace: Pace::default(),
        problem: None,
    };
    thread::Builder::new()
        .name("project".into())
        .spawn(move || projecting.run())
        .map_err(|error| Failure::new(format!("no thread can be started: {error}")))
}

/// Opens the database to write to it. What is kept of it in memory must not grow with it.
fn open(app: &mut App) -> Result<Store, Failure> {
    let store = store::open(app)?;
    store.limit_cache(CACHE_KB)?;
    Ok(store)
}

impl Projecting {
    fn run(mut self) {
        let mut heard = Heard::Nothing;
        let mut is_proven = false;
        while !self.shared.is_ending() {
            let began = Instant::now();
            let done = self.round(heard);
            self.pace.worked(began.elapsed());
            if done.is_ok() && !is_proven {
                forget_attempts(&self.shared.paths.data);
                is_proven = true;
            }
            self.report(done.err().map(|failure| failure.in_one_line()));
            self.sync_if_due();
            if self.is_idle() {
                self.shared.end_because(End::Idle);
                break;
            }
            heard = self.wait();
        }
        self.asking.end(END_MAX);
        store::sync_log(&self.app);
    }

    /// Looks, folds, tells, asks.
    fn round(&mut self, heard: Heard) -> Result<(), Failure> {
        let finished = self.asking.finished();
        let seen = self.look();
        let has_grown = self.seen != Some(seen);
        if has_grown {
            // Failures that we record ourselves are no sign of life of anybody.
            if finished.is_empty() || heard == Heard::Growth {
                self.active = Instant::now();
            }
            self.note_growth(heard);
            self.fold()?;
            self.seen = Some(seen);
        } else if heard == Heard::Growth {
            // What another program pulled from other machines, it has folded itself.
            self.shared.tell(Change::Folded);
        }
        if !finished.is_empty() {
            self.shared.board.say(|progress| progress.moved = Instant::now());
        }
        for asked in &finished {
            self.answered.extend(&asked.events);
            if asked.answered > 0 {
                self.active = Instant::now();
            }
        }
        let is_due = self.plan_at.is_some_and(|at| at <= Instant::now());
        if has_grown || is_due || !finished.is_empty() {
            self.plan()?;
        }
        Ok(())
    }

    /// Whether log and database are what they were, by a look at the active segment, at what was put aside, and at the
    /// files of the database.
    fn look(&self) -> Seen {
        let log = self.shared.paths.log();
        let spilled = fs::metadata(log.join("spill")).ok();
        Seen {
            active: os::inode_and_len(&log.join("active.log")).ok(),
            spilled: spilled.and_then(|found| found.modified().ok()),
            is_database_replaced: self.store.is_replaced() || self.store.is_wal_replaced(),
        }
    }

    fn fold(&mut self) -> Result<(), Failure> {
        let dir = self.shared.paths.log();
        let settings = settings_time(&self.app);
        if settings != self.settings {
            self.app = self.shared.app();
            // Which types a memory can have is a setting, too.
            self.store = open(&mut self.app)?;
            self.settings = settings;
        }
        if self.seen.is_none_or(|seen| seen.spilled != self.look().spilled) {
            // The log can be read however that goes.
            let _ = maintain(&dir, &Options::default());
        }
        let log = Log::open(&dir, Options::default())?;
        let shared = &self.shared;
        let folded = self.store.catch_up(&log, |_| shared.board.say(|_| ()))?;
        tracing::debug!(events = folded.events, "indexed");
        self.shared.tell(Change::Folded);
        Ok(())
    }

    /// Has everything put that is due, and finds out when there will be more.
    fn plan(&mut self) -> Result<(), Failure> {
        self.plan_at = Some(Instant::now() + PAUSE);
        let mut due = self.due()?;
        if !due.plan.is_empty() && self.asking.claim(&self.shared.paths.data)? == Claim::New {
            // Another process may have asked, and spent, until now.
            self.fold()?;
            due = self.due()?;
        }
        let Due { plan, count, oldest_us, now_us } = due;
        let before = self.asking.underway();
        let put = self.asking.put(&self.app, &self.store, plan)?;
        let has_moved = self.asking.underway() != before;
        self.plan_at = self.next_plan(&put, oldest_us, now_us, &Limits::default());
        self.has_prospects = count > 0 && !matches!(put, Put::Closed(..));
        self.publish(count, &put, has_moved);
        Ok(())
    }

    /// Finds out what is due, and what waits.
    fn due(&mut self) -> Result<Due, Failure> {
        let mut turns = self.store.pending_turns(&EventFilter::default(), TURNS_MAX)?;
        self.forget_folded(&turns);
        for turn in &mut turns {
            turn.pending.retain(|pending| !self.answered.contains(pending.id.as_bytes()));
        }
        turns.retain(|turn| {
            let newest = turn.pending.iter().map(|pending| pending.at_us).max();
            !self.shared.left.keeps(&turn.content_session, newest.unwrap_or(0))
        });
        let count = asked_about(&turns).count() as u64;
        turns.retain(|turn| !self.asking.is_left_alone(&turn.content_session));
        let oldest_us = asked_about(&turns).map(|pending| pending.at_us).min();
        let limits = Limits::default();
        let now_us = self.app.clock.now().as_microsecond().cast_unsigned();
        let plan = Plan::new(&self.store, turns, None, &limits, now_us)?;
        Ok(Due { plan, count, oldest_us, now_us })
    }

    /// What is folded is not outstanding any more.
    fn forget_folded(&mut self, turns: &[PendingTurn]) {
        if !self.answered.is_empty() {
            let waiting: HashSet<[u8; 16]> = turns
                .iter()
                .flat_map(|turn| &turn.pending)
                .map(|pending| *pending.id.as_bytes())
                .collect();
            self.answered.retain(|id| waiting.contains(id));
        }
    }

    fn next_plan(
        &self,
        put: &Put,
        oldest_us: Option<u64>,
        now_us: u64,
        limits: &Limits,
    ) -> Option<Instant> {
        let now = Instant::now();
        let again = match put {
            Put::Closed(_, left) => Some(now + *left),
            Put::Elsewhere => Some(now + LOOK),
            Put::Done => None,
        };
        // A turn that does not end is asked about when it is old enough.
        let old_us = oldest_us.zip(limits.age_max_us).map(|(oldest, age)| oldest + age);
        let old = old_us
            .filter(|old_us| *old_us > now_us)
            .map(|old_us| now + Duration::from_micros(old_us - now_us));
        [again, old, self.asking.next_release()].into_iter().flatten().min()
    }

    fn publish(&self, waiting: u64, put: &Put, has_moved: bool) {
        let asking = self.asking.underway();
        let (provider, model) = self.asking.who().unwrap_or_default();
        let before = self.shared.board.read();
        self.shared.board.say(|progress| {
            progress.provider = provider.into();
            progress.model = model.into();
            progress.asking = asking;
            progress.sessions = self.asking.sessions().to_vec();
            progress.waiting = waiting;
            progress.unconfirmed = self.answered.len();
            progress.closed = match put {
                Put::Closed(why, left) => Some((why.clone(), Instant::now() + *left)),
                _ => None,
            };
            if has_moved {
                progress.moved = Instant::now();
            }
        });
        if (before.asking, before.waiting) != (asking, waiting) {
            self.shared.tell(Change::Processing { is_processing: asking > 0, waiting });
        }
    }

    /// A problem is told once, however long it lasts.
    fn report(&mut self, problem: Option<String>) {
        self.shared.board.say(|progress| progress.problem.clone_from(&problem));
        if let Some(message) = &problem
            && self.problem != problem
        {
            tracing::error!("{message}");
        }
        if problem.is_some() {
            // The next look is to see everything anew.
            self.seen = None;
        }
        self.problem = problem;
    }

    fn note_growth(&mut self, heard: Heard) {
        // If nobody said so it may be a second ago already.
        let delay = if heard == Heard::Growth { UNSYNCED_MAX } else { Duration::ZERO };
        self.sync_at.get_or_insert(Instant::now() + delay);
    }

    fn sync_if_due(&mut self) {
        if self.sync_at.is_some_and(|at| at <= Instant::now()) {
            self.sync_at = None;
            self.shared.sync();
        }
    }

    /// Waits for a ring, for whatever is due next, or for a second; and for as long as it has to rest.
    fn wait(&mut self) -> Heard {
        let began = Instant::now();
        thread::sleep(self.pace.rest());
        let now = Instant::now();
        let until = |at: Instant| at.saturating_duration_since(now);
        let sync = self.sync_at.map(until);
        let plan = self.plan_at.map(until);
        let pause = if self.problem.is_some() { PAUSE } else { LOOK };
        let pause = [sync, plan].into_iter().flatten().fold(pause, Duration::min);
        self.bell.wait(pause);
        self.pace.rested(began.elapsed());
        self.drain()
    }

    /// Takes all wake-ups at once. One of our own has no version in it.
    fn drain(&self) -> Heard {
        let mut heard = Heard::Nothing;
        let mut version = [0; 64];
        while let Some(len) = self.bell.take(&mut version) {
            if len == 0 {
                continue;
            }
            heard = Heard::Growth;
            let theirs = String::from_utf8_lossy(&version[..len]);
            if is_newer(&theirs, &self.shared.presence.version) {
                // Whoever sent it finds nobody next time, and starts its own.
                self.shared.end_because(End::Replaced);
            }
        }
        heard
    }

    /// Whether there was nothing to do for so long that it is time to go.
    fn is_idle(&self) -> bool {
        let seconds = self.app.settings.get(&WORKER_IDLE);
        let idle = Duration::from_secs(seconds);
        seconds > 0
            && self.asking.underway() == 0
            && !self.has_prospects
            && self.active.elapsed() >= idle
            && self.shared.is_quiet_for(idle)
    }
}

fn settings_time(app: &App) -> Option<SystemTime> {
    fs::metadata(app.paths.settings()).ok()?.modified().ok()
}

/// What somebody will be asked about. That is not the end of a subagent alone.
fn asked_about(turns: &[PendingTurn]) -> impl Iterator<Item = &PendingEvent> {
    turns
        .iter()
        .flat_map(|turn| &turn.pending)
        .filter(|pending| matches!(pending.what, PendingKind::ToolUse | PendingKind::Stop))
}
