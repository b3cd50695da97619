//! Normalizes the tool uses of all clients to Claude Code's tool names, inputs and failed commands,
//! so that rows and observations do not depend on the client.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::incoming::ToolUse;

/// A client's name of a tool, and Claude Code's.
pub(crate) type ToolNames = &'static [(&'static str, &'static str)];

/// Names of input fields that clients use, and Claude Code's.
const FIELDS: &[(&str, &str)] = &[
    ("path", "file_path"),
    ("filePath", "file_path"),
    ("absolute_path", "file_path"),
    ("old_str", "old_string"),
    ("new_str", "new_string"),
    ("oldString", "old_string"),
    ("newString", "new_string"),
    ("replaceAll", "replace_all"),
    ("file_text", "content"),
];

/// Converts a tool and its input to the names that Claude Code uses. Tools that are not in the
/// table keep theirs.
pub(crate) fn rename(used: &mut ToolUse<'_>, names: ToolNames) {
    if let Some((_, ours)) = names.iter().find(|(theirs, _)| *theirs == used.tool) {
        used.tool = Cow::Borrowed(ours);
    }
    if !matches!(&*used.tool, "Read" | "Edit" | "Write") {
        return;
    }
    let Ok(Value::Object(input)) = serde_json::from_str(&used.input) else { return };
    if !FIELDS.iter().any(|(theirs, _)| input.contains_key(*theirs)) {
        return;
    }
    let ours = |name: String| match FIELDS.iter().find(|(theirs, _)| *theirs == name) {
        Some((_, ours)) => (*ours).to_owned(),
        None => name,
    };
    let input: Map<String, Value> =
        input.into_iter().map(|(name, value)| (ours(name), value)).collect();
    used.input = Value::Object(input).to_string().into();
}

/// The result of a shell command: its output, or a failure that starts with the exit code.
pub(crate) fn command_result(used: &mut ToolUse<'_>, exit_code: i64, output: &str) {
    if exit_code == 0 {
        used.output = json!(output).to_string().into();
        return;
    }
    used.has_failed = true;
    used.output = Cow::Borrowed("");
    used.error = command_error(exit_code, output).into();
}

/// The error of a command that failed.
pub(super) fn command_error(exit_code: i64, output: &str) -> String {
    format!("Exit code {exit_code}\n{}", output.trim_end())
}

/// Normalizes a patch in the syntax of `apply_patch`. If it concerns one file, the tool use becomes
/// an `Edit` or a `Write` of that file; otherwise an `apply_patch` whose input is the patch.
pub(super) fn patch(used: &mut ToolUse<'_>, patch: &str) {
    let whole = || ("apply_patch", json!({ "command": patch }));
    let (tool, input) = single_file(patch).unwrap_or_else(whole);
    used.tool = Cow::Borrowed(tool);
    used.input = input.to_string().into();
}

fn single_file(text: &str) -> Option<(&'static str, Value)> {
    let mut lines = text.trim().lines().map(str::trim_end);
    lines.next().filter(|line| *line == "*** Begin Patch")?;
    let header = lines.next()?;
    let mut body: Vec<&str> = lines.collect();
    body.pop().filter(|line| *line == "*** End Patch")?;
    change_of(header, &body)
}

/// The changes of a patch, each as the tool and the input that would make it. Deleted and moved
/// files are omitted.
pub fn patched_files(text: &str) -> Vec<(&'static str, Value)> {
    let lines: Vec<&str> = text.trim().lines().map(str::trim_end).collect();
    let is_header = |line: &&str| line.starts_with("*** ") && *line != "*** End of File";
    let headers: Vec<usize> = (0..lines.len()).filter(|at| is_header(&lines[*at])).collect();
    let parts = headers.windows(2).map(|pair| (lines[pair[0]], &lines[pair[0] + 1..pair[1]]));
    parts.filter_map(|(header, body)| change_of(header, body)).collect()
}

/// A change of one file, from its header and the lines below.
fn change_of(header: &str, body: &[&str]) -> Option<(&'static str, Value)> {
    if body.iter().any(|line| line.starts_with("*** ") && *line != "*** End of File") {
        return None;
    }
    if let Some(path) = header.strip_prefix("*** Add File: ") {
        let content: String = body
            .iter()
            .map(|line| format!("{}\n", line.strip_prefix('+').unwrap_or(line)))
            .collect();
        return Some(("Write", json!({"file_path": path, "content": content})));
    }
    let path = header.strip_prefix("*** Update File: ")?;
    let hunks = body.split(|line| line.starts_with("@@")).filter(|hunk| !hunk.is_empty());
    let edits: Vec<Value> = hunks
        .map(|hunk| {
            let side = |sign: char| {
                let kept = hunk.iter().filter_map(|line| match line.chars().next() {
                    Some(first) if first == sign || first == ' ' => Some(&line[1..]),
                    None => Some(""),
                    _ => None,
                });
                kept.collect::<Vec<_>>().join("\n")
            };
            json!({"old_string": side('-'), "new_string": side('+')})
        })
        .collect();
    match &edits[..] {
        [] => None,
        [edit] => {
            let input = json!({"file_path": path, "old_string": edit["old_string"],
                "new_string": edit["new_string"]});
            Some(("Edit", input))
        }
        _ => Some(("Edit", json!({"file_path": path, "edits": edits}))),
    }
}

