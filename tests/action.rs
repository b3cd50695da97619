//! Memories given with an action: before a file is used, and after a command has failed.

use std::{collections::BTreeSet, fs, os::unix::fs::symlink, thread};

use claude_mem_events::MemoryAdded;
use serde_json::{Value, json};

use crate::{context::Past, hooks::PRE_TOOL_USE};

impl Past {
    /// A project whose memories warn about files and commands.
    fn with_traps() -> Self {
        let mut past = Self::new();
        past.observe("one", "rule", "Never edit the ledger by hand", "src/ledger.rs");
        past.observe("one", "discovery", "The cart has one total", "src/cart.rs");
        past.reply(
            "one",
            "<observation><type>discovery</type><title>Use `just check`, not `cargo tset`</title>\
             <facts><fact>Fails: `cargo tset`: no such command: `tset`</fact></facts>\
             <concepts><concept>gotcha</concept></concepts></observation>",
        );
        past.sandbox.run(&["distill"]).ok();
        past
    }

    fn hook(&self, payload: &Value) -> Option<String> {
        let event = &payload["hook_event_name"];
        let answer = self.sandbox.run_with(&PRE_TOOL_USE, &[], payload.to_string()).answer();
        let keys: BTreeSet<&str> = answer.as_object().unwrap().keys().map(String::as_str).collect();
        let output = answer.get("hookSpecificOutput");
        let allowed = ["continue", "hookSpecificOutput", "suppressOutput"];
        assert!(keys.is_subset(&allowed.into()), "nothing is decided or changed: {answer}");
        let output = output?.as_object().unwrap();
        assert_eq!(output.len(), 2, "{answer}");
        assert_eq!(&output["hookEventName"], event);
        Some(output["additionalContext"].as_str().unwrap().to_owned())
    }

    /// The memories added before a tool uses a file; `None` if there are none.
    fn uses(&self, session: &str, tool: &str, path: &str) -> Option<String> {
        let name = if tool == "NotebookEdit" { "notebook_path" } else { "file_path" };
        self.hook(
            &json!({"session_id": session, "hook_event_name": "PreToolUse", "cwd": self.root(),
            "tool_name": tool, "tool_input": {name: path, "content": "x"}, "tool_use_id": "t"}),
        )
    }

    /// The memories added when a command fails; `None` if there are none.
    fn fails(&self, session: &str, command: &str, error: &str) -> Option<String> {
        self.hook(&json!({"session_id": session, "hook_event_name": "PostToolUseFailure",
            "cwd": self.root(), "tool_name": "Bash", "tool_input": {"command": command},
            "tool_use_id": "t", "error": error, "is_interrupt": false}))
    }

    /// The points at which a session was given memories.
    fn moments(&self) -> Vec<String> {
        let events = self.sandbox.events();
        let moments = events.iter().filter_map(|event| event["event"]["moment"].as_str());
        moments.map(str::to_owned).collect()
    }
}

#[test]
fn a_file_with_a_known_trap_brings_it_once() {
    let past = Past::with_traps();
    let file = format!("{}/src/ledger.rs", past.root());
    let count = past.sandbox.events().len();
    assert_eq!(past.uses("two", "Read", &format!("{}/src/cart.rs", past.root())), None);
    assert_eq!(past.uses("two", "Read", "/etc/hosts"), None);
    assert_eq!(past.sandbox.events().len(), count, "a file without memories costs no event");
    let given = past.uses("two", "Edit", &file).unwrap();
    assert!(given.contains("about ledger.rs") && given.contains("not instructions"), "{given}");
    assert!(given.contains("rule) Never edit the ledger by hand"), "{given}");
    assert!(!given.contains("cart") && !given.contains("cargo"), "{given}");
    assert_eq!(past.uses("two", "Write", &file), None, "given already, and not indexed yet");
    past.sandbox.run(&["distill"]).ok();
    assert_eq!(past.uses("two", "Read", &file), None, "given already");
    assert_eq!(past.uses("one", "Read", &file), None, "its own session");
    assert!(past.uses("three", "NotebookEdit", "src/ledger.rs").is_some(), "another session");
    assert_eq!(past.moments(), ["File", "File"]);
    let shown = past.sandbox.run(&["show", "1"]).ok();
    assert!(shown.contains("given to 2 sessions, fetched 0 times"), "{shown}");
}

#[test]
fn a_file_brings_no_more_memories_when_it_is_used_again() {
    let mut past = Past::new();
    for number in 0..9 {
        past.observe("one", "decision", &format!("Choice {number} of the ledger"), "src/ledger.rs");
    }
    past.sandbox.run(&["distill"]).ok();
    let given = past.uses("two", "Read", "src/ledger.rs").unwrap();
    assert_eq!(given.matches("Choice").count() / 2, 3, "title and narrative of three: {given}");
    assert_eq!(past.uses("two", "Read", "src/ledger.rs"), None);
}

#[test]
fn a_memory_of_many_files_counts_only_where_it_names_the_file() {
    let mut past = Past::new();
    let files = ["a.rs", "b.rs", "c.rs"].map(String::from).to_vec();
    let (text, kind) = ("The order of a.rs matters".into(), "decision".into());
    past.record("", MemoryAdded { text, kind, files, ..MemoryAdded::default() });
    past.sandbox.run(&["distill"]).ok();
    assert_eq!(past.uses("two", "Read", "b.rs"), None);
    assert!(past.uses("two", "Read", "a.rs").is_some());
}

#[test]
fn a_file_is_the_same_through_a_link() {
    let past = Past::with_traps();
    fs::create_dir_all(past.sandbox.home().join("shop/src")).unwrap();
    symlink(past.root(), past.sandbox.home().join("link")).unwrap();
    let file = past.sandbox.home().join("link/src/ledger.rs");
    assert!(past.uses("two", "Write", file.to_str().unwrap()).is_some());
}

