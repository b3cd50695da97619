//! The first page of `--help`: all commands in groups.

use std::fmt::Write;

use clap::{Command, CommandFactory};

use super::CommandLine;

const GROUPS: [(&str, &[&str]); 8] = [
    ("Get started", &["demo", "install", "uninstall", "settings"]),
    ("Recall", &["viewer", "search", "timeline", "show", "why", "context", "projects"]),
    ("Correct", &["remember", "memory", "forget"]),
    ("Inspect", &["status", "doctor", "log", "sql", "report", "worker"]),
    ("Process", &["distill", "index", "replay", "diff"]),
    ("Maintain", &["compact", "redact", "verify", "import", "export"]),
    ("Backup and sync", &["ship", "restore", "remote"]),
    ("Integrate", &["mcp", "statusline", "generate", "eval"]),
];

const EXAMPLES: &str = "  claude-mem                               search while you type
  claude-mem demo                          try it without changing your files
  claude-mem install                       set up your coding agents
  claude-mem search why sqlite             find a memory
  claude-mem replay --since 30d --dry-run  estimate the cost of a reprocessing

`claude-mem COMMAND --help` shows the options of a command.
Exit codes: 0 success, 1 failure, 2 wrong usage.
";

/// The command line, with its help in groups.
pub(super) fn command_with_help() -> Command {
    let is_listed = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let command = CommandLine::command();
    // Hooks, and commands that are in a group now.
    let command = command.mut_subcommands(|command| {
        let is_hidden = !is_listed(command.get_name());
        command.hide(is_hidden)
    });
    let commands = grouped(&command);
    let [usage, examples, options] =
        ["Usage:", "Examples:", "Options:"].map(|text| title(&command, text));
    command.help_template(format!(
        "{{about}}\n\n{usage} claude-mem [COMMAND]\n\n{commands}{examples}\n{EXAMPLES}\n\
         {options}\n{{options}}\n"
    ))
}

/// In the style that the help of each command has. The parser removes it if there is no terminal.
fn title(command: &Command, title: &str) -> String {
    let style = command.get_styles().get_header();
    format!("{style}{title}{style:#}")
}

fn grouped(command: &Command) -> String {
    let mut text = String::new();
    for (group, names) in GROUPS {
        let _ = writeln!(text, "{}", title(command, &format!("{group}:")));
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {name:<12} {about}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_listed_or_in_a_group_or_a_hook() {
        let command = command_with_help();
        let nested = command.get_subcommands().filter(|command| !command.is_hide_set());
        let nested: Vec<&str> =
            nested.flat_map(Command::get_subcommands).map(Command::get_name).collect();
        let hooks = claude_mem_capture::clients::claude_code::ALIASES.map(|(name, _)| name);
        for hidden in command.get_subcommands().filter(|command| command.is_hide_set()) {
            let name = hidden.get_name();
            assert!(nested.contains(&name) || hooks.contains(&name) || name == "hook", "{name}");
        }
        let listed = GROUPS.iter().flat_map(|(_, names)| names.iter());
        assert!(listed.clone().all(|name| command.find_subcommand(name).is_some()));
        assert!(listed.count() <= 36);
    }

    #[test]
    fn the_first_page_fits_a_terminal() {
        let page = command_with_help().render_help().to_string();
        for line in page.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
