//! File changes of a turn: their size, and which definitions they touch.

use serde_json::Value;

use super::names;
use super::text::{add, clip, code, listing, relative};
use crate::turn_prompt::ToolView;

const NAMES_MAX: usize = 12;

/// Maximum number of hunks located in the original file. Each one scans the file from its start.
const HUNKS_MAX: usize = 20;

/// A changed line up to this length is shown in full.
const LINE_CHARS_MAX: usize = 70;

/// All changes of a turn to one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FileChange {
    /// As passed to the tool.
    pub(super) path: String,
    /// Relative to the project.
    pub(super) shown: String,
    /// The turn created the file.
    pub(super) is_new: bool,
    /// Number of lines.
    pub(super) added: usize,
    /// Number of lines.
    pub(super) removed: usize,
    /// Definitions added.
    pub(super) gained: Vec<String>,
    /// Definitions removed.
    pub(super) lost: Vec<String>,
    /// Definitions with changes in their body.
    pub(super) touched: Vec<String>,
    /// Old and new name.
    pub(super) renamed: Vec<(String, String)>,
    /// Positions of the tool uses that changed it.
    pub(super) at: Vec<usize>,
    /// The only changed line, before and after.
    line: Option<(String, String)>,
}

/// The kind of a file, determined by its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Code that is not a test.
    Source,
    Test,
    /// Prose, configuration, data.
    Other,
}

/// Whether a tool of this name changes the file in its input.
pub(super) fn is_change(tool: &str) -> bool {
    matches!(tool, "Edit" | "MultiEdit" | "Write" | "NotebookEdit")
}

/// The path in the input of a tool.
pub(super) fn path(input: &Value) -> Option<&str> {
    let keys = ["file_path", "notebook_path", "path"];
    keys.iter()
        .find_map(|key| input.get(key))
        .and_then(Value::as_str)
        .filter(|path| !path.is_empty())
}

/// Merges one change into the changes of the turn.
pub(super) fn gather(
    files: &mut Vec<FileChange>,
    view: &ToolView<'_>,
    (input, output): (&Value, &Value),
    (cwd, at): (&str, usize),
) {
    let Some(path) = path(input) else { return };
    if view.failed {
        return;
    }
    let known = files.iter().position(|file| file.path == path);
    let index = known.unwrap_or_else(|| {
        let shown = slashed(relative(path, cwd));
        files.push(FileChange { path: path.to_owned(), shown, ..FileChange::default() });
        files.len() - 1
    });
    let file = &mut files[index];
    file.at.push(at);
    file.is_new |= known.is_none() && view.tool == "Write" && output["type"] != "update";
    let hunks = hunks(input, output);
    let single = if known.is_none() && hunks.len() == 1 { hunks[0].single() } else { None };
    file.line = single;
    for hunk in &hunks {
        file.take(hunk);
    }
    if !file.is_new {
        file.find_surroundings(&hunks, output["originalFile"].as_str().unwrap_or_default());
    }
}

/// Replaces backslashes in a Windows path with slashes.
fn slashed(path: &str) -> String {
    let is_windows = path.contains('\\') && !path.starts_with('/');
    if is_windows { path.replace('\\', "/") } else { path.to_owned() }
}

/// Consecutive lines of a change, each prefixed with `+`, `-` or a space.
struct Hunk<'v> {
    start: usize,
    lines: Vec<(char, &'v str)>,
}

impl Hunk<'_> {
    /// The old and the new line, if only one line changed.
    fn single(&self) -> Option<(String, String)> {
        let of =
            |sign| self.lines.iter().filter(move |(s, _)| *s == sign).map(|(_, line)| line.trim());
        let (mut old, mut new) = (of('-'), of('+'));
        let pair = (old.next()?, new.next()?);
        let short = |line: &str| {
            !line.is_empty() && line.chars().count() <= LINE_CHARS_MAX && !line.contains('`')
        };
        (old.next().is_none() && new.next().is_none() && short(pair.0) && short(pair.1))
            .then(|| (pair.0.to_owned(), pair.1.to_owned()))
    }
}

