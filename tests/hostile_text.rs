//! Control, bidirectional and invisible characters, planted wherever text is recorded or typed.

use std::{fs::OpenOptions, io::Read as _, process::Stdio};

use claude_mem_tools::pseudo_terminal;
use serde_json::{Value, json};

use crate::{
    hook_session::HookSession,
    sandbox::{AtTerminal, Sandbox},
};

/// A window title, the clipboard, a cleared screen, hidden text, C1 forms of them, a bell,
/// backspaces, overrides of the direction, zero-width characters, and "RUN" in tag characters.
const HOSTILE: &str = "\
    walrus \x1b]0;PWNED\x07 \x1b]52;c;ZXZpbA==\x07 \x1b[2J\x1b[8mhidden\x1b[0m \u{9b}2J \
    \u{9d}0;x\u{9c} \x08\x08\x7f \u{202e}txt.exe\u{202c} \u{2066}x\u{2069}\u{200f}\u{61c} \
    pass\u{200b}word\u{feff}\u{2060} \u{e0001}\u{e0052}\u{e0055}\u{e004e}\u{e007f} end";

/// A copy of the program's list, so that a mistake in the program's list is found.
fn is_hostile(character: char) -> bool {
    let code = character as u32;
    character.is_control() && character != '\n' && character != '\t'
        || [0xad, 0x61c, 0xfeff].contains(&code)
        || (0x200b..=0x200f).contains(&code)
        || (0x2028..=0x202e).contains(&code)
        || (0x2060..=0x206f).contains(&code)
        || (0xe0000..=0xe0fff).contains(&code)
}

fn assert_clean(what: &str, text: &str) {
    let found: Vec<_> =
        text.char_indices().filter(|(_, character)| is_hostile(*character)).collect();
    let around = found.first().map(|(at, _)| {
        let start = (0..=at.saturating_sub(60)).rev().find(|at| text.is_char_boundary(*at));
        format!("{:?}", text[start.unwrap_or(0)..].chars().take(120).collect::<String>())
    });
    assert!(found.is_empty(), "{what}: {} characters, first in {}", found.len(), around.unwrap());
}

fn assert_clean_json(what: &str, value: &Value) {
    match value {
        Value::String(text) => assert_clean(what, text),
        Value::Array(items) => items.iter().for_each(|item| assert_clean_json(what, item)),
        Value::Object(members) => members.values().for_each(|item| assert_clean_json(what, item)),
        _ => {}
    }
}

/// A home directory in which every recorded text is hostile.
fn planted() -> Sandbox {
    let sandbox = Sandbox::new();
    let project = sandbox.home().join(format!("shop {}", HOSTILE.replace('/', "_")));
    std::fs::create_dir(&project).unwrap();
    let mut session = HookSession::new(&sandbox, &format!("s{HOSTILE}")).in_folder(&project);
    session = session.with(&[("CLAUDE_MEM_PROVIDER", "extract")]);
    session.common["transcript_path"] = json!(HOSTILE);
    let file = project.join("src.rs");
    session.hook("SessionStart", json!({"source": HOSTILE, "model": HOSTILE}));
    session.hook("UserPromptSubmit", json!({"prompt": HOSTILE}));
    for tool in ["Bash", "Edit", "Write", "Read", HOSTILE] {
        let input = json!({"command": format!("git commit -m '{HOSTILE}'"), "file_path": file,
            "old_string": HOSTILE, "new_string": HOSTILE, "content": HOSTILE, "description": HOSTILE});
        let response = json!({"stdout": HOSTILE, "stderr": HOSTILE, "filePath": file,
            "structuredPatch": [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1,
                "lines": [format!("+{HOSTILE}")]}]});
        session.hook(
            "PostToolUse",
            json!({"tool_name": tool, "tool_input": input,
            "tool_response": response, "tool_use_id": format!("{tool}{HOSTILE}")}),
        );
        session.hook(
            "PostToolUseFailure",
            json!({"tool_name": tool, "tool_input": input,
            "error": HOSTILE, "tool_use_id": format!("f{tool}")}),
        );
    }
    session.hook("Stop", json!({"last_assistant_message": format!("Fixed: {HOSTILE}")}));
    session.hook("SessionEnd", json!({"reason": HOSTILE}));
    sandbox.hook("save", format!("{{\"session_id\": \"s\", \"broken {HOSTILE}"));
    let note = ["remember", HOSTILE, "--title", HOSTILE, "--concept", HOSTILE, "--file", HOSTILE];
    let output = sandbox.command(&note).current_dir(&project).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    sandbox.run_with(&["distill"], &[("CLAUDE_MEM_PROVIDER", "extract")], "").ok();
    sandbox
}

