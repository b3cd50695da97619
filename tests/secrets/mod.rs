//! Private text and secrets never reach the disk, in any file.

mod generator;

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use claude_mem_log::{Item, Log, Options};
use serde_json::json;

use claude_mem_tools::placeholders::measure;

use crate::{
    folders::{contains, files_below},
    sandbox::{Sandbox, binary},
    vectors::assert_no_vector_of,
};
use generator::Example;

/// Looks for texts in every byte below the data directory, in every decompressed payload of the
/// log, and in the vectors.
pub(crate) fn assert_nowhere(sandbox: &Sandbox, texts: &[&str]) {
    let files = files_below(&sandbox.data());
    assert!(files.len() > 2, "there is something to look through");
    for file in files {
        assert_absent(&fs::read(&file).unwrap(), texts, &file.display().to_string());
        assert_absent(file.to_string_lossy().as_bytes(), texts, "the name of a file");
    }
    assert_no_vector_of(&sandbox.data(), texts);
    let log = Log::open(&sandbox.data().join("log"), Options::default()).unwrap();
    let mut reader = log.read_from_start();
    while let Some(item) = reader.next().unwrap() {
        let Item::Record(entry) = item else { panic!("{item:?}") };
        assert_absent(entry.payload, texts, &format!("event {}", entry.seq));
    }
}

fn assert_absent(bytes: &[u8], texts: &[&str], place: &str) {
    for text in texts {
        assert!(!contains(bytes, text), "{text:?} is in {place}");
    }
}

/// One secret for each rule, concatenated here so that no secret scanner reports this file.
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
        // Recognized by its name only.
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
        // Long enough to be compressed, so that a search of the raw file would not find it.
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
            // A truncated payload is kept as text, without any part of a secret.
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
    // Not even half of a secret is stored.
    let halves: Vec<&str> = secrets.iter().map(|secret| &secret[..secret.len() / 2]).collect();
    assert_nowhere(&sandbox, &halves);
}

/// The stored form of each text, sent as members of a tool's response.
fn stored(texts: &[String]) -> Vec<String> {
    const AT_ONCE: usize = 500;
    let sandbox = Sandbox::new();
    let name = |at: usize| format!("e{at}");
    for texts in texts.chunks(AT_ONCE) {
        let members: serde_json::Map<_, _> =
            texts.iter().enumerate().map(|(at, text)| (name(at), json!(text))).collect();
        let payload = json!({"session_id": "s", "cwd": "/p", "hook_event_name": "PostToolUse",
            "tool_name": "Bash", "tool_use_id": "t", "tool_input": {}, "tool_response": members});
        sandbox.hook("save", payload.to_string());
    }
    let events = sandbox.events();
    let stored = texts.iter().enumerate().map(|(at, _)| {
        let text = &events[at / AT_ONCE]["event"]["output"][name(at % AT_ONCE)];
        text.as_str().expect("every member is stored").to_owned()
    });
    stored.collect()
}

/// The number of passing examples in each group, and one line for each failing one.
struct Rates {
    groups: BTreeMap<String, (usize, usize)>,
    failed: String,
}

impl Rates {
    fn of(examples: &[Example], is_right: impl Fn(&Example, &str) -> bool) -> Self {
        let texts: Vec<String> = examples.iter().map(|example| example.text.clone()).collect();
        let mut rates = Self { groups: BTreeMap::new(), failed: String::new() };
        for (example, stored) in examples.iter().zip(stored(&texts)) {
            let (passed, all) = rates.groups.entry(example.group.clone()).or_default();
            *all += 1;
            if is_right(example, &stored) {
                *passed += 1;
            } else {
                let _ = writeln!(rates.failed, "{}: {stored:?}", example.group);
            }
        }
        rates
    }

    fn redacted(examples: &[Example]) -> Self {
        assert!(examples.iter().all(|example| !example.secrets.is_empty()));
        Self::of(examples, Example::is_redacted)
    }

    /// Minimum percentages: in total, and for each group.
    fn assert_at_least(&self, all_min: usize, group_min: usize) {
        for (group, (passed, all)) in &self.groups {
            assert!(passed * 100 >= all * group_min, "{group}: {passed} of {all}\n{}", self.failed);
        }
        let count = |of: fn(&(usize, usize)) -> usize| self.groups.values().map(of).sum::<usize>();
        let (passed, all) = (count(|rate| rate.0), count(|rate| rate.1));
        assert!(passed * 100 >= all * all_min, "{passed} of {all}\n{}", self.failed);
    }
}

