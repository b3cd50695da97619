//! What compaction may erase: forgotten and superseded content, and raw content of which a digest
//! is enough. Also what remains of it as a tombstone.
//!
//! Rows decide. An event is erased because a forgetting marks it, a memory in a reply because its
//! row is gone and a forgetting or a compaction explains why. Tombstones fold into the same rows,
//! including those that a later event removes, so that a rebuild from a compacted log gives the
//! same database.

use crate::{
    error::Result,
    fold::{
        Compactions, files_touched,
        projection::{Projection as _, ReadAhead, Rows},
        prompts::submitter,
    },
    store::{Store, sql_values::seq},
    xml::{self, Observation, Reply, Summary},
};
use claude_mem_events::{
    AgentFailed, AgentReplied, Envelope, Event, Forgotten, Id, Imported, LogCompacted,
    PromptSubmitted, Recorded, Seq, Tombstone, ToolUsed,
};
use claude_mem_log::{Damage, Entry, Fate, Gap, Head, Judge};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, LazyLock},
};

/// No replies were parsed ahead.
static EMPTY: LazyLock<ReadAhead> = LazyLock::new(ReadAhead::default);

/// Why an event is erased, and how much of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Erasure {
    /// It was forgotten.
    Forgotten {
        /// Whether the whole session was.
        is_whole: bool,
    },
    /// Memories of a reply are gone.
    Reply {
        /// Whether the reply, or an event that it answers, was forgotten: then nothing of it stays.
        is_forgotten: bool,
        /// Whether a later generation superseded it.
        is_superseded: bool,
        /// The numbers of the observations that remain.
        observations: HashSet<i64>,
        /// Whether the summary remains.
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
    kinds: Arc<Vec<String>>,
    erasures: HashMap<Seq, Erasure>,
    facts: Arc<Facts>,
}

/// Facts from forgettings that rows do not contain.
#[derive(Debug, Clone, Default)]
struct Facts {
    /// Ids of forgotten events, sorted.
    forgotten: Vec<[u8; 16]>,
    /// Places of forgettings of whole sessions or projects.
    whole: HashSet<i64>,
    /// Addresses of forgotten memories.
    addresses: HashSet<String>,
    /// Whether a forgetting names files. Tombstones then keep file names, so that the forgetting
    /// matches the same events in a rebuild.
    names_files: bool,
}

/// Smaller payloads are not worth a digest.
const DIGEST_BYTES_MIN: usize = 256;

impl Store {
    /// Prepares erasing in our own log, all of which must be folded.
    pub fn eraser(&self) -> Result<Eraser> {
        let facts = Arc::new(self.facts()?);
        let kinds = Arc::new(self.options.kinds.clone());
        Ok(Eraser { kinds, erasures: HashMap::new(), facts })
    }

    fn facts(&self) -> Result<Facts> {
        let sql = "select event from events where forgotten_by is not null and host = 0
                   order by event";
        let mut statement = self.connection.prepare(sql)?;
        let ids = statement.query_map((), |row| row.get(0))?;
        let mut facts =
            Facts { forgotten: ids.collect::<rusqlite::Result<_>>()?, ..Facts::default() };
        let sql = "select seq, what from forgettings where undoes is null and not is_void";
        let mut statement = self.connection.prepare(sql)?;
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

    /// Whether anything in this segment of our own log was forgotten.
    pub fn has_forgotten_in(&self, segment: u64) -> Result<bool> {
        let (from, to) = (Seq::new(segment, 0), Seq::new(segment + 1, 0));
        let sql = "select exists (select 1 from events
                       where seq >= ?1 and seq < ?2 and forgotten_by is not null)";
        let mut statement = self.connection.prepare_cached(sql)?;
        let range = (from.raw() as i64, to.raw() as i64);
        Ok(statement.query_row(range, |row| row.get(0))?)
    }

    /// What would be erased if the log were compacted now.
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
        let sql = "select seq, forgotten_by from events
                   where seq >= ?1 and seq < ?2 and forgotten_by is not null";
        let mut statement = self.connection.prepare_cached(sql)?;
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
        let sql = "select seq, event, verdict = 'erased', observations, summaries,
                       exists (select 1 from events where events.seq = replies.seq
                           and forgotten_by is not null)
                       or exists (select 1 from answers join events on events.seq = answers.source
                           where answers.reply = replies.seq and events.forgotten_by is not null),
                       (select json_group_array(number) from observations
                           where observations.seq = replies.seq),
                       (select count(*) from summaries where summaries.seq = replies.seq)
                   from replies where seq >= ?1 and seq < ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut found = statement.query(range)?;
        while let Some(row) = found.next()? {
            let (seq, id) = (row.get::<_, i64>(0)?, Id::from_bytes(row.get(1)?));
            let (is_superseded, is_forgotten): (bool, bool) = (row.get(2)?, row.get(5)?);
            let observations: HashSet<i64> =
                serde_json::from_str(&row.get::<_, String>(6)?).unwrap_or_default();
            let has_summary = row.get::<_, i64>(7)? > 0;
            let present = observations.len() as i64 + i64::from(has_summary);
            let is_gone = present < row.get::<_, i64>(3)? + row.get::<_, i64>(4)?;
            // A missing row without a known reason is no reason to erase anything.
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

    /// Whether memories of this reply were forgotten by address or by file.
    fn explains(&self, reply: Id) -> bool {
        let reply = reply.to_string();
        self.names_files
            || self.addresses.iter().any(|address| {
                address.split_once('/').map_or(address.as_str(), |(event, _)| event) == reply
            })
    }
}

impl Eraser {
    /// Whether nothing in this part of the log is erased.
    pub fn is_empty(&self) -> bool {
        self.erasures.is_empty()
    }

