//! Edits single entries in a TOML file of another program, and keeps all comments.

use std::path::Path;

use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

use claude_mem_core::{NAME, json_edit::Unusable};

use crate::{is_our_hook, is_our_program, manifest::TextChange};

const BYTE_ORDER_MARK: char = '\u{feff}';

/// The name of Kimi's list of hooks.
const HOOKS: &str = "hooks";

/// A TOML file, open for changes.
#[derive(Debug)]
pub(crate) struct TomlFile {
    change: TextChange,
    document: DocumentMut,
    /// The document as the parser would write it without changes: it drops a byte order mark and
    /// carriage returns.
    unchanged: String,
}

impl TomlFile {
    /// Reads the file; a missing one is empty.
    pub(crate) fn open(file: &Path) -> Result<Self, Unusable> {
        let change = TextChange::open(file)?;
        let document = change
            .text
            .parse::<DocumentMut>()
            .map_err(|error| Unusable::new(file, format_args!("it is not valid TOML: {error}")))?;
        let unchanged = document.to_string();
        Ok(Self { change, document, unchanged })
    }

    /// The file with all changes. Without changes it stays identical to the byte.
    pub(crate) fn change(self) -> TextChange {
        let mut text = self.document.to_string();
        if text == self.unchanged {
            return self.change;
        }
        if self.change.text.contains("\r\n") {
            text = text.replace("\r\n", "\n").replace('\n', "\r\n");
        }
        if self.change.text.starts_with(BYTE_ORDER_MARK) {
            text.insert(0, BYTE_ORDER_MARK);
        }
        TextChange { text, ..self.change }
    }

    pub(crate) fn document(&mut self) -> &mut DocumentMut {
        &mut self.document
    }

    /// The table at this path; missing ones are created.
    pub(crate) fn table(&mut self, path: &[&str]) -> Result<&mut Table, Unusable> {
        let file = self.change.file.clone();
        let mut table = self.document.as_table_mut();
        for name in path {
            let entry = table.entry(name).or_insert_with(|| {
                let mut new = Table::new();
                new.set_implicit(true);
                Item::Table(new)
            });
            let reason = format!("`{name}` is not a table");
            table = entry.as_table_mut().ok_or_else(|| Unusable::new(&file, reason))?;
        }
        Ok(table)
    }

    /// Sets our MCP server below `key`. Keeps members that the user added to its entry.
    pub(crate) fn add_server(
        &mut self,
        key: &str,
        program: &str,
        environment: &[(&str, String)],
    ) -> Result<(), Unusable> {
        let file = self.change.file.clone();
        let server = self.table(&[key, NAME])?;
        let existing = server.get("command").and_then(Item::as_str);
        if existing.is_some_and(|command| !is_our_program(command)) {
            let reason = format!("it already has another MCP server `{NAME}`");
            return Err(Unusable::new(&file, reason));
        }
        server.set_implicit(false);
        server["command"] = value(program);
        server["args"] = value(toml_edit::Array::from_iter(["mcp"]));
        for (name, text) in environment {
            let variables = server.entry("env").or_insert(toml_edit::table());
            let variables = variables
                .as_table_like_mut()
                .ok_or_else(|| Unusable::new(&file, "the `env` of its server is not a table"))?;
            variables.insert(name, value(text));
        }
        Ok(())
    }

    /// Removes our MCP server below `key`, and no other.
    pub(crate) fn remove_server(&mut self, key: &str) {
        let Some(servers) = self.document.get_mut(key).and_then(Item::as_table_mut) else { return };
        let command = servers.get(NAME).and_then(|server| server.get("command"));
        if command.and_then(Item::as_str).is_some_and(is_our_program) {
            servers.remove(NAME);
            if servers.is_empty() {
                self.document.remove(key);
            }
        }
    }

