//! Compares complete turns with their expected observations, in `tests/fixtures/extract`.
//!
//! `NAME.txt` contains the expected observations for the turns in `NAME.json`, written by hand, or
//! for those in `tests/fixtures/hooks/NAME.*`, as sent by the client. After changing the rules, run
//! with `UPDATE_EXPECTED=1` and review the diff as a user: is every line still useful next week?

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use claude_mem_projections::xml::{Reply, Verdict, read_reply};
use serde_json::Value;

use super::*;
use crate::turn_prompt::ToolView;

/// A turn with owned strings.
#[derive(Default)]
pub(super) struct Recorded {
    pub(super) cwd: String,
    pub(super) prompt: String,
    pub(super) tools: Vec<Tool>,
    pub(super) answer: Option<String>,
    pub(super) is_over: bool,
    pub(super) is_interrupted: bool,
}

#[derive(Default)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) input: String,
    pub(super) output: String,
    pub(super) failed: bool,
    pub(super) agent: Option<String>,
}

impl Recorded {
    pub(super) fn extract(&self) -> String {
        let tools = self.tools.iter().map(|tool| ToolView {
            tool: &tool.name,
            input: &tool.input,
            output: &tool.output,
            cwd: &self.cwd,
            failed: tool.failed,
            agent: tool.agent.as_deref(),
            ..ToolView::default()
        });
        let turn = Turn {
            project: "p",
            cwd: &self.cwd,
            prompt: &self.prompt,
            prompt_number: 1,
            tools: tools.collect(),
            last_assistant_message: self.answer.as_deref(),
            is_over: self.is_over,
            is_interrupted: self.is_interrupted,
            ..Turn::default()
        };
        extract(&turn, &Mode::code(), Verbosity::Normal)
    }
}

#[test]
fn the_title_of_a_form_answer_has_the_question_or_its_header() {
    let title = |question: &str| {
        let form = serde_json::json!({"questions": [{"question": question, "header": "Storage"}]});
        let answers = serde_json::json!({"answers": {question: "SQLite (Recommended)"}});
        let (input, output) = (form.to_string(), answers.to_string());
        let name = "AskUserQuestion".to_owned();
        let tools = vec![Tool { name, input, output, ..Tool::default() }];
        let turn = Recorded { tools, is_over: true, ..Recorded::default() }.extract();
        let title = turn.split_once("<title>").unwrap().1.split_once("</title>").unwrap().0;
        title.to_owned()
    };
    assert_eq!(title("Which database?"), "SQLite — Which database?");
    let context = "\
        Carts are read often, written seldom, shared by guests, and kept for thirty days at the \
        very most. ";
    let question = format!("{context}Which database should the carts of guests use?");
    assert_eq!(title(&question), "SQLite — Which database should the carts of guests use?");
    assert_eq!(title(&format!("{context}Where should it live?")), "SQLite — Storage");
}

fn tool(name: &str, input: &Value, output: &Value) -> Tool {
    let (input, output) = (input.to_string(), output.to_string());
    Tool { name: name.to_owned(), input, output, ..Tool::default() }
}

/// The title of the first observation; empty if the turn leaves none.
fn first_title(prompt: &str, tools: Vec<Tool>, answer: &str) -> String {
    let (prompt, answer) = (prompt.to_owned(), Some(answer.to_owned()));
    let turn = Recorded { prompt, tools, answer, is_over: true, ..Recorded::default() }.extract();
    let title = turn.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    title.map_or_else(String::new, |(title, _)| title.to_owned())
}

fn edit(path: &str) -> Tool {
    let input = serde_json::json!({"file_path": path, "old_string": "a", "new_string": "b"});
    tool("Edit", &input, &serde_json::json!({}))
}

