//! Detects other memory tools in Claude Code.

use std::path::Path;

use claude_mem_core::user_file;
use serde_json::Value;

use crate::{MARKETPLACE, NAME, PLUGIN, is_our_hook};

/// Another active memory tool.
#[derive(Debug, PartialEq)]
pub struct Rival {
    /// The tool, and its effect.
    pub what: String,
    /// How to disable it.
    pub remedy: String,
}

/// Searches Claude Code's directory. Ignores unreadable files.
pub fn find(dir: &Path) -> Vec<Rival> {
    let settings = json(&dir.join("settings.json"));
    let installed = json(&dir.join("plugins/installed_plugins.json"));
    let mut found: Vec<Rival> =
        active_plugins(&settings, &installed).iter().map(|name| of_plugin(name)).collect();
    found.extend(hooks(&settings).map(|(event, command)| Rival {
        what: doubled(&format!("as a hook of {event} (`{command}`)")),
        remedy: format!("remove that hook from {}", dir.join("settings.json").display()),
    }));
    found
}

fn json(file: &Path) -> Value {
    let bytes = user_file::read(file).ok();
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// Plugins called claude-mem, and our own, that are enabled, or installed and not disabled.
fn active_plugins(settings: &Value, installed: &Value) -> Vec<String> {
    let enabled = &settings["enabledPlugins"];
    let mut names: Vec<String> = [enabled, &installed["plugins"], installed]
        .into_iter()
        .filter_map(Value::as_object)
        .flat_map(|plugins| plugins.keys().cloned())
        .filter(|name| name.split('@').next() == Some(NAME) || *name == ours())
        .filter(|name| enabled[name] != Value::Bool(false))
        .collect();
    names.sort();
    names.dedup();
    names
}

fn of_plugin(name: &str) -> Rival {
    let what = if name == ours() {
        format!(
            "claude-mem is also active as the plugin {name}; its hooks record nothing, \
             but Claude sees every tool twice"
        )
    } else {
        doubled(&format!("as the plugin {name}"))
    };
    Rival { what, remedy: format!("disable it with `claude plugin disable {name}`") }
}

fn ours() -> String {
    format!("{PLUGIN}@{MARKETPLACE}")
}

fn doubled(how: &str) -> String {
    format!("the TypeScript claude-mem is active {how}; both would add context to every session")
}

/// Hooks that name claude-mem and are not ours.
fn hooks(settings: &Value) -> impl Iterator<Item = (&str, &str)> {
    let events = settings["hooks"].as_object().into_iter().flatten();
    let groups = events.flat_map(|(event, groups)| {
        groups.as_array().into_iter().flatten().map(move |group| (event.as_str(), group))
    });
    let hooks = groups.flat_map(|(event, group)| {
        group["hooks"].as_array().into_iter().flatten().map(move |hook| (event, hook))
    });
    hooks.filter_map(|(event, hook)| {
        let command = hook["command"].as_str()?;
        let is_theirs = ["claude-mem", "worker-service.cjs", "thedotmack"]
            .iter()
            .any(|mark| command.contains(mark));
        (is_theirs && !is_our_hook(command)).then_some((event, command))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn found(settings: &str, installed: &str) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("plugins")).unwrap();
        fs::write(dir.path().join("settings.json"), settings).unwrap();
        fs::write(dir.path().join("plugins/installed_plugins.json"), installed).unwrap();
        find(dir.path()).into_iter().map(|rival| rival.what).collect()
    }

    #[test]
    fn an_active_plugin_is_named_once_and_a_disabled_one_never() {
        let installed = r#"{"version":2,"plugins":{"claude-mem@thedotmack":[{}],"other@x":[{}]}}"#;
        let named = ["the TypeScript claude-mem is active as the plugin claude-mem@thedotmack; \
                      both would add context to every session"];
        let enabled = r#"{"enabledPlugins":{"claude-mem@thedotmack":true}}"#;
        assert_eq!(found(enabled, installed), named);
        assert_eq!(found("{}", installed), named);
        assert_eq!(found(enabled, "broken"), named);
        let disabled = r#"{"enabledPlugins":{"claude-mem@thedotmack":false}}"#;
        assert!(found(disabled, installed).is_empty());
    }

    #[test]
    fn our_own_plugin_is_named_too() {
        let enabled = r#"{"enabledPlugins":{"mem@mem-local":true}}"#;
        let named = "\
            claude-mem is also active as the plugin mem@mem-local; its hooks record nothing, but \
            Claude sees every tool twice";
        assert_eq!(found(enabled, ""), [named]);
    }

    #[test]
    fn hooks_of_others_are_distinguished_from_ours() {
        let settings = r#"{"hooks":{"Stop":[{"hooks":[
            {"command":"\"/opt/claude-mem\" summary"},
            {"command":"node ~/.claude/plugins/marketplaces/thedotmack/plugin/scripts/bun-runner.js"}]},
            {"hooks":3}, 4],"PreToolUse":5}}"#;
        let named = found(settings, "");
        assert_eq!(named.len(), 1);
        assert!(
            named[0].starts_with("the TypeScript claude-mem is active as a hook of Stop (`node"),
            "{named:?}"
        );
    }
}
