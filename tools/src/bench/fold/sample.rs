//! A generated log that resembles real work.

use crate::bench::BenchResult;
use claude_mem_events::{
    AgentReplied, Envelope, Event, EventLog, Id, Project, PromptSubmitted, SessionEnded,
    SessionStarted, SummaryRequested, ToolUsed,
};
use claude_mem_log::Options;
use claude_mem_tools::random::Random;
use std::path::Path;

/// Turns in a session.
const TURNS: u64 = 10;
const TOOLS: u64 = 8;
/// Prompt, tool uses, stop and reply.
const TURN_EVENTS: u64 = TOOLS + 3;
const PROJECTS: u64 = 50;
/// Size of the vocabulary.
const VOCABULARY: u64 = 20_000;

/// Writes random texts.
struct Author(Random);

impl Author {
    /// A word: few are frequent, most are rare.
    fn word(&mut self) -> String {
        let below = 1 + self.0.below(VOCABULARY);
        let mut number = self.0.below(below);
        let mut word = String::new();
        for _ in 0..3 {
            word.push(char::from(b"bdfgklmnprstvz"[(number % 14) as usize]));
            word.push(char::from(b"aeiou"[(number / 14 % 5) as usize]));
            number /= 70;
        }
        word
    }

    fn words(&mut self, count: u64) -> String {
        (0..count).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    fn observation(&mut self) -> String {
        let (title, subtitle, narrative) = (self.words(8), self.words(12), self.words(60));
        let facts: String = (0..4).map(|_| format!("<fact>{}</fact>", self.words(12))).collect();
        let name = format!("{}{}", self.word(), "Handler");
        format!(
            "<observation><type>feature</type><title>{title}</title><subtitle>{subtitle}</subtitle>\
             <facts>{facts}<fact>{name} is new</fact></facts><narrative>{narrative}</narrative>\
             <concepts><concept>pattern</concept></concepts></observation>"
        )
    }

    fn reply(&mut self) -> String {
        let field = |name: &str, text: String| format!("<{name}>{text}</{name}>");
        let summary = [
            field("request", self.words(12)),
            field("investigated", self.words(25)),
            field("learned", self.words(25)),
            field("completed", self.words(25)),
            field("next_steps", self.words(15)),
        ]
        .concat();
        format!("{}{}<summary>{summary}</summary>", self.observation(), self.observation())
    }
}

/// Fills a log with about `events` events; returns their number.
pub(in crate::bench) fn fill_sample(dir: &Path, events: u64) -> BenchResult<u64> {
    let mut log = EventLog::open(dir, Options::default())?;
    let mut dice = Author(Random::new(0x9E37_79B9_7F4A_7C15));
    let mut count = 0;
    let mut session = 0;
    while count < events {
        let batch = conversation(&mut dice, session, count);
        log.record_all(&batch)?;
        count += batch.len() as u64;
        session += 1;
    }
    Ok(count)
}

fn conversation(dice: &mut Author, session: u64, first: u64) -> Vec<(Id, Envelope, Event)> {
    let project = session % PROJECTS;
    let root = format!("/home/me/project-{project}");
    let envelope = Envelope {
        host: "bench".into(),
        platform: "claude-code".into(),
        session: format!("00000000-0000-4000-8000-{session:012}"),
        project: Project {
            key: format!("example.org/{project}"),
            label: format!("project-{project}"),
            root: root.clone(),
        },
        branch: "main".into(),
        commit: format!("{session:040x}"),
    };
    let mut events = Vec::with_capacity((TURNS * TURN_EVENTS + 2) as usize);
    let mut add = |event: Event| {
        let number = first + events.len() as u64;
        let id = Id::new(1_760_000_000_000_000 + number * 1_000_000, number << 2);
        events.push((id, envelope.clone(), event));
        *id.as_bytes()
    };
    add(SessionStarted { source: "startup".into(), ..SessionStarted::default() }.into());
    for turn in 0..TURNS {
        let prompt_id = format!("p{turn}");
        let prompt = dice.words(20);
        add(PromptSubmitted { prompt, prompt_id: prompt_id.clone(), ..PromptSubmitted::default() }
            .into());
        let mut answers: Vec<_> = (0..TOOLS)
            .map(|tool| add(tool_use(dice, &root, &prompt_id, turn, tool).into()))
            .collect();
        let last_assistant_message = dice.words(60);
        let stop =
            SummaryRequested { last_assistant_message, prompt_id, ..SummaryRequested::default() };
        answers.push(add(stop.into()));
        add(AgentReplied {
            answers,
            provider: "anthropic".into(),
            model: "small".into(),
            prompt_version: "v".into(),
            reply: dice.reply(),
            attempt: 1,
            tokens_in: 4000,
            tokens_out: 400,
            cost_micros: 900,
            ..AgentReplied::default()
        }
        .into());
    }
    add(SessionEnded { reason: "other".into(), ..SessionEnded::default() }.into());
    events
}

fn tool_use(dice: &mut Author, root: &str, prompt_id: &str, turn: u64, tool: u64) -> ToolUsed {
    let path = format!("{root}/src/{}.rs", dice.word());
    ToolUsed {
        tool: ["Read", "Edit", "Bash", "Write"][(tool % 4) as usize].into(),
        input: format!(r#"{{"file_path":"{path}","old_string":"{}"}}"#, dice.words(20)),
        output: format!(r#"{{"stdout":"{}"}}"#, dice.words(100)),
        tool_use_id: format!("toolu_{turn}_{tool}"),
        prompt_id: prompt_id.into(),
        cwd: root.into(),
        ..ToolUsed::default()
    }
}
