//! Every setting: one row each.
//!
//! Names are those of the TypeScript claude-mem if the meaning is the same, so that both can share
//! a settings file. Other keys are ignored.

use std::{
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
};

use claude_mem_privacy::FIELD_BYTES_MAX_DEFAULT;

use super::{
    folder_pattern::FolderPattern,
    setting::{AnySetting, Group, Setting, Unit},
    value::{
        ClaudeAuth, ProviderName, SyncMode,
        Text::{Plain, Secret},
        Verbosity, count,
    },
};

macro_rules! settings {
    ($($group:ident { $($constant:ident: $type:ty = $name:literal, $spec:expr, $(unit $unit:ident,)?
        $(fails closed to $closed:expr,)? $label:literal, $description:literal;)* })*) => {
        $($(
            #[doc = concat!("`", $name, "`")]
            pub static $constant: Setting<$type> =
                Setting::<$type>::new($name, $spec, (Group::$group, $label, $description))
                    $(.unit(Unit::$unit))? $(.fails_closed($closed))?;
        )*)*
        /// In the order of the documentation, group by group.
        pub static ALL: &[&dyn AnySetting] = &[$($(&$constant),*),*];
    };
}

settings! {
    Recording {
        ENABLED: bool = "CLAUDE_MEM_ENABLED", true, fails closed to false,
            "Enabled", "Record sessions and inject context. `false` turns off both.";
        EXCLUDED_PROJECTS: Vec<FolderPattern> = "CLAUDE_MEM_EXCLUDED_PROJECTS", (),
            fails closed to (), "Excluded folders",
            "Patterns of folders that are never recorded, with everything below, separated by \
             commas. `~` is the home directory, `*` is any part of a name, `**` any number of \
             folders, `?` one character. A name or relative path matches anywhere. Case does not \
             matter.";
        DISABLED_PROJECTS: Vec<String> = "CLAUDE_MEM_DISABLED_PROJECTS", &[], fails closed to &[],
            "Disabled projects",
            "Keys of projects that are never recorded. `claude-mem settings project off` adds the \
             current one.";
        SKIP_TOOLS: Vec<String> = "CLAUDE_MEM_SKIP_TOOLS",
            &["ListMcpResourcesTool", "SlashCommand", "Skill"], fails closed to &[],
            "Skipped tools", "Names of tools whose uses are never recorded.";
        REDACT_SECRETS: bool = "CLAUDE_MEM_REDACT_SECRETS", true, fails closed to true,
            "Redact secrets", "Replace recognized keys and passwords before anything is stored.";
        REDACT_PERSONAL: bool = "CLAUDE_MEM_REDACT_PERSONAL", false, fails closed to true,
            "Redact personal data",
            "Also replace e-mail addresses, phone numbers, payment cards, IBANs and US social \
             security numbers.";
        FIELD_BYTES_MAX: usize = "CLAUDE_MEM_FIELD_BYTES_MAX",
            count(FIELD_BYTES_MAX_DEFAULT, 1024..=8 << 20), unit Bytes,
            "Maximum field size", "Longer tool inputs and outputs are cut in the middle.";
        SYNC: SyncMode = "CLAUDE_MEM_SYNC", SyncMode::Default,
            "Flush to disk", "When recorded tool uses are flushed to the disk.";
    }
    Distilling {
        PROVIDER: ProviderName = "CLAUDE_MEM_PROVIDER",
            ProviderName::Auto, fails closed to ProviderName::Extract,
            "Provider", "Who distills events into observations and summaries.";
        MODEL: String = "CLAUDE_MEM_MODEL", Plain("claude-haiku-4-5"),
            "Model", "Model of the providers `claude` and `anthropic`.";
        CLAUDE_CODE_PATH: Option<PathBuf> = "CLAUDE_CODE_PATH", (),
            "Claude Code executable",
            "Path of the executable of Claude Code. If empty, `claude` is searched on the PATH \
             and in the usual folders.";
        CLAUDE_AUTH_METHOD: ClaudeAuth = "CLAUDE_MEM_CLAUDE_AUTH_METHOD", ClaudeAuth::Subscription,
            "Claude authentication", "How the provider `claude` logs in.";
        ANTHROPIC_API_KEY: String = "CLAUDE_MEM_ANTHROPIC_API_KEY", Secret("ANTHROPIC_API_KEY"),
            "Anthropic API key", "API key of the provider `anthropic`.";
        ANTHROPIC_BASE_URL: String = "CLAUDE_MEM_ANTHROPIC_BASE_URL",
            Plain("https://api.anthropic.com"),
            "Anthropic base URL", "Endpoint of the provider `anthropic`.";
        OPENAI_API_KEY: String = "CLAUDE_MEM_OPENAI_API_KEY", Secret("OPENAI_API_KEY"),
            "OpenAI API key", "API key of the provider `openai`. Local servers need none.";
        OPENAI_BASE_URL: String = "CLAUDE_MEM_OPENAI_BASE_URL", Plain("https://api.openai.com/v1"),
            "OpenAI base URL",
            "Endpoint of the provider `openai`: OpenAI, OpenRouter, Ollama, vLLM or a compatible \
             server.";
        OPENAI_MODEL: String = "CLAUDE_MEM_OPENAI_MODEL", Plain(""),
            "OpenAI model", "Model of the provider `openai`, which needs one.";
        MAX_CONCURRENT_AGENTS: usize = "CLAUDE_MEM_MAX_CONCURRENT_AGENTS", count(2, 1..=64),
            "Concurrent requests", "Maximum number of requests to the provider at the same time.";
        REQUEST_TIMEOUT: u64 = "CLAUDE_MEM_REQUEST_TIMEOUT", count(180, 1..=3600), unit Seconds,
            "Request timeout",
            "Time limit of one response of the provider. A request is parked after five timeouts.";
        DAILY_TOKENS_MAX: u64 = "CLAUDE_MEM_DAILY_TOKENS_MAX",
            count(2_000_000, 0..=u64::MAX), unit Tokens,
            "Daily token limit",
            "Distilling pauses until the next day when a request could exceed this many tokens. 0 \
             means no limit.";
        DAILY_COST_MAX: f64 = "CLAUDE_MEM_DAILY_COST_MAX", 2.0, unit Dollars,
            "Daily cost limit",
            "Distilling pauses until the next day when a request could exceed this cost. 0 means \
             no limit.";
        VERBOSITY: Verbosity = "CLAUDE_MEM_VERBOSITY", Verbosity::Normal,
            "Verbosity", "How much is worth remembering.";
        MODE: String = "CLAUDE_MEM_MODE", Plain("code"),
            "Mode",
            "Kind of work that is observed: a built-in mode or a file of this name in `modes/`.";
        LANGUAGE: String = "CLAUDE_MEM_LANGUAGE", Plain(""),
            "Language",
            "Language of memories, such as `de`. If empty, the language of the session.";
    }
    Context {
        CONTEXT_OBSERVATIONS: usize = "CLAUDE_MEM_CONTEXT_OBSERVATIONS", count(50, 0..=1000),
            "Observations", "Maximum number of observations in the context of a new session.";
        CONTEXT_SESSION_COUNT: u32 = "CLAUDE_MEM_CONTEXT_SESSION_COUNT", count(5, 0..=100),
            "Sessions",
            "Number of the last sessions whose summaries and open ends are in the context.";
        CONTEXT_FULL_COUNT: usize = "CLAUDE_MEM_CONTEXT_FULL_COUNT", count(10, 0..=100),
            "Full observations",
            "Number of the most useful observations that are shown in full, if there is room.";
        CONTEXT_TOKENS_MAX: usize = "CLAUDE_MEM_CONTEXT_TOKENS_MAX",
            count(1000, 0..=8000), unit Tokens,
            "Maximum context size", "Maximum size of the context.";
        CONTEXT_PROMPT_TOKENS_MAX: usize = "CLAUDE_MEM_CONTEXT_PROMPT_TOKENS_MAX",
            count(600, 0..=4000), unit Tokens,
            "Maximum size with a prompt",
            "Maximum size of the memories that are added to a prompt they concern. 0 adds none.";
        CONTEXT_FILE_TOKENS_MAX: usize = "CLAUDE_MEM_CONTEXT_FILE_TOKENS_MAX",
            count(300, 0..=4000), unit Tokens,
            "Maximum size with a file",
            "Maximum size of the decisions, rules, notes and pitfalls that are added before a file \
             is first read or written. 0 adds none.";
        CONTEXT_FAILURE_TOKENS_MAX: usize = "CLAUDE_MEM_CONTEXT_FAILURE_TOKENS_MAX",
            count(300, 0..=4000), unit Tokens,
            "Maximum size with a failure",
            "Maximum size of the memories that are added when a command fails as one did before. \
             0 adds none.";
        CONTEXT_OBSERVATION_TYPES: Vec<String> = "CLAUDE_MEM_CONTEXT_OBSERVATION_TYPES", &[],
            "Observation types", "Include only observations of these types. If empty, all types.";
        CONTEXT_OBSERVATION_CONCEPTS: Vec<String> = "CLAUDE_MEM_CONTEXT_OBSERVATION_CONCEPTS", &[],
            "Observation concepts",
            "Include only observations with these concepts. If empty, all concepts.";
        CONTEXT_SHOW_TERMINAL_OUTPUT: bool = "CLAUDE_MEM_CONTEXT_SHOW_TERMINAL_OUTPUT", true,
            "Report in the terminal", "Show in one line what a session was given when it starts.";
    }
    Search {
        SEMANTIC: bool = "CLAUDE_MEM_SEMANTIC", true,
            "Search by meaning",
            "Give memories vectors, and find them by meaning as well as by words. Everything \
             happens on this machine, unless there is an embedding endpoint.";
        EMBEDDING_MODEL: Option<PathBuf> = "CLAUDE_MEM_EMBEDDING_MODEL", (),
            "Embedding model",
            "File of another embedding model, or the name of a model of the embedding endpoint. \
             If empty, the built-in one.";
        EMBEDDING_BASE_URL: String = "CLAUDE_MEM_EMBEDDING_BASE_URL", Plain(""),
            "Embedding endpoint",
            "Base URL of an OpenAI-compatible server such as Ollama, vLLM or OpenAI, which gets \
             the texts of all memories, prompts and queries, and makes their vectors. If empty, \
             they stay on this machine.";
        EMBEDDING_API_KEY: String = "CLAUDE_MEM_EMBEDDING_API_KEY", Secret("EMBEDDING_API_KEY"),
            "Embedding API key", "API key of the embedding endpoint. Local servers need none.";
    }
    Sync {
        SHIP_TO: String = "CLAUDE_MEM_SHIP_TO", Plain(""),
            "Backup destination",
            "Where the log is copied: a directory, `s3://BUCKET/PREFIX`, `gs://…` or `az://…`. If \
             empty, only the local backup.";
        SHIP_NAME: String = "CLAUDE_MEM_SHIP_NAME", Plain(""),
            "Host name", "Name of this machine in the destination. If empty, its host name.";
        PULL: bool = "CLAUDE_MEM_PULL", true,
            "Pull", "Fetch the logs of other machines from the destination and index them here.";
        SHIP_COMPRESS: bool = "CLAUDE_MEM_SHIP_COMPRESS", true,
            "Compress", "Compress what is uploaded.";
        SHIP_ENDPOINT: String = "CLAUDE_MEM_SHIP_ENDPOINT", Plain(""),
            "S3 endpoint",
            "URL of an S3-compatible server such as MinIO, Garage or R2. If empty, AWS.";
        SHIP_REGION: String = "CLAUDE_MEM_SHIP_REGION", Plain(""),
            "S3 region", "Region of the bucket. If empty, `AWS_REGION`.";
        SHIP_ACCESS_KEY_ID: String = "CLAUDE_MEM_SHIP_ACCESS_KEY_ID", Secret("AWS_ACCESS_KEY_ID"),
            "Access key ID",
            "Access key ID for the bucket. If empty, the usual AWS variables and files.";
        SHIP_SECRET_ACCESS_KEY: String = "CLAUDE_MEM_SHIP_SECRET_ACCESS_KEY",
            Secret("AWS_SECRET_ACCESS_KEY"),
            "Secret access key",
            "Secret access key for the bucket. If empty, the usual AWS variables and files.";
        SHIP_GOOGLE_CREDENTIALS: Option<PathBuf> = "CLAUDE_MEM_SHIP_GOOGLE_CREDENTIALS", (),
            "Google credentials file",
            "Credentials file for `gs://…`. If empty, the usual Google variables and files.";
        BACKUP_MB: u64 = "CLAUDE_MEM_BACKUP_MB", count(512, 0..=1 << 20), unit Megabytes,
            "Local backup size",
            "While there is no destination, the newest segments of the log are copied to \
             `backups/log`, up to this size. 0 means no local backup.";
    }
    Retention {
        COMPACT_MB: u64 = "CLAUDE_MEM_COMPACT_MB", count(64, 0..=1 << 20), unit Megabytes,
            "Compaction threshold",
            "The worker compacts the log when this much of it has never been compacted. 0 means \
             never.";
        RETENTION_DAYS: u64 = "CLAUDE_MEM_RETENTION_DAYS", count(0, 0..=36_500), unit Days,
            "Retention period",
            "Tool inputs and outputs older than this are replaced by digests once they are backed \
             up. Memories stay. 0 means never.";
        RETENTION_MB: u64 = "CLAUDE_MEM_RETENTION_MB", count(0, 0..=1 << 30), unit Megabytes,
            "Retention size",
            "The oldest tool inputs and outputs are replaced by digests when the log is larger \
             than this. 0 means no limit.";
        RETENTION_UNSHIPPED: bool = "CLAUDE_MEM_RETENTION_UNSHIPPED", false,
            "Without backup", "Apply retention also to events that are not backed up.";
    }
    Worker {
        WORKER_AUTOSTART: bool = "CLAUDE_MEM_WORKER_AUTOSTART", true,
            "Start automatically", "Hooks start the worker, which distills in the background.";
        WORKER_HOST: IpAddr = "CLAUDE_MEM_WORKER_HOST", IpAddr::V4(Ipv4Addr::LOCALHOST),
            "Listen address",
            "IP address the worker listens on. One that other machines can reach needs \
             `CLAUDE_MEM_WORKER_REMOTE`.";
        WORKER_PORT: u16 = "CLAUDE_MEM_WORKER_PORT", count(37777, 0..=u16::MAX),
            "Port", "Port the worker listens on. If it is taken, or 0, any free port.";
        WORKER_REMOTE: bool = "CLAUDE_MEM_WORKER_REMOTE", false,
            "Remote access",
            "Allow an address that other machines can reach. Traffic is not encrypted.";
        LOG: String = "CLAUDE_MEM_LOG", Plain("info"),
            "Log levels",
            "Levels in the log of the worker: error, warn, info, debug or trace; also by crate, \
             such as `info,claude_mem_sync=debug`.";
        DELETE_TIMEOUT: u64 = "CLAUDE_MEM_DELETE_TIMEOUT", count(5, 0..=600), unit Seconds,
            "Delete timeout",
            "How long `DELETE /sessions/ID` waits for a cancelled request to end.";
        WORKER_IDLE: u64 = "CLAUDE_MEM_WORKER_IDLE", count(1800, 0..=31_536_000), unit Seconds,
            "Idle timeout", "The worker stops after this long without work. 0 means never.";
    }
}