    /// The first and the last place that may be erased.
    pub fn reach(&self) -> Option<(Seq, Seq)> {
        Some((*self.erasures.keys().min()?, *self.erasures.keys().max()?))
    }

    /// Whether anything in it was forgotten.
    fn has_forgotten(&self) -> bool {
        self.erasures.values().any(Erasure::is_forgetting)
    }

    /// Whether anything in these segments was forgotten.
    pub fn has_forgotten_in(&self, number: u64, number_last: u64) -> bool {
        self.erasures.iter().any(|(seq, erasure)| {
            (number..=number_last).contains(&seq.segment()) && erasure.is_forgetting()
        })
    }

    /// Whether this event was forgotten.
    pub fn is_forgotten(&self, id: Id) -> bool {
        self.facts.forgotten.binary_search(id.as_bytes()).is_ok()
    }

    /// Ids of all forgotten events.
    pub fn forgotten(&self) -> &[[u8; 16]] {
        &self.facts.forgotten
    }

    /// The tombstone that replaces a record; `None` if the record stays.
    pub fn left(&self, entry: &Entry<'_>) -> Option<Vec<u8>> {
        let erasure = self.erasures.get(&entry.seq)?;
        let recorded = Recorded::from_entry(entry);
        let (event, before) = match &recorded.event {
            Event::Erased { left: None, .. } => return None,
            Event::Erased { left: Some(left), .. } => (left.event.as_ref(), Some(left.as_ref())),
            event => (Some(event), None),
        };
        let left = match erasure {
            Erasure::Digest => digest(event?, before, entry)?,
            Erasure::Failure => self.failure(event?, before)?,
            Erasure::Forgotten { is_whole } => self.forgotten_event(event, before, *is_whole),
            Erasure::Reply { is_forgotten, is_superseded, observations, has_summary } => {
                let (is_forgotten, has_summary) = (*is_forgotten, *has_summary);
                let is_all = is_forgotten || *is_superseded;
                let gone = Gone { is_all, is_forgotten, observations, has_summary };
                self.reply(event?, before, &gone)?
            }
        };
        let mut envelope = recorded.envelope;
        // Of a session forgotten as a whole, its git state is forgotten, too.
        if matches!(erasure, Erasure::Forgotten { is_whole: true }) {
            envelope = Envelope { branch: String::new(), commit: String::new(), ..envelope };
        }
        let payload = match left.encode(&envelope) {
            Ok(payload) => payload,
            // The tombstone would be too large for a record: nothing remains of what was forgotten.
            Err(_) if matches!(erasure, Erasure::Forgotten { .. }) => Vec::new(),
            Err(_) => return None,
        };
        (payload != entry.payload).then_some(payload)
    }

    fn forgotten_event(
        &self,
        event: Option<&Event>,
        before: Option<&Tombstone>,
        is_whole: bool,
    ) -> Tombstone {
        let blank = event.and_then(|event| blank(event, is_whole));
        let mut left = Tombstone::of_forgotten(blank);
        left.bytes = before.map_or_else(|| event.map_or(0, failure_bytes), |left| left.bytes);
        if self.facts.names_files {
            let named = event.map(|event| files(event, before)).unwrap_or_default();
            (left.files_read, left.files_written) = (named.read, named.written);
        }
        left
    }

    fn failure(&self, event: &Event, before: Option<&Tombstone>) -> Option<Tombstone> {
        let Event::AgentFailed(failed) = event else { return None };
        let is_about = failed.answers.iter().any(|id| self.is_forgotten(Id::from_bytes(*id)));
        if !is_about || before.is_some() {
            return None;
        }
        let bytes = failed.reply.len() as u64;
        let blank = AgentFailed { reply: String::new(), ..failed.clone() };
        Some(Tombstone { bytes, ..Tombstone::of_forgotten(Some(blank.into())) })
    }

