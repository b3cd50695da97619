//! Counts the events of the log in one pass.

use std::collections::{BTreeMap, HashSet};

use claude_mem_events::{
    Event, PromptSubmitted, Recorded, SessionEnded, SessionStarted, SummaryRequested, ToolUsed,
    Versioned as _,
};
use claude_mem_log::{GapReason, Item, Log};
use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize;

use claude_mem_core::failure::Failure;
use claude_mem_memory::log_progress::LogProgress;

#[derive(Debug, Default, Serialize)]
pub(super) struct LogCounts {
    pub(super) events: u64,
    pub(super) sessions: usize,
    pub(super) projects: usize,
    pub(super) today: Today,
    pub(super) first: Option<String>,
    pub(super) last: Option<String>,
    pub(super) kinds: BTreeMap<&'static str, u64>,
    pub(super) damage: Damage,
}

/// Kinds of events that hooks record. Responses to requests about old sessions are not work of
/// today.
const CAPTURED: [u16; 5] = [
    SessionStarted::KIND,
    PromptSubmitted::KIND,
    ToolUsed::KIND,
    SummaryRequested::KIND,
    SessionEnded::KIND,
];

/// What hooks recorded since midnight, local time.
#[derive(Debug, Default, Serialize)]
pub(super) struct Today {
    pub(super) events: u64,
    pub(super) sessions: usize,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Damage {
    /// Places in segments that cannot be read.
    pub(super) damaged: u64,

    pub(super) missing_segments: u64,
    /// Unfinished writes, which were never acknowledged.
    pub(super) torn_writes: u64,
    /// Events written by a newer version.
    pub(super) unknown: u64,
    /// Hook inputs that could not be parsed, and were kept.
    pub(super) unreadable_inputs: u64,
    /// Events whose content was erased on request.
    pub(super) erased: u64,
}

impl LogCounts {
    /// Reads the whole log, but only the kind and envelope of each event.
    pub(super) fn read(log: &Log, now: Timestamp) -> Result<Self, Failure> {
        let mut counted = Self::default();
        let (mut sessions, mut projects, mut today) =
            (HashSet::new(), HashSet::new(), HashSet::new());
        let mut times: Option<(u64, u64)> = None;
        let midnight_us = midnight_us(now);
        let progress = LogProgress::new("reading the log", log, None);
        let mut reader = log.read_from_start();
        while let Some(item) = reader.next()? {
            let entry = match item {
                Item::Record(entry) => entry,
                Item::Gap(gap) => {
                    counted.damage.count(gap.reason);
                    continue;
                }
            };
            progress.show(entry.seq);
            let at = entry.id.time_us();
            times = Some(times.map_or((at, at), |(first, last)| (first.min(at), last.max(at))));
            counted.count(entry.kind, entry.is_tombstone);
            let envelope = Recorded::envelope_of(&entry);
            if at >= midnight_us && CAPTURED.contains(&entry.kind) {
                counted.today.events += 1;
                today.insert(envelope.session.clone());
            }
            sessions.insert(envelope.session);
            projects.insert(envelope.project.key);
        }
        for ids in [&mut sessions, &mut projects, &mut today] {
            ids.remove("");
        }
        (counted.sessions, counted.projects) = (sessions.len(), projects.len());
        counted.today.sessions = today.len();
        counted.first = times.map(|(first, _)| moment(first));
        counted.last = times.map(|(_, last)| moment(last));
        Ok(counted)
    }

    fn count(&mut self, kind: u16, is_erased: bool) {
        self.events += 1;
        let name = Event::name_of(kind);
        *self.kinds.entry(name).or_default() += 1;
        match name {
            _ if is_erased => self.damage.erased += 1,
            "Unknown" => self.damage.unknown += 1,
            "InputUnreadable" => self.damage.unreadable_inputs += 1,
            _ => {}
        }
    }
}

impl Damage {
    fn count(&mut self, reason: GapReason) {
        match reason {
            GapReason::TornWrite => self.torn_writes += 1,
            GapReason::MissingSegment => self.missing_segments += 1,
            _ => self.damaged += 1,
        }
    }

    /// Whether an acknowledged event may be lost.
    pub(super) fn is_loss(&self) -> bool {
        self.damaged > 0 || self.missing_segments > 0
    }
}

fn midnight_us(now: Timestamp) -> u64 {
    let midnight = now.to_zoned(TimeZone::system()).start_of_day();
    midnight.map_or(0, |midnight| midnight.timestamp().as_microsecond().cast_unsigned())
}

fn moment(time_us: u64) -> String {
    Timestamp::from_microsecond(time_us.cast_signed()).unwrap_or_default().to_string()
}
