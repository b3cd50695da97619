//! `claude-mem why`: from a line or a file to the turn, its prompt and its memories.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    hook_session::HookSession,
    report::{git, repository},
    sandbox::{Run, Sandbox},
};

const RULES: &[(&str, &str)] = &[("CLAUDE_MEM_PROVIDER", "extract")];

/// Consecutive sessions in a folder with real files.
struct World {
    sandbox: Sandbox,
    folder: PathBuf,
}

impl World {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let folder = repository(&sandbox, "shop");
        Self { sandbox, folder }
    }

    fn session(&self, id: &str) -> HookSession<'_> {
        HookSession::new(&self.sandbox, id).in_folder(&self.folder).with(RULES)
    }

    fn prompt(&self, session: &str, text: &str) {
        self.session(session).prompt(text);
    }

    fn tool(&self, session: &str, tool: &str, input: &Value, response: &Value) {
        let id = self.sandbox.events().len().to_string();
        self.session(session).tool(&id, tool, input, response);
    }

    /// Writes a file, and records the tool use as Claude Code does.
    fn write(&self, session: &str, file: &str, content: &str) {
        let path = self.folder.join(file);
        fs::write(&path, content).unwrap();
        let input = json!({"file_path": path, "content": content});
        let response = json!({"type": "create", "filePath": path, "structuredPatch": []});
        self.tool(session, "Write", &input, &response);
    }

    /// Replaces a part of a line, and records the tool use as Claude Code does.
    fn edit(&self, session: &str, file: &str, old: &str, new: &str) {
        let path = self.folder.join(file);
        let before = fs::read_to_string(&path).unwrap();
        fs::write(&path, before.replacen(old, new, 1)).unwrap();
        let line = before.lines().find(|line| line.contains(old)).unwrap();
        let changes = [format!("-{line}"), format!("+{}", line.replacen(old, new, 1))];
        let input = json!({"file_path": path, "old_string": old, "new_string": new});
        let response = json!({"filePath": path, "structuredPatch": [{"lines": changes}]});
        self.tool(session, "Edit", &input, &response);
    }

    fn stop(&self, session: &str, message: &str) {
        self.session(session).stop(message);
    }

    fn commit(&self, message: &str) -> String {
        git(&self.folder, &["add", "-A"]);
        git(&self.folder, &["commit", "-q", "--allow-empty", "-m", message]);
        git(&self.folder, &["rev-parse", "HEAD"]).trim().to_owned()
    }

    fn why_in(&self, folder: &Path, arguments: &[&str]) -> Run {
        let arguments: Vec<&str> = ["why"].iter().chain(arguments).copied().collect();
        let mut command = self.sandbox.command(&arguments);
        let output = command.envs(RULES.iter().copied()).current_dir(folder).output().unwrap();
        Run {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn why(&self, arguments: &[&str]) -> Run {
        self.why_in(&self.folder, arguments)
    }

    fn json(&self, place: &str) -> Value {
        serde_json::from_str(&self.why(&[place, "--json"]).ok()).unwrap()
    }
}

/// Two turns on a file with a commit after each, and a third one that is not committed.
fn worked() -> (World, [String; 2]) {
    let world = World::new();
    world.prompt("a", "Add a cart that sums its lines");
    world.write("a", "cart.rs", "fn total() {\n    sum(1)\n}\n\nfn other() {}\n");
    world.stop("a", "The cart sums its lines, because the till needs a total.");
    let first = world.commit("Add carts");
    world.prompt("b", "Why is the total off by a cent?");
    world.edit("b", "cart.rs", "1", "round(1)");
    world.edit("b", "cart.rs", "fn other() {}", "fn another() {}");
    world.stop("b", "The total was off because each line was rounded.");
    let second = world.commit("Round once");
    world.prompt("c", "Name it better");
    world.edit("c", "cart.rs", "another", "discount");
    world.stop("c", "Renamed it.");
    world.sandbox.run_with(&["distill"], RULES, "").ok();
    (world, [first, second])
}

#[test]
fn a_line_leads_to_its_commit_its_turn_and_its_memories() {
    let (world, [first, second]) = worked();
    let whole = world.json("cart.rs:1");
    assert_eq!((&whole["text"], &whole["commit"]["id"]), (&json!("fn total() {"), &json!(first)));
    assert_eq!(whole["commit"]["author"], "Ada");
    assert_eq!(whole["turn"]["session"], "a");
    assert_eq!(whole["turn"]["found_by"], "edit");
    assert_eq!(whole["turn"]["branch"], "main");
    assert_eq!(whole["turn"]["prompt"]["text"], "Add a cart that sums its lines");
    let memories = whole["turn"]["memories"].as_array().unwrap();
    assert!(memories.iter().any(|memory| memory["id"].as_str().unwrap().starts_with('S')));

    // The edit contains only a part of the line.
    let part = world.json("cart.rs:2");
    assert_eq!(
        (&part["text"], &part["commit"]["id"]),
        (&json!("    sum(round(1))"), &json!(second))
    );
    assert_eq!(
        (&part["turn"]["session"], &part["commit"]["subject"]),
        (&json!("b"), &json!("Round once"))
    );

    let uncommitted = world.json("cart.rs:5");
    assert_eq!((&uncommitted["commit"], &uncommitted["git_problem"]), (&Value::Null, &Value::Null));
    assert_eq!(uncommitted["turn"]["session"], "c");

    let printed = world.why(&["cart.rs:2"]).ok();
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[0], "cart.rs:2: sum(round(1))");
    assert!(lines[1].starts_with(&format!("commit {}, ", &second[..12])), "{printed}");
    assert!(lines[1].ends_with(", Ada: Round once"), "{printed}");
    assert!(
        lines[2].starts_with("edited ") && lines[2].ends_with("in session b, shop, branch main")
    );
    assert_eq!(lines[3], "asked (P2): Why is the total off by a cent?");
    assert!(lines.len() > 4, "{printed}");
    // Titles begin in one column.
    let title = |line: &str| {
        line.trim_start().find("  ").map(|at| line.len() - line.trim_start().len() + at)
    };
    let ends: Vec<_> = lines[4..].iter().map(|line| title(line)).collect();
    assert!(ends.iter().all(|end| *end == ends[0]), "{printed}");
    assert!(world.why(&["cart.rs:5"]).ok().contains("\nnot committed yet\n"));
}

