//! Progress of long work: a bar on a terminal, with percent, rate and remaining time.
//!
//! Work that ends within half a second shows nothing. Reporting only stores numbers: one thread
//! draws, so that a million reports cause only a few hundred redraws, and the bar moves even
//! between reports.

use std::{
    fmt,
    io::{self, IsTerminal as _, Write as _},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use indicatif::{
    DecimalBytes, HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState,
    ProgressStyle,
};

use crate::safe_text::clean;

const ITEMS: &str =
    "{spinner} {prefix} {bar:12} {percent:>3}%  {human_pos}/{human_len}{rate}{left} {wide_msg}";
const BYTES: &str = "\
    {spinner} {prefix} {bar:12} {percent:>3}%  {decimal_bytes}/{decimal_total_bytes}{rate}{left} \
    {wide_msg}";
const UNKNOWN: &str = "{spinner} {prefix} {elapsed} {wide_msg}";
/// Shorter work shows nothing.
const DELAY: Duration = Duration::from_millis(500);
const REDRAW: Duration = Duration::from_millis(200);

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Items,
    Bytes,
}

/// A task in progress. Dropping it removes its bar.
#[derive(Debug)]
pub struct Progress {
    task: Arc<Task>,
    /// Without a terminal: a line on stderr for every tenth.
    has_lines: bool,
    tenths: AtomicU64,
}

#[derive(Debug)]
struct Task {
    name: String,
    unit: Unit,
    started: Instant,
    /// Shown until something is printed: the output itself then shows progress.
    is_until_output: bool,
    done: AtomicU64,
    total: AtomicU64,
    note: Mutex<String>,
}

impl Progress {
    /// Starts a task of `total` steps; 0 if the number is not known.
    pub fn items(name: &str, total: usize) -> Self {
        Self::start(name, Unit::Items, total as u64, false)
    }

    /// Starts a task that reads or writes `total` bytes.
    pub fn bytes(name: &str, total: u64) -> Self {
        Self::start(name, Unit::Bytes, total, false)
    }

    /// Shows that a command is running, until it prints something.
    pub fn until_output(name: &str) -> Self {
        Self::start(name, Unit::Items, 0, true)
    }

    fn start(name: &str, unit: Unit, total: u64, is_until_output: bool) -> Self {
        let task = Arc::new(Task {
            name: name.to_owned(),
            unit,
            started: Instant::now(),
            is_until_output,
            done: AtomicU64::new(0),
            total: AtomicU64::new(total),
            note: Mutex::default(),
        });
        if io::stderr().is_terminal() {
            board().add(&task);
        }
        Self { task, has_lines: false, tenths: AtomicU64::new(0) }
    }

    /// Without a terminal, prints a line for every tenth.
    #[must_use]
    pub fn with_lines(mut self) -> Self {
        self.has_lines = true;
        self
    }

    /// Shows that `done` steps or bytes are finished, with a note.
    pub fn show(&self, done: u64, note: &str) {
        self.task.done.store(done, Ordering::Relaxed);
        let note = clean(note);
        if self.has_lines && !io::stderr().is_terminal() {
            let total = self.task.total.load(Ordering::Relaxed);
            let tenths = done * 10 / total.max(1);
            if self.tenths.swap(tenths, Ordering::Relaxed) != tenths {
                // A closed stderr must not stop the work.
                let name = &self.task.name;
                let _ = writeln!(io::stderr().lock(), "{name}: {done} of {total} {note}");
            }
            return;
        }
        let mut shown = lock(&self.task.note);
        if *shown != note {
            *shown = note.into_owned();
        }
    }

    /// Shows that this many more steps or bytes are finished.
    pub fn advance(&self, more: u64) {
        self.task.done.fetch_add(more, Ordering::Relaxed);
    }

    /// Corrects the number of steps or bytes.
    pub fn set_total(&self, total: u64) {
        self.task.total.store(total, Ordering::Relaxed);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        board().remove(&self.task);
    }
}

/// Removes the bar from the screen before something is printed. A task in progress draws it again.
pub fn make_room() {
    let mut board = board();
    board.clear();
    board.tasks.retain(|task| !task.is_until_output);
}

