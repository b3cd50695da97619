//! Coding agents that run against the scripted model without a terminal: their packages,
//! configuration and tool names.

use std::{fs, io, path::Path, thread};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{
    client_process::{Client, Outcome},
    install::{
        ClientError, Package, VERSION, claude_code, directory, install_package, search_path,
    },
};

/// One coding agent. All of them can share one home directory.
#[derive(Debug)]
pub struct Agent {
    /// Its name in claude-mem.
    pub name: &'static str,
    pub(super) package: Package<'static>,
    /// Files below the home directory; `SERVER` stands for the model server and `PROJECT` for the
    /// working directory.
    pub(super) files: &'static [(&'static str, &'static str)],
    /// Environment variables, with the same placeholders.
    pub(super) variables: &'static [(&'static str, &'static str)],
    pub(super) arguments: &'static [&'static str],
    /// The tool call for a piece of work in this directory.
    pub(super) call: fn(&Work<'_>, &Path) -> (&'static str, Value),
}

/// A piece of work that every agent has a tool for. Paths are relative to the project.
#[derive(Debug)]
pub enum Work<'w> {
    Read { file: &'w str },
    Edit { file: &'w str, old: &'w str, new: &'w str },
    Run { command: &'w str },
}

/// Codex of this version, with the line that it prints about it.
pub(super) const fn codex(version: &'static str, prints: &'static str) -> Agent {
    Agent {
        name: "codex",
        // It takes about 440 MB.
        package: Package {
            name: "codex",
            registered_as: "@openai/codex",
            version,
            program: "node_modules/.bin/codex",
            args: &["--version"],
            prints,
            needs_newer_node: false,
        },
        files: &[(
            ".codex/config.toml",
            r#"model = "gpt-5.5" # scripted
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = "SERVER/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0

# Older versions add this themselves.
[projects."PROJECT"]
trust_level = "trusted"
"#,
        )],
        variables: &[("SCRIPTED_KEY", "none")],
        arguments: &[
            "exec",
            "--json",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
        ],
        call: |work, _| match work {
            Work::Read { file } => ("exec_command", json!({"cmd": format!("cat {file}")})),
            Work::Edit { file, old, new } => {
                let (old, new) = (old.replace('\n', "\n-"), new.replace('\n', "\n+"));
                let patch = format!(
                    "*** Begin Patch\n*** Update File: {file}\n@@\n-{old}\n+{new}\n*** End Patch\n"
                );
                ("apply_patch", Value::String(patch))
            }
            Work::Run { command } => ("exec_command", json!({"cmd": command})),
        },
    }
}

/// The agents, in an order in which sessions can follow each other.
pub static AGENTS: [Agent; 6] = [
    Agent {
        name: "claude-code",
        package: claude_code(VERSION),
        files: &[(".claude/settings.json", "{}\n")],
        variables: &[],
        arguments: &[
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--allowedTools",
            "Bash,Edit,Read",
            "--",
        ],
        call: |work, cwd| match work {
            Work::Read { file } => ("Read", json!({"file_path": cwd.join(file)})),
            Work::Edit { file, old, new } => {
                ("Edit", json!({"file_path": cwd.join(file), "old_string": old, "new_string": new}))
            }
            Work::Run { command } => ("Bash", json!({"command": command})),
        },
    },
    codex("0.166.0", "codex-cli 0.166.0"),
    Agent {
        name: "gemini",
        package: Package {
            name: "gemini",
            registered_as: "@google/gemini-cli",
            version: "0.61.0",
            program: "node_modules/.bin/gemini",
            args: &["--version"],
            prints: "0.61.0",
            needs_newer_node: false,
        },
        files: &[
            (
                ".gemini/settings.json",
                r#"{"security": {"auth": {"selectedType": "gemini-api-key"}},
 "privacy": {"usageStatisticsEnabled": false},
 "general": {"enableAutoUpdate": false}}
"#,
            ),
            (".gemini/trustedFolders.json", "{\"PROJECT\": \"TRUST_FOLDER\"}\n"),
        ],
        variables: &[("GEMINI_API_KEY", "none"), ("GOOGLE_GEMINI_BASE_URL", "SERVER")],
        arguments: &["-y", "-m", "gemini-2.5-pro", "-p"],
        call: |work, _| match work {
            Work::Read { file } => ("read_file", json!({"file_path": file})),
            Work::Edit { file, old, new } => (
                "replace",
                json!({"file_path": file, "instruction": "as asked", "old_string": old,
                    "new_string": new}),
            ),
            Work::Run { command } => ("run_shell_command", json!({"command": command})),
        },
    },
    Agent {
        name: "qwen",
        package: Package {
            name: "qwen",
            registered_as: "@qwen-code/qwen-code",
            version: "0.24.4",
            program: "node_modules/.bin/qwen",
            args: &["--version"],
            prints: "0.24.4",
            needs_newer_node: false,
        },
        files: &[(
            ".qwen/settings.json",
            r#"{"security": {"auth": {"selectedType": "openai"}},
 "privacy": {"usageStatisticsEnabled": false},
 "general": {"enableAutoUpdate": false},
 "$version": 4}
"#,
        )],
        variables: &[
            ("OPENAI_API_KEY", "none"),
            ("OPENAI_BASE_URL", "SERVER/v1"),
            ("OPENAI_MODEL", "scripted"),
        ],
        arguments: &["-y", "-p"],
        call: |work, cwd| match work {
            Work::Read { file } => ("read_file", json!({"file_path": cwd.join(file)})),
            Work::Edit { file, old, new } => {
                ("edit", json!({"file_path": cwd.join(file), "old_string": old, "new_string": new}))
            }
            Work::Run { command } => {
                ("run_shell_command", json!({"command": command, "is_background": false}))
            }
        },
    },
    Agent {
        name: "copilot",
        package: Package {
            name: "copilot",
            registered_as: "@github/copilot",
            version: "1.0.102",
            program: "node_modules/.bin/copilot",
            args: &["--version"],
            prints: "GitHub Copilot CLI 1.0.102",
            needs_newer_node: false,
        },
        files: &[(
            ".copilot/settings.json",
            "{\"trustedFolders\": [\"PROJECT\"], \"banner\": \"never\", \"memory\": false}\n",
        )],
        variables: &[
            ("COPILOT_OFFLINE", "true"),
            ("COPILOT_AUTO_UPDATE", "false"),
            ("COPILOT_MODEL", "claude-sonnet-4.6"),
            ("COPILOT_PROVIDER_API_KEY", "none"),
            ("COPILOT_PROVIDER_BASE_URL", "SERVER/v1"),
        ],
        arguments: &[
            "--allow-all-tools",
            "--allow-all-paths",
            "--disable-builtin-mcps",
            "-s",
            "-p",
        ],
        call: |work, cwd| match work {
            Work::Read { file } => ("view", json!({"path": cwd.join(file)})),
            Work::Edit { file, old, new } => {
                ("edit", json!({"path": cwd.join(file), "old_str": old, "new_str": new}))
            }
            Work::Run { command } => {
                ("bash", json!({"command": command, "description": "as asked"}))
            }
        },
    },
    Agent {
        name: "opencode",
        // It takes about 350 MB.
        package: Package {
            name: "opencode",
            registered_as: "opencode-ai",
            version: "1.18.33",
            program: "node_modules/.bin/opencode",
            args: &["--version"],
            prints: "1.18.33",
            needs_newer_node: false,
        },
        files: &[
            (
                ".config/opencode/opencode.json",
                r#"{"$schema": "https://opencode.ai/config.json",
 "model": "scripted/scripted", "small_model": "scripted/scripted", "permission": "allow",
 "autoupdate": false, "share": "disabled",
 "provider": {"scripted": {"npm": "@ai-sdk/openai-compatible", "name": "scripted",
  "options": {"baseURL": "SERVER/v1", "apiKey": "none"},
  "models": {"scripted": {"name": "scripted", "tool_call": true,
   "limit": {"context": 100000, "output": 4000}}}}}}
"#,
            ),
            // It would wait for a plugin library that ours does not use.
            (
                ".config/opencode/package.json",
                "{\"dependencies\": {\"@opencode-ai/plugin\": \"1.18.33\"}}\n",
            ),
            (
                ".config/opencode/package-lock.json",
                "{\"packages\": {\"\": {\"dependencies\": {\"@opencode-ai/plugin\": \
                 \"1.18.33\"}}}}\n",
            ),
            (".config/opencode/node_modules/.package-lock.json", "{}\n"),
        ],
        variables: &[
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ],
        arguments: &["run", "--format", "json"],
        call: |work, _| match work {
            Work::Read { file } => ("read", json!({"filePath": file})),
            Work::Edit { file, old, new } => {
                ("edit", json!({"filePath": file, "oldString": old, "newString": new}))
            }
            Work::Run { command } => {
                ("bash", json!({"command": command, "description": "as asked"}))
            }
        },
    },
];

