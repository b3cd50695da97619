//! `claude-mem install`: register with the coding agents on this machine.

mod mcp_only;
mod report;

use std::{
    env::{self, consts::EXE_SUFFIX},
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::json;

use claude_mem_capture::{CLAUDE_CODE, Client, clients::CLIENTS};
use claude_mem_core::{
    NAME,
    app::App,
    failure::Failure,
    json_edit::{Document, Unusable},
    os::{canonicalize, path_in_commands},
    paths::{create_private, with_tilde},
    user_file::{self, Readers},
};
use claude_mem_distill::{providers::client_version, setup};
use claude_mem_install::{
    self, Targets,
    client_config::{Place, Plan},
    client_status::ClientHooks,
    is_our_program,
    manifest::{Manifest, TextChange},
    quoted_for_shell,
    registered::Hooks,
    rival,
};
pub(crate) use mcp_only::{Chosen, chosen_client};
use report::Step;

/// Set up claude-mem in your coding agents
///
/// Registers hooks and an MCP server with Claude Code and with every tested client that is found on
/// this machine; with Claude Code also the mem-search skill and the /mem command. Everything else
/// in their files stays unchanged, and `claude-mem uninstall` removes exactly what was added. Run
/// it again to update. Clients that only know MCP are set up with `--client NAME`; where their file
/// is not known, the entry is printed.
///
/// Then reports who distills your sessions and at what cost, how many past sessions can be
/// imported, and the next step. On a terminal it sends one short request to the model, to see
/// whether it answers.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(crate) struct Install {
    /// Only this client, found or not; repeat it for several
    #[arg(long, value_name = "NAME", value_parser = chosen_client, conflicts_with = "all")]
    client: Vec<Chosen>,
    /// Also clients that were never tested, if they are found
    #[arg(long)]
    all: bool,
    /// List the clients: found, registered, tested
    #[arg(long, conflicts_with_all = ["client", "all", "project", "print"])]
    list: bool,
    /// Approve the hooks in Codex, which otherwise asks you at its next start
    #[arg(long)]
    trust: bool,
    /// Only for sessions of Claude Code in this folder
    #[arg(long, conflicts_with_all = ["client", "all"])]
    project: bool,
    /// Also show a status line in Claude Code, unless you have one
    #[arg(long)]
    statusline: bool,
    /// Send a test request to the model, also without a terminal
    #[arg(long, overrides_with = "no_test")]
    test: bool,
    /// Send no test request
    #[arg(long)]
    no_test: bool,
    /// Print what would be registered, and write nothing
    #[arg(long)]
    print: bool,
}

