//! Detects our hooks in Claude Code's current settings.

use std::{
    env,
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::Value;

use crate::{MARKETPLACE, PLUGIN, Targets, is_our_hook};
use claude_mem_capture::{
    CLAUDE_CODE,
    clients::Registration,
    registration::{is_basic, program_of, read},
};
use claude_mem_core::app::App;

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

/// Whether the plugin that `claude-mem generate plugin` writes is enabled.
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

#[cfg(test)]
mod tests {
    use super::*;
    use claude_mem_capture::{clients::HOOK, registration::is_duplicate_of_installed};
    use claude_mem_core::environment::Environment;
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
