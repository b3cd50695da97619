//! A fictitious client that has nothing in common with Claude Code: different field names, nested
//! tool calls, plain-text transcripts, empty responses. It shows what a new client needs: this
//! file, the payloads in `tests/fixtures/clients/example` and one line in `CLIENTS`.

use claude_mem_events::StopScope;
use serde_json::Value;

use super::{BASE, Client, ContextMax, Response, SessionFields, evidence::Evidence};
use crate::{
    incoming::{
        Incoming, IncomingKind, LastMessages, Prompt, SessionEnd, SessionStart, Skip, Stop, ToolUse,
    },
    payload::Payload,
    transcript::{Message, Speaker},
};

pub(super) static EXAMPLE: Client = Client {
    name: "example",
    evidence: Evidence { fields: &[("chatId", None)], ..Evidence::NONE },
    session_variable: Some("EXAMPLE_CHAT"),
    session,
    parse,
    transcript_line: Some(transcript_line),
    tool_prefix: "claude-mem_",
    context_at: &[(IncomingKind::Prompt, ContextMax::Bytes(500))],
    respond,
    ..BASE
};

fn session<'a>(payload: &mut Payload<'a>) -> SessionFields<'a> {
    SessionFields { id: payload.take_text("chatId"), cwd: payload.take_text("workspace") }
}

fn parse<'a>(
    payload: &mut Payload<'a>,
    expected: Option<IncomingKind>,
) -> Result<Incoming<'a>, Skip> {
    assert_eq!(expected, None, "only Claude Code has aliases");
    match &*payload.text("event") {
        "chat.opened" => {
            payload.take("userEmail");
            let source = match &*payload.text("reason") {
                "new" => "startup".into(),
                other => other.to_owned().into(),
            };
            let model = payload.text("engine");
            Ok(Incoming::SessionStart(SessionStart { source, model, ..SessionStart::default() }))
        }
        "chat.message" if payload.peek("parentChat").is_some() => Err(Skip::NotForUs),
        "chat.message" => {
            let parts: Vec<Value> =
                serde_json::from_str(&payload.json("parts")).unwrap_or_default();
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            let text = texts.join(" ").into();
            Ok(Incoming::Prompt(Prompt { text, prompt_id: payload.text("turn") }))
        }
        "tool.finished" => {
            let call: Value = serde_json::from_str(&payload.json("call")).unwrap_or_default();
            let error = payload.text("failure");
            Ok(Incoming::ToolUse(ToolUse {
                tool: call["name"].as_str().unwrap_or_default().to_owned().into(),
                input: call["arguments"].to_string().into(),
                output: payload.json("result"),
                has_failed: !error.is_empty(),
                error,
                tool_use_id: payload.text("callId"),
                prompt_id: payload.text("turn"),
                ..ToolUse::default()
            }))
        }
        "chat.idle" => Ok(Incoming::Stop(Stop {
            last_messages: LastMessages::InTranscript(payload.take_text("record")),
            prompt_id: payload.text("turn"),
            ..Stop::default()
        })),
        "chat.closed" => Ok(Incoming::SessionEnd(SessionEnd { reason: payload.text("reason") })),
        other => Err(Skip::UnknownEvent(other.to_owned())),
    }
}

fn transcript_line(line: &[u8], _: StopScope) -> Option<Message> {
    let (speaker, text) = match line.split_at_checked(2)? {
        (b"U ", text) => (Speaker::User, text),
        (b"A ", text) => (Speaker::Assistant, text),
        _ => return None,
    };
    Some(Message { speaker, text: String::from_utf8_lossy(text).into_owned() })
}