/// The setting of that name. Case does not matter, and the prefix `CLAUDE_MEM_` can be omitted.
pub fn find(name: &str) -> Option<&'static dyn AnySetting> {
    let same = |known: &str| known.eq_ignore_ascii_case(name);
    ALL.iter().copied().find(|setting| {
        same(setting.name()) || setting.name().strip_prefix("CLAUDE_MEM_").is_some_and(same)
    })
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, fmt::Write as _, fs, path::Path};

    use super::*;
    use crate::settings::Kind;

    #[test]
    fn every_default_round_trips() {
        let mut names = HashSet::new();
        for setting in ALL {
            let name = setting.name();
            assert!(names.insert(name), "{name} is there twice");
            let default = setting.default_text();
            let written =
                if default.is_empty() { Ok(String::new()) } else { setting.check(&default) };
            assert_eq!(written, Ok(default), "{name}");
        }
    }

    #[test]
    fn every_setting_has_a_label_and_a_sentence_and_groups_are_whole() {
        let mut labels = HashSet::new();
        let mut groups = Vec::new();
        for setting in ALL {
            let (name, group) = (setting.name(), setting.group());
            assert!(labels.insert((group.name(), setting.label())), "{name}");
            let description = setting.description();
            assert!(
                description.starts_with(char::is_uppercase) && description.ends_with('.'),
                "{name}"
            );
            if groups.last() != Some(&group) {
                assert!(!groups.contains(&group), "{name}");
                groups.push(group);
            }
        }
    }

    const BEGIN: &str = "<!-- settings:begin -->\n";
    const END: &str = "<!-- settings:end -->\n";

    /// The generated text between the two markers.
    fn page() -> String {
        let mut page = String::new();
        let mut last = None;
        for setting in ALL {
            if last.replace(setting.group()) != Some(setting.group()) {
                let head = "| Setting | | Default | Description |\n|---|---|---|---|";
                writeln!(page, "\n## {}\n\n{head}", setting.group().name()).unwrap();
            }
            let default = match setting.default_text() {
                default if default.is_empty() => default,
                default => format!("`{default}`"),
            };
            let unit = setting.unit().name().map(|unit| format!(" {unit}")).unwrap_or_default();
            let choices = match setting.kind() {
                Kind::Choice(choices) => {
                    let each =
                        choices.iter().map(|each| format!("`{}`: {}", each.name, each.description));
                    format!(" {}.", each.collect::<Vec<_>>().join("; "))
                }
                _ => String::new(),
            };
            let (name, label, description) =
                (setting.name(), setting.label(), setting.description());
            writeln!(page, "| `{name}` | {label} | {default}{unit} | {description}{choices} |")
                .unwrap();
        }
        page.push('\n');
        page
    }

    #[test]
    fn the_settings_page_lists_every_setting_as_it_is() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
        let text = fs::read_to_string(&file).unwrap();
        let (before, rest) = text.split_once(BEGIN).expect("the page has the first marker");
        let (listed, after) = rest.split_once(END).expect("the page has the second marker");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&file, format!("{before}{BEGIN}{}{END}{after}", page())).unwrap();
            return;
        }
        let hint = "\
            docs/settings.md is out of date: run `UPDATE=1 cargo nextest run -E \
            'test(settings_page)'`";
        assert!(listed == page(), "{hint}");
    }

    #[test]
    fn names_are_found_as_people_type_them() {
        let found = |name: &str| find(name).map(AnySetting::name);
        assert_eq!(found("CLAUDE_MEM_MODEL"), Some("CLAUDE_MEM_MODEL"));
        assert_eq!(found("model"), Some("CLAUDE_MEM_MODEL"));
        assert_eq!(found("CLAUDE_CODE_PATH"), Some("CLAUDE_CODE_PATH"));
        assert_eq!(found("modle"), None);
    }
}
