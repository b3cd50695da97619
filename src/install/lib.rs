//! Registration with coding agents: hooks and MCP server, for Claude Code also a skill and a slash
//! command.

pub mod client_config;
pub mod client_status;
pub mod codex_trust;
pub mod manifest;
pub mod mcp_only;
pub mod registered;
pub mod rival;
mod toml_file;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

pub use claude_mem_capture::registration::is_our_program;
use claude_mem_capture::{
    CLAUDE_CODE, Client, PLUGIN,
    clients::{CLIENTS, Registration, Version, claude_code, config::TimeoutUnit},
    registration::{command_of, is_hook_of},
};
use claude_mem_core::NAME;
use mcp_only::{MCP_ONLY, Servers};
use serde_json::{Map, Value, json};

use claude_mem_core::{app::App, failure::Failure, json_edit::Document};

/// The command that prints a status line.
pub const STATUS_LINE: &str = "statusline";
/// The marketplace that `claude-mem generate plugin` writes.
pub const MARKETPLACE: &str = "mem-local";
/// The skill that describes when and how to search memories.
pub const SKILL: &str = include_str!("mem-search.md");
/// The `/mem` command.
pub const SLASH_COMMAND: &str = include_str!("mem.md");

/// The files of Claude Code that we change.
#[derive(Debug)]
pub struct Targets {
    /// Claude Code's directory: `~/.claude`, or a project's `.claude`.
    pub dir: PathBuf,
    /// The file that lists MCP servers.
    pub servers: PathBuf,
}

impl Targets {
    /// For every session of this user.
    pub fn of_user(app: &App) -> Result<Self, Failure> {
        let home = app.paths.home.as_deref();
        let dir = claude_code::config_dir(&app.environment, home).ok_or_else(|| {
            Failure::new("the home directory is unknown")
                .meaning("Claude Code keeps its settings there")
                .remedy("set `HOME` or `CLAUDE_CONFIG_DIR`")
        })?;
        let is_chosen = app.environment.get(claude_code::CONFIG_DIR).is_some();
        let servers = home.filter(|_| !is_chosen).unwrap_or(&dir).join(".claude.json");
        Ok(Self { dir, servers })
    }

    /// For sessions in this folder.
    pub fn of_project(folder: &Path) -> Self {
        Self { dir: folder.join(".claude"), servers: folder.join(".mcp.json") }
    }

    /// The file that lists hooks.
    pub fn settings(&self) -> PathBuf {
        self.dir.join("settings.json")
    }

