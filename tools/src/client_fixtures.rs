//! Runs captured hook payloads of a client through the built binary and describes the recorded
//! events.
//!
//! A folder contains payloads as `NN.Event.json`, in order, or below `hooks/` as
//! `scenario.NN.Event.json`. `/scratch` in a payload stands for a folder of the run. A transcript
//! that the payload expects is copied there: `FIXTURES/x` from the folder, others from the
//! scenario's file in `transcripts/`.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use claude_mem_events::{Envelope, Event, EventItem, EventReader, Seq};
use claude_mem_log::{Log, Options};
use serde_json::Value;

/// The result of one payload.
#[derive(Debug)]
pub struct Row {
    /// The file name of the payload.
    pub file: String,
    /// The payload, with `/scratch` for the folder of the run.
    pub payload: Value,
    /// The recorded events, one line each.
    pub events: Vec<String>,
    pub stdout: String,
    /// Anything but a silent success.
    pub problem: Option<String>,
}

/// The place of transcripts that are in the folder of the payloads.
const FIXTURES: &str = "/scratch/fixtures";

/// Runs all payloads in a folder, one session after the other, in their own data directory.
pub fn run(binary: &Path, client: &str, folder: &Path) -> io::Result<Vec<Row>> {
    let scratch = tempfile::tempdir()?;
    let home = scratch.path().join("home");
    fs::create_dir_all(&home)?;
    fs::create_dir_all(scratch.path().join("project"))?;
    let mut at = Seq::START;
    let mut rows = Vec::new();
    for file in payloads(folder)? {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&file)?;
        let text = text.replace("FIXTURES", FIXTURES);
        let Ok(payload) = serde_json::from_str::<Value>(&text) else { continue };
        let text = text.replace("/scratch", &scratch.path().to_string_lossy());
        provide_transcript(folder, &name, scratch.path(), &payload)?;
        let output = hook(binary, client, &home, &text)?;
        let data = home.join(".claude-mem");
        let events = events_since(&data, &mut at)?;
        let strip = |text: String| text.replace(&*scratch.path().to_string_lossy(), "/scratch");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        let is_fine = output.status.success() && stderr.is_empty();
        let problem = (!is_fine).then(|| format!("{} {stderr}", output.status));
        let events = events.into_iter().map(strip).collect();
        rows.push(Row { file: name, payload, events, stdout, problem });
    }
    Ok(rows)
}

fn payloads(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let places = ["hooks", "documented", ""].map(|name| folder.join(name));
    let place = places.iter().find(|place| place.is_dir()).unwrap_or(&places[2]);
    let files = fs::read_dir(place)?.map(|entry| entry.map(|entry| entry.path()));
    let mut files: Vec<PathBuf> = files.collect::<io::Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.retain(|file| !file.to_string_lossy().ends_with("hooks.json.json"));
    files.sort();
    Ok(files)
}

fn provide_transcript(
    folder: &Path,
    name: &str,
    scratch: &Path,
    payload: &Value,
) -> io::Result<()> {
    let Some(wanted) = payload["transcript_path"].as_str() else { return Ok(()) };
    let file = match wanted.strip_prefix(FIXTURES) {
        Some(file) => folder.join(file.trim_start_matches('/')),
        None => match scenario_transcript(folder, name) {
            Some(file) => file,
            None => return Ok(()),
        },
    };
    let text = fs::read_to_string(file)?;
    let wanted = PathBuf::from(wanted.replace("/scratch", &scratch.to_string_lossy()));
    fs::create_dir_all(wanted.parent().unwrap_or(&wanted))?;
    fs::write(wanted, until_result(&text, payload["tool_use_id"].as_str()))
}

/// The first transcript of a payload's scenario.
fn scenario_transcript(folder: &Path, name: &str) -> Option<PathBuf> {
    let (scenario, _) = split_name(name)?;
    let scenario = scenario.join(".") + ".";
    let found = fs::read_dir(folder.join("transcripts")).ok()?;
    let files = found.flatten().map(|entry| entry.path());
    let is_of_scenario = |file: &PathBuf| {
        file.file_name().unwrap_or_default().to_string_lossy().starts_with(&scenario)
    };
    files.filter(is_of_scenario).min()
}

