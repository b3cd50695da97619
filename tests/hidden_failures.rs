//! Tools whose failure no hook reports: the next hook reads it from the client's transcript.

use std::{cell::Cell, fs, path::PathBuf};

use claude_mem_projections::Store;
use serde_json::{Value, json};

use crate::{clients::lines, sandbox::Sandbox};

/// A session of which the client writes one row of its transcript after the other.
struct Session {
    sandbox: Sandbox,
    client: &'static str,
    place: &'static str,
    rows: String,
    cwd: PathBuf,
    second: Cell<u32>,
}

impl Session {
    fn new(client: &'static str, place: &'static str) -> Self {
        let sandbox = Sandbox::new();
        let cwd = sandbox.home().join("shop");
        fs::create_dir(&cwd).unwrap();
        Self { sandbox, client, place, rows: String::new(), cwd, second: Cell::new(0) }
    }

    /// A second after the last row or hook.
    fn time(&self) -> String {
        self.second.set(self.second.get() + 1);
        format!("2026-03-01T12:00:{:02}.000Z", self.second.get())
    }

    fn write(&mut self, mut row: Value) {
        row["timestamp"] = json!(self.time());
        self.rows += &row.to_string();
        self.rows.push('\n');
        self.sandbox.write(self.place, &self.rows);
    }

    fn hook(&self, event: &str, fields: &Value) {
        let mut payload = json!({"session_id": "s-1", "cwd": self.cwd, "hook_event_name": event,
            "transcript_path": self.sandbox.home().join(self.place)});
        payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let (command, time) = (["hook", "--client", self.client], self.time());
        let now = [("CLAUDE_MEM_NOW", time.as_str())];
        let run = self.sandbox.run_with(&command, &now, payload.to_string());
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    }

    /// Tools and errors, in the order of the log.
    fn recorded(&self) -> Vec<String> {
        let outline = |event: &Value| {
            let of = &event["event"];
            let what = of["input"]["command"].as_str().or(of["input"]["file_path"].as_str())?;
            let error = of["error"].as_str().unwrap_or_default();
            Some(format!("{} {what}: {}", of["tool"].as_str()?, error.replace('\n', " ")))
        };
        self.sandbox.events().iter().filter_map(outline).collect()
    }

    /// The tool uses that count.
    fn rows(&self) -> String {
        self.sandbox.run(&["index"]).ok();
        let store = Store::open_read_only(&self.sandbox.data().join("memory.db")).unwrap().unwrap();
        store.dump("select tool, has_failed from tool_uses order by seq").unwrap()
    }
}

/// What is remembered in a data directory, without ids and times.
fn observations(sandbox: &Sandbox, data: &str) -> Vec<String> {
    let data = [("CLAUDE_MEM_DATA_DIR", data), ("CLAUDE_MEM_PROVIDER", "extract")];
    sandbox.run_with(&["distill"], &data, "").ok();
    let found = sandbox.run_with(&["search", "--json", "--limit", "100"], &data, "").ok();
    let fields = ["kind", "type", "title", "snippet", "files"];
    let row = |row: &Value| fields.map(|name| row[name].to_string()).join(" ");
    lines(&found).iter().map(row).collect()
}