#[test]
fn an_edit_after_the_commit_did_not_write_its_line() {
    let world = World::new();
    world.prompt("a", "write it");
    world.write("a", "cart.rs", "same line\n");
    // Git has whole seconds; a commit of tomorrow is certainly later than the edit.
    git(&world.folder, &["add", "-A"]);
    git(&world.folder, &["commit", "-q", "-m", "mine", "--date", "2020-01-01T00:00:00Z"]);
    let later = [("CLAUDE_MEM_NOW", "2099-01-01T00:00:00Z")];
    let path = world.folder.join("cart.rs");
    let fields = json!({"session_id": "z", "cwd": world.folder, "hook_event_name": "PostToolUse",
        "tool_name": "Write", "tool_use_id": "z1", "tool_response": {},
        "tool_input": {"file_path": path, "content": "same line\n"}});
    world.sandbox.hook_with("save", &later, fields.to_string());
    assert_eq!(world.json("cart.rs:1")["turn"]["session"], "a");
    fs::write(&path, "same line\nadded\n").unwrap();
    let fields = json!({"session_id": "z", "cwd": world.folder, "hook_event_name": "PostToolUse",
        "tool_name": "Write", "tool_use_id": "z2", "tool_response": {},
        "tool_input": {"file_path": path, "content": "same line\nadded\n"}});
    world.sandbox.hook_with("save", &later, fields.to_string());
    assert_eq!(world.json("cart.rs:2")["turn"]["session"], "z");
}

#[test]
fn a_line_that_a_command_wrote_leads_to_the_turn_of_the_commit() {
    let world = World::new();
    world.prompt("a", "generate the table");
    fs::write(world.folder.join("table.rs"), "const TABLE: u8 = 7;\n").unwrap();
    let id = world.commit("Generate");
    let input = json!({"command": "./generate && git commit -qam Generate"});
    world.tool("a", "Bash", &input, &json!({"stdout": "", "stderr": ""}));
    let why = world.json("table.rs:1");
    assert_eq!((&why["commit"]["id"], &why["turn"]["session"]), (&json!(id), &json!("a")));
    assert_eq!(why["turn"]["found_by"], "commit");
    assert!(world.why(&["table.rs:1"]).ok().contains("\ncommitted "));
}

#[test]
fn a_file_lists_the_turns_that_edited_it_even_after_it_is_gone() {
    let (world, _) = worked();
    let sessions = |run: Run| {
        let text = run.ok();
        let turns = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        turns
            .map(|turn| (turn["session"].as_str().unwrap().to_owned(), turn["edits"].as_u64()))
            .collect::<Vec<_>>()
    };
    let expected = [("c".into(), Some(1)), ("b".into(), Some(2)), ("a".into(), Some(1))];
    assert_eq!(sessions(world.why(&["cart.rs", "--json"])), expected);
    assert_eq!(sessions(world.why(&["cart.rs", "--json", "--limit", "1"])), expected[..1]);
    let whole = world.folder.join("cart.rs");
    let from_home = world.why_in(&world.sandbox.home(), &[whole.to_str().unwrap(), "--json"]);
    assert_eq!(sessions(from_home), expected);

    // Edits under the old name count for a line of the renamed file.
    git(&world.folder, &["mv", "cart.rs", "basket.rs"]);
    world.commit("Rename");
    assert_eq!(world.json("basket.rs:1")["turn"]["session"], "a");
    assert_eq!(sessions(world.why(&["cart.rs", "--json"])), expected);
}

