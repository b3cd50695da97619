//! Coding agents that need more than CI has: a newer Node, hundreds of megabytes, or half a minute;
//! and older versions.

use serde_json::json;

use super::{
    agents::{Agent, Work, codex},
    install::Package,
};

/// Only agents that run without a window and an account.
pub static MORE_AGENTS: [Agent; 4] = [
    // The last version that writes the exit code of a command after the hook.
    codex("0.145.0", "codex-cli 0.145.0"),
    Agent {
        name: "kimi",
        package: Package {
            name: "kimi",
            registered_as: "@moonshot-ai/kimi-code",
            version: "2.1.0",
            program: "node_modules/.bin/kimi",
            args: &["--version"],
            prints: "2.1.0",
            needs_newer_node: true,
        },
        files: &[(
            ".kimi-code/config.toml",
            r#"default_model = "scripted" # mine
telemetry = false

[providers.scripted]
type = "openai"
base_url = "SERVER/v1"
api_key = "none"

[models.scripted]
provider = "scripted"
model = "scripted"
max_context_size = 100000
"#,
        )],
        variables: &[],
        arguments: &["--output-format", "stream-json", "-p"],
        call: |work, _| match work {
            Work::Read { file } => ("Read", json!({"path": file})),
            Work::Edit { file, old, new } => {
                ("Edit", json!({"path": file, "old_string": old, "new_string": new}))
            }
            Work::Run { command } => ("Bash", json!({"command": command})),
        },
    },
    Agent {
        name: "droid",
        // It takes about 300 MB.
        package: Package {
            name: "droid",
            registered_as: "droid",
            version: "0.215.0",
            program: "node_modules/.bin/droid",
            args: &["--version"],
            prints: "0.215.0",
            needs_newer_node: false,
        },
        files: &[(
            ".factory/settings.json",
            r#"{"cloudSessionSync": false, "customModels": [{"model": "scripted", "displayName": "scripted",
 "baseUrl": "SERVER/v1", "apiKey": "none", "provider": "generic-chat-completion-api",
 "maxOutputTokens": 4000}]}
"#,
        )],
        // Enough for `exec`; its terminal interface needs a real key.
        variables: &[("FACTORY_API_KEY", "fk-none")],
        arguments: &["exec", "--auto", "high", "-m", "custom:scripted"],
        call: |work, cwd| match work {
            Work::Read { file } => ("Read", json!({"file_path": cwd.join(file)})),
            Work::Edit { file, old, new } => {
                ("Edit", json!({"file_path": cwd.join(file), "old_str": old, "new_str": new}))
            }
            Work::Run { command } => (
                "Execute",
                json!({"command": command, "summary": "as asked", "timeout": 10,
                    "riskLevel": "low", "riskLevelReason": "as asked"}),
            ),
        },
    },
    Agent {
        name: "cline",
        // It takes about 440 MB.
        package: Package {
            name: "cline",
            registered_as: "cline",
            version: "3.0.65",
            program: "node_modules/.bin/cline",
            args: &["--version"],
            prints: "3.0.65",
            needs_newer_node: true,
        },
        files: &[(
            ".cline/data/settings/providers.json",
            r#"{"version": 1, "lastUsedProvider": "openai-compatible", "modes": {}, "providers":
 {"openai-compatible": {"settings": {"provider": "openai-compatible", "apiKey": "none",
  "model": "scripted", "baseUrl": "SERVER/v1"}, "updatedAt": "2026-01-02T03:04:05.678Z",
  "tokenSource": "manual"}}}
"#,
        )],
        variables: &[("CLINE_TELEMETRY_DISABLED", "1")],
        arguments: &["--json", "-P", "openai-compatible", "-m", "scripted"],
        call: |work, cwd| match work {
            Work::Read { file } => ("read_files", json!({"files": [{"path": cwd.join(file)}]})),
            Work::Edit { file, old, new } => {
                ("editor", json!({"path": cwd.join(file), "old_text": old, "new_text": new}))
            }
            Work::Run { command } => ("run_commands", json!({"commands": [command]})),
        },
    },
];
