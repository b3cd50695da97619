//! The command line as a whole: names, exit codes, where things are printed.

use crate::sandbox::Sandbox;

#[test]
fn a_hook_prints_one_json_object_and_nothing_else() {
    let sandbox = Sandbox::new();
    for hook in ["new", "save", "summary", "cleanup"] {
        let run = sandbox.run(&[hook]);
        let answer: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        assert_eq!(answer["continue"], true);
    }
}

#[test]
fn a_hook_has_help() {
    let help = Sandbox::new().run(&["save", "--help"]).ok();
    assert!(help.contains("PostToolUse"), "{help}");
}

#[test]
fn an_unknown_command_gets_the_nearest_name() {
    let sandbox = Sandbox::new();
    assert_eq!(
        sandbox.run(&["setings"]).fails(2),
        "error: there is no command `setings`\nhint: did you mean `settings`?\n"
    );
    assert_eq!(
        sandbox.run(&["xyzzy"]).fails(2),
        "error: there is no command `xyzzy`\nhint: list the commands with `claude-mem --help`\n"
    );
    let below = sandbox.run(&["worker", "xyzzy"]).fails(2);
    assert!(below.contains("list the commands with `claude-mem worker --help`"), "{below}");
    assert!(sandbox.run(&["settings", "gett"]).fails(2).contains("did you mean `get`?"));
}

#[test]
fn wrong_usage_ends_with_two_and_help_with_nought() {
    let sandbox = Sandbox::new();
    assert_eq!(
        sandbox.run(&["settings", "--chnged"]).fails(2),
        "error: unexpected argument '--chnged' found\n\
         hint: a similar argument exists: '--changed'\n\
         usage: claude-mem settings --changed\n"
    );
    assert_eq!(
        sandbox.run(&["context", "--budget", "x"]).fails(2),
        "error: invalid value 'x' for '--budget <TOKENS>': expected a whole number\n"
    );
    assert_eq!(
        sandbox.run(&["costs", "--by", "x"]).fails(2),
        "error: invalid value 'x' for '--by <BY>'\nhint: use one of day, project, model\n"
    );
    assert!(sandbox.run::<&str>(&[]).fails(2).contains("Usage: claude-mem"));
    assert!(sandbox.run(&["--help"]).ok().contains("Usage: claude-mem"));
    assert!(sandbox.run(&["--version"]).ok().starts_with("claude-mem 0."));
}

#[test]
fn completions_and_manual_pages_are_made_from_the_commands() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = sandbox.run(&["completions", shell]).ok();
        assert!(script.contains("remember"), "{shell}: {script}");
    }
    sandbox.run(&["man", "man1"]).ok();
    assert!(sandbox.read("man1/claude-mem-search.1").contains("Find memories by their words"));
}

/// Runs a shell command at a terminal, and returns the output.
pub(crate) fn at_a_terminal(sandbox: &Sandbox, line: &str) -> String {
    let mut command = std::process::Command::new("script");
    command.args(["-qec", line, "/dev/null"]).current_dir(sandbox.home());
    command.env_clear().env("HOME", sandbox.home()).env("TERM", "xterm");
    command.env("PATH", "/usr/bin:/bin").env("NO_COLOR", "1");
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn an_unknown_client_lists_the_known_ones_at_a_terminal() {
    let sandbox = Sandbox::new();
    let binary = env!("CARGO_BIN_EXE_claude-mem");
    let shown = at_a_terminal(&sandbox, &format!("{binary} hook --client nobody; echo code $?"));
    assert!(shown.contains("known clients: claude-code"), "{shown}");
    assert!(shown.contains("code 2"), "{shown}");
}

#[test]
fn long_output_is_paged_at_a_terminal_only() {
    let sandbox = Sandbox::new();
    let prompt =
        r#"{"session_id":"s","cwd":"/","hook_event_name":"UserPromptSubmit","prompt":"hello"}"#;
    sandbox.hook("new", prompt);
    let binary = env!("CARGO_BIN_EXE_claude-mem");
    let variables = [("PAGER", "sed 's/^/paged: /'"), ("TERM", "xterm")];

    let paged = at_a_terminal(&sandbox, &format!("PAGER=\"sed 's/^/paged: /'\" {binary} log"));
    assert!(paged.contains("paged: ") && paged.contains("hello"), "{paged}");
    let plain = at_a_terminal(&sandbox, &format!("PAGER=cat {binary} log"));
    assert!(plain.contains("hello"), "{plain}");
    let piped = sandbox.run_with(&["log"], &variables, "").ok();
    assert!(piped.contains("hello") && !piped.contains("paged"), "{piped}");
    let short = at_a_terminal(&sandbox, &format!("PAGER=\"sed 's/^/paged: /'\" {binary} status"));
    assert!(!short.contains("paged"), "{short}");
}

#[test]
fn a_name_that_matches_nothing_is_wrong_usage_and_an_empty_list_is_not() {
    let sandbox = crate::terminal::remembering();
    for arguments in [
        "show 999",
        "show nosession",
        "edit 999 --title x",
        "pin 999",
        "forget 999 --yes",
        "forget --project nowhere --yes",
        "forget --undo ffff",
        "search --project nowhere",
        "context --project nowhere",
        "report --project nowhere",
        "timeline --project nowhere",
        "timeline 999",
        "log ffffffff",
        "hosts rename nowhere x",
        "why nowhere.rs",
        "diff 8 9",
    ] {
        let words: Vec<&str> = arguments.split(' ').collect();
        assert_eq!(sandbox.run(&words).code, 2, "{arguments}");
    }
    for arguments in ["search zzzxqv", "log --session none", "forget --undo"] {
        let words: Vec<&str> = arguments.split(' ').collect();
        let code = i32::from(arguments.starts_with("forget"));
        assert_eq!(sandbox.run(&words).code, code, "{arguments}");
    }
}
