//! `claude-mem report`: every number equals what was recorded.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use claude_mem_tools::model::{Answer, Server};
use serde_json::{Value, json};

use crate::{hook_session::HookSession, model::provider, sandbox::Sandbox};

const NOW: &str = "2026-03-08T18:00:00Z";

/// Runs git in a folder, and returns what it printed.
pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(folder).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", folder);
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "Ada").env(format!("GIT_{who}_EMAIL"), "a@b.c");
    }
    let output = command.args(arguments).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A repository in the sandbox with one commit on `main`.
pub(crate) fn repository(sandbox: &Sandbox, name: &str) -> PathBuf {
    let folder = sandbox.home().join(name);
    std::fs::create_dir(&folder).unwrap();
    git(&folder, &["init", "-q", "-b", "main"]);
    git(&folder, &["commit", "-q", "--allow-empty", "-m", "start"]);
    folder
}

/// Three sessions in two projects on two branches and two days, and one before that, distilled by a
/// model.
fn worked() -> Sandbox {
    let sandbox = Sandbox::new();
    let (shop, site) = (repository(&sandbox, "shop"), repository(&sandbox, "site"));
    let session = |id: &str, folder: &Path, time: &'static str| {
        HookSession::new(&sandbox, id).in_folder(folder).with(&[("CLAUDE_MEM_NOW", time)])
    };
    let bash = |session: &HookSession<'_>, command: &str, result: Result<&str, &str>| {
        let fields = json!({"tool_name": "Bash", "tool_input": {"command": command},
            "tool_use_id": format!("{command} {result:?}")});
        let with = |name: &str, value: Value| {
            let mut fields = fields.clone();
            fields[name] = value;
            fields
        };
        match result {
            Ok(stdout) => session.hook(
                "PostToolUse",
                with("tool_response", json!({"stdout": stdout, "stderr": ""})),
            ),
            Err(error) => session.hook("PostToolUseFailure", with("error", json!(error))),
        };
    };
    let old = session("old", &shop, "2026-02-01T12:00:00Z");
    old.start();
    old.prompt("long ago");
    bash(&old, "npm test", Err("Exit code 1\nold failure"));
    old.stop("Done.");

    let first = session("first", &shop, "2026-03-06T12:00:00Z");
    first.start();
    first.prompt("fix the total");
    bash(&first, "npm test", Err("Exit code 1\n\nexpected 26, got 27"));
    first.edit("e1", "cart.rs", "a", "b");
    first.edit("e2", "cart.rs", "a", "b");
    bash(&first, "npm test", Ok("ok"));
    bash(&first, "npm run lint", Err("Exit code 2\nunused import"));
    let printed = git(&shop, &["commit", "--allow-empty", "-m", "Round once, after summing"]);
    bash(&first, "git add -A && git commit -m 'Round once, after summing'", Ok(&printed));
    first.stop("Done.");
    first.prompt("thanks");
    first.prompt("<private>not for the report</private>");

    git(&shop, &["checkout", "-q", "-b", "fix"]);
    let second = session("second", &shop, "2026-03-07T12:00:00Z");
    second.start();
    second.prompt("commit quietly");
    git(&shop, &["commit", "-q", "--allow-empty", "-m", "quiet"]);
    bash(&second, "git commit -q -m quiet", Ok(""));
    bash(&second, "git commit -q -m nothing || true", Ok("nothing to commit"));
    second.stop("Done.");

    let third = session("third", &site, "2026-03-07T15:00:00Z");
    third.start();
    third.prompt("write the page");
    third.edit("e3", "index.html", "a", "b");
    let failed = json!({"tool_name": "Edit", "tool_use_id": "e4", "tool_input": {"file_path": "x.html"},
        "error": "String to replace not found"});
    third.hook("PostToolUseFailure", failed);
    third.stop("Done.");

    let server = Server::answering(|request| {
        let text = request.last_user_text();
        let prompt = ["fix the total", "commit quietly", "write the page", "long ago"];
        let prompt = prompt.into_iter().find(|prompt| text.contains(prompt)).unwrap_or("other");
        Answer::text(format!(
            "<summary><request>{prompt}</request><completed>Completed: {prompt}</completed>\
             <next_steps>Next after: {prompt}</next_steps></summary>"
        ))
    });
    let server = server.unwrap();
    let variables = provider("anthropic", &server);
    let mut variables: Vec<(&str, &str)> =
        variables.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    variables.push(("CLAUDE_MEM_NOW", "2026-03-07T16:00:00Z"));
    sandbox.run_with(&["distill"], &variables, "").ok();
    sandbox
}

fn report(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let arguments: Vec<&str> = ["report"].iter().chain(arguments).copied().collect();
    let run = sandbox.run_with(&arguments, &[("CLAUDE_MEM_NOW", NOW), ("TZ", "UTC")], "");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    run.stdout
}

fn report_json(sandbox: &Sandbox, arguments: &[&str]) -> Value {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--format", "json"]).collect();
    serde_json::from_str(&report(sandbox, &arguments)).unwrap()
}

