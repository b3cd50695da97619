//! The command line: one file per subcommand.

mod compact;
mod completions;
mod confirm;
mod context;
mod costs;
mod demo;
mod diff;
mod distill;
mod doctor;
mod edit;
mod eval;
mod export;
mod forget;
mod help;
mod hit_labels;
mod hook;
mod hosts;
mod import;
mod index;
mod install;
mod key;
mod live_search;
mod log;
mod man;
mod mcp;
mod memory_rows;
mod pin;
mod plugin;
mod projects;
mod pull;
mod redact;
mod remember;
mod replay;
mod report;
mod restore;
mod retry;
mod search;
mod settings;
pub(crate) mod ship;
mod show;
mod signal;
mod sql;
mod status;
pub(crate) mod statusline;
mod table;
mod timeline;
mod uninstall;
mod verify;
mod viewer;
mod why;
mod worker;

use std::io::{self, IsTerminal as _, Write};

use clap::{
    CommandFactory, FromArgMatches, Parser, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
};

use claude_mem_core::{
    app::{App, is_coloured},
    environment::Environment,
    failure::{Failure, nearest},
    os::stderr_columns,
    pager::Pager,
    progress::Progress,
    safe_text::clean,
    wrap::wrap_hanging,
};

/// Long-term memory for coding agents
#[derive(Debug, Parser)]
#[command(version, subcommand_required = true, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: TopLevel,
}

// Parsed once per process.
#[expect(clippy::large_enum_variant)]
#[derive(Debug, Subcommand)]
enum TopLevel {
    #[command(flatten)]
    Command(Command),
    Statusline(statusline::Statusline),
    #[command(flatten)]
    Hook(hook::Hook),
}

