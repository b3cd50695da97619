//! Events told by programs that are not hooks: the same cleaning, the same exclusions, another way in.

use std::{borrow::Cow, path::Path};

use claude_mem_events::{Envelope, Event};

use crate::{is_our_tool, project::ProjectId};
use crate::{
    payload::{Payload, text},
    private_turn::PrivateTurn,
    recorder::{Call, Fact, Problem, World, bounded},
};
use claude_mem_core::{environment::Environment, paths::Paths};
use claude_mem_privacy::clean_text;

/// One JSON object that a program sent, with what nobody has taken out of it yet.
#[derive(Debug, Clone)]
pub struct Message<'a>(Payload<'a>);

impl<'a> Message<'a> {
    /// Takes it apart, and copies nothing.
    pub fn read(text: &'a str) -> Result<Self, String> {
        match Payload::read(text) {
            (payload, None) => Ok(Self(payload)),
            (_, Some(malformed)) => Err(malformed.error),
        }
    }

    /// Takes out what is a text; nothing, if it is empty or something else.
    pub fn take(&mut self, name: &str) -> Option<Cow<'a, str>> {
        self.0.take(name).and_then(said)
    }

    /// A text that stays where it is.
    pub fn peek(&self, name: &str) -> Option<Cow<'a, str>> {
        self.0.peek(name).and_then(said)
    }

    /// Whether there is something of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.peek(name).is_some()
    }
}

/// What is in a JSON string, if it is one and there is something in it.
fn said(json: &str) -> Option<Cow<'_, str>> {
    json.starts_with('"').then(|| text(json)).filter(|text| !text.is_empty())
}

/// What a program told.
#[derive(Debug)]
pub struct Told<'a> {
    /// The hook that would have told it: `context`, `new`, `save`, `summary`, `cleanup`.
    pub hook: &'static str,
    /// The watched program's id of the session.
    pub session: &'a str,
    /// What that hook gets. Paths in it are text: none of them is opened.
    pub message: Message<'a>,
    /// Which program is watched.
    pub platform: &'a str,
    /// What is worked on.
    pub project: ProjectId,
}

/// What becomes of it.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are recorded")]
pub enum Heard {
    /// It is to be appended.
    Event { envelope: Envelope, event: Event },
    /// It is not to be recorded.
    Skipped(Skipped),
}

/// Why something is not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skipped {
    /// The user said something in private, or does something in a private turn.
    Private,
    /// The project is left out by a setting.
    Project,
    /// The tool is left out by a setting.
    Tool,
    /// The tool is one of ours: what memory said must not come back as news.
    OurTool,
}

impl Skipped {
    /// One word for a program.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Project => "project_excluded",
            Self::Tool => "tool_excluded",
            Self::OurTool => "session_memory_meta",
        }
    }
}

/// Makes an event of what was told, as the hook would have.
pub fn hear(environment: &Environment, paths: &Paths, told: Told<'_>) -> Result<Heard, String> {
    let world = World::new(environment.clone(), paths.clone());
    world.limited(told.hook, || hear_in(&world, paths, told))
}