/// The hunks reported by the client, or else computed from the strings in the input.
fn hunks<'v>(input: &'v Value, output: &'v Value) -> Vec<Hunk<'v>> {
    let reported: Vec<Hunk<'v>> = items(&output["structuredPatch"])
        .map(|hunk| Hunk {
            start: hunk["oldStart"].as_u64().unwrap_or_default() as usize,
            lines: items(&hunk["lines"]).filter_map(Value::as_str).filter_map(signed).collect(),
        })
        .collect();
    if !reported.is_empty() {
        return reported;
    }
    let edits = input["edits"].as_array().map_or(std::slice::from_ref(input), Vec::as_slice);
    edits.iter().map(requested).collect()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn signed(line: &str) -> Option<(char, &str)> {
    let sign = line.chars().next()?;
    matches!(sign, '+' | '-' | ' ').then(|| (sign, &line[1..]))
}

fn requested(edit: &Value) -> Hunk<'_> {
    let text = |key: &str| edit[key].as_str().unwrap_or_default();
    let old: Vec<&str> = text("old_string").lines().collect();
    let new = ["new_string", "content", "new_source"].map(text).into_iter().find(|t| !t.is_empty());
    let new: Vec<&str> = new.unwrap_or_default().lines().collect();
    // The input repeats unchanged lines as context.
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (around, old) = old.split_at(same);
    let new = &new[same..];
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let minus = old[..old.len() - tail].iter().map(|line| ('-', *line));
    let plus = new[..new.len() - tail].iter().map(|line| ('+', *line));
    let around = around.iter().map(|line| (' ', *line));
    Hunk { start: 0, lines: around.chain(minus).chain(plus).collect() }
}

impl FileChange {
    fn take(&mut self, hunk: &Hunk<'_>) {
        let extension = names::extension(&self.path);
        let (mut gained, mut lost) = (Vec::new(), Vec::new());
        for (sign, line) in &hunk.lines {
            let name = (*sign != ' ').then(|| names::defined(line, &extension)).flatten();
            match sign {
                '+' => self.added += 1,
                '-' => self.removed += 1,
                _ => {}
            }
            let names = if *sign == '+' { &mut gained } else { &mut lost };
            add(names, name.unwrap_or_default(), NAMES_MAX);
        }
        let both: Vec<String> = gained.iter().filter(|name| lost.contains(name)).cloned().collect();
        gained.retain(|name| !both.contains(name));
        lost.retain(|name| !both.contains(name));
        for name in both {
            add(&mut self.touched, name, NAMES_MAX);
        }
        if let ([old], [new]) = (lost.as_slice(), gained.as_slice()) {
            if self.gained.contains(old) {
                self.gained.retain(|name| name != old);
                self.gained.push(new.clone());
            } else {
                self.renamed.push((old.clone(), new.clone()));
            }
            return;
        }
        for name in lost {
            let was_gained = self.gained.contains(&name);
            self.gained.retain(|gained| *gained != name);
            if !was_gained {
                add(&mut self.lost, name, NAMES_MAX);
            }
        }
        for name in gained {
            self.lost.retain(|lost| *lost != name);
            add(&mut self.gained, name, NAMES_MAX);
        }
    }

