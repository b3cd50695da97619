//! Clients with MCP alone: our server in their file, or its entry printed.

use super::{
    begin,
    report::{self, Step},
};
use claude_mem_capture::{
    Client,
    clients::{self, CLIENTS},
};
use claude_mem_core::{app::App, failure::Failure};
use claude_mem_install::{
    manifest::Manifest,
    mcp_only::{self, MCP_ONLY, McpOnly, Servers},
};

/// A client that can be chosen by its name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Chosen {
    Client(&'static Client),
    McpOnly(&'static McpOnly),
}

impl Chosen {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Client(client) => client.title,
            Self::McpOnly(client) => client.title,
        }
    }
}

/// The client of this name, with hooks or without.
pub(crate) fn chosen_client(name: &str) -> Result<Chosen, String> {
    let client = clients::find(name).map(Chosen::Client);
    client.or_else(|| mcp_only::find(name).map(Chosen::McpOnly)).ok_or_else(|| {
        let with_hooks = CLIENTS.iter().map(|client| client.name);
        let names: Vec<&str> = with_hooks.chain(MCP_ONLY.iter().map(|it| it.name)).collect();
        format!("known clients: {}", names.join(", "))
    })
}

/// Those that are in use on this machine, by their directories.
pub(super) fn found(app: &App) -> impl Iterator<Item = Chosen> {
    let home = app.paths.home.as_deref();
    let is_found = move |client: &&McpOnly| client.is_found(&app.environment, home);
    MCP_ONLY.iter().filter(is_found).map(Chosen::McpOnly)
}

/// Registers our MCP server, or prints the entry.
pub(super) fn install(
    app: &mut App,
    client: &'static McpOnly,
    program: &str,
) -> Result<(), Failure> {
    let Some(file) = client.file(&app.environment, app.paths.home.as_deref()) else {
        if let Servers::Printed { place, .. } = client.servers {
            app.output.say(format_args!("{}: add this to {place}:", client.title));
        }
        return app.output.line(client.printed(program));
    };
    let change = Failure::retried(|| {
        let change = client.change(&file, program)?;
        let mut manifest = Manifest::load(&app.paths)?;
        let stamp = begin(app, &mut manifest, program)?;
        manifest.edit(&app.paths, &change, &stamp)?;
        Ok(change)
    })?;
    let mut steps = vec![Step::of("MCP server", &change)];
    if !client.is_tested {
        steps.push(Step::Note("written after its documentation, and never tested".into()));
    }
    report::print_client(app, client.title, &steps)
}

/// Prints the file with our entry, or the entry alone.
pub(super) fn print(app: &mut App, client: &McpOnly, program: &str) -> Result<(), Failure> {
    let Some(file) = client.file(&app.environment, app.paths.home.as_deref()) else {
        return app.output.line(client.printed(program));
    };
    let text = client.change(&file, program)?.text;
    app.output.line(format_args!("# {}\n{}", file.display(), text.trim_end()))
}

/// A line of the list of clients: title, name, found, registered, and what is known of it.
pub(super) fn rows(app: &App) -> Vec<(&'static McpOnly, bool, bool, &'static str)> {
    let home = app.paths.home.as_deref();
    let row = |client: &'static McpOnly| {
        let file = client.file(&app.environment, home);
        let is_registered = file.is_some_and(|file| client.registered_program(&file).is_some());
        let state = match (&client.servers, client.is_tested) {
            (Servers::Printed { .. }, _) => "MCP only, printed",
            (_, true) => "MCP only, tested",
            (_, false) => "MCP only, untested",
        };
        (client, client.is_found(&app.environment, home), is_registered, state)
    };
    MCP_ONLY.iter().map(row).collect()
}
