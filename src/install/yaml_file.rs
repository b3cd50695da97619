//! Adds or removes one entry in a YAML file of another program, line by line. All other lines stay
//! unchanged.
//!
//! Only entries of a top-level key in block style are edited, because that needs no full parser.
//! Other files are not changed, and the entry is shown to the user.

use std::path::Path;

use claude_mem_core::{NAME, failure::Failure, json_edit::Unusable};
use serde_json::json;

use crate::{is_our_program, manifest::TextChange};

/// The form of our entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum YamlForm {
    /// An item of a list, with `name`, `command` and `args`.
    Item,
    /// A member with the name of the server, as in Goose.
    Member,
}

impl YamlForm {
    /// The lines of our entry, without indentation.
    pub(crate) fn entry(self, program: &str) -> Vec<String> {
        let program = json!(program);
        match self {
            Self::Item => vec![
                format!("- name: {NAME}"),
                format!("  command: {program}"),
                "  args: [mcp]".into(),
            ],
            Self::Member => vec![
                format!("{NAME}:"),
                format!("  name: {NAME}"),
                format!("  cmd: {program}"),
                "  args: [mcp]".into(),
                "  enabled: true".into(),
                "  type: stdio".into(),
                "  timeout: 300".into(),
            ],
        }
    }
}

/// A YAML file, open for changes.
#[derive(Debug)]
pub(crate) struct YamlFile {
    lines: Vec<String>,
    change: TextChange,
}

impl YamlFile {
    /// Reads the file; a missing one is empty.
    pub(crate) fn open(file: &Path) -> Result<Self, Unusable> {
        let change = TextChange::open(file)?;
        let lines = change.text.split_inclusive('\n').map(str::to_owned).collect();
        Ok(Self { lines, change })
    }

    /// The file with all changes.
    pub(crate) fn change(self) -> TextChange {
        TextChange { text: self.lines.concat(), ..self.change }
    }

    /// Adds our entry below a top-level key, or replaces the one that is there.
    pub(crate) fn add(&mut self, key: &str, form: YamlForm, program: &str) -> Result<(), Failure> {
        let wanted = form.entry(program);
        if let Some((at, end)) = self.entry_at(key, form) {
            if self.program(key, form).is_none() {
                return Err(Failure::new(format!(
                    "{} already has another MCP server `{NAME}`",
                    self.change.file.display()
                ))
                .meaning("nothing was changed")
                .remedy("remove it, then install again"));
            }
            let indent = indentation(&self.lines[at]);
            self.lines.splice(at..end, indented(&wanted, indent));
            return Ok(());
        }
        if self.lines.iter().skip_while(|line| is_blank(line)).skip(1).any(|line| is_mark(line)) {
            let file = self.change.file.display();
            return Err(by_hand(format!("{file} has more than one document"), key, &wanted));
        }
        let Some(at) = self.key_line(key) else {
            if let Some(last) = self.lines.last_mut().filter(|line| !line.ends_with('\n')) {
                last.push('\n');
            }
            self.lines.push(format!("{key}:\n"));
            self.lines.extend(indented(&wanted, 2));
            return Ok(());
        };
        match value_of(&self.lines[at], key) {
            "" => {}
            "[]" | "{}" | "null" | "~" => self.lines[at] = format!("{key}:\n"),
            _ => {
                let file = self.change.file.display();
                return Err(by_hand(
                    format!("`{key}` in {file} is written in one line"),
                    key,
                    &wanted,
                ));
            }
        }
        if !self.lines[at].ends_with('\n') {
            self.lines[at].push('\n');
        }
        let first = self.lines[at + 1..].iter().find(|line| !is_blank(line));
        let is_below = |line: &&String| indentation(line) > 0 || line.starts_with("- ");
        let indent = first.filter(is_below).map_or(2, |line| indentation(line));
        let rest = self.lines.split_off(at + 1);
        self.lines.extend(indented(&wanted, indent));
        self.lines.extend(rest);
        Ok(())
    }

    /// Removes our entry, and the key if nothing else is below it.
    pub(crate) fn remove(&mut self, key: &str, form: YamlForm) {
        let Some((at, end)) = self.entry_at(key, form) else { return };
        if self.program(key, form).is_none() {
            return;
        }
        self.lines.drain(at..end);
        let Some(at) = self.key_line(key) else { return };
        let next = self.lines[at + 1..].iter().find(|line| !is_blank(line));
        let is_empty = next.is_none_or(|line| indentation(line) == 0 && !line.starts_with("- "));
        if is_empty && value_of(&self.lines[at], key).is_empty() {
            self.lines.remove(at);
        }
    }

    /// The program of our entry, if it exists.
    pub(crate) fn program(&self, key: &str, form: YamlForm) -> Option<&str> {
        let (at, end) = self.entry_at(key, form)?;
        self.lines[at..end].iter().find_map(|line| our_program(line))
    }

    fn key_line(&self, key: &str) -> Option<usize> {
        self.lines.iter().position(|line| rest_of(line, key).is_some())
    }

