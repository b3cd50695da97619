//! Writes and removes the configuration of clients other than Claude Code.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use claude_mem_capture::{
    CODEX, Client,
    clients::{
        Registration,
        config::{Extra, HooksForm, ServerForm},
    },
};
use claude_mem_core::{
    NAME, environment::Environment, failure::Failure, json_edit::Document, user_file::Readers,
};

use crate::{
    add_groups, add_server_entry, codex_trust, command_line, grouped, manifest::TextChange,
    quoted_for_shell, remove_hooks, remove_server, toml_file::TomlFile,
};

/// Environment variable of our data directory, for clients that pass no environment to an MCP
/// server.
const DATA_DIR: &str = "CLAUDE_MEM_DATA_DIR";

/// The installation target.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    pub client: &'static Client,
    pub environment: &'a Environment,
    pub home: Option<&'a Path>,
}

/// Everything that an installation writes for one client.
#[derive(Debug, Default)]
pub struct Plan {
    /// Files of the client.
    pub changes: Vec<(&'static str, TextChange)>,
    /// Files that we own.
    pub files: Vec<OwnFile>,
}

/// A file that we own.
#[derive(Debug)]
pub struct OwnFile {
    pub file: PathBuf,
    pub text: String,
    pub readers: Readers,
}

impl Place<'_> {
    fn dir(&self) -> Result<PathBuf, Failure> {
        self.client.config.dir.find(self.environment, self.home).ok_or_else(no_home)
    }

    /// The file with the client's hooks.
    pub fn hooks_file(&self) -> Option<PathBuf> {
        self.client.config.hooks_file(self.environment, self.home)
    }

    /// The file with the client's MCP servers.
    pub fn server_file(&self) -> Option<PathBuf> {
        let server = self.client.config.server.as_ref()?;
        Some(server.dir.find(self.environment, self.home)?.join(server.file))
    }

