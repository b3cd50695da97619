//! Incremental folding: reads new events in order and writes their rows, exactly once.

use crate::{
    error::Result,
    fold::{
        ALL,
        batch::{Batch, LogSource},
        duplicates, forgettings,
        projection::{Projection, Rows},
        projects, sessions,
    },
    hosts::Host,
    store::Store,
};
use claude_mem_events::{Event, EventItem, EventReader, Gap, Id, Recorded, Seq};
use claude_mem_log::Log;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use std::collections::HashMap;

/// The result of folding.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Folded {
    /// Events folded, including those that became no rows.
    pub events: u64,
    /// Events that had been folded before.
    pub duplicates: u64,
    /// Damage found in the log. It is also stored in the table `gaps`.
    pub gaps: Vec<Gap>,
    /// The position where reading continues.
    pub position: Seq,
    /// The end of the last batch, with the number of its host, for progress.
    pub read: Seq,
    /// Whether there is more to do.
    pub state: FoldState,
}

/// The state of the tables relative to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FoldState {
    /// Everything in the log is folded.
    #[default]
    Complete,
    /// There are more events, but the limit was reached.
    Behind,
    /// Folding cannot continue: the database must be rebuilt.
    NeedsRebuild(RebuildReason),
}

/// Why the database must be rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebuildReason {
    /// This version would fold some rows differently.
    Outdated,
    /// The rows come from another log.
    OtherLog,
    /// The log's history differs from that of the rows: it was truncated, or restored from an older
    /// copy.
    HistoryDiffers,
    /// A damaged part of the log has been repaired.
    DamageHealed,
    /// A forgetting was undone, and what it removed is only in the log; or projects were merged on
    /// another machine before an event that depends on it.
    EarlierEventsAffected,
    /// A host was hidden, shown again or dropped.
    HostsChanged,
}

impl Store {
    /// Folds the events after the checkpoint, batch by batch, while `should_continue` returns true for the
    /// result so far. If the process is killed, nothing is lost or done twice.
    ///
    /// Several processes may fold at once: each batch begins where the last one ended, in any
    /// process.
    pub fn fold(
        &mut self,
        log: &Log,
        mut should_continue: impl FnMut(&Folded) -> bool,
    ) -> Result<Folded> {
        self.follow_replacement()?;
        let mut folded = Folded { position: self.position(0)?, ..Folded::default() };
        if let Some(reason) = self.rebuild_reason(log)? {
            folded.state = FoldState::NeedsRebuild(reason);
            return Ok(folded);
        }
        let foreign = self.host_logs()?;
        for source in LogSource::all(log, &foreign) {
            self.fold_source(&source, &mut folded, &mut should_continue)?;
            if folded.state != FoldState::Complete {
                break;
            }
        }
        Ok(folded)
    }

    fn fold_source(
        &mut self,
        source: &LogSource<'_>,
        folded: &mut Folded,
        should_continue: &mut impl FnMut(&Folded) -> bool,
    ) -> Result<()> {
        let mut reader = EventReader::from(source.log, self.position(source.number())?);
        loop {
            let batch = Batch::read(source, &mut reader, self.options.batch_events)?;
            if batch.items.is_empty() {
                folded.state = FoldState::Complete;
                return Ok(());
            }
            if !self.fold_batch(&batch, folded)? {
                // Another process folded in between.
                reader = EventReader::from(source.log, self.position(source.number())?);
            }
            if matches!(folded.state, FoldState::NeedsRebuild(_)) {
                return Ok(());
            }
            folded.state = FoldState::Behind;
            if !should_continue(folded) {
                return Ok(());
            }
        }
    }

    /// The position where reading of a host's log continues.
    pub(crate) fn position(&self, log: u8) -> Result<Seq> {
        Ok(Seq::from_raw(position(&self.connection, log)? as u64))
    }

