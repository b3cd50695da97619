//! `claude-mem projects`, and notes that count in more than one project.

use std::fs;

use serde_json::{Value, json};

use crate::{http::Site, mcp::tools::talk_in, sandbox::Sandbox};

/// Runs our binary in a folder below the home directory, and returns what it prints.
fn in_folder(sandbox: &Sandbox, folder: &str, arguments: &[&str]) -> String {
    let dir = sandbox.home().join(folder);
    fs::create_dir_all(&dir).unwrap();
    let output = sandbox.command(arguments).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{arguments:?} {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn context(sandbox: &Sandbox, folder: &str) -> String {
    in_folder(sandbox, folder, &["context", "--budget", "2000"])
}

#[test]
fn a_global_note_is_given_in_every_project_and_one_of_a_tree_below_its_folder() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.home().join("work/shop")).unwrap();
    let result = in_folder(&sandbox, "notes", &["remember", "--global", "the walrus prefers tabs"]);
    assert_eq!(result, "remembered 1 in all projects\n");
    let result =
        in_folder(&sandbox, "notes", &["remember", "--tree", "../work", "the otter reviews"]);
    let folder = sandbox.home().join("work");
    assert_eq!(result, format!("remembered 2 in all projects in {}\n", folder.display()));
    in_folder(&sandbox, "notes", &["remember", "the heron stays here"]);
    let check = || {
        let shop = context(&sandbox, "work/shop");
        assert!(shop.contains("\n2 of 2 memories, about "), "{shop}");
        assert!(shop.contains("## For several projects\n- #2 ("), "{shop}");
        assert!(shop.contains(", the user) the otter reviews\n- #1 ("), "{shop}");
        assert!(shop.contains("tabs") && !shop.contains("heron"), "{shop}");
        for folder in ["workshop", "elsewhere"] {
            let page = context(&sandbox, folder);
            assert!(page.contains("tabs") && !page.contains("otter"), "{folder}: {page}");
        }
        let notes = context(&sandbox, "notes");
        assert!(notes.contains("heron") && !notes.contains("For several projects"), "{notes}");
    };
    check();
    fs::remove_file(sandbox.data().join("memory.db")).unwrap();
    check();
    let shown = sandbox.run(&["show", "1", "2", "3"]).ok();
    let expected = format!("  (for all projects in {})", folder.display());
    assert!(shown.contains("  (for all projects)\n") && shown.contains(&expected), "{shown}");
    assert_eq!(shown.matches("for all projects").count(), 2, "{shown}");
    let event = &sandbox.events()[1]["event"];
    assert_eq!(event["scope"], json!({"tree": folder}), "{event}");
    assert_eq!(sandbox.run(&["remember", "--global", "--tree", ".", "x"]).code, 2);
    let nowhere = sandbox.run(&["remember", "--tree", "no/such", "x"]).fails(2);
    assert!(nowhere.contains("there is no folder `no/such`"), "{nowhere}");
}

#[test]
fn global_notes_take_a_bounded_share_of_the_context() {
    let sandbox = Sandbox::new();
    for number in 0..30 {
        let text = format!("global {number}: {}", "a rule about penguins ".repeat(20));
        in_folder(&sandbox, "notes", &["remember", "--global", &text]);
    }
    in_folder(&sandbox, "shop", &["remember", "the walrus prefers tabs"]);
    let page = context(&sandbox, "shop");
    assert!(page.contains("walrus"), "{page}");
    let (global, all) = (page.matches("global ").count(), page.chars().count());
    assert!((1..=4).contains(&global), "{page}");
    assert!(all < 4000, "{all}");
}

#[test]
fn programs_and_claude_can_write_global_notes_and_are_named_as_authors() {
    let site = Site::new();
    let body = json!({"text": "the walrus prefers tabs", "project": "shop", "global": true});
    assert_eq!(site.post("/api/memory/save", &body)["project"], "all projects");
    let both = json!({"text": "x", "project": "shop", "global": true, "tree": "/"});
    assert_eq!(site.ask("POST", "/api/memory/save", Some(&both)).status, 422);
    let sandbox = &site.sandbox;
    fs::create_dir_all(sandbox.home().join("zoo")).unwrap();
    let mut server = talk_in(sandbox, "zoo");
    let result =
        server.call_ok("remember", &json!({"text": "the otter reviews", "scope": "global"}));
    assert_eq!(result, "Remembered as 2 in all projects.");
    server.end();
    let page = context(sandbox, "elsewhere");
    assert!(page.contains(", Claude) the otter reviews"), "{page}");
    assert!(page.contains(", a program over HTTP) the walrus prefers tabs"), "{page}");
}

