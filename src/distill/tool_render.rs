//! Renders a tool use for a prompt: diffs instead of files, text instead of JSON.

use std::fmt::Write as _;

use serde_json::Value;

use crate::escape::{elided, without_ansi};

/// A tool use to render.
#[derive(Debug, Clone, Default)]
pub struct ToolView<'a> {
    /// As the assistant calls it.
    pub tool: &'a str,
    /// The client's id of it; empty if unknown. Remarks refer to it.
    pub tool_use_id: &'a str,
    /// JSON.
    pub input: &'a str,
    /// JSON; for a failure, its text.
    pub output: &'a str,
    /// In microseconds since 1970.
    pub at: i64,
    pub cwd: &'a str,
    pub failed: bool,
    /// The commit that it made, in hex; empty if it made none or the hash is unknown.
    pub commit: &'a str,
    /// The type of the subagent that used it, if any.
    pub agent: Option<&'a str>,
}

/// A rendered tool use, not yet escaped.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ToolText {
    pub(super) input: String,
    /// Empty if the input is sufficient.
    pub(super) output: String,
}

/// Files that were only read or listed are shortened to a sample, because they can be read again.
const SAMPLE_BYTES: usize = 400;

/// A successful command keeps its start and end; a new file its start.
const ORDINARY_BYTES: usize = 2_400;

/// A subagent's report is a result, so it gets this many times the space of other parts.
pub(super) const REPORT_PARTS: usize = 3;

/// Renders one tool use. `input` and `output` are JSON or plain text. Each part is limited to about
/// `bytes_max`, a report to three times as much.
pub(super) fn render(view: &ToolView<'_>, bytes_max: usize) -> ToolText {
    let input = parsed(view.input);
    let output = parsed(view.output);
    let text = match view.tool {
        "Bash" | "PowerShell" => shell(&input, &output),
        "Read" | "NotebookRead" => read(&input, &output),
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => change(&input, &output),
        "AskUserQuestion" => form(&input, &output),
        "TodoWrite" if input["todos"].is_array() => tasks(&input),
        "Task" | "Agent" if output["content"].is_array() => {
            ToolText { input: plain(&input), output: plain(&output["content"]) }
        }
        _ => ToolText { input: plain(&input), output: plain(&without_echo(output, &input)) },
    };
    let output_bytes_max = match view.tool {
        "Read" | "NotebookRead" | "Grep" | "Glob" | "LS" if !view.failed => {
            SAMPLE_BYTES.min(bytes_max)
        }
        "Task" | "Agent" => bytes_max * REPORT_PARTS,
        "Bash" | "PowerShell" if !view.failed => ORDINARY_BYTES.min(bytes_max),
        _ => bytes_max,
    };
    let input_bytes_max = match view.tool {
        "Write" => ORDINARY_BYTES.min(bytes_max),
        _ => bytes_max,
    };
    let fit = |text: &str, max: usize| elided(without_ansi(text).trim_end(), max).into_owned();
    ToolText {
        input: fit(&text.input, input_bytes_max),
        output: fit(&text.output, output_bytes_max),
    }
}

/// The questions of a form with their options, and the user's answers.
fn form(input: &Value, output: &Value) -> ToolText {
    let mut asked = Vec::new();
    for question in input["questions"].as_array().into_iter().flatten() {
        asked.push(text_at(question, "question").unwrap_or_default().to_owned());
        for option in question["options"].as_array().into_iter().flatten() {
            let label = text_at(option, "label").unwrap_or_default();
            let about = text_at(option, "description").filter(|text| !text.is_empty());
            asked.push(about.map_or(format!("- {label}"), |about| format!("- {label}: {about}")));
        }
    }
    let answers = output["answers"].as_object().map(|answers| {
        let line =
            |(question, answer): (&String, &Value)| format!("{question} → {}", inner(answer));
        answers.iter().map(line).collect::<Vec<_>>().join("\n")
    });
    let input = if asked.is_empty() { plain(input) } else { asked.join("\n") };
    ToolText { input, output: answers.unwrap_or_else(|| plain(output)) }
}