    /// Compares the versions of the projections and the observation types with those of the rows.
    fn is_outdated(&self) -> Result<bool> {
        let sql = "select kinds from checkpoint";
        let kinds: String = self.connection.query_row(sql, (), |row| row.get(0))?;
        if kinds != self.options.kinds.join(",") {
            return Ok(true);
        }
        let mut statement =
            self.connection.prepare_cached("select name, version from projections")?;
        let versions: HashMap<String, u32> = statement
            .query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let is_current = |projection: &&dyn Projection| {
            versions.get(projection.name()) == Some(&projection.version())
        };
        // The first batch writes the versions, so a database without any is empty.
        Ok(!versions.is_empty() && !ALL.iter().all(is_current))
    }

    /// Whether the database must be rebuilt instead of folded, and why.
    pub fn rebuild_reason(&self, log: &Log) -> Result<Option<RebuildReason>> {
        if self.is_outdated()? {
            return Ok(Some(RebuildReason::Outdated));
        }
        if let Some(reason) = self.history_mismatch(log)? {
            return Ok(Some(reason));
        }
        let copies = self.host_logs()?;
        if self.do_hosts_histories_differ(&copies)? {
            return Ok(Some(RebuildReason::HistoryDiffers));
        }
        if self.is_damage_healed(log, &copies)? {
            return Ok(Some(RebuildReason::DamageHealed));
        }
        Ok(self.have_hosts_changed()?.then_some(RebuildReason::HostsChanged))
    }

    /// Folds events that are in memory. They must continue what was folded before.
    pub fn fold_events(&mut self, events: &[Recorded]) -> Result<Folded> {
        let from = self.checkpoint()?.position;
        let to = events.last().map_or(from, |event| event.seq.next());
        let items = events.iter().cloned().map(EventItem::Event).collect();
        let mut folded = Folded::default();
        self.fold_batch(&Batch { from, items, to, ..Batch::default() }, &mut folded)?;
        Ok(folded)
    }

    /// Folds one batch in one transaction. Returns whether it was the next one.
    pub(crate) fn fold_batch(&mut self, batch: &Batch, folded: &mut Folded) -> Result<bool> {
        self.follow_replacement()?;
        let kinds = std::mem::take(&mut self.options.kinds);
        let result = self.fold_batch_as(batch, folded, &kinds);
        self.options.kinds = kinds;
        result
    }

    fn fold_batch_as(
        &mut self,
        batch: &Batch,
        folded: &mut Folded,
        kinds: &[String],
    ) -> Result<bool> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let is_due = fold_within(&transaction, batch, folded, kinds)?;
        transaction.commit()?;
        Ok(is_due)
    }

    /// Reopens the database if a rebuild has replaced the file: rows written to the old one would
    /// be lost.
    fn follow_replacement(&mut self) -> Result<()> {
        if self.is_replaced() {
            let path = self.path().expect("only a file is replaced").to_owned();
            *self = Self::open(&path, self.options.clone())?;
        }
        Ok(())
    }
}

/// Folds one batch within a transaction if it is the next one; returns whether it was.
pub(crate) fn fold_within(
    transaction: &Transaction<'_>,
    batch: &Batch,
    folded: &mut Folded,
    kinds: &[String],
) -> Result<bool> {
    let is_due = position(transaction, batch.number())? as u64 == batch.from.raw();
    if is_due {
        write_versions(transaction)?;
        let done = apply_all(transaction, kinds, batch)?;
        move_checkpoint(transaction, batch, &done)?;
        folded.events += done.events;
        folded.duplicates += done.duplicates;
        folded.gaps.extend(done.gaps);
        if done.needs_rebuild {
            folded.state = FoldState::NeedsRebuild(RebuildReason::EarlierEventsAffected);
        }
    }
    folded.position = Seq::from_raw(own_position(transaction)? as u64);
    folded.read = Seq::from_raw(batch.place(batch.to) as u64);
    Ok(is_due)
}

/// Records in a new database which versions of the projections its rows come from.
fn write_versions(transaction: &Transaction<'_>) -> Result<()> {
    let sql = "select exists (select 1 from projections)";
    if transaction.prepare_cached(sql)?.query_row((), |row| row.get(0))? {
        return Ok(());
    }
    let mut insert =
        transaction.prepare_cached("insert into projections (name, version) values (?1, ?2)")?;
    for projection in ALL {
        insert.execute((projection.name(), projection.version()))?;
    }
    Ok(())
}