impl Install {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        if self.list {
            return list(app);
        }
        let found = program(&app.environment.text("PATH").unwrap_or_default())?;
        let program = kept_program(app, &found)?;
        let clients = self.clients(app);
        if self.print {
            return self.print(app, &program, &clients);
        }
        if program != found {
            copy_program(app, &program)?;
        }
        let is_only = clients.len() == 1;
        let mut installed = Vec::new();
        let mut has_server = false;
        for client in clients {
            let done = match client {
                Chosen::Client(client) if client.name == CLAUDE_CODE.name => {
                    Failure::retried(|| self.claude_code(app, &program))
                        .map(|steps| Some((client, steps)))
                }
                Chosen::Client(client) => Failure::retried(|| self.other(app, client, &program))
                    .map(|steps| Some((client, steps))),
                Chosen::McpOnly(client) => mcp_only::install(app, client, &program).map(|()| None),
            };
            match done {
                Err(failure) if is_only => return Err(failure),
                // One file that cannot be changed does not keep the other clients from being set
                // up.
                Err(failure) => app.output.say(format_args!(
                    "warning: {} was not set up: {}",
                    client.title(),
                    failure.in_one_line()
                )),
                Ok(Some((client, steps))) => {
                    report::print_client(app, client.title, &steps)?;
                    installed.push(client);
                }
                Ok(None) => has_server = true,
            }
        }
        // Without hooks nothing is recorded, so there is nothing more to say.
        if installed.is_empty() && has_server {
            return Ok(());
        }
        if installed.is_empty() {
            return Err(Failure::new("no client was set up")
                .remedy("fix the files named above and install again"));
        }
        let is_at_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        report::print_distilling(app, self.test || is_at_terminal && !self.no_test)?;
        report::print_past_sessions(app)?;
        report::print_next_step(app, &installed)
    }

    /// The chosen clients. Without a choice: Claude Code and the tested clients, as far as they are
    /// found, or Claude Code if none is.
    fn clients(&self, app: &App) -> Vec<Chosen> {
        if !self.client.is_empty() {
            return self.client.clone();
        }
        if self.project {
            return vec![Chosen::Client(&CLAUDE_CODE)];
        }
        let is_wanted = |client: &&&Client| (client.is_tested || self.all) && is_found(app, client);
        let found = CLIENTS.iter().filter(is_wanted).map(|client| Chosen::Client(client));
        let mcp_only = mcp_only::found(app).filter(|_| self.all);
        let found: Vec<Chosen> = found.chain(mcp_only).collect();
        if found.is_empty() { vec![Chosen::Client(&CLAUDE_CODE)] } else { found }
    }

    fn print(&self, app: &mut App, program: &str, clients: &[Chosen]) -> Result<(), Failure> {
        for client in clients {
            let client = match client {
                Chosen::Client(client) => *client,
                Chosen::McpOnly(client) => {
                    mcp_only::print(app, client, program)?;
                    continue;
                }
            };
            if client.name == CLAUDE_CODE.name {
                let version = client_version(&setup(app));
                let hooks = claude_mem_install::hooks(&quoted_for_shell(program), version);
                let server = claude_mem_install::server(program);
                let registered = json!({"hooks": hooks, "mcpServers": {NAME: server}});
                app.output.line(format_args!("{registered:#}"))?;
                continue;
            }
            let Plan { changes, files } = place(app, client).plan(program, self.trust)?;
            let changes = changes.into_iter().map(|(_, change)| (change.file, change.text));
            for (file, text) in changes.chain(files.into_iter().map(|own| (own.file, own.text))) {
                app.output.line(format_args!("# {}\n{}", file.display(), text.trim_end()))?;
            }
        }
        Ok(())
    }

    /// Reads and checks every file before it writes the first, so that a failure changes nothing.
    fn claude_code(&self, app: &mut App, program: &str) -> Result<Vec<Step>, Failure> {
        let shell_program = quoted_for_shell(program);
        // Claude Code prints it in 0.3 s. Without it, only hooks that all versions know are
        // registered.
        let version = client_version(&setup(app));
        let targets =
            if self.project { Targets::of_project(&here()?) } else { Targets::of_user(app)? };
        let mut manifest = Manifest::load(&app.paths)?;
        let mut settings = Document::open(&targets.settings())?;
        if !settings.is_plain() {
            return Err(Unusable::new(settings.file(), NOT_LOADED).into());
        }
        claude_mem_install::add_hooks(&mut settings, &shell_program, version)?;
        let has_status_line =
            !self.statusline || claude_mem_install::add_status_line(&mut settings, &shell_program);
        let mut servers = Document::open(&targets.servers)?;
        claude_mem_install::add_server(&mut servers, program)?;

        let stamp = begin(app, &mut manifest, program)?;
        let [settings, servers] = [&settings, &servers].map(TextChange::from);
        manifest.edit(&app.paths, &settings, &stamp)?;
        manifest.edit(&app.paths, &servers, &stamp)?;
        let mut steps = vec![Step::of("hooks", &settings), Step::of("MCP server", &servers)];
        if self.statusline {
            steps.push(match has_status_line {
                true => Step::of("status line", &settings),
                false => Step::Note("you have another status line, which is kept".into()),
            });
        }
        for ((file, text), what) in targets.texts().into_iter().zip(["skill", "/mem"]) {
            let is_new = !user_file::read(&file).is_ok_and(|bytes| bytes == text.as_bytes());
            steps.push(match manifest.write(&app.paths, &file, text, Readers::Owner)? {
                true => Step::Registered { what, file, is_new },
                false => Step::Kept(file),
            });
        }
        if self.project {
            let note = "these files contain the local path of claude-mem; do not share them";
            steps.push(Step::Note(note.into()));
        }
        warn_of_rivals(app, &targets.dir);
        Ok(steps)
    }

    fn other(
        &self,
        app: &mut App,
        client: &'static Client,
        program: &str,
    ) -> Result<Vec<Step>, Failure> {
        let Plan { changes, files } = place(app, client).plan(program, self.trust)?;
        let mut manifest = Manifest::load(&app.paths)?;
        let stamp = begin(app, &mut manifest, program)?;
        let mut steps = Vec::new();
        for (what, change) in &changes {
            manifest.edit(&app.paths, change, &stamp)?;
            steps.push(Step::of(what, change));
        }
        for own in files {
            let is_new = !user_file::read(&own.file).is_ok_and(|it| it == own.text.as_bytes());
            steps.push(match manifest.write(&app.paths, &own.file, &own.text, own.readers)? {
                true => Step::Registered { what: "hooks", file: own.file, is_new },
                false => Step::Kept(own.file),
            });
        }
        if !client.is_tested {
            steps.push(Step::Note("written after its documentation, and never tested".into()));
        }
        if !client.config.after.is_empty() && !self.trust {
            steps.push(Step::Note(client.config.after.into()));
        }
        Ok(steps)
    }
}