#[test]
fn without_git_only_the_log_is_searched() {
    let mut world = World::new();
    world.folder = world.sandbox.home().join("notes");
    fs::create_dir_all(world.folder.join("deep")).unwrap();
    world.prompt("a", "write it down");
    world.write("a", "deep/list.md", "- milk\n");
    let why = world.json("deep/list.md:1");
    assert_eq!(why["git_problem"], "not in a git repository");
    assert_eq!((&why["turn"]["session"], &why["commit"]), (&json!("a"), &Value::Null));
    let printed = world.why(&["deep/list.md:1"]).ok();
    assert!(printed.contains("\nfrom the log alone: not in a git repository\n"), "{printed}");

    let world = World::new();
    world.prompt("a", "write it");
    world.write("a", "new.rs", "fn new() {}\n");
    let untracked = world.json("new.rs:1");
    assert!(untracked["git_problem"].as_str().unwrap().contains("no such path"), "{untracked}");
    assert_eq!(untracked["turn"]["session"], "a");
}

#[test]
fn the_configuration_of_a_repository_starts_no_program() {
    let (world, _) = worked();
    let mark = world.sandbox.home().join("started");
    let program = format!("touch '{}'; cat", mark.display());
    let git_dir = world.folder.join(".git");
    fs::write(git_dir.join("info/attributes"), "*.rs filter=a=b diff=c\n").unwrap();
    for key in [
        "alias.blame",
        "core.alternateRefsCommand",
        "core.askPass",
        "core.editor",
        "core.fsmonitor",
        "core.gitProxy",
        "core.pager",
        "core.sshCommand",
        "credential.helper",
        "diff.c.command",
        "diff.c.textconv",
        "diff.external",
        "filter.a=b.clean",
        "filter.a=b.process",
        "filter.a=b.smudge",
        "gpg.program",
        "pager.blame",
        "uploadpack.packObjectsHook",
    ] {
        git(&world.folder, &["config", key, &program]);
    }
    git(&world.folder, &["config", "filter.a=b.required", "true"]);
    let file = world.folder.join("cart.rs");
    fs::write(&file, fs::read_to_string(&file).unwrap() + "// changed\n").unwrap();
    assert!(world.json("cart.rs:1")["commit"]["id"].is_string());

    // A partial clone: git would fetch its missing objects with a command that the URL names.
    let url = format!("ext::sh -c touch% {}", mark.display());
    for (key, value) in [
        ("core.repositoryformatversion", "1"),
        ("extensions.partialClone", "origin"),
        ("protocol.ext.allow", "always"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", &url),
    ] {
        git(&world.folder, &["config", key, value]);
    }
    for entry in fs::read_dir(git_dir.join("objects")).unwrap() {
        fs::remove_dir_all(entry.unwrap().path()).unwrap();
    }
    assert!(world.json("cart.rs:1")["git_problem"].is_string());
    assert!(!mark.exists());
}

#[test]
fn unknown_lines_are_reported() {
    let (world, _) = worked();
    let fails = |arguments: &[&str], code: i32| world.why(arguments).fails(code);
    let unknown = fails(&["nowhere.rs"], 2);
    assert!(
        unknown.contains("there is no file nowhere.rs, and no edit of it is recorded"),
        "{unknown}"
    );
    fs::write(world.folder.join("by-hand.rs"), "fn hand() {}\n").unwrap();
    let by_hand = fails(&["by-hand.rs"], 1);
    assert!(by_hand.contains("no edit of by-hand.rs is recorded"), "{by_hand}");
    let line = world.why(&["by-hand.rs:1"]);
    assert!(line.stdout.starts_with("by-hand.rs:1: fn hand() {}\n"), "{line:?}");
    assert!(line.fails(1).contains("no recorded edit wrote line 1 of by-hand.rs"));
    let beyond = fails(&["cart.rs:99"], 2);
    assert!(beyond.contains("cart.rs has no line 99") && beyond.contains("5 lines"), "{beyond}");
    assert!(fails(&["cart.rs:0"], 2).contains("no line 0"));
    let blank = world.why(&["cart.rs:4", "--json"]);
    let blank: Value = serde_json::from_str(&blank.stdout).unwrap();
    assert_eq!((&blank["text"], &blank["turn"]), (&json!(""), &Value::Null));
}
