//! One memory for several clients: the same repository is one project, and each row names its
//! client.

use std::{fs, process::Command};

use serde_json::{Value, json};

use crate::{http::Site, mcp::tools::talk_in};

/// A turn of a client with the payloads of Claude Code.
fn turn(site: &Site, client: &str, cwd: &str, subject: &str) {
    let sandbox = &site.sandbox;
    let cwd = sandbox.home().join(cwd);
    let file = sandbox.home().join(format!("shop/{subject}.rs"));
    for fields in [
        json!({"hook_event_name": "UserPromptSubmit",
            "prompt": format!("repair the {subject} cart")}),
        json!({"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_use_id": subject,
            "tool_input": {"file_path": file, "old_string": "a", "new_string": "b"},
            "tool_response": "done"}),
        json!({"hook_event_name": "Stop",
            "last_assistant_message": format!("The {subject} cart works now.")}),
    ] {
        let mut payload = fields;
        payload["session_id"] = json!(format!("{client}-1"));
        payload["cwd"] = json!(cwd);
        let run = sandbox.run_with(&["hook", "--client", client], &[], payload.to_string());
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    }
}

fn ids(found: &[Value]) -> Vec<&str> {
    found.iter().map(|hit| hit["client"].as_str().unwrap()).collect()
}

#[test]
fn the_same_repository_is_one_project_in_all_clients_and_each_row_names_its_client() {
    let site = Site::with(&[("CLAUDE_MEM_PROVIDER", "extract")]);
    let sandbox = &site.sandbox;
    sandbox.run(&["settings", "set", "PROVIDER", "extract"]).ok();
    let shop = sandbox.home().join("shop");
    fs::create_dir_all(shop.join("src/deep")).unwrap();
    for arguments in [["init", "-q", "."], ["worktree", "add", "../shop-fix"]] {
        let is_done = |output: std::process::Output| output.status.success();
        let git = |arguments: &[&str]| {
            Command::new("git").args(arguments).current_dir(&shop).output().map(is_done).unwrap()
        };
        if arguments[0] == "worktree" {
            let named = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q"];
            assert!(git(&[&named[..], &["--allow-empty", "-m", "x"]].concat()));
        }
        assert!(git(&arguments));
    }
    turn(&site, "claude-code", "shop", "walrus");
    turn(&site, "codex", "shop/src/deep", "otter");
    turn(&site, "qwen", "shop-fix", "heron");
    sandbox.run(&["distill"]).ok();

    let projects = sandbox.run(&["projects", "--json"]).ok();
    assert_eq!(projects.lines().count(), 1, "{projects}");
    let search = |arguments: &[&str]| -> Vec<Value> {
        let found = sandbox.run(&[&["search", "--json"], arguments].concat()).ok();
        found.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    assert_eq!(ids(&search(&["cart", "--client", "codex"])), ["codex"]);
    assert_eq!(ids(&search(&["--client", "qwen", "--kind", "prompt"])), ["qwen"]);
    assert_eq!(search(&["cart", "--client", "gemini"]), [] as [Value; 0]);
    let all = sandbox.run(&["search", "cart"]).ok();
    let is_named = |client: &str| all.contains(&format!("  {client}"));
    assert!(["claude-code", "codex", "qwen"].into_iter().all(is_named), "{all}");
    let one = sandbox.run(&["search", "otter"]).ok();
    assert!(!one.contains("  codex"), "one client needs no column: {one}");
    let hit = search(&["otter", "--kind", "observation"])[0]["id"].as_str().unwrap().to_owned();
    assert!(sandbox.run(&["show", &hit]).ok().contains(", in codex"));
    assert!(sandbox.run(&["show", "--json", &hit]).ok().contains("\"client\":\"codex\""));
    let timeline = sandbox.run(&["timeline", &hit]).ok();
    assert!(timeline.contains("  codex ") && timeline.contains("  qwen "), "{timeline}");

    let context =
        |more: &[&str]| sandbox.run(&[&["context", "--project", "shop"][..], more].concat()).ok();
    let of_codex = context(&["--client", "codex"]);
    assert!(of_codex.contains("otter") && !of_codex.contains("walrus"), "{of_codex}");
    let of_all = context(&[]);
    assert!(["otter", "walrus", "heron"].iter().all(|word| of_all.contains(word)), "{of_all}");

    let table = talk_in(sandbox, "shop").call_ok("search", &json!({"query": "cart"}));
    assert!(table.contains(" | client | ") && table.contains(" | qwen | "), "{table}");
    let table =
        talk_in(sandbox, "shop").call_ok("search", &json!({"query": "cart", "client": "qwen"}));
    assert!(table.contains("heron") && !table.contains("walrus"), "{table}");

    let found = site.get("/api/search?query=cart&client=codex");
    assert_eq!(ids(found["hits"].as_array().unwrap()), ["codex"]);
    let feed = site.get("/api/feed?client=codex&kinds=prompt");
    assert_eq!(ids(feed["items"].as_array().unwrap()), ["codex"]);
    let known = site.get("/api/projects");
    assert_eq!(known["sources"], json!(["claude-code", "codex", "qwen"]));
}