/// Up to version 0.145, Codex writes the exit code of a command when the hook has run.
#[test]
fn an_exit_code_that_codex_writes_after_the_hook_corrects_the_command() {
    let place = ".codex/sessions/2026/03/01/rollout-2026-03-01T12-00-00-s-1.jsonl";
    let mut session = Session::new("codex", place);
    let row = |kind: &str, payload: Value| json!({"type": kind, "payload": payload});
    let item = |payload: Value| row("response_item", payload);
    let message = |role: &str, text: &str| {
        item(json!({"type": "message", "role": role, "content": [{"type": "text", "text": text}]}))
    };
    let call = |id: &str, tool: &str, command: &str| {
        let arguments = json!({"cmd": command}).to_string();
        item(json!({"type": "function_call", "name": tool, "arguments": arguments, "call_id": id}))
    };
    let output = |id: &str, text: &str| {
        item(json!({"type": "function_call_output", "call_id": id, "output": text}))
    };
    let used = |id: &str, command: &str, output: &str| {
        json!({"turn_id": "t-1", "tool_name": "Bash", "tool_input": {"command": command},
            "tool_response": output, "tool_use_id": id})
    };

    session.hook("SessionStart", &json!({"source": "startup"}));
    session.write(row("session_meta", json!({"id": "s-1", "cwd": session.cwd})));
    session.hook("UserPromptSubmit", &json!({"turn_id": "t-1", "prompt": "make the total right"}));
    session.write(message("user", "make the total right"));
    // Two commands at the same time, of which the first fails.
    session.write(call("c1", "exec_command", "npm test"));
    session.write(call("c2", "shell_command", "cat total.js"));
    session.hook("PostToolUse", &used("c1", "npm test", "one failed\n"));
    session.hook("PostToolUse", &used("c2", "cat total.js", "a - b\n"));
    session.write(output(
        "c1",
        "Wall time: 0.1 seconds\nProcess exited with code 1\nOutput:\none failed\n",
    ));
    session.write(output("c2", "Exit code: 0\nWall time: 0 seconds\nOutput:\na - b\n"));
    // No hook for a patch that does not apply.
    let patch = "*** Begin Patch\n*** Update File: gone.js\n@@\n-a\n+b\n*** End Patch\n";
    let patch =
        json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "c3", "input": patch});
    session.write(item(patch));
    session.write(output("c3", "apply_patch verification failed: no such file"));
    // No hook for this tool.
    session.write(call("plan", "update_plan", ""));
    session.write(output("plan", "{}"));
    session.write(call("c4", "shell_command", "npm run fix"));
    session.hook("PostToolUse", &used("c4", "npm run fix", "fixed\n"));
    session.write(output("c4", "Exit code: 0\nWall time: 0 seconds\nOutput:\nfixed\n"));
    session.write(call("c5", "shell_command", "npm run lint"));
    session.hook("PostToolUse", &used("c5", "npm run lint", "unused\n"));
    session.write(output("c5", "Exit code: 2\nWall time: 0 seconds\nOutput:\nunused\n"));
    session.write(message("assistant", "The total is right, lint fails."));
    let stop =
        json!({"turn_id": "t-1", "last_assistant_message": "The total is right, lint fails."});
    session.hook("Stop", &stop);
    session.hook("Stop", &stop);

    let expected = [
        "Bash npm test: ",
        "Bash cat total.js: ",
        "Bash npm test: Exit code 1 one failed",
        "Edit gone.js: apply_patch verification failed: no such file",
        "Bash npm run fix: ",
        "Bash npm run lint: ",
        "Bash npm run lint: Exit code 2 unused",
    ];
    assert_eq!(session.recorded(), expected);
    let rows = "Bash|0\nBash|1\nEdit|1\nBash|0\nBash|1\n";
    assert_eq!(session.rows(), rows);

    let Session { sandbox, .. } = &session;
    let found: Value =
        serde_json::from_str(&sandbox.run(&["import", "--from", "codex", "--json"]).ok()).unwrap();
    assert_eq!(found["added"], json!({}));
    let [own, imported] = ["", "-imported"].map(|end| sandbox.data().display().to_string() + end);
    let elsewhere = [("CLAUDE_MEM_DATA_DIR", &*imported)];
    sandbox.run_with(&["import", "--from", "codex"], &elsewhere, "").ok();
    let captured = observations(sandbox, &own);
    assert!(captured.iter().any(|it| it.contains("`npm test` fails")), "{captured:?}");
    assert_eq!(captured, observations(sandbox, &imported));
}

/// droid reports no tool that fails, and gives ids in the transcript alone.
#[test]
fn failures_that_droid_does_not_report_keep_their_place_among_the_tools() {
    let mut session = Session::new("droid", ".factory/sessions/-shop/s-1.jsonl");
    let message = |role: &str, block: Value| json!({"type": "message", "message": {"role": role, "content": [block]}});
    let call = |id: &str, name: &str, input: &Value| {
        message("assistant", json!({"type": "tool_use", "id": id, "name": name, "input": input}))
    };
    let result = |id: &str, is_error: bool, text: &str| {
        let block = json!({"type": "tool_result", "tool_use_id": id, "is_error": is_error,
            "content": text});
        message("user", block)
    };
    let used = |tool: &str, input: &Value| json!({"tool_name": tool, "tool_input": input, "tool_response": "ok"});
    let test = json!({"command": "npm test"});
    let edit = json!({"file_path": "total.js", "old_str": "-", "new_str": "+"});

    session.hook("SessionStart", &json!({"source": "startup"}));
    session.write(message("user", json!({"type": "text", "text": "make the total right"})));
    session.write(call("c1", "Execute", &test));
    let error = "Error: Command failed (exit code: 1)\none failed\n\n[Process exited with code 1]";
    session.write(result("c1", true, error));
    session.write(call("c2", "Read", &json!({"file_path": "gone.js"})));
    session.write(result("c2", true, "Error: no such file"));
    session.write(call("c3", "Edit", &edit));
    session.hook("PostToolUse", &used("Edit", &edit));
    session.write(result("c3", false, "ok"));
    session.write(call("c4", "Execute", &test));
    session.hook("PostToolUse", &used("Execute", &test));
    session.write(result("c4", false, "ok"));
    session.write(message("assistant", json!({"type": "text", "text": "The total is right."})));
    session.hook("Stop", &json!({}));

    let expected = [
        "Bash npm test: Exit code 1 one failed",
        "Read gone.js: Error: no such file",
        "Edit total.js: ",
        "Bash npm test: ",
    ];
    assert_eq!(session.recorded(), expected);
}
