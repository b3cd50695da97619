//! Checks that the log still has the history that the rows were folded from.
//!
//! The database can be ahead of the log: after a power loss, or when an older log is restored. New
//! events would then be recorded before the checkpoint and be skipped. So the checkpoint contains
//! the last folded record, and every fold first checks that it is still there.

use crate::{
    error::Result,
    fold::incremental::RebuildReason,
    hosts::HostLog,
    store::{Store, sql_values::number},
};
use claude_mem_events::{Id, Seq};
use claude_mem_log::{Entry, GapReason, Item, Log};
use rusqlite::OptionalExtension;
use std::time::{SystemTime, UNIX_EPOCH};

/// The position up to which a log was folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FoldedPosition {
    /// The last record, and its place in its log.
    last: (Seq, Id),
    /// The position where reading continues. No record is between the last one and this place.
    position: Seq,
}

/// A rebuild that was needed because the log's history differs from the database's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRebuild {
    /// True for another log; false for the same one, cut short or restored from an older copy.
    pub is_other_log: bool,
    /// When, in microseconds since 1970.
    pub at_us: u64,
    /// Events that the database had and the log no longer contains.
    pub lost_events: u64,
    /// The time of the latest of them, in microseconds since 1970.
    pub lost_until_us: u64,
}

const OTHER_LOG: &str = "other log";
const OTHER_PAST: &str = "other past";

impl Store {
    /// Whether the rows come from another log, or from another history of this one.
    pub fn history_mismatch(&self, log: &Log) -> Result<Option<RebuildReason>> {
        let (folded, now) = (self.checkpoint()?.log, log.id());
        // A log without an id is empty or not reachable now.
        if now.is_none() || folded.is_none() {
            return Ok(None);
        }
        if folded != now {
            return Ok(Some(RebuildReason::OtherLog));
        }
        let is_other = match self.reached(0)? {
            Some(reached) => does_history_differ(log, reached)?,
            None => false,
        };
        Ok(is_other.then_some(RebuildReason::HistoryDiffers))
    }

