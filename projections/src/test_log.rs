//! Logs for tests: each call adds one event, a second after the one before.

use crate::{Options, Store};
use claude_mem_events::{
    AgentReplied, Envelope, Event, Id, Project, PromptSubmitted, Recorded, ReprocessFinished,
    ReprocessStarted, Seq, SummaryRequested, ToolUsed,
};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The time of the first event.
pub(crate) const BEGIN_US: u64 = 1_760_000_000_000_000;

pub(crate) struct TestLog {
    pub(crate) events: Vec<Recorded>,
    pub(crate) envelope: Envelope,
    pub(crate) at_us: u64,
    pub(crate) prompt_id: String,
}

impl TestLog {
    /// A log of session `s` in the project at `/p`.
    pub(crate) fn new() -> Self {
        let project = Project { key: "k".into(), label: "p".into(), root: "/p".into() };
        let envelope = Envelope {
            host: "h".into(),
            platform: "claude-code".into(),
            session: "s".into(),
            project,
            ..Envelope::default()
        };
        Self { events: Vec::new(), envelope, at_us: BEGIN_US, prompt_id: String::new() }
    }

    pub(crate) fn add(&mut self, event: impl Into<Event>) -> [u8; 16] {
        self.at_us += 1_000_000;
        let number = self.events.len() as u64 + 1;
        let id = Id::new(self.at_us, number << 2);
        let envelope = self.envelope.clone();
        let seq = Seq::new(1, number);
        self.events.push(Recorded { seq, id, envelope, event: event.into() });
        *id.as_bytes()
    }

    pub(crate) fn prompt(&mut self, text: &str) -> [u8; 16] {
        let prompt_id = self.prompt_id.clone();
        self.add(PromptSubmitted { prompt: text.into(), prompt_id, ..PromptSubmitted::default() })
    }

    pub(crate) fn tool(&mut self, tool: &str, input: &str) -> [u8; 16] {
        let tool_use_id = format!("t{}", self.events.len());
        let (tool, input) = (tool.into(), input.into());
        let prompt_id = self.prompt_id.clone();
        self.add(ToolUsed { tool, input, tool_use_id, prompt_id, ..ToolUsed::default() })
    }

    pub(crate) fn stop(&mut self) -> [u8; 16] {
        let prompt_id = self.prompt_id.clone();
        self.add(SummaryRequested { prompt_id, ..SummaryRequested::default() })
    }

    pub(crate) fn reply(&mut self, answers: &[[u8; 16]], reply: &str) -> [u8; 16] {
        self.reply_in(0, "v0", answers, reply)
    }

    pub(crate) fn reply_in(
        &mut self,
        generation: u32,
        version: &str,
        answers: &[[u8; 16]],
        reply: &str,
    ) -> [u8; 16] {
        self.add(AgentReplied {
            answers: answers.to_vec(),
            provider: "extract".into(),
            model: "m".into(),
            prompt_version: version.into(),
            generation,
            reply: reply.into(),
            attempt: 1,
            tokens_in: 10,
            tokens_out: 1,
            cost_micros: 5,
            ..AgentReplied::default()
        })
    }

    pub(crate) fn start(&mut self, generation: u32, version: &str) {
        let prompt_version = version.into();
        self.add(ReprocessStarted { generation, prompt_version, ..ReprocessStarted::default() });
    }

    pub(crate) fn finish(&mut self, generation: u32, is_current: bool) {
        self.add(ReprocessFinished { generation, is_current });
    }

    /// Folds the whole log, and again one event at a time: both must give the same rows.
    pub(crate) fn fold(&self) -> Store {
        let mut store = Store::in_memory().unwrap();
        store.fold_events(&self.events).unwrap();
        store.check_index().unwrap();
        let options = Options { batch_events: 1, ..Options::default() };
        let mut slow = Store::in_memory_with(options).unwrap();
        for event in &self.events {
            slow.fold_events(std::slice::from_ref(event)).unwrap();
        }
        assert_eq!(all(&store), all(&slow));
        store
    }
}

/// A reply with one observation that has only a title.
pub(crate) fn titled(title: &str) -> String {
    format!("<observation><type>feature</type><title>{title}</title></observation>")
}

/// A dump of every table.
pub(crate) fn all(store: &Store) -> String {
    let mut text = Vec::new();
    store.write_dump(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// Steps of SQLite's machine during a call: work that does not depend on the clock.
pub(crate) fn steps(store: &mut Store, call: impl FnOnce(&Store)) -> u64 {
    let steps = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&steps);
    let count = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        false
    };
    store.connection.progress_handler(1, Some(count)).unwrap();
    call(store);
    store.connection.progress_handler(0, None::<fn() -> bool>).unwrap();
    steps.load(Ordering::Relaxed)
}
