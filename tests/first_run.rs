//! The first hour: what `install` and `uninstall` report, and commands that are typed by hand.

use std::{fs, path::Path};

use claude_mem_tools::{
    client::executable,
    model::{Answer, Server},
};

use crate::{
    command_line::at_a_terminal,
    model::{answering, provider_at, run},
    sandbox::{Sandbox, binary, real_client},
};

/// Hides an installed Claude Code.
const NO_CLIENT: (&str, &str) = ("CLAUDE_CODE_PATH", "/nowhere/claude");

/// A home directory with Claude Code, Codex and one past session.
fn newcomer() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".claude/settings.json", "{\"model\": \"opus\"}\n");
    fs::create_dir(sandbox.home().join(".codex")).unwrap();
    let past = "tests/fixtures/transcripts/tools_basic.0.jsonl";
    let past = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(past)).unwrap();
    sandbox.write(".claude/projects/shop/977713de.jsonl", &past);
    sandbox
}

#[test]
fn install_reports_what_it_wrote_who_distills_past_sessions_and_the_next_step() {
    let sandbox = newcomer();
    let report = sandbox.run_with(&["install"], &[NO_CLIENT], "").ok();
    let expected = "\
Claude Code
  ✓ hooks       ~/.claude/settings.json
  ✓ MCP server  ~/.claude.json
  ✓ skill       ~/.claude/skills/mem-search/SKILL.md
  ✓ /mem        ~/.claude/commands/mem.md
Codex CLI
  ✓ hooks       ~/.codex/hooks.json
  ✓ MCP server  ~/.codex/config.toml
  note: Codex runs a new hook only when you have approved it: start `codex` and approve the hooks of claude-mem, or \
run `claude-mem install --client codex --trust`.

Distilling
  the built-in rules: no model, no network, no cost
  nothing leaves this machine
  for better notes, install Claude Code, or set a key: `claude-mem settings set ANTHROPIC_API_KEY KEY`

Found
  1 session of Claude Code; see what an import adds with `claude-mem import --from transcripts --dry-run`

Next
  start a new session in Claude Code; it is recorded in ~/.claude-mem
  `claude-mem status` shows whether everything works
";
    assert_eq!(report, expected);

    sandbox.run(&["import", "--from", "transcripts"]).ok();
    let again = sandbox.run_with(&["install"], &[NO_CLIENT], "").ok();
    assert!(again.contains("  ✓ hooks       ~/.claude/settings.json (unchanged)\n"), "{again}");
    assert!(again.contains("SKILL.md (unchanged)\n"), "{again}");
    assert!(!again.contains("Found"), "it is imported: {again}");
}

/// Without a terminal, a model is called only on request; `auto` reports each failing provider,
/// with its remedy.
#[test]
fn install_tests_the_model_with_one_request() {
    let sandbox = newcomer();
    let server = answering("fine");
    let mut variables = provider_at("anthropic", server.url());
    variables.push((NO_CLIENT.0.into(), NO_CLIENT.1.into()));
    let untested = run(&sandbox, &["install"], &variables).ok();
    let terms = "\
Distilling
  the Anthropic API with claude-haiku-4-5, billed per token to your key
  at most 2,000,000 tokens and $2.00 a day; `claude-mem distill costs` shows the spending
  your sessions are sent to it without secrets and private text; `claude-mem settings set PROVIDER extract` sends nothing
";
    let tested_with = "  not tested; test it with `claude-mem install --test`\n";
    assert!(untested.contains(&format!("{terms}{tested_with}")), "{untested}");
    assert_eq!(server.requests().len(), 0);
    let tested = run(&sandbox, &["install", "--test"], &variables).ok();
    assert!(tested.contains(&format!("{terms}  ✓ answered a test request in ")), "{tested}");
    assert_eq!(server.requests().len(), 1);

    let refusing =
        Server::answering(|_| Answer::error(401, "authentication_error", "invalid x-api-key"));
    let refusing = refusing.unwrap();
    let mut variables = provider_at("anthropic", refusing.url());
    variables.push((NO_CLIENT.0.into(), NO_CLIENT.1.into()));
    let pending = run(&sandbox, &["install", "--test"], &variables).ok();
    assert!(pending.contains("  ✗ the Anthropic API: "), "{pending}");
    assert!(pending.contains("  until then, recorded events stay pending\n"), "{pending}");
    variables.retain(|(name, _)| name != "CLAUDE_MEM_PROVIDER");
    let fallback = run(&sandbox, &["install", "--test"], &variables).ok();
    assert!(
        fallback.contains("claude-mem settings set CLAUDE_MEM_ANTHROPIC_API_KEY"),
        "{fallback}"
    );
    assert!(fallback.contains("  until then: the built-in rules: no model"), "{fallback}");
    assert_eq!(refusing.requests().len(), 2, "one request each, and no retry");
}

