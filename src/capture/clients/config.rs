//! The configuration of a client: its location, and the format in which hooks and MCP servers are
//! registered. `claude-mem-install` writes it.

use std::path::{Path, PathBuf};

use claude_mem_core::{environment::Environment, os::System};

/// The configuration of a client.
#[derive(Debug)]
pub struct Config {
    /// The directory of the hooks.
    pub dir: Dir,
    /// Further directories that show that the client is in use.
    pub signs: &'static [Dir],
    pub hooks: HooksForm,
    /// The client name that hooks are registered under, if two clients read the same file.
    pub registered_as: Option<&'static str>,
    pub server: Option<ServerFile>,
    /// A step for the user after the installation; empty if there is none.
    pub after: &'static str,
}

/// A directory of a client, below the home directory. Paths below `.config` or `.local/share`
/// follow `XDG_CONFIG_HOME` and `XDG_DATA_HOME`.
#[derive(Debug)]
pub struct Dir {
    variable: Option<&'static str>,
    default: &'static str,
    /// `.config` is replaced by the system's folder for application settings.
    is_app_data: bool,
}

/// Environment variables that move parts of the home directory.
const XDG: &[(&str, &str)] = &[(".config/", "XDG_CONFIG_HOME"), (".local/share/", "XDG_DATA_HOME")];

impl Dir {
    pub const fn of_home(default: &'static str) -> Self {
        Self { variable: None, default, is_app_data: false }
    }

    /// A directory that the user can move with a variable.
    pub const fn moved_by(variable: &'static str, default: &'static str) -> Self {
        Self { variable: Some(variable), default, is_app_data: false }
    }

    /// A directory below `.config`, on macOS below `Library/Application Support`, and on Windows
    /// below `%APPDATA%`: the places of desktop applications.
    pub const fn of_app_data(default: &'static str) -> Self {
        Self { variable: None, default, is_app_data: true }
    }

    /// `None` if the home directory is unknown.
    pub fn find(&self, environment: &Environment, home: Option<&Path>) -> Option<PathBuf> {
        self.find_on(System::HERE, environment, home)
    }

    fn find_on(
        &self,
        system: System,
        environment: &Environment,
        home: Option<&Path>,
    ) -> Option<PathBuf> {
        let chosen =
            |name: &str| environment.get(name).filter(|dir| !dir.is_empty()).map(PathBuf::from);
        let in_home = |place: &str| home.map(|home| home.join(place));
        let below = self.default.strip_prefix(".config/").filter(|_| self.is_app_data);
        match (below, system) {
            (Some(below), System::MacOs) => {
                return Some(in_home("Library/Application Support")?.join(below));
            }
            (Some(below), System::Windows) => {
                let app_data = chosen("APPDATA").or_else(|| in_home("AppData/Roaming"));
                return Some(app_data?.join(below));
            }
            _ => {}
        }
        let moved = |(part, name): &(&str, &str)| {
            let below = self.default.strip_prefix(part)?;
            // A relative path is ignored.
            Some(chosen(name).filter(|dir| dir.is_absolute())?.join(below))
        };
        let moved = || XDG.iter().find_map(moved);
        self.variable.and_then(chosen).or_else(moved).or_else(|| in_home(self.default))
    }
}

/// The format in which a client registers hooks. Files are below its directory.
#[derive(Debug)]
pub enum HooksForm {
    /// `hooks.EVENT[].hooks[]` in a JSON file, as in Claude Code.
    Groups { file: &'static str, unit: TimeoutUnit },
    /// `hooks.EVENT[]` in a JSON file.
    Entries {
        file: &'static str,
        /// The name of the member with the timeout in seconds.
        timeout: Option<&'static str>,
        has_version: bool,
        /// Further members of an entry.
        extra: &'static [(&'static str, Extra)],
    },
    /// `[[hooks]]` in a TOML file.
    Tables { file: &'static str },
    /// A program for each event, named after it.
    Scripts { dir: &'static str },
    /// A plugin that we write. `PROGRAM` in its text is replaced by the path of our program, as
    /// JSON.
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
    /// The member or table that contains them: `mcpServers`.
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
    /// A table in a TOML file. The server gets only the environment written here.
    Toml,
}

/// The value of a further member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    Text(&'static str),
    Flag(bool),
    /// The list `["*"]`.
    All,
}

impl Config {
    /// Whether the client is in use on this machine, determined by its files.
    pub fn is_found(&self, environment: &Environment, home: Option<&Path>) -> bool {
        if self.signs.is_empty() {
            return self.dir.find(environment, home).is_some_and(|dir| dir.is_dir());
        }
        self.signs
            .iter()
            .filter_map(|sign| sign.find(environment, home))
            .any(|place| place.exists())
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
    fn a_directory_follows_its_variable_or_that_of_the_system() {
        let dir = Dir::moved_by("TOOL_DIR", ".config/tool");
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

    #[test]
    fn application_settings_are_in_the_folder_of_the_system() {
        let dir = Dir::of_app_data(".config/Tool/User");
        let home = Some(Path::new("/h"));
        let moved = &[("XDG_CONFIG_HOME", "/x"), ("APPDATA", "/roaming")][..];
        for (system, variables, expected) in [
            (System::Other, &[][..], "/h/.config/Tool/User"),
            (System::Other, moved, "/x/Tool/User"),
            (System::MacOs, &[], "/h/Library/Application Support/Tool/User"),
            (System::MacOs, moved, "/h/Library/Application Support/Tool/User"),
            (System::Windows, &[], "/h/AppData/Roaming/Tool/User"),
            (System::Windows, moved, "/roaming/Tool/User"),
        ] {
            let environment = Environment::fixed(variables);
            let found = dir.find_on(system, &environment, home);
            assert_eq!(found, Some(expected.into()), "{system:?} {variables:?}");
        }
        let plain = Dir::of_home(".config/tool");
        let found = plain.find_on(System::MacOs, &Environment::fixed(&[]), home);
        assert_eq!(found, Some("/h/.config/tool".into()));
    }
}