#[test]
fn work_is_called_by_its_plan_or_request_rather_than_by_an_item_of_a_list() {
    let items = "All checks pass.\n\n- Added `useMemo` to the imports of cart.ts\n- Changed `Cart` in cart.ts";
    let plan = "Implement the following plan:\n\n# Show prices in euro\n\nNever use cents.";
    let title = |prompt| first_title(prompt, vec![edit("/p/cart.ts")], items);
    assert_eq!(title(plan), "Show prices in euro (cart.ts)");
    assert_eq!(title("Add a total to the cart"), "Add a total to the cart (cart.ts)");
    assert_eq!(title("go"), "Added `useMemo` to the imports of cart.ts");
}

#[test]
fn a_title_is_neither_a_report_of_progress_nor_an_instruction_nor_cut_in_a_quote() {
    let title = |answer| first_title("go", vec![edit("/p/cart.ts")], answer);
    let total = "The cart now rounds the total once";
    for answer in [
        "Run this: `shop migrate --to 3`. The cart now rounds the total once.",
        "四处都改好了。The cart now rounds the total once.",
        "PR #5 açık. The cart now rounds the total once.",
        "The change in cart.ts is uncommitted. The cart now rounds the total once.",
    ] {
        assert_eq!(title(answer), format!("{total} (cart.ts)"), "{answer}");
    }
    let quoted = "The \"What is next?\" page now shows the total of the cart.";
    assert_eq!(
        title(quoted),
        "The \"What is next?\" page now shows the total of the cart (cart.ts)"
    );
    let list = "The guide of the shop was expanded to three pages, covering:\n\n- Carts\n- Tills";
    assert_eq!(title(list), "The guide of the shop was expanded to three pages (cart.ts)");
}

#[test]
fn a_plan_is_called_by_its_heading() {
    let path = "/home/ana/.claude/plans/giggly-doodling-toast.md";
    let text = "# Plan: Show the address of the shop\n\n## Context\n\nIt is missing.";
    let written = serde_json::json!({"file_path": path, "content": text});
    let said = "I have written the plan and wait for your approval of all of its parts.";
    let title = |tool| first_title("Show the address", vec![tool], said);
    let planned = "Planned: Show the address of the shop";
    assert_eq!(title(tool("Write", &written, &serde_json::json!({}))), planned);
    let known = serde_json::json!({"originalFile": text});
    let edited = serde_json::json!({"file_path": path, "old_string": "a", "new_string": "b"});
    assert_eq!(title(tool("Edit", &edited, &known)), planned);
}

#[test]
fn an_empty_result_and_an_interim_report_leave_no_row() {
    let read = || tool("Read", &serde_json::json!({"file_path": "/p/cart.ts"}), &Value::Null);
    let said = "The cart only adds static strings, reads no input of a guest and sends nothing to \
                another machine, so that there is no way in for anybody.";
    let result = |findings: Value, said: &str| {
        let output =
            tool("StructuredOutput", &serde_json::json!({"findings": findings}), &Value::Null);
        first_title("Review this change. Be thorough.", vec![read(), output], said)
    };
    let (none, one) = (serde_json::json!([]), serde_json::json!([{"file": "cart.ts"}]));
    assert_eq!(result(none.clone(), said), "");
    assert_ne!(result(one, said), "");
    let long = format!("{said}\n\n").repeat(8).replacen("The cart", "The till", 7);
    assert_eq!(result(none, &long), "Nothing found: Review this change (cart.ts)");
    let interim = "The review of the cart is still running in the background, with the same task \
                   as before. I'll report when it is done, and go on with the till after that.";
    assert_eq!(first_title("go on", vec![read()], interim), "");
    let done = "The review of the cart found that it rounds twice, once for each line and once for \
                the total of all lines, which is off by a cent for three of the ten carts.";
    assert_ne!(first_title("go on", vec![read()], done), "");
}