    /// Replaces our hooks in `[[hooks]]` by these: event, command, seconds.
    pub(crate) fn set_hooks(
        &mut self,
        hooks: &[(&'static str, String, u32)],
    ) -> Result<(), Unusable> {
        self.remove_hooks();
        let entry = self.document.entry(HOOKS);
        let list = entry.or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
        let file = &self.change.file;
        let list = list
            .as_array_of_tables_mut()
            .ok_or_else(|| Unusable::new(file, "`hooks` is not a list of `[[hooks]]`"))?;
        for (event, command, seconds) in hooks {
            let mut hook = Table::new();
            hook["event"] = value(*event);
            hook["matcher"] = value("");
            hook["command"] = value(command);
            hook["timeout"] = value(i64::from(*seconds));
            list.push(hook);
        }
        Ok(())
    }

    /// Removes our hooks in `[[hooks]]`, and no others.
    pub(crate) fn remove_hooks(&mut self) {
        let list = self.document.get_mut(HOOKS).and_then(Item::as_array_of_tables_mut);
        let Some(list) = list else { return };
        let before = list.len();
        list.retain(|hook| !hook.get("command").and_then(Item::as_str).is_some_and(is_our_hook));
        if list.is_empty() && before > 0 {
            self.document.remove(HOOKS);
        }
    }

    /// Events and commands in `[[hooks]]`.
    pub(crate) fn hooks(&self) -> Vec<(String, String)> {
        let list = self.document.get(HOOKS).and_then(Item::as_array_of_tables);
        let text = |hook: &Table, name: &str| {
            hook.get(name).and_then(Item::as_str).unwrap_or_default().to_owned()
        };
        let hooks = list.into_iter().flat_map(ArrayOfTables::iter);
        hooks.map(|hook| (text(hook, "event"), text(hook, "command"))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn entries_come_and_go_and_comments_stay() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        let before = "\
            # mine\nmodel = \"m\" # the best\n\n[[hooks]]\nevent = \"Stop\"\n\
            command = \"say done\"\n\n[mcp_servers.other]\ncommand = \"x\" # keep\n";
        fs::write(&file, before).unwrap();
        let mut toml = TomlFile::open(&file).unwrap();
        toml.add_server("mcp_servers", "/b/claude-mem", &[("DIR", "/d".into())]).unwrap();
        let command = "\"/b/claude-mem\" hook --client kimi".to_owned();
        toml.set_hooks(&[("Stop", command.clone(), 5)]).unwrap();
        let change = toml.change();
        for part in ["# mine", "# the best", "# keep", "[mcp_servers.claude-mem]", "DIR = \"/d\""] {
            assert!(change.text.contains(part), "{}", change.text);
        }
        fs::write(&file, &change.text).unwrap();
        let mut again = TomlFile::open(&file).unwrap();
        assert_eq!(again.hooks().len(), 2);
        again.set_hooks(&[("Stop", command, 5)]).unwrap();
        again.add_server("mcp_servers", "/b/claude-mem", &[]).unwrap();
        assert_eq!(again.document.to_string(), change.text, "installing again changes nothing");
        again.remove_hooks();
        again.remove_server("mcp_servers");
        assert_eq!(again.change().text, before);
    }

    #[test]
    fn a_file_without_entries_of_ours_stays_as_it_is_and_others_keep_their_line_ends() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        for before in ["\u{feff}# mine\r\n[a]\r\nb = 1\r\n", "x = 1", "[a]\nb = 1 # c"] {
            fs::write(&file, before).unwrap();
            let mut toml = TomlFile::open(&file).unwrap();
            toml.remove_hooks();
            toml.remove_server("mcp_servers");
            assert!(!toml.change().is_changed(), "{before:?}");
            let mut toml = TomlFile::open(&file).unwrap();
            toml.add_server("mcp_servers", "/b/claude-mem", &[]).unwrap();
            let added = toml.change().text;
            assert!(added.starts_with(before), "{added:?}");
            let is_windows = before.contains('\r');
            assert!(added.lines().count() > 3 && added.contains("\"mcp\"]\r\n") == is_windows);
        }
    }

    #[test]
    fn a_server_of_another_program_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        fs::write(&file, "[mcp_servers.claude-mem]\ncommand = \"/b/other\"\n").unwrap();
        let mut toml = TomlFile::open(&file).unwrap();
        assert!(toml.add_server("mcp_servers", "/b/claude-mem", &[]).is_err());
        toml.remove_server("mcp_servers");
        assert!(toml.document.to_string().contains("/b/other"));
        fs::write(&file, "a = [").unwrap();
        assert!(TomlFile::open(&file).is_err());
    }

    #[test]
    fn variables_of_a_server_are_added_to_any_table_and_to_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        let server = "[mcp_servers.claude-mem]\ncommand = \"/b/claude-mem\"\nenv = ";
        let add = |value: &str| {
            fs::write(&file, format!("{server}{value}\n")).unwrap();
            let mut toml = TomlFile::open(&file).unwrap();
            toml.add_server("mcp_servers", "/b/claude-mem", &[("DIR", "/d".into())])?;
            Ok::<_, Unusable>(toml.change().text)
        };
        for wrong in ["5", "\"x\"", "[1]", "true"] {
            assert!(add(wrong).is_err(), "{wrong}");
        }
        let added = add("{ A = \"b\" }").unwrap();
        assert!(added.contains("A = \"b\"") && added.contains("DIR = \"/d\""), "{added}");
    }
}
