//! `claude-mem install`: register with Claude Code.

use std::{
    env,
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::json;

use claude_mem_core::{
    NAME,
    app::App,
    failure::Failure,
    json_edit::Document,
    os::{canonicalize, path_in_commands},
};
use claude_mem_distill::{providers::client_version, setup};
use claude_mem_install::{
    self, Targets, is_our_program, manifest::Manifest, quoted_for_shell, rival,
};

/// Set up claude-mem in Claude Code
///
/// Registers hooks, an MCP server, the mem-search skill and the /mem command, for all sessions or for one project.
/// Everything else in Claude Code's files stays unchanged, and `claude-mem uninstall` removes exactly what was
/// added. Run it again to update.
#[derive(Debug, Args)]
pub(crate) struct Install {
    /// Only for sessions in this folder
    #[arg(long)]
    project: bool,
    /// Also show a status line, unless you have one
    #[arg(long)]
    statusline: bool,
    /// Print what would be registered, and write nothing
    #[arg(long)]
    print: bool,
}

impl Install {
    /// Reads and checks every file before it writes the first, so that a failure changes nothing.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let program = program(&app.environment.text("PATH").unwrap_or_default())?;
        let shell_program = quoted_for_shell(&program);
        // Claude Code prints it in 0.3 s. Without it, only hooks that all versions know are registered.
        let version = client_version(&setup(app));
        if self.print {
            let registered = json!({"hooks": claude_mem_install::hooks(&shell_program, version),
                "mcpServers": {NAME: claude_mem_install::server(&program)}});
            return app.output.line(format_args!("{registered:#}"));
        }
        let targets =
            if self.project { Targets::of_project(&here()?) } else { Targets::of_user(app)? };
        let mut manifest = Manifest::load(&app.paths)?;
        let mut settings = Document::open(&targets.settings())?;
        claude_mem_install::add_hooks(&mut settings, &shell_program, version)?;
        let has_status_line =
            !self.statusline || claude_mem_install::add_status_line(&mut settings, &shell_program);
        let mut servers = Document::open(&targets.servers)?;
        claude_mem_install::add_server(&mut servers, &program)?;

        let stamp = app.clock.now().strftime("%Y%m%dT%H%M%SZ").to_string();
        manifest.program = program;
        manifest.installed_at.clone_from(&stamp);
        app.paths.create_data().map_err(|error| not_created(app, &error))?;
        manifest.edit(&app.paths, &settings, &stamp)?;
        manifest.edit(&app.paths, &servers, &stamp)?;
        print_change(app, "hooks", &settings);
        print_change(app, "MCP server", &servers);
        if !has_status_line {
            app.output.say("note: you have another status line, which is kept");
        }
        write_texts(app, &targets, &mut manifest)?;
        warn_of_rivals(app, &targets.dir);
        if self.project {
            app.output
                .say("note: these files contain the local path of claude-mem; do not share them");
        }
        app.output.say("Start a new Claude Code session to begin recording.");
        Ok(())
    }
}

fn print_change(app: &mut App, what: &str, document: &Document) {
    let done = if document.is_changed() { "written to" } else { "already in" };
    app.output.say(format_args!("{what}: {done} {}", document.file().display()));
}

fn write_texts(app: &mut App, targets: &Targets, manifest: &mut Manifest) -> Result<(), Failure> {
    for (file, text) in targets.texts() {
        if !manifest.write(&app.paths, &file, text)? {
            app.output.say(format_args!("note: {} was changed by you and is kept", file.display()));
        }
    }
    Ok(())
}

fn warn_of_rivals(app: &mut App, dir: &Path) {
    for found in rival::find(dir) {
        app.output.say(format_args!("warning: {}\nhint: {}", found.what, found.remedy));
    }
}

/// The path that hooks call: the one the user typed or the shell found, if it leads to this binary. A link in a
/// `bin` directory survives upgrades, and its target does not.
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
            .meaning(format!("hooks are recognised by the name `{NAME}`"))
            .remedy(format!("rename it to `{NAME}` and install again"))),
        Err(text) => Err(Failure::new(format!("the path {} is not Unicode", text.display()))
            .meaning("Claude Code's settings cannot hold it")
            .remedy("move the binary to another folder and install again")),
    }
}

/// The current directory.
pub(crate) fn here() -> Result<PathBuf, Failure> {
    env::current_dir()
        .map_err(|error| Failure::new(format!("cannot determine the current directory: {error}")))
}

fn not_created(app: &App, error: &std::io::Error) -> Failure {
    Failure::no_directory(&app.paths.data, error).meaning("nothing was installed")
}
