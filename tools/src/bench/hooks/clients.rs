//! The same tool use in the payload of every tested client, compared with Claude Code's.

use std::{fmt::Write as _, fs, path::Path};

use serde_json::{Value, json};

use super::world::{self, World};
use crate::bench::{
    Contestant, Figure, Outcome, Samples, Scratch, Settings, Verdict, contest, report,
};

/// The maximum ratio to the hook of Claude Code, by the fastest turns.
const LIMIT: f64 = 1.3;
/// Calls in Codex's transcript, in which the hook searches for the exit code and for failures.
const ROLLOUT_CALLS: usize = 200;

pub(super) fn measure(settings: &Settings, scratch: &Scratch) -> Outcome<Vec<Figure>> {
    let world = World::new(scratch, "clients")?;
    let rollout = scratch.place("rollout-1.jsonl");
    write_rollout(&rollout)?;
    let input: Value = serde_json::from_slice(&world::input(4 << 10))?;
    let inputs = payloads(&input, &rollout).map(|(client, payload)| (client, payload.to_string()));
    let mut contestants: Vec<Contestant<'_>> = inputs
        .iter()
        .map(|(client, payload)| {
            let world = &world;
            Contestant::new(*client, move || {
                let mut command = world.command_of("hook", &world.hook, "default");
                command.args(["--client", client]);
                world::run(&mut command, payload.as_bytes())
            })
        })
        .collect();
    contest(1, &mut contestants)?;
    let rounds = settings.size(200, 2);
    let samples = contest(rounds, &mut contestants)?;
    drop(contestants);
    let (recorded, expected) = (world.recorded()?, (rounds as usize + 1) * inputs.len());
    if recorded != expected {
        return Err(format!("{recorded} events recorded by {expected} hooks").into());
    }
    Ok(vec![judge(&samples)])
}

fn judge(samples: &[Samples]) -> Figure {
    let times = |one: &Samples| one.times_min(&samples[0]);
    let slowest = samples[1..].iter().max_by(|a, b| times(a).total_cmp(&times(b)));
    Figure {
        title: "Hooks of all clients against Claude Code's".into(),
        about: "One tool use with 4 KB, in the form of each client. By the fastest turns.".into(),
        columns: report::TIMES.to_vec(),
        rows: report::against_first(samples),
        verdict: slowest.map(|one| Verdict {
            target: format!("at most {LIMIT} ×"),
            reached: format!("{:.2} × ({})", times(one), one.name),
            is_met: times(one) <= LIMIT,
        }),
    }
}

/// The tool use of this Claude Code payload, as each client reports it.
fn payloads(input: &Value, rollout: &Path) -> [(&'static str, Value); 9] {
    let output = &input["tool_response"]["stdout"];
    let text = output.as_str().unwrap_or_default();
    let with = |tool: &str, response: Value| {
        let mut payload = input.clone();
        payload["tool_name"] = json!(tool);
        payload["tool_response"] = response;
        payload
    };
    let mut codex = with("Bash", output.clone());
    codex["turn_id"] = json!("t");
    codex["transcript_path"] = json!(rollout);
    let mut copilot = with("Bash", Value::Null);
    copilot["tool_result"] = json!({"result_type": "success",
        "text_result_for_llm": format!("{text}\n<shellId: 0 completed with exit code 0>")});
    let report = format!("Output: {text}\nProcess Group PGID: 7");
    let wrapped = format!("<untrusted_context>\n{report}\n</untrusted_context>");
    let mut gemini = with("run_shell_command", json!({"llmContent": wrapped}));
    gemini["hook_event_name"] = json!("AfterTool");
    gemini["transcript_path"] = json!("/home/ada/.gemini/tmp/shop/chats/s.jsonl");
    let mut qwen = with("run_shell_command", json!({"llmContent": report}));
    qwen["transcript_path"] = json!("/home/ada/.qwen/projects/shop/chats/s.jsonl");
    let mut opencode = with("bash", json!({"output": text, "metadata": {"exit": 0}}));
    opencode["platform"] = json!("opencode");
    let mut kimi = with("Bash", Value::Null);
    kimi["client_type"] = json!("kimi_code_cli");
    kimi["tool_output"] = output.clone();
    let mut droid = with("Execute", output.clone());
    droid["transcript_path"] = json!("/home/ada/.factory/sessions/shop/s.jsonl");
    let cline = json!({"clineVersion": "3", "sessionContext": {"rootSessionId": "l"},
        "workspaceRoots": [input["cwd"]], "hookName": "tool_result", "tool_result": {"id": "c",
        "name": "run_commands", "input": {"commands": ["cargo test"]},
        "output": [{"query": "cargo test", "result": output, "success": true}]}});
    [
        ("claude-code", input.clone()),
        ("codex", codex),
        ("copilot", copilot),
        ("gemini", gemini),
        ("qwen", qwen),
        ("opencode", opencode),
        ("kimi", kimi),
        ("droid", droid),
        ("cline", cline),
    ]
}

fn write_rollout(path: &Path) -> Outcome<()> {
    let mut rows = String::new();
    let item = |payload: Value| json!({"type": "response_item", "payload": payload});
    for number in 0..ROLLOUT_CALLS {
        let text = "what the model said about this part of the work ".repeat(8);
        let message = json!({"type": "message", "id": number, "role": "assistant",
            "content": [{"type": "output_text", "text": text}]});
        let call = json!({"type": "function_call", "name": "exec_command",
            "call_id": format!("call_{number}"), "arguments": "{\"cmd\":\"ls\"}"});
        let output = json!({"type": "function_call_output", "call_id": format!("call_{number}"),
            "output": format!("Exit code: 0\nOutput:\n{text}")});
        for payload in [message, call, output] {
            let _ = writeln!(rows, "{}", item(payload));
        }
    }
    let row = json!({"type": "event_msg", "payload": {"type": "item_completed", "item":
        {"type": "CommandExecution", "id": "toolu_01A09q90qw90lq917835lq9", "exit_code": 0}}});
    let _ = writeln!(rows, "{row}");
    fs::write(path, rows)?;
    Ok(())
}
