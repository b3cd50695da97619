//! `claude-mem eval --sessions`: the score of labelled sessions.

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

const FIRST: &str = "0a4d3c52-7c44-4a3c-9a8e-0f6a1e3b5c77";
const SECOND: &str = "51f0c9ce-3f5e-4d6c-8f0e-9a4b7d2e6c11";

/// A turn with one command, as the client writes it.
fn transcript(session: &str, day: u32, prompt: &str, command: &str, answer: &str) -> String {
    let row = |minute: u32, kind: &str, content: Value| {
        json!({"type": kind, "sessionId": session, "cwd": "/scratch/shop", "promptId": session,
            "uuid": format!("{session}-{minute}"), "timestamp": format!("2026-03-0{day}T10:0{minute}:00.000Z"),
            "message": {"role": kind, "content": content}})
        .to_string()
    };
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let input = json!({"command": command, "description": "run it"});
    let rows = [
        row(0, "user", prompt.into()),
        row(
            1,
            "assistant",
            json!([{"type": "tool_use", "id": "t", "name": "Bash", "input": input}]),
        ),
        row(
            2,
            "user",
            json!([{"type": "tool_result", "tool_use_id": "t", "content": "ok, 12 passed"}]),
        ),
        row(3, "assistant", text(answer)),
    ];
    rows.join("\n") + "\n"
}

/// Two sessions of one project; the second needs a finding of the first.
fn labelled() -> Sandbox {
    let sandbox = Sandbox::new();
    let first = transcript(
        FIRST,
        1,
        "Never add a new dependency. Why do the checkout tests time out?",
        "cargo nextest run -p checkout",
        "The timeout was caused by the walrus queue, which was never drained. I decided to drain \
         it before each test, because a longer timeout would only hide it.",
    );
    let second = transcript(
        SECOND,
        2,
        "the walrus queue is slow again",
        "cargo nextest run -p checkout",
        "The walrus queue is drained once per test; nothing to change.",
    );
    sandbox.write(&format!("sessions/-scratch-shop/{FIRST}.jsonl"), &first);
    sandbox.write(&format!("sessions/-scratch-shop/{SECOND}.jsonl"), &second);
    let labels = json!({
        "about": "ignored",
        "recall": [{
            "session": FIRST,
            "wanted": [
                {"kind": "cause", "text": "the queue", "match_all_in_one_row": ["walrus queue", "never drained"]},
                {"kind": "cause", "text": "penguins", "match_all_in_one_row": ["penguin"]},
            ],
            "false_if_said": [
                {"match": "^(?!.*hide).*longer timeout"},
                {"text": "true, in fact", "match": "walrus"},
            ],
        }],
        "user_rules": [{"session": FIRST, "rule": "no dependencies", "match": "never add a new dependency"}],
        "next_session": [
            {"session": SECOND, "prompt": "the walrus queue\nis slow again", "need": "drained", "match": "never drained"},
            {"session": SECOND, "prompt": "the walrus queue\nis slow again", "need": "penguins", "match": "penguin"},
            {"session": "elsewhere", "prompt": "x", "match": "x"},
        ],
        "silent": [{"session": SECOND, "prompt": "what does TLS stand for?"}],
    });
    sandbox.write("labels.json", &labels.to_string());
    sandbox
}

const EVAL: [&str; 5] = ["eval", "--sessions", "sessions", "--labels", "labels.json"];

#[test]
fn labelled_sessions_are_scored_in_a_directory_of_their_own() {
    let sandbox = labelled();
    let json = sandbox.run(&[&EVAL[..], &["--json"]].concat()).ok();
    let score: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(score["wanted"], json!({"observation": 1, "summary": 0, "count": 2}), "{score}");
    assert_eq!(score["wanted_by_kind"]["cause"]["count"], 2);
    assert_eq!(score["false_statements"], json!({"hits": 1, "count": 2}), "{score}");
    assert_eq!(score["user_rules"], json!({"hits": 1, "count": 1}), "{score}");
    for place in ["page", "page_and_prompt", "search_5", "search_10", "stored"] {
        assert_eq!(
            score["next_session"][place],
            json!({"hits": 1, "count": 2}),
            "{place}: {score}"
        );
    }
    assert!(score["next_session"]["page_chars"].as_u64() > Some(100), "{score}");
    assert_eq!(score["silent"], json!({"hits": 1, "count": 1}), "{score}");
    assert_eq!(score["labels_without_session"], 1);
    assert_eq!(score["provider"], "extract");
    assert!(score["missed"].is_null());
    for left in ["memory.db", "log"] {
        assert!(!sandbox.data().join(left).exists(), "{left} is the user's");
    }
}

#[test]
fn the_score_fits_a_terminal_and_names_what_is_missing() {
    let sandbox = labelled();
    let run = sandbox.run(&[&EVAL[..], &["--verbose"]].concat());
    assert!(run.stderr.contains("1 labels name a session"), "{run:?}");
    let text = run.ok();
    assert!(text.contains(&format!("lost  {}  cause: penguins", &FIRST[..8])), "{text}");
    assert!(text.contains(&format!("not given  {}  penguins", &SECOND[..8])), "{text}");
    assert!(text.contains("wanted: in an observation          1/2 (50 %)\n"), "{text}");
    assert!(text.contains("  cause                            1 + 0 of 2\n"), "{text}");
    let text = sandbox.run(&EVAL).ok();
    assert!(!text.contains("penguins") && text.lines().count() > 10, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn labels_that_cannot_be_used_are_refused_with_the_reason() {
    let sandbox = labelled();
    let labels = json!({"user_rules": [{"session": "s", "match": "(a)\\1"}]});
    sandbox.write("labels.json", &labels.to_string());
    let refused = sandbox.run(&EVAL).fails(1);
    assert!(refused.contains("pattern `(a)\\1`: backreferences are not supported"), "{refused}");
    assert_eq!(sandbox.run(&["eval", "--sessions", "sessions"]).code, 2);
    assert_eq!(sandbox.run(&["eval", "--model", "m"]).code, 2);
    sandbox.write("labels.json", "{}");
    let nowhere = sandbox.run(&["eval", "--sessions", "no", "--labels", "labels.json"]).fails(1);
    assert!(nowhere.contains("no cannot be read"), "{nowhere}");
    sandbox.write("archives/a.tar.xz", "");
    let nothing = sandbox.run(&["eval", "--sessions", "archives", "--labels", "labels.json"]);
    let nothing = nothing.fails(1);
    assert!(nothing.contains("no transcripts in archives"), "{nothing}");
}