#[test]
fn no_answer_of_a_long_form_is_lost() {
    let answers: serde_json::Map<String, Value> = ["database", "cache", "queue", "log", "index"]
        .map(|part| {
            (
                format!("Which {part} should the carts use?"),
                format!("The {part} of the shop").into(),
            )
        })
        .into_iter()
        .collect();
    let form = tool("AskUserQuestion", &Value::Null, &serde_json::json!({"answers": answers}));
    let reply = Recorded { tools: vec![form], is_over: true, ..Recorded::default() }.extract();
    assert_eq!(reply.matches("<type>decision</type>").count(), 3, "{reply}");
    assert_eq!(reply.matches("<fact>Also answered: The ").count(), 2, "{reply}");
}

#[test]
fn a_form_keeps_what_the_chosen_option_means() {
    let question = "Which database should the carts use?";
    let options = serde_json::json!([
        {"label": "SQLite", "description": "One file, no server"},
        {"label": "Postgres", "description": "A server"}
    ]);
    let form = serde_json::json!({"questions": [{"question": question, "options": options}]});
    let reply = |answer: &str| {
        let (input, output) =
            (form.to_string(), serde_json::json!({"answers": {question: answer}}));
        let name = "AskUserQuestion".to_owned();
        let tools = vec![Tool { name, input, output: output.to_string(), ..Tool::default() }];
        Recorded { tools, is_over: true, ..Recorded::default() }.extract()
    };
    let chosen = reply("SQLite");
    assert!(chosen.contains("→ SQLite — One file, no server"), "{chosen}");
    let stated = reply("There is a database in the cellar");
    assert!(stated.contains("Stated by the user") && !stated.contains("decision"), "{stated}");
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Parses turns written by hand.
fn written(json: &str) -> Vec<Recorded> {
    let turns: Vec<Value> = serde_json::from_str(json).unwrap();
    let tool = |tool: &Value| {
        let output = match &tool["output"] {
            Value::String(failure) => failure.clone(),
            output => output.to_string(),
        };
        let failed = tool["failed"] == true;
        let agent = tool["agent"].as_str().map(str::to_owned);
        Tool { name: text(&tool["tool"]), input: tool["input"].to_string(), output, failed, agent }
    };
    let turn = |turn: &Value| Recorded {
        cwd: text(&turn["cwd"]),
        prompt: text(&turn["prompt"]),
        tools: turn["tools"].as_array().unwrap().iter().map(tool).collect(),
        answer: turn["answer"].as_str().map(str::to_owned),
        is_over: turn["is_over"] != false,
        is_interrupted: turn["is_interrupted"] == true,
    };
    turns.iter().map(turn).collect()
}

/// Builds the turns of a session from recorded hook payloads.
fn sent(payloads: &[Value]) -> Vec<Recorded> {
    let mut turns = Vec::new();
    let mut turn = Recorded::default();
    for payload in payloads {
        turn.cwd = text(&payload["cwd"]);
        match payload["hook_event_name"].as_str().unwrap() {
            "UserPromptSubmit" if turn.prompt.is_empty() => turn.prompt = text(&payload["prompt"]),
            "PostToolUse" | "PostToolUseFailure" => turn.tools.push(Tool {
                name: text(&payload["tool_name"]),
                input: payload["tool_input"].to_string(),
                output: payload["error"]
                    .as_str()
                    .map_or_else(|| payload["tool_response"].to_string(), str::to_owned),
                failed: payload["error"].is_string(),
                agent: payload["agent_type"].as_str().map(str::to_owned),
            }),
            "Stop" => {
                turn.answer = payload["last_assistant_message"].as_str().map(str::to_owned);
                turn.is_over = true;
                turns.push(std::mem::take(&mut turn));
            }
            _ => {}
        }
    }
    turns
}

/// Formats the observations of a turn for the expected file.
fn shown(turn: &Recorded) -> String {
    let reply = turn.extract();
    let read = read_reply(&reply, &Mode::code().kinds());
    assert_ne!(read.verdict, Verdict::Unreadable, "{reply}");
    assert!(!read.cut, "{reply}");
    let first = turn.prompt.lines().next().unwrap_or_default();
    let mut out = format!("==== {first}\n");
    observations(&mut out, &read);
    summary(&mut out, &read);
    out
}

fn observations(out: &mut String, reply: &Reply) {
    for observation in &reply.observations {
        let title = observation.title.as_deref().unwrap_or_default();
        writeln!(out, "\n[{}] {title}", observation.kind).unwrap();
        line(out, "", observation.subtitle.as_deref());
        for fact in &observation.facts {
            line(out, "- ", Some(fact));
        }
        line(out, "> ", observation.narrative.as_deref());
        line(out, "concepts: ", Some(&observation.concepts.join(", ")));
        line(out, "read: ", Some(&observation.files_read.join(" ")));
        line(out, "modified: ", Some(&observation.files_modified.join(" ")));
    }
    if reply.observations.is_empty() {
        out.push_str("\n(no observation)\n");
    }
}

fn summary(out: &mut String, reply: &Reply) {
    let Some(summary) = &reply.summary else {
        out.push_str("\n(no summary)\n\n");
        return;
    };
    out.push_str("\nsummary\n");
    line(out, "request: ", summary.request.as_deref());
    line(out, "investigated: ", summary.investigated.as_deref());
    line(out, "learned: ", summary.learned.as_deref());
    line(out, "completed: ", summary.completed.as_deref());
    line(out, "next steps: ", summary.next_steps.as_deref());
    line(out, "notes: ", summary.notes.as_deref());
    line(out, "read: ", Some(&summary.files_read.join(" ")));
    line(out, "edited: ", Some(&summary.files_edited.join(" ")));
    out.push('\n');
}

fn line(out: &mut String, label: &str, text: Option<&str>) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        writeln!(out, "    {label}{}", text.replace('\n', "\n        ")).unwrap();
    }
}