/// The transcript when the hook of this tool use runs. The result is written after that.
fn until_result(text: &str, tool_use_id: Option<&str>) -> String {
    let Some(id) = tool_use_id else { return text.to_owned() };
    let is_before = |line: &&str| !(line.contains(id) && line.contains("call_output\""));
    text.split_inclusive('\n').take_while(is_before).collect()
}

fn hook(binary: &Path, client: &str, home: &Path, text: &str) -> io::Result<std::process::Output> {
    let mut child = Command::new(binary)
        .args(["hook", "--client", client])
        .env_clear()
        .env("HOME", home)
        .env("CLAUDE_MEM_WORKER_AUTOSTART", "false")
        .current_dir(home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(text.as_bytes()))?;
    child.wait_with_output()
}

fn events_since(data: &Path, at: &mut Seq) -> io::Result<Vec<String>> {
    let dir = data.join("log");
    if !dir.exists() {
        return Ok(Vec::new());
    }
    let log = Log::open(&dir, Options::default()).map_err(io::Error::other)?;
    let mut reader = EventReader::from(&log, Seq::START);
    let mut events = Vec::new();
    let mut last = *at;
    while let Some(item) = reader.next().map_err(io::Error::other)? {
        let EventItem::Event(read) = item else { continue };
        if read.seq < *at {
            continue;
        }
        last = Seq::from_raw(read.seq.raw() + 1);
        events.push(describe(&read.envelope, &read.event));
    }
    *at = last;
    Ok(events)
}

/// One line: the kind, the client, the session, and the main fields of the event.
fn describe(envelope: &Envelope, event: &Event) -> String {
    let what = match event {
        Event::SessionStarted(it) => format!("SessionStarted {}", it.source),
        Event::PromptSubmitted(it) => format!("PromptSubmitted {:?}", it.prompt),
        Event::ToolUsed(it) => {
            let agent = if it.agent_id.is_empty() { "" } else { " by a subagent" };
            let result = if it.has_failed { &it.error } else { &it.output };
            let failed = if it.has_failed { "failed" } else { "gave" };
            let input = serde_json::from_str::<Value>(&it.input).unwrap_or_default();
            format!("ToolUsed{agent} {} {input} {failed} {:?}", it.tool, clip(result))
        }
        Event::SummaryRequested(it) => {
            let prompt = match &*it.last_user_message {
                "" => String::new(),
                prompt => format!(" to {prompt:?}"),
            };
            format!("SummaryRequested {:?} {:?}{prompt}", it.scope, it.last_assistant_message)
        }
        Event::SessionEnded(it) => format!("SessionEnded {}", it.reason),
        Event::InputUnreadable(it) => format!("InputUnreadable {}", it.error),
        other => format!("{other:?}"),
    };
    format!("{} {} {what}", envelope.platform, envelope.session)
}

fn clip(text: &str) -> String {
    text.chars().take(120).collect()
}

/// The events, one line for each payload and event, with `-` for none.
pub fn table(rows: &[Row]) -> String {
    let none = ["-".to_owned()];
    let lines = rows.iter().flat_map(|row| {
        let events = if row.events.is_empty() { &none[..] } else { &row.events[..] };
        events.iter().map(|event| format!("{}: {event}\n", row.file))
    });
    lines.collect()
}

/// The scenario in the file name of a payload, and the event with what follows. A scenario may have
/// dots and numbers in its name: `old-0.145.0.04.PostToolUse.json`.
fn split_name(file: &str) -> Option<(Vec<&str>, Vec<&str>)> {
    let parts: Vec<&str> = file.split('.').collect();
    let is_number = |part: &str| part.parse::<u32>().is_ok();
    let at = (1..parts.len()).find(|at| is_number(parts[at - 1]) && !is_number(parts[*at]))?;
    Some((parts[..at - 1].to_vec(), parts[at..].to_vec()))
}

