//! The example extension in `docs/api.md`, run by Node against a real worker.

use std::{env, fs, process::Command};

use claude_mem_tools::client::esbuild;
use serde_json::Value;

use crate::sandbox::{Sandbox, binary};

/// The code block in the documentation.
fn example() -> &'static str {
    let page = include_str!("../../docs/api.md");
    let code = page.split("```ts\n").nth(1).and_then(|rest| rest.split("```").next());
    code.unwrap_or_else(|| panic!("docs/api.md has no TypeScript"))
}

#[test]
fn the_example_extension_starts_the_worker_and_reports_a_session() {
    let modules = esbuild().unwrap_or_else(|error| panic!("{error}"));
    let sandbox = Sandbox::new();
    let folder = sandbox.home().join("shop");
    let extension = sandbox.home().join("extension");
    fs::create_dir_all(&folder).unwrap();
    fs::create_dir_all(extension.join("node_modules/vscode")).unwrap();
    fs::write(extension.join("extension.ts"), example()).unwrap();
    let editor = include_str!("../fixtures/vscode/editor.js");
    fs::write(extension.join("node_modules/vscode/index.js"), editor).unwrap();
    let mut build = Command::new(modules.join(".bin/esbuild"));
    build.args(["extension.ts", "--format=cjs", "--outfile=extension.js"]).current_dir(&extension);
    let compiled = build.output().unwrap();
    assert!(compiled.status.success(), "{compiled:?}");

    let programs = env::split_paths(&env::var_os("PATH").unwrap()).collect::<Vec<_>>();
    let ours = binary().parent().unwrap().to_owned();
    let path = env::join_paths([ours].into_iter().chain(programs)).unwrap();
    let mut node = Command::new("node");
    node.args(["-e", "require('vscode').run(require('./extension.js'))"]).arg(&folder);
    node.current_dir(&extension).env("HOME", sandbox.home()).env("CLAUDE_MEM_PROVIDER", "extract");
    node.env_remove("CLAUDE_MEM_DATA_DIR").env("PATH", path);
    for prompt in ["We decided: prices are stored in cents.", "How are prices stored?"] {
        let output = node.env("PROMPT", prompt).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["shown"], "In cents.", "{answer}");
        let is_second = prompt.starts_with("How");
        let sent = answer["sent"].as_str().unwrap();
        assert!(sent.ends_with(prompt) && sent.contains("cents"), "{answer}");
        assert_eq!(sent.len() > prompt.len() + 50, is_second, "{answer}");
        sandbox.run(&["distill"]).ok();
    }
    sandbox.run(&["worker", "stop"]).ok();
    let events = sandbox.events();
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["kind"].as_str()).collect();
    let expected =
        ["SessionStarted", "PromptSubmitted", "SummaryRequested", "ToolUsed", "SessionEnded"];
    for kind in expected {
        assert_eq!(kinds.iter().filter(|other| **other == kind).count(), 2, "{kinds:?}");
    }
    assert!(events[0]["platform"] == "example-extension", "{events:#?}");
}