#[derive(Default)]
struct AppliedBatch {
    events: u64,
    duplicates: u64,
    gaps: Vec<Gap>,
    position: Seq,
    /// The last record before that: its place in its own log, and its id.
    last: Option<(Seq, Id)>,
    at_us: u64,
    needs_rebuild: bool,
}

fn apply_all(
    transaction: &Transaction<'_>,
    kinds: &[String],
    batch: &Batch,
) -> Result<AppliedBatch> {
    let rows = Rows::new(transaction, kinds, &batch.replies, batch.number());
    let is_hidden = batch.host.as_ref().is_some_and(|host| host.is_hidden);
    let mut done = AppliedBatch { position: batch.to, ..AppliedBatch::default() };
    for item in &batch.items {
        let before = done.last;
        if let EventItem::Event(event) = item {
            done.last = Some((crate::hosts::local_seq(event.seq), event.id));
        }
        match item {
            EventItem::Gap(gap) => {
                note_gap(&rows, gap)?;
                done.gaps.push(*gap);
            }
            // Forgettings of a hidden host still apply.
            EventItem::Event(event) if is_hidden && !matches!(event.event, Event::Forgotten(_)) => {
            }
            EventItem::Event(event) if affects_earlier_events(&rows, event)? => {
                (done.position, done.last) = (crate::hosts::local_seq(event.seq), before);
                done.needs_rebuild = true;
                break;
            }
            EventItem::Event(event) => match apply(&rows, event)? {
                true => {
                    done.events += 1;
                    done.at_us = done.at_us.max(event.at_us());
                }
                false => done.duplicates += 1,
            },
        }
    }
    sessions::write_session_changes(&rows)?;
    projects::write_labels(&rows)?;
    let folded = batch.place(batch.from)..batch.place(done.position);
    if has_other_hosts(&rows)? {
        forgettings::reach(&rows, &folded)?;
        duplicates::find_duplicates(&rows, &folded, batch.log)?;
    }
    rows.write_counters()?;
    Ok(done)
}

/// Whether there are logs of other machines.
fn has_other_hosts(rows: &Rows<'_>) -> Result<bool> {
    let sql = "select exists (select 1 from hosts)";
    Ok(rows.host > 0 || rows.cached(sql)?.query_row((), |row| row.get(0))?)
}

/// Folds one event, unless it was folded before. For an erased one, its tombstone is folded.
fn apply(rows: &Rows<'_>, event: &Recorded) -> Result<bool> {
    match &event.event {
        Event::Erased { left: Some(left), .. } if left.event.is_some() => {
            let event =
                Recorded { event: left.event.clone().expect("looked at above"), ..event.clone() };
            rows.with_tombstone(left.as_ref().clone(), || apply_whole(rows, &event))
        }
        _ => apply_whole(rows, event),
    }
}

fn apply_whole(rows: &Rows<'_>, event: &Recorded) -> Result<bool> {
    let place = match event.event {
        // An erased event whose session is unknown, or one that belongs to no session.
        Event::Erased { left: None, .. } | Event::LogCompacted(_) => None,
        _ => Some(sessions::place(rows, event)?),
    };
    if let Some(place) = &place {
        projects::note_label(rows, event, place.project);
    }
    let sql = "insert into events (seq, event, kind, at_us, session, project)
               values (?1, ?2, ?3, ?4, ?5, ?6) on conflict (event, host) do nothing";
    let (session, project) =
        (place.as_ref().and_then(|place| place.session), place.map(|p| p.project));
    let (seq, kind, at_us) = (event.seq.raw() as i64, event.event.kind(), event.at_us() as i64);
    if rows.run(sql, (seq, event.id.as_bytes(), kind, at_us, session, project))? == 0 {
        return Ok(false);
    }
    rows.seqs.borrow_mut().insert(*event.id.as_bytes(), seq);
    if !sessions::only_adds_to_session(&event.event) {
        sessions::write_session_changes(rows)?;
    }
    for projection in ALL {
        projection.apply(rows, event)?;
    }
    Ok(true)
}

