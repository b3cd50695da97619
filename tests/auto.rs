//! The provider `auto`: the best provider that answers, else the rules, and what status and doctor
//! report about it.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use claude_mem_tools::{
    client::executable,
    model::{Answer, Server},
};
use serde_json::{Value, json};

use crate::{
    model::{Session, answering, provider_at, reply, run, titles},
    sandbox::{Run, Sandbox, binary, real_client},
    serving::{Serving, until},
};

type Variables = Vec<(String, String)>;

/// No client is installed, and no provider is set.
fn auto() -> Variables {
    vec![("CLAUDE_CODE_PATH".into(), "/nowhere/claude".into())]
}

/// One provider per server; none is set explicitly.
fn set_up(anthropic: &Server, openai: Option<&Server>) -> Variables {
    let mut variables = auto();
    variables.extend(provider_at("anthropic", anthropic.url()));
    variables.extend(openai.into_iter().flat_map(|server| provider_at("openai", server.url())));
    variables.retain(|(name, _)| name != "CLAUDE_MEM_PROVIDER");
    variables
}

/// A model that refuses all requests until it is repaired.
fn refusing() -> (Server, Arc<AtomicBool>) {
    let is_repaired = Arc::new(AtomicBool::new(false));
    let repaired = Arc::clone(&is_repaired);
    let server = Server::answering(move |request| match repaired.load(Ordering::SeqCst) {
        true => Answer::text(reply("repaired", request)),
        false => Answer::error(401, "authentication_error", "invalid x-api-key"),
    });
    (server.unwrap(), is_repaired)
}

fn later(minutes: i64) -> (String, String) {
    let then = jiff::Timestamp::now() + jiff::SignedDuration::from_mins(minutes);
    ("CLAUDE_MEM_NOW".into(), then.to_string())
}

fn run_hook(sandbox: &Sandbox, name: &str, variables: &Variables, payload: &Value) -> Value {
    let variables: Vec<_> = variables.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    sandbox.hook_with(name, &variables, payload.to_string())
}

fn project(sandbox: &Sandbox, variables: &Variables) -> (Value, Run) {
    let run = run(sandbox, &["distill", "--json"], variables);
    (serde_json::from_str(&run.stdout).unwrap(), run)
}

fn serve(sandbox: &Sandbox, variables: &Variables) -> Serving {
    let mut all = variables.clone();
    all.push(("CLAUDE_MEM_PROVIDER".into(), "auto".into()));
    let all: Vec<_> = all.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    Serving::start(sandbox, &all)
}

#[test]
fn a_client_that_is_not_logged_in_falls_back_to_the_rules_and_it_is_reported() {
    let server = answering("never");
    let client = real_client(&server.url());
    let sandbox = Sandbox::new();
    Session::worked(&sandbox, "a", 1);
    let path = client.environment().iter().find(|(name, _)| name == "PATH").unwrap();
    let variables = vec![
        ("CLAUDE_CODE_PATH".to_owned(), executable().unwrap().to_str().unwrap().to_owned()),
        ("PATH".to_owned(), path.1.to_str().unwrap().to_owned()),
        ("ANTHROPIC_API_KEY".to_owned(), "sk-of-a-project".to_owned()),
        ("ANTHROPIC_BASE_URL".to_owned(), server.url()),
    ];
    let (printed, run) = project(&sandbox, &variables);
    assert_eq!((run.code, &printed["provider"]), (0, &json!("extract")), "{run:?}");
    assert!(printed["observations"].as_u64() > Some(0), "{printed}");
    assert!(run.stderr.contains("claude is unavailable: authentication failed"), "{run:?}");
    assert!(run.stderr.contains("using extract instead"), "{run:?}");
    assert_eq!(server.requests().len(), 0, "a project's key is not used");

    let status = sandbox.run(&["status"]).ok();
    for part in [
        "using the built-in rules",
        "claude fails: Not logged in",
        "next attempt",
        "claude-mem settings set CLAUDE_MEM_CLAUDE_AUTH_METHOD api-key",
        "claude-mem settings set CLAUDE_MEM_ANTHROPIC_API_KEY",
        "distilled by the built-in rules; redo them with `claude-mem replay --since",
    ] {
        assert!(status.contains(part), "{part}: {status}");
    }
    let doctor = sandbox.run(&["doctor"]).stdout;
    assert!(doctor.contains("warning provider: claude: auth, Not logged in"), "{doctor}");
    assert!(doctor.contains("CLAUDE_MEM_CLAUDE_AUTH_METHOD"), "{doctor}");
    let start = json!({"session_id": "b", "hook_event_name": "SessionStart", "source": "startup",
        "cwd": sandbox.home()});
    let answer = sandbox.hook("context", start.to_string());
    let message = answer["systemMessage"].as_str().unwrap();
    assert!(message.starts_with("claude-mem: claude fails (Not logged in"), "{message}");
    assert!(message.contains("memories come from the built-in rules"), "{message}");
    assert!(message.contains("Log in with `claude /login`"), "{message}");
}

