//! Runs a short command with a time limit.

use std::{
    io,
    process::{Child, Output},
    sync::mpsc,
    thread,
    time::Duration,
};

use super::ProcessTree;

/// Waits for the output of a started process. `None` if it takes longer; the process and its
/// descendants are then killed.
pub fn output_within(
    child: Child,
    process_tree: &ProcessTree,
    time_max: Duration,
) -> io::Result<Option<Output>> {
    let (done, output) = mpsc::channel();
    let waiter = thread::spawn(move || {
        let _ = done.send(child.wait_with_output());
    });
    if let Ok(output) = output.recv_timeout(time_max) {
        return output.map(Some);
    }
    process_tree.end();
    drop(waiter.join());
    Ok(None)
}
