//! Appends imported events to the log, each once, in batches.

use std::collections::{BTreeMap, HashSet};

use claude_mem_events::{Envelope, Event, EventLog, Id, Project};
use claude_mem_projections::Store;
use sha2::{Digest, Sha256};

use claude_mem_capture::redaction;
use claude_mem_core::{failure::Failure, progress::Progress};
use claude_mem_privacy::Policy;

/// A batch is one write. Hooks wait for it.
const BATCH_EVENTS: usize = 512;
const BATCH_BYTES: usize = 2 << 20;

/// Number of problems reported individually.
pub(super) const DAMAGE_MAX: usize = 10;

/// An id that is the same for the same content.
pub(super) fn stable_id(time_us: u64, parts: &[&str]) -> Id {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let bits = hash.finalize().iter().take(8).fold(0, |bits, byte| bits << 8 | u64::from(*byte));
    Id::new(time_us, bits)
}

/// Filter for imported events.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// From this time on.
    pub since_us: u64,
    /// Name, key or folder of a project.
    pub project: Option<String>,
}

impl Scope {
    /// Why an event is left out; `None` if it is imported.
    fn excludes(&self, id: Id, envelope: &Envelope) -> Option<&'static str> {
        let Project { key, label, root, .. } = &envelope.project;
        if id.time_us() < self.since_us {
            return Some("events before `--since`");
        }
        let is_other = |wanted| ![key, label, root].contains(&wanted);
        self.project.as_ref().is_some_and(is_other).then_some("events of other projects")
    }
}

/// Result of an import.
#[derive(Debug, Default)]
pub struct Report {
    /// New events by kind.
    pub added: BTreeMap<&'static str, u64>,
    /// Events in the log before this import.
    pub known: u64,
    /// Repeated events: a fork repeats the session it began from.
    pub copies: u64,
    /// Filtered events, by reason.
    pub left_out: BTreeMap<&'static str, u64>,
    /// Tool uses of transcripts that hooks would not have recorded either, by reason.
    pub tool_uses_left_out: BTreeMap<&'static str, u64>,
    /// Rejected events, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Files that could not be read completely.
    pub damage: Vec<String>,
    /// Bytes read, if known.
    pub bytes: u64,
}

impl Report {
    pub fn added_total(&self) -> u64 {
        self.added.values().sum()
    }

    pub fn tool_uses_left_out_total(&self) -> u64 {
        self.tool_uses_left_out.values().sum()
    }
}

/// Appends new events that pass the filter, and counts all others.
#[derive(Debug)]
pub struct Sink<'a> {
    /// Existing events.
    pub(super) store: &'a Store,
    log: EventLog,
    scope: Scope,
    policy: Policy,
    batch: Vec<(Id, Envelope, Event)>,
    batch_bytes: usize,
    /// Ids seen in this run.
    met: HashSet<Id>,
    pub report: Report,
    /// Bytes or rows of the source.
    pub(super) progress: Progress,
}

impl<'a> Sink<'a> {
    /// The tables must be up to date with the log.
    pub fn new(store: &'a Store, log: EventLog, scope: Scope, policy: Policy) -> Self {
        let (batch, met, report) = (Vec::new(), HashSet::new(), Report::default());
        let progress = Progress::bytes("importing", 0);
        Self { store, log, scope, policy, batch, batch_bytes: 0, met, report, progress }
    }

    /// Whether [`add`](Self::add) would add this event.
    pub(super) fn would_add(&self, id: Id, envelope: &Envelope) -> Result<bool, Failure> {
        let is_met = self.met.contains(&id);
        Ok(self.is_wanted(id, envelope) && !is_met && !self.store.has_event(id)?)
    }

    /// Whether the filter lets this event pass.
    pub(super) fn is_wanted(&self, id: Id, envelope: &Envelope) -> bool {
        self.scope.excludes(id, envelope).is_none()
    }

    /// Adds the event from `make` if it is new and passes the filter; otherwise `make` is not
    /// called. An event too large for the log is rejected.
    pub(super) fn add(
        &mut self,
        what: &'static str,
        id: Id,
        envelope: &Envelope,
        make: impl FnOnce() -> Event,
    ) -> Result<(), Failure> {
        if let Some(reason) = self.scope.excludes(id, envelope) {
            self.leave_out(reason);
            return Ok(());
        }
        if !self.met.insert(id) {
            self.report.copies += 1;
            return Ok(());
        }
        if self.store.has_event(id)? {
            self.report.known += 1;
            return Ok(());
        }
        let (mut envelope, mut event) = (envelope.clone(), make());
        if !redaction::is_storable(&event, self.policy) {
            self.refuse("an unknown kind of event, with secrets in it that cannot be redacted");
            return Ok(());
        }
        // Checked before redaction, which is slow for megabytes, and after it, because placeholders
        // can be longer.
        let is_small = event.payload_bytes(&envelope).is_ok();
        if is_small {
            redaction::redact(&mut envelope, &mut event, self.policy);
        }
        let Ok(bytes) = event.payload_bytes(&envelope) else {
            if self.report.damage.len() < DAMAGE_MAX {
                self.report.damage.push(format!("event {id} is larger than 16 MB"));
            }
            self.refuse("events larger than a record can be (16 MB)");
            return Ok(());
        };
        self.batch_bytes += bytes;
        self.batch.push((id, envelope, event));
        if self.batch.len() >= BATCH_EVENTS || self.batch_bytes >= BATCH_BYTES {
            self.flush()?;
        }
        *self.report.added.entry(what).or_default() += 1;
        Ok(())
    }

    /// The event is recorded under another id, so the copy adds nothing.
    pub(super) fn recorded_otherwise(&mut self, id: Id) {
        let count = match self.met.insert(id) {
            true => &mut self.report.known,
            false => &mut self.report.copies,
        };
        *count += 1;
    }

    /// Counts a filtered event.
    pub(super) fn leave_out(&mut self, reason: &'static str) {
        *self.report.left_out.entry(reason).or_default() += 1;
    }

    /// Counts a tool use that becomes no event.
    pub(super) fn leave_out_tool_use(&mut self, id: Id, envelope: &Envelope, reason: &'static str) {
        if self.is_wanted(id, envelope) && self.met.insert(id) {
            *self.report.tool_uses_left_out.entry(reason).or_default() += 1;
        }
    }

    /// Counts a rejected event.
    pub(super) fn refuse(&mut self, reason: impl Into<String>) {
        *self.report.refused.entry(reason.into()).or_default() += 1;
    }

    /// Writes the batch.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        if !self.batch.is_empty() {
            self.log.record_all(&self.batch)?;
        }
        self.batch.clear();
        self.batch_bytes = 0;
        Ok(())
    }

    /// Writes and syncs the batch.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        self.flush()?;
        if self.report.added_total() > 0 {
            self.log.sync()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_parts_make_the_same_id_and_their_borders_count() {
        assert_eq!(stable_id(5, &["ab", "c"]), stable_id(5, &["ab", "c"]));
        assert_ne!(stable_id(5, &["ab", "c"]), stable_id(5, &["a", "bc"]));
        assert_eq!(stable_id(1_700_000_000_000_007, &["x"]).time_us(), 1_700_000_000_000_007);
    }
}
