//! Events from programs that are not hooks, sent to the worker over HTTP or `worker.sock`.
//!
//! The messages have the field names of Claude Code's hooks. Session, client and project are named
//! next to the message, and no path in it is opened.

use std::borrow::Cow;

use crate::{
    clients::{
        claude_code,
        normalize::{self, ToolNames},
    },
    incoming::{Incoming, IncomingKind},
    payload::{Payload, text},
    project::ProjectId,
    recorder::{Access, Captured, Recorder, Source},
};

/// What editors report, and Claude Code's name of it.
const TOOLS: ToolNames = &[("FileSave", "Edit")];

/// A JSON object from a program, without the fields taken so far.
#[derive(Debug, Clone)]
pub struct Message<'a>(Payload<'a>);

impl<'a> Message<'a> {
    /// Splits it into fields without copying.
    pub fn read(text: &'a str) -> Result<Self, String> {
        match Payload::read(text) {
            (payload, None) => Ok(Self(payload)),
            (_, Some(malformed)) => Err(malformed.error),
        }
    }

    /// Takes a string; `None` if it is absent, empty or of another type.
    pub fn take(&mut self, name: &str) -> Option<Cow<'a, str>> {
        self.0.take(name).and_then(string)
    }

    /// Returns a string without taking it.
    pub fn peek(&self, name: &str) -> Option<Cow<'a, str>> {
        self.0.peek(name).and_then(string)
    }

    /// Whether there is a field of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.peek(name).is_some()
    }
}

/// The content of a JSON string that is not empty.
fn string(json: &str) -> Option<Cow<'_, str>> {
    json.starts_with('"').then(|| text(json)).filter(|text| !text.is_empty())
}

/// An event from a program.
#[derive(Debug)]
pub struct ExternalEvent<'a> {
    pub kind: IncomingKind,
    /// The client's session id.
    pub session: &'a str,
    pub message: Message<'a>,
    /// The client whose session it is.
    pub client: &'a str,
    pub project: ProjectId,
}