    /// The lines of the entry with our name.
    fn entry_at(&self, key: &str, form: YamlForm) -> Option<(usize, usize)> {
        let begin = self.key_line(key)? + 1;
        let first = form.entry("").swap_remove(0);
        let of_key =
            |line: &&String| is_blank(line) || indentation(line) > 0 || line.starts_with("- ");
        let below = self.lines[begin..].iter().take_while(of_key).count();
        let at = begin
            + self.lines[begin..begin + below].iter().position(|line| line.trim() == first)?;
        let indent = indentation(&self.lines[at]);
        let inside = |line: &&String| !is_blank(line) && indentation(line) > indent;
        let rest = self.lines[at + 1..].iter().take_while(inside).count();
        Some((at, at + 1 + rest))
    }
}

/// The program that a line names, if it is ours.
fn our_program(line: &str) -> Option<&str> {
    let line = line.trim();
    let path = line.strip_prefix("command: ").or_else(|| line.strip_prefix("cmd: "))?;
    Some(path.trim_matches(['"', '\''])).filter(|path| is_our_program(path))
}

fn indented(lines: &[String], indent: usize) -> Vec<String> {
    lines.iter().map(|line| format!("{:indent$}{line}\n", "")).collect()
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

/// Whether a line starts or ends a document.
fn is_mark(line: &str) -> bool {
    line.trim_end() == "..." || line.trim_end() == "---" || line.starts_with("--- ")
}

/// The text after a top-level key in its line; `None` if the line has another key.
fn rest_of<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    let line = line.trim_start_matches('\u{feff}');
    let names = [key.to_owned(), format!("\"{key}\""), format!("'{key}'")];
    let rest = names.iter().find_map(|name| line.strip_prefix(name.as_str()))?;
    rest.trim_start()
        .strip_prefix(':')
        .filter(|rest| rest.is_empty() || rest.starts_with([' ', '\r', '\n']))
}

/// The value in the line of a key, without a comment.
fn value_of<'l>(line: &'l str, key: &str) -> &'l str {
    let rest = rest_of(line, key).unwrap_or_default();
    rest.split(" #").next().unwrap_or_default().trim()
}

fn by_hand(problem: String, key: &str, wanted: &[String]) -> Failure {
    let entry = indented(wanted, 2).concat();
    Failure::new(problem)
        .meaning("nothing was changed")
        .remedy(format!("add this below `{key}` by hand:\n{entry}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const PROGRAM: &str = "/b/claude-mem";

    /// Adds our entry twice, then removes it.
    fn there_and_back(before: &str, form: YamlForm) -> (String, String) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.yaml");
        fs::write(&file, before).unwrap();
        let mut text = String::new();
        for _ in 0..2 {
            let mut yaml = YamlFile::open(&file).unwrap();
            yaml.add("servers", form, PROGRAM).unwrap();
            assert_eq!(yaml.program("servers", form), Some(PROGRAM));
            text = yaml.change().text;
            fs::write(&file, &text).unwrap();
        }
        let mut yaml = YamlFile::open(&file).unwrap();
        yaml.remove("servers", form);
        (text, yaml.change().text)
    }

    #[test]
    fn an_entry_is_added_and_removed_and_everything_else_stays() {
        for before in [
            "",
            "name: mine # best\n",
            "name: mine\nservers:\n  - name: other # keep\n    command: x\nmodels:\n  - a\n",
            "servers:\n- name: other\n  command: x\n",
            "servers:\n    # the first\n    - name: other\n      command: x\n\nlast: 1\n",
        ] {
            let (added, removed) = there_and_back(before, YamlForm::Item);
            assert!(added.contains("- name: claude-mem\n"), "{added}");
            assert_eq!(added.matches("claude-mem").count(), 2, "{added}");
            assert_eq!(removed, before);
        }
        let before = "GOOSE_MODEL: m\nservers:\n  other:\n    cmd: x\n    args: []\n";
        let (added, removed) = there_and_back(before, YamlForm::Member);
        assert!(added.contains("\n  claude-mem:\n    name: claude-mem\n    cmd: \"/b/"), "{added}");
        assert_eq!(removed, before);
        for none in ["servers: [] # none\n", "servers: null\n", "servers: ~\n"] {
            let (added, _) = there_and_back(none, YamlForm::Item);
            assert!(added.starts_with("servers:\n  - name: claude-mem\n"), "{added}");
        }
        for quoted in ["\"servers\":\n  - name: o\n", "\u{feff}'servers' :\n  - name: o\n"] {
            let (added, removed) = there_and_back(quoted, YamlForm::Item);
            assert_eq!(added.matches("servers").count(), 1, "{added}");
            assert_eq!(removed, quoted);
        }
    }

    #[test]
    fn unsupported_files_and_foreign_entries_are_not_changed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.yaml");
        for text in [
            "servers: [{name: other}]\n",
            "---\nname: mine\n...\n",
            "name: mine\n---\nname: two\n",
            "servers:\n  - name: claude-mem\n    command: /b/other\n",
        ] {
            fs::write(&file, text).unwrap();
            let mut yaml = YamlFile::open(&file).unwrap();
            assert!(yaml.add("servers", YamlForm::Item, PROGRAM).is_err(), "{text}");
            yaml.remove("servers", YamlForm::Item);
            assert_eq!(yaml.change().text, text);
        }
    }
}
