//! Tokens for distilling: whole turns compared with one call per tool use.

use super::{Figure, Group, Outcome, Row, Scratch, Settings, Verdict};
use claude_mem_tools::model::{Answer, Request, Server};
use serde_json::{Value, json};
use std::{
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

pub(super) const GROUP: Group = Group {
    name: "ask",
    about: "The cost of distilling in tokens: a quarter of the bytes of instructions, data and \
            reply. The tool uses were recorded from the real client. The real hooks capture them, \
            and the real `distill` sends them to a scripted model, which counts what it receives. \
            In all variants, a third of the tool uses gets an observation.",
    figures: &[("tokens", measure)],
};

/// A token of English text or code has about four bytes.
const TOKEN_BYTES: usize = 4;

/// Typical replies of a model.
const OBSERVATION_BYTES: usize = 700;
const SUMMARY_BYTES: usize = 900;

/// Recorded sessions of the real client.
const RECORDED: [&str; 4] = ["tools_basic", "tools_failing", "parallel_tools", "big_output"];

fn measure(settings: &Settings, scratch: &Scratch) -> Outcome<Vec<Figure>> {
    let sessions = match settings.quick {
        true => vec![("tools_basic", Session::recorded("tools_basic")?)],
        false => sessions()?,
    };
    let mut rows = Vec::new();
    let mut ratios = Vec::new();
    for (name, session) in &sessions {
        let place = |arm: &str| scratch.place(&format!("ask-{name}-{arm}"));
        let turn = session.ask(&place("turn"), false)?;
        let tool = session.ask(&place("tool"), true)?;
        let talk = session.conversation(turn.system_bytes);
        let count = session.tool_uses();
        let each = |tokens: usize| format!("{}", tokens / count);
        rows.push(Row::new(
            *name,
            vec![
                count.to_string(),
                format!("{} / {}", turn.calls, tool.calls),
                each(turn.tokens),
                each(tool.tokens),
                format!("{:.1}", tool.tokens as f64 / turn.tokens as f64),
                each(talk),
                format!("{:.1}", talk as f64 / turn.tokens as f64),
            ],
        ));
        ratios.push(talk as f64 / turn.tokens as f64);
    }
    ratios.sort_by(f64::total_cmp);
    let (least, median) = (ratios[0], ratios[ratios.len() / 2]);
    Ok(vec![Figure {
        title: "Tokens per tool use".into(),
        about: "By turn: all tool uses of a turn and its summary in one call, edits as \
                differences, long texts without their middle. By tool use: the same text, one \
                call after each tool use and one at the end. In a conversation: one call per tool \
                use with its whole JSON, to an agent that reads all earlier calls again each \
                time, cached or not; calculated from the recorded bytes."
            .into(),
        columns: vec![
            "tool uses",
            "calls by turn / by tool use",
            "by turn",
            "by tool use",
            "× by turn",
            "in a conversation",
            "× by turn",
        ],
        rows,
        verdict: Some(Verdict {
            target: "at least 5 times fewer than one call for each tool use in a conversation"
                .into(),
            reached: format!(
                "{median:.1} times fewer in the median session, {least:.1} in the least"
            ),
            is_met: median >= 5.0,
        }),
    }])
}

/// Each recorded session, and all their tool uses as one long turn.
fn sessions() -> Outcome<Vec<(&'static str, Session)>> {
    let mut sessions = Vec::new();
    let mut long = Session::default();
    for name in RECORDED {
        let session = Session::recorded(name)?;
        let tools = session.payloads.iter().filter(|(hook, _)| *hook == "save");
        long.payloads.extend(tools.cloned());
        sessions.push((name, session));
    }
    let prompt = json!({"hook_event_name": "UserPromptSubmit", "prompt": "do all of it"});
    long.payloads.insert(0, ("new", prompt));
    let stop = json!({"hook_event_name": "Stop", "last_assistant_message": "All of it is done."});
    long.payloads.push(("summary", stop));
    sessions.push(("all in one turn", long));
    Ok(sessions)
}

/// The hook payloads of a session, in order.
#[derive(Debug, Default)]
struct Session {
    payloads: Vec<(&'static str, Value)>,
}

/// Bytes sent to a model, and received.
struct Sent {
    calls: usize,
    tokens: usize,
    system_bytes: usize,
}

impl Session {
    fn recorded(name: &str) -> Outcome<Self> {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/hooks");
        let mut files: Vec<PathBuf> = fs::read_dir(&dir)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        let prefix = format!("{name}.");
        files.retain(|file| {
            file.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&prefix))
        });
        files.sort();
        let mut session = Self::default();
        for file in files {
            let payload: Value = serde_json::from_str(&fs::read_to_string(file)?)?;
            let hook = match payload["hook_event_name"].as_str().unwrap_or_default() {
                "UserPromptSubmit" => "new",
                "PostToolUse" | "PostToolUseFailure" => "save",
                "Stop" => "summary",
                _ => continue,
            };
            session.payloads.push((hook, payload));
        }
        Ok(session)
    }

    fn tool_uses(&self) -> usize {
        self.payloads.iter().filter(|(hook, _)| *hook == "save").count()
    }

    /// Records the session and distills it: at its end, or after each tool use.
    fn ask(&self, home: &Path, after_each: bool) -> Outcome<Sent> {
        fs::create_dir_all(home)?;
        let tools_seen = Arc::new(AtomicUsize::new(0));
        let server = Server::answering(move |request| Answer::text(reply(request, &tools_seen)))?;
        let run = |arguments: &[&str], input: &str| run(home, &server, arguments, input);
        for (number, (hook, payload)) in self.payloads.iter().enumerate() {
            let mut payload = payload.clone();
            payload["session_id"] = json!("measured");
            payload["cwd"] = json!(home);
            if let Some(object) = payload.as_object_mut() {
                // The turn is the only one in the session.
                object.remove("prompt_id");
            }
            if *hook == "save" {
                payload["tool_use_id"] = json!(format!("tool {number}"));
            }
            run(&[hook], &payload.to_string())?;
            if after_each && *hook == "save" {
                run(&["distill"], "")?;
            }
        }
        run(&["distill"], "")?;
        Ok(Sent::count(&server.requests()))
    }

    /// Tokens of one call for each tool use and one for the end, in one conversation.
    fn conversation(&self, system_bytes: usize) -> usize {
        let (mut history, mut bytes) = (system_bytes, 0);
        let mut tools = 0;
        for (hook, payload) in &self.payloads {
            let (asked, replied) = match *hook {
                "save" => {
                    tools += 1;
                    let shown = json!({
                        "tool_name": payload["tool_name"], "tool_input": payload["tool_input"],
                        "tool_response": payload["tool_response"], "error": payload["error"],
                    });
                    let reveals_text = tools % 3 == 1;
                    (
                        shown.to_string().len(),
                        if reveals_text { OBSERVATION_BYTES } else { SKIP.len() },
                    )
                }
                "summary" => {
                    let message = payload["last_assistant_message"].as_str().unwrap_or_default();
                    (message.len(), SUMMARY_BYTES)
                }
                // Sent with the first tool use of its turn.
                _ => {
                    history += payload["prompt"].as_str().unwrap_or_default().len();
                    continue;
                }
            };
            history += asked + replied;
            bytes += history;
        }
        bytes / TOKEN_BYTES
    }
}

