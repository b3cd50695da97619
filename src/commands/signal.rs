//! Cleans up when a signal ends the process.

use std::{io, process, thread};

use claude_mem_core::os;

use super::ship::runtime;

/// On a termination signal, calls `cleanup` and ends the process, from a separate thread.
pub(super) fn on_signal(cleanup: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let runtime = runtime().map_err(io::Error::other)?;
    let termination = {
        let _runtime = runtime.enter();
        os::termination()?
    };
    thread::spawn(move || {
        runtime.block_on(termination);
        cleanup();
        process::exit(1);
    });
    Ok(())
}
