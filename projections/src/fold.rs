//! Folding: reading the log in order and writing rows, exactly once.

use crate::{
    ALL,
    error::Result,
    projection::{ReadAhead, Rows},
    sessions,
    store::Store,
    xml,
};
use claude_mem_events::{Event, EventReader, Gap, Met, Recorded, Seq};
use claude_mem_log::Log;
use rusqlite::{OptionalExtension, Transaction, TransactionBehavior};
use std::sync::Arc;

/// A batch also ends when its events weigh this much, so that memory is bounded whatever they hold.
const BATCH_BYTES_MAX: usize = 8 << 20;

/// What folding came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Folded {
    /// Events that became rows, or were looked at and became none.
    pub events: u64,
    /// Events that had been folded before.
    pub duplicates: u64,
    /// Damage met on the way. It is also kept in the table `gaps`.
    pub gaps: Vec<Gap>,
    /// Where reading goes on.
    pub position: Seq,
    /// Whether there is more to do.
    pub state: State,
}

/// How the tables stand to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    /// Everything in the log is folded.
    #[default]
    Complete,
    /// There is more, but the limit was reached.
    Behind,
    /// Going on is not possible: all must be drawn again.
    Redraw(Redraw),
}

/// Why all must be drawn again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redraw {
    /// By this version some rows would be others.
    Outdated,
    /// The rows are of another log.
    OtherLog,
    /// A forgetting was taken back, and what it removed is only in the log.
    Restored,
}

/// Events read together and folded in one transaction.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) from: Seq,
    pub(crate) met: Vec<Met>,
    pub(crate) to: Seq,
    pub(crate) replies: ReadAhead,
}

impl Batch {
    /// Reads up to `events_max` events; an empty batch is the end of the log.
    pub(crate) fn read(reader: &mut EventReader, events_max: usize) -> Result<Self> {
        let mut batch = Self { from: reader.position(), ..Self::default() };
        let mut bytes = 0;
        while batch.met.len() < events_max && bytes < BATCH_BYTES_MAX {
            let Some(met) = reader.next()? else { break };
            bytes += weight(&met);
            batch.met.push(met);
        }
        batch.to = reader.position();
        Ok(batch)
    }

    /// Reads the replies in it, so that whoever folds it need not.
    pub(crate) fn read_replies(&mut self, kinds: &[String]) {
        for met in &self.met {
            let Met::Event(Recorded { seq, event: Event::AgentReplied(replied), .. }) = met else {
                continue;
            };
            let reply = Arc::new(xml::read_reply(&replied.reply, kinds));
            self.replies.insert(seq.raw(), reply);
        }
    }
}

fn weight(met: &Met) -> usize {
    let Met::Event(recorded) = met else { return 0 };
    match &recorded.event {
        Event::ToolUsed(used) => used.input.len() + used.output.len() + used.error.len(),
        Event::PromptSubmitted(prompt) => prompt.prompt.len(),
        Event::SummaryRequested(stop) => stop.last_assistant_message.len(),
        Event::AgentReplied(replied) => replied.reply.len(),
        Event::AgentFailed(failed) => failed.reply.len(),
        Event::Imported(imported) => imported.row.len(),
        Event::Unknown { payload, .. } => payload.len(),
        _ => 0,
    }
}

impl Store {
    /// Folds what the log holds beyond the checkpoint, a batch at a time, as long as `go_on` says so: it is
    /// asked after each batch with what was done so far. Killed at any moment, nothing is lost or done twice.
    ///
    /// Several processes may fold at once: each batch begins where the last one, of whomever, ended.
    pub fn fold(&mut self, log: &Log, mut go_on: impl FnMut(&Folded) -> bool) -> Result<Folded> {
        self.follow_replacement()?;
        let mut folded = Folded { position: self.checkpoint()?.position, ..Folded::default() };
        if let Some(redraw) = self.redraw_due(log)? {
            folded.state = State::Redraw(redraw);
            return Ok(folded);
        }
        let mut reader = EventReader::from(log, folded.position);
        loop {
            let batch = Batch::read(&mut reader, self.options.batch_events)?;
            if batch.met.is_empty() {
                folded.state = State::Complete;
                return Ok(folded);
            }
            let is_whole = self.fold_batch(log.id(), &batch, &mut folded)?;
            if !is_whole {
                // Another process was here in between.
                reader = EventReader::from(log, folded.position);
            }
            if matches!(folded.state, State::Redraw(_)) {
                return Ok(folded);
            }
            folded.state = State::Behind;
            if !go_on(&folded) {
                return Ok(folded);
            }
        }
    }

    /// Whether the tables cannot be brought up to date by folding on.
    pub fn redraw_due(&self, log: &Log) -> Result<Option<Redraw>> {
        if self.is_outdated()? {
            return Ok(Some(Redraw::Outdated));
        }
        let folded = self.checkpoint()?.log;
        let is_other = folded.is_some() && log.id().is_some() && folded != log.id();
        Ok(is_other.then_some(Redraw::OtherLog))
    }

    /// Folds events that are at hand. They must continue what was folded before.
    pub fn fold_events(&mut self, events: &[Recorded]) -> Result<Folded> {
        let from = self.checkpoint()?.position;
        let to = events.last().map_or(from, |event| event.seq.next());
        let met = events.iter().cloned().map(Met::Event).collect();
        let mut folded = Folded::default();
        self.fold_batch(None, &Batch { from, met, to, ..Batch::default() }, &mut folded)?;
        Ok(folded)
    }

