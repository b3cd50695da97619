//! Detects our hooks in Claude Code's current settings.

use std::{
    env,
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::Value;

use crate::{MARKETPLACE, PLUGIN, Targets, command_of, is_hook_of, is_our_hook};
use claude_mem_capture::{
    CLAUDE_CODE,
    clients::{HOOK, Registration, claude_code},
};
use claude_mem_core::{app::App, environment::Environment, user_file};

/// Hooks that apply in the current folder: from the user's settings, a project's, or a plugin.
#[derive(Debug, Serialize)]
pub struct Hooks {
    pub is_installed: bool,
    pub is_plugin: bool,
    pub registered: Vec<Registered>,
}

impl Hooks {
    pub fn look(app: &App) -> Self {
        let of_user = Targets::of_user(app).ok().map(|targets| targets.dir);
        let here = env::current_dir().unwrap_or_default();
        let of_project = here.ancestors().map(|dir| dir.join(".claude")).find(|dir| dir.is_dir());
        let mut dirs: Vec<PathBuf> = of_user.iter().cloned().chain(of_project).collect();
        dirs.dedup();
        let registered: Vec<_> = dirs.iter().flat_map(|dir| in_dir(dir)).collect();
        let is_plugin = of_user.is_some_and(|dir| is_plugin_enabled(&dir));
        Self { is_installed: is_plugin || !registered.is_empty(), is_plugin, registered }
    }
}

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
fn is_basic(hook: &Registration) -> bool {
    hook.since.is_none()
}

/// The program of one of our hooks.
pub(crate) fn program_of(hook: &str) -> &str {
    hook.trim_start_matches('"').split("\" ").next().unwrap_or_default()
}

fn is_there(hook: &str) -> bool {
    Path::new(program_of(hook)).is_file()
}

/// Our hooks in one settings file.
#[derive(Debug, PartialEq, Serialize)]
pub struct Registered {
    /// The file.
    pub file: PathBuf,
    /// Registered events.
    pub events: Vec<&'static str>,
    /// Missing events, of those that all versions of the client know.
    pub missing: Vec<&'static str>,
    /// The program that is called.
    pub program: String,
    /// Whether that program exists.
    pub is_program_there: bool,
}

/// Our hooks in both settings files of this directory.
fn in_dir(dir: &Path) -> Vec<Registered> {
    ["settings.json", "settings.local.json"]
        .into_iter()
        .filter_map(|name| in_file(&dir.join(name)))
        .collect()
}

/// Whether the plugin that `claude-mem plugin` writes is enabled.
fn is_plugin_enabled(dir: &Path) -> bool {
    let name = format!("{PLUGIN}@{MARKETPLACE}");
    read(&dir.join("settings.json"))
        .is_some_and(|settings| settings["enabledPlugins"][name] == Value::Bool(true))
}

fn in_file(file: &Path) -> Option<Registered> {
    let settings = read(file)?;
    let our_hook = |event: &str| {
        let groups = settings["hooks"][event].as_array()?;
        let hooks = groups.iter().filter_map(|group| group["hooks"].as_array()).flatten();
        hooks.filter_map(|hook| hook["command"].as_str()).find(|command| is_our_hook(command))
    };
    let program = program_of(CLAUDE_CODE.hooks.iter().find_map(|hook| our_hook(hook.event))?);
    let (found, missing): (Vec<&Registration>, Vec<&Registration>) =
        CLAUDE_CODE.hooks.iter().partition(|hook| our_hook(hook.event).is_some());
    Some(Registered {
        file: file.into(),
        events: found.into_iter().map(|hook| hook.event).collect(),
        missing: missing.into_iter().filter(|hook| is_basic(hook)).map(|hook| hook.event).collect(),
        is_program_there: Path::new(program).is_file(),
        program: program.into(),
    })
}

fn read(file: &Path) -> Option<Value> {
    serde_json::from_slice(&user_file::read(file).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn hooks_are_found_where_they_are_and_the_missing_are_named() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(in_dir(dir.path()), []);
        let settings = r#"{"hooks": {
            "Stop": [{"hooks": [{"command": "echo"}, {"command": "\"/bin/claude-mem\" summary"}]}],
            "SessionEnd": [{"hooks": [{"command": "\"/bin/other\" cleanup"}]}]}}"#;
        fs::write(dir.path().join("settings.local.json"), settings).unwrap();
        let found = in_dir(dir.path()).remove(0);
        assert_eq!(
            (found.events, found.missing.len()),
            (vec!["Stop"], CLAUDE_CODE.hooks.iter().filter(|hook| is_basic(hook)).count() - 1)
        );
        assert_eq!((found.program.as_str(), found.is_program_there), ("/bin/claude-mem", false));
    }

    #[test]
    fn a_hook_of_the_plugin_is_skipped_only_if_another_one_is_called() {
        let dir = tempfile::tempdir().unwrap();
        let (home, root) = (dir.path().join("home"), dir.path().join("plugin"));
        let (installed, copy) = (dir.path().join("claude-mem"), root.join("bin/claude-mem"));
        fs::create_dir_all(home.join(".claude")).unwrap();
        fs::write(&installed, "").unwrap();
        let inherited = Environment::fixed(&[("CLAUDE_PLUGIN_ROOT", root.to_str().unwrap())]);
        let yields = |program: &Path, command: &str| {
            is_duplicate_of_installed(&inherited, Some(&home), program, command)
        };
        let register = |hooks: Value| {
            let settings = serde_json::json!({ "hooks": hooks }).to_string();
            fs::write(home.join(".claude/settings.json"), settings).unwrap();
        };
        assert!(!yields(&copy, "save"), "nothing is installed");
        let all = Value::Object(crate::hooks(installed.to_str().unwrap(), None));
        register(all.clone());
        for command in CLAUDE_CODE.hooks.iter().filter_map(|hook| hook.alias).chain([HOOK]) {
            assert!(yields(&copy, command), "{command}");
            assert!(!yields(&installed, command), "{command}: the installed one records");
        }
        let mut some = all.clone();
        some.as_object_mut().unwrap().remove("PostToolUseFailure");
        register(some);
        assert!(!yields(&copy, "save") && yields(&copy, "new"), "one of its events is missing");
        assert!(!yields(&copy, HOOK), "one of all events is missing");
        let mut narrow = all.clone();
        narrow["PostToolUse"][0]["matcher"] = "Edit".into();
        register(narrow);
        assert!(!yields(&copy, "save"), "other tools would be lost");
        let one_command = all.to_string();
        let one_command = CLAUDE_CODE.hooks.iter().fold(one_command, |text, hook| {
            let command = CLAUDE_CODE.hook_command(hook);
            text.replace(&format!("\\\" {command}\""), "\\\" hook --client claude-code\"")
        });
        register(serde_json::from_str(&one_command).unwrap());
        assert!(yields(&copy, "save") && yields(&copy, HOOK), "{one_command}");
        register(all);
        fs::remove_file(&installed).unwrap();
        assert!(!yields(&copy, "save"), "the installed program is gone");
    }

    #[test]
    fn a_plugin_counts_when_it_is_on() {
        let dir = tempfile::tempdir().unwrap();
        for (text, expected) in [("true", true), ("false", false)] {
            let settings = format!(r#"{{"enabledPlugins": {{"mem@mem-local": {text}}}}}"#);
            fs::write(dir.path().join("settings.json"), settings).unwrap();
            assert_eq!(is_plugin_enabled(dir.path()), expected);
        }
    }
}
