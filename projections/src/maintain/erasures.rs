//! Determines which events a compaction may erase: forgotten and superseded content, and raw
//! content of which a digest is enough.
//!
//! The rows decide. An event is erased because a forgetting marks it; a memory in a reply because
//! its row is gone and a forgetting or a compaction explains why.

use crate::{
    error::Result,
    fold::{
        Compactions,
        projection::{Projection as _, ReadAhead, Rows},
    },
    hosts::HOST_SHIFT,
    store::{Store, sql_values::seq},
};
use claude_mem_events::{Envelope, Forgotten, Id, LogCompacted, Recorded, Seq};
use claude_mem_log::{CompactionPolicy, Damage, Entry, Gap, Head, RecordAction};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, LazyLock},
};

/// No replies were parsed ahead.
static EMPTY: LazyLock<ReadAhead> = LazyLock::new(ReadAhead::default);

/// Why an event is erased, and how much of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Erasure {
    Forgotten {
        /// The whole session was forgotten.
        is_whole: bool,
    },
    /// Memories of a reply are gone.
    Reply {
        /// The reply or an event that it answers was forgotten. Nothing of the reply is kept.
        is_forgotten: bool,
        /// A later generation superseded the reply.
        is_superseded: bool,
        /// Numbers of the observations that are kept.
        observations: HashSet<i64>,
        /// The summary is kept.
        has_summary: bool,
    },
    /// A failed request; its text is erased if it was about forgotten events.
    Failure,
    /// It is answered, and only a digest is kept.
    Digest,
}

impl Erasure {
    fn is_forgetting(&self) -> bool {
        matches!(self, Self::Forgotten { .. } | Self::Reply { is_forgotten: true, .. })
    }
}

/// Decides what remains of the events in a part of the log.
#[derive(Debug, Clone, Default)]
pub struct Eraser {
    pub(super) kinds: Arc<Vec<String>>,
    pub(super) erasures: HashMap<Seq, Erasure>,
    pub(super) facts: Arc<Facts>,
}

/// Facts from forgettings that rows do not contain.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    /// Ids of forgotten events, sorted.
    forgotten: Vec<[u8; 16]>,
    /// Places of forgettings of whole sessions or projects.
    whole: HashSet<i64>,
    /// Addresses of forgotten memories.
    addresses: HashSet<String>,
    /// SQL: the numbers of the logs whose forgettings count.
    hosts: String,
    /// A forgetting names files. Tombstones then keep file names, so that a rebuild forgets the
    /// same events.
    pub(super) names_files: bool,
}

impl Store {
    /// Prepares erasing in our own log, all of which must be folded. What a machine forgot that the
    /// user did not confirm stays in our log, hidden.
    pub fn eraser(&self) -> Result<Eraser> {
        let facts = Arc::new(self.facts(self.erasing_hosts()?)?);
        let kinds = Arc::new(self.options.kinds.clone());
        Ok(Eraser { kinds, erasures: HashMap::new(), facts })
    }

    fn facts(&self, hosts: String) -> Result<Facts> {
        let sql = format!(
            "select event from events where forgotten_by >> {HOST_SHIFT} in {hosts} and host = 0
             order by event"
        );
        let mut statement = self.connection.prepare(&sql)?;
        let ids = statement.query_map((), |row| row.get(0))?;
        let mut facts =
            Facts { forgotten: ids.collect::<rusqlite::Result<_>>()?, ..Facts::default() };
        let sql = format!(
            "select seq, what from forgettings
             where undoes is null and not is_void and host in {hosts}"
        );
        facts.hosts = hosts;
        let mut statement = self.connection.prepare(&sql)?;
        let mut found = statement.query(())?;
        while let Some(row) = found.next()? {
            let forgotten = serde_json::from_str(&row.get::<_, String>(1)?).unwrap_or_default();
            facts.take(row.get(0)?, forgotten);
        }
        Ok(facts)
    }