    fn reply(
        &self,
        event: &Event,
        before: Option<&Tombstone>,
        gone: &Gone<'_>,
    ) -> Option<Tombstone> {
        let (text, blank) = match event {
            Event::AgentReplied(replied) => {
                let blank = AgentReplied { reply: String::new(), ..replied.clone() };
                (&replied.reply, Event::from(blank))
            }
            Event::AgentFailed(failed) => {
                let message =
                    if gone.is_forgotten { String::new() } else { failed.message.clone() };
                let blank = AgentFailed { reply: String::new(), message, ..failed.clone() };
                (&failed.reply, Event::from(blank))
            }
            _ => return None,
        };
        let mut reply = match before {
            Some(left) => serde_json::from_str(&left.reply).unwrap_or_default(),
            None => xml::read_reply(text, self.kinds.as_slice()),
        };
        gone.take_from(&mut reply, self.facts.names_files);
        let bytes = before.map_or(text.len() as u64, |left| left.bytes);
        let reply = serde_json::to_string(&reply).expect("texts can be written");
        Some(Tombstone { bytes, reply, ..Tombstone::of_forgotten(Some(blank)) })
    }
}

impl Judge for Eraser {
    fn concerns(&mut self, head: &Head) -> bool {
        self.erasures.contains_key(&head.seq)
    }

    fn judge(&mut self, entry: &Entry<'_>) -> Fate {
        self.left(entry).map_or(Fate::Keep, Fate::Erase)
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

struct Gone<'a> {
    is_all: bool,
    is_forgotten: bool,
    observations: &'a HashSet<i64>,
    has_summary: bool,
}

impl Gone<'_> {
    /// Empties the memories that are gone, but keeps their numbers.
    fn take_from(&self, reply: &mut Reply, keeps_files: bool) {
        for (index, observation) in reply.observations.iter_mut().enumerate() {
            // A revised observation stays when its reply is superseded.
            if self.is_forgotten || !self.observations.contains(&(index as i64 + 1)) {
                let old = std::mem::take(observation);
                if keeps_files {
                    let Observation { files_read, files_modified, .. } = old;
                    *observation =
                        Observation { files_read, files_modified, ..Observation::default() };
                }
            }
        }
        if let Some(summary) = &mut reply.summary
            && (self.is_all || !self.has_summary)
        {
            let old = std::mem::take(summary);
            if keeps_files {
                let Summary { files_read, files_edited, .. } = old;
                *summary = Summary { files_read, files_edited, ..Summary::default() };
            }
        }
        if self.is_all {
            // The reason why there is no summary is text of the model, too.
            reply.summary_skipped = reply.summary_skipped.take().map(|_| String::new());
            reply.corrects.clear();
        }
    }
}

fn failure_bytes(event: &Event) -> u64 {
    match event {
        Event::AgentFailed(failed) => failed.reply.len() as u64,
        _ => 0,
    }
}

/// The event without its content. If only a part of a session was forgotten, its folder is kept.
fn blank(event: &Event, is_whole: bool) -> Option<Event> {
    match event {
        Event::SessionStarted(started) if !is_whole => {
            let mut started = started.clone();
            started.extra.clear();
            Some(started.into())
        }
        // Without its text, nothing else says that nobody typed it.
        Event::PromptSubmitted(prompt) => {
            let submitter = submitter(prompt);
            Event::from(PromptSubmitted { submitter, ..prompt.clone() }).blanked()
        }
        Event::Imported(imported) => {
            let row = blank_row(&imported.row);
            Some(Imported { row, ..imported.clone() }.into())
        }
        event => event.blanked(),
    }
}

/// Columns of an imported row that other rows depend on: times, numbers and references.
const COLUMNS_KEPT: [&str; 12] = [
    "prompt_number",
    "created_at_epoch",
    "started_at_epoch",
    "completed_at_epoch",
    "status",
    "memory_session_id",
    "tool_name",
    "tool_use_id",
    "agent_id",
    "agent_type",
    "discovery_tokens",
    "type",
];

fn blank_row(row: &str) -> String {
    let Ok(mut columns) = serde_json::from_str::<Map<String, Value>>(row) else {
        return String::new();
    };
    columns.retain(|name, _| COLUMNS_KEPT.contains(&name.as_str()));
    Value::Object(columns).to_string()
}

fn files(event: &Event, before: Option<&Tombstone>) -> files_touched::FilesTouched {
    match (event, before) {
        (_, Some(left)) => files_touched::FilesTouched {
            read: left.files_read.clone(),
            written: left.files_written.clone(),
        },
        (Event::ToolUsed(used), None) => files_touched::named(&used.tool, &used.input),
        _ => files_touched::FilesTouched::default(),
    }
}

/// A tool use without its input and output.
fn digest(event: &Event, before: Option<&Tombstone>, entry: &Entry<'_>) -> Option<Tombstone> {
    let Event::ToolUsed(used) = event else { return None };
    let bytes = used.input.len() + used.output.len() + used.error.len();
    if before.is_some() || bytes < DIGEST_BYTES_MIN {
        return None;
    }
    let none = String::new;
    let (input, output, error, extra) = (none(), none(), none(), none());
    let named = files(event, None);
    Some(Tombstone {
        event: Some(ToolUsed { input, output, error, extra, ..used.clone() }.into()),
        bytes: bytes as u64,
        files_read: named.read,
        files_written: named.written,
        reply: String::new(),
        hash: Some(Sha256::digest(entry.payload).into()),
    })
}
