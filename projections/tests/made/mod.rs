//! Logs for tests with every kind of event, as they occur in practice.

#![allow(dead_code, reason = "each test takes what it needs")]

use claude_mem_events::{
    AgentFailed, AgentReplied, Envelope, Event, EventLog, FailureClass, Forgotten, Id, Imported,
    InputUnreadable, MemoryAdded, MemoryRevised, ObservationRef, Project, ProjectMerged,
    PromptSubmitted, ReprocessFinished, ReprocessStarted, Revision, SessionEnded, SessionStarted,
    SummaryRequested, ToolUsed,
};
use claude_mem_log::{Log, Options};
use std::path::Path;

pub(crate) const BEGIN_US: u64 = 1_760_000_000_000_000;

/// Writes events to a log.
pub(crate) struct Writer {
    log: EventLog,
    pub(crate) at_us: u64,
    count: u64,
    pub(crate) envelope: Envelope,
    replies: Vec<[u8; 16]>,
}

impl Writer {
    pub(crate) fn new(dir: &Path) -> Self {
        let options = Options { segment_bytes_max: 64 << 10, ..Options::default() };
        let log = EventLog::open(dir, options).unwrap();
        Self { log, at_us: BEGIN_US, count: 0, envelope: Envelope::default(), replies: Vec::new() }
    }

    pub(crate) fn add(&mut self, event: impl Into<Event>) -> [u8; 16] {
        self.at_us += 1_000_000;
        self.count += 1;
        let id = Id::new(self.at_us, self.count << 2);
        self.log.record(id, &self.envelope, &event.into()).unwrap();
        *id.as_bytes()
    }

    /// One session with a few turns; returns the ids of its tool uses.
    pub(crate) fn session(&mut self, number: u64) -> Vec<[u8; 16]> {
        let project = number % 3;
        self.envelope = Envelope {
            host: "h".into(),
            platform: "claude-code".into(),
            session: format!("session-{number}"),
            project: Project {
                key: format!("example.org/{project}"),
                label: format!("project {project}"),
                root: format!("/home/project-{project}"),
            },
            ..Envelope::default()
        };
        self.add(SessionStarted { source: "startup".into(), ..SessionStarted::default() });
        let tools = (0..3).flat_map(|turn| self.turn(number, turn)).collect();
        if !number.is_multiple_of(4) {
            self.add(SessionEnded { reason: "other".into(), ..SessionEnded::default() });
        }
        tools
    }

