//! How far something has come: a bar on a terminal, a line now and then elsewhere.

use std::{
    io::{self, IsTerminal, Write},
    sync::atomic::{AtomicUsize, Ordering},
};

use claude_mem_core::safe_text::clean;

/// The bar's own width.
const CELLS: usize = 24;

/// How far something has come.
#[derive(Debug)]
pub(crate) struct Progress {
    what: &'static str,
    total: usize,
    is_terminal: bool,
    tenths: AtomicUsize,
}

impl Progress {
    /// Nothing is done yet of `total`.
    pub(crate) fn new(what: &'static str, total: usize) -> Self {
        let is_terminal = io::stderr().is_terminal();
        Self { what, total, is_terminal, tenths: AtomicUsize::new(0) }
    }

    /// So much is done; `note` says what else there is to say.
    pub(crate) fn show(&self, done: usize, note: &str) {
        let Self { what, total, .. } = self;
        let note = clean(note);
        let tenths = done * 10 / (*total).max(1);
        let is_new = self.tenths.swap(tenths, Ordering::Relaxed) != tenths;
        // Nobody may be watching, which changes nothing about the work.
        let _ = if self.is_terminal {
            let cells = (done * CELLS / (*total).max(1)).min(CELLS);
            let bar = format!("{}{}", "█".repeat(cells), "░".repeat(CELLS - cells));
            write!(io::stderr().lock(), "\r\x1b[K{what} {bar} {done}/{total} {note}")
        } else if is_new {
            writeln!(io::stderr().lock(), "{what}: {done} of {total} {note}")
        } else {
            Ok(())
        };
    }
}

impl Drop for Progress {
    /// Takes the bar away.
    fn drop(&mut self) {
        if self.is_terminal {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}
