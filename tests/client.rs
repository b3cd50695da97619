//! The whole path with the real Claude Code: as the recorded client, and as the provider.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use claude_mem_tools::{
    client::{Client, executable},
    model::{Answer, Request, Script, Server, When},
};
use serde_json::{Value, json};

use crate::{
    model::{Session, reply, titles},
    sandbox::{Sandbox, ours, real_client},
    serving::until,
};

#[test]
fn installed_worked_with_and_distilled_by_rules() {
    let script = Script::new()
        .when(When::new().tool_result(true), Answer::text("The file is there. Next: fill it."))
        .otherwise(Answer::tools([(
            "Write",
            json!({"file_path": "notes.md", "content": "# Notes\n"}),
        )]));
    let server = Server::start(script).unwrap();
    let client = real_client(&server.url());
    let claude_mem = |arguments: &[&str]| ours(&client, arguments);
    claude_mem(&["install"]);
    claude_mem(&["settings", "set", "PROVIDER", "extract"]);
    claude_mem(&["settings", "set", "WORKER_AUTOSTART", "false"]);
    let outcome = client.prompt("write some notes").unwrap();
    assert!(outcome.status.success(), "{outcome:?}");
    let report: Value = serde_json::from_str(&claude_mem(&["distill", "--json"])).unwrap();
    assert!(report["observations"].as_u64() > Some(0) && report["summaries"] == 1, "{report}");
}