/// Memory as plain text, or no output.
fn respond(response: &Response) -> String {
    response.context.clone().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use claude_mem_events::{Envelope, Event, EventItem, EventReader, Seq};
    use claude_mem_log::{Log, Options};

    use super::*;
    use crate::{HookCommand, HookOutcome, Input, Recorder, clients, record_hook};
    use claude_mem_core::{environment::Environment, paths::Paths};

    /// Feeds all fixtures to the recorder, in order.
    fn record(data: &Path) -> Vec<HookOutcome> {
        let fixtures =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/clients/example");
        let record = fixtures.join("record.txt");
        let paths = Paths { home: None, data: data.into() };
        let recorder = Recorder::new(Environment::fixed(&[]), paths);
        let client = clients::find("example").expect("one line in CLIENTS registers it");
        let files = fs::read_dir(fixtures).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = files.filter(|file| file.extension().unwrap() == "json").collect();
        files.sort();
        let outcome = |file: &std::path::PathBuf| {
            let text = fs::read_to_string(file).unwrap();
            let text = text.replace("RECORD", record.to_str().unwrap());
            record_hook(&recorder, HookCommand::of(client), &Input::of(text.as_bytes()))
        };
        files.iter().map(outcome).collect()
    }

    fn events(data: &Path) -> Vec<(Envelope, Event)> {
        let log = Log::open(&data.join("log"), Options::default()).unwrap();
        let mut reader = EventReader::from(&log, Seq::START);
        let mut events = Vec::new();
        while let Some(EventItem::Event(read)) = reader.next().unwrap() {
            events.push((read.envelope, read.event));
        }
        events
    }

    #[test]
    fn a_client_with_a_different_format_is_recorded() {
        let dir = tempfile::tempdir().unwrap();
        let outcomes = record(dir.path());
        let kinds: Vec<_> = outcomes.iter().map(|outcome| outcome.kind).collect();
        let tool = Some(IncomingKind::ToolUse);
        let expected = [
            Some(IncomingKind::SessionStart),
            Some(IncomingKind::Prompt),
            None,
            tool,
            tool,
            tool,
            Some(IncomingKind::Stop),
            Some(IncomingKind::SessionEnd),
            None,
        ];
        assert_eq!(kinds, expected);
        let begun = outcomes[0].begun.as_ref().unwrap();
        assert_eq!((begun.envelope.session.as_str(), begun.source.as_str()), ("c-1", "startup"));

        let events = events(dir.path());
        for (envelope, event) in &events {
            let place = (&*envelope.platform, &*envelope.session, &*envelope.project.root);
            assert_eq!(place, ("example", "c-1", "/work/shop"), "{event:?}");
        }
        let [started, prompt, tool, failed, stop, ended, unknown] = &events[..] else {
            panic!("{events:?}")
        };
        let Event::SessionStarted(started) = &started.1 else { panic!("{started:?}") };
        assert_eq!((started.model.as_str(), started.extra.as_str()), ("m-1", ""));
        let Event::PromptSubmitted(prompt) = &prompt.1 else { panic!("{prompt:?}") };
        assert_eq!((&*prompt.prompt, &*prompt.prompt_id), ("fix the parser", "t-1"));
        let Event::ToolUsed(tool) = &tool.1 else { panic!("{tool:?}") };
        assert_eq!((&*tool.tool, &*tool.output, tool.has_failed), ("shell", "\"ok\"", false));
        assert_eq!(tool.input, r#"{"command":"echo [redacted:private] ok"}"#);
        assert_eq!(tool.extra, r#"{"exitCode":0}"#);
        let Event::ToolUsed(failed) = &failed.1 else { panic!("{failed:?}") };
        assert_eq!((&*failed.tool_use_id, &*failed.error), ("k-3", "exit code 1"));
        assert!(failed.has_failed);
        let Event::SummaryRequested(stop) = &stop.1 else { panic!("{stop:?}") };
        assert_eq!(stop.last_assistant_message, "It was the comma.");
        assert_eq!(stop.last_user_message, "fix the parser");
        let Event::SessionEnded(ended) = &ended.1 else { panic!("{ended:?}") };
        assert_eq!(ended.reason, "window");
        let Event::InputUnreadable(unknown) = &unknown.1 else { panic!("{unknown:?}") };
        assert_eq!(unknown.hook, "hook");
    }

    #[test]
    fn a_client_responds_in_its_own_format_or_not_at_all() {
        assert_eq!((EXAMPLE.respond)(&Response::default()), "");
        let response = Response {
            context: Some("memory".into()),
            event: Some(IncomingKind::Prompt),
            notice: None,
        };
        assert_eq!((EXAMPLE.respond)(&response), "memory");
        let claude = clients::CLAUDE_CODE.respond;
        assert_eq!(
            claude(&Response::default()),
            "{\"continue\": true, \"suppressOutput\": true}\n"
        );
        let rendered: Value = serde_json::from_str(&claude(&response)).unwrap();
        let output = &rendered["hookSpecificOutput"];
        assert_eq!(output["additionalContext"], "memory");
        assert_eq!(output["hookEventName"], "UserPromptSubmit");
    }
}