    /// Reads and validates every file without writing. `trust` also approves the hooks, if the
    /// client requires it.
    pub fn plan(&self, program: &str, trust: bool) -> Result<Plan, Failure> {
        let mut plan = Plan::default();
        let mut documents: Vec<(&'static str, Document)> = Vec::new();
        let mut tables: Vec<(&'static str, TomlFile)> = Vec::new();
        let shell_program = quoted_for_shell(program);
        let file = self.dir()?.join(self.client.config.hooks.place());
        match &self.client.config.hooks {
            HooksForm::Groups { unit, .. } => {
                let mut document = Document::open(&file)?;
                let hooks = self.client.hooks.iter();
                let groups =
                    hooks.map(|hook| grouped(&shell_program, self.client, hook, *unit)).collect();
                add_groups(&mut document, groups)?;
                documents.push(("hooks", document));
            }
            HooksForm::Entries { timeout, has_version, extra, .. } => {
                let mut document = Document::open(&file)?;
                if *has_version && document.get("version").is_null() {
                    document.set("version", &json!(1));
                }
                add_groups(&mut document, self.entries(&shell_program, *timeout, extra))?;
                documents.push(("hooks", document));
            }
            HooksForm::Tables { .. } => {
                let hooks = self.client.hooks.iter();
                let hooks: Vec<_> = hooks
                    .map(|hook| {
                        let command = command_line(&shell_program, self.client, hook);
                        (hook.event, command, hook.timeout_seconds)
                    })
                    .collect();
                let mut toml = TomlFile::open(&file)?;
                toml.set_hooks(&hooks)?;
                tables.push(("hooks", toml));
            }
            HooksForm::Scripts { .. } => {
                plan.files.extend(self.client.hooks.iter().map(|hook| OwnFile {
                    file: file.join(hook.event),
                    text: format!(
                        "#!/bin/sh\nexec {}\n",
                        command_line(&shell_program, self.client, hook)
                    ),
                    readers: Readers::EveryoneRuns,
                }));
            }
            HooksForm::Plugin { text, .. } => {
                let program = Value::from(program).to_string();
                let text = text.replacen("= PROGRAM\n", &format!("= {program}\n"), 1);
                plan.files.push(OwnFile { file, text, readers: Readers::Owner });
            }
        }
        self.add_server(program, &mut documents, &mut tables)?;
        if trust && self.client.name == CODEX.name {
            // Both files are part of the plan: hooks and MCP server.
            if let ([(_, hooks), ..], [(_, config), ..]) = (&documents[..], &mut tables[..]) {
                codex_trust::approve(hooks, config)?;
            }
        }
        plan.changes.extend(documents.iter().map(|(what, document)| (*what, document.into())));
        plan.changes.extend(tables.into_iter().map(|(what, toml)| (what, toml.change())));
        Ok(plan)
    }

    /// The client's hooks as entries of their events.
    fn entries(
        &self,
        program: &str,
        timeout: Option<&str>,
        extra: &[(&str, Extra)],
    ) -> Map<String, Value> {
        let entry = |hook: &Registration| {
            let mut entry = Map::new();
            add_extra(&mut entry, extra);
            entry.insert("command".into(), command_line(program, self.client, hook).into());
            entry.extend(timeout.map(|name| (name.to_owned(), hook.timeout_seconds.into())));
            (hook.event.to_owned(), json!([entry]))
        };
        self.client.hooks.iter().map(entry).collect()
    }

    fn add_server(
        &self,
        program: &str,
        documents: &mut Vec<(&'static str, Document)>,
        tables: &mut Vec<(&'static str, TomlFile)>,
    ) -> Result<(), Failure> {
        let (Some(server), Some(file)) = (&self.client.config.server, self.server_file()) else {
            return Ok(());
        };
        if server.form == ServerForm::Toml {
            let mut toml = TomlFile::open(&file)?;
            let data = self.environment.text(DATA_DIR).map(|dir| (DATA_DIR, dir));
            toml.add_server(server.key, program, &data.into_iter().collect::<Vec<_>>())?;
            tables.push(("MCP server", toml));
            return Ok(());
        }
        let entry = server_entry(program, server.form);
        let known = documents.iter_mut().find(|(_, document)| document.file() == file);
        if let Some((what, document)) = known {
            *what = "hooks and MCP server";
            return add_server_entry(document, server.key, &entry);
        }
        let mut document = Document::open(&file)?;
        add_server_entry(&mut document, server.key, &entry)?;
        documents.push(("MCP server", document));
        Ok(())
    }

    /// The client's files without our entries. Unreadable files have none.
    pub fn removal(&self) -> Vec<TextChange> {
        let mut files: Vec<PathBuf> =
            self.hooks_file().into_iter().chain(self.server_file()).collect();
        files.dedup();
        let cleaned = |file: PathBuf| match file.extension()?.to_str()? {
            "toml" => {
                let mut toml = TomlFile::open(&file).ok()?;
                let hooks = self.hooks_file().filter(|_| self.client.name == CODEX.name);
                if let Some(hooks) = hooks.and_then(|hooks| Document::open(&hooks).ok()) {
                    codex_trust::forget(&hooks, &mut toml);
                }
                toml.remove_hooks();
                toml.remove_server("mcp_servers");
                Some(toml.change())
            }
            "json" => {
                let mut document = Document::open(&file).ok()?;
                remove_hooks(&mut document);
                remove_server(&mut document);
                Some(TextChange::from(&document))
            }
            _ => None,
        };
        let changed = files.into_iter().filter_map(cleaned);
        changed.filter(|change| change.original.is_some() && change.is_changed()).collect()
    }
}

fn add_extra(entry: &mut Map<String, Value>, extra: &[(&str, Extra)]) {
    for (name, value) in extra {
        let value = match value {
            Extra::Text(text) => json!(text),
            Extra::Flag(flag) => json!(flag),
            Extra::All => json!(["*"]),
        };
        entry.insert((*name).into(), value);
    }
}

/// The entry of our MCP server in the client's form.
pub(crate) fn server_entry(program: &str, form: ServerForm) -> Value {
    match form {
        ServerForm::CommandList => {
            json!({"type": "local", "command": [program, "mcp"], "enabled": true})
        }
        ServerForm::Plain(extra) => {
            let mut entry = Map::new();
            add_extra(&mut entry, extra);
            entry.insert("command".into(), program.into());
            entry.insert("args".into(), json!(["mcp"]));
            Value::Object(entry)
        }
        ServerForm::Toml => json!({"command": program, "args": ["mcp"]}),
    }
}

fn no_home() -> Failure {
    Failure::new("the home directory is unknown")
        .meaning(format!("{NAME} cannot find the client's files"))
        .remedy("set `HOME`")
}
