//! Progress of long work: a bar on a terminal, a line for every tenth elsewhere.

use std::{
    io::{self, Write},
    sync::atomic::{AtomicUsize, Ordering},
};

use claude_mem_core::safe_text::clean;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// `distilling ███▉      12/60 requests, 30 tokens (20%, 4s left)`
const TEMPLATE: &str = "{prefix} {bar:24} {pos}/{len} {msg} ({percent}%, {eta} left)";

/// Progress of one task. Dropping it removes the bar.
#[derive(Debug)]
pub(crate) struct Progress {
    task: &'static str,
    bar: ProgressBar,
    tenths: AtomicUsize,
}

impl Progress {
    /// Starts a task of `total` steps.
    pub(crate) fn new(task: &'static str, total: usize) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(TEMPLATE);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("█▉ "));
        bar.set_prefix(task);
        Self { task, bar, tenths: AtomicUsize::new(0) }
    }

    /// Shows that `done` steps are finished, with a note.
    pub(crate) fn show(&self, done: usize, note: &str) {
        let note = clean(note);
        if !self.bar.is_hidden() {
            self.bar.set_message(note.into_owned());
            self.bar.set_position(done as u64);
            return;
        }
        let total = self.bar.length().unwrap_or(0) as usize;
        let tenths = done * 10 / total.max(1);
        if self.tenths.swap(tenths, Ordering::Relaxed) != tenths {
            // A closed stderr must not stop the work.
            let _ = writeln!(io::stderr().lock(), "{}: {done} of {total} {note}", self.task);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