    /// The same for the copies of other machines' logs.
    pub(crate) fn do_hosts_histories_differ(&self, copies: &[HostLog]) -> Result<bool> {
        for copy in copies {
            if let Some(reached) = self.reached(copy.host.number)?
                && does_history_differ(&copy.log, reached)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn reached(&self, log: u8) -> Result<Option<FoldedPosition>> {
        let sql = match log {
            0 => "select last_seq, last_event, position from checkpoint where ?1 = 0",
            _ => "select last_seq, last_event, position from hosts where log = ?1",
        };
        let row = self
            .connection
            .prepare_cached(sql)?
            .query_row([log], |row| Ok((row.get(0)?, row.get(1)?, number(row, 2)?)));
        let Some((Some(seq), Some(id), position)) = row.optional()? else { return Ok(None) };
        let (seq, id): (i64, [u8; 16]) = (seq, id);
        let last = (Seq::from_raw(seq as u64), Id::from_bytes(id));
        Ok(Some(FoldedPosition { last, position: Seq::from_raw(position) }))
    }

    /// Whether a part of the log that was damaged when it was folded is intact now: a segment was
    /// repaired, or an older version took an unfinished write for damage. Checked once per
    /// connection, because repairs are rare.
    pub(crate) fn is_damage_healed(&self, own: &Log, copies: &[HostLog]) -> Result<bool> {
        if self.are_gaps_checked.replace(true) {
            return Ok(false);
        }
        let sql = "select log, segment, offset from gaps";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(())?;
        while let Some(row) = rows.next()? {
            let number: u8 = row.get(0)?;
            let copy = copies.iter().find(|copy| copy.host.number == number);
            let log = match (number, copy) {
                (0, _) => own,
                (_, Some(copy)) if !copy.host.is_hidden => &copy.log,
                _ => continue,
            };
            let (segment, offset) = (row.get::<_, i64>(1)? as u64, row.get::<_, i64>(2)? as u64);
            if self.has_unfolded(log, number, Seq::new(segment, offset))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Detects a skipped record: the first one after a recorded gap.
    fn has_unfolded(&self, log: &Log, number: u8, from: Seq) -> Result<bool> {
        let Some(FoldedPosition { position, .. }) = self.reached(number)? else { return Ok(false) };
        let mut reader = log.read_from(from);
        while let Some(item) = reader.next()? {
            let Item::Record(entry) = item else { continue };
            let sql = "select exists (select 1 from events where event = ?1 and host = ?2)";
            let is_folded: bool = self
                .connection
                .prepare_cached(sql)?
                .query_row((entry.id.as_bytes(), number), |row| row.get(0))?;
            return Ok(entry.seq < position && !is_folded);
        }
        Ok(false)
    }

    /// Records in a new database why it replaced `before`, and which events were lost.
    ///
    /// If the old file is too damaged to read, nothing is recorded.
    pub(crate) fn record_history_rebuild(
        &self,
        before: &Store,
        because: Option<RebuildReason>,
    ) -> Result<()> {
        let rebuilt = match because {
            Some(RebuildReason::OtherLog | RebuildReason::HistoryDiffers) => {
                let (lost_events, lost_until_us) = self.missing_of(before)?;
                let is_other_log = because == Some(RebuildReason::OtherLog);
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let at_us = since.as_micros() as u64;
                Some(HistoryRebuild { is_other_log, at_us, lost_events, lost_until_us })
            }
            _ => before.last_history_rebuild().unwrap_or_default(),
        };
        let Some(rebuilt) = rebuilt else { return Ok(()) };
        let because = if rebuilt.is_other_log { OTHER_LOG } else { OTHER_PAST };
        let sql =
            "update checkpoint set rebuilt_because = ?1, rebuilt_at_us = ?2, lost_events = ?3,
                       lost_until_us = ?4";
        let HistoryRebuild { at_us, lost_events, lost_until_us, .. } = rebuilt;
        let values = (because, at_us as i64, lost_events as i64, lost_until_us as i64);
        self.connection.execute(sql, values)?;
        Ok(())
    }

    /// How many events of `before` are not here, and the time of the latest one.
    fn missing_of(&self, before: &Store) -> Result<(u64, u64)> {
        let sql = "select exists (select 1 from events where event = ?1)";
        let mut is_here = self.connection.prepare_cached(sql)?;
        let mut all = before.connection.prepare("select event, at_us from events")?;
        let mut rows = all.query(())?;
        let (mut events, mut until_us) = (0, 0);
        while let Some(row) = rows.next()? {
            let id: [u8; 16] = row.get(0)?;
            if !is_here.query_row([id], |row| row.get::<_, bool>(0))? {
                events += 1;
                until_us = number(row, 1)?.max(until_us);
            }
        }
        Ok((events, until_us))
    }

    /// The last rebuild caused by a different log history, and what was lost.
    pub fn last_history_rebuild(&self) -> Result<Option<HistoryRebuild>> {
        let sql =
            "select rebuilt_because, rebuilt_at_us, lost_events, lost_until_us from checkpoint
                   where rebuilt_because is not null";
        let found = self.connection.query_row(sql, (), |row| {
            Ok(HistoryRebuild {
                is_other_log: row.get::<_, String>(0)? == OTHER_LOG,
                at_us: number(row, 1)?,
                lost_events: number(row, 2)?,
                lost_until_us: number(row, 3)?,
            })
        });
        Ok(found.optional()?)
    }
}

/// Returns true if the log does not contain the last folded record at its position, or contains an
/// unfolded record before the position where reading continues.
fn does_history_differ(log: &Log, reached: FoldedPosition) -> Result<bool> {
    let FoldedPosition { last: (seq, id), position } = reached;
    let mut reader = log.read_from(seq);
    let gap = match reader.next()? {
        Some(Item::Record(entry)) if (entry.seq, entry.id) == (seq, id) => {
            return Ok(matches!(reader.next()?, Some(Item::Record(next)) if next.seq < position));
        }
        Some(Item::Record(_)) => return Ok(true),
        Some(Item::Gap(gap)) => Some(gap),
        None => None,
    };
    if is_within_record(log, seq)? {
        return Ok(true);
    }
    // The record is damaged. If it was damaged in place, the rows are right, and a rebuild would
    // lose it. In that case all its bytes exist, and no record starts within them.
    let segments = log.segments()?;
    let Some(end) = segments.last().map(|last| last.number_last) else { return Ok(true) };
    // A segment is on disk before the next one is begun, so it was not cut.
    if position.segment() > seq.segment() && end > seq.segment() {
        return Ok(false);
    }
    let Some(segment) = segments.iter().find(|segment| segment.number_last >= seq.segment()) else {
        return Ok(true);
    };
    let whole_until = match gap {
        Some(gap) if gap.reason == GapReason::Truncated => return Ok(true),
        Some(gap) => (gap.offset + gap.len).min(segment.bytes),
        None => segment.bytes,
    };
    Ok(Seq::new(seq.segment(), whole_until) < position)
}

/// Detects a record that spans this position: it was written after the log was cut. Reads the
/// segment up to there.
fn is_within_record(log: &Log, seq: Seq) -> Result<bool> {
    let mut reader = log.read_from(Seq::new(seq.segment(), 0));
    while let Some(item) = reader.next()? {
        let Item::Record(Entry { seq: from, .. }) = item else { continue };
        if from >= seq {
            break;
        }
        if reader.position() > seq {
            return Ok(true);
        }
    }
    Ok(false)
}