/// Why hooks in a settings file of Claude Code have no effect.
pub(crate) const NOT_LOADED: &str =
    "Claude Code does not load it, because it has comments or a comma after a last element";

/// Where a client's files are.
pub(crate) fn place<'a>(app: &'a App, client: &'static Client) -> Place<'a> {
    Place { client, environment: &app.environment, home: app.paths.home.as_deref() }
}

fn is_found(app: &App, client: &Client) -> bool {
    client.config.is_found(&app.environment, app.paths.home.as_deref())
}

fn list(app: &mut App) -> Result<(), Failure> {
    let word = |is: bool, word: &'static str| if is { word } else { "-" };
    let mut lines =
        vec![format!("{:<20} {:<12} {:<6} {:<11} tested", "client", "name", "found", "registered")];
    for client in CLIENTS {
        let is_registered = if client.name == CLAUDE_CODE.name {
            Hooks::look(app).is_installed
        } else {
            ClientHooks::look(place(app, client)).is_some()
        };
        lines.push(format!(
            "{:<20} {:<12} {:<6} {:<11} {}",
            client.title,
            client.name,
            word(is_found(app, client), "found"),
            word(is_registered, "registered"),
            if client.is_tested { "tested" } else { "untested" }
        ));
    }
    for (client, is_found, is_registered, state) in mcp_only::rows(app) {
        lines.push(format!(
            "{:<20} {:<12} {:<6} {:<11} {state}",
            client.title,
            client.name,
            word(is_found, "found"),
            word(is_registered, "registered"),
        ));
    }
    app.output.line(lines.join("\n"))
}

/// Notes in the manifest what is installed now. Returns the time for names of backups.
fn begin(app: &App, manifest: &mut Manifest, program: &str) -> Result<String, Failure> {
    let stamp = app.clock.now().strftime("%Y%m%dT%H%M%SZ").to_string();
    program.clone_into(&mut manifest.program);
    manifest.installed_at.clone_from(&stamp);
    app.paths.create_data().map_err(|error| not_created(app, &error))?;
    Ok(stamp)
}

