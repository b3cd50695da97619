//! Checks whether a recorded edit wrote a line. Compares complete lines, in one pass over the edit.

use claude_mem_events::ToolUsed;
use serde_json::Value;

/// Members of an input with the text before and after an edit.
const OLD: [&str; 2] = ["old_string", "old_str"];
const NEW: [&str; 7] =
    ["new_string", "new_str", "content", "file_text", "new_source", "insert_text", "contents"];
/// Members of an input that contain a patch.
const PATCH: [&str; 3] = ["patch", "input", "command"];

/// Whether the edit added this line.
pub(super) fn wrote_line(used: &ToolUsed, line: &str) -> bool {
    let output = serde_json::from_str(&used.output).unwrap_or(Value::Null);
    // The input of an edit within a line contains only a part of it. The client's patch has
    // complete lines.
    if let Some(hunks) = output["structuredPatch"].as_array().filter(|hunks| !hunks.is_empty()) {
        let lines = hunks.iter().filter_map(|hunk| hunk["lines"].as_array()).flatten();
        let mut added = lines.filter_map(|line| line.as_str()?.strip_prefix('+'));
        return added.any(|added| added.trim_end_matches('\r') == line);
    }
    let input = serde_json::from_str(&used.input).unwrap_or(Value::Null);
    let parts = input["edits"].as_array().map_or(&[][..], Vec::as_slice);
    let is_patched = || {
        let patches = PATCH.iter().filter_map(|name| input[name].as_str());
        patches.flat_map(str::lines).any(|patched| patched.strip_prefix('+') == Some(line))
    };
    adds(&input, line) || parts.iter().any(|part| adds(part, line)) || is_patched()
}

/// Whether one replacement adds the line: the new text contains it and the old one does not.
fn adds(part: &Value, line: &str) -> bool {
    let has = |names: &[&str]| {
        let texts = names.iter().filter_map(|name| part[name].as_str());
        texts.flat_map(str::lines).any(|found| found == line)
    };
    has(&NEW) && !has(&OLD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wrote(input: &Value, output: &Value, line: &str) -> bool {
        let (input, output) = (input.to_string(), output.to_string());
        wrote_line(&ToolUsed { input, output, ..ToolUsed::default() }, line)
    }

    #[test]
    fn a_line_is_written_if_the_edit_adds_it_whole() {
        let edit = json!({"old_string": "a\nb", "new_string": "a\n  c"});
        let table = [("  c", true), ("c", false), ("a", false), ("b", false)];
        for (line, expected) in table {
            assert_eq!(wrote(&edit, &Value::Null, line), expected, "{line}");
        }
        let file = json!({"content": "one\r\ntwo\n"});
        assert!(wrote(&file, &Value::Null, "one") && wrote(&file, &Value::Null, "two"));
        let several = json!({"edits": [{"old_string": "x", "new_string": "y"}]});
        assert!(wrote(&several, &Value::Null, "y") && !wrote(&several, &Value::Null, "x"));
        let patch = json!({"input": "*** Update File: a\n@@\n-old\n+new"});
        assert!(wrote(&patch, &Value::Null, "new") && !wrote(&patch, &Value::Null, "old"));
        assert!(!wrote(&json!([7]), &json!("text"), "7"));
    }

    #[test]
    fn the_patch_of_the_client_completes_an_edit_within_a_line() {
        let edit = json!({"old_string": "1", "new_string": "2"});
        let output =
            json!({"structuredPatch": [{"lines": [" let a;", "-let b = 1;", "+let b = 2;"]}]});
        assert!(wrote(&edit, &output, "let b = 2;"));
        assert!(!wrote(&edit, &output, "let b = 1;") && !wrote(&edit, &output, "2"));
        let created = json!({"structuredPatch": []});
        assert!(wrote(&json!({"content": "x"}), &created, "x"));
    }
}
