//! Which files a tool was told to read or write, from its input alone.

use serde::Deserialize;
use std::borrow::Cow;

/// Files that the input of one tool use names, as given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) read: Vec<String>,
    pub(crate) written: Vec<String>,
}

/// Tools that write the file they name; of a server's tool the last part of its name counts.
const WRITERS: &[&str] = &[
    "edit",
    "write",
    "multiedit",
    "notebookedit",
    "write_file",
    "edit_file",
    "create_file",
    "str_replace_editor",
    "str_replace_based_edit_tool",
];
/// Tools whose input is a patch that names its files itself.
const PATCHERS: &[&str] = &["apply_patch", "applypatch"];
/// What a patch says before the name of a file.
const PATCH_MARKS: &[&str] =
    &["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ", "+++ b/"];

#[derive(Deserialize, Default)]
#[serde(default)]
struct Input<'a> {
    #[serde(borrow)]
    file_path: Option<Cow<'a, str>>,
    #[serde(borrow)]
    notebook_path: Option<Cow<'a, str>>,
    #[serde(borrow)]
    path: Option<Cow<'a, str>>,
    #[serde(borrow)]
    command: Option<Cow<'a, str>>,
    #[serde(borrow)]
    patch: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "input")]
    text: Option<Cow<'a, str>>,
}

/// What the JSON input of `tool` names. Anything unexpected names nothing.
pub(crate) fn named(tool: &str, input: &str) -> Named {
    let tool = tool.rsplit("__").next().unwrap_or(tool).to_ascii_lowercase();
    if PATCHERS.contains(&tool.as_str()) {
        return Named { read: Vec::new(), written: patched(input) };
    }
    // Most tools name no file, and their inputs may be long.
    if !input.contains("path\"") {
        return Named::default();
    }
    let Ok(input) = serde_json::from_str::<Input<'_>>(input) else { return Named::default() };
    let is_view = input.command.as_deref() == Some("view");
    let paths = [input.file_path, input.notebook_path, input.path];
    let paths = paths.into_iter().flatten().map(Cow::into_owned).filter(|path| !path.is_empty());
    match WRITERS.contains(&tool.as_str()) && !is_view {
        true => Named { read: Vec::new(), written: paths.collect() },
        false => Named { read: paths.collect(), written: Vec::new() },
    }
}

fn patched(input: &str) -> Vec<String> {
    let parsed = serde_json::from_str::<Input<'_>>(input).unwrap_or_default();
    let patch = parsed.patch.or(parsed.text).or(parsed.command).unwrap_or_default();
    let file =
        |line: &str| PATCH_MARKS.iter().find_map(|mark| line.strip_prefix(mark)).map(str::to_owned);
    patch.lines().filter_map(|line| file(line.trim_end())).collect()
}

/// A path as it is kept: relative to the project where it is inside of it, without `.` and `..`.
pub(crate) fn relative(path: &str, cwd: &str, root: &str) -> String {
    let path = path.trim();
    let is_absolute = path.starts_with('/');
    let whole = match is_absolute || cwd.is_empty() {
        true => path.to_owned(),
        false => format!("{cwd}/{path}"),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            // Above the root there is only the root; above a relative path there may be anything.
            ".." if whole.starts_with('/') || parts.last().is_some_and(|part| *part != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    if !whole.starts_with('/') {
        return joined;
    }
    let root = root.trim_matches('/');
    match joined.strip_prefix(root).and_then(|rest| rest.strip_prefix('/')) {
        Some(inside) if !root.is_empty() => inside.to_owned(),
        _ => format!("/{joined}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tools_that_write_name_written_files() {
        let table = [
            ("Edit", r#"{"file_path":"/p/a.rs","old_string":"x"}"#, "", "/p/a.rs"),
            ("Write", r#"{"content":"\"path\"","file_path":"/p/a.rs"}"#, "", "/p/a.rs"),
            ("NotebookEdit", r#"{"notebook_path":"/p/n.ipynb"}"#, "", "/p/n.ipynb"),
            ("Read", r#"{"file_path":"/p/a.rs"}"#, "/p/a.rs", ""),
            ("Bash", r#"{"command":"echo > /p/a.rs"}"#, "", ""),
            ("mcp__files__write_file", r#"{"path":"b"}"#, "", "b"),
            ("str_replace_editor", r#"{"command":"view","path":"b"}"#, "b", ""),
            ("apply_patch", r#"{"input":"*** Update File: c\n@@\n-a\n+*** Add File: x"}"#, "", "c"),
            ("Edit", r#"{"file_path":7}"#, "", ""),
            ("Edit", "not json with path\"", "", ""),
        ];
        for (tool, input, read, written) in table {
            let named = named(tool, input);
            assert_eq!(
                (named.read.join(","), named.written.join(",")),
                (read.into(), written.into())
            );
        }
    }

    #[test]
    fn paths_inside_the_project_are_relative_to_it() {
        let table = [
            ("/p/src/a.rs", "/p", "src/a.rs"),
            ("/p2/a.rs", "/p", "/p2/a.rs"),
            ("a.rs", "/p/src", "src/a.rs"),
            ("../b.rs", "/p/src", "b.rs"),
            ("./x//y.rs", "/p", "x/y.rs"),
            ("../../etc", "/p", "/etc"),
        ];
        for (path, cwd, kept) in table {
            assert_eq!(relative(path, cwd, "/p"), kept, "{path}");
        }
        assert_eq!(relative("./a.rs", "", "/p"), "a.rs");
    }
}
