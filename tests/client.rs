//! The whole path with the real Claude Code: as the session that is watched, and as the agent that distils.

use claude_mem_tools::{
    client::executable,
    model::{Answer, Request, Script, Server, When},
};
use serde_json::{Value, json};

use crate::{
    model::{Session, reply, titles},
    sandbox::{Sandbox, ours, real_client},
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
    let told: Value = serde_json::from_str(&claude_mem(&["distill", "--json"])).unwrap();
    assert!(told["observations"].as_u64() > Some(0) && told["summaries"] == 1, "{told}");
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