#[test]
fn a_token_is_redacted_by_its_name_however_it_is_assigned() {
    let examples = generator::assigned();
    assert!(examples.len() > 8000);
    Rates::redacted(&examples).assert_at_least(97, 97);
}

#[test]
fn a_token_with_a_known_format_is_redacted_in_a_sentence() {
    let examples = generator::in_prose();
    assert!(examples.len() > 130);
    Rates::redacted(&examples).assert_at_least(97, 50);
}

#[test]
fn secrets_of_every_kind_and_form_are_redacted() {
    let mut examples = generator::planted();
    examples.extend(generator::realistic());
    assert!(examples.len() > 620);
    Rates::redacted(&examples).assert_at_least(90, 75);
}

#[test]
fn text_that_only_looks_like_a_secret_is_unchanged() {
    let mut examples = generator::harmless();
    examples.extend(generator::lookalikes());
    assert!(examples.len() > 950);
    Rates::of(&examples, |example, stored| stored == example.text).assert_at_least(90, 85);
}

type Encoding = fn(&Example) -> String;

/// Forms of a text: from a terminal, a UTF-16 file, a diff.
const DRESSED: &[(&str, Encoding)] = &[
    ("coloured line", |example| each_line(&example.text, |line| format!("\x1b[32m{line}\x1b[0m"))),
    ("coloured secret", |example| {
        example.secrets.iter().fold(example.text.clone(), |text, secret| {
            text.replacen(secret, &format!("\x1b[01;31m\x1b[K{secret}\x1b[m\x1b[K"), 1)
        })
    }),
    ("git diff --color", |example| {
        each_line(&example.text, |line| format!("\x1b[32m+\x1b[m\x1b[32m{line}\x1b[m"))
    }),
    ("diff", |example| each_line(&example.text, |line| format!("+{line}"))),
    ("UTF-16", |example| example.text.chars().flat_map(|letter| [letter, '\0']).collect()),
];

fn each_line(text: &str, dress: fn(&str) -> String) -> String {
    text.lines().map(dress).collect::<Vec<_>>().join("\n")
}

#[test]
fn secrets_are_found_in_colored_output_diffs_and_utf16() {
    let plain: Vec<Example> =
        generator::planted().into_iter().filter(|example| example.group != "evasions").collect();
    let texts: Vec<String> = plain.iter().map(|example| example.text.clone()).collect();
    let known: Vec<Example> = plain
        .into_iter()
        .zip(stored(&texts))
        .filter(|(example, stored)| example.is_redacted(stored))
        .map(|(example, _)| example)
        .collect();
    let dressed: Vec<Example> = DRESSED
        .iter()
        .flat_map(|(group, dress)| {
            known.iter().map(|example| Example {
                group: (*group).into(),
                text: dress(example),
                secrets: example.secrets.clone(),
            })
        })
        .collect();
    Rates::redacted(&dressed).assert_at_least(97, 95);
}

#[test]
fn source_code_is_hardly_redacted_and_the_tool_counts_redactions_by_rule() {
    const PER_MEGABYTE_MAX: f64 = 3.0;
    let measured = |folder: &Path| {
        let sandbox = Sandbox::new();
        measure(binary(), &sandbox.home(), folder, &["rs", "toml", "md", "sql"]).unwrap()
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in ["log", "projections", "migrations", "src/server/http", "src/sync/ship"] {
        let report = measured(&root.join(folder));
        let lines = report.lines.join("\n");
        assert!(report.files > 0 && report.bytes > 0, "{folder}");
        // A folder below a megabyte may have as many as a whole megabyte.
        let megabytes = (report.bytes as f64 / 1e6).max(1.0);
        let count = report.placeholders() as f64;
        assert!(count <= PER_MEGABYTE_MAX * megabytes, "{folder}: {count}\n{lines}");
    }
    let planted = Sandbox::new();
    let filler = "let total = lines.iter().sum();\n".repeat(10_000);
    let token = format!("ghp_{}", generator::made_up("alnum:36", 7));
    planted.write("code/a.rs", &format!("{filler}{token}\n{filler}[redacted:jwt]\n"));
    planted.write("code/b.bin", &token);
    let report = measured(&planted.home().join("code"));
    assert_eq!(report.rules, BTreeMap::from([("github-token".to_owned(), 1)]));
    assert_eq!((report.files, report.lines), (1, vec!["[redacted:github-token]".to_owned()]));
}