#[test]
fn a_prompt_recalls_a_global_note() {
    let sandbox = Sandbox::new();
    in_folder(&sandbox, "notes", &["remember", "--global", "We moved off Postgres to SQLite."]);
    in_folder(&sandbox, "shop", &["remember", "Prices are in cents."]);
    let prompt = |text: &str| {
        let payload = json!({"session_id": "s", "hook_event_name": "UserPromptSubmit",
            "cwd": sandbox.home().join("shop"), "prompt": text});
        sandbox.hook("new", payload.to_string()).to_string()
    };
    assert!(!prompt("write a poem about the sea").contains("Postgres"));
    assert!(prompt("why did we move off Postgres?").contains("moved off Postgres to SQLite"));
}

fn listed(sandbox: &Sandbox) -> Vec<Value> {
    let printed = sandbox.run(&["projects", "--json"]).ok();
    printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn projects_are_listed_renamed_merged_and_split() {
    let sandbox = Sandbox::new();
    in_folder(&sandbox, "old-shop", &["remember", "the walrus prefers tabs"]);
    in_folder(&sandbox, "shop", &["remember", "the otter reviews"]);
    let old = sandbox.home().join("old-shop");
    let key = listed(&sandbox)[1]["key"].as_str().unwrap().to_owned();
    assert_eq!(listed(&sandbox)[1]["root"], json!(old));
    let text = sandbox.run(&["projects"]).ok();
    assert!(text.starts_with("name      sessions  memories  last  folder\nshop "), "{text}");

    sandbox.run(&["projects", "rename", "shop", "The Shop"]).ok();
    assert_eq!(listed(&sandbox)[0]["project"], "The Shop");
    let result = in_folder(&sandbox, "shop", &["remember", "later events do not rename it"]);
    assert_eq!(result, "remembered 3 in The Shop\n");
    assert_eq!(listed(&sandbox)[0]["project"], "The Shop");
    let page = context(&sandbox, "shop");
    assert!(page.contains("# The Shop: memory"), "{page}");
    let mut server = talk_in(&sandbox, "shop");
    let found = server.call_ok("search", &json!({"query": "otter"}));
    assert!(found.starts_with("The Shop: 1 match"), "{found}");
    let folder = sandbox.home().join("shop");
    let shown = server.call_ok("get_observations", &json!({"ids": [2], "project": folder}));
    assert!(shown.contains("the otter reviews"), "{shown}");
    server.end();

    let merged = sandbox.run(&["projects", "merge", "old-shop", "The Shop"]).ok();
    assert!(merged.contains(&format!("`claude-mem projects split {key}`")), "{merged}");
    in_folder(&sandbox, "old-shop", &["remember", "the heron came later"]);
    let check = || {
        let [only] = &listed(&sandbox)[..] else { panic!("{:?}", listed(&sandbox)) };
        assert_eq!((&only["memories"], &only["aliases"]), (&json!(4), &json!([key])), "{only}");
        for folder in ["shop", "old-shop"] {
            let page = context(&sandbox, folder);
            let words = ["walrus", "otter", "heron"];
            assert!(words.iter().all(|word| page.contains(word)), "{folder}: {page}");
            assert!(page.contains("# The Shop: memory"), "{page}");
        }
        let found = sandbox.run(&["search", "--project", "The Shop", "walrus"]).ok();
        assert!(found.contains("tabs"), "{found}");
    };
    check();
    fs::remove_file(sandbox.data().join("memory.db")).unwrap();
    check();
    let again = sandbox.run(&["projects", "merge", "old-shop", "The Shop"]).fails(2);
    assert!(again.contains("already one project"), "{again}");

    sandbox.run(&["projects", "split", "old-shop"]).ok();
    assert_eq!(listed(&sandbox).len(), 2);
    let page = context(&sandbox, "shop");
    assert!(page.contains("otter") && !page.contains("heron"), "{page}");
    assert_eq!(listed(&sandbox)[1]["project"], "The Shop");
    sandbox.run(&["projects", "split", "old-shop"]).fails(2);
    sandbox.run(&["projects", "rename", "nothing", "x"]).fails(2);
    let log = sandbox.run(&["log"]).ok();
    assert!(log.contains("is now called The Shop") && log.contains("belongs to"), "{log}");
}

#[test]
fn a_folder_can_belong_to_a_project_before_it_has_a_session() {
    let sandbox = Sandbox::new();
    in_folder(&sandbox, "shop", &["remember", "the otter reviews"]);
    fs::create_dir(sandbox.home().join("copy")).unwrap();
    sandbox.run(&["projects", "alias", "copy", "shop"]).ok();
    assert!(context(&sandbox, "copy").contains("otter"));
    in_folder(&sandbox, "copy", &["remember", "the heron came later"]);
    assert!(context(&sandbox, "shop").contains("heron"));
    assert_eq!(listed(&sandbox).len(), 1);
    sandbox.run(&["projects", "split", "copy"]).ok();
    assert!(!context(&sandbox, "shop").contains("heron"));
}
