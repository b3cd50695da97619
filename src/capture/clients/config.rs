//! The configuration of a client: its place, and the form in which hooks and MCP servers are registered.
//! `claude-mem-install` writes it.

use std::path::{Path, PathBuf};

use claude_mem_core::environment::Environment;

/// The configuration of a client.
#[derive(Debug)]
pub struct Config {
    /// The directory of the hooks.
    pub dir: Dir,
    /// Paths below the home directory that exist if the client is in use, where `dir` is not enough.
    pub signs: &'static [&'static str],
    pub hooks: HooksForm,
    /// The client in whose name hooks are registered, if two clients read the same file.
    pub registered_as: Option<&'static str>,
    pub server: Option<ServerFile>,
    /// A step for the user after the installation; empty if there is none.
    pub after: &'static str,
}

/// A directory that a variable can move.
#[derive(Debug)]
pub struct Dir {
    pub variable: Option<&'static str>,
    /// Below the home directory.
    pub default: &'static str,
}

impl Dir {
    pub const fn of_home(default: &'static str) -> Self {
        Self { variable: None, default }
    }

    /// `None` if the home directory is unknown.
    pub fn find(&self, environment: &Environment, home: Option<&Path>) -> Option<PathBuf> {
        let chosen = self.variable.and_then(|name| environment.get(name));
        let chosen = chosen.filter(|dir| !dir.is_empty()).map(PathBuf::from);
        chosen.or_else(|| home.map(|home| home.join(self.default)))
    }
}

/// The form in which a client registers hooks. Files are below its directory.
#[derive(Debug)]
pub enum HooksForm {
    /// `hooks.EVENT[].hooks[]` of a JSON file, as Claude Code has it.
    Groups { file: &'static str, unit: TimeoutUnit },
    /// `hooks.EVENT[]` of a JSON file.
    Entries {
        file: &'static str,
        /// The name of the member with the timeout in seconds.
        timeout: Option<&'static str>,
        has_version: bool,
        /// Further members of an entry.
        extra: &'static [(&'static str, Extra)],
    },
    /// `[[hooks]]` of a TOML file.
    Tables { file: &'static str },
    /// A program for each event, named after it.
    Scripts { dir: &'static str },
    /// A plugin that we write. `PROGRAM` in its text stands for the path of our program, as JSON.
    Plugin { file: &'static str, text: &'static str },
}

impl HooksForm {
    /// The file with our hooks; for one file per event, their directory.
    pub fn place(&self) -> &'static str {
        match self {
            Self::Groups { file, .. }
            | Self::Entries { file, .. }
            | Self::Tables { file }
            | Self::Plugin { file, .. } => file,
            Self::Scripts { dir } => dir,
        }
    }
}

/// The unit of a hook's timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeoutUnit {
    Seconds,
    Milliseconds,
}

/// The list of MCP servers.
#[derive(Debug)]
pub struct ServerFile {
    pub dir: Dir,
    pub file: &'static str,
    /// The member or table that holds them: `mcpServers`.
    pub key: &'static str,
    pub form: ServerForm,
}

/// The form of an MCP server's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerForm {
    /// `command`, `args`, and these members.
    Plain(&'static [(&'static str, Extra)]),
    /// `command` is a list with the arguments; `environment`.
    CommandList,
    /// A table of a TOML file. The server gets no environment but what is written here.
    Toml,
}

/// The value of a further member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    Text(&'static str),
    Flag(bool),
    /// A list with a star.
    All,
}

impl Config {
    /// Whether the client is in use on this machine, by its files.
    pub fn is_found(&self, environment: &Environment, home: Option<&Path>) -> bool {
        if self.signs.is_empty() {
            return self.dir.find(environment, home).is_some_and(|dir| dir.is_dir());
        }
        home.is_some_and(|home| self.signs.iter().any(|sign| home.join(sign).exists()))
    }

    /// The file with the client's hooks.
    pub fn hooks_file(&self, environment: &Environment, home: Option<&Path>) -> Option<PathBuf> {
        Some(self.dir.find(environment, home)?.join(self.hooks.place()))
    }
}