/// The content of `<tag>…</tag>` around a text, trimmed; the text itself if there is none.
pub(super) fn without_wrapper<'t>(text: &'t str, tag: &str) -> &'t str {
    let inside = text.trim().strip_prefix(&format!("<{tag}>"));
    inside.and_then(|text| text.strip_suffix(&format!("</{tag}>"))).unwrap_or(text).trim()
}

/// Output and exit code in the report about a command from Gemini and related clients: lines such
/// as `Output: …` and `Exit Code: 3`, the latter only after a failure.
pub(super) fn command_report(text: &str) -> Option<(i64, &str)> {
    const ENDS: &[&str] = &[
        "\nError: ",
        "\nExit Code: ",
        "\nSignal: ",
        "\nBackground PIDs: ",
        "\nProcess Group PGID: ",
    ];
    let start = match text.strip_prefix("Output: ") {
        Some(_) => "Output: ".len(),
        None => text.find("\nOutput: ")? + "\nOutput: ".len(),
    };
    let report = &text[start..];
    // The report follows the output, which can contain such lines itself.
    let tail = report.len() - report.len().min(REPORT_BYTES_MAX);
    let tail = (tail..=report.len()).find(|at| report.is_char_boundary(*at)).unwrap_or(tail);
    let found = ENDS.iter().filter_map(|end| report[tail..].find(end)).min();
    let end = found.map_or(report.len(), |at| tail + at);
    let code = report[end..].lines().find_map(|line| line.strip_prefix("Exit Code: "));
    let code = code.and_then(|code| code.trim().parse().ok()).unwrap_or(0);
    let output = report[..end].trim_end();
    Some((code, if output == "(empty)" { "" } else { output }))
}

/// The text after the output: a few short lines.
const REPORT_BYTES_MAX: usize = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_of_one_file_is_an_edit_and_of_two_a_patch() {
        let patched = |text: &str| {
            let mut used = ToolUse::default();
            patch(&mut used, text);
            (used.tool.into_owned(), serde_json::from_str::<Value>(&used.input).unwrap())
        };
        let update = "\
            *** Begin Patch\n*** Update File: a.py\n@@\n def f():\n-    x\n+    y\n\
            *** End Patch\n";
        let edit = json!({"file_path": "a.py", "old_string": "def f():\n    x",
            "new_string": "def f():\n    y"});
        assert_eq!(patched(update), ("Edit".into(), edit));
        let two_hunks = update.replace("*** End", "@@ class A\n-1\n+2\n*** End");
        assert_eq!(
            patched(&two_hunks).1["edits"][1],
            json!({"old_string": "1", "new_string": "2"})
        );
        let add = "*** Begin Patch\n*** Add File: n.md\n+one\n+two\n*** End Patch";
        let write = json!({"file_path": "n.md", "content": "one\ntwo\n"});
        assert_eq!(patched(add), ("Write".into(), write));
        for other in [
            "*** Begin Patch\n*** Add File: a\n+1\n*** Add File: b\n+2\n*** End Patch\n",
            "*** Begin Patch\n*** Delete File: a\n*** End Patch\n",
            "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-1\n+2\n*** End Patch\n",
            "*** Update File: a\n",
            "",
        ] {
            assert_eq!(
                patched(other),
                ("apply_patch".into(), json!({"command": other})),
                "{other}"
            );
        }
    }

    #[test]
    fn each_file_of_a_patch_is_a_change() {
        let patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-1\n+2\n*** Delete File: b.py\n\
                     *** Add File: c.md\n+one\n*** End Patch\n";
        let edit = json!({"file_path": "a.py", "old_string": "1", "new_string": "2"});
        let write = json!({"file_path": "c.md", "content": "one\n"});
        assert_eq!(patched_files(patch), [("Edit", edit), ("Write", write)]);
        assert_eq!(patched_files("no patch"), []);
    }

    #[test]
    fn a_report_of_a_command_gives_its_output_and_exit_code() {
        for (text, expected) in [
            ("Output: out\nerr\nExit Code: 3\nProcess Group PGID: 7", Some((3, "out\nerr"))),
            (
                "Command: x\nDirectory: (root)\nOutput: a\nError: (none)\nExit Code: 0",
                Some((0, "a")),
            ),
            ("Output: one\nProcess Group PGID: 28", Some((0, "one"))),
            ("Output: ", Some((0, ""))),
            ("Output: (empty)\nProcess Group PGID: 28", Some((0, ""))),
            ("some text", None),
        ] {
            assert_eq!(command_report(text), expected, "{text}");
        }
        let long =
            format!("Output: {}\nExit Code: 9\n{}\nExit Code: 2", "é".repeat(9), "ü".repeat(3_000));
        assert_eq!(command_report(&long).unwrap().0, 2, "not a line of the output");
    }

    #[test]
    fn names_of_tools_and_fields_become_the_same() {
        let mut used = ToolUse {
            tool: "edit".into(),
            input: r#"{"filePath":"a","oldString":"1","x":2}"#.into(),
            ..ToolUse::default()
        };
        rename(&mut used, &[("edit", "Edit")]);
        assert_eq!(
            (&*used.tool, &*used.input),
            ("Edit", r#"{"file_path":"a","old_string":"1","x":2}"#)
        );
        let mut other = ToolUse {
            tool: "lookup".into(),
            input: r#"{"path":"a"}"#.into(),
            ..ToolUse::default()
        };
        rename(&mut other, &[("edit", "Edit")]);
        assert_eq!((&*other.tool, &*other.input), ("lookup", r#"{"path":"a"}"#));
    }
}
