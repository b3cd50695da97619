//! Starts the client as a child process: program, directory, environment, flags.

use std::{ffi::OsString, path::PathBuf};

use crate::providers::Setup;
use claude_mem_core::settings::{self, ClaudeAuth, table};

pub(super) struct LaunchConfig {
    /// Claude Code.
    pub(super) executable: PathBuf,
    /// Our own program: starts the client and ends with it.
    pub(super) launcher: PathBuf,
    /// An empty directory of our own, so that no project is ever read.
    pub(super) cwd: PathBuf,
    pub(super) environment: Vec<(OsString, OsString)>,
}

/// Our hooks do nothing if this is set: capturing our own requests would never end.
const MARKER: &str = "CLAUDE_MEM_INTERNAL";

/// The client retries once, because it handles short interruptions at the lowest cost. It announces
/// longer delays, and we then end the request.
const SWITCHES: [(&str, &str); 7] = [
    (MARKER, "1"),
    ("CLAUDE_CODE_MAX_RETRIES", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("MAX_THINKING_TOKENS", "0"),
];

/// Environment of the client: variables of the machine and its user, those in the user's `.env`,
/// and our own. Other tokens, URLs and profiles are excluded: they may belong to one project, and
/// we distill all projects.
pub(super) fn environment(setup: &Setup<'_>) -> Vec<(OsString, OsString)> {
    let mut environment = setup.environment.own();
    let chosen = settings::variables(&setup.paths.credentials());
    environment.extend(chosen.into_iter().map(|(name, value)| (name.into(), value.into())));
    environment.extend(SWITCHES.map(|(name, value)| (name.into(), value.into())));
    if setup.settings.get(&table::CLAUDE_AUTH_METHOD) == ClaudeAuth::ApiKey {
        let key = setup.settings.get(&table::ANTHROPIC_API_KEY);
        environment.extend((!key.is_empty()).then(|| ("ANTHROPIC_API_KEY".into(), key.into())));
    }
    environment
}

/// The arguments, each tested with the real client: no tools, no settings but these, no MCP
/// servers, no transcript, no slash commands, no thinking. File reading is denied, because the
/// client would read every `@path` in the input.
pub(super) fn arguments(model: &str, system: &str) -> Vec<String> {
    let settings = concat!(
        r#"{"disableAllHooks":true,"alwaysThinkingEnabled":false,"#,
        r#""permissions":{"deny":["Read(//**)"]}}"#,
    );
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
    // Joined by `=` so that no value is parsed as a flag.
    flags.chain(pairs.map(|(name, value)| format!("{name}={value}"))).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use claude_mem_core::{environment::Environment, paths::Paths, settings::Settings};

    fn inherited(variables: &[(&str, &str)], own: &str) -> Vec<(String, String)> {
        let data = tempfile::tempdir().unwrap();
        fs::write(data.path().join(".env"), own).unwrap();
        let environment = Environment::fixed(variables);
        let paths = Paths { home: None, data: data.path().into() };
        let settings = Settings::load(&paths, &environment);
        let setup = Setup { settings: &settings, paths: &paths, environment: &environment };
        let text = |value: OsString| value.into_string().unwrap();
        let all = super::environment(&setup).into_iter();
        let all = all.map(|(name, value)| (text(name), text(value)));
        all.filter(|(name, _)| !SWITCHES.iter().any(|(switch, _)| switch == name)).collect()
    }

    #[test]
    fn only_variables_of_the_user_are_inherited() {
        let of_project = [
            ("HOME", "/home/ada"),
            ("ANTHROPIC_AUTH_TOKEN", "of-a-project"),
            ("ANTHROPIC_BASE_URL", "http://of-a-project"),
            ("CLAUDE_CODE_OAUTH_TOKEN", "of-a-project"),
            ("CLAUDE_CODE_SESSION_ID", "s"),
            ("AWS_PROFILE", "of-a-project"),
        ];
        let own = "# for all\nexport ANTHROPIC_BASE_URL=\"http://gateway\"\nAWS_PROFILE=mine\n\
            CLAUDE_MEM_MODEL=x\nOPENAI_API_KEY=k\nANTHROPIC_API_KEY=k\nnot a line\n";
        let expected = [
            ("HOME", "/home/ada"),
            ("ANTHROPIC_BASE_URL", "http://gateway"),
            ("AWS_PROFILE", "mine"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(inherited(&of_project, own), expected);
    }

    #[test]
    fn an_api_key_comes_from_the_settings_and_never_from_the_environment() {
        let key = |variables: &[(&str, &str)], own: &str| {
            let found = inherited(variables, own).into_iter();
            found.rev().find(|(name, _)| name == "ANTHROPIC_API_KEY").map(|(_, value)| value)
        };
        let method = ("CLAUDE_MEM_CLAUDE_AUTH_METHOD", "api-key");
        let theirs = ("ANTHROPIC_API_KEY", "sk-theirs");
        let ours = ("CLAUDE_MEM_ANTHROPIC_API_KEY", "sk-ours");
        assert_eq!(key(&[theirs, ours], ""), None);
        assert_eq!(key(&[theirs, method], ""), None);
        assert_eq!(key(&[theirs, ours, method], "").as_deref(), Some("sk-ours"));
        assert_eq!(key(&[theirs, method], "ANTHROPIC_API_KEY=sk-own").as_deref(), Some("sk-own"));
    }
}