    /// The eraser for the events from `from` on and before `to`.
    pub fn eraser_of(&self, eraser: &Eraser, from: Seq, to: Seq) -> Result<Eraser> {
        let mut eraser = Eraser { erasures: HashMap::new(), ..eraser.clone() };
        self.look_up(&mut eraser, from, to)?;
        Ok(eraser)
    }

    /// True if a segment of this machine's log contains a forgotten event.
    pub fn has_forgotten_in(&self, segment: u64) -> Result<bool> {
        let (from, to) = (Seq::new(segment, 0), Seq::new(segment + 1, 0));
        let sql = "select exists (select 1 from events
                       where seq >= ?1 and seq < ?2 and forgotten_by is not null)";
        let mut statement = self.connection.prepare_cached(sql)?;
        let range = (from.raw() as i64, to.raw() as i64);
        Ok(statement.query_row(range, |row| row.get(0))?)
    }

    /// Runs `look` as if the log had been compacted, then rolls back.
    pub fn try_compaction<T>(
        &self,
        compacted: &LogCompacted,
        look: impl FnOnce(&Self) -> Result<T>,
    ) -> Result<T> {
        let trial = self.connection.unchecked_transaction()?;
        let kinds = [];
        let rows = Rows::new(&trial, &kinds, &EMPTY, 0);
        let event = Recorded {
            seq: self.position(0)?,
            id: Id::new(0, 0),
            envelope: Envelope::default(),
            event: compacted.clone().into(),
        };
        Compactions.apply(&rows, &event)?;
        let seen = look(self);
        trial.rollback()?;
        seen
    }

    fn look_up(&self, eraser: &mut Eraser, from: Seq, to: Seq) -> Result<()> {
        let range = (from.raw() as i64, to.raw() as i64);
        self.digests(range, &mut eraser.erasures)?;
        if !eraser.facts.forgotten.is_empty() {
            let sql = "select seq from failures where seq >= ?1 and seq < ?2 and bytes > 0";
            self.each_seq(sql, range, |seq| _ = eraser.erasures.insert(seq, Erasure::Failure))?;
        }
        let sql = format!(
            "select seq, forgotten_by from events where seq >= ?1 and seq < ?2
                 and forgotten_by >> {HOST_SHIFT} in {}",
            eraser.facts.hosts
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut found = statement.query(range)?;
        while let Some(row) = found.next()? {
            let is_whole = eraser.facts.whole.contains(&row.get(1)?);
            let seq = seq(row, 0)?;
            eraser.erasures.insert(seq, Erasure::Forgotten { is_whole });
        }
        self.replies_with_gone(range, eraser)
    }

    fn digests(&self, range: (i64, i64), erasures: &mut HashMap<Seq, Erasure>) -> Result<()> {
        let sql = "select seq from tool_uses where seq >= ?1 and seq < ?2 and is_settled";
        self.each_seq(sql, range, |seq| _ = erasures.insert(seq, Erasure::Digest))
    }

    fn each_seq(&self, sql: &str, range: (i64, i64), mut take: impl FnMut(Seq)) -> Result<()> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut found = statement.query(range)?;
        while let Some(row) = found.next()? {
            take(seq(row, 0)?);
        }
        Ok(())
    }

    fn replies_with_gone(&self, range: (i64, i64), eraser: &mut Eraser) -> Result<()> {
        let by = |condition: &str| format!("forgotten_by >> {HOST_SHIFT} {condition}");
        let (ours, others) = (
            by(&format!("in {}", eraser.facts.hosts)),
            by(&format!("not in {}", eraser.facts.hosts)),
        );
        let answers = "exists (select 1 from answers join events on events.seq = answers.source
            where answers.reply = replies.seq and events.";
        let sql = format!(
            "select seq, event, verdict = 'erased', observations, summaries,
                 exists (select 1 from events where events.seq = replies.seq and {ours})
                 or {answers}{ours}),
                 (select json_group_array(number) from (
                     select number from observations where observations.seq = replies.seq
                     union select number from forgotten_observations
                     where forgotten_observations.event = replies.event
                         and forgetting >> {HOST_SHIFT} not in {})),
                 (select count(*) from summaries where summaries.seq = replies.seq)
                     or {answers}{others})
             from replies where seq >= ?1 and seq < ?2",
            eraser.facts.hosts
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut found = statement.query(range)?;
        while let Some(row) = found.next()? {
            let (seq, id) = (row.get::<_, i64>(0)?, Id::from_bytes(row.get(1)?));
            let (is_superseded, is_forgotten): (bool, bool) = (row.get(2)?, row.get(5)?);
            let observations: HashSet<i64> =
                serde_json::from_str(&row.get::<_, String>(6)?).unwrap_or_default();
            let has_summary = row.get::<_, i64>(7)? > 0;
            let present = observations.len() as i64 + i64::from(has_summary);
            let is_gone = present < row.get::<_, i64>(3)? + row.get::<_, i64>(4)?;
            // A missing row without a known reason does not justify erasing anything.
            if is_forgotten || is_superseded || (is_gone && eraser.facts.explains(id)) {
                let erasure =
                    Erasure::Reply { is_forgotten, is_superseded, observations, has_summary };
                eraser.erasures.insert(Seq::from_raw(seq as u64), erasure);
            }
        }
        Ok(())
    }
}

