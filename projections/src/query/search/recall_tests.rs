//! Prompts and failures, and the memories that are recalled for them.

use super::*;
use crate::test_log::TestLog;
use claude_mem_events::{MemoryAdded, NoteScope};

const PROJECT: &str = "/p";

fn store(texts: &[&str]) -> Store {
    let mut scene = TestLog::new();
    scene.envelope.project.key = PROJECT.into();
    for text in texts {
        scene.envelope.session = "old".into();
        scene.add(MemoryAdded { text: (*text).into(), ..MemoryAdded::default() });
    }
    scene.fold()
}

fn recalled(store: &Store, prompt: &str, session: &str) -> Vec<i64> {
    let until_us = i64::MAX as u64;
    let recall = Recall { prompt, project: PROJECT, root: PROJECT, until_us, session, limit: 5 };
    store.recall(&recall, None).unwrap()
}

#[test]
fn of_equivalent_memories_the_newest_is_recalled() {
    let mut scene = TestLog::new();
    scene.envelope.project.key = PROJECT.into();
    let observation = |title: &str, file: &str| {
        format!(
            "<observation><type>bugfix</type><title>{title}</title>\
             <files_modified><file>{file}</file></files_modified></observation>"
        )
    };
    let replies = [
        observation("The gateway retries a payment", "pay.rs"),
        observation("Gateway retries payments now", "pay.rs"),
        observation("The gateway retries a payment", "mail.rs"),
        observation("The gateway never retries a payment", "pay.rs"),
        observation("The menu is blue", "menu.rs"),
    ];
    for reply in replies {
        let tool = scene.tool("Bash", "{}");
        scene.reply(&[tool], &reply);
    }
    for note in NOTES {
        scene.add(MemoryAdded { text: note.into(), ..MemoryAdded::default() });
    }
    let mut ids = recalled(&scene.fold(), "does the gateway retry a payment?", "new");
    ids.sort_unstable();
    assert_eq!(ids.iter().filter(|id| **id < 6).collect::<Vec<_>>(), [&2, &3, &4], "{ids:?}");
}

const NOTES: [&str; 8] = [
    "Moved off Postgres to SQLite, because backups of one file are simple.",
    "The login form checks the password twice.",
    "Timeouts of the payment gateway are retried three times.",
    "Dark mode follows the system setting.",
    "Images are resized on upload.",
    "The nightly job removes stale carts.",
    "Prices are stored in cents.",
    "The search box waits 200 ms before it asks the server.",
];

#[test]
fn a_prompt_recalls_only_relevant_memories() {
    let store = store(&NOTES);
    let table: [(&str, &[i64]); 9] = [
        ("why did we move off Postgres?", &[1]),
        ("what did we decide about postgres backups", &[1]),
        ("the payment gateway has timeouts again", &[3]),
        ("are the prices in cents?", &[7]),
        ("write a poem about the sea", &[]),
        ("the server is down", &[]),
        ("yes", &[]),
        ("search", &[]),
        ("-postgres \"stale carts\" nightly", &[6]),
    ];
    for (prompt, expected) in table {
        assert_eq!(recalled(&store, prompt, ""), expected, "{prompt}");
    }
}

#[test]
fn distant_words_in_a_long_memory_are_not_evidence() {
    let long =
        "The parser has a comment. Carts are emptied at night. A function rounds the prices.";
    let texts = [&NOTES[..], &[long]].concat();
    let store = store(&texts);
    assert_eq!(recalled(&store, "add a comment to this function", ""), [0; 0]);
    assert_eq!(recalled(&store, "which function rounds?", ""), [9]);
}

#[test]
fn neither_another_project_nor_the_session_itself_is_recalled() {
    let store = store(&NOTES);
    let prompt = "why did we move off Postgres?";
    assert_eq!(recalled(&store, prompt, "new"), [1]);
    let mut scene = TestLog::new();
    scene.envelope.project.key = PROJECT.into();
    scene.envelope.session.clear();
    scene.add(MemoryAdded { text: NOTES[0].into(), ..MemoryAdded::default() });
    assert_eq!(recalled(&scene.fold(), prompt, "new"), [1], "a note outside of a session");
    assert_eq!(recalled(&store, prompt, "old"), [0; 0]);
    let elsewhere =
        Recall { prompt, project: "/q", until_us: i64::MAX as u64, ..Recall::default() };
    assert_eq!(store.recall(&Recall { limit: 5, ..elsewhere }, None).unwrap(), [0; 0]);
}

