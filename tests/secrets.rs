//! What is private never reaches the disk, in any file.

use std::{fs, path::Path};

use claude_mem_log::{Item, Log, Options};
use serde_json::json;

use crate::sandbox::Sandbox;

/// Looks for texts in every byte below the data directory, and in every payload of the log once it is
/// decompressed.
pub(crate) fn assert_nowhere(sandbox: &Sandbox, texts: &[&str]) {
    let mut count = 0;
    each_file(&sandbox.data(), &mut |file| {
        count += 1;
        assert_absent(&fs::read(file).unwrap(), texts, &file.display().to_string());
        assert_absent(file.to_string_lossy().as_bytes(), texts, "the name of a file");
    });
    assert!(count > 2, "there is something to look through");
    let log = Log::open(&sandbox.data().join("log"), Options::default()).unwrap();
    let mut reader = log.read_from_start();
    while let Some(item) = reader.next().unwrap() {
        let Item::Record(entry) = item else { panic!("{item:?}") };
        assert_absent(entry.payload, texts, &format!("event {}", entry.seq));
    }
}

fn each_file(dir: &Path, visit: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { each_file(&path, visit) } else { visit(&path) }
    }
}

fn assert_absent(bytes: &[u8], texts: &[&str], place: &str) {
    for text in texts {
        let is_there = bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(!is_there, "{text:?} is in {place}");
    }
}

/// Each is what a rule knows, put together here so that no scanner takes this file for a leak.
fn planted() -> Vec<String> {
    let part = "Zx9Qw7Lm3Np5Rt8Vk2Yb6Hc4Jd1Fg0Sa";
    vec![
        format!("AKIA{}", "Q7ZP3M5R8T2V6W4X"),
        format!("ghp_{}{}", part, "Ab3d"),
        format!("glpat-{}", &part[..20]),
        format!("xoxb-123456789012-123456789012-{}", &part[..24]),
        format!("sk_live_{}", &part[..24]),
        format!("sk-ant-api03-{part}{part}{part}-AA"),
        format!("AIza{part}Xyz"),
        // No rule knows this one by its looks, only by what it is called.
        format!("pw-{part}"),
    ]
}

#[test]
fn a_session_full_of_secrets_leaves_none_of_them_anywhere() {
    let sandbox = Sandbox::new();
    let secrets = planted();
    let hidden = "walrus-under-the-piano";
    for secret in &secrets {
        let bare = if secret.starts_with("pw-") { "it" } else { secret };
        let text = format!("<private>{hidden}</private> use {bare} and DB_PASSWORD={secret} now");
        // Long enough to be compressed, where a search of the raw file would find nothing.
        let long = format!("{}\n{text}\n{}", "filler line\n".repeat(300), "more\n".repeat(300));
        let common =
            json!({"session_id": "s1", "cwd": "/p", "permission_mode": format!("x {text}")});
        let send = |hook: &str, event: &str, fields: serde_json::Value| {
            let mut payload = common.clone();
            payload["hook_event_name"] = event.into();
            for (name, value) in fields.as_object().unwrap() {
                payload[name] = value.clone();
            }
            let payload = payload.to_string();
            sandbox.hook(hook, &payload);
            // Cut off anywhere, it is kept as text, and no half of a secret with it.
            let start = payload.find(&secret[..]).unwrap();
            for cut in [start + secret.len() / 2, start + secret.len(), payload.len() - 1] {
                sandbox.hook(hook, &payload[..cut]);
            }
        };
        send("context", "SessionStart", json!({"source": "startup", "model": text}));
        send("new", "UserPromptSubmit", json!({"prompt": text, "prompt_id": "p"}));
        send(
            "save",
            "PostToolUse",
            json!({"tool_name": "Bash", "tool_use_id": "t", "tool_input": {"command": text, "deep": [{"a": long}]},
                "tool_response": {"stdout": long, "password": secret}, "unheard_of": {"of": text}}),
        );
        send("save", "PostToolUseFailure", json!({"tool_name": "Bash", "error": long}));
        send("summary", "Stop", json!({"last_assistant_message": long}));
        send("cleanup", "SessionEnd", json!({"reason": text}));
    }
    assert_eq!(sandbox.events().len(), secrets.len() * 24);
    let mut texts: Vec<&str> = secrets.iter().map(String::as_str).collect();
    texts.push(hidden);
    assert_nowhere(&sandbox, &texts);
    // Nor the better half of one.
    let halves: Vec<&str> = secrets.iter().map(|secret| &secret[..secret.len() / 2]).collect();
    assert_nowhere(&sandbox, &halves);
}