    /// Finds the definitions that contain the changed lines, in the context lines of the change, or
    /// else in the original file.
    fn find_surroundings(&mut self, hunks: &[Hunk<'_>], original: &str) {
        let extension = names::extension(&self.path);
        for hunk in hunks.iter().take(HUNKS_MAX) {
            let mut inside = None;
            for (sign, line) in &hunk.lines {
                match (sign, names::defined(line, &extension)) {
                    (' ', Some(name)) => inside = Some(name),
                    (' ', None) => {}
                    (_, Some(_)) => break,
                    (_, None) => {
                        let first = hunk.lines.iter().take_while(|(sign, _)| *sign == ' ').count();
                        let before = hunk.start.saturating_sub(1).saturating_add(first);
                        inside = inside.or_else(|| last_defined(original, before, &extension));
                        break;
                    }
                }
            }
            let name = inside.unwrap_or_default();
            if !self.gained.contains(&name) && !self.renamed.iter().any(|(_, new)| *new == name) {
                add(&mut self.touched, name, NAMES_MAX);
            }
        }
    }

    /// Classifies the file by its path.
    pub(super) fn class(&self) -> Class {
        let path = self.shown.to_lowercase();
        let name = path.rsplit('/').next().unwrap_or_default();
        let extension = names::extension(name);
        let is_code = !matches!(
            extension.as_str(),
            "" | "md"
                | "mdx"
                | "txt"
                | "toml"
                | "json"
                | "yml"
                | "yaml"
                | "lock"
                | "ini"
                | "cfg"
                | "csv"
                | "rst"
                | "adoc"
                | "env"
                | "xml"
                | "conf"
                | "gitignore"
                | "dockerignore"
                | "example"
                | "svg"
        );
        let is_test = ["test_", "tests.", "conftest."].iter().any(|mark| name.starts_with(mark))
            || ["_test.", ".test.", ".spec.", "_spec.", "test.", "tests."]
                .iter()
                .any(|m| name.contains(m))
            || path
                .split('/')
                .rev()
                .skip(1)
                .any(|dir| matches!(dir, "test" | "tests" | "__tests__" | "spec"));
        match (is_code, is_test) {
            (true, true) => Class::Test,
            (true, false) => Class::Source,
            _ => Class::Other,
        }
    }

    /// The file name without its directory.
    pub(super) fn name(&self) -> &str {
        self.shown.rsplit('/').next().unwrap_or_default()
    }

    /// Describes the change in one sentence.
    pub(super) fn fact(&self) -> String {
        let path = code(&self.shown);
        if self.is_new {
            let lines = self.added.saturating_sub(self.removed);
            let names = named(&self.gained);
            let with = if names.is_empty() { String::new() } else { format!(", with {names}") };
            let plural = if lines == 1 { "" } else { "s" };
            return format!("New file {path} ({lines} line{plural}{with})");
        }
        if let Some((old, new)) = &self.line {
            let inside = self.touched.first().map(|name| format!(", in {}", code(name)));
            return format!("{path}{}: `{old}` → `{new}`", inside.unwrap_or_default());
        }
        let mut parts = Vec::new();
        let renamed: Vec<String> = self
            .renamed
            .iter()
            .map(|(old, new)| format!("{} to {}", code(old), code(new)))
            .collect();
        for (verb, names) in [
            ("renamed", listing(&renamed, 3)),
            ("added", named(&self.gained)),
            ("changed", named(&self.touched)),
            ("removed", named(&self.lost)),
        ] {
            if !names.is_empty() {
                parts.push(format!("{verb} {names}"));
            }
        }
        let sizes = format!("{path} (+{} −{})", self.added, self.removed);
        if parts.is_empty() { sizes } else { format!("{sizes}: {}", parts.join("; ")) }
    }

    /// The definitions that were added, renamed or changed, for a title.
    pub(super) fn subject(&self) -> Option<String> {
        let names = if self.gained.is_empty() { &self.touched } else { &self.gained };
        (!names.is_empty()).then(|| named(&names[..names.len().min(2)]))
    }
}

fn named(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| code(&clip(name, 48))).collect();
    listing(&names, 4)
}

fn last_defined(original: &str, lines: usize, extension: &str) -> Option<String> {
    let above: Vec<&str> = original.lines().take(lines).collect();
    above.iter().rev().find_map(|line| names::defined(line, extension))
}