    /// Files that we own, with their texts.
    pub fn texts(&self) -> [(PathBuf, &'static str); 2] {
        [
            (self.dir.join("skills/mem-search/SKILL.md"), SKILL),
            (self.dir.join("commands/mem.md"), SLASH_COMMAND),
        ]
    }
}

/// The hooks in Claude Code's format, for events that its version knows. `program` is inserted
/// between double quotes for the shell without further escaping.
pub fn hooks(program: &str, version: Option<Version>) -> Map<String, Value> {
    let known = CLAUDE_CODE.hooks.iter().filter(|hook| hook.is_known_to(version));
    known.map(|hook| grouped(program, &CLAUDE_CODE, hook, TimeoutUnit::Seconds)).collect()
}

/// One hook as a group of its event.
fn grouped(
    program: &str,
    client: &Client,
    hook: &Registration,
    unit: TimeoutUnit,
) -> (String, Value) {
    let command = command_line(program, client, hook);
    let command = match unit {
        TimeoutUnit::Seconds => {
            json!({"type": "command", "command": command, "timeout": hook.timeout_seconds})
        }
        // The client with this unit shows the name while the hook runs.
        TimeoutUnit::Milliseconds => json!({"type": "command", "name": NAME, "command": command,
            "timeout": hook.timeout_seconds * 1000}),
    };
    let mut group = Map::new();
    group.extend(hook.matcher.map(|matcher| ("matcher".into(), matcher.into())));
    group.insert("hooks".into(), json!([command]));
    (hook.event.to_owned(), json!([group]))
}

fn command_line(program: &str, client: &Client, hook: &Registration) -> String {
    format!("\"{program}\" {}", client.hook_command(hook))
}

/// The MCP server in Claude Code's form. Without `alwaysLoad` the model sees only the names of its
/// tools.
pub fn server(program: &str) -> Value {
    json!({"command": program, "args": ["mcp"], "alwaysLoad": true})
}

/// Escapes a path for use between double quotes in a shell.
pub fn quoted_for_shell(path: &str) -> String {
    let mut quoted = String::new();
    for character in path.chars() {
        if matches!(character, '"' | '\\' | '$' | '`') {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted
}

/// Adds our hooks. Existing ones keep their place; older entries of ours are removed.
pub fn add_hooks(
    settings: &mut Document,
    program: &str,
    version: Option<Version>,
) -> Result<(), Failure> {
    add_groups(settings, hooks(program, version))
}

/// Adds groups of hooks, or ungrouped hooks, each to its event.
fn add_groups(settings: &mut Document, wanted: Map<String, Value>) -> Result<(), Failure> {
    let mut registered = object(settings, "hooks")?;
    let before = registered.clone();
    for (event, groups) in &mut registered {
        let kept = wanted.get(event).map(|groups| &groups[0]);
        retain_groups(groups, kept);
    }
    registered
        .retain(|event, groups| wanted.contains_key(event) || !is_emptied(groups, &before[event]));
    for (event, groups) in wanted {
        let existing = registered.entry(event.as_str()).or_insert_with(|| json!([]));
        let Some(existing) = existing.as_array_mut() else {
            return Err(unexpected(settings, &format!("hooks.{event}"), "an array"));
        };
        if !existing.contains(&groups[0]) {
            existing.push(groups[0].clone());
        }
    }
    settings.set("hooks", &Value::Object(registered));
    Ok(())
}

/// Removes our hooks, and nothing else.
pub fn remove_hooks(settings: &mut Document) {
    let Value::Object(mut registered) = settings.get("hooks") else { return };
    let before = registered.clone();
    for groups in registered.values_mut() {
        retain_groups(groups, None);
    }
    registered.retain(|event, groups| !is_emptied(groups, &before[event]));
    let is_ours_alone = registered.is_empty() && !before.is_empty();
    settings.set("hooks", &if is_ours_alone { Value::Null } else { Value::Object(registered) });
}

/// Whether removing our hooks emptied a group. One that was empty before is kept.
fn is_emptied(groups: &Value, before: &Value) -> bool {
    groups.as_array().is_some_and(Vec::is_empty) && groups != before
}

/// Removes hooks of ours from the groups of one event, all but those in the group `kept`.
fn retain_groups(groups: &mut Value, kept: Option<&Value>) {
    let Some(groups) = groups.as_array_mut() else { return };
    groups.retain_mut(|group| {
        if Some(&*group) == kept {
            return true;
        }
        // Some clients have no groups: the hook itself is in the list of its event.
        if group["command"].as_str().is_some_and(is_our_hook) {
            return false;
        }
        let Some(hooks) = group.get_mut("hooks").and_then(Value::as_array_mut) else { return true };
        let count = hooks.len();
        hooks.retain(|hook| !hook["command"].as_str().is_some_and(is_our_hook));
        hooks.len() == count || !hooks.is_empty()
    });
}

/// Matches `"…/claude-mem" save` or `"…/claude-mem" hook --client NAME`, for any path of the
/// binary.
pub(crate) fn is_our_hook(command: &str) -> bool {
    command_of(command).is_some_and(|name| {
        CLAUDE_CODE.hooks.iter().any(|hook| hook.alias == Some(name))
            || CLIENTS.iter().any(|client| is_hook_of(name, client.name))
    })
}

/// Adds our MCP server. Keeps members that the user added to its entry.
pub fn add_server(servers: &mut Document, program: &str) -> Result<(), Failure> {
    add_server_entry(servers, "mcpServers", &server(program))
}

/// Adds our entry to the MCP servers below `key`.
fn add_server_entry(servers: &mut Document, key: &str, server: &Value) -> Result<(), Failure> {
    let mut registered = object(servers, key)?;
    let entry = registered.entry(NAME).or_insert_with(|| json!({}));
    let is_free = *entry == json!({}) || is_our_server(entry);
    let Some(fields) = entry.as_object_mut().filter(|_| is_free) else {
        let file = servers.file().display();
        return Err(Failure::new(format!("{file} already has another MCP server `{NAME}`"))
            .meaning("nothing was changed")
            .remedy("remove it, then install again"));
    };
    fields.extend(server.as_object().cloned().unwrap_or_default());
    servers.set(key, &Value::Object(registered));
    Ok(())
}

/// Makes `claude-mem statusline` the status line, if there is none or if it is ours. Returns
/// whether it is ours now.
pub fn add_status_line(settings: &mut Document, program: &str) -> bool {
    let existing = settings.get("statusLine");
    if !existing.is_null() && !is_our_status_line(&existing) {
        return false;
    }
    let command = format!("\"{program}\" {STATUS_LINE}");
    settings.set("statusLine", &json!({"type": "command", "command": command}));
    true
}

/// Removes our status line, and no other.
pub fn remove_status_line(settings: &mut Document) {
    if is_our_status_line(&settings.get("statusLine")) {
        settings.set("statusLine", &Value::Null);
    }
}

fn is_our_status_line(entry: &Value) -> bool {
    entry["command"].as_str().and_then(command_of) == Some(STATUS_LINE)
}

/// Removes our MCP server, and nothing else.
pub fn remove_server(servers: &mut Document) {
    let keys = CLIENTS.iter().filter_map(|client| Some(client.config.server.as_ref()?.key));
    let others = MCP_ONLY.iter().filter_map(|client| match &client.servers {
        Servers::Json { key, .. } => Some(*key),
        Servers::Printed { .. } => None,
    });
    for key in keys.chain(others).collect::<BTreeSet<&str>>() {
        remove_server_below(servers, key);
    }
}

fn remove_server_below(servers: &mut Document, key: &str) {
    let Value::Object(mut registered) = servers.get(key) else { return };
    if registered.get(NAME).is_some_and(is_our_server) {
        registered.shift_remove(NAME);
        let is_ours_alone = registered.is_empty();
        servers.set(key, &if is_ours_alone { Value::Null } else { Value::Object(registered) });
    }
}

fn is_our_server(entry: &Value) -> bool {
    server_program(entry).is_some()
}

/// The program of an MCP server, if it is ours.
fn server_program(entry: &Value) -> Option<&str> {
    let program = match &entry["command"] {
        Value::Array(list) if list.len() == 2 && list[1] == "mcp" => list[0].as_str(),
        Value::String(program) if entry["args"] == json!(["mcp"]) => Some(program.as_str()),
        _ => None,
    };
    program.filter(|program| is_our_program(program))
}

fn object(document: &Document, key: &str) -> Result<Map<String, Value>, Failure> {
    match document.get(key) {
        Value::Null => Ok(Map::new()),
        Value::Object(object) => Ok(object),
        _ => Err(unexpected(document, key, "an object")),
    }
}

fn unexpected(document: &Document, key: &str, expected: &str) -> Failure {
    Failure::new(format!("`{key}` in {} is not {expected}", document.file().display()))
        .meaning("nothing was changed")
        .remedy("fix the file by hand; `claude-mem install --print` shows the entries")
}

#[cfg(test)]
mod tests;