/// Captures an event from a program.
pub fn accept(recorder: &Recorder, event: ExternalEvent<'_>) -> Result<Captured, String> {
    let Message(mut payload) = event.message;
    // Removed because a transcript path would be opened, and because event and session are named
    // next to the message.
    for name in ["transcript_path", "agent_transcript_path", "session_id", "hook_event_name"] {
        payload.take(name);
    }
    if event.session.trim().is_empty() {
        return Err("there is no session id".into());
    }
    let source = Source {
        client: event.client,
        session: Cow::Borrowed(event.session),
        cwd: payload.text("cwd"),
        access: Access::Program { project: event.project },
    };
    let captured =
        recorder.limited("program", || match claude_code::parse(&mut payload, Some(event.kind)) {
            Ok(mut incoming) => {
                if let Incoming::ToolUse(used) = &mut incoming {
                    normalize::rename(used, TOOLS);
                }
                recorder.capture(source, incoming, payload)
            }
            Err(skip) => Ok(Captured::Skipped(skip)),
        });
    captured.map_err(|problem| problem.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use claude_mem_core::{environment::Environment, paths::Paths};
    use claude_mem_events::Event;

    struct Case {
        dir: tempfile::TempDir,
        environment: Environment,
    }

    impl Case {
        fn new(environment: &[(&str, &str)]) -> Self {
            let environment = Environment::fixed(environment);
            Self { dir: tempfile::tempdir().unwrap(), environment }
        }

        fn accept(&self, kind: IncomingKind, json: &str) -> Result<Captured, String> {
            let paths = Paths { home: None, data: self.dir.path().into() };
            let project = ProjectId::unseen("/work/shop");
            let message = Message::read(json)?;
            let session = message.peek("session_id").unwrap_or_default();
            let client = "claude-code";
            let event = ExternalEvent { kind, session: &session, message, client, project };
            accept(&Recorder::new(self.environment.clone(), paths), event)
        }

        fn skipped(&self, kind: IncomingKind, json: &str) -> &'static str {
            match self.accept(kind, json).unwrap() {
                Captured::Skipped(skipped) => skipped.reason(),
                Captured::Event { event, .. } => panic!("{event:?}"),
            }
        }
    }

    #[test]
    fn an_event_from_a_program_is_redacted_like_a_hooks() {
        let key = format!("sk-ant-api03-{}", "aB3".repeat(20));
        let json = format!(
            r#"{{"session_id": "s", "tool_name": "Bash", "tool_input": {{"command": "<private>x</private>ls"}},
                "tool_response": "{key}", "cwd": "/work/shop"}}"#
        );
        let captured = Case::new(&[]).accept(IncomingKind::ToolUse, &json).unwrap();
        let Captured::Event { envelope, event: Event::ToolUsed(used), .. } = captured else {
            panic!("{captured:?}");
        };
        assert_eq!((envelope.session.as_str(), envelope.project.label.as_str()), ("s", "shop"));
        assert_eq!(used.input, r#"{"command": "[redacted:private]ls"}"#);
        assert!(!used.output.contains("aB3aB3"), "{}", used.output);
    }

    #[test]
    fn events_that_hooks_skip_are_skipped_with_a_reason() {
        let case = Case::new(&[("CLAUDE_MEM_SKIP_TOOLS", "Glob")]);
        let used = |tool: &str| format!(r#"{{"session_id": "s", "tool_name": "{tool}"}}"#);
        assert_eq!(case.skipped(IncomingKind::ToolUse, &used("Glob")), "tool_excluded");
        assert_eq!(
            case.skipped(IncomingKind::ToolUse, &used("mcp__claude-mem__search")),
            "session_memory_meta"
        );
        let prompt = r#"{"session_id": "s", "prompt": "<private>all of it</private>"}"#;
        assert!(matches!(
            case.accept(IncomingKind::Prompt, prompt).unwrap(),
            Captured::Event { event: Event::PromptSubmitted(submitted), .. } if submitted.is_private && submitted.prompt.is_empty()
        ));
        assert_eq!(case.skipped(IncomingKind::ToolUse, &used("Bash")), "private");
        let case = Case::new(&[("CLAUDE_MEM_EXCLUDED_PROJECTS", "/work/*")]);
        assert_eq!(case.skipped(IncomingKind::ToolUse, &used("Bash")), "project_excluded");
    }

    #[test]
    fn no_path_in_a_message_is_opened() {
        let case = Case::new(&[]);
        let transcript = case.dir.path().join("transcript.jsonl");
        let line = r#"{"type":"assistant","message":{"role":"assistant","content":"SEEN"}}"#;
        std::fs::write(&transcript, line).unwrap();
        let json = format!(r#"{{"session_id": "s", "transcript_path": {transcript:?}}}"#);
        let captured = case.accept(IncomingKind::Stop, &json).unwrap();
        let Captured::Event { event: Event::SummaryRequested(stop), .. } = captured else {
            panic!("{captured:?}");
        };
        assert_eq!(stop.last_assistant_message, "");
    }

    #[test]
    fn the_repository_that_a_message_names_is_not_read() {
        let case = Case::new(&[]);
        std::fs::create_dir(case.dir.path().join(".git")).unwrap();
        std::fs::write(case.dir.path().join(".git/HEAD"), "ref: refs/heads/SEEN\n").unwrap();
        let folder = case.dir.path().to_str().unwrap();
        assert_eq!(ProjectId::of(case.dir.path()).head().branch, "SEEN");
        let message = Message::read("{}").unwrap();
        let project = ProjectId::unseen(folder);
        let (kind, client) = (IncomingKind::SessionEnd, "claude-code");
        let event = ExternalEvent { kind, session: "s", message, client, project };
        let paths = Paths { home: None, data: case.dir.path().join("data") };
        let captured = accept(&Recorder::new(case.environment.clone(), paths), event).unwrap();
        let Captured::Event { envelope, .. } = captured else { panic!("{captured:?}") };
        assert_eq!((envelope.project.root.as_str(), envelope.branch.as_str()), (folder, ""));
    }

    #[test]
    fn a_message_without_object_or_session_is_an_error() {
        let case = Case::new(&[]);
        for json in ["", "[]", "{\"session_id\": ", "{}", r#"{"session_id": " "}"#] {
            assert!(case.accept(IncomingKind::ToolUse, json).is_err(), "{json}");
        }
    }
}