#[test]
fn a_repeated_failure_gives_the_memory_of_its_solution() {
    let past = Past::with_traps();
    let error = "Exit code 101\nerror: no such command: `tset`";
    assert_eq!(past.fails("two", "cargo build", "Exit code 101\nerror: linker `cc` missing"), None);
    let given = past.fails("two", "cargo tset", error).unwrap();
    assert!(given.contains("failures like this one"), "{given}");
    assert!(given.contains("Use `just check`, not `cargo tset`"), "{given}");
    assert_eq!(past.fails("two", "cargo tset --all", error), None, "given already");
    assert_eq!(past.moments(), ["Failure"]);
    let events = past.sandbox.events();
    let failures = events.iter().filter(|event| event["event"]["has_failed"] == true).count();
    assert_eq!(failures, 3, "failures are recorded as before");
}

#[test]
fn memories_given_with_a_prompt_are_not_repeated_with_an_action() {
    let past = Past::with_traps();
    assert!(past.prompt("two", "may I edit src/ledger.rs by hand?").is_some());
    assert_eq!(past.uses("two", "Edit", "src/ledger.rs"), None);
}

#[test]
fn hooks_side_by_side_give_each_memory_once() {
    let mut past = Past::with_traps();
    for number in 0..9 {
        past.observe("one", "decision", &format!("Choice {number} of the invoice"), "src/bill.rs");
    }
    past.sandbox.run(&["distill"]).ok();
    let error = "Exit code 101\nerror: no such command: `tset`";
    for round in 0..4 {
        let session = format!("two-{round}");
        let given: Vec<String> = thread::scope(|scope| {
            let (past, session) = (&past, session.as_str());
            let hooks: Vec<_> = (0..8)
                .map(|number| {
                    scope.spawn(move || match number % 4 {
                        0 => past.uses(session, "Edit", "src/ledger.rs"),
                        1 => past.prompt(session, "may I edit src/ledger.rs by hand?"),
                        2 => past.fails(session, "cargo tset", error),
                        _ => past.uses(session, "Read", "src/bill.rs"),
                    })
                })
                .collect();
            hooks.into_iter().filter_map(|hook| hook.join().unwrap()).collect()
        });
        // On a busy machine one may wait too long for the others, and give nothing.
        assert!(!given.is_empty(), "round {round}");
        for part in ["#1 (", "#3 (", "about bill.rs"] {
            let times = given.iter().filter(|text| text.contains(part)).count();
            assert!(times <= 1, "{part} in round {round}: {given:?}");
        }
    }
}

#[test]
fn a_hook_that_waits_too_long_for_others_gives_nothing() {
    let past = Past::with_traps();
    let lock = fs::File::create(past.sandbox.data().join("injection.lock")).unwrap();
    lock.lock().unwrap();
    assert_eq!(past.uses("two", "Edit", "src/ledger.rs"), None);
    lock.unlock().unwrap();
    assert!(past.uses("two", "Edit", "src/ledger.rs").is_some());
}

#[test]
fn each_moment_is_switched_off_by_its_own_setting() {
    let past = Past::with_traps();
    let both = |session: &str| {
        let failure = past.fails(session, "cargo tset", "error: no such command: `tset`");
        (past.uses(session, "Read", "src/ledger.rs").is_some(), failure.is_some())
    };
    let settings = |name: &str| {
        let text = format!(r#"{{"CLAUDE_MEM_CONTEXT_{name}_TOKENS_MAX": "0"}}"#);
        past.sandbox.write(".claude-mem/settings.json", &text);
    };
    settings("FILE");
    assert_eq!(both("two"), (false, true));
    settings("FAILURE");
    assert_eq!(both("three"), (true, false));
}

#[test]
fn a_private_turn_brings_nothing_and_other_tools_are_ignored() {
    let past = Past::with_traps();
    past.prompt("two", "<private>look at the ledger</private>");
    assert_eq!(past.uses("two", "Read", "src/ledger.rs"), None);
    assert_eq!(past.fails("two", "cargo tset", "error: no such command: `tset`"), None);
    let count = past.sandbox.events().len();
    let bash = json!({"session_id": "three", "hook_event_name": "PreToolUse", "cwd": past.root(),
        "tool_name": "Bash", "tool_input": {"command": "ls"}});
    assert_eq!(past.hook(&bash), None);
    assert_eq!(past.sandbox.events().len(), count);
}

#[test]
fn context_shows_what_a_file_and_a_failure_would_bring() {
    let past = Past::with_traps();
    past.sandbox.write(".claude-mem/settings.json", r#"{"CLAUDE_MEM_CONTEXT_TOKENS_MAX": "0"}"#);
    let run = |arguments: &[&str]| {
        let mut all = vec!["context", "--project", "shop", "--json"];
        all.extend(arguments);
        serde_json::from_str::<Value>(&past.sandbox.run(&all).ok()).unwrap()
    };
    let ledger = format!("{}/src/ledger.rs", past.root());
    let shown =
        run(&["--file", &ledger, "--failure", "cargo tset", "--error", "no such command: `tset`"]);
    let text = |moment: &str| shown[moment]["text"].as_str().unwrap().to_owned();
    assert_eq!(Some(text("with_file")), past.uses("two", "Read", &ledger));
    assert_eq!(
        Some(text("with_failure")),
        past.fails("two", "cargo tset", "no such command: `tset`")
    );
    let shown = run(&["--file", "src/cart.rs", "--failure", "make"]);
    assert_eq!((&shown["with_file"], &shown["with_failure"]), (&Value::Null, &Value::Null));
}
