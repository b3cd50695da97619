//! Batches: events of one log, read together and folded in one transaction.

use crate::{
    error::Result,
    fold::{projection::ReadAhead, stops},
    hosts::{HOST_SHIFT, Host, HostLog, with_host},
    xml,
};
use claude_mem_events::{Event, EventItem, EventReader, Recorded, Seq};
use claude_mem_log::Log;
use std::sync::Arc;

/// A batch also ends at this size, to bound memory.
const BATCH_BYTES_MAX: usize = 8 << 20;

/// One of the logs that are folded.
#[derive(Debug, Clone)]
pub(crate) struct LogSource<'a> {
    pub(crate) log: &'a Log,
    /// Identity of the log.
    pub(super) id: Option<[u8; 16]>,
    /// The host; `None` for our own log.
    pub(super) host: Option<&'a Host>,
}

impl<'a> LogSource<'a> {
    /// Our own log first, then the others.
    pub(crate) fn all(own: &'a Log, foreign: &'a [HostLog]) -> Vec<Self> {
        let own = Self { log: own, id: own.id(), host: None };
        let others = foreign.iter().map(|foreign| Self {
            log: &foreign.log,
            id: Some(foreign.id),
            host: Some(&foreign.host),
        });
        [own].into_iter().chain(others).collect()
    }

    pub(super) fn number(&self) -> u8 {
        self.host.map_or(0, |host| host.number)
    }
}

/// Events read together and folded in one transaction.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Identity of their log.
    pub(super) log: Option<[u8; 16]>,
    /// The host; `None` for our own log.
    pub(super) host: Option<Host>,
    pub(super) from: Seq,
    pub(crate) items: Vec<EventItem>,
    pub(super) to: Seq,
    pub(super) replies: ReadAhead,
}

impl Batch {
    /// Reads up to `events_max` events; an empty batch is the end of the log.
    pub(crate) fn read(
        source: &LogSource<'_>,
        reader: &mut EventReader,
        events_max: usize,
    ) -> Result<Self> {
        let (log, host) = (source.id, source.host.cloned());
        let mut batch = Self { log, host, from: reader.position(), ..Self::default() };
        let mut bytes = 0;
        while batch.items.len() < events_max && bytes < BATCH_BYTES_MAX {
            let Some(item) = reader.next()? else { break };
            bytes += weight(&item);
            batch.items.push(match source.number() {
                0 => item,
                number => with_host(item, number),
            });
        }
        batch.to = reader.position();
        Ok(batch)
    }

    /// Parses the replies in the batch ahead of folding, in the reading thread.
    pub(crate) fn read_replies(&mut self, kinds: &[String]) {
        for item in &self.items {
            let EventItem::Event(Recorded { seq, event: Event::AgentReplied(replied), .. }) = item
            else {
                continue;
            };
            let reply = Arc::new(xml::read_reply(&replied.reply, kinds));
            self.replies.insert(seq.raw(), reply);
        }
    }

    pub(super) fn number(&self) -> u8 {
        self.host.as_ref().map_or(0, |host| host.number)
    }

    /// A place of its log, with the number of the host.
    pub(super) fn place(&self, seq: Seq) -> i64 {
        i64::from(self.number()) << HOST_SHIFT | seq.raw() as i64
    }
}

fn weight(item: &EventItem) -> usize {
    let EventItem::Event(recorded) = item else { return 0 };
    match &recorded.event {
        Event::ToolUsed(used) => used.input.len() + used.output.len() + used.error.len(),
        Event::PromptSubmitted(prompt) => prompt.prompt.len(),
        Event::SummaryRequested(stop) => stops::text_bytes(stop),
        Event::AgentReplied(replied) => replied.reply.len(),
        Event::AgentFailed(failed) => failed.reply.len(),
        Event::Imported(imported) => imported.row.len(),
        Event::Unknown { payload, .. } => payload.len(),
        _ => 0,
    }
}
