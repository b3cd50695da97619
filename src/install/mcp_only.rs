//! Clients that get memory only through MCP: their sessions are not recorded.

use std::path::{Path, PathBuf};

use claude_mem_capture::clients::config::{Dir, ServerForm};
use claude_mem_core::{NAME, environment::Environment, failure::Failure, json_edit::Document};
use serde_json::{Map, Value};

use crate::{
    add_server_entry, client_config::server_entry, manifest::TextChange, remove_server_below,
    server_program,
};

/// A client with MCP and without usable hooks.
#[derive(Debug)]
pub struct McpOnly {
    pub name: &'static str,
    pub title: &'static str,
    /// Whether the real client has used our server's protocol. Otherwise the entry follows its
    /// documentation.
    pub is_tested: bool,
    pub servers: Servers,
}

/// The list of MCP servers of a client.
#[derive(Debug)]
pub enum Servers {
    Json {
        dir: Dir,
        file: &'static str,
        key: &'static str,
        form: ServerForm,
    },
    /// Its file is YAML, or not known for certain: the entry is printed, with a hint where to add it.
    Printed {
        place: &'static str,
        entry: fn(&str) -> String,
    },
}

/// All of them.
pub const MCP_ONLY: &[McpOnly] = &[
    McpOnly {
        name: "kilo",
        title: "Kilo CLI",
        is_tested: true,
        servers: Servers::Json {
            dir: Dir::of_home(".config/kilo"),
            file: "kilo.json",
            key: "mcp",
            form: ServerForm::CommandList,
        },
    },
    McpOnly {
        name: "continue",
        title: "Continue",
        is_tested: true,
        servers: Servers::Printed { place: "`~/.continue/config.yaml`", entry: continue_entry },
    },
    McpOnly {
        name: "zed",
        title: "Zed",
        is_tested: false,
        servers: Servers::Json {
            dir: Dir::of_home(".config/zed"),
            file: "settings.json",
            key: "context_servers",
            form: ServerForm::Plain(&[]),
        },
    },
    McpOnly {
        name: "goose",
        title: "Goose",
        is_tested: true,
        servers: Servers::Printed { place: "`~/.config/goose/config.yaml`", entry: goose_entry },
    },
    McpOnly {
        name: "warp",
        title: "Warp",
        is_tested: false,
        servers: Servers::Printed { place: "Settings, MCP servers, Add", entry: json_entry },
    },
    McpOnly {
        name: "roo",
        title: "Roo Code",
        is_tested: false,
        servers: Servers::Printed { place: "`.roo/mcp.json` of a project", entry: json_entry },
    },
    McpOnly {
        name: "mcp",
        title: "Any other MCP client",
        is_tested: false,
        servers: Servers::Printed { place: "its list of MCP servers", entry: json_entry },
    },
];

/// The client of this name.
pub fn find(name: &str) -> Option<&'static McpOnly> {
    MCP_ONLY.iter().find(|client| client.name == name)
}

impl McpOnly {
    /// The directory of its file; `None` if that is unknown.
    fn dir(&self, environment: &Environment, home: Option<&Path>) -> Option<PathBuf> {
        match &self.servers {
            Servers::Json { dir, .. } => dir.find(environment, home),
            Servers::Printed { .. } => None,
        }
    }

    /// The file with its MCP servers; `None` if it is unknown.
    pub fn file(&self, environment: &Environment, home: Option<&Path>) -> Option<PathBuf> {
        match &self.servers {
            Servers::Json { file, .. } => Some(self.dir(environment, home)?.join(file)),
            Servers::Printed { .. } => None,
        }
    }

    /// Whether the client is in use on this machine, by its directory.
    pub fn is_found(&self, environment: &Environment, home: Option<&Path>) -> bool {
        self.dir(environment, home).is_some_and(|dir| dir.is_dir())
    }

    /// The file with our entry, not yet written.
    pub fn change(&self, file: &Path, program: &str) -> Result<TextChange, Failure> {
        match &self.servers {
            Servers::Json { key, form, .. } => {
                let mut document = Document::open(file)?;
                add_server_entry(&mut document, key, &server_entry(program, *form))?;
                Ok((&document).into())
            }
            Servers::Printed { .. } => Err(Failure::new("there is no file to write")),
        }
    }

    /// The file without our entry. A file that cannot be read has none.
    pub fn removal(&self, file: &Path) -> Option<TextChange> {
        let change = match &self.servers {
            Servers::Json { key, .. } => {
                let mut document = Document::open(file).ok()?;
                remove_server_below(&mut document, key);
                TextChange::from(&document)
            }
            Servers::Printed { .. } => return None,
        };
        Some(change).filter(|change| change.original.is_some() && change.is_changed())
    }

    /// The program of our entry in its file; `None` if there is no such entry.
    pub fn registered_program(&self, file: &Path) -> Option<String> {
        match &self.servers {
            Servers::Json { key, .. } => {
                let document = Document::open(file).ok()?;
                server_program(&document.get(key)[NAME]).map(str::to_owned)
            }
            Servers::Printed { .. } => None,
        }
    }

    /// The entry as text, for the user to add.
    pub fn printed(&self, program: &str) -> String {
        match &self.servers {
            Servers::Json { key, form, .. } => below(key, server_entry(program, *form)),
            Servers::Printed { entry, .. } => entry(program),
        }
    }
}

fn json_entry(program: &str) -> String {
    below("mcpServers", server_entry(program, ServerForm::Plain(&[])))
}

fn below(key: &str, entry: Value) -> String {
    let servers = Map::from_iter([(NAME.to_owned(), entry)]);
    format!(
        "{:#}",
        Map::from_iter([(key.to_owned(), servers.into())]).into_iter().collect::<Value>()
    )
}

fn continue_entry(program: &str) -> String {
    let program = Value::from(program);
    format!("mcpServers:\n  - name: {NAME}\n    command: {program}\n    args: [mcp]")
}

fn goose_entry(program: &str) -> String {
    let program = Value::from(program);
    format!(
        "extensions:\n  {NAME}:\n    name: {NAME}\n    cmd: {program}\n    args: [mcp]\n    \
         enabled: true\n    type: stdio\n    timeout: 300"
    )
}