    fn turn(&mut self, session: u64, turn: u64) -> Vec<[u8; 16]> {
        let prompt = format!("make part {turn} of thing {session} faster, 記憶喪失");
        let prompt_id = format!("p{turn}");
        let is_private = (session + turn).is_multiple_of(7);
        let prompt = if is_private { String::new() } else { prompt };
        self.add(PromptSubmitted {
            prompt,
            is_private,
            prompt_id: prompt_id.clone(),
            ..PromptSubmitted::default()
        });
        let root = self.envelope.project.root.clone();
        let mut answers: Vec<_> = (0..4)
            .map(|tool| {
                let input = format!(r#"{{"file_path":"{root}/src/part_{turn}.rs"}}"#);
                self.add(ToolUsed {
                    tool: ["Read", "Edit", "Bash", "Write"][tool].into(),
                    input,
                    output: "x".repeat((session as usize * 37 + tool * 501) % 3000),
                    has_failed: tool == 3 && session.is_multiple_of(2),
                    tool_use_id: format!("t{turn}-{tool}"),
                    prompt_id: prompt_id.clone(),
                    ..ToolUsed::default()
                })
            })
            .collect();
        let tools = answers.clone();
        answers.push(self.add(SummaryRequested {
            last_assistant_message: "done".into(),
            prompt_id,
            ..SummaryRequested::default()
        }));
        match (session + turn) % 5 {
            0 => self.fail(&answers),
            1 => {}
            _ => {
                self.reply(0, "v0", &answers, session, turn);
            }
        }
        tools
    }

    fn fail(&mut self, answers: &[[u8; 16]]) {
        for attempt in 1..=3 {
            self.add(AgentFailed {
                answers: answers.to_vec(),
                class: FailureClass::Unreadable,
                message: "prose".into(),
                reply: "I would rather not.".into(),
                attempt,
                tokens_in: 100,
                ..AgentFailed::default()
            });
        }
    }

    fn reply(
        &mut self,
        generation: u32,
        version: &str,
        answers: &[[u8; 16]],
        session: u64,
        turn: u64,
    ) {
        let reply = format!(
            "<observation><type>feature</type><title>part {turn} of thing {session} in \
             {version}</title><facts><fact>readReply is_fast</fact></facts><files_modified>\
             <file>src/other.rs</file></files_modified></observation><observation><title>second \
             {version}</title><narrative>The second observation of a reply says more than its \
             title.</narrative><corrects>Second…</corrects></observation><summary>\
             <request>faster</request><next_steps>none left</next_steps></summary>"
        );
        let reply = self.add(AgentReplied {
            answers: answers.to_vec(),
            provider: "anthropic".into(),
            model: "m".into(),
            prompt_version: version.into(),
            generation,
            reply,
            memory_session_id: format!("memory-{session}"),
            attempt: 1,
            tokens_in: 1000,
            tokens_out: 50,
            cost_micros: 77,
            ..AgentReplied::default()
        });
        self.replies.push(reply);
    }

    /// Revises an observation of a reply.
    pub(crate) fn revise(&mut self, event: [u8; 16], number: u32, revision: Revision) {
        let target = ObservationRef { event, number };
        self.add(MemoryRevised { target, revision, via: "cli".into() });
    }

    /// One revision of each kind: of the last reply, and of the ones before.
    pub(crate) fn revisions(&mut self) {
        let by = ObservationRef { event: self.replies[0], number: 1 };
        let text = Some("Edited by hand.".into());
        for (revision, reply) in [
            Revision::Edited { title: Some("edited".into()), text, kind: None },
            Revision::Pinned,
            Revision::MarkedWrong { because: "it never was".into() },
            Revision::SupersededBy(by),
            Revision::Unpinned,
            Revision::Restored,
        ]
        .into_iter()
        .zip(self.replies.clone().into_iter().rev())
        {
            self.revise(reply, 1, revision);
        }
    }

    /// All events outside of sessions.
    pub(crate) fn history(&mut self, tools: &[[u8; 16]]) {
        self.add(MemoryAdded { text: "use tabs".into(), ..MemoryAdded::default() });
        self.add(ReprocessStarted {
            generation: 1,
            prompt_version: "v1".into(),
            ..ReprocessStarted::default()
        });
        for (index, answers) in tools.chunks(4).enumerate() {
            self.reply(1, "v1", answers, index as u64, 0);
        }
        self.add(ReprocessFinished { generation: 1, is_current: true });
        self.add(Forgotten { events: vec![tools[1]], ..Forgotten::default() });
        self.add(ProjectMerged {
            from: "example.org/1".into(),
            into: "example.org/0".into(),
            label: "both".into(),
        });
        self.add(InputUnreadable { hook: "save".into(), ..InputUnreadable::default() });
        self.add(Imported {
            source: "claude-mem-ts".into(),
            origin: "o".into(),
            table: "observation".into(),
            row_id: "17".into(),
            row: r#"{"type":"bugfix","title":"old","facts":"[\"a\"]","created_at_epoch":1700000000000}"#
                .into(),
        });
    }
}

/// Fills the log in `dir` with `sessions` sessions and everything else.
pub(crate) fn fill(dir: &Path, sessions: u64) -> Log {
    let mut writer = Writer::new(dir);
    let tools: Vec<_> = (0..sessions).flat_map(|number| writer.session(number)).collect();
    // Tests of short logs count on a single segment.
    if sessions > 3 {
        writer.revisions();
    }
    writer.history(&tools);
    if sessions > 3 {
        writer.revisions();
    }
    writer.session(sessions);
    Log::open(dir, Options::default()).unwrap()
}

/// Every table as text.
pub(crate) fn dump(store: &claude_mem_projections::Store) -> String {
    store.check_index().unwrap();
    let mut text = Vec::new();
    store.write_dump(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}