/// Whether an event changes rows that were already folded: it undoes a forgetting, whose events are
/// only in the log, or merges projects before an event that depends on it.
fn affects_earlier_events(rows: &Rows<'_>, event: &Recorded) -> Result<bool> {
    if matches!(event.event, Event::ProjectMerged(_)) {
        return projects::is_late(rows, event);
    }
    let Event::Forgotten(forgotten) = &event.event else { return Ok(false) };
    let Some(undone) = forgotten.undoes else { return Ok(false) };
    // After a compaction there is nothing left to restore.
    let sql = "select is_void from forgettings where event = ?1 and not exists (
                   select 1 from compactions
                   where iif(compactions.host = forgettings.host,
                       compactions.seq > forgettings.seq, compactions.event > forgettings.event)
                   and iif(compactions.host = ?4,
                       compactions.seq < ?2, compactions.event < ?3))";
    let is_void: Option<bool> = rows
        .cached(sql)?
        .query_row((undone, event.seq.raw() as i64, event.id.as_bytes(), rows.host), |row| {
            row.get(0)
        })
        .optional()?;
    let sql = "select exists (select 1 from void_forgettings where event = ?1)";
    let is_itself_void: bool =
        rows.cached(sql)?.query_row([event.id.as_bytes()], |row| row.get(0))?;
    Ok(is_void == Some(false) && !is_itself_void)
}

fn note_gap(rows: &Rows<'_>, gap: &Gap) -> Result<()> {
    let sql = "insert or replace into gaps (log, segment, offset, bytes, reason, event, kind)
               values (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let (segment, offset, len) = (gap.segment as i64, gap.offset as i64, gap.len as i64);
    let id = gap.id.map(|id| *id.as_bytes());
    rows.run(sql, (rows.host, segment, offset, len, gap.reason.describe(), id, gap.kind))?;
    Ok(())
}

/// The position where reading of a host's log continues.
fn position(connection: &Connection, log: u8) -> Result<i64> {
    if log == 0 {
        return own_position(connection);
    }
    let sql = "select position from hosts where log = ?1";
    let position = connection.prepare_cached(sql)?.query_row([log], |row| row.get(0)).optional()?;
    Ok(position.unwrap_or(0))
}

fn own_position(connection: &Connection) -> Result<i64> {
    let sql = "select position from checkpoint";
    Ok(connection.prepare_cached(sql)?.query_row((), |row| row.get(0))?)
}

fn move_checkpoint(
    transaction: &Transaction<'_>,
    batch: &Batch,
    done: &AppliedBatch,
) -> Result<()> {
    let (position, events, at_us) =
        (done.position.raw() as i64, done.events as i64, done.at_us as i64);
    let last_seq = done.last.map(|(seq, _)| seq.raw() as i64);
    let last_event = done.last.map(|(_, id)| *id.as_bytes());
    if let Some(Host { number, name, is_hidden, .. }) = &batch.host {
        let sql = "insert into hosts
                       (log, id, name, is_hidden, position, events, at_us, last_seq, last_event)
                   values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
                   on conflict do update set name = ?3, position = ?5, events = events + ?6,
                       at_us = max(at_us, ?7), last_seq = coalesce(?8, last_seq),
                       last_event = coalesce(?9, last_event)";
        let values =
            (number, batch.log, name, is_hidden, position, events, at_us, last_seq, last_event);
        transaction.prepare_cached(sql)?.execute(values)?;
        return Ok(());
    }
    let sql = "update checkpoint set log = coalesce(?1, log), position = ?2, events = events + ?3,
                   at_us = max(at_us, ?4), last_seq = coalesce(?5, last_seq),
                   last_event = coalesce(?6, last_event)";
    let values = (batch.log, position, events, at_us, last_seq, last_event);
    transaction.prepare_cached(sql)?.execute(values)?;
    Ok(())
}
