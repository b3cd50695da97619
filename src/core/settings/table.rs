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
    ENABLED: "CLAUDE_MEM_ENABLED", "true", Flag, "Record sessions and give context; false switches both off";
    EXCLUDED_PROJECTS: "CLAUDE_MEM_EXCLUDED_PROJECTS", "", List, "Folders never recorded, as globs: `*`, `**`, `?`, `~`";
    DISABLED_PROJECTS: "CLAUDE_MEM_DISABLED_PROJECTS", "", List, "Projects switched off by `claude-mem settings project off`";
    SKIP_TOOLS: "CLAUDE_MEM_SKIP_TOOLS", "ListMcpResourcesTool,SlashCommand,Skill,TodoWrite,AskUserQuestion", List, "Tools never recorded";
    REDACT_SECRETS: "CLAUDE_MEM_REDACT_SECRETS", "true", Flag, "Replace recognised keys and passwords before anything is stored";
    FIELD_BYTES_MAX: "CLAUDE_MEM_FIELD_BYTES_MAX", "262144", Count(1024, 8 << 20), "Longer inputs and outputs of tools are cut in the middle";
    SYNC: "CLAUDE_MEM_SYNC", "default", Choice(&["default", "always"]), "When tool uses reach the disk itself: within a second, or before the hook returns";
    // Who distils.
    PROVIDER: "CLAUDE_MEM_PROVIDER", "auto", Choice(&["auto", "claude", "anthropic", "openai", "extract"]), "Who distils events into memory; auto takes the first that works";
    MODEL: "CLAUDE_MEM_MODEL", "claude-haiku-4-5", Text, "Model asked by claude and anthropic";
    CLAUDE_CODE_PATH: "CLAUDE_CODE_PATH", "", Text, "Claude Code's executable, if not `claude` on the PATH";
    CLAUDE_AUTH_METHOD: "CLAUDE_MEM_CLAUDE_AUTH_METHOD", "subscription", Choice(&["subscription", "api-key"]), "What the claude provider logs in with; api-key lets it use `CLAUDE_MEM_ANTHROPIC_API_KEY`";
    ANTHROPIC_API_KEY: "CLAUDE_MEM_ANTHROPIC_API_KEY", "", Secret("ANTHROPIC_API_KEY"), "Key of the anthropic provider";
    ANTHROPIC_BASE_URL: "CLAUDE_MEM_ANTHROPIC_BASE_URL", "https://api.anthropic.com", Text, "Where the anthropic provider asks";
    OPENAI_API_KEY: "CLAUDE_MEM_OPENAI_API_KEY", "", Secret("OPENAI_API_KEY"), "Key of the openai provider";
    OPENAI_BASE_URL: "CLAUDE_MEM_OPENAI_BASE_URL", "https://api.openai.com/v1", Text, "Any endpoint of its kind: `OpenRouter`, Ollama, vLLM";
    OPENAI_MODEL: "CLAUDE_MEM_OPENAI_MODEL", "", Text, "Model asked by openai";
    MAX_CONCURRENT_AGENTS: "CLAUDE_MEM_MAX_CONCURRENT_AGENTS", "2", Count(1, 64), "Agents at work at the same time";
    DAILY_TOKENS_MAX: "CLAUDE_MEM_DAILY_TOKENS_MAX", "2000000", Count(0, u64::MAX), "Tokens spent in a day before distilling waits for the next; 0 for no limit";
    DAILY_COST_MAX: "CLAUDE_MEM_DAILY_COST_MAX", "2.00", Money, "US dollars spent in a day before distilling waits for the next; 0 for no limit";
    VERBOSITY: "CLAUDE_MEM_VERBOSITY", "normal", Choice(&["minimal", "normal", "verbose"]), "How much is worth remembering";
    MODE: "CLAUDE_MEM_MODE", "code", Text, "What kind of work is observed; a file of this name in modes/ brings its own";
    LANGUAGE: "CLAUDE_MEM_LANGUAGE", "", Text, "Language memories are written in, such as `de`; empty for the session's";
    // What comes back.
    CONTEXT_OBSERVATIONS: "CLAUDE_MEM_CONTEXT_OBSERVATIONS", "50", Count(0, 1000), "Observations shown when a session starts";
    CONTEXT_SESSION_COUNT: "CLAUDE_MEM_CONTEXT_SESSION_COUNT", "10", Count(0, 100), "Summaries among them";
    CONTEXT_FULL_COUNT: "CLAUDE_MEM_CONTEXT_FULL_COUNT", "3", Count(0, 100), "How many of the most useful are shown in full";
    CONTEXT_TOKENS_MAX: "CLAUDE_MEM_CONTEXT_TOKENS_MAX", "2000", Count(0, 8000), "Tokens the context may cost a session";
    CONTEXT_OBSERVATION_TYPES: "CLAUDE_MEM_CONTEXT_OBSERVATION_TYPES", "", List, "Only these types; empty for all";
    CONTEXT_OBSERVATION_CONCEPTS: "CLAUDE_MEM_CONTEXT_OBSERVATION_CONCEPTS", "", List, "Only these concepts; empty for all";
    CONTEXT_SHOW_TERMINAL_OUTPUT: "CLAUDE_MEM_CONTEXT_SHOW_TERMINAL_OUTPUT", "false", Flag, "Tell the person, too, how much Claude was told";
    // Copies elsewhere.
    SHIP_TO: "CLAUDE_MEM_SHIP_TO", "", Text, "Where the log is copied to: a directory, `s3://BUCKET/PREFIX`, `gs://…` or `az://…`; empty for nowhere";
    SHIP_NAME: "CLAUDE_MEM_SHIP_NAME", "", Text, "What this machine is called there; empty for its own name";
    PULL: "CLAUDE_MEM_PULL", "true", Flag, "Bring what other machines ship to the same place, and remember it here as well";
    SHIP_COMPRESS: "CLAUDE_MEM_SHIP_COMPRESS", "true", Flag, "Compress what is shipped";
    SHIP_ENDPOINT: "CLAUDE_MEM_SHIP_ENDPOINT", "", Text, "Address of an S3-compatible server such as `MinIO`, Garage or R2; empty for AWS";
    SHIP_REGION: "CLAUDE_MEM_SHIP_REGION", "", Text, "Region of the bucket; empty for what `AWS_REGION` says";
    SHIP_ACCESS_KEY_ID: "CLAUDE_MEM_SHIP_ACCESS_KEY_ID", "", Secret("AWS_ACCESS_KEY_ID"), "Who we are to the bucket; empty for the usual AWS variables and files";
    SHIP_SECRET_ACCESS_KEY: "CLAUDE_MEM_SHIP_SECRET_ACCESS_KEY", "", Secret("AWS_SECRET_ACCESS_KEY"), "How the bucket knows that";
    SHIP_GOOGLE_CREDENTIALS: "CLAUDE_MEM_SHIP_GOOGLE_CREDENTIALS", "", Text, "File of the account that `gs://…` lets in; empty for the usual Google variables and files";
    // How long what is kept.
    COMPACT_MB: "CLAUDE_MEM_COMPACT_MB", "64", Count(0, 1 << 20), "Megabytes of log that were never compacted, from which on the worker compacts; 0 for never";
    RETENTION_DAYS: "CLAUDE_MEM_RETENTION_DAYS", "0", Count(0, 36_500), "Days after which only digests of tool inputs and outputs are kept, once shipped; memories stay; 0 for never";
    RETENTION_MB: "CLAUDE_MEM_RETENTION_MB", "0", Count(0, 1 << 30), "Megabytes of log beyond which the same happens to the oldest; 0 for no limit";
    RETENTION_UNSHIPPED: "CLAUDE_MEM_RETENTION_UNSHIPPED", "false", Flag, "Allow that for what no remote has, too";
    // The background process.
    WORKER_AUTOSTART: "CLAUDE_MEM_WORKER_AUTOSTART", "true", Flag, "Let hooks start the worker, which distils while you work";
    WORKER_HOST: "CLAUDE_MEM_WORKER_HOST", "127.0.0.1", Text, "Address the worker listens on; one beyond this machine needs `CLAUDE_MEM_WORKER_REMOTE`";
    WORKER_PORT: "CLAUDE_MEM_WORKER_PORT", "37777", Count(0, 65535), "Port the worker listens on; any free one if it is taken, or 0";
    WORKER_REMOTE: "CLAUDE_MEM_WORKER_REMOTE", "false", Flag, "Let the worker listen beyond this machine; everything it says then travels unencrypted";
    DELETE_TIMEOUT: "CLAUDE_MEM_DELETE_TIMEOUT", "5", Count(0, 600), "Seconds that `DELETE /sessions/ID` waits for a cancelled request to end";
    WORKER_IDLE: "CLAUDE_MEM_WORKER_IDLE", "1800", Count(0, 31_536_000), "Seconds without work after which the worker ends; 0 for never";
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
