//! `claude-mem memory edit`, `pin`, `unpin`, `wrong` and `supersede`.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use serde_json::{Value, json};

use crate::{folders::files_with, model::dump, sandbox::Sandbox};

fn remember(sandbox: &Sandbox, text: &str, title: &str) {
    sandbox.run(&["remember", text, "--title", title, "--type", "decision"]).ok();
}

fn context_page(sandbox: &Sandbox) -> String {
    sandbox.run(&["context", "--budget", "2000"]).stdout
}

fn shown(sandbox: &Sandbox, id: &str) -> Value {
    serde_json::from_str(&sandbox.run(&["show", id, "--json"]).ok()).unwrap()
}

/// An editor that runs this script on the file `$1`.
fn editor(sandbox: &Sandbox, script: &str) -> String {
    let path = sandbox.home().join("editor");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The tables after a rebuild.
fn rebuilt(sandbox: &Sandbox) -> String {
    sandbox.delete_database();
    sandbox.run(&["search", "walrus"]).ok();
    dump(&sandbox.data())
}

#[test]
fn a_memory_without_a_title_is_named_by_its_first_line() {
    let sandbox = Sandbox::new();
    sandbox.run(&["remember", "The fox never sleeps."]).ok();
    assert_eq!(sandbox.run(&["pin", "1"]).ok(), "pinned 1 The fox never sleeps.\n");
}

#[test]
fn a_wrong_memory_is_put_right_and_stays_right_after_a_rebuild() {
    let sandbox = Sandbox::new();
    remember(&sandbox, "The walrus sleeps at noon.", "Sleep of the walrus");
    remember(&sandbox, "The otter sleeps at dawn.", "Sleep of the otter");
    remember(&sandbox, "The seal sleeps at night.", "Sleep of the seal");
    let edited = sandbox.run(&["edit", "1", "--text", "The walrus sleeps at ten."]).ok();
    assert_eq!(edited, "edited 1 Sleep of the walrus\n");
    assert_eq!(sandbox.run(&["pin", "1"]).ok(), "pinned 1 Sleep of the walrus\n");
    let marked = sandbox.run(&["wrong", "2", "--because", "otters never sleep"]).ok();
    assert_eq!(marked, "marked as wrong: 2 Sleep of the otter\n");
    assert_eq!(sandbox.run(&["supersede", "3", "1"]).ok(), "superseded 3 Sleep of the seal\n");

    let page = context_page(&sandbox);
    assert!(page.contains("sleeps at ten") && !page.contains("at noon"), "{page}");
    assert!(!page.contains("otter") && !page.contains("seal"), "{page}");
    // Three letters are enough.
    let begun = sandbox.run(&["search", "sle"]);
    assert!(begun.stderr.contains("words that begin with it"), "{begun:?}");
    let found = sandbox.run(&["search", "sleep"]).ok();
    assert_eq!(begun.ok(), found);
    assert!(found.contains("[pinned] Sleep of the walrus"), "{found}");
    assert!(found.contains("[wrong: otters never sleep] Sleep of the otter"), "{found}");
    assert!(found.contains("[superseded by #1] Sleep of the seal"), "{found}");
    assert!(!sandbox.run(&["search", "noon"]).ok().contains("walrus"));
    assert_eq!(
        (&shown(&sandbox, "1")["is_pinned"], &shown(&sandbox, "1")["is_edited"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(shown(&sandbox, "2")["wrong"]["because"], "otters never sleep");
    assert_eq!(shown(&sandbox, "3")["correction"]["id"], "1");
    let text = sandbox.run(&["show", "1", "2"]).ok();
    assert!(text.contains("(pinned)  (edited)"), "{text}");
    assert!(text.contains("(wrong: otters never sleep)"), "{text}");

    let before = dump(&sandbox.data());
    assert_eq!(rebuilt(&sandbox), before);
    assert_eq!(context_page(&sandbox), page);
    sandbox.run(&["unpin", "1"]).ok();
    sandbox.run(&["wrong", "2", "--undo"]).ok();
    sandbox.run(&["wrong", "3", "--undo"]).ok();
    let page = context_page(&sandbox);
    assert!(page.contains("otter") && page.contains("seal"), "{page}");
}

#[test]
fn an_editor_changes_title_type_and_text() {
    let sandbox = Sandbox::new();
    remember(&sandbox, "The walrus sleeps at noon.", "Sleep of the walrus");
    let script = "\
        [ $(stat -c %a \"$1\") = 600 ] || exit 7\n\
        sed -i -e 's/^Title: Sleep/Title: Rest/' -e s/^Type:.*/Type:rule/ -e s/noon/ten/ \"$1\"";
    let editor = editor(&sandbox, script);
    // `$VISUAL` comes first.
    let variables = [("VISUAL", editor.as_str()), ("EDITOR", "false")];
    let edited = sandbox.run_with(&["edit", "1"], &variables, "").ok();
    assert_eq!(edited, "edited 1 Rest of the walrus\n");
    let memory = shown(&sandbox, "1");
    assert_eq!(
        (&memory["type"], &memory["narrative"]),
        (&json!("rule"), &json!("The walrus sleeps at ten."))
    );
    let left: Vec<_> = fs::read_dir(sandbox.data())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("edit-"))
        .collect();
    assert!(left.is_empty(), "the file is removed: {left:?}");
    // The default editor would wait for keys that never come.
    let error = sandbox.run(&["edit", "1"]).fails(2);
    assert!(error.contains("there is no terminal to edit at"), "{error}");
    for (editor, expected) in [
        ("true", "1 has these texts already"),
        ("false", "the editor `false` failed"),
        ("/no/such/editor", "the editor `/no/such/editor` did not start"),
    ] {
        let run = sandbox.run_with(&["edit", "1"], &[("EDITOR", editor)], "");
        assert!(run.code > 0 && run.stderr.contains(expected), "{run:?}");
        assert!(run.stderr.contains("nothing was changed"), "{run:?}");
    }
}

#[test]
fn memories_that_cannot_be_revised_are_named() {
    let sandbox = Sandbox::new();
    remember(&sandbox, "The walrus sleeps at noon.", "Sleep of the walrus");
    remember(&sandbox, "The otter sleeps at dawn.", "Sleep of the otter");
    for (command, expected) in [
        (&["pin", "9"][..], "there is no memory 9"),
        (&["pin", "P1"], "P1 is a prompt: only observations can be revised"),
        (&["unpin", "1"], "1 is not pinned"),
        (&["wrong", "1", "--undo"], "1 is neither wrong nor superseded"),
        (&["supersede", "1", "1"], "1 cannot supersede itself"),
        (&["supersede", "1", "9"], "there is no memory 9"),
        (&["edit", "1", "--title", " "], "the title is empty"),
        (&["edit", "1", "--text", "<private>all</private>"], "the text is empty"),
        (&["edit", "1", "--type", "decison"], "did you mean `decision`?"),
        (&["edit", "1", "--title", "Sleep of the walrus"], "1 has these texts already"),
    ] {
        let run = sandbox.run(command);
        assert!(run.code > 0 && run.stderr.contains(expected), "{command:?}: {run:?}");
    }
    assert_eq!(sandbox.events().len(), 2, "nothing was recorded");
    sandbox.run(&["wrong", "1"]).ok();
    let error = sandbox.run(&["supersede", "2", "1"]).fails(2);
    assert!(error.contains("1 is itself wrong"), "{error}");
}

#[test]
fn secrets_in_a_revision_are_removed_and_forgetting_takes_its_text() {
    let sandbox = Sandbox::new();
    remember(&sandbox, "The walrus sleeps at noon.", "Sleep of the walrus");
    let run = sandbox.run(&["edit", "1", "--text", "key AKIAIOSFODNN7EXAMPLQ of xyzzy-plugh"]);
    assert!(run.stderr.contains("private text or secrets were removed"), "{run:?}");
    sandbox.run(&["wrong", "1", "--because", "xyzzy-plugh <private>hush</private>"]).ok();
    let events = format!("{:?}", sandbox.events());
    assert!(events.contains("xyzzy-plugh") && !events.contains("AKIAIOSF"), "{events}");
    assert!(!events.contains("hush"), "{events}");
    sandbox.run(&["forget", "1", "--yes", "--now"]).ok();
    assert_eq!(files_with(&sandbox.data(), "xyzzy-plugh"), [] as [PathBuf; 0]);
    assert!(!format!("{:?}", sandbox.events()).contains("xyzzy"));
}

#[test]
fn claude_revises_over_mcp() {
    let sandbox = Sandbox::new();
    remember(&sandbox, "The walrus sleeps at noon.", "Sleep of the walrus");
    remember(&sandbox, "The otter sleeps at dawn.", "Sleep of the otter");
    let call = |arguments: Value| {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "revise", "arguments": arguments}});
        sandbox.run_with(&["mcp"], &[], format!("{call}\n")).ok()
    };
    let response = call(json!({"ids": [1], "action": "wrong", "because": "it sleeps at ten"}));
    assert!(response.contains("Revised 1 Sleep of the walrus."), "{response}");
    let response = call(json!({"ids": [1], "action": "supersede", "by": [2]}));
    assert!(response.contains("Revised 1"), "{response}");
    let response = call(json!({"ids": [2], "action": "edit", "title": "Sleep of the sea otter"}));
    assert!(response.contains("Sleep of the sea otter"), "{response}");
    assert!(call(json!({"ids": [2], "action": "explode"})).contains("action"));
    assert!(call(json!({"ids": [1], "action": "supersede"})).contains("`by` is missing"));
    assert_eq!(shown(&sandbox, "1")["correction"]["title"], "Sleep of the sea otter");
    assert_eq!(sandbox.events()[2]["event"]["via"], "mcp");
}
