//! Our hooks in Claude Code's settings: which commands are ours, and whether a hook of the plugin is
//! registered twice.

use std::{env::consts::EXE_SUFFIX, path::Path};

use serde_json::Value;

use crate::clients::{CLAUDE_CODE, HOOK, Registration, claude_code};
use claude_mem_core::{NAME, environment::Environment, user_file};

/// Whether this process is a hook of the plugin, `command`, that `claude-mem install` registered as
/// well.
///
/// The plugin's hook then leaves the event to the installed one, so that nothing is recorded or
/// injected twice. It does so only if the installed one exists and is registered for every event of
/// `command`; `hook` is for all events.
pub fn is_duplicate_of_installed(
    environment: &Environment,
    home: Option<&Path>,
    program: &Path,
    command: &str,
) -> bool {
    // The variable may be inherited from another plugin, so the path of this program must match.
    let is_plugin =
        environment.get("CLAUDE_PLUGIN_ROOT").is_some_and(|root| program.starts_with(root));
    if !is_plugin {
        return false;
    }
    let project = CLAUDE_CODE.project_variable.and_then(|name| environment.get(name));
    let project = project.map(|dir| Path::new(&dir).join(".claude"));
    let of_project = project
        .iter()
        .flat_map(|dir| ["settings.json", "settings.local.json"].map(|name| dir.join(name)));
    let of_user = claude_code::config_dir(environment, home).map(|dir| dir.join("settings.json"));
    of_user.into_iter().chain(of_project).any(|file| registers(&file, command))
}

/// Whether this settings file registers `command` for all of its events, as we would.
fn registers(file: &Path, command: &str) -> bool {
    let Some(settings) = read(file) else { return false };
    let is_registered = |wanted: &Registration| {
        let groups = settings["hooks"][wanted.event].as_array().into_iter().flatten();
        let mut hooks = groups
            .filter(|group| group.get("matcher").and_then(Value::as_str) == wanted.matcher)
            .filter_map(|group| group["hooks"].as_array())
            .flatten()
            .filter_map(|hook| hook["command"].as_str());
        hooks.any(|hook| {
            let runs = |name| wanted.alias == Some(name) || is_hook_of(name, CLAUDE_CODE.name);
            command_of(hook).is_some_and(runs) && is_there(hook)
        })
    };
    let is_for = |hook: &&Registration| command == HOOK || hook.alias == Some(command);
    CLAUDE_CODE.hooks.iter().filter(is_for).filter(|hook| is_basic(hook)).all(is_registered)
}

/// Whether all versions of the client know the event.
pub fn is_basic(hook: &Registration) -> bool {
    hook.since.is_none()
}

/// The program of one of our hooks.
pub fn program_of(hook: &str) -> &str {
    hook.trim_start_matches('"').split("\" ").next().unwrap_or_default()
}

fn is_there(hook: &str) -> bool {
    Path::new(program_of(hook)).is_file()
}

/// The command in a hook that runs our program: `save`.
pub fn command_of(hook: &str) -> Option<&str> {
    let (program, command) = hook.strip_prefix('"')?.rsplit_once("\" ")?;
    is_our_program(program).then_some(command)
}

/// Whether a command is `hook --client NAME` for this client.
pub fn is_hook_of(command: &str, client: &str) -> bool {
    command.split_whitespace().eq([HOOK, "--client", client])
}

/// Whether the program at this path has our name, with `.exe` on Windows.
pub fn is_our_program(program: impl AsRef<Path>) -> bool {
    let name = program.as_ref().file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.strip_suffix(EXE_SUFFIX) == Some(NAME) || name == NAME)
}

/// A settings file as JSON.
pub fn read(file: &Path) -> Option<Value> {
    serde_json::from_slice(&user_file::read(file).ok()?).ok()
}