/// The expected kind of event, by the event name in the file name of the payload. `None` if there
/// is nothing to record.
pub fn expected_kind(row: &Row) -> Option<&'static str> {
    let has = |name: &str| !row.payload[name].is_null();
    let (_, parts) = split_name(&row.file)?;
    if parts[1..].iter().any(|part| part.contains("claude-mem") || part.contains("claude_mem")) {
        return None;
    }
    if row.payload["tool_info"]["mcp_server_name"] == "claude-mem" {
        return None;
    }
    let kind = match parts[0] {
        "SessionStart" | "TaskStart" | "sessionStart" => "SessionStarted",
        "UserPromptSubmit"
        | "BeforeAgent"
        | "beforeSubmitPrompt"
        | "pre_user_prompt"
        | "userPromptSubmitted" => "PromptSubmitted",
        "PostToolUse" | "PostToolUseFailure" | "AfterTool" | "postToolUse"
        | "postToolUseFailure" | "post_run_command" | "post_write_code" | "post_mcp_tool_use" => {
            "ToolUsed"
        }
        "Stop"
        | "SubagentStop"
        | "AfterAgent"
        | "TaskComplete"
        | "stop"
        | "subagentStop"
        | "post_cascade_response"
        | "agentStop" => "SummaryRequested",
        "SessionEnd" | "sessionEnd" => "SessionEnded",
        _ => return None,
    };
    let is_of_subagent = has("parent_agent_id") && row.payload["hook_event_name"] != "SubagentStop";
    match kind {
        // Sent before a further request to the model.
        "PromptSubmitted" if row.payload["prompt"] == "" && !has("submitted_prompt") => None,
        "PromptSubmitted" | "SummaryRequested" if is_of_subagent && has("hook_event_name") => None,
        kind => Some(kind),
    }
}

/// The parts of the payload that its event lacks: session, prompt, command, file, answer. They are
/// looked up under all names that clients use, without the parsers of claude-mem.
pub fn missing(row: &Row) -> Vec<String> {
    let Some(event) = row.events.last() else { return Vec::new() };
    let first = |paths: &[&str]| {
        paths.iter().find_map(|path| row.payload.pointer(path)?.as_str()).unwrap_or_default()
    };
    let session = first(&[
        "/parent_agent_id",
        "/session_id",
        "/sessionId",
        "/conversation_id",
        "/trajectory_id",
        "/sessionContext/rootSessionId",
    ]);
    let mut wanted = vec![session.to_owned()];
    let kind = event.split(' ').nth(2).unwrap_or_default();
    if kind == "PromptSubmitted" {
        let prompt = first(&["/submitted_prompt", "/prompt", "/tool_info/user_prompt"]);
        let prompt = prompt.rsplit("</hook_context>").next().unwrap_or_default();
        wanted.push(in_quotes(prompt.trim()));
    }
    if kind == "ToolUsed" {
        let inputs = ["tool_input", "toolArgs", "tool_info", "postToolUse/parameters"];
        let of_input = |names: &[&str]| {
            let paths = inputs
                .iter()
                .flat_map(|input| names.iter().map(move |name| format!("/{input}/{name}")));
            let paths: Vec<String> = paths.collect();
            first(&paths.iter().map(String::as_str).collect::<Vec<_>>()).to_owned()
        };
        let command = of_input(&["command", "command_line"]);
        if !command.starts_with("*** Begin Patch") {
            let quoted = Value::from(command).to_string();
            wanted.push(quoted[1..quoted.len() - 1].to_owned());
        }
        wanted.push(of_input(&["file_path", "filePath", "path", "absolute_path"]));
        let has_error = !first(&["/error", "/error/message", "/error_message"]).is_empty();
        wanted.push(if has_error { " failed ".into() } else { String::new() });
    }
    if kind == "SummaryRequested" {
        let last_message =
            first(&["/last_assistant_message", "/turn/outputText", "/tool_info/response"]);
        wanted.push(in_quotes(last_message.trim()));
    }
    let is_missing = |part: &String| !part.is_empty() && !event.contains(part.as_str());
    wanted.into_iter().filter(is_missing).collect()
}

/// As in the line of an event, without the quotation marks.
fn in_quotes(text: &str) -> String {
    let quoted = format!("{text:?}");
    quoted[1..quoted.len() - 1].to_owned()
}
