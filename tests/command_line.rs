//! The command line as a whole: names, exit codes, where things are printed.

use crate::sandbox::Sandbox;

#[test]
fn a_hook_answers_in_one_json_object_and_says_nothing_else() {
    let sandbox = Sandbox::new();
    for hook in ["context", "new", "save", "summary", "cleanup"] {
        let run = sandbox.run(&[hook]);
        let answer: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        assert_eq!(answer["continue"], true);
    }
}

#[test]
fn a_hook_explains_itself_when_asked() {
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
        "error: there is no command `xyzzy`\nhint: see them all with `claude-mem --help`\n"
    );
    assert!(sandbox.run(&["settings", "gett"]).fails(2).contains("did you mean `get`?"));
}

#[test]
fn wrong_usage_ends_with_two_and_help_with_nought() {
    let sandbox = Sandbox::new();
    assert!(sandbox.run(&["settings", "--wrong"]).fails(2).contains("--wrong"));
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
