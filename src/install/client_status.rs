//! Finds our hooks in the configuration of a client other than Claude Code.

use std::path::{Path, PathBuf};

use serde_json::Value;

use claude_mem_capture::clients::config::HooksForm;
use claude_mem_core::{json_edit::Document, user_file};

use crate::{client_config::Place, is_our_hook, toml_file::TomlFile};
use claude_mem_capture::registration::program_of;

/// Our hooks in the configuration of one client.
#[derive(Debug, PartialEq)]
pub struct ClientHooks {
    pub file: PathBuf,
    /// Events without a hook of ours.
    pub missing: Vec<&'static str>,
    /// The program that is called.
    pub program: String,
    pub is_program_there: bool,
}

impl ClientHooks {
    /// `None` if the client has no hook of ours.
    pub fn look(place: Place<'_>) -> Option<Self> {
        let file = place.hooks_file()?;
        let found: Vec<(String, String)> = match &place.client.config.hooks {
            HooksForm::Groups { .. } | HooksForm::Entries { .. } => in_json(&file),
            HooksForm::Tables { .. } => TomlFile::open(&file).ok()?.hooks(),
            HooksForm::Scripts { .. } => in_scripts(&file, place),
            HooksForm::Plugin { .. } => return of_plugin(file),
        };
        let ours: Vec<_> = found.into_iter().filter(|(_, command)| is_our_hook(command)).collect();
        let program = program_of(&ours.first()?.1).to_owned();
        // A program of the user for an event is kept, and ours is not installed.
        let is_taken = |event: &str| {
            matches!(place.client.config.hooks, HooksForm::Scripts { .. })
                && file.join(event).exists()
        };
        let is_missing =
            |event: &&str| ours.iter().all(|(found, _)| found != event) && !is_taken(event);
        let events = place.client.hooks.iter().map(|hook| hook.event);
        let missing = events.filter(is_missing).collect();
        let is_program_there = Path::new(&program).is_file();
        Some(Self { file, missing, program, is_program_there })
    }
}

/// Events and commands of a JSON file, whether or not hooks are in groups.
fn in_json(file: &Path) -> Vec<(String, String)> {
    let Ok(document) = Document::open(file) else { return Vec::new() };
    let Value::Object(events) = document.get("hooks") else { return Vec::new() };
    let mut found = Vec::new();
    for (event, entries) in &events {
        for entry in entries.as_array().into_iter().flatten() {
            let grouped = entry["hooks"].as_array().into_iter().flatten();
            let commands = grouped.chain([entry]).filter_map(|hook| hook["command"].as_str());
            found.extend(commands.map(|command| (event.clone(), command.to_owned())));
        }
    }
    found
}

fn in_scripts(dir: &Path, place: Place<'_>) -> Vec<(String, String)> {
    let script = |event: &str| {
        let text = user_file::read_to_string(&dir.join(event)).ok()?;
        let command = text.lines().find_map(|line| line.strip_prefix("exec "))?;
        Some((event.to_owned(), command.to_owned()))
    };
    place.client.hooks.iter().filter_map(|hook| script(hook.event)).collect()
}

fn of_plugin(file: PathBuf) -> Option<ClientHooks> {
    let text = user_file::read_to_string(&file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("const PROGRAM_PATH = "))?;
    let program: String = serde_json::from_str(line).ok()?;
    let is_program_there = Path::new(&program).is_file();
    Some(ClientHooks { file, missing: Vec::new(), program, is_program_there })
}
