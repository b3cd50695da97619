//! Whether Claude Code will call us: what its settings say now, whoever wrote it there.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::Value;

use super::{HOOKS, MARKETPLACE, PLUGIN, Targets, is_our_hook};
use crate::app::App;

/// Whether Claude Code will call us where the command was run: by the user's settings, a project's, or a plugin.
#[derive(Debug, Serialize)]
pub(crate) struct Hooks {
    pub(crate) is_installed: bool,
    pub(crate) is_plugin: bool,
    pub(crate) registered: Vec<Registered>,
}

impl Hooks {
    pub(crate) fn look(app: &App) -> Self {
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

/// Our hooks in one settings file.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Registered {
    /// The file.
    pub(crate) file: PathBuf,
    /// Events that will reach us.
    pub(crate) events: Vec<&'static str>,
    /// Events that should and will not.
    pub(crate) missing: Vec<&'static str>,
    /// The binary that is called.
    pub(crate) program: String,
    /// Whether that binary is there.
    pub(crate) is_program_there: bool,
}

/// Our hooks in the settings of this directory of Claude Code's, in either of its files.
fn in_dir(dir: &Path) -> Vec<Registered> {
    ["settings.json", "settings.local.json"]
        .into_iter()
        .filter_map(|name| in_file(&dir.join(name)))
        .collect()
}

/// Whether the plugin that `claude-mem plugin` writes is switched on.
fn is_plugin_enabled(dir: &Path) -> bool {
    let name = format!("{PLUGIN}@{MARKETPLACE}");
    read(&dir.join("settings.json"))
        .is_some_and(|settings| settings["enabledPlugins"][name] == Value::Bool(true))
}

fn in_file(file: &Path) -> Option<Registered> {
    let settings = read(file)?;
    let command_of = |event: &str| {
        let groups = settings["hooks"][event].as_array()?;
        let hooks = groups.iter().filter_map(|group| group["hooks"].as_array()).flatten();
        hooks.filter_map(|hook| hook["command"].as_str()).find(|command| is_our_hook(command))
    };
    let program = HOOKS.iter().find_map(|hook| command_of(hook.0))?;
    let program = program.trim_start_matches('"').split("\" ").next().unwrap_or_default();
    let (events, missing): (Vec<_>, Vec<_>) =
        HOOKS.iter().map(|hook| hook.0).partition(|event| command_of(event).is_some());
    Some(Registered {
        file: file.into(),
        events,
        missing,
        is_program_there: Path::new(program).is_file(),
        program: program.into(),
    })
}

fn read(file: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_are_found_where_they_are_and_the_missing_are_named() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(in_dir(dir.path()), []);
        let settings = r#"{"hooks": {
            "Stop": [{"hooks": [{"command": "echo"}, {"command": "\"/bin/claude-mem\" summary"}]}],
            "SessionEnd": [{"hooks": [{"command": "\"/bin/other\" cleanup"}]}]}}"#;
        fs::write(dir.path().join("settings.local.json"), settings).unwrap();
        let found = in_dir(dir.path()).remove(0);
        assert_eq!((found.events, found.missing.len()), (vec!["Stop"], HOOKS.len() - 1));
        assert_eq!((found.program.as_str(), found.is_program_there), ("/bin/claude-mem", false));
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