#[test]
fn notes_for_all_projects_or_a_folder_tree_are_recalled_elsewhere() {
    let mut scene = TestLog::new();
    scene.envelope.session.clear();
    scene.envelope.project.key = "/elsewhere".into();
    let scopes =
        [NoteScope::Global, NoteScope::Tree("/w".into()), NoteScope::Project, NoteScope::Global];
    for (number, scope) in scopes.into_iter().enumerate() {
        let text = format!("Moved off Postgres to SQLite, note {number}.");
        scene.add(MemoryAdded { text, scope, ..MemoryAdded::default() });
    }
    let store = scene.fold();
    let recalled = |project, root| {
        let prompt = "why did we move off Postgres?";
        let until_us = i64::MAX as u64;
        let recall = Recall { prompt, project, root, until_us, session: "", limit: 5 };
        let mut ids = store.recall(&recall, None).unwrap();
        ids.sort_unstable();
        ids
    };
    assert_eq!(recalled("/v/shop", "/v/shop"), [1, 4]);
    assert_eq!(recalled("/wide", "/wide"), [1, 4]);
    assert_eq!(recalled("/w/shop", "/w/shop").len(), WIDE_HITS);
}

#[test]
fn a_word_in_most_memories_is_not_evidence() {
    let texts: Vec<String> =
        (0..40).map(|number| format!("The parser of format {number} reads tokens.")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let store = store(&texts);
    assert_eq!(recalled(&store, "does the parser read tokens?", ""), [0; 0]);
    assert_eq!(recalled(&store, "why does the parser of format 17 fail?", "").len(), 0);
}

#[test]
fn a_failure_recalls_memories_of_similar_failures() {
    let mut scene = TestLog::new();
    scene.envelope.project.key = PROJECT.into();
    let lesson = |title: &str, fact: &str, concept: &str| {
        format!(
            "<observation><type>discovery</type><title>{title}</title><facts><fact>{fact}</fact>\
             </facts><concepts><concept>{concept}</concept></concepts></observation>"
        )
    };
    let replies = [
        lesson("Use `npm ci`, not `npm install`", "Fails: EBADENGINE in left-pad", "gotcha"),
        lesson("Migrations need the role `owner`", "permission denied for schema", "gotcha"),
        lesson("The schema has a table of permissions", "permission of roles", "how-it-works"),
        lesson("Clear the cache of vitest", "TypeError in snapshot_store", "problem-solution"),
    ];
    for reply in replies {
        let tool = scene.tool("Bash", "{}");
        scene.reply(&[tool], &reply);
    }
    for note in NOTES {
        scene.add(MemoryAdded { text: note.into(), ..MemoryAdded::default() });
    }
    let store = scene.fold();
    let table: [(&str, &str, &[i64]); 8] = [
        ("npm install", "Exit code 1\nnpm warn EBADENGINE unsupported engine left-pad", &[1]),
        ("npm install", "Exit code 1\nENOSPC: disk full", &[]),
        ("npm install", "Exit code 1", &[1]),
        ("make migrate", "ERROR: permission denied for schema public", &[2]),
        ("npx vitest", "TypeError: x is not a function\n  at snapshot_store.ts:4:1", &[4]),
        ("npx vitest", "TypeError: x is not a function", &[]),
        ("ls /nowhere", "ls: cannot access '/nowhere': No such file or directory", &[]),
        ("", "", &[]),
    ];
    for (command, error, expected) in table {
        let (project, until_us, session) = (PROJECT, i64::MAX as u64, "new");
        let failure = FailureRecall { command, error, project, until_us, session, limit: 5 };
        assert_eq!(store.recall_failure(&failure).unwrap(), expected, "{command}: {error}");
    }
}