/// The lines that only one side contains, in order.
fn difference(expected: &str, found: &str) -> String {
    let mut out = String::new();
    for (sign, these, those) in [('-', expected, found), ('+', found, expected)] {
        let others: Vec<&str> = those.lines().collect();
        for line in these.lines().filter(|line| !others.contains(line)) {
            writeln!(out, "{sign} {line}").unwrap();
        }
    }
    out
}

/// All fixtures, by name.
fn fixtures() -> BTreeMap<String, Vec<Recorded>> {
    let mut found = BTreeMap::new();
    for path in
        files("tests/fixtures/extract").filter(|path| path.extension() == Some("json".as_ref()))
    {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        found.insert(name, written(&fs::read_to_string(&path).unwrap()));
    }
    let mut sessions: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for path in files("tests/fixtures/hooks").filter(|path| path.is_file()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let scenario = name.split('.').next().unwrap().to_owned();
        let payload = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        sessions.entry(scenario).or_default().push(payload);
    }
    found.extend(sessions.into_iter().map(|(name, payloads)| (name, sent(&payloads))));
    found
}

/// The files of a directory, sorted by name.
fn files(directory: &str) -> impl Iterator<Item = PathBuf> {
    let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(directory);
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter()
}

#[test]
fn turns_are_remembered_as_expected() {
    let fixtures = fixtures();
    assert!(fixtures.len() >= 18, "{:?}", fixtures.keys());
    let mut differences = String::new();
    for (name, turns) in fixtures {
        let found: String = turns.iter().map(shown).collect();
        let snapshot = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
            .join("tests/fixtures/extract")
            .join(name)
            .with_extension("txt");
        if env::var_os("UPDATE_EXPECTED").is_some() {
            fs::write(&snapshot, &found).unwrap();
        }
        let expected = fs::read_to_string(&snapshot).unwrap_or_default();
        if expected != found {
            let difference = difference(&expected, &found);
            write!(differences, "{}\n{difference}\n", snapshot.display()).unwrap();
        }
    }
    assert!(differences.is_empty(), "{differences}\nset UPDATE_EXPECTED=1 to accept");
}