#[test]
fn a_login_or_an_account_that_fails_falls_through_to_the_next_one() {
    for (status, kind, message) in [
        (401, "authentication_error", "invalid x-api-key"),
        (402, "billing_error", "no credit"),
        (429, "insufficient_quota", "you exceeded your current quota"),
    ] {
        let bad = || {
            let answer = Answer::error(status, kind, message);
            Server::answering(move |_| answer.clone()).unwrap()
        };
        let (first, second, good) = (bad(), bad(), answering("saw"));
        let sandbox = Sandbox::new();
        Session::worked(&sandbox, "a", 1);
        let (printed, run) = project(&sandbox, &set_up(&first, Some(&good)));
        assert_eq!((run.code, &printed["provider"]), (0, &json!("openai")), "{status}: {run:?}");
        assert_eq!(titles(&sandbox), ["saw work 1 of a"]);
        Session::worked(&sandbox, "b", 1);
        let (printed, run) = project(&sandbox, &set_up(&first, Some(&second)));
        assert_eq!((run.code, &printed["provider"]), (0, &json!("extract")), "{status}: {run:?}");
        assert!(printed["observations"].as_u64() > Some(0), "{printed}");
        let refused = (first.requests().len(), second.requests().len());
        assert_eq!(refused, (2, 1), "{status}: each is asked once by each command");
    }
}

#[test]
fn the_worker_falls_back_tries_again_later_and_what_the_rules_did_can_be_redone() {
    let (server, is_repaired) = refusing();
    let sandbox = Sandbox::new();
    let variables = set_up(&server, None);
    let serving = serve(&sandbox, &variables);
    Session::worked(&sandbox, "a", 1);
    until(|| sandbox.run(&["status"]).ok().contains("using the built-in rules"));
    // During its pause it is not called.
    Session::worked(&sandbox, "b", 1);
    until(|| {
        let printed: Value =
            serde_json::from_str(&sandbox.run(&["status", "--json"]).ok()).unwrap();
        printed["memory"]["outstanding"] == 0 && printed["memory"]["summaries"] == 2
    });
    assert_eq!(server.requests().len(), 1);
    drop(serving);

    is_repaired.store(true, Ordering::SeqCst);
    let mut after = variables.clone();
    after.push(later(16));
    Session::worked(&sandbox, "c", 1);
    let serving = serve(&sandbox, &after);
    until(|| titles(&sandbox).iter().any(|title| title == "repaired work 1 of c"));
    drop(serving);
    let status = sandbox.run(&["status"]).ok();
    assert!(!status.contains("using the built-in rules"), "{status}");
    assert!(status.contains("8 events since"), "{status}");
    let redo = status.split("redo them with `claude-mem ").nth(1).unwrap();
    let redo = format!("\"$0\" {}", redo.split('`').next().unwrap());
    let mut command = Command::new("sh");
    command.args(["-c", &redo]).arg(binary()).env_clear().env("HOME", sandbox.home());
    let output = command.envs(variables).output().unwrap();
    assert!(output.status.success(), "{redo}: {output:?}");
    let expected = ["repaired work 1 of a", "repaired work 1 of b", "repaired work 1 of c"];
    assert_eq!(titles(&sandbox), expected);
    assert_eq!(server.requests().len(), 4, "what the model has answered is not asked again");
    assert!(!sandbox.run(&["status"]).ok().contains("built-in rules"));
}

