use serde_json::{Value, json};

use super::{
    INITIALIZED_VERSIONS, INSTRUCTIONS,
    arguments::{Arguments, Parameter, ParameterType, optional, required, schema},
    initialized, tools,
};

const PARAMETERS: &[Parameter] = &[
    required("ids", ParameterType::Ids, "which"),
    optional("query", ParameterType::Text, "words"),
    optional("limit", ParameterType::Number(1, 100), "how many"),
    optional("orderBy", ParameterType::Choice(&["up", "down"]), "order"),
    optional("files", ParameterType::List, "files"),
    optional("anchor", ParameterType::Anchor, "middle"),
];

fn check(arguments: Value) -> Result<Arguments, String> {
    Arguments::check(arguments, PARAMETERS)
}

#[test]
fn a_known_protocol_version_is_accepted_and_an_unknown_one_becomes_the_newest() {
    let version = |params: &str| initialized(params)["protocolVersion"].clone();
    for known in INITIALIZED_VERSIONS {
        assert_eq!(version(&json!({"protocolVersion": known}).to_string()), **known);
    }
    // 2026-07-28 has no `initialize`.
    for unknown in [r#"{"protocolVersion":"2026-07-28"}"#, r#"{"protocolVersion":7}"#, "{}", "[]"] {
        assert_eq!(version(unknown), "2025-11-25", "{unknown}");
    }
}

#[test]
fn instructions_are_short_enough_to_reach_the_model_uncut() {
    // Claude Code cuts them at 2048 characters.
    assert!(INSTRUCTIONS.len() < 1500, "{}", INSTRUCTIONS.len());
}

#[test]
fn the_tools_cost_a_session_at_most_1700_tokens() {
    // 7,861 bytes of this list were counted as 2,079 tokens by the tokenizer of a model.
    let bytes = serde_json::to_string(&tools::described()).unwrap().len();
    assert!(bytes * 2079 / 7861 <= 1700, "{bytes} bytes");
}

#[test]
fn errors_for_wrong_arguments_name_the_expected_ones() {
    for (arguments, expected) in [
        (json!({}), "`ids` is required: an array of IDs such as [12, \"S3\", \"P9\"]"),
        (json!([1]), "arguments must be an object"),
        (json!({"ids": [1], "limt": 3}), "there is no parameter `limt`: did you mean `limit`?"),
        (
            json!({"ids": [1], "xyzzy": 3}),
            "there is no parameter `xyzzy`; expected one of: ids, query, limit, orderBy, files, \
             anchor",
        ),
        (json!({"ids": [1], "query": 3}), "`query` must be a string, not 3"),
        (
            json!({"ids": [1], "limit": "3"}),
            "`limit` must be a whole number from 1 to 100, not \"3\"",
        ),
        (
            json!({"ids": [1], "limit": 2.5}),
            "`limit` must be a whole number from 1 to 100, not 2.5",
        ),
        (json!({"ids": [1], "limit": 0}), "`limit` must be a whole number from 1 to 100, not 0"),
        (
            json!({"ids": [1], "orderBy": "UP"}),
            "`orderBy` must be one of \"up\", \"down\", not \"UP\"",
        ),
        (
            json!({"ids": [1], "files": [1]}),
            "`files` must be an array of strings, or a string with commas, not [1]",
        ),
        (json!({"ids": [1], "anchor": {}}), "`anchor` must be a number or a string, not {}"),
        (
            json!({"ids": 5, "query": []}),
            "`ids` must be an array of IDs such as [12, \"S3\", \"P9\"], not 5\n\
             `query` must be a string, not []",
        ),
        (json!({"ids": []}), "`ids` must be an array of IDs such as [12, \"S3\", \"P9\"], not []"),
        (
            json!({"ids": [1, "Q2"]}),
            "`ids` must be an array of IDs such as [12, \"S3\", \"P9\"], not [1,\"Q2\"]",
        ),
    ] {
        assert_eq!(check(arguments.clone()).unwrap_err(), expected, "{arguments}");
    }
    let long = check(json!({"ids": "é".repeat(500)})).unwrap_err();
    assert!(long.len() < 250 && long.ends_with('…'), "{long}");
}

#[test]
fn arguments_are_accepted_in_every_format() {
    let arguments = check(json!({
        "ids": [12, "#12", " S3", 12.0, "p9"],
        "query": "  torn log ",
        "limit": 5.0,
        "orderBy": null,
        "files": " a.rs, ,b/c.rs",
        "anchor": 7,
    }))
    .unwrap();
    let ids: Vec<String> = arguments.ids("ids").iter().map(ToString::to_string).collect();
    assert_eq!(ids, ["12", "S3", "P9"]);
    assert_eq!(arguments.text("query"), Some("torn log"));
    assert_eq!((arguments.number("limit"), arguments.text("orderBy")), (Some(5), None));
    assert_eq!(arguments.list("files"), ["a.rs", "b/c.rs"]);
    assert_eq!(arguments.anchor("anchor").as_deref(), Some("7"));
    let arguments = check(json!({"ids": ["1"], "query": " ", "files": ["x, y"]})).unwrap();
    assert_eq!((arguments.text("query"), arguments.list("files")), (None, vec!["x, y".into()]));
}

#[test]
fn the_schema_matches_the_validation() {
    let expected = json!({
        "type": "object",
        "properties": {
            "ids": {"type": "array", "items": {"type": ["integer", "string"]}, "description": "which"},
            "query": {"type": "string", "description": "words"},
            "limit": {"type": "integer", "description": "how many"},
            "orderBy": {"type": "string", "enum": ["up", "down"], "description": "order"},
            "files": {"type": ["array", "string"], "items": {"type": "string"}, "description": "files"},
            "anchor": {"type": ["integer", "string"], "description": "middle"},
        },
        "required": ["ids"],
    });
    assert_eq!(schema(PARAMETERS), expected);
}

#[test]
fn every_tool_has_a_title_a_schema_and_truthful_hints() {
    let listed = tools::described();
    let hints: Vec<_> = listed
        .iter()
        .map(|tool| {
            assert!(tool["title"].is_string() && tool["inputSchema"]["type"] == "object", "{tool}");
            assert!(tool["description"].as_str().is_some_and(|text| text.len() < 300), "{tool}");
            let hints = &tool["annotations"];
            (
                tool["name"].as_str().unwrap(),
                hints["readOnlyHint"] == true,
                hints["destructiveHint"] == true,
            )
        })
        .collect();
    let expected = [
        ("search", true, false),
        ("timeline", true, false),
        ("get_observations", true, false),
        ("remember", false, false),
        ("revise", false, true),
        ("forget", false, true),
        ("session_start_context", true, false),
    ];
    assert_eq!(hints, expected);
    for (name, ..) in expected {
        let used = format!("mcp__claude-mem__{name}");
        assert!(claude_mem_capture::clients::is_our_tool(&used), "{name} would be recorded");
    }
    assert_eq!(
        tools::named("serch").unwrap_err(),
        "there is no tool `serch`: did you mean `search`?"
    );
}