/// Files of clients with hostile names of hooks, programs and keys.
fn plant_configuration(sandbox: &Sandbox) {
    let command = format!("{HOSTILE} claude-mem save");
    let hooks = json!({"hooks": {HOSTILE: [{"hooks": [{"type": "command", "command": command.clone()}]}],
        "PostToolUse": [{"matcher": HOSTILE, "hooks": [{"type": "command", "command": command}]}]},
        "enabledPlugins": {format!("claude-mem@{HOSTILE}"): true}});
    sandbox.write(".claude/settings.json", &hooks.to_string());
    sandbox.write(".codex/config.toml", &format!("x = \"{}\" {HOSTILE}\n", "y"));
    sandbox.write(".config/zed/settings.json", &format!("{HOSTILE}: [\n"));
}

/// The output of a command at a terminal, errors included.
fn shown(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let (mut shown, name) = pseudo_terminal::open_terminal().unwrap();
    let open = || OpenOptions::new().read(true).write(true).open(&name).unwrap();
    let mut command = sandbox.command(arguments);
    command.env("TERM", "xterm-256color").env("CLAUDE_MEM_PROVIDER", "extract");
    command.stdin(Stdio::null()).stdout(open()).stderr(open());
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut bytes = Vec::new();
    // Reading fails once the other end is closed.
    let _ = shown.read_to_end(&mut bytes);
    child.wait().unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Removes the escape sequences that the program itself may send: colours and the progress bar. The
/// planted text has a colour that the program does not use.
fn without_ours(shown: &str) -> String {
    let text = shown.replace("\r\n", "\n").replace("\r\x1b[2K", "");
    let mut pieces = text.split("\x1b[");
    let mut kept = pieces.next().unwrap().to_owned();
    for piece in pieces {
        let digits = piece.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        let colour = &piece[..piece.len() - digits.len()];
        match digits.strip_prefix('m').filter(|_| colour != "8") {
            Some(rest) => kept.push_str(rest),
            None => kept.extend(["\x1b[", piece]),
        }
    }
    kept
}

/// Commands that print recorded text or repeat their arguments, in an order that leaves something to
/// print.
const COMMANDS: &[&[&str]] = &[
    &["status"],
    &["log"],
    &["log", "--raw"],
    &["search", "walrus"],
    &["search", HOSTILE],
    &["search", "walrus", "--project", HOSTILE],
    &["timeline"],
    &["timeline", "--all-projects"],
    &["show", "1", "2", "P1", "S1"],
    &["show", HOSTILE],
    &["context", "--budget", "4000"],
    &["context", "--project", HOSTILE],
    &["costs"],
    &["report", "--by", "branch"],
    &["why", HOSTILE],
    &["why", "src.rs"],
    &["report", "--format", "md"],
    &["report", "--by", "project", "--project", HOSTILE],
    &["context", "--prompt", HOSTILE, "--file", HOSTILE, "--failure", HOSTILE, "--error", HOSTILE],
    &["context", "--client", HOSTILE],
    &["search", "walrus", "--explain"],
    &["search", "walrus", "--client", HOSTILE, "--file", HOSTILE],
    &["projects"],
    &["projects", "rename", "/nowhere", HOSTILE],
    &["projects", "merge", HOSTILE, HOSTILE],
    &["projects", "alias", HOSTILE, HOSTILE],
    &["projects", "split", HOSTILE],
    &["edit", HOSTILE, "--text", "x"],
    &["edit", "1", "--title", HOSTILE, "--text", HOSTILE, "--type", HOSTILE],
    &["edit", "1", "--title", HOSTILE, "--text", HOSTILE],
    &["pin", "1"],
    &["pin", HOSTILE],
    &["unpin", "1"],
    &["wrong", "1", "--because", HOSTILE],
    &["show", "1"],
    &["wrong", "1", "--undo"],
    &["supersede", "1", "2"],
    &["supersede", HOSTILE, HOSTILE],
    &["index"],
    &["pull", "--from", HOSTILE],
    &["install", "--client", HOSTILE],
    &["install", "--list"],
    &["install", "--client", "codex"],
    &["install", "--client", "zed"],
    &["uninstall", "--client", "zed"],
    &["import", "--from", HOSTILE],
    &["eval", "--sessions", HOSTILE],
    &["viewer", HOSTILE],
    &["diff"],
    &["doctor"],
    &["verify"],
    &["eval"],
    &["export", "--format", "markdown"],
    &["export"],
    &["export", "--session", HOSTILE],
    &["forget", "1"],
    &["forget", "--text", "walrus"],
    &["redact"],
    &["replay", "--dry-run"],
    &["replay", "--offline"],
    &["distill"],
    &["retry"],
    &["compact"],
    &["hosts"],
    &["hosts", HOSTILE],
    &["settings"],
    &["settings", "get", HOSTILE],
    &["settings", "set", "provider", HOSTILE],
    &["settings", "set", "mode", HOSTILE],
    &["settings", "get", "mode"],
    &["settings", "unset", "mode"],
    &["settings", "project"],
    &["import", HOSTILE],
    &["export", "--output", "no/such/\u{1b}]0;x\u{7}dir"],
];

#[test]
fn no_command_shows_it_on_a_terminal() {
    let sandbox = planted();
    plant_configuration(&sandbox);
    let place = sandbox.home().join("copy");
    let place = place.to_str().unwrap();
    let hostile_option = format!("--{HOSTILE}");
    let with_places: &[&[&str]] = &[
        &["ship", "--to", place],
        &["verify", "--remote"],
        &["restore", "--from", HOSTILE],
        &["restore", "--from", place, "--into", "elsewhere \u{1b}]0;x\u{7}"],
        &["key", "import", HOSTILE],
        &["plugin", "plugin \u{202e}"],
        &["man", "man \u{1b}[2J"],
        &["worker", "status"],
        &["install", "--help"],
        &["uninstall", HOSTILE],
        &[HOSTILE],
        &["status", &hostile_option],
        &["search", "--limit", HOSTILE],
        &["log", "--since", HOSTILE],
        &["remember", "--type", HOSTILE, "x"],
        &["completions", HOSTILE],
    ];
    let mut result = 0;
    for arguments in COMMANDS.iter().chain(with_places) {
        let shown = shown(&sandbox, arguments);
        assert_clean(&format!("{arguments:?}"), &without_ours(&shown));
        result += usize::from(shown.contains("walrus"));
    }
    assert!(result > 20, "only {result} commands printed hostile text");
}

#[test]
fn json_for_programs_escapes_it_and_loses_nothing() {
    let sandbox = planted();
    for arguments in [
        &["log", "--json", "--raw"][..],
        &["search", "walrus", "--json"],
        &["timeline", "--json"],
        &["show", "1", "--json"],
        &["status", "--json"],
        &["settings", "--json"],
        &["export"],
    ] {
        let printed = sandbox.run(arguments).ok();
        assert_clean(&format!("{arguments:?}"), &printed);
        for line in printed.lines() {
            serde_json::from_str::<Value>(line).unwrap();
        }
    }
    let exported = sandbox.run(&["export"]).ok();
    let has_it = |line: &str| format!("{:?}", serde_json::from_str::<Value>(line).unwrap());
    let hostile = format!("{HOSTILE:?}");
    assert!(exported.lines().any(|line| has_it(line).contains(hostile.trim_matches('"'))));
    let other = Sandbox::new();
    let file = other.write("all.jsonl", &exported);
    other.run(&["import", file.to_str().unwrap()]).ok();
    assert_eq!(other.run(&["export"]).ok(), exported, "an import brings the same bytes");
}

#[test]
fn the_session_start_hook_does_not_show_it() {
    let sandbox = planted();
    let project = sandbox.home().join(format!("shop {}", HOSTILE.replace('/', "_")));
    let event = json!({"session_id": "next", "cwd": project, "hook_event_name": "SessionStart",
        "source": "startup"});
    let answer = sandbox.hook("context", event.to_string());
    let result = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(result.contains("walrus") && result.contains("txt.exe"), "{result}");
    assert_clean_json("the hook", &answer);
}

#[test]
fn hooks_and_the_status_line_do_not_show_it() {
    let sandbox = planted();
    let project = sandbox.home().join(format!("shop {}", HOSTILE.replace('/', "_")));
    let call = |event: &str, fields: Value| {
        let mut payload = json!({"session_id": HOSTILE, "cwd": project, "hook_event_name": event});
        payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        payload.to_string()
    };
    let file = json!({"file_path": project.join("src.rs")});
    let prompt = json!({"prompt": "which walrus is hidden in txt.exe?"});
    let failure = json!({"tool_name": "Bash", "tool_input": {"command": format!("git commit -m '{HOSTILE}'")},
        "error": HOSTILE});
    let used = json!({"tool_name": "Edit", "tool_input": file});
    let mut given = String::new();
    for payload in [
        call("UserPromptSubmit", prompt),
        call("PostToolUseFailure", failure),
        call("PreToolUse", used),
    ] {
        let answer = sandbox.run_with(&["hook", "--client", "claude-code"], &[], payload).answer();
        assert_clean_json("a hook", &answer);
        given += &answer.to_string();
    }
    assert!(given.contains("walrus"), "{given}");
    let shown = json!({"session_id": HOSTILE, "cwd": project, "workspace": {"project_dir": project},
        "model": {"display_name": HOSTILE}, "version": HOSTILE});
    let shown = sandbox.run_with(&["statusline"], &[], shown.to_string()).ok();
    assert_clean("statusline", &without_ours(&shown));
}

#[test]
fn search_while_you_type_does_not_show_it() {
    let sandbox = planted();
    let mut command = sandbox.command::<&str>(&[]);
    command.env("NO_COLOR", "1");
    let mut terminal = AtTerminal::start(command, 140, 40);
    let mut screens = terminal.read_until("Enter show");
    terminal.keys("walrus");
    screens += &terminal.read_until("> walrus");
    screens += &terminal.read_until("Esc leave");
    terminal.keys("\r");
    screens += &terminal.read_until("Esc back");
    terminal.keys("\u{1b}");
    screens += &terminal.read_until("Esc leave");
    terminal.keys("\u{1b}");
    screens += &terminal.finish().0.concat();
    assert!(screens.contains("walrus"), "{screens}");
    for part in ["\x1b]0;", "\x1b[8m", "\x07", "\x08", "\u{9b}", "\u{9d}", "\u{202e}", "\u{200b}"] {
        assert!(!screens.contains(part), "{part:?} in {screens:?}");
    }
    assert!(!screens.contains('\u{e0052}'), "{screens:?}");
}

#[test]
fn no_mcp_tool_answers_with_it() {
    let sandbox = planted();
    let calls = [
        ("search", json!({"query": "walrus", "project": "*"})),
        ("search", json!({"query": HOSTILE, "project": HOSTILE})),
        ("timeline", json!({"anchor": "1"})),
        ("timeline", json!({"query": HOSTILE})),
        ("get_observations", json!({"ids": [1, 2, "S1", "P1"]})),
        ("get_observations", json!({"ids": [HOSTILE]})),
        ("session_start_context", json!({"project": "*"})),
        ("remember", json!({"text": HOSTILE, "project": HOSTILE})),
        ("revise", json!({"id": "1", "action": "edit", "title": HOSTILE, "text": HOSTILE})),
        ("revise", json!({"id": HOSTILE, "action": HOSTILE})),
        ("forget", json!({"ids": ["1"]})),
        ("forget", json!({"text": "walrus"})),
        (HOSTILE, json!({})),
        ("search", json!({HOSTILE: HOSTILE})),
    ];
    let mut lines = vec![json!({"jsonrpc": "2.0", "id": 99, "method": HOSTILE}).to_string()];
    for (id, (name, arguments)) in calls.iter().enumerate() {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": name, "arguments": arguments}});
        lines.push(call.to_string());
    }
    let answers = sandbox.run_with(&["mcp"], &[], lines.join("\n") + "\n").ok();
    assert_eq!(answers.lines().count(), calls.len() + 1);
    for answer in answers.lines() {
        assert_clean_json("MCP", &serde_json::from_str(answer).unwrap());
    }
    assert!(answers.matches("walrus").count() > 5, "{answers}");
}

#[test]
fn the_name_of_another_machine_does_not_reach_the_terminal() {
    let (sandbox, other) = (planted(), planted());
    let place = sandbox.home().join("copy");
    let place = place.to_str().unwrap();
    let named = |name: &'static str| {
        [("CLAUDE_MEM_SHIP_TO", place.to_owned()), ("CLAUDE_MEM_SHIP_NAME", name.to_owned())]
    };
    for (sandbox, name) in [(&other, HOSTILE), (&sandbox, "mine")] {
        let variables = named(name);
        let variables = variables.each_ref().map(|(key, value)| (*key, value.as_str()));
        sandbox.run_with(&["ship"], &variables, "").ok();
    }
    let variables = named("mine");
    let variables = variables.each_ref().map(|(key, value)| (*key, value.as_str()));
    for arguments in [&["pull"][..], &["hosts"], &["search", "walrus"], &["log"], &["status"]] {
        let run = sandbox.run_with(arguments, &variables, "");
        assert_clean(&format!("{arguments:?}"), &format!("{}{}", run.stdout, run.stderr));
    }
    let hosts = sandbox.run_with(&["hosts"], &variables, "").ok();
    assert!(hosts.contains("walrus-"), "the other machine is listed: {hosts}");
}

#[test]
fn the_diagnostics_escape_it() {
    let sandbox = planted();
    assert_clean("diagnostics", &sandbox.diagnostics());
}
