//! Compactions: which rows they remove. That does not depend on whether the bytes in the log are
//! already erased.

use crate::{
    error::Result,
    fold::{
        projection::{Projection, Rows},
        revisions,
    },
    hosts::HOST_SHIFT,
    store::{
        Store,
        sql_values::{list, number, seq},
    },
};
use claude_mem_events::{Event, LogCompacted, Recorded, Seq};
use rusqlite::params;

/// Points up to which the log was compacted.
pub(crate) struct Compactions;

impl Projection for Compactions {
    fn name(&self) -> &'static str {
        "compactions"
    }

    fn version(&self) -> u32 {
        2
    }

    fn apply(&self, rows: &Rows<'_>, event: &Recorded) -> Result<()> {
        match &event.event {
            Event::LogCompacted(compacted) => compact(rows, event, compacted),
            _ => Ok(()),
        }
    }
}

fn compact(rows: &Rows<'_>, event: &Recorded, compacted: &LogCompacted) -> Result<()> {
    let seq = event.seq.raw() as i64;
    let raw_before_us = compacted.raw_before_us.map(|us| us as i64);
    let sql = "insert into compactions (seq, event, at_us, drops_superseded, tools, raw_before_us)
               values (?1, ?2, ?3, ?4, ?5, ?6)";
    let (at_us, tools) = (event.at_us() as i64, list(&compacted.tools));
    let drops = compacted.drops_superseded;
    rows.run(sql, params![seq, event.id.as_bytes(), at_us, drops, tools, raw_before_us])?;
    // Only rows of the log that was compacted.
    let first = seq >> HOST_SHIFT << HOST_SHIFT;
    let segment = crate::hosts::local_seq(event.seq).segment() as i64;
    let sql = "delete from gaps where log = ?1 and reason = ?2 and segment < ?3";
    rows.run(sql, (rows.host, TORN, segment))?;
    if drops {
        drop_superseded(rows, first, seq)?;
    }
    if let Some(tools) = tools {
        let sql = "update tool_uses set is_settled = 1 where seq >= ?1 and seq < ?2
                       and answered_by is not null and tool in (select value from json_each(?3))";
        rows.run(sql, (first, seq, tools))?;
    }
    match raw_before_us {
        Some(before_us) => settle(rows, first, seq, before_us),
        None => Ok(()),
    }
}

/// The reason of a gap left by an interrupted write. Such a write was never acknowledged.
const TORN: &str = "a write that was cut short";

/// Deletes memories that a later generation superseded. Keeps their costs, and observations that
/// this log revises: sessions receive them, or they mark others as wrong.
fn drop_superseded(rows: &Rows<'_>, first: i64, before: i64) -> Result<()> {
    let sql = "update replies set verdict = 'erased', skip_reason = null
               where superseded_by is not null and seq >= ?1 and seq < ?2";
    rows.run(sql, (first, before))?;
    let sql = "delete from corrections where seq >= ?1 and seq < ?2
                   and seq in (select seq from replies where superseded_by is not null)";
    rows.run(sql, (first, before))?;
    let sql = "delete from observations where seq >= ?1 and seq < ?2
                   and seq in (select seq from replies where superseded_by is not null)
                   and not exists (select 1 from revisions where target = observations.event
                       and revisions.number = observations.number
                       and revisions.seq >= ?1 and revisions.seq < ?2)";
    rows.run(sql, (first, before))?;
    let sql = "delete from summaries where superseded_by is not null and seq >= ?1 and seq < ?2";
    rows.run(sql, (first, before))?;
    revisions::resolve_all(rows)
}

/// Settles tool uses of which only a digest is kept, and the stops of the same replies: distilling
/// them again would give poorer memories.
fn settle(rows: &Rows<'_>, first: i64, before: i64, before_us: i64) -> Result<()> {
    for table in ["tool_uses", "stops"] {
        let sql = format!(
            "update {table} set is_settled = 1 where seq in (
             select source from answers join replies on replies.seq = answers.reply
             where replies.is_current and replies.seq >= ?1 and replies.seq < ?2
             and not exists (
                 select 1 from answers as other join events on events.seq = other.source
                 where other.reply = replies.seq and events.at_us >= ?3))"
        );
        rows.run(&sql, (first, before, before_us))?;
    }
    Ok(())
}

/// A point up to which the log was compacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compacted {
    /// Its place in the log.
    pub seq: Seq,
    /// When.
    pub at_us: u64,
    /// Of events before this time, only digests were kept.
    pub raw_before_us: Option<u64>,
}

impl Store {
    /// The last point up to which our own log was, or is to be, compacted.
    pub fn last_compaction(&self) -> Result<Option<Compacted>> {
        let sql = "select seq, at_us, raw_before_us from compactions where host = 0
                   order by seq desc limit 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut found = statement.query_map((), |row| {
            let raw_before_us: Option<i64> = row.get(2)?;
            let raw_before_us = raw_before_us.map(|us| us as u64);
            Ok(Compacted { seq: seq(row, 0)?, at_us: number(row, 1)?, raw_before_us })
        })?;
        Ok(found.next().transpose()?)
    }
}