#[test]
fn titles_in_the_digest_are_not_repeated() {
    let tools = vec![ToolView {
        tool: "Write",
        input: r#"{"file_path":"/p/a.rs","content":"fn one() {}"}"#,
        output: "{}",
        ..ToolView::default()
    }];
    let turn = Turn { cwd: "/p", tools, is_over: true, ..Turn::default() };
    let mode = Mode::code();
    assert!(
        extract(&turn, &mode, Verbosity::Normal).contains("<title>Created a.rs with `one`</title>")
    );
    let known = Turn { digest: Some("- Created a.rs with `one`"), ..turn };
    assert!(!extract(&known, &mode, Verbosity::Normal).contains("<observation>"));
}

#[test]
fn every_file_of_a_patch_counts_as_changed() {
    let patch = "\
        *** Begin Patch\\n*** Add File: a.rs\\n+fn one() {}\\n*** Update File: b.rs\\n@@\\n\
        -fn two() {}\\n+fn three() {}\\n*** End Patch\\n";
    let input = format!(r#"{{"command":"{patch}"}}"#);
    let tools = vec![ToolView {
        tool: "apply_patch",
        input: &input,
        output: "\"done\"",
        ..ToolView::default()
    }];
    let turn = Turn { cwd: "/p", prompt: "Add one", tools, is_over: true, ..Turn::default() };
    let reply = extract(&turn, &Mode::code(), Verbosity::Normal);
    assert!(reply.contains("a.rs") && reply.contains("b.rs"), "{reply}");
    assert!(
        reply.contains("`one`") && reply.contains("`fn two() {}` → `fn three() {}`"),
        "{reply}"
    );
}

#[test]
fn failures_of_linters_and_of_edited_tests_are_not_remembered() {
    let tool = |name: &str, input: String, output: &str, failed| Tool {
        name: name.into(),
        input,
        output: output.into(),
        failed,
        ..Tool::default()
    };
    let is_remembered = |command: &str, edited: &str| {
        let command = format!(r#"{{"command":"{command}"}}"#);
        let write =
            |path: &str| format!(r#"{{"file_path":"/p/{path}","content":"export const a = 1"}}"#);
        let turn = Recorded {
            cwd: "/p".into(),
            prompt: "Add a page for the cart".into(),
            tools: vec![
                tool("Write", write("cart.ts"), "{}", false),
                tool("Bash", command.clone(), "Exit code 1\nError: the cart has no price", true),
                tool("Write", write(edited), "{}", false),
                tool("Bash", command, r#"{"stdout":"ok","stderr":""}"#, false),
            ],
            answer: Some("Added the page for the cart.".into()),
            is_over: true,
            ..Recorded::default()
        };
        turn.extract().contains("Fixed on the way")
    };
    assert!(is_remembered("npm test", "price.ts"));
    assert!(!is_remembered("npm test", "cart.test.ts"));
    assert!(!is_remembered("npm run lint", "price.ts"));
}

#[test]
fn an_incomplete_turn_makes_no_rows() {
    let input = r#"{"file_path":"/p/a.rs","content":"fn one() {}"}"#;
    let tools = vec![ToolView { tool: "Write", input, output: "{}", ..ToolView::default() }];
    let turn = Turn { cwd: "/p", prompt: "Add one", tools, ..Turn::default() };
    assert_eq!(extract(&turn, &Mode::code(), Verbosity::Normal), "<skip/>\n");
}

#[test]
fn a_turn_without_a_prompt_in_which_nothing_happened_is_skipped_readably() {
    let tool = Tool {
        name: "Bash".into(),
        input: r#"{"command":"ls"}"#.into(),
        output: "\"a\"".into(),
        ..Tool::default()
    };
    let answer = Some("done".to_owned());
    let turn = Recorded { tools: vec![tool], answer, is_over: true, ..Recorded::default() };
    let reply = read_reply(&turn.extract(), &["change"]);
    assert_eq!(reply.verdict, Verdict::Nothing, "{}", turn.extract());
}
