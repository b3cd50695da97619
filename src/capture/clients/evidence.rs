//! Identifies the client that runs a hook. The command names the client it was registered for, but
//! several clients also run Claude Code's hooks, or each other's, and set its environment
//! variables. The payload takes precedence, then the path of the transcript, then the environment.

use std::path::Path;

use claude_mem_core::{environment::Environment, user_file};

use super::{CLIENTS, Client, HOOK, claude_code::CLAUDE_CODE};
use crate::payload::Payload;

/// Evidence for a client: fields, paths and variables that no other client uses.
#[derive(Debug)]
pub struct Evidence {
    /// Fields of a payload, with a value if other clients use the same field.
    pub fields: &'static [(&'static str, Option<&'static str>)],
    /// Parts of the transcript's path, with `/` as the separator.
    pub transcript: &'static [&'static str],
    /// Environment variables of its hooks. They are used only for hooks registered for Claude Code,
    /// because a client started from the shell of another client inherits its variables.
    pub variables: &'static [&'static str],
}

impl Evidence {
    pub(super) const NONE: Self = Self { fields: &[], transcript: &[], variables: &[] };

    fn is_in_fields(&self, payload: &Payload<'_>) -> bool {
        self.fields.iter().any(|(name, value)| match value {
            None => payload.has(name),
            Some(value) => payload.peek_text(name).as_deref() == Some(value),
        })
    }
}

/// The client that runs a hook which was registered for `called`.
pub(crate) fn judge(
    called: &'static Client,
    payload: &Payload<'_>,
    environment: &Environment,
) -> &'static Client {
    let first = |is_known: &dyn Fn(&Client) -> bool| {
        CLIENTS.iter().copied().find(|client| is_known(client))
    };
    if let Some(client) = first(&|client| client.evidence.is_in_fields(payload)) {
        return client;
    }
    if let Some(path) = payload.peek_text("transcript_path") {
        let path = path.replace('\\', "/");
        let is_of = |client: &Client| client.evidence.transcript.iter().any(|it| path.contains(it));
        if let Some(client) = first(&is_of) {
            return client;
        }
    }
    if called.name != CLAUDE_CODE.name {
        return called;
    }
    let session = payload.peek_text("session_id");
    let session = session.as_deref().filter(|session| !session.is_empty());
    let has_session = |client: &Client| {
        let of_client = client.session_variable.and_then(|name| environment.text(name));
        session.is_some() && of_client.as_deref() == session
    };
    let has_variable = |client: &Client| {
        client.evidence.variables.iter().any(|name| environment.get(name).is_some())
    };
    first(&has_session).or_else(|| first(&has_variable)).unwrap_or(called)
}

/// Whether the client itself has our hooks registered. It then also runs the hook of `called`,
/// which would record everything twice.
pub(crate) fn has_own_hooks(
    client: &Client,
    called: &Client,
    environment: &Environment,
    home: Option<&Path>,
) -> bool {
    let owner = client.config.registered_as.unwrap_or(client.name);
    if owner == called.name {
        return false;
    }
    let file = client.config.hooks_file(environment, home);
    let command = format!("{HOOK} --client {owner}");
    let text = file.and_then(|file| user_file::read_to_string(&file).ok());
    text.is_some_and(|text| text.contains(&command))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::find;
    use std::fs;

    fn judged(called: &str, json: &str, variables: &[(&str, &str)]) -> &'static str {
        let (payload, _) = Payload::read(json);
        judge(find(called).unwrap(), &payload, &Environment::fixed(variables)).name
    }

    #[test]
    fn a_client_that_runs_hooks_of_another_is_recognized_by_its_payload() {
        for (json, expected) in [
            (r#"{"session_id":"s","turn_id":"t"}"#, "codex"),
            (
                r#"{"session_id":"s","cursor_version":"3","transcript_path":"/h/.claude/x"}"#,
                "cursor",
            ),
            (r#"{"sessionId":"s","hookEventName":"Stop"}"#, "vscode"),
            (r#"{"session_id":"s","client_type":"kimi_code_cli"}"#, "kimi"),
            (r#"{"session_id":"s","client_type":"other"}"#, "claude-code"),
            (r#"{"session_id":"s","submitted_prompt":"p"}"#, "qwen"),
            (r#"{"session_id":"s","platform":"opencode"}"#, "opencode"),
            (r#"{"clineVersion":"","tool_result":{}}"#, "cline"),
            (r#"{"session_id":"s","tool_result":{}}"#, "copilot"),
        ] {
            assert_eq!(judged("claude-code", json, &[]), expected, "{json}");
        }
    }

    #[test]
    fn the_transcript_takes_precedence_over_the_environment() {
        let at = |path: &str| format!(r#"{{"session_id":"s","transcript_path":{path:?}}}"#);
        for (path, expected) in [
            ("/h/.claude/projects/p/s.jsonl", "claude-code"),
            ("/h/.codex/sessions/2026/rollout-x.jsonl", "codex"),
            ("C:\\h\\.gemini\\tmp\\p\\chats\\s.jsonl", "gemini"),
            ("/h/.gemini/antigravity/s.jsonl", "antigravity"),
            ("/h/.qwen/projects/p/chats/s.jsonl", "qwen"),
            ("/h/.copilot/session-state/s/events.jsonl", "copilot"),
            ("/h/.factory/sessions/p/s.jsonl", "droid"),
        ] {
            let inherited = [("COPILOT_CLI", "1"), ("CURSOR_VERSION", "3")];
            assert_eq!(judged("claude-code", &at(path), &inherited), expected, "{path}");
        }
        let bare = r#"{"session_id":"s"}"#;
        assert_eq!(judged("claude-code", bare, &[("CLAUDE_PROJECT_DIR", "/p")]), "claude-code");
        assert_eq!(judged("claude-code", bare, &[("COPILOT_CLI", "1")]), "copilot");
        let both = [("COPILOT_CLI", "1"), ("CLAUDE_CODE_SESSION_ID", "s")];
        assert_eq!(judged("claude-code", bare, &both), "claude-code", "the session is its own");
        assert_eq!(judged("kimi", bare, &[("COPILOT_CLI", "1")]), "kimi", "only inherited");
    }

    #[test]
    fn a_hook_of_claude_code_is_skipped_if_the_client_has_its_own() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".copilot/hooks/claude-mem.json");
        let environment = Environment::fixed(&[]);
        let yields = |client: &str, called: &str| {
            let (client, called) = (find(client).unwrap(), find(called).unwrap());
            has_own_hooks(client, called, &environment, Some(home.path()))
        };
        assert!(!yields("copilot", "claude-code"), "none is registered");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, r#"{"command": "\"/b/claude-mem\" hook --client copilot"}"#).unwrap();
        assert!(yields("copilot", "claude-code") && yields("vscode", "claude-code"));
        assert!(!yields("copilot", "copilot") && !yields("vscode", "copilot"), "it is the own one");
    }
}
