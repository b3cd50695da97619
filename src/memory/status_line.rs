//! One line about memory, for the status line of a client.
//!
//! A client runs it after every message, so it only reads: it does not index, lock for writing or
//! create anything. Events that are not indexed yet are counted from the end of the log.

use std::{fmt, path::Path};

use claude_mem_capture::{excluded_by, project::ProjectId};
use claude_mem_core::{app::App, format::count};
use claude_mem_events::{Event, ObservationRef, Recorded, Seq, StopScope};
use claude_mem_log::{Item, Log, Options};
use claude_mem_projections::{Error, Store};

/// How much of the log after the index is read: takes about two milliseconds.
const LOOK_BYTES_MAX: usize = 2 << 20;

/// What the line is about.
#[derive(Debug)]
pub struct StatusLineRequest<'a> {
    /// The client's id of the session; empty if there is none.
    pub session: &'a str,
    pub project: &'a ProjectId,
    pub cwd: &'a Path,
}

/// The content of the line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StatusLine {
    /// Observations of the project.
    pub memories: u64,
    /// Observations that the session received in full.
    pub given: u64,
    /// Events of this machine that are not distilled.
    pub pending: u64,
    /// The most important problem, in a few words.
    pub problem: Option<String>,
}

/// Reads the numbers. Without a database, all events in the log are pending.
pub fn status_line(
    app: &App,
    store: Option<&Store>,
    request: &StatusLineRequest<'_>,
) -> Result<StatusLine, Error> {
    let mut given = Vec::new();
    let mut line = StatusLine::default();
    let mut position = Seq::START;
    if let Some(store) = store {
        let counts = store.status_line_counts(&request.project.key)?;
        line.memories = counts.memories;
        line.pending = counts.pending;
        line.problem = (counts.parked > 0).then(|| format!("{} parked", counts.parked));
        given = store.injected_in(request.session, Seq::START)?;
        position = store.checkpoint()?.position;
    }
    if app.paths.log().exists() {
        let log = Log::open(&app.paths.log(), Options::default())?;
        line.pending += behind(&log, position, request.session, &mut given)?;
    }
    let is_first = |(at, seen): (usize, &ObservationRef)| !given[..at].contains(seen);
    line.given = given.iter().enumerate().filter(|found| is_first(*found)).count() as u64;
    let home = app.paths.home.as_deref();
    if excluded_by(&app.settings, request.project, request.cwd, home).is_some() {
        line.problem = Some("not recorded".into());
    }
    Ok(line)
}

/// Counts pending events after `position`, and adds the observations that the session received
/// there.
fn behind(
    log: &Log,
    position: Seq,
    session: &str,
    given: &mut Vec<ObservationRef>,
) -> Result<u64, Error> {
    let mut reader = log.read_from(position);
    let (mut pending, mut bytes) = (0, 0);
    while let Some(item) = reader.next()?
        && bytes < LOOK_BYTES_MAX
    {
        let Item::Record(entry) = item else { continue };
        bytes += entry.payload.len();
        let recorded = Recorded::from_entry(&entry);
        match recorded.event {
            Event::ToolUsed(_) => pending += 1,
            Event::SummaryRequested(stop) if stop.scope == StopScope::Turn => pending += 1,
            Event::MemoryInjected(injected) if recorded.envelope.session == session => {
                given.extend(injected.observations);
            }
            _ => {}
        }
    }
    Ok(pending)
}

impl fmt::Display for StatusLine {
    /// `claude-mem 128 memories · 5 given · 3 pending`
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "claude-mem {}", count(self.memories, "memory"))?;
        for (number, what) in [(self.given, "given"), (self.pending, "pending")] {
            if number > 0 {
                write!(out, " · {number} {what}")?;
            }
        }
        match &self.problem {
            Some(problem) => write!(out, " · {problem}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_omits_zero_counts() {
        let mut line = StatusLine { memories: 1, ..StatusLine::default() };
        assert_eq!(line.to_string(), "claude-mem 1 memory");
        line = StatusLine { memories: 1280, given: 5, pending: 3, problem: Some("x fails".into()) };
        assert_eq!(line.to_string(), "claude-mem 1,280 memories · 5 given · 3 pending · x fails");
    }
}