/// A task list: the output only repeats it.
fn tasks(input: &Value) -> ToolText {
    let todos = input["todos"].as_array().map_or(&[][..], Vec::as_slice);
    let line = |todo: &Value| {
        let (status, task) = (text_at(todo, "status"), text_at(todo, "content"));
        format!("- [{}] {}", status.unwrap_or_default(), task.unwrap_or_default())
    };
    ToolText { input: todos.iter().map(line).collect::<Vec<_>>().join("\n"), output: String::new() }
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|_| Value::String(json.to_owned()))
}

/// Removes the fields of an output that repeat the input, such as the prompt of a subagent that
/// runs in the background.
fn without_echo(mut output: Value, input: &Value) -> Value {
    if let Value::Object(fields) = &mut output {
        fields.retain(|name, value| input.get(name) != Some(value));
    }
    output
}

/// The command and its output. The output of a failure is text that starts with the exit code.
fn shell(input: &Value, output: &Value) -> ToolText {
    let command = format!("$ {}", text_at(input, "command").unwrap_or_default());
    let Value::Object(fields) = output else {
        return ToolText { input: command, output: plain(output) };
    };
    let part = |key| fields.get(key).and_then(Value::as_str).map_or("", str::trim_end);
    let mut printed = part("stdout").to_owned();
    if !part("stderr").is_empty() {
        write!(printed, "\n[stderr]\n{}", part("stderr")).expect("writing to a string cannot fail");
    }
    if fields.get("interrupted").and_then(Value::as_bool) == Some(true) {
        printed.push_str("\n[interrupted]");
    }
    ToolText { input: command, output: printed }
}

/// The line range of a file, and its text.
fn read(input: &Value, output: &Value) -> ToolText {
    let mut path = path(input).unwrap_or_default().to_owned();
    let file = &output["file"];
    let number = |key: &str| file[key].as_u64();
    if let (Some(start), Some(lines), Some(total)) =
        (number("startLine"), number("numLines"), number("totalLines"))
        && lines < total
    {
        let end = start.saturating_add(lines.saturating_sub(1));
        write!(path, " (lines {start}-{end} of {total})").expect("writing to a string cannot fail");
    }
    let content = match (file["content"].as_str(), output) {
        (Some(content), _) => content.to_owned(),
        (None, Value::Object(_)) => format!("[{}]", text_at(output, "type").unwrap_or("no text")),
        (None, other) => plain(other),
    };
    ToolText { input: path, output: content }
}

/// The diff of a file: as reported by the client, or else built from the strings of the input.
fn change(input: &Value, output: &Value) -> ToolText {
    let path = path(input).or_else(|| text_at(output, "filePath")).unwrap_or_default().to_owned();
    if let Value::String(error) = output {
        return ToolText { input: format!("{path}\n{}", requested(input)), output: error.clone() };
    }
    let reported = hunks(&output["structuredPatch"]);
    let difference = if reported.is_empty() { requested(input) } else { reported };
    ToolText { input: format!("{path}\n{difference}"), output: String::new() }
}