#[test]
fn retry_distills_what_waits_for_a_login_and_the_worker_continues_at_once() {
    let (server, is_repaired) = refusing();
    let sandbox = Sandbox::new();
    let variables = provider_at("anthropic", server.url());
    Session::worked(&sandbox, "a", 1);
    let error = run(&sandbox, &["distill"], &variables).fails(1);
    assert!(error.contains("claude-mem settings set CLAUDE_MEM_ANTHROPIC_API_KEY"), "{error}");
    let error = run(&sandbox, &["retry"], &variables).fails(1);
    assert!(error.contains("authentication failed"), "{error}");
    let start = json!({"session_id": "b", "hook_event_name": "SessionStart", "source": "startup",
        "cwd": sandbox.home()});
    let answer = run_hook(&sandbox, "context", &variables, &start);
    let message = answer["systemMessage"].as_str().unwrap();
    let help =
        "events stay pending. Set a key with `claude-mem settings set ANTHROPIC_API_KEY KEY`";
    assert!(message.contains(help), "{message}");
    let borrowed: Vec<_> = variables.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let _serving = Serving::start(&sandbox, &borrowed);
    until(|| {
        let status = sandbox.run(&["status"]).ok();
        status.contains("but no provider is available: authentication failed")
    });
    is_repaired.store(true, Ordering::SeqCst);
    let printed = run(&sandbox, &["retry"], &variables).ok();
    assert!(printed.starts_with("1 request for 4 events answered by anthropic"), "{printed}");
    Session::worked(&sandbox, "b", 1);
    until(|| titles(&sandbox) == ["repaired work 1 of a", "repaired work 1 of b"]);
}

#[test]
fn a_failing_chosen_provider_has_no_substitute_and_none_is_reported() {
    let (server, _) = refusing();
    let sandbox = Sandbox::new();
    Session::worked(&sandbox, "a", 1);
    sandbox.run_with(&["distill"], &[("CLAUDE_MEM_PROVIDER", "extract")], "").ok();
    let variables = provider_at("anthropic", server.url());
    Session::worked(&sandbox, "b", 1);
    run(&sandbox, &["distill"], &variables).fails(1);
    let status = run(&sandbox, &["status"], &variables).ok();
    let first = status.lines().next().unwrap();
    assert!(first.ends_with(" · not distilling: anthropic fails"), "{status}");
    assert!(!status.contains("using the built-in rules"), "{status}");
    let start = json!({"session_id": "c", "hook_event_name": "SessionStart", "source": "startup",
        "cwd": sandbox.home()});
    let answer = run_hook(&sandbox, "context", &variables, &start);
    let message = answer["systemMessage"].as_str().unwrap();
    assert!(message.contains("events stay pending"), "{message}");
}

#[test]
fn waiting_for_a_model_is_reported_before_it_responds() {
    let closed = "http://127.0.0.1:1".to_owned();
    let hanging = Server::answering(|_| Answer::hang()).unwrap();
    for (url, arguments, parts) in [
        (closed, vec!["distill", "--wait", "20"], ["failed: ", "retries stop after 20 s"]),
        (hanging.url(), vec!["project"], ["waiting for anthropic (claude-haiku-4-5)", "attempt 1"]),
        (
            hanging.url(),
            vec!["replay", "--fresh"],
            ["waiting for anthropic (claude-haiku-4-5)", "retries stop after 900 s"],
        ),
    ] {
        let sandbox = Sandbox::new();
        Session::worked(&sandbox, "a", 1);
        let mut command = sandbox.command(&arguments);
        command.envs(provider_at("anthropic", url)).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let result = lines.find(|line| {
            line.as_ref().is_ok_and(|line| parts.iter().all(|part| line.contains(part)))
        });
        assert!(result.is_some(), "{arguments:?}");
        assert!(
            child.try_wait().unwrap().is_none(),
            "{arguments:?}: it exited while the provider still answers"
        );
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
