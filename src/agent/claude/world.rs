//! What the child is started with: program, directory, environment, flags.

use std::{ffi::OsString, path::PathBuf};

use super::super::Setup;
use crate::settings::table;

/// Where a child lives.
pub(super) struct World {
    /// Claude Code.
    pub(super) executable: PathBuf,
    /// Our own program, which starts it and ends with it.
    pub(super) launcher: PathBuf,
    /// An empty directory of our own, so that no project is ever read.
    pub(super) cwd: PathBuf,
    /// Everything it inherits.
    pub(super) environment: Vec<(OsString, OsString)>,
}

/// Hooks see this and do nothing: a memory of making memories would never end.
const MARKER: &str = "CLAUDE_MEM_INTERNAL";

/// Set by Claude Code for what it starts, and wrong for a client that is not below it.
const DROPPED: [&str; 7] = [
    "AI_AGENT",
    "CLAUDECODE",
    "CLAUDE_EFFORT",
    "CLAUDE_ENV_FILE",
    "CLAUDE_PID",
    "CLAUDE_PROJECT_DIR",
    // A project's key must never pay for memory; the setting below decides.
    "ANTHROPIC_API_KEY",
];

const DROPPED_PREFIXES: [&str; 2] = ["CLAUDE_CODE_", "CLAUDE_PLUGIN_"];

/// Of those, the ones a user sets to log in at all.
const KEPT: [&str; 10] = [
    "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
    "CLAUDE_CODE_CLIENT_CERT",
    "CLAUDE_CODE_CLIENT_KEY",
    "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
    "CLAUDE_CODE_SKIP_VERTEX_AUTH",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_VERTEX",
];

/// Our own switches. One retry, because a short interruption is cheapest mended by the client; anything
/// longer is announced by it and taken over by us.
const SWITCHES: [(&str, &str); 7] = [
    (MARKER, "1"),
    ("CLAUDE_CODE_MAX_RETRIES", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("MAX_THINKING_TOKENS", "0"),
];

/// The user's environment, without what belongs to another session or to a project.
pub(super) fn environment(setup: &Setup<'_>) -> Vec<(OsString, OsString)> {
    let mut environment = setup.environment.all();
    environment.retain(|(name, _)| name.to_str().is_none_or(is_inherited));
    environment.extend(SWITCHES.map(|(name, value)| (name.into(), value.into())));
    if setup.settings.text(&table::CLAUDE_AUTH_METHOD) == "api-key" {
        let own = setup.settings.text(&table::ANTHROPIC_API_KEY);
        let own = Some(OsString::from(own)).filter(|key| !key.is_empty());
        let key = own.or_else(|| setup.environment.get("ANTHROPIC_API_KEY"));
        environment.extend(key.map(|key| ("ANTHROPIC_API_KEY".into(), key)));
    }
    environment
}

fn is_inherited(name: &str) -> bool {
    let is_switched = SWITCHES.iter().any(|(switch, _)| *switch == name);
    let is_dropped =
        DROPPED.contains(&name) || DROPPED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    !is_switched && (!is_dropped || KEPT.contains(&name))
}

/// The arguments, each checked against the real client. No tools; no settings but these; no MCP servers;
/// no transcript; no slash commands; no thinking; and no reading of files, which the client would do by
/// itself for every `@path` it meets.
pub(super) fn arguments(model: &str, system: &str) -> Vec<String> {
    let settings = r#"{"disableAllHooks":true,"alwaysThinkingEnabled":false,"permissions":{"deny":["Read(//**)"]}}"#;
    let pairs = [
        ("--input-format", "stream-json"),
        ("--output-format", "stream-json"),
        ("--model", model),
        ("--system-prompt", system),
        ("--tools", ""),
        ("--setting-sources", ""),
        ("--settings", settings),
    ];
    let flags = [
        "-p",
        "--verbose",
        "--strict-mcp-config",
        "--no-session-persistence",
        "--disable-slash-commands",
    ];
    let flags = flags.into_iter().map(str::to_owned);
    // Joined by `=` so that no value is ever taken for a flag.
    flags.chain(pairs.map(|(name, value)| format!("{name}={value}"))).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{environment::Environment, paths::Paths, settings::Settings};

    fn inherited(variables: &[(&str, &str)]) -> Vec<(String, String)> {
        let environment = Environment::fixed(variables);
        let paths = Paths { home: None, data: Path::new("/nowhere").into() };
        let settings = Settings::load(&paths, &environment);
        let setup = Setup { settings: &settings, paths: &paths, environment: &environment };
        let text = |value: OsString| value.into_string().unwrap();
        let all = super::environment(&setup).into_iter();
        let all = all.map(|(name, value)| (text(name), text(value)));
        all.filter(|(name, _)| !SWITCHES.iter().any(|(switch, _)| switch == name)).collect()
    }

    #[test]
    fn nothing_of_another_session_is_inherited_and_the_login_is() {
        let kept = [
            ("HOME", "/home/ada"),
            ("PATH", "/bin"),
            ("CLAUDE_CONFIG_DIR", "/home/ada/.claude-work"),
            ("CLAUDE_CODE_OAUTH_TOKEN", "token"),
            ("HTTPS_PROXY", "http://proxy"),
        ];
        let dropped = [
            ("CLAUDECODE", "1"),
            ("CLAUDE_CODE_SESSION_ID", "s"),
            ("CLAUDE_CODE_ENTRYPOINT", "cli"),
            ("CLAUDE_CODE_MAX_RETRIES", "10"),
            ("CLAUDE_PLUGIN_ROOT", "/p"),
            ("CLAUDE_PROJECT_DIR", "/p"),
            ("CLAUDE_PID", "1"),
            ("CLAUDE_EFFORT", "high"),
            ("CLAUDE_ENV_FILE", "/e"),
            ("AI_AGENT", "x"),
            ("ANTHROPIC_API_KEY", "sk-of-a-project"),
        ];
        let all: Vec<_> = kept.into_iter().chain(dropped).collect();
        let expected = kept.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(inherited(&all), expected);
    }

    #[test]
    fn a_key_is_used_only_where_the_user_says_so_and_our_own_comes_first() {
        let key = |variables: &[(&str, &str)]| {
            let found =
                inherited(variables).into_iter().rfind(|(name, _)| name == "ANTHROPIC_API_KEY");
            found.map(|(_, value)| value)
        };
        let method = ("CLAUDE_MEM_CLAUDE_AUTH_METHOD", "api-key");
        let theirs = ("ANTHROPIC_API_KEY", "sk-theirs");
        let ours = ("CLAUDE_MEM_ANTHROPIC_API_KEY", "sk-ours");
        assert_eq!(key(&[theirs, ours]), None);
        assert_eq!(key(&[theirs, method]).as_deref(), Some("sk-theirs"));
        assert_eq!(key(&[theirs, ours, method]).as_deref(), Some("sk-ours"));
        assert_eq!(key(&[method]), None);
    }
}