/// `@@ -1,3 +1,3 @@` and its lines, for each hunk.
fn hunks(patch: &Value) -> String {
    let mut text = String::new();
    for hunk in patch.as_array().into_iter().flatten() {
        let number = |key: &str| hunk[key].as_u64().unwrap_or_default();
        writeln!(
            text,
            "@@ -{},{} +{},{} @@",
            number("oldStart"),
            number("oldLines"),
            number("newStart"),
            number("newLines")
        )
        .expect("writing to a string cannot fail");
        for line in hunk["lines"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// The diff from the strings of the input.
fn requested(input: &Value) -> String {
    let mut text = String::new();
    let edits = input["edits"].as_array().map_or(std::slice::from_ref(input), Vec::as_slice);
    for edit in edits {
        prefixed(&mut text, '-', text_at(edit, "old_string"));
        prefixed(&mut text, '+', text_at(edit, "new_string"));
        if edit["replace_all"] == true {
            text.push_str("(everywhere)\n");
        }
    }
    prefixed(&mut text, '+', text_at(input, "content").or_else(|| text_at(input, "new_source")));
    text
}

fn prefixed(text: &mut String, sign: char, block: Option<&str>) {
    for line in block.unwrap_or_default().lines() {
        text.push(sign);
        text.push_str(line);
        text.push('\n');
    }
}

fn path(input: &Value) -> Option<&str> {
    text_at(input, "file_path").or_else(|| text_at(input, "notebook_path"))
}

fn text_at<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}

/// Any value as text: strings unchanged, content blocks joined, objects as `key: value` lines
/// without empty values, deeper levels as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            blocks(items).unwrap_or_else(|| items.iter().map(inner).collect::<Vec<_>>().join("\n"))
        }
        Value::Object(fields) => {
            let present = fields.iter().filter(|(_, value)| !is_blank(value));
            present
                .map(|(key, value)| format!("{key}: {}", inner(value)))
                .collect::<Vec<_>>()
                .join("\n")
        }
        other => other.to_string(),
    }
}

fn inner(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => blocks(items).unwrap_or_else(|| value.to_string()),
        other => other.to_string(),
    }
}