#[test]
fn every_number_adds_up_to_what_was_recorded() {
    let sandbox = worked();
    let counts = |by: &str| {
        let report = report_json(&sandbox, &["--since", "7d", "--by", by]);
        let line = |group: &Value| {
            let fields =
                ["sessions", "prompts", "tool_uses", "failed_tool_uses", "files_edited", "commits"];
            let counts = fields.map(|field| group["total"][field].to_string()).join(" ");
            format!("{}: {counts}", group["name"].as_str().unwrap())
        };
        let mut lines: Vec<String> =
            report["groups"].as_array().unwrap().iter().map(line).collect();
        lines.sort();
        lines
    };
    assert_eq!(counts("project"), ["shop: 2 3 8 2 1 2", "site: 1 1 2 1 1 0"]);
    let branches = [
        "shop, branch fix: 1 1 2 0 0 1",
        "shop, branch main: 1 2 6 2 1 1",
        "site, branch main: 1 1 2 1 1 0",
    ];
    assert_eq!(counts("branch"), branches);
    assert_eq!(counts("day"), ["2026-03-06: 1 2 6 2 1 1", "2026-03-07: 2 2 4 1 1 1"]);
    let total = &report_json(&sandbox, &["--since", "7d"])["total"];
    let replies = sandbox.events().into_iter().filter(|event| event["kind"] == "AgentReplied");
    let (mut tokens, mut micros) = (0, 0);
    for reply in replies {
        let number = |name: &str| reply["event"][name].as_u64().unwrap();
        tokens += number("tokens_in") + number("tokens_out");
        micros += number("cost_micros");
    }
    assert_eq!((&total["tokens"], &total["commits"]), (&json!(tokens), &json!(2)));
    assert!(micros > 0 && total["cost_usd"] == micros as f64 / 1e6, "{total}");
}

#[test]
fn a_range_and_a_project_limit_the_report() {
    let sandbox = worked();
    let prompts = |arguments: &[&str]| report_json(&sandbox, arguments)["total"]["prompts"].clone();
    assert_eq!(prompts(&["--since", "2026-01-01"]), 5);
    assert_eq!(prompts(&["--since", "2026-03-06", "--until", "2026-03-06"]), 2);
    assert_eq!(prompts(&["--project", "site"]), 1);
    assert_eq!(prompts(&["--project", "shop"]), 3);
    let nothing = report(&sandbox, &["--since", "2026-03-08"]);
    assert_eq!(
        nothing,
        "# Report: 2026-03-08 00:00 to 2026-03-08 18:00\n\nNothing was recorded.\n"
    );
    let unknown = sandbox.run(&["report", "--project", "nowhere"]).fails(2);
    assert!(unknown.contains("there is no recorded project `nowhere`"), "{unknown}");
}

#[test]
fn the_markdown_is_ready_for_a_note() {
    let sandbox = worked();
    let id = git(&sandbox.home().join("shop"), &["rev-parse", "main", "fix"]);
    let [main, fix] = &id.lines().collect::<Vec<_>>()[..] else { panic!("{id}") };
    let printed = report(&sandbox, &["--project", "shop", "--by", "branch"]);
    assert!(printed.lines().all(|line| line.chars().count() <= 80), "{printed}");
    // The sums are tested above. The ids of summaries depend on which response came first.
    let is_sum = |line: &str| line.contains(" session") && line.contains(" prompt");
    let is_rest = |line: &str| line.ends_with(" tokens)");
    let shown: Vec<&str> = printed
        .lines()
        .filter(|line| !line.is_empty() && !is_sum(line) && !is_rest(line))
        .map(|line| line.split(" (S").next().unwrap())
        .collect();
    let (main, fix) = (&main[..7], &fix[..7]);
    let expected = format!(
        "# Report: 2026-03-01 18:00 to 2026-03-08 18:00
## shop, branch fix
### Asked
- 03-07 12:00 commit quietly
### Done
- Completed: commit quietly
### Open
- Next after: commit quietly
### Commits
- {fix} quiet (fix)
## shop, branch main
### Asked
- 03-06 12:00 fix the total (and 1 more prompt)
### Done
- Completed: fix the total
### Failed
- `npm run lint`: unused import
- `npm test`: expected 26, got 27, passed later
### Open
- Next after: fix the total
### Commits
- {main} Round once, after summing (main)"
    );
    assert_eq!(shown.join("\n"), expected);
    let short = report(&sandbox, &["--project", "shop", "--limit", "1"]);
    assert!(short.contains("### Commits\n\n- ") && short.contains("\n- and 1 more\n"), "{short}");
}

#[test]
fn a_session_is_shown_with_its_commits() {
    let sandbox = worked();
    let show = |arguments: &[&str]| sandbox.run_with(arguments, &[("TZ", "UTC")], "").ok();
    let shown = show(&["show", "fir"]);
    assert!(shown.starts_with("# Session first\n\n1 session, 2 prompts"), "{shown}");
    for part in ["fix the total", "Round once, after summing (main)", "unused import"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("commit quietly"), "{shown}");
    let json: Value = serde_json::from_str(&show(&["show", "second", "--json"])).unwrap();
    assert_eq!((&json["session"], &json["total"]["commits"]), (&json!("second"), &json!(1)));
    let unknown = sandbox.run(&["show", "nowhere"]).fails(2);
    assert!(unknown.contains("there is no recorded session `nowhere`"), "{unknown}");
}