    /// Folds one batch in one transaction. Says whether it was the one that is due.
    pub(crate) fn fold_batch(
        &mut self,
        log: Option<[u8; 16]>,
        batch: &Batch,
        folded: &mut Folded,
    ) -> Result<bool> {
        self.follow_replacement()?;
        let kinds = std::mem::take(&mut self.options.kinds);
        let result = self.fold_batch_as(log, batch, folded, &kinds);
        self.options.kinds = kinds;
        result
    }

    fn fold_batch_as(
        &mut self,
        log: Option<[u8; 16]>,
        batch: &Batch,
        folded: &mut Folded,
        kinds: &[String],
    ) -> Result<bool> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let position: i64 =
            transaction.query_row("select position from checkpoint", (), |row| row.get(0))?;
        let position = Seq::from_raw(position as u64);
        if position != batch.from {
            folded.position = position;
            return Ok(false);
        }
        let done = apply_all(&transaction, kinds, batch)?;
        move_checkpoint(&transaction, log, &done)?;
        transaction.commit()?;
        folded.events += done.events;
        folded.duplicates += done.duplicates;
        folded.gaps.extend(done.gaps);
        folded.position = done.position;
        if done.is_restored {
            folded.state = State::Redraw(Redraw::Restored);
        }
        Ok(true)
    }

    /// A rebuild puts another file in the place of the one that is open; rows written here would be lost
    /// with it.
    fn follow_replacement(&mut self) -> Result<()> {
        if self.is_replaced() {
            let path = self.path().expect("only a file is replaced").to_owned();
            *self = Self::open(&path, self.options.clone())?;
        }
        Ok(())
    }
}

#[derive(Default)]
struct Done {
    events: u64,
    duplicates: u64,
    gaps: Vec<Gap>,
    position: Seq,
    at_us: u64,
    is_restored: bool,
}

fn apply_all(transaction: &Transaction<'_>, kinds: &[String], batch: &Batch) -> Result<Done> {
    let rows = Rows::new(transaction, kinds, &batch.replies);
    let mut done = Done { position: batch.to, ..Done::default() };
    for met in &batch.met {
        match met {
            Met::Gap(gap) => {
                note_gap(&rows, gap)?;
                done.gaps.push(*gap);
            }
            Met::Event(event) if is_restoring(&rows, event)? => {
                done.position = event.seq;
                done.is_restored = true;
                break;
            }
            Met::Event(event) => match apply(&rows, event)? {
                true => {
                    done.events += 1;
                    done.at_us = done.at_us.max(event.at_us());
                }
                false => done.duplicates += 1,
            },
        }
    }
    sessions::write_gone_on(&rows)?;
    Ok(done)
}

/// Folds one event, unless it was folded before.
fn apply(rows: &Rows<'_>, event: &Recorded) -> Result<bool> {
    // Of what was erased nobody knows where it belonged.
    let place = match event.event {
        Event::Erased { .. } => None,
        _ => Some(sessions::place(rows, event)?),
    };
    let sql = "insert into events (seq, event, kind, at_us, session, project)
               values (?1, ?2, ?3, ?4, ?5, ?6) on conflict (event) do nothing";
    let (session, project) =
        (place.as_ref().and_then(|place| place.session), place.map(|p| p.project));
    let (seq, kind, at_us) = (event.seq.raw() as i64, event.event.kind(), event.at_us() as i64);
    if rows.run(sql, (seq, event.id.as_bytes(), kind, at_us, session, project))? == 0 {
        return Ok(false);
    }
    rows.seqs.borrow_mut().insert(*event.id.as_bytes(), seq);
    if !sessions::only_goes_on(&event.event) {
        sessions::write_gone_on(rows)?;
    }
    for projection in ALL {
        projection.apply(rows, event)?;
    }
    Ok(true)
}

/// Whether an event takes back a forgetting that was carried out: what it removed is only in the log.
fn is_restoring(rows: &Rows<'_>, event: &Recorded) -> Result<bool> {
    let Event::Forgotten(forgotten) = &event.event else { return Ok(false) };
    let Some(undone) = forgotten.undoes else { return Ok(false) };
    let sql = "select is_void from forgettings where event = ?1";
    let is_void: Option<bool> =
        rows.cached(sql)?.query_row([undone], |row| row.get(0)).optional()?;
    let sql = "select exists (select 1 from void_forgettings where event = ?1)";
    let is_itself_void: bool =
        rows.cached(sql)?.query_row([event.id.as_bytes()], |row| row.get(0))?;
    Ok(is_void == Some(false) && !is_itself_void)
}

fn note_gap(rows: &Rows<'_>, gap: &Gap) -> Result<()> {
    let sql = "insert or replace into gaps values (?1, ?2, ?3, ?4, ?5, ?6)";
    let (segment, offset, len) = (gap.segment as i64, gap.offset as i64, gap.len as i64);
    let id = gap.id.map(|id| *id.as_bytes());
    rows.run(sql, (segment, offset, len, gap.reason.describe(), id, gap.kind))?;
    Ok(())
}

fn move_checkpoint(
    transaction: &Transaction<'_>,
    log: Option<[u8; 16]>,
    done: &Done,
) -> Result<()> {
    let sql = "update checkpoint set log = coalesce(?1, log), position = ?2, events = events + ?3,
                   at_us = max(at_us, ?4)";
    let values = (log, done.position.raw() as i64, done.events as i64, done.at_us as i64);
    transaction.prepare_cached(sql)?.execute(values)?;
    Ok(())
}
