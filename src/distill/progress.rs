//! Progress messages on stderr while a run waits for the provider.

use std::{
    io::{self, Write},
    sync::{Condvar, Mutex, PoisonError},
    thread,
    time::Duration,
};

use crate::{admission::Admission, prompt_set::PromptSet};
use claude_mem_core::{os::stderr_columns, progress::make_room, safe_text::clean, wrap::wrap};

/// Polling interval. A run that ends before the first one prints nothing.
const POLL: Duration = Duration::from_millis(500);

/// Runs `run` and prints progress on stderr: the provider, the attempt, the last failure, and when
/// retries stop.
pub(super) fn with_progress<T>(
    admission: &Admission,
    prompt_set: &PromptSet,
    run: impl FnOnce() -> T,
) -> T {
    // The built-in rules are in this process: there is nothing to wait for.
    if prompt_set.is_free() {
        return run();
    }
    let (is_done, done) = (Mutex::new(false), Condvar::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut printed = String::new();
            loop {
                let guard = is_done.lock().unwrap_or_else(PoisonError::into_inner);
                let (guard, _) = done
                    .wait_timeout_while(guard, POLL, |is_done| !*is_done)
                    .unwrap_or_else(PoisonError::into_inner);
                if *guard {
                    return;
                }
                drop(guard);
                let line = admission
                    .wait_message(&format!("{} ({})", prompt_set.provider, prompt_set.model));
                if line != printed {
                    print(&line);
                    printed = line;
                }
            }
        });
        let result = run();
        *is_done.lock().unwrap_or_else(PoisonError::into_inner) = true;
        done.notify_all();
        result
    })
}

/// Ignores a closed stderr: it must not stop the run.
fn print(line: &str) {
    make_room();
    let line = clean(line);
    let line = match stderr_columns() {
        Some(columns) => wrap(&line, columns),
        None => line.into_owned(),
    };
    let _ = writeln!(io::stderr().lock(), "{line}");
}
