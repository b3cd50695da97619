//! `claude-mem generate plugin`: a Claude Code plugin, and the marketplace to install it from, in one
//! folder.

use std::{
    env::consts::EXE_SUFFIX,
    fs, io,
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::{Value, json};

use claude_mem_capture::PLUGIN;
use claude_mem_core::{
    NAME,
    app::App,
    failure::Failure,
    os::create_dirs_for_all,
    user_file::{self, Readers},
};
use claude_mem_install::{self, MARKETPLACE, SKILL, SLASH_COMMAND, quoted_for_shell};

/// Path of the binary inside the plugin, without the executable suffix.
const PROGRAM: &str = "${CLAUDE_PLUGIN_ROOT}/bin/claude-mem";
const DESCRIPTION: &str = "Long-term memory for Claude Code";
const README: &str = include_str!("../install/plugin.md");
/// Takes the place of the binary, and runs the one of an npm package.
const NPM_LAUNCHER: &str = include_str!("../install/npm-plugin.sh");

/// Write a Claude Code plugin to a folder
///
/// The folder is a marketplace with one plugin, which contains a copy of this binary. Install it
/// with `claude plugin marketplace add ./DIR` and `claude plugin install mem@mem-local`, or try it
/// with `claude --plugin-dir DIR/plugin`. If `claude-mem install` has registered hooks, too, those
/// record and the plugin's hooks do nothing.
///
/// With `--npm`, the plugin has no binary: npm fetches the package of this version when the first
/// session starts. Such a folder is small, runs on Linux and macOS, and can be shared as a git
/// repository.
#[derive(Debug, Args)]
pub(crate) struct Plugin {
    /// A new or empty folder, or one that this command wrote before
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Fetch the binary from this npm package instead of copying it
    #[arg(long, value_name = "PACKAGE", value_parser = npm_package)]
    npm: Option<String>,
}

/// The name goes into a script.
fn npm_package(name: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@/._-".contains(c);
    match !name.is_empty() && name.chars().all(is_plain) {
        true => Ok(name.to_owned()),
        false => Err("a name such as `claude-mem` or `@scope/claude-mem`".into()),
    }
}

impl Plugin {
    /// Replaces each file atomically, so that a plugin in use never sees half a file.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        check(&self.dir)?;
        let suffix = if self.npm.is_some() { "" } else { EXE_SUFFIX };
        for (path, text) in texts(suffix) {
            write(&self.dir.join(path), text.as_bytes(), Readers::Everyone)?;
        }
        let program = self.dir.join("plugin/bin").join(format!("{NAME}{suffix}"));
        match &self.npm {
            None => copy_program(&program)?,
            Some(package) => {
                let launcher = NPM_LAUNCHER
                    .replace("@PACKAGE@", package)
                    .replace("@VERSION@", env!("CARGO_PKG_VERSION"));
                write(&program, launcher.as_bytes(), Readers::EveryoneRuns)?;
            }
        }
        // The client reads a relative path without `./` as the name of a repository.
        let dir = std::path::absolute(&self.dir).unwrap_or(self.dir);
        app.output.say(format_args!(
            "The plugin is in {dir}. Install it with\n  \
             claude plugin marketplace add \"{quoted}\"\n  \
             claude plugin install {PLUGIN}@{MARKETPLACE}",
            dir = dir.display(),
            quoted = quoted_for_shell(&dir.to_string_lossy()),
        ));
        Ok(())
    }
}

/// Files of the plugin, with their paths in its folder.
fn texts(suffix: &str) -> Vec<(&'static str, String)> {
    let version = env!("CARGO_PKG_VERSION");
    let program = format!("{PROGRAM}{suffix}");
    let author = json!({"name": NAME});
    let marketplace = json!({"name": MARKETPLACE, "description": DESCRIPTION, "owner": author,
        "plugins": [{"name": PLUGIN, "source": "./plugin", "version": version, "description": DESCRIPTION}]});
    let plugin = json!({"name": PLUGIN, "version": version, "description": DESCRIPTION, "author": author,
        "license": env!("CARGO_PKG_LICENSE")});
    let hooks = json!({"description": "Records sessions and gives them context from past ones",
        "hooks": claude_mem_install::hooks(&program, None)});
    let servers = json!({"mcpServers": {NAME: claude_mem_install::server(&program)}});
    vec![
        (".claude-plugin/marketplace.json", lines(&marketplace)),
        ("plugin/.claude-plugin/plugin.json", lines(&plugin)),
        ("plugin/hooks/hooks.json", lines(&hooks)),
        ("plugin/.mcp.json", lines(&servers)),
        ("plugin/README.md", README.into()),
        ("plugin/skills/mem-search/SKILL.md", SKILL.into()),
        ("plugin/commands/mem.md", SLASH_COMMAND.into()),
    ]
}

fn lines(value: &Value) -> String {
    format!("{value:#}\n")
}

/// Refuses a folder that contains anything else.
fn check(dir: &Path) -> Result<(), Failure> {
    let is_empty = match fs::read_dir(dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(not_written(dir, &error)),
    };
    let is_ours = || {
        let text =
            user_file::read(&dir.join(".claude-plugin/marketplace.json")).unwrap_or_default();
        let marketplace: Value = serde_json::from_slice(&text).unwrap_or_default();
        marketplace["name"] == MARKETPLACE
    };
    if is_empty || is_ours() {
        return Ok(());
    }
    Err(Failure::new(format!("{} is not empty", dir.display()))
        .meaning("nothing was written")
        .remedy("pass a folder that does not exist yet"))
}

/// A plugin can be shared, so other users may read it.
fn write(file: &Path, bytes: &[u8], readers: Readers) -> Result<(), Failure> {
    create_dirs_for_all(file.parent().unwrap_or(file))
        .and_then(|()| user_file::write(file, bytes, readers))
        .map_err(|error| not_written(file, &error))
}

/// The old binary may be running, so it is replaced, not overwritten.
fn copy_program(file: &Path) -> Result<(), Failure> {
    let copied =
        std::env::current_exe().and_then(fs::read).map_err(|error| not_written(file, &error))?;
    write(file, &copied, Readers::EveryoneRuns)
}

fn not_written(file: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("{} cannot be written: {error}", file.display()))
        .meaning("the plugin is incomplete")
        .remedy("pass another folder")
}
