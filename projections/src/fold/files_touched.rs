//! Finds the files that a tool use read or wrote, from its input alone.

use serde_json::value::RawValue;
use std::{borrow::Cow, collections::BTreeMap};

/// Files named by the input of one tool use, as given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FilesTouched {
    pub(crate) read: Vec<String>,
    pub(crate) written: Vec<String>,
}

/// Tools that write the file they name. For the tool of an MCP server, the last part of its name
/// counts.
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
/// Tools whose input is a patch that names its files.
const PATCHERS: &[&str] = &["apply_patch", "applypatch"];
/// Markers before a file name in a patch.
const PATCH_MARKS: &[&str] =
    &["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ", "+++ b/"];

/// Fields of an input that name a file, for tools that we know and for those that we do not.
const FILE_FIELDS: [&str; 7] =
    ["file_path", "notebook_path", "path", "file", "filename", "fileName", "uri"];
/// A longer text is the content of a file, not its name.
const NAME_BYTES_MAX: usize = 4096;

/// The fields of an input, as JSON that is not parsed yet.
type Input<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// The files that the JSON input of `tool` names; none if the input is unexpected.
pub(crate) fn named(tool: &str, input: &str) -> FilesTouched {
    let tool = tool.rsplit("__").next().unwrap_or(tool).to_ascii_lowercase();
    if PATCHERS.contains(&tool.as_str()) {
        return FilesTouched { read: Vec::new(), written: patched(input) };
    }
    // Fast path: most tools name no file, and their inputs may be long.
    if !["path\"", "file\"", "name\"", "Name\"", "uri\""].iter().any(|end| input.contains(end)) {
        return FilesTouched::default();
    }
    let Ok(input) = serde_json::from_str::<Input<'_>>(input) else {
        return FilesTouched::default();
    };
    let is_view = text(&input, "command").as_deref() == Some("view");
    let paths = FILE_FIELDS.iter().filter_map(|name| file(&text(&input, name)?)).collect();
    match WRITERS.contains(&tool.as_str()) && !is_view {
        true => FilesTouched { read: Vec::new(), written: paths },
        false => FilesTouched { read: paths, written: Vec::new() },
    }
}

/// A field that is a string.
fn text(input: &Input<'_>, name: &str) -> Option<String> {
    serde_json::from_str(input.get(name)?.get()).ok()
}

/// The name of a file; `None` for other URIs and for other texts.
fn file(name: &str) -> Option<String> {
    let path = name.strip_prefix("file://").unwrap_or(name);
    let is_name = !path.is_empty() && path.len() <= NAME_BYTES_MAX;
    (is_name && !path.contains("://") && !path.contains('\n')).then(|| path.to_owned())
}

fn patched(input: &str) -> Vec<String> {
    let parsed = serde_json::from_str::<Input<'_>>(input).unwrap_or_default();
    let patch = ["patch", "input", "command"].iter().find_map(|name| text(&parsed, name));
    let file =
        |line: &str| PATCH_MARKS.iter().find_map(|mark| line.strip_prefix(mark)).map(str::to_owned);
    patch.unwrap_or_default().lines().filter_map(|line| file(line.trim_end())).collect()
}

/// The stored form of a path: relative to the project if inside it, without `.` and `..`. Windows
/// paths are recognized by their drive or server on every system, so that the same log gives the
/// same rows.
pub(crate) fn relative(path: &str, cwd: &str, root: &str) -> String {
    let is_of_windows = |path: &str| has_drive(path) || is_on_server(path);
    let is_of_windows = [path.trim(), cwd, root].into_iter().any(is_of_windows);
    let [path, cwd, root] = [path.trim(), cwd, root].map(|text| match is_of_windows {
        true => Cow::from(text.replace('\\', "/")),
        false => Cow::from(text),
    });
    let is_absolute = |path: &str| path.starts_with('/') || has_drive(path);
    let whole = match is_absolute(&path) || cwd.is_empty() {
        true => path,
        false => format!("{cwd}/{path}").into(),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            // The parent of the root is the root; the parent of a relative path may be anything.
            ".." if is_absolute(&whole) || parts.last().is_some_and(|part| *part != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    if !is_absolute(&whole) {
        return joined;
    }
    let root = root.trim_matches('/');
    match inside(&joined, root, is_of_windows).filter(|_| !root.is_empty()) {
        Some(inside) => inside.to_owned(),
        None if has_drive(&joined) => joined,
        None if is_of_windows && whole.starts_with("//") => format!("//{joined}"),
        None => format!("/{joined}"),
    }
}

/// The part of the path below the root. Windows paths are compared without case.
fn inside<'a>(path: &'a str, root: &str, is_of_windows: bool) -> Option<&'a str> {
    let (start, rest) = path.split_at_checked(root.len())?;
    let is_root = start == root || is_of_windows && start.eq_ignore_ascii_case(root);
    rest.strip_prefix('/').filter(|_| is_root)
}

/// Whether the path starts like `C:\` or `C:/`.
fn has_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [letter, b':', b'\\' | b'/', ..] if letter.is_ascii_alphabetic())
}

/// Whether the path starts like `\\server\share`.
fn is_on_server(path: &str) -> bool {
    path.starts_with(r"\\")
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
            ("Open", r#"{"uri":"file:///p/a.rs","file":"/p/b.rs"}"#, "/p/b.rs,/p/a.rs", ""),
            ("Open", r#"{"filename":"c","file":{"id":1}}"#, "c", ""),
            ("Fetch", r#"{"uri":"https://x/a.rs","file":"two\nlines"}"#, "", ""),
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

    #[test]
    fn windows_paths_inside_the_project_are_relative_on_every_system() {
        let table = [
            (r"C:\p\src\a.rs", r"C:\p", "src/a.rs"),
            (r"c:\P\src\a.rs", r"C:\p", "src/a.rs"),
            ("C:/p/src/a.rs", r"C:\p", "src/a.rs"),
            (r"D:\p\a.rs", r"C:\p", "D:/p/a.rs"),
            (r"src\a.rs", r"C:\p\src\..", "src/a.rs"),
        ];
        for (path, cwd, kept) in table {
            assert_eq!(relative(path, cwd, r"C:\p"), kept, "{path}");
        }
        assert_eq!(relative(r"a\b.rs", "/p", "/p"), r"a\b.rs", "a name like any other");
        let on_server = |path| relative(path, r"\\nas\share\p\src", r"\\nas\share\p");
        assert_eq!(on_server(r"\\NAS\share\p\src\a.rs"), "src/a.rs");
        assert_eq!(on_server("//nas/share/p/src/a.rs"), "src/a.rs");
        assert_eq!(on_server(r"..\a.rs"), "a.rs");
        assert_eq!(on_server(r"\\nas\other\a.rs"), "//nas/other/a.rs");
    }
}