fn warn_of_rivals(app: &mut App, dir: &Path) {
    for found in rival::find(dir) {
        app.output.say(format_args!("warning: {}\nhint: {}", found.what, found.remedy));
    }
}

/// The path that hooks call: the one the user typed or the shell found, if it leads to this binary.
/// A link in a `bin` directory survives upgrades, and its target does not.
pub(crate) fn program(path: &str) -> Result<String, Failure> {
    let unknown = |error: std::io::Error| {
        Failure::new(format!("cannot determine the path of claude-mem: {error}"))
    };
    let real = env::current_exe().and_then(|found| canonicalize(&found)).map_err(unknown)?;
    let typed = env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let candidates: Vec<PathBuf> = if typed.components().count() > 1 {
        vec![std::path::absolute(&typed).unwrap_or(typed)]
    } else {
        env::split_paths(path).map(|dir| dir.join(&typed)).collect()
    };
    let is_stable = |candidate: &PathBuf| {
        candidate.is_absolute()
            && is_our_program(candidate)
            && canonicalize(candidate).is_ok_and(|found| found == real)
    };
    let chosen = candidates.into_iter().find(is_stable).unwrap_or(real);
    let is_named = is_our_program(&chosen);
    match chosen.into_os_string().into_string() {
        Ok(text) if is_named && !text.contains(char::is_control) => Ok(path_in_commands(text)),
        Ok(text) => Err(Failure::new(format!("the program file is called {text}"))
            .meaning(format!("hooks are recognized by the name `{NAME}`"))
            .remedy(format!("rename it to `{NAME}` and install again"))),
        Err(text) => Err(Failure::new(format!("the path {} is not Unicode", text.display()))
            .meaning("Claude Code's settings cannot contain it")
            .remedy("move the binary to another folder and install again")),
    }
}

/// The path that hooks call. The program that `npx` runs may be deleted later, so hooks call a copy
/// in our directory.
fn kept_program(app: &App, found: &str) -> Result<String, Failure> {
    if !is_in_runner_cache(Path::new(found)) {
        return Ok(found.to_owned());
    }
    let copy = app.paths.data.join("bin").join(format!("{NAME}{EXE_SUFFIX}"));
    let text = copy.into_os_string().into_string().map_err(|path| {
        Failure::new(format!("the path {} is not Unicode", path.display()))
            .meaning("Claude Code's settings cannot contain it")
    })?;
    Ok(path_in_commands(text))
}

/// Whether a package runner keeps the program only for a while: `npx`, `pnpm dlx`, `bunx`. The
/// store of pnpm keeps it until the next version.
fn is_in_runner_cache(program: &Path) -> bool {
    let mut folders = program.components().filter_map(|part| part.as_os_str().to_str());
    folders.any(|folder| ["_npx", "dlx", ".pnpm"].contains(&folder) || folder.starts_with("bunx-"))
}

fn copy_program(app: &mut App, program: &str) -> Result<(), Failure> {
    let file = Path::new(program);
    let copied = app.paths.create_data().and_then(|()| {
        create_private(file.parent().unwrap_or(file))?;
        let bytes = env::current_exe().and_then(std::fs::read)?;
        user_file::write(file, &bytes, Readers::EveryoneRuns)
    });
    copied.map_err(|error| {
        Failure::new(format!("{program} cannot be written: {error}"))
            .meaning("nothing was installed")
    })?;
    let shown = with_tilde(file, app.paths.home.as_deref());
    let tick = app.output.paint("32", "✓");
    app.output.line(format_args!("{tick} copied the program to {shown}, where hooks call it"))
}

/// The current directory.
pub(crate) fn here() -> Result<PathBuf, Failure> {
    env::current_dir()
        .map_err(|error| Failure::new(format!("cannot determine the current directory: {error}")))
}

fn not_created(app: &App, error: &std::io::Error) -> Failure {
    Failure::no_directory(&app.paths.data, error).meaning("nothing was installed")
}
