//! The user's approval of our hooks in Codex. Codex runs a hook only if its configuration contains
//! the hash of exactly this hook at exactly this position. Otherwise it asks in its terminal, and
//! without a terminal it skips the hook silently.

use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toml_edit::{Item, value};

use claude_mem_core::json_edit::{Document, Unusable};

use crate::{is_our_hook, toml_file::TomlFile};

/// The place and the hash of one hook.
#[derive(Debug, PartialEq)]
struct Approval {
    /// `PATH:EVENT:GROUP:HOOK`.
    place: String,
    hash: String,
    event: String,
}

/// Events whose hooks are not approved. Empty if all are.
pub fn unapproved(hooks_file: &Path, config_file: &Path) -> Result<Vec<String>, Unusable> {
    let approvals = approvals(&Document::open(hooks_file)?);
    let mut config = TomlFile::open(config_file)?;
    let state = config.document().get("hooks").and_then(|hooks| hooks.get("state"));
    let is_missing = |approval: &Approval| {
        let entry = state.and_then(|state| state.get(&approval.place));
        let hash = entry.and_then(|entry| entry.get("trusted_hash")).and_then(Item::as_str);
        hash != Some(&approval.hash)
    };
    Ok(approvals.into_iter().filter(is_missing).map(|approval| approval.event).collect())
}

/// Writes the approval of all our hooks in `hooks` into Codex's configuration, which may be changed
/// already.
pub(crate) fn approve(hooks: &Document, config: &mut TomlFile) -> Result<(), Unusable> {
    for approval in approvals(hooks) {
        let state = config.table(&["hooks", "state", &approval.place])?;
        state.set_implicit(false);
        state["trusted_hash"] = value(&approval.hash);
    }
    Ok(())
}

/// Removes the approvals of our hooks in `hooks`.
pub(crate) fn forget(hooks: &Document, config: &mut TomlFile) {
    let Some(Item::Table(of_hooks)) = config.document().get_mut("hooks") else { return };
    let Some(state) = of_hooks.get_mut("state").and_then(Item::as_table_like_mut) else { return };
    let removed = approvals(hooks).into_iter().filter_map(|it| state.remove(&it.place)).count();
    if removed == 0 {
        return;
    }
    if state.is_empty() {
        of_hooks.remove("state");
    }
    if of_hooks.is_empty() {
        config.document().remove("hooks");
    }
}

fn approvals(hooks: &Document) -> Vec<Approval> {
    let Value::Object(events) = hooks.get("hooks") else { return Vec::new() };
    let mut found = Vec::new();
    for (event, groups) in events {
        for (at, group) in groups.as_array().into_iter().flatten().enumerate() {
            let handlers = group["hooks"].as_array().into_iter().flatten().enumerate();
            for (number, handler) in handlers {
                if !handler["command"].as_str().is_some_and(is_our_hook) {
                    continue;
                }
                let name = snake_case(&event);
                let place = format!("{}:{name}:{at}:{number}", hooks.file().display());
                let hash = hash(&name, group, handler);
                found.push(Approval { place, hash, event: event.clone() });
            }
        }
    }
    found
}

/// The hash of a hook: of its JSON without white space, with sorted names and defaults included.
fn hash(event: &str, group: &Value, handler: &Value) -> String {
    let timeout = handler["timeout"].as_u64().unwrap_or(600);
    let hook = json!({"async": false, "command": handler["command"], "timeout": timeout,
        "type": "command"});
    let mut hashed = json!({"event_name": event, "hooks": [hook]});
    let takes_matcher = !matches!(event, "user_prompt_submit" | "stop");
    if let Some(matcher) = group.get("matcher").filter(|_| takes_matcher) {
        hashed["matcher"] = matcher.clone();
    }
    let digest = Sha256::digest(sorted(&hashed).as_bytes());
    format!("sha256:{}", digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

/// JSON with sorted names.
fn sorted(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let fields: Vec<String> = fields
                .into_iter()
                .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), sorted(value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(sorted).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

/// `PostToolUse` as `post_tool_use`.
fn snake_case(event: &str) -> String {
    let mut name = String::new();
    for character in event.chars() {
        if character.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(character.to_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_documented_text() {
        let handler = json!({"type": "command", "command": "\"/b/claude-mem\" hook --client codex",
            "timeout": 5});
        let group = json!({"matcher": "*", "hooks": [handler]});
        let text = r#"{"event_name":"post_tool_use","hooks":[{"async":false,"command":"\"/b/claude-mem\" hook --client codex","timeout":5,"type":"command"}],"matcher":"*"}"#;
        let digest = Sha256::digest(text.as_bytes());
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash("post_tool_use", &group, &handler), format!("sha256:{digest}"));
        assert_ne!(hash("stop", &group, &handler), hash("subagent_stop", &group, &handler));
        assert_eq!(snake_case("UserPromptSubmit"), "user_prompt_submit");
    }
}
