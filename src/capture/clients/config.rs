//! The configuration of a client: its place, and the form in which hooks and MCP servers are
//! registered. `claude-mem-install` writes it.

use std::path::{Path, PathBuf};

use claude_mem_core::environment::Environment;

/// The configuration of a client.
#[derive(Debug)]
pub struct Config {
    /// The directory of the hooks.
    pub dir: Dir,
    /// Paths below the home directory that exist if the client is in use, where `dir` is not
    /// enough.
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
    /// Below the home directory. What is below `.config` or `.local/share` there follows
    /// `XDG_CONFIG_HOME` and `XDG_DATA_HOME`.
    pub default: &'static str,
}

/// Variables that move parts of the home directory.
const XDG: &[(&str, &str)] = &[(".config/", "XDG_CONFIG_HOME"), (".local/share/", "XDG_DATA_HOME")];

impl Dir {
    pub const fn of_home(default: &'static str) -> Self {
        Self { variable: None, default }
    }

    /// `None` if the home directory is unknown.
    pub fn find(&self, environment: &Environment, home: Option<&Path>) -> Option<PathBuf> {
        let chosen =
            |name: &str| environment.get(name).filter(|dir| !dir.is_empty()).map(PathBuf::from);
        let moved = |(part, name): &(&str, &str)| {
            let below = self.default.strip_prefix(part)?;
            // A relative path counts as none.
            Some(chosen(name).filter(|dir| dir.is_absolute())?.join(below))
        };
        let default = || home.map(|home| home.join(self.default));
        self.variable.and_then(chosen).or_else(|| XDG.iter().find_map(moved)).or_else(default)
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
        let place = |sign: &&'static str| Dir::of_home(sign).find(environment, home);
        self.signs.iter().filter_map(place).any(|place| place.exists())
    }

    /// The file with the client's hooks.
    pub fn hooks_file(&self, environment: &Environment, home: Option<&Path>) -> Option<PathBuf> {
        Some(self.dir.find(environment, home)?.join(self.hooks.place()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_where_its_variable_or_that_of_the_system_says() {
        let dir = Dir { variable: Some("TOOL_DIR"), default: ".config/tool" };
        let home = Some(Path::new("/h"));
        for (variables, expected) in [
            (&[][..], "/h/.config/tool"),
            (&[("XDG_CONFIG_HOME", "/x")], "/x/tool"),
            (&[("XDG_CONFIG_HOME", "x")], "/h/.config/tool"),
            (&[("XDG_CONFIG_HOME", "/x"), ("TOOL_DIR", "/t")], "/t"),
            (&[("XDG_DATA_HOME", "/d"), ("TOOL_DIR", "")], "/h/.config/tool"),
        ] {
            let environment = Environment::fixed(variables);
            assert_eq!(dir.find(&environment, home), Some(expected.into()), "{variables:?}");
        }
        let environment = Environment::fixed(&[("XDG_DATA_HOME", "/d")]);
        assert_eq!(Dir::of_home(".local/share/t").find(&environment, None), Some("/d/t".into()));
        assert_eq!(Dir::of_home(".tool").find(&environment, None), None);
    }
}
