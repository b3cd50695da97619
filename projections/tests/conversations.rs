//! Hook payloads of nine real conversations, folded: sessions, turns and files.
//!
//! `conversations/*.jsonl` contain the hooks' payloads in order, with shortened ids and texts;
//! `*.txt` the expected result.

#![allow(clippy::unwrap_used, reason = "this is a test")]

use claude_mem_events::{
    Envelope, Event, Id, Project, PromptSubmitted, Recorded, Seq, SessionEnded, SessionStarted,
    StopScope, Submitter, SummaryRequested, ToolUsed,
};
use claude_mem_projections::Store;
use serde_json::Value;
use std::{fmt::Write as _, fs, path::Path};

const NOW_US: u64 = 1_760_000_000_000_000;

fn text(payload: &Value, field: &str) -> String {
    payload[field].as_str().unwrap_or_default().to_owned()
}

fn event(payload: &Value) -> Event {
    let text = |field| text(payload, field);
    match text("event").as_str() {
        "SessionStart" => {
            SessionStarted { source: text("source"), cwd: text("cwd"), ..SessionStarted::default() }
                .into()
        }
        "UserPromptSubmit" => PromptSubmitted {
            prompt: text("prompt"),
            prompt_id: text("prompt_id"),
            submitter: match text("prompt").starts_with("<task-notification>") {
                true => Submitter::TaskNotification,
                false => Submitter::User,
            },
            cwd: text("cwd"),
            ..PromptSubmitted::default()
        }
        .into(),
        "Stop" | "SubagentStop" => SummaryRequested {
            scope: match (text("event").as_str(), text("agent_type").as_str()) {
                ("Stop", _) => StopScope::Turn,
                (_, "") => StopScope::Compaction,
                _ => StopScope::Subagent,
            },
            last_assistant_message: text("last_assistant_message"),
            prompt_id: text("prompt_id"),
            agent_id: text("agent_id"),
            agent_type: text("agent_type"),
            ..SummaryRequested::default()
        }
        .into(),
        "SessionEnd" => SessionEnded { reason: text("reason"), ..SessionEnded::default() }.into(),
        _ => ToolUsed {
            tool: text("tool"),
            input: payload["input"].to_string(),
            error: text("error"),
            has_failed: text("event") == "PostToolUseFailure",
            tool_use_id: text("tool_use_id"),
            prompt_id: text("prompt_id"),
            agent_id: text("agent_id"),
            agent_type: text("agent_type"),
            cwd: text("cwd"),
            ..ToolUsed::default()
        }
        .into(),
    }
}

fn recorded(lines: &str) -> Vec<Recorded> {
    let project = Project { key: "k".into(), label: "p".into(), root: "/scratch/project".into() };
    let read = |(index, line): (usize, &str)| {
        let payload: Value = serde_json::from_str(line).unwrap();
        let envelope = Envelope {
            host: "h".into(),
            platform: "claude-code".into(),
            session: text(&payload, "session"),
            project: project.clone(),
            ..Envelope::default()
        };
        let number = index as u64 + 1;
        let id = Id::new(NOW_US + number * 1_000_000, number << 2);
        Recorded { seq: Seq::new(1, number), id, envelope, event: event(&payload) }
    };
    lines.lines().enumerate().map(read).collect()
}

fn folded(events: &[Recorded]) -> String {
    let mut store = Store::in_memory().unwrap();
    store.fold_events(events).unwrap();
    store.check_index().unwrap();
    let mut out = String::new();
    for session in store.sessions(NOW_US + 3_600_000_000, 100).unwrap().iter().rev() {
        let name = &session.content_session;
        writeln!(
            out,
            "session {name}: {}, {} prompts, {} tool uses",
            session.status, session.prompts, session.tool_uses
        )
        .unwrap();
    }
    for (title, sql) in [
        (
            "prompts: session, number, turn, submitter, text",
            "select s.session, number, p.turn, submitter, text from prompts p join sessions s on \
             s.id = p.session order by p.seq",
        ),
        (
            "tool uses: session, prompt, turn, tool, id, failed, agent, read, written",
            "select s.session, t.prompt_number, t.turn, tool, tool_use_id, has_failed, \
             agent_type, files_read, files_written from tool_uses t join sessions s on s.id = \
             t.session order by t.tool_use_id",
        ),
        (
            "stops: session, prompt, turn, scope, agent",
            "select s.session, t.prompt_number, t.turn, scope, agent_type from stops t join \
             sessions s on s.id = t.session order by t.seq",
        ),
    ] {
        writeln!(out, "-- {title}").unwrap();
        out.push_str(&store.dump(sql).unwrap());
    }
    out
}

fn conversations() -> Vec<(String, String, String)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conversations");
    let mut names: Vec<_> = fs::read_dir(&dir)
        .unwrap()
        .filter_map(|entry| {
            entry.unwrap().file_name().into_string().ok()?.strip_suffix(".jsonl").map(str::to_owned)
        })
        .collect();
    names.sort();
    let read = |name: &str, suffix| {
        fs::read_to_string(dir.join(format!("{name}.{suffix}"))).unwrap_or_default()
    };
    names.into_iter().map(|name| (read(&name, "jsonl"), read(&name, "txt"), name)).collect()
}

#[test]
fn every_conversation_folds_to_what_happened() {
    let conversations = conversations();
    assert_eq!(conversations.len(), 9);
    for (lines, expected, name) in conversations {
        assert_eq!(folded(&recorded(&lines)), expected, "{name}");
    }
}

#[test]
fn parallel_tools_may_come_in_any_order() {
    for (lines, expected, name) in conversations() {
        let mut events = recorded(&lines);
        // Reverses every run of tool uses.
        let is_tool = |event: &Recorded| matches!(event.event, Event::ToolUsed(_));
        for run in events.chunk_by_mut(|a, b| is_tool(a) && is_tool(b)) {
            let mut bodies: Vec<_> = run.iter().map(|event| event.event.clone()).collect();
            bodies.reverse();
            for (event, body) in run.iter_mut().zip(bodies) {
                event.event = body;
            }
        }
        assert_eq!(folded(&events), expected, "{name}");
    }
}

#[test]
fn an_event_recorded_twice_counts_once() {
    for (lines, expected, name) in conversations() {
        let events = recorded(&lines);
        let mut twice = Vec::new();
        for event in &events {
            twice.push(event.clone());
            // The same event again, and the same tool use under another id.
            twice.push(event.clone());
            if let Event::ToolUsed(_) = event.event {
                let id = Id::new(event.at_us(), 1 << 40 | event.seq.raw() << 2);
                twice.push(Recorded { id, ..event.clone() });
            }
        }
        for (index, event) in twice.iter_mut().enumerate() {
            event.seq = Seq::new(1, index as u64 + 1);
        }
        assert_eq!(folded(&twice), expected, "{name}");
    }
}