/// Tasks in progress. The one that started last is drawn.
#[derive(Debug)]
struct RunningTasks {
    tasks: Vec<Arc<Task>>,
    drawn: Option<(Arc<Task>, ProgressBar)>,
}

static BOARD: Mutex<RunningTasks> = Mutex::new(RunningTasks { tasks: Vec::new(), drawn: None });
/// Whether the thread that draws is running.
static IS_DRAWING: AtomicBool = AtomicBool::new(false);

impl RunningTasks {
    fn add(&mut self, task: &Arc<Task>) {
        self.tasks.push(Arc::clone(task));
        if !IS_DRAWING.swap(true, Ordering::Relaxed) {
            thread::spawn(draw);
        }
    }

    fn remove(&mut self, task: &Arc<Task>) {
        self.tasks.retain(|other| !Arc::ptr_eq(other, task));
        if self.drawn.as_ref().is_some_and(|(drawn, _)| Arc::ptr_eq(drawn, task)) {
            self.clear();
        }
    }

    fn clear(&mut self) {
        if let Some((_, bar)) = self.drawn.take() {
            bar.finish_and_clear();
        }
    }

    fn redraw(&mut self) {
        let due = self.tasks.iter().rfind(|task| task.started.elapsed() >= DELAY);
        let Some(task) = due.cloned() else { return };
        if self.drawn.as_ref().is_none_or(|(drawn, _)| !Arc::ptr_eq(drawn, &task)) {
            self.clear();
            let bar = task.bar();
            self.drawn = Some((task, bar));
        }
        if let Some((task, bar)) = &self.drawn {
            bar.set_length(task.total.load(Ordering::Relaxed));
            bar.set_message(lock(&task.note).clone());
            bar.set_position(task.done.load(Ordering::Relaxed));
            bar.tick();
        }
    }
}

impl Task {
    fn bar(&self) -> ProgressBar {
        let template = match self.unit {
            _ if self.total.load(Ordering::Relaxed) == 0 => UNKNOWN,
            Unit::Items => ITEMS,
            Unit::Bytes => BYTES,
        };
        let unit = self.unit;
        let style = ProgressStyle::with_template(template)
            .map_or_else(|_| ProgressStyle::default_bar(), |style| style.progress_chars("█▉ "))
            .with_key("rate", move |state: &ProgressState, text: &mut dyn fmt::Write| {
                let rate = rate(state) as u64;
                let _ = match unit {
                    _ if rate == 0 => Ok(()),
                    Unit::Items => write!(text, ", {}/s", HumanCount(rate)),
                    Unit::Bytes => write!(text, ", {}/s", DecimalBytes(rate)),
                };
            })
            .with_key("left", |state: &ProgressState, text: &mut dyn fmt::Write| {
                let steps = state.len().unwrap_or(0).saturating_sub(state.pos());
                let rate = rate(state);
                if steps > 0 && rate > 0.0 {
                    let left = Duration::try_from_secs_f64(steps as f64 / rate).unwrap_or_default();
                    let _ = write!(text, ", {:#} left", HumanDuration(left));
                }
            });
        // Four calls change the bar at each redraw, and draw at most as often as this.
        let target = ProgressDrawTarget::stderr_with_hz(5);
        ProgressBar::with_draw_target(None, target)
            .with_style(style)
            .with_prefix(self.name.clone())
            .with_elapsed(self.started.elapsed())
    }
}

/// Steps or bytes per second since the start. The bar's own estimate would start when it is first
/// drawn, and include all earlier work.
fn rate(state: &ProgressState) -> f64 {
    let elapsed = state.elapsed().as_secs_f64();
    if elapsed > 0.0 { state.pos() as f64 / elapsed } else { 0.0 }
}

/// Draws while there are tasks.
fn draw() {
    loop {
        thread::sleep(REDRAW);
        let mut board = board();
        if board.tasks.is_empty() {
            IS_DRAWING.store(false, Ordering::Relaxed);
            return;
        }
        board.redraw();
    }
}

fn board() -> MutexGuard<'static, RunningTasks> {
    lock(&BOARD)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