/// The client is tested in the way it will distill: logged in with a key, or not at all.
#[test]
fn install_tests_the_users_own_client() {
    let server = Server::answering(|_| Answer::text("OK")).unwrap();
    let client = real_client(&server.url());
    let path = client.environment().iter().find(|(name, _)| name == "PATH").unwrap();
    let sandbox = newcomer();
    let mut variables = vec![
        ("CLAUDE_CODE_PATH".to_owned(), executable().unwrap().to_str().unwrap().to_owned()),
        ("PATH".to_owned(), path.1.to_str().unwrap().to_owned()),
    ];
    let refused = run(&sandbox, &["install", "--test"], &variables).ok();
    let expected = "  ✗ Claude Code: Not logged in";
    assert!(refused.contains(expected) && refused.contains("`claude /login`"), "{refused}");
    sandbox.use_gateway(&server.url());
    variables.push(("CLAUDE_MEM_CLAUDE_AUTH_METHOD".into(), "api-key".into()));
    let answered = run(&sandbox, &["install", "--test"], &variables).ok();
    assert!(
        answered.contains("  Claude Code with claude-haiku-4-5, billed per token"),
        "{answered}"
    );
    assert!(answered.contains("  ✓ answered a test request in "), "{answered}");
}

#[test]
fn at_a_terminal_install_tests_the_model_unless_disabled() {
    let sandbox = newcomer();
    let server = answering("fine");
    let variables = provider_at("anthropic", server.url());
    let variables: Vec<String> =
        variables.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    let variables = variables.join(" ");
    let line =
        format!("env {}={} {variables} {} install", NO_CLIENT.0, NO_CLIENT.1, binary().display());
    let shown = at_a_terminal(&sandbox, &format!("{line} --no-test"));
    assert!(shown.contains("not tested") && server.requests().is_empty(), "{shown}");
    let shown = at_a_terminal(&sandbox, &line);
    assert!(shown.contains("testing the Anthropic API with one short request"), "{shown}");
    assert!(shown.contains("✓ answered a test request") && server.requests().len() == 1, "{shown}");
}

#[test]
fn uninstall_reports_what_it_restored_deleted_and_kept() {
    let sandbox = newcomer();
    sandbox.run(&["install"]).ok();
    sandbox.run(&["worker", "start"]).ok();
    sandbox.write(".claude/commands/mem.md", "my own words");
    let report = sandbox.run(&["uninstall"]).ok();
    let (done, kept) = report.split_once("kept ~/.claude-mem (").unwrap();
    let mut done: Vec<&str> = done.lines().collect();
    done.sort_unstable();
    let expected = [
        "kept ~/.claude/commands/mem.md, which you changed",
        "✓ deleted ~/.claude.json",
        "✓ deleted ~/.claude/skills/mem-search/SKILL.md",
        "✓ deleted ~/.codex/config.toml",
        "✓ deleted ~/.codex/hooks.json",
        "✓ restored ~/.claude/settings.json",
        "✓ stopped the worker",
    ];
    assert_eq!(done, expected, "{report}");
    let (size, rest) = kept.split_once(')').unwrap();
    assert!(size.ends_with("KB"), "{size}");
    let hint =
        ": everything recorded, and the settings\ndelete it with `claude-mem uninstall --purge`\n";
    assert_eq!(rest, hint);
    assert!(!sandbox.home().join(".claude/skills").exists());
    assert!(!sandbox.data().join("worker.json").exists());
    assert!(sandbox.run(&["worker", "status"]).ok().starts_with("no worker is running"));
    let purged = sandbox.run(&["uninstall", "--purge", "--yes"]).ok();
    assert_eq!(purged, "✓ deleted ~/.claude-mem\n");
}

/// A hook that a person types explains itself. Nothing is recorded, and nothing is logged as an
/// error.
#[test]
fn hooks_typed_by_hand_explain_themselves() {
    let sandbox = Sandbox::new();
    let program = binary().display();
    for (command, hint) in [
        ("save", "hint: write a memory yourself with `claude-mem remember TEXT`"),
        ("summary", "hint: list summaries with `claude-mem search --kind summary`"),
        ("hook --client codex", "is a hook: Codex CLI runs it"),
    ] {
        let shown = at_a_terminal(&sandbox, &format!("{program} {command}; echo code $?"));
        assert!(shown.contains(hint) && shown.contains("code 0"), "{shown}");
        assert!(!shown.contains("continue"), "{shown}");
    }
    // `context` prints the context of a session: at a terminal, and where stdin is empty, as in a
    // task of an editor.
    let shown = at_a_terminal(&sandbox, &format!("{program} context"));
    assert!(shown.contains("no memories of"), "{shown}");
    assert!(sandbox.run(&["context"]).stderr.contains("no memories of"));
    assert_eq!(sandbox.run(&["timeline"]).stderr, "no memories near this time\n");
    sandbox.run(&["remember", "The walrus sleeps at noon"]).ok();
    assert!(sandbox.run(&["context"]).ok().contains("The walrus sleeps at noon"));
    assert_eq!(sandbox.diagnostics(), "");
    assert_eq!(sandbox.events().len(), 1, "only what was remembered");
}