/// The text of an array of content blocks; `None` if it contains anything else.
fn blocks(items: &[Value]) -> Option<String> {
    let text = |block: &Value| match (text_at(block, "type")?, text_at(block, "text")) {
        (_, Some(text)) => Some(text.to_owned()),
        (kind, None) => Some(format!("[{kind}]")),
    };
    let texts: Option<Vec<_>> = items.iter().map(text).collect();
    texts.filter(|texts| !texts.is_empty()).map(|texts| texts.join("\n"))
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `input` and `output`, joined by a line of dashes.
    fn shown(tool: &str, input: &str, output: &str) -> String {
        let text = render(&ToolView { tool, input, output, ..ToolView::default() }, 400);
        format!("{}\n--\n{}", text.input, text.output)
    }

    #[test]
    fn a_form_is_shown_with_its_answers_and_a_task_list_once() {
        let asked = r#"{"questions":[{"question":"Which?","header":"h","options":[
            {"label":"A","description":"fast"},{"label":"B","description":""}]}]}"#;
        let answered = r#"{"answers":{"Which?":"B"}}"#;
        let form = shown("AskUserQuestion", asked, answered);
        assert_eq!(form, "Which?\n- A: fast\n- B\n--\nWhich? → B");
        let tasks = r#"{"todos":[{"content":"a","status":"completed"},
            {"content":"b","status":"pending"}]}"#;
        let list = shown("TodoWrite", tasks, r#"{"oldTodos":[],"newTodos":[{"content":"a"}]}"#);
        assert_eq!(list, "- [completed] a\n- [pending] b\n--\n");
    }

    #[test]
    fn a_command_is_shown_with_its_output() {
        let output = r#"{"stdout":"\u001b[32mok\u001b[0m\n","stderr":"warned\n",
            "interrupted":true,"isImage":false}"#;
        let expected = "$ echo \"<hi>\"\n--\nok\n[stderr]\nwarned\n[interrupted]";
        assert_eq!(shown("Bash", r#"{"command":"echo \"<hi>\""}"#, output), expected);
        let failed = shown("Bash", r#"{"command":"false"}"#, r#""Exit code 3\nout""#);
        assert_eq!(failed, "$ false\n--\nExit code 3\nout");
        assert_eq!(shown("Bash", "{}", "Exit code 3"), "$\n--\nExit code 3");
        let input = r#"{"command":"Get-Date","description":"Show the date"}"#;
        assert_eq!(shown("PowerShell", input, r#"{"stdout":"May"}"#), "$ Get-Date\n--\nMay");
    }

    #[test]
    fn an_edit_shows_the_difference_not_the_file() {
        let input = r#"{"file_path":"/p/a.txt","old_string":"two","new_string":"2\n3"}"#;
        let output = r#"{"filePath":"/p/a.txt","originalFile":"one\ntwo\n","structuredPatch":
            [{"oldStart":1,"oldLines":2,"newStart":1,"newLines":3,
            "lines":[" one","-two","+2","+3"]}]}"#;
        let expected = "/p/a.txt\n@@ -1,2 +1,3 @@\n one\n-two\n+2\n+3\n--\n";
        assert_eq!(shown("Edit", input, output), expected);
        assert_eq!(shown("Edit", input, "{}"), "/p/a.txt\n-two\n+2\n+3\n--\n");
        let failed = shown("Edit", input, r#""String not found""#);
        assert_eq!(failed, "/p/a.txt\n-two\n+2\n+3\n--\nString not found");
        let many = r#"{"file_path":"/a","edits":[
            {"old_string":"x","new_string":"y","replace_all":true},{"new_string":"z"}]}"#;
        assert_eq!(shown("MultiEdit", many, "{}"), "/a\n-x\n+y\n(everywhere)\n+z\n--\n");
    }

    #[test]
    fn a_new_file_is_shown_once() {
        let output = r#"{"type":"create","filePath":"/n","content":"alpha\nbeta\n",
            "structuredPatch":[],"originalFile":null}"#;
        let shown = shown("Write", r#"{"file_path":"/n","content":"alpha\nbeta\n"}"#, output);
        assert_eq!(shown, "/n\n+alpha\n+beta\n--\n");
    }

    #[test]
    fn a_read_file_is_shown_as_path_and_sample() {
        let content = "line\n".repeat(100);
        let output = serde_json::json!({
            "type": "text",
            "file": {"filePath": "/f", "content": content, "numLines": 100, "startLine": 11,
                "totalLines": 900},
        });
        let found = shown("Read", r#"{"file_path":"/f","offset":11}"#, &output.to_string());
        assert!(found.starts_with("/f (lines 11-110 of 900)\n--\nline\n"), "{found}");
        assert!(found.contains("[139 of 499 bytes left out]") && found.len() < 440, "{found}");
        let image = shown(
            "Read",
            r#"{"file_path":"/i.png"}"#,
            r#"{"type":"image","file":{"base64":"AAAA"}}"#,
        );
        assert_eq!(image, "/i.png\n--\n[image]");
    }

    #[test]
    fn other_tools_are_shown_without_their_json() {
        let input = r#"{"text":"he said \"hi\"\nthere","limit":3,
            "all":false,"none":null,"deep":{"a":[1]}}"#;
        let output = r#"[{"type":"text","text":"echo: hello"},{"type":"image","data":"AAAA"}]"#;
        assert_eq!(
            shown("mcp__mem__echo", input, output),
            "text: he said \"hi\"\nthere\nlimit: 3\ndeep: {\"a\":[1]}\n--\necho: hello\n[image]"
        );
        let agent =
            r#"{"status":"completed","content":[{"type":"text","text":"done"}],"isAsync":false}"#;
        assert_eq!(shown("Agent", r#""go""#, agent), "go\n--\ndone");
        assert_eq!(shown("X", "not json", "[1,\"a\"]"), "not json\n--\n1\na");
        let launched = r#"{"status":"async_launched","agentId":"a1","prompt":"look at the cart"}"#;
        assert_eq!(
            shown("Agent", r#"{"prompt":"look at the cart"}"#, launched),
            "prompt: look at the cart\n--\nstatus: async_launched\nagentId: a1"
        );
    }

    #[test]
    fn each_part_keeps_to_its_limit() {
        let output = serde_json::json!({"stdout": "x".repeat(10_000)}).to_string();
        let (tool, input) = ("Bash", r#"{"command":"x"}"#);
        let view = ToolView { tool, input, output: &output, ..ToolView::default() };
        let text = render(&view, 400);
        assert!(text.output.len() < 440 && text.output.contains("[9640 of 10000 bytes left out]"));
    }
}
