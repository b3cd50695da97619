//! Progress of reading logs, by the bytes before a position.

use std::{
    io::{self, IsTerminal as _},
    path::Path,
};

use claude_mem_core::progress::Progress;
use claude_mem_log::{Log, Seq};
use claude_mem_projections::{host_logs, host_of, local_seq};

/// A task that reads logs.
#[derive(Debug)]
pub struct LogProgress {
    progress: Progress,
    /// Host, number and start of each segment, in the order in which they are read.
    starts: Vec<(u8, u64, u64)>,
}

impl LogProgress {
    /// Progress of reading our own log, and then those of other hosts below a folder. Without a
    /// terminal it does nothing.
    pub fn new(name: &str, own: &Log, others: Option<&Path>) -> Self {
        let (mut starts, mut total) = (Vec::new(), 0);
        if io::stderr().is_terminal() {
            let others = others.and_then(|folder| host_logs(folder).ok()).unwrap_or_default();
            let others = others.iter().map(|other| (other.host.number, &other.log));
            for (host, log) in [(0, own)].into_iter().chain(others) {
                for segment in log.segments().unwrap_or_default() {
                    starts.push((host, segment.number, total));
                    total += segment.bytes;
                }
            }
        }
        Self { progress: Progress::bytes(name, total), starts }
    }

    /// Shows that everything before this position is finished.
    pub fn show(&self, position: Seq) {
        let (host, place) = (host_of(position), local_seq(position));
        let is_before = |start: &&(u8, u64, u64)| start.0 == host && start.1 <= place.segment();
        if let Some((_, _, before)) = self.starts.iter().rfind(is_before) {
            self.progress.show(before + place.offset(), "");
        }
    }
}
