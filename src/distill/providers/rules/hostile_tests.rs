//! Property tests with arbitrary JSON, text and sizes.

use claude_mem_projections::xml::{Verdict, read_reply};
use proptest::prelude::*;
use serde_json::Value;

use super::tests::{Recorded, Tool};
use super::{Mode, text};

fn tool_names() -> impl Strategy<Value = String> {
    let known =
        ["Bash", "Read", "Edit", "MultiEdit", "Write", "NotebookEdit", "Grep", "WebFetch", "Agent"];
    let more = ["TodoWrite", "AskUserQuestion", "WebSearch", "mcp__a__b", "mcp__", "Other"];
    prop::sample::select([known.as_slice(), more.as_slice()].concat()).prop_map(str::to_owned)
}

/// JSON values of any shape under the keys that the rules read.
fn odd_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        odd_text().prop_map(Value::from),
    ];
    let keys = [
        "command",
        "file_path",
        "old_string",
        "new_string",
        "content",
        "edits",
        "structuredPatch",
        "lines",
        "oldStart",
        "type",
        "stdout",
        "stderr",
        "pattern",
        "url",
        "result",
        "answers",
        "todos",
        "status",
        "text",
        "originalFile",
        "file",
    ];
    let value = leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(keys.to_vec()), inner), 0..6).prop_map(
                |pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            ),
        ]
    });
    prop_oneof![4 => value.prop_map(|value| value.to_string()), 1 => odd_text()]
}

/// Text that mixes the phrases the rules look for with arbitrary characters.
fn odd_text() -> impl Strategy<Value = String> {
    let marks = [
        "`",
        "**",
        "```\n",
        "# ",
        "- ",
        "- [ ] ",
        "1. ",
        "](",
        "[",
        "error[E",
        "panicked at",
        "--- FAIL: ",
        "\n",
        "FAILED a::b - c",
        " -> ",
        "test result: ",
        "9 passed",
        "; ",
        "&&",
        "<<EOF\n",
        "\"",
        "'",
        "\\",
        "$(",
        "é",
        "日本",
        "🎉",
        "fn x(",
        "class Y",
        ": ",
        ". ",
        "? ",
        "</title>",
        "<observation>",
        "&amp;",
        "because ",
        "+",
        "-",
        "git commit -m ",
        "cargo test ",
        "mv a b",
        "I've ",
        "Done",
        "Next steps:",
        "Tests run: 1, ",
        "# pass 3",
    ];
    let piece = prop_oneof![
        3 => prop::sample::select(marks.to_vec()).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Any turn gets a valid reply, and the same turn gets the same reply.
    #[test]
    fn odd_turns_are_answered(
        prompt in odd_text(),
        answer in prop::option::of(odd_text()),
        tools in prop::collection::vec((tool_names(), odd_json(), odd_json(), any::<bool>()), 0..6),
        is_over in any::<bool>(),
    ) {
        let tools = tools.into_iter().map(|(name, input, output, failed)| Tool {
            name, input, output, failed, agent: None,
        });
        let turn = Recorded {
            cwd: "/p".into(),
            prompt,
            tools: tools.collect(),
            is_over,
            is_interrupted: is_over && answer.is_none(),
            answer,
        };
        let reply = turn.extract();
        let read = read_reply(&reply, &Mode::code().kinds());
        prop_assert_ne!(read.verdict, Verdict::Unreadable, "{}", reply);
        prop_assert!(!read.cut);
        prop_assert!(read.observations.len() <= 5 && reply.len() < 64_000);
        for observation in &read.observations {
            let title = observation.title.as_deref().unwrap_or_default();
            let chars = title.chars().count();
            prop_assert!((1..=text::TITLE_CHARS_MAX + 2).contains(&chars), "{}", title);
        }
        prop_assert_eq!(reply, turn.extract());
    }
}

#[test]
fn a_huge_turn_has_a_short_reply() {
    let words = "error: it failed because of x instead of y. ".repeat(2_000);
    let tool = |number: usize| {
        let input = serde_json::json!({
            "command": format!("make t{number}; {words}"),
            "file_path": format!("/p/{number}.rs"),
            "content": words,
        });
        Tool {
            name: if number.is_multiple_of(2) { "Bash" } else { "Write" }.to_owned(),
            input: input.to_string(),
            output: serde_json::json!({"stdout": words}).to_string(),
            failed: number.is_multiple_of(4),
            agent: None,
        }
    };
    let turn = Recorded {
        cwd: "/p".into(),
        prompt: words.clone(),
        tools: (0..60).map(tool).collect(),
        answer: Some(words.clone()),
        is_over: true,
        is_interrupted: false,
    };
    let reply = turn.extract();
    assert!(reply.len() < 16_000, "{}", reply.len());
    assert!(reply.contains("<observation>"));
}
