//! Tells a person who waits what is waited for.

use std::{
    io::{self, IsTerminal, Write},
    sync::{Condvar, Mutex, PoisonError},
    thread,
    time::Duration,
};

use crate::{admission::Gate, asker::Words};
use claude_mem_core::safe_text::clean;

/// Between two looks. A run that ends before the first one says nothing.
const LOOK: Duration = Duration::from_millis(500);

/// Runs something that passes the gate, and says meanwhile on stderr whom it waits for, which attempt that
/// is, what failed before, and when it gives up.
pub(super) fn watched<T>(gate: &Gate, words: &Words, run: impl FnOnce() -> T) -> T {
    let (is_done, done) = (Mutex::new(false), Condvar::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut said = String::new();
            loop {
                let guard = is_done.lock().unwrap_or_else(PoisonError::into_inner);
                let (guard, _) = done
                    .wait_timeout_while(guard, LOOK, |is_done| !*is_done)
                    .unwrap_or_else(PoisonError::into_inner);
                if *guard {
                    return;
                }
                drop(guard);
                let line = gate.waiting(&format!("{} ({})", words.provider, words.model));
                if line != said {
                    say(&line);
                    said = line;
                }
            }
        });
        let result = run();
        *is_done.lock().unwrap_or_else(PoisonError::into_inner) = true;
        done.notify_all();
        result
    })
}

/// A closed stderr must not stop the work.
fn say(line: &str) {
    let mut stderr = io::stderr().lock();
    // There may be a progress bar on this line.
    let clear = if stderr.is_terminal() { "\r\x1b[K" } else { "" };
    let _ = writeln!(stderr, "{clear}{}", clean(line));
}
