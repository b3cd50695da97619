//! Every setting there is: name, default, what it accepts, what it means.
//!
//! Names are those of the TypeScript claude-mem wherever they mean the same, so that a settings file can
//! be shared with it; keys that mean nothing here are left alone.

use super::value::Kind;

/// One setting. Its name is both the key in `settings.json` and the environment variable that wins over it.
#[derive(Debug, PartialEq)]
pub struct Setting {
    /// Key and environment variable.
    pub name: &'static str,
    /// In force when nobody says otherwise.
    pub default: &'static str,
    /// What it accepts.
    pub kind: Kind,
    /// One line for people.
    pub meaning: &'static str,
}

const fn setting(
    name: &'static str,
    default: &'static str,
    kind: Kind,
    meaning: &'static str,
) -> Setting {
    Setting { name, default, kind, meaning }
}

macro_rules! settings {
    ($($constant:ident: $name:literal, $default:literal, $kind:expr, $meaning:literal;)*) => {
        $(#[doc = $meaning]
        pub static $constant: Setting = setting($name, $default, $kind, $meaning);)*
        /// In the order people look for them.
        pub static ALL: &[&Setting] = &[$(&$constant),*];
    };
}
use Kind::{Choice, Count, Flag, List, Money, Secret, Text};

settings! {
    // What is recorded.
    ENABLED: "CLAUDE_MEM_ENABLED", "true", Flag, "Record sessions and provide context; false disables both";
    EXCLUDED_PROJECTS: "CLAUDE_MEM_EXCLUDED_PROJECTS", "", List, "Folders that are never recorded, as globs: `*`, `**`, `?`, `~`";
    DISABLED_PROJECTS: "CLAUDE_MEM_DISABLED_PROJECTS", "", List, "Projects disabled by `claude-mem settings project off`";
    SKIP_TOOLS: "CLAUDE_MEM_SKIP_TOOLS", "ListMcpResourcesTool,SlashCommand,Skill,TodoWrite,AskUserQuestion", List, "Tools that are never recorded";
    REDACT_SECRETS: "CLAUDE_MEM_REDACT_SECRETS", "true", Flag, "Replace recognized keys and passwords before anything is stored";
    FIELD_BYTES_MAX: "CLAUDE_MEM_FIELD_BYTES_MAX", "262144", Count(1024, 8 << 20), "Maximum bytes of a tool input or output; longer ones lose their middle";
    SYNC: "CLAUDE_MEM_SYNC", "default", Choice(&["default", "always"]), "When tool uses are flushed to disk: `default` within a second, `always` before the hook returns";
    // Who distils.
    PROVIDER: "CLAUDE_MEM_PROVIDER", "auto", Choice(&["auto", "claude", "anthropic", "openai", "extract"]), "Provider that distills events; auto uses the first that works";
    MODEL: "CLAUDE_MEM_MODEL", "claude-haiku-4-5", Text, "Model of the claude and anthropic providers";
    CLAUDE_CODE_PATH: "CLAUDE_CODE_PATH", "", Text, "Path of Claude Code's executable; empty for `claude` on the PATH";
    CLAUDE_AUTH_METHOD: "CLAUDE_MEM_CLAUDE_AUTH_METHOD", "subscription", Choice(&["subscription", "api-key"]), "Login of the claude provider; api-key uses `CLAUDE_MEM_ANTHROPIC_API_KEY`";
    ANTHROPIC_API_KEY: "CLAUDE_MEM_ANTHROPIC_API_KEY", "", Secret("ANTHROPIC_API_KEY"), "API key of the anthropic provider";
    ANTHROPIC_BASE_URL: "CLAUDE_MEM_ANTHROPIC_BASE_URL", "https://api.anthropic.com", Text, "Endpoint of the anthropic provider";
    OPENAI_API_KEY: "CLAUDE_MEM_OPENAI_API_KEY", "", Secret("OPENAI_API_KEY"), "API key of the openai provider";
    OPENAI_BASE_URL: "CLAUDE_MEM_OPENAI_BASE_URL", "https://api.openai.com/v1", Text, "Endpoint of the openai provider, such as `OpenRouter`, Ollama or vLLM";
    OPENAI_MODEL: "CLAUDE_MEM_OPENAI_MODEL", "", Text, "Model of the openai provider";
    MAX_CONCURRENT_AGENTS: "CLAUDE_MEM_MAX_CONCURRENT_AGENTS", "2", Count(1, 64), "Maximum number of concurrent requests to a provider";
    REQUEST_TIMEOUT: "CLAUDE_MEM_REQUEST_TIMEOUT", "180", Count(1, 3600), "Maximum seconds for one response of a provider; a request is parked after five timeouts";
    DAILY_TOKENS_MAX: "CLAUDE_MEM_DAILY_TOKENS_MAX", "2000000", Count(0, u64::MAX), "Maximum tokens per day; further events stay pending until the next day; 0 for no limit";
    DAILY_COST_MAX: "CLAUDE_MEM_DAILY_COST_MAX", "2.00", Money, "Maximum US dollars per day; further events stay pending until the next day; 0 for no limit";
    VERBOSITY: "CLAUDE_MEM_VERBOSITY", "normal", Choice(&["minimal", "normal", "verbose"]), "How much is remembered";
    MODE: "CLAUDE_MEM_MODE", "code", Text, "Kind of work that is observed; a file of this name in modes/ defines your own";
    LANGUAGE: "CLAUDE_MEM_LANGUAGE", "", Text, "Language of memories, such as `de`; empty for the language of the session";
    // What comes back.
    CONTEXT_OBSERVATIONS: "CLAUDE_MEM_CONTEXT_OBSERVATIONS", "50", Count(0, 1000), "Maximum number of observations in the context of a session";
    CONTEXT_SESSION_COUNT: "CLAUDE_MEM_CONTEXT_SESSION_COUNT", "10", Count(0, 100), "Maximum number of session summaries in the context";
    CONTEXT_FULL_COUNT: "CLAUDE_MEM_CONTEXT_FULL_COUNT", "3", Count(0, 100), "Number of observations shown in full";
    CONTEXT_TOKENS_MAX: "CLAUDE_MEM_CONTEXT_TOKENS_MAX", "2000", Count(0, 8000), "Maximum tokens of the context";
    CONTEXT_OBSERVATION_TYPES: "CLAUDE_MEM_CONTEXT_OBSERVATION_TYPES", "", List, "Types of observations in the context; empty for all";
    CONTEXT_OBSERVATION_CONCEPTS: "CLAUDE_MEM_CONTEXT_OBSERVATION_CONCEPTS", "", List, "Concepts of observations in the context; empty for all";
    CONTEXT_SHOW_TERMINAL_OUTPUT: "CLAUDE_MEM_CONTEXT_SHOW_TERMINAL_OUTPUT", "false", Flag, "Show one line in Claude Code about the context that was added";
    // Copies elsewhere.
    SHIP_TO: "CLAUDE_MEM_SHIP_TO", "", Text, "Backup location: a directory, `s3://BUCKET/PREFIX`, `gs://…` or `az://…`; empty for none";
    SHIP_NAME: "CLAUDE_MEM_SHIP_NAME", "", Text, "Name of this machine in the backup; empty for its host name";
    PULL: "CLAUDE_MEM_PULL", "true", Flag, "Download and index what other machines upload to the same location";
    SHIP_COMPRESS: "CLAUDE_MEM_SHIP_COMPRESS", "true", Flag, "Compress uploads";
    SHIP_ENDPOINT: "CLAUDE_MEM_SHIP_ENDPOINT", "", Text, "Endpoint of an S3-compatible server such as `MinIO`, Garage or R2; empty for AWS";
    SHIP_REGION: "CLAUDE_MEM_SHIP_REGION", "", Text, "Region of the bucket; empty for `AWS_REGION`";
    SHIP_ACCESS_KEY_ID: "CLAUDE_MEM_SHIP_ACCESS_KEY_ID", "", Secret("AWS_ACCESS_KEY_ID"), "Access key ID of the bucket; empty for the usual AWS variables and files";
    SHIP_SECRET_ACCESS_KEY: "CLAUDE_MEM_SHIP_SECRET_ACCESS_KEY", "", Secret("AWS_SECRET_ACCESS_KEY"), "Secret access key of the bucket";
    SHIP_GOOGLE_CREDENTIALS: "CLAUDE_MEM_SHIP_GOOGLE_CREDENTIALS", "", Text, "Service account file for `gs://…`; empty for the usual Google variables and files";
    // How long what is kept.
    COMPACT_MB: "CLAUDE_MEM_COMPACT_MB", "64", Count(0, 1 << 20), "Compact once this many megabytes of the log are uncompacted; 0 for never";
    RETENTION_DAYS: "CLAUDE_MEM_RETENTION_DAYS", "0", Count(0, 36_500), "Days after which raw tool inputs and outputs are deleted, once uploaded; memories stay; 0 for never";
    RETENTION_MB: "CLAUDE_MEM_RETENTION_MB", "0", Count(0, 1 << 30), "Megabytes of log above which the oldest raw inputs and outputs are deleted; 0 for no limit";
    RETENTION_UNSHIPPED: "CLAUDE_MEM_RETENTION_UNSHIPPED", "false", Flag, "Apply retention to events that are not in a backup, too";
    // The background process.
    WORKER_AUTOSTART: "CLAUDE_MEM_WORKER_AUTOSTART", "true", Flag, "Let hooks start the worker";
    WORKER_HOST: "CLAUDE_MEM_WORKER_HOST", "127.0.0.1", Text, "Address the worker listens on; other machines' access also needs `CLAUDE_MEM_WORKER_REMOTE`";
    WORKER_PORT: "CLAUDE_MEM_WORKER_PORT", "37777", Count(0, 65535), "Port the worker listens on; a free one if it is taken, or if this is 0";
    WORKER_REMOTE: "CLAUDE_MEM_WORKER_REMOTE", "false", Flag, "Let the worker accept connections from other machines, unencrypted";
    LOG: "CLAUDE_MEM_LOG", "info", Text, "Levels in the worker's log: error, warn, info, debug or trace; also by crate, such as `info,claude_mem_sync=debug`";
    DELETE_TIMEOUT: "CLAUDE_MEM_DELETE_TIMEOUT", "5", Count(0, 600), "Seconds that `DELETE /sessions/ID` waits for a cancelled request to end";
    WORKER_IDLE: "CLAUDE_MEM_WORKER_IDLE", "1800", Count(0, 31_536_000), "Seconds without work after which the worker exits; 0 for never";
}