#[test]
fn the_users_own_client_distils_and_two_sessions_never_share_a_conversation() {
    let server = Server::answering(|request: &Request| Answer::text(reply("claude", request)));
    let server = server.unwrap();
    let client = real_client(&server.url());
    let sandbox = Sandbox::new();
    Session::worked(&sandbox, "alpha", 3);
    Session::worked(&sandbox, "beta", 2);
    sandbox.use_gateway(&server.url());
    let mut command = sandbox.command(&["distill"]);
    command.env("CLAUDE_MEM_PROVIDER", "claude").env("CLAUDE_CODE_PATH", executable().unwrap());
    command.env("CLAUDE_MEM_CLAUDE_AUTH_METHOD", "api-key");
    for (name, value) in client.environment() {
        if name != "HOME" {
            command.env(name, value);
        }
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(titles(&sandbox).len(), 5);
    assert!(titles(&sandbox).iter().all(|title| title.starts_with("claude work")));
    let questions: Vec<Request> =
        server.requests().into_iter().filter(|r| r.all_text().contains("<session ")).collect();
    assert_eq!(questions.len(), 5);
    for question in &questions {
        let text = question.all_text();
        assert_ne!(text.contains("of alpha"), text.contains("of beta"), "{text}");
    }
    let third = questions.iter().find(|r| r.last_user_text().contains("work 3 of alpha")).unwrap();
    assert!(third.all_text().contains("work 2 of alpha"), "the conversation goes on");
}

/// A form that the user answers, and a tool use that the user rejects with words.
#[test]
fn answers_to_forms_and_rejections_are_remembered() {
    const WORDS: &str = "Never put notes into the root, use docs";
    let home: Arc<OnceLock<PathBuf>> = Arc::default();
    let home_of_client = Arc::clone(&home);
    let server = Server::answering(move |request: &Request| match request.tool_results().pop() {
        None => {
            let option = |label: &str| json!({"label": label, "description": label});
            let question = json!({
                "question": "Which database do we use?", "header": "Database", "multiSelect": false,
                "options": [option("SQLite"), option("Postgres")],
            });
            Answer::tools([("AskUserQuestion", json!({"questions": [question]}))])
        }
        Some((_, answer)) if answer.contains("SQLite") => {
            Answer::tools([("Write", json!({"file_path": "notes.md", "content": "# Notes\n"}))])
        }
        Some(_) => {
            // A real model is slower: by then the client has written its transcript.
            until(|| home_of_client.get().is_some_and(|home| is_in_transcript(home, WORDS)));
            Answer::text("All done.")
        }
    });
    let server = server.unwrap();
    let client = real_client(&server.url());
    home.set(client.home()).unwrap();
    let claude_mem = |arguments: &[&str]| ours(&client, arguments);
    claude_mem(&["install"]);
    claude_mem(&["settings", "set", "PROVIDER", "extract"]);
    claude_mem(&["settings", "set", "WORKER_AUTOSTART", "false"]);
    let permitted = |tool: &str, input: &Value| match tool {
        "AskUserQuestion" => {
            let mut answered = input.clone();
            answered["answers"] = json!({"Which database do we use?": "SQLite"});
            json!({"behavior": "allow", "updatedInput": answered})
        }
        _ => json!({"behavior": "deny", "message": WORDS}),
    };
    let result = client.converse("pick a database", permitted).unwrap();
    assert_eq!(result["subtype"], "success", "{result}");
    claude_mem(&["distill"]);
    let found = claude_mem(&["search", "--kind", "observation", "--json", ""]);
    assert!(found.contains("SQLite — Which database do we use?"), "{found}");
    assert!(found.contains(WORDS), "{found}");
}

fn is_in_transcript(home: &Path, text: &str) -> bool {
    let projects = fs::read_dir(home.join(".claude/projects")).into_iter().flatten().flatten();
    let files = projects.filter_map(|project| fs::read_dir(project.path()).ok()).flatten();
    let mut texts = files.flatten().filter_map(|file| fs::read_to_string(file.path()).ok());
    texts.any(|transcript| transcript.contains(text))
}

/// The real client receives memories at the right moment, once, and nothing otherwise.
#[test]
fn memories_reach_the_model_with_the_prompt_and_the_file_they_concern() {
    let file = |client: &Client| client.cwd().join("ledger.rs").to_string_lossy().into_owned();
    let server = Server::answering(|request: &Request| match request.tool_results().pop() {
        None if request.last_user_text().contains("round the ledger") => {
            let text = request.all_text();
            let path = text.split("in FILE ").nth(1).unwrap().split(' ').next().unwrap();
            Answer::tools([("Read", json!({"file_path": path}))])
        }
        Some((_, read)) if read.contains("let cents") && !read.contains("updated") => {
            let text = request.all_text();
            let path = text.split("in FILE ").nth(1).unwrap().split(' ').next().unwrap();
            let edit = json!({"file_path": path, "old_string": "cents", "new_string": "mills"});
            Answer::tools([("Edit", edit)])
        }
        _ => Answer::text("Done."),
    });
    let server = server.unwrap();
    let client = real_client(&server.url());
    fs::write(client.cwd().join("ledger.rs"), "let cents = 7;\n").unwrap();
    let claude_mem = |arguments: &[&str]| ours(&client, arguments);
    claude_mem(&["install"]);
    claude_mem(&["settings", "set", "WORKER_AUTOSTART", "false"]);
    // Memories shown at the start of a session are not given again, so the start shows none here.
    claude_mem(&["settings", "set", "CONTEXT_TOKENS_MAX", "0"]);
    let decision = "Moved off Postgres to SQLite";
    let reason = "Backups of a single file are simple.";
    claude_mem(&["remember", "--type", "decision", "--title", decision, reason]);
    let trap = "Rounding here twice loses a cent";
    claude_mem(&["remember", "--type", "rule", "--file", "ledger.rs", trap]);
    let asked = |prompt: &str| {
        let before = server.requests().len();
        let outcome = client.prompt(prompt).unwrap();
        assert!(outcome.status.success(), "{outcome:?}");
        server.requests().split_off(before)
    };

    let why = asked("why did we move off Postgres?");
    let text = why.last().unwrap().all_text();
    assert!(text.contains(decision) && text.contains(reason), "{text}");
    assert!(!text.contains(trap), "{text}");

    let unrelated = "write a poem about the sea";
    let with = asked(unrelated).pop().unwrap().all_text();
    claude_mem(&["settings", "set", "CONTEXT_PROMPT_TOKENS_MAX", "0"]);
    let without = asked(unrelated).pop().unwrap().all_text();
    assert_eq!(with, without, "an unrelated prompt adds nothing");

    let edited = asked(&format!("round the ledger in FILE {} please", file(&client)));
    let last = edited.last().unwrap().body.to_string();
    assert_eq!(last.matches(trap).count(), 1, "{last}");
    assert!(!edited[0].body.to_string().contains(trap), "not before the file is used");
    let now = fs::read_to_string(client.cwd().join("ledger.rs")).unwrap();
    assert_eq!(now, "let mills = 7;\n", "the edit was made as the model asked for it");
}