impl Facts {
    fn take(&mut self, seq: i64, forgotten: Forgotten) {
        let is_part = !forgotten.events.is_empty()
            || !forgotten.rows.is_empty()
            || forgotten.since_us.is_some()
            || forgotten.until_us.is_some()
            || !forgotten.file.is_empty();
        if !is_part && (!forgotten.session.is_empty() || !forgotten.project.is_empty()) {
            self.whole.insert(seq);
        }
        self.names_files |= !forgotten.file.is_empty();
        self.addresses.extend(forgotten.rows);
    }

    /// True if memories of this reply were forgotten by address or by file.
    fn explains(&self, reply: Id) -> bool {
        let reply = reply.to_string();
        self.names_files
            || self.addresses.iter().any(|address| {
                address.split_once('/').map_or(address.as_str(), |(event, _)| event) == reply
            })
    }
}

impl Eraser {
    /// True if nothing in this part of the log is erased.
    pub fn is_empty(&self) -> bool {
        self.erasures.is_empty()
    }

    /// The first and the last place that may be erased.
    pub fn reach(&self) -> Option<(Seq, Seq)> {
        Some((*self.erasures.keys().min()?, *self.erasures.keys().max()?))
    }

    /// True if this part of the log contains a forgotten event.
    fn has_forgotten(&self) -> bool {
        self.erasures.values().any(Erasure::is_forgetting)
    }

    /// True if these segments contain a forgotten event.
    pub fn has_forgotten_in(&self, number: u64, number_last: u64) -> bool {
        self.erasures.iter().any(|(seq, erasure)| {
            (number..=number_last).contains(&seq.segment()) && erasure.is_forgetting()
        })
    }

    /// True if this event was forgotten.
    pub fn is_forgotten(&self, id: Id) -> bool {
        self.facts.forgotten.binary_search(id.as_bytes()).is_ok()
    }

    /// Ids of all forgotten events.
    pub fn forgotten(&self) -> &[[u8; 16]] {
        &self.facts.forgotten
    }
}

impl CompactionPolicy for Eraser {
    fn concerns(&mut self, head: &Head) -> bool {
        self.erasures.contains_key(&head.seq)
    }

    fn judge(&mut self, entry: &Entry<'_>) -> RecordAction {
        self.tombstone_of(entry).map_or(RecordAction::Keep, RecordAction::Erase)
    }

    /// Damaged bytes stay, because a copy may repair them. But where something was forgotten they
    /// are dropped: they may be part of it.
    fn damage(&mut self, gap: &Gap) -> Damage {
        match gap.id {
            _ if !self.has_forgotten() => Damage::Refuse,
            Some(id) if !self.is_forgotten(id) => Damage::Keep,
            _ => Damage::Drop,
        }
    }
}