/// Declares commands, and runs the one that was typed.
macro_rules! commands {
    ($group:ident { $($(#[$about:meta])* $command:ident($arguments:ty),)* }) => {
        #[derive(Debug, Subcommand)]
        enum $group {
            $($(#[$about])* $command($arguments),)*
        }

        impl $group {
            fn run(self, app: &mut App) -> Result<(), Failure> {
                match self {
                    $(Self::$command(command) => command.run(app),)*
                }
            }
        }
    };
}

commands! { Command {
    Demo(demo::Demo),
    Install(install::Install),
    Uninstall(uninstall::Uninstall),
    Settings(settings::Settings),
    #[command(alias = "project")]
    Distill(distill::Distill),
    Replay(replay::Replay),
    Index(index::Index),
    Diff(diff::Diff),
    Report(report::Report),
    Status(status::Status),
    Log(log::Log),
    Sql(sql::Sql),
    Context(context::Context),
    Remember(remember::Remember),
    Forget(forget::Forget),
    Compact(compact::Compact),
    Redact(redact::Redact),
    Import(import::Import),
    Export(export::Export),
    Verify(verify::Verify),
    Ship(ship::Ship),
    Restore(restore::Restore),
    Doctor(doctor::Doctor),
    Search(search::Search),
    Projects(projects::Projects),
    Timeline(timeline::Timeline),
    Show(show::Show),
    Why(why::Why),
    Eval(eval::Eval),
    Mcp(mcp::Mcp),
    Viewer(viewer::Viewer),
    Worker(worker::Worker),
    /// Correct memories: edit, pin, mark as wrong or superseded
    #[command(subcommand)]
    Memory(MemoryCommand),
    /// Logs of other machines, and the key of the remote
    #[command(subcommand)]
    Remote(RemoteCommand),
    /// Write completions, manual pages or a plugin
    #[command(subcommand)]
    Generate(GenerateCommand),
    // The names before there were groups. They still work, and the help does not list them.
    #[command(flatten)]
    UngroupedDistill(DistillCommand),
    #[command(flatten)]
    UngroupedMemory(MemoryCommand),
    #[command(flatten)]
    UngroupedRemote(RemoteCommand),
    #[command(flatten)]
    UngroupedGenerate(GenerateCommand),
} }
commands! { MemoryCommand {
    Edit(edit::EditMemory),
    Pin(pin::Pin),
    Unpin(pin::Unpin),
    Wrong(pin::Wrong),
    Supersede(pin::Supersede),
} }
commands! { RemoteCommand {
    Pull(pull::Pull),
    Hosts(hosts::Hosts),
    Key(key::KeyCommand),
} }
commands! { GenerateCommand {
    Completions(completions::Completions),
    Man(man::Man),
    Plugin(plugin::Plugin),
} }
commands! { DistillCommand {
    Retry(retry::RetryParked),
    Costs(costs::Costs),
} }

impl Command {
    /// Whether the output goes through a pager.
    fn is_long(&self) -> bool {
        match self {
            Self::Log(log) => !log.is_endless(),
            Self::Settings(settings) => settings.is_list(),
            Self::Distill(distill) => distill.is_long(),
            Self::Context(_)
            | Self::UngroupedDistill(DistillCommand::Costs(_))
            | Self::Diff(_)
            | Self::Report(_)
            | Self::Search(_)
            | Self::Show(_)
            | Self::Sql(_)
            | Self::Timeline(_)
            | Self::Why(_) => true,
            _ => false,
        }
    }

    /// Whether it reads or writes the data directory.
    fn uses_data(&self) -> bool {
        !matches!(self, Self::Demo(_) | Self::Generate(_) | Self::UngroupedGenerate(_))
    }

    /// Whether it ends by itself, and so a user waits for it.
    fn is_awaited(&self) -> bool {
        match self {
            Self::Log(log) => !log.is_endless(),
            Self::Ship(ship) => !ship.is_endless(),
            Self::Mcp(_) | Self::Worker(_) | Self::Viewer(_) | Self::Demo(_) => false,
            _ => true,
        }
    }
}

/// Runs every command except hooks.
pub(crate) fn main() -> u8 {
    if is_live_search() {
        return finish(App::from_process(true).and_then(|mut app| live_search::run(&mut app)));
    }
    let parsed = help::command_with_help().try_get_matches();
    let command = match parsed.and_then(|matches| CommandLine::from_arg_matches(&matches)) {
        // Commands that a client runs were recognized before.
        Ok(CommandLine { command: TopLevel::Hook(hook) }) => return hook.explain(),
        Ok(CommandLine { command: TopLevel::Statusline(_) }) => return statusline::run(),
        Ok(CommandLine { command: TopLevel::Command(command) }) => command,
        Err(error) => return explain(&error),
    };
    let outcome = App::from_process(command.uses_data()).and_then(|mut app| {
        let _working = command.is_awaited().then(|| Progress::until_output("working"));
        let _pager = if command.is_long() { Pager::start(&app.environment) } else { None };
        command.run(&mut app)
    });
    finish(outcome)
}

/// Without arguments, a person at a terminal searches. Elsewhere the parser prints the help.
fn is_live_search() -> bool {
    let is_dumb = Environment::of_process().get("TERM").is_some_and(|terminal| terminal == "dumb");
    std::env::args_os().len() == 1
        && !is_dumb
        && io::stdin().is_terminal()
        && io::stdout().is_terminal()
}

fn finish(outcome: Result<(), Failure>) -> u8 {
    match outcome {
        Ok(()) => 0,
        Err(failure) => report(&failure),
    }
}

fn report(failure: &Failure) -> u8 {
    let is_coloured = is_coloured(&Environment::of_process(), &io::stderr());
    let text = failure.render_wrapped(is_coloured, stderr_columns());
    // If stderr is closed, the exit code still reports the failure.
    let _ = io::stderr().write_all(text.as_bytes());
    failure.exit_code()
}

/// Prints the parser's errors. An unknown command gets our own message with the nearest name.
fn explain(error: &clap::Error) -> u8 {
    if let (ErrorKind::InvalidSubcommand, Some(ContextValue::String(typed))) =
        (error.kind(), error.get(ContextKind::InvalidSubcommand))
    {
        return report(&unknown_command(typed, error));
    }
    if error.use_stderr() {
        // The message quotes what was typed, which may contain control characters.
        let text = error.render().to_string();
        let is_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
        let text = if is_help { text } else { in_our_form(&text) };
        let text = clean(&text).into_owned();
        let text = match stderr_columns() {
            Some(columns) => wrap_hanging(&text, columns, "note: ".len()),
            None => text,
        };
        let _ = io::stderr().write_all(text.as_bytes());
    } else {
        let _ = error.print();
    }
    u8::try_from(error.exit_code()).unwrap_or(2)
}

/// The parser's message in the form of all errors: what is wrong, then hints, without empty
/// lines.
fn in_our_form(message: &str) -> String {
    let mut text = String::new();
    for line in message.lines() {
        let line = line.replace("invalid digit found in string", "expected a whole number");
        let hint = line.strip_prefix("  tip: ").map(|tip| format!("hint: {tip}"));
        let values = line.trim().strip_prefix("[possible values: ");
        let values = values.map(|values| format!("hint: use one of {}", values.replace(']', "")));
        let usage = line.strip_prefix("Usage: ").map(|usage| format!("usage: {usage}"));
        let line = hint.or(values).or(usage).unwrap_or(line);
        if !line.is_empty() && !line.starts_with("For more information") {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

fn unknown_command(typed: &str, error: &clap::Error) -> Failure {
    let commands = CommandLine::command();
    // Below the top level only the parser knows the valid names.
    let nearest = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(offered)) => nearest(typed, offered.iter().map(String::as_str)),
        _ => nearest(typed, commands.get_subcommands().map(clap::Command::get_name)),
    };
    let failure = Failure::usage(format!("there is no command `{typed}`"));
    match nearest {
        Some(name) => failure.remedy(format!("did you mean `{name}`?")),
        None => failure.remedy(format!("list the commands with `{} --help`", within(typed))),
    }
}

/// The valid commands before the unknown one.
fn within(typed: &str) -> String {
    let understood = std::env::args().skip(1).take_while(|argument| argument != typed);
    ["claude-mem".to_owned()].into_iter().chain(understood).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn every_hook_is_also_a_command_with_help() {
        let commands = CommandLine::command();
        for (name, _) in claude_mem_capture::clients::claude_code::ALIASES {
            assert!(commands.find_subcommand(name).is_some(), "{name}");
        }
    }
}