fn hear_in(world: &World, paths: &Paths, told: Told<'_>) -> Result<Heard, String> {
    let Message(mut payload) = told.message;
    // A hook reads the end of the transcript where the client does not say what was said last. What it is and of
    // which session was said beside it.
    for name in ["transcript_path", "agent_transcript_path", "session_id", "hook_event_name"] {
        payload.take(name);
    }
    if told.session.trim().is_empty() {
        return Err("there is no session id".into());
    }
    let session = bounded(clean_text(told.session, world.policy).text);
    let cwd = payload.take_text("cwd").map_or(Cow::Borrowed(""), |cwd| cwd);
    let cwd = bounded(clean_text(&cwd, world.policy).text);
    if !world.admits(&told.project, Path::new(&cwd)) {
        return Ok(Heard::Skipped(Skipped::Project));
    }
    let envelope = world.envelope(told.project, told.platform, &session);
    let turn = PrivateTurn::of(&paths.data, &session);
    let is_ours = payload.peek_text("tool_name").is_some_and(|tool| is_our_tool(&tool));
    let call = Call { world, payload, event_name: String::new(), cwd, turn, bytes_taken: 0 };
    let fact = call.fact(told.hook).map_err(|problem: Problem| problem.to_string())?;
    match fact.map_err(|malformed| malformed.error)? {
        Some(Fact::Synced(event) | Fact::Plain(event)) => Ok(Heard::Event { envelope, event }),
        None if PrivateTurn::of(&paths.data, &session).is_on() => {
            Ok(Heard::Skipped(Skipped::Private))
        }
        None if is_ours => Ok(Heard::Skipped(Skipped::OurTool)),
        None => Ok(Heard::Skipped(Skipped::Tool)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Case {
        dir: tempfile::TempDir,
        environment: Environment,
    }

    impl Case {
        fn new(environment: &[(&str, &str)]) -> Self {
            let environment = Environment::fixed(environment);
            Self { dir: tempfile::tempdir().unwrap(), environment }
        }

        fn hear(&self, hook: &'static str, json: &str) -> Result<Heard, String> {
            let paths = Paths { home: None, data: self.dir.path().into() };
            let project = ProjectId::unseen("/work/shop");
            let message = Message::read(json)?;
            let session = message.peek("session_id").unwrap_or_default();
            let told = Told { hook, session: &session, message, platform: "claude-code", project };
            hear(&self.environment, &paths, told)
        }

        fn skipped(&self, hook: &'static str, json: &str) -> &'static str {
            match self.hear(hook, json).unwrap() {
                Heard::Skipped(skipped) => skipped.reason(),
                Heard::Event { event, .. } => panic!("{event:?}"),
            }
        }
    }

    #[test]
    fn what_is_told_is_cleaned_like_what_hooks_tell() {
        let key = format!("sk-ant-api03-{}", "aB3".repeat(20));
        let json = format!(
            r#"{{"session_id": "s", "tool_name": "Bash", "tool_input": {{"command": "<private>x</private>ls"}},
                "tool_response": "{key}", "cwd": "/work/shop"}}"#
        );
        let heard = Case::new(&[]).hear("save", &json).unwrap();
        let Heard::Event { envelope, event: Event::ToolUsed(used), .. } = heard else {
            panic!("{heard:?}");
        };
        assert_eq!((envelope.session.as_str(), envelope.project.label.as_str()), ("s", "shop"));
        assert_eq!(used.input, r#"{"command": "[redacted:private]ls"}"#);
        assert!(!used.output.contains("aB3aB3"), "{}", used.output);
    }

    #[test]
    fn what_hooks_leave_out_is_left_out() {
        let case = Case::new(&[("CLAUDE_MEM_SKIP_TOOLS", "Glob")]);
        let used = |tool: &str| format!(r#"{{"session_id": "s", "tool_name": "{tool}"}}"#);
        assert_eq!(case.skipped("save", &used("Glob")), "tool_excluded");
        assert_eq!(case.skipped("save", &used("mcp__claude-mem__search")), "session_memory_meta");
        let prompt = r#"{"session_id": "s", "prompt": "<private>all of it</private>"}"#;
        assert!(matches!(
            case.hear("new", prompt).unwrap(),
            Heard::Event { event: Event::PromptSubmitted(said), .. } if said.is_private && said.prompt.is_empty()
        ));
        assert_eq!(case.skipped("save", &used("Bash")), "private");
        let case = Case::new(&[("CLAUDE_MEM_EXCLUDED_PROJECTS", "/work/*")]);
        assert_eq!(case.skipped("save", &used("Bash")), "project_excluded");
    }

    #[test]
    fn no_path_that_is_told_is_opened() {
        let case = Case::new(&[]);
        let transcript = case.dir.path().join("transcript.jsonl");
        let line = r#"{"type":"assistant","message":{"role":"assistant","content":"SEEN"}}"#;
        std::fs::write(&transcript, line).unwrap();
        let json = format!(r#"{{"session_id": "s", "transcript_path": {transcript:?}}}"#);
        let heard = case.hear("summary", &json).unwrap();
        let Heard::Event { event: Event::SummaryRequested(stop), .. } = heard else {
            panic!("{heard:?}");
        };
        assert_eq!(stop.last_assistant_message, "");
    }

    #[test]
    fn what_is_no_object_or_of_no_session_is_refused() {
        let case = Case::new(&[]);
        for json in ["", "[]", "{\"session_id\": ", "{}", r#"{"session_id": " "}"#] {
            assert!(case.hear("save", json).is_err(), "{json}");
        }
    }
}