/// The setting of that name; letter case and a missing `CLAUDE_MEM_` are forgiven.
pub fn find(name: &str) -> Option<&'static Setting> {
    let same = |known: &str| known.eq_ignore_ascii_case(name);
    ALL.iter().copied().find(|setting| {
        same(setting.name) || setting.name.strip_prefix("CLAUDE_MEM_").is_some_and(same)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_default_is_valid_and_every_name_is_there_once() {
        let mut names = HashSet::new();
        for setting in ALL {
            assert!(names.insert(setting.name), "{} is there twice", setting.name);
            let accepted =
                setting.default.is_empty() || setting.kind.check(setting.default).is_ok();
            assert!(accepted, "{}={}", setting.name, setting.default);
        }
    }

    #[test]
    fn docs_settings_md_lists_every_setting() {
        let page = include_str!("../../../docs/settings.md");
        let (_, rest) = page.split_once("<!-- settings:begin -->\n").unwrap();
        let (listed, _) = rest.split_once("<!-- settings:end -->").unwrap();
        let row = |setting: &&Setting| {
            let Setting { name, default, meaning, .. } = setting;
            let default = if default.is_empty() { String::new() } else { format!("`{default}`") };
            format!("| `{name}` | {default} | {meaning} |\n")
        };
        let rows: String = ALL.iter().map(row).collect();
        let table = format!("| setting | default | meaning |\n|---|---|---|\n{rows}");
        assert!(listed == table, "replace the table in docs/settings.md with:\n{table}");
    }

    #[test]
    fn names_are_found_as_people_type_them() {
        assert_eq!(find("CLAUDE_MEM_MODEL").unwrap().name, "CLAUDE_MEM_MODEL");
        assert_eq!(find("model").unwrap().name, "CLAUDE_MEM_MODEL");
        assert_eq!(find("CLAUDE_CODE_PATH").unwrap().name, "CLAUDE_CODE_PATH");
        assert_eq!(find("modle"), None);
    }
}