impl Sent {
    fn count(requests: &[Request]) -> Self {
        let tools_seen = Arc::new(AtomicUsize::new(0));
        let bytes = |request: &Request| {
            request.system_text().len()
                + request.last_user_text().len()
                + reply(request, &tools_seen).len()
        };
        Self {
            calls: requests.len(),
            tokens: requests.iter().map(bytes).sum::<usize>() / TOKEN_BYTES,
            system_bytes: requests.first().map_or(0, |request| request.system_text().len()),
        }
    }
}

const SKIP: &str = "<skip/>";

/// An observation for every third tool use, and a summary if requested.
fn reply(request: &Request, tools_seen: &AtomicUsize) -> String {
    let text = request.last_user_text();
    let tools = text.matches("<tool name=").count();
    let before = tools_seen.fetch_add(tools, Ordering::SeqCst);
    let observations = (before..before + tools).filter(|number| number % 3 == 0).count();
    let long = |bytes: usize| "x".repeat(bytes);
    let narrative = long(OBSERVATION_BYTES - 70);
    let observation =
        format!("<observation><title>one</title><narrative>{narrative}</narrative></observation>");
    let completed = long(SUMMARY_BYTES - 45);
    let summary = format!("<summary><completed>{completed}</completed></summary>");
    let is_over = text.contains("The turn is over");
    match observation.repeat(observations) + if is_over { &summary } else { "" } {
        nothing if nothing.is_empty() => SKIP.to_owned(),
        reply => reply,
    }
}

fn run(home: &Path, server: &Server, arguments: &[&str], input: &str) -> Outcome<()> {
    let binary = super::binary()?;
    let mut command = Command::new(&binary);
    command.args(arguments).env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin");
    command.env("CLAUDE_MEM_WORKER_AUTOSTART", "false").env("CLAUDE_MEM_PROVIDER", "anthropic");
    command.env("CLAUDE_MEM_ANTHROPIC_API_KEY", "key").env("CLAUDE_MEM_MODEL", "model");
    command.env("CLAUDE_MEM_ANTHROPIC_BASE_URL", server.url()).current_dir(home);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let _ = child.stdin.take().ok_or("stdin is a pipe")?.write_all(input.as_bytes());
    let output = child.wait_with_output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}
