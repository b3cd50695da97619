//! What remains of an erased event: a tombstone.
//!
//! Tombstones fold into the same rows, including those that a later event removes, so that a
//! rebuild from a compacted log gives the same database.

use crate::{
    fold::{files_touched, prompts::submitter},
    maintain::erasures::{Eraser, Erasure},
    xml::{self, Observation, Reply, Summary},
};
use claude_mem_events::{
    AgentFailed, AgentReplied, Envelope, Event, Id, Imported, PromptSubmitted, Recorded, Tombstone,
    ToolUsed,
};
use claude_mem_log::Entry;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::collections::HashSet;

/// Smaller payloads are not worth a digest.
const DIGEST_BYTES_MIN: usize = 256;

impl Eraser {
    /// The tombstone that replaces a record; `None` if the record stays.
    pub fn tombstone_of(&self, entry: &Entry<'_>) -> Option<Vec<u8>> {
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
                let gone = ErasedParts { is_all, is_forgotten, observations, has_summary };
                self.reply(event?, before, &gone)?
            }
        };
        let mut envelope = recorded.envelope;
        // If a whole session was forgotten, its git state is forgotten, too.
        if matches!(erasure, Erasure::Forgotten { is_whole: true }) {
            envelope = Envelope { branch: String::new(), commit: String::new(), ..envelope };
        }
        let payload = match left.encode(&envelope) {
            Ok(payload) => payload,
            // The tombstone would be too large for a record, so nothing is kept of the forgotten
            // event.
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
        gone: &ErasedParts<'_>,
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

struct ErasedParts<'a> {
    is_all: bool,
    is_forgotten: bool,
    observations: &'a HashSet<i64>,
    has_summary: bool,
}

impl ErasedParts<'_> {
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
        // Without its text, only the submitter shows that it was not typed.
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