impl Agent {
    /// Installs all missing agents, in parallel.
    pub fn install_all() -> Result<(), ClientError> {
        thread::scope(|scope| {
            let install = |agent: &'static Self| scope.spawn(|| install_package(&agent.package));
            let threads: Vec<_> = AGENTS.iter().map(install).collect();
            for thread in threads {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            Ok(())
        })
    }

    /// Configures it in this home directory, with this working directory and the model server at
    /// `url`.
    pub fn prepare(&self, home: &Path, project: &Path, url: &str) -> Result<Client, ClientError> {
        let program = install_package(&self.package)?.join(self.package.program);
        let fill =
            |text: &str| text.replace("SERVER", url).replace("PROJECT", &project.to_string_lossy());
        for (file, text) in self.files {
            let path = home.join(file);
            let written = fs::create_dir_all(path.parent().unwrap_or(home))
                .and_then(|()| fs::write(&path, fill(text)));
            written.map_err(|source| directory(&path, source))?;
        }
        let mut client = Client::with_executable(program, url)?.in_directory(project);
        // Nothing but the model server can be reached.
        for name in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"] {
            client = client.env(name, "http://127.0.0.1:9");
        }
        client = client.env("HOME", home).env("no_proxy", "127.0.0.1,localhost");
        if self.package.needs_newer_node {
            client = client.env("PATH", search_path(&self.package)?);
        }
        for (name, value) in self.variables {
            client = client.env(name, fill(value));
        }
        Ok(client)
    }

    /// Its configuration files below the home directory.
    pub fn files(&self) -> impl Iterator<Item = &'static str> {
        self.files.iter().map(|(file, _)| *file)
    }

    /// Runs it with one prompt and waits for its end.
    pub fn prompt(&self, client: &Client, prompt: &str) -> io::Result<Outcome> {
        client.call(self.arguments.iter().copied().chain([prompt]))
    }

    /// Ends the process that Cline leaves behind for a project.
    pub fn end_daemon(project: &Path) {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        for process in processes {
            let command = fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
            let is_daemon = command.contains("--cline-hub-daemon")
                && command.contains(&*project.to_string_lossy());
            let id = process.file_name().to_string_lossy().parse().ok().and_then(Pid::from_raw);
            if let Some(id) = id.filter(|_| is_daemon) {
                let _ = kill_process(id, Signal::TERM);
            }
        }
    }

    /// The tool call of its model for a piece of work in this directory.
    pub fn call(&self, work: &Work<'_>, cwd: &Path) -> (&'static str, Value) {
        (self.call)(work, cwd)
    }
}
