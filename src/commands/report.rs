//! `claude-mem report`: what was asked, done, failed, left open, committed and spent.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use claude_mem_projections::EventFilter;
use serde::Serialize;

use super::hit_labels::plain;
use claude_mem_core::{
    app::App,
    failure::Failure,
    format::count,
    time_arg::{When, local, micros, rfc3339},
    wrap::{cut, wrap_hanging},
};
use claude_mem_distill::{dollars, tokens};
use claude_mem_memory::{
    report::{self, CommitMade, FailedCommand, Group, GroupBy, SessionPrompts, Statement, Totals},
    resolve, store,
};

/// Readable in a terminal of 80 columns.
const COLUMNS: usize = 80;
/// About three lines.
const ITEM_CHARS_MAX: usize = 220;

/// Summarize a time range: asked, done, failed, open, commits, cost
///
/// Made from recorded events without a model, as Markdown for a stand-up note. Covers what this
/// machine recorded. `asked` has the first prompt of each session, `done` and `open` come from
/// summaries, `failed` lists shell commands.
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Start at this time, such as `2026-03-01` or `3d`
    #[arg(long, value_name = "WHEN", default_value = "7d")]
    since: When,
    /// End before this time; a day is included [default: now]
    #[arg(long, value_name = "WHEN")]
    until: Option<When>,
    /// Only this project: its name, key or folder
    #[arg(long)]
    project: Option<String>,
    /// Group by
    #[arg(long, value_enum, default_value_t = By::Project)]
    by: By,
    /// Maximum number of entries per section of the Markdown
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Md)]
    format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum By {
    Project,
    Branch,
    Day,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Md,
    Json,
}

#[derive(Debug, Serialize)]
struct ReportJson<'a> {
    since_at: String,
    until_at: String,
    #[serde(flatten)]
    report: &'a report::Report,
}

impl Report {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let store = store::read_whole(app)?;
        let now = app.clock.now();
        let since_us = self.since.start_us(now);
        let until_us = self.until.as_ref().map_or(micros(now), |until| until.end_us(now));
        let project = match &self.project {
            Some(name) => Some(resolve::project(app, &store, Some(name))?.key),
            None => None,
        };
        let by = match self.by {
            By::Project => GroupBy::Project,
            By::Branch => GroupBy::Branch,
            By::Day => GroupBy::Day,
        };
        let filter = EventFilter {
            since_us: Some(since_us),
            // An event of this very microsecond counts.
            until_us: Some(until_us.saturating_add(u64::from(self.until.is_none()))),
            project,
            session: None,
        };
        let report = report::report(app, &store, &filter, by)?;
        if self.format == Format::Json {
            let (since_at, until_at) = (rfc3339(since_us), rfc3339(until_us));
            return app.output.json(&ReportJson { since_at, until_at, report: &report });
        }
        let [since, until] = [since_us, until_us].map(|at_us| local(at_us, "%Y-%m-%d %H:%M"));
        let mut text = format!("# Report: {since} to {until}\n\n");
        if report.groups.is_empty() {
            text.push_str("Nothing was recorded.\n");
        } else {
            text.push_str(&numbers(&report.total));
        }
        for group in &report.groups {
            write_group(&mut text, group, &report.total, self.limit);
        }
        app.output.line(app.output.page(text.trim_end()))
    }
}

/// A session, with every entry of each section.
pub(super) fn session_text(session: &str, report: &report::Report) -> String {
    let mut text = format!("# Session {}\n\n{}", plain(session), numbers(&report.total));
    for group in &report.groups {
        write_group(&mut text, group, &report.total, usize::MAX);
    }
    text
}

fn write_group(text: &mut String, group: &Group, total: &Totals, limit: usize) {
    let _ = write!(text, "\n## {}\n\n", plain(&group.name));
    // The numbers of the only group are those above.
    if group.total != *total {
        text.push_str(&numbers(&group.total));
        text.push('\n');
    }
    section(text, "Asked", group.asked.iter().map(asked), limit);
    section(text, "Done", group.done.iter().map(statement), limit);
    section(text, "Failed", group.failed.iter().map(failed), limit);
    section(text, "Open", group.open.iter().map(statement), limit);
    section(text, "Commits", group.commits.iter().map(commit), limit);
    text.truncate(text.trim_end().len());
    text.push('\n');
}

fn numbers(total: &Totals) -> String {
    let failed = match total.failed_tool_uses {
        0 => String::new(),
        failed => format!(" ({failed} failed)"),
    };
    let counts = [
        (total.sessions, "session", ""),
        (total.prompts, "prompt", ""),
        (total.tool_uses, "tool use", failed.as_str()),
        (total.files_edited, "file", " edited"),
        (total.commits, "commit", ""),
    ];
    let counts = counts.into_iter().filter(|(number, ..)| *number > 0);
    let mut parts: Vec<String> =
        counts.map(|(number, what, more)| count(number, what) + more).collect();
    // The built-in rules use no tokens.
    if total.tokens > 0 {
        let (cost, tokens) = (dollars(micro_dollars(total)), tokens(total.tokens));
        parts.push(format!("{cost} for distilling ({tokens} tokens)"));
    }
    wrapped("", &parts.join(", "))
}

fn micro_dollars(total: &Totals) -> u64 {
    (total.cost_usd * 1e6).round() as u64
}

fn section(
    text: &mut String,
    title: &str,
    items: impl ExactSizeIterator<Item = String>,
    limit: usize,
) {
    let total = items.len();
    if total == 0 {
        return;
    }
    let _ = write!(text, "### {title}\n\n");
    for item in items.take(limit) {
        text.push_str(&wrapped("- ", &cut(&item, ITEM_CHARS_MAX)));
    }
    if total > limit {
        let _ = writeln!(text, "- and {} more", total - limit);
    }
    text.push('\n');
}

fn asked(asked: &SessionPrompts) -> String {
    let more = match asked.more_prompts {
        0 => String::new(),
        more => format!(" (and {})", count(more, "more prompt")),
    };
    // The number of prompts is not cut off.
    let text = cut(&plain(&asked.text), ITEM_CHARS_MAX - 60);
    format!("{} {text}{more}", local(asked.at_us, "%m-%d %H:%M"))
}

fn statement(statement: &Statement) -> String {
    let lines: Vec<&str> = statement.text.lines().map(str::trim).collect();
    format!("{} ({})", cut(&plain(&lines.join("; ")), ITEM_CHARS_MAX - 20), statement.id)
}

fn failed(failed: &FailedCommand) -> String {
    let times = match failed.count {
        1 => String::new(),
        times => format!(", {times} times"),
    };
    let since = if failed.has_passed_since { ", passed later" } else { "" };
    let command = code(&cut(&plain(&failed.command), 80));
    format!("{command}: {}{times}{since}", cut(&plain(&failed.error), 90))
}

fn commit(commit: &CommitMade) -> String {
    let subject = if commit.subject.is_empty() { "(quiet)" } else { &commit.subject };
    let branch = match commit.branch.as_str() {
        "" => String::new(),
        branch => format!(" ({})", plain(branch)),
    };
    let line = format!("{} {}{branch}", commit.id, cut(&plain(subject), 140));
    line.trim_start().to_owned()
}

/// Inline code, if the text has no backtick itself.
fn code(text: &str) -> String {
    if text.contains('`') { text.to_owned() } else { format!("`{text}`") }
}

/// Breaks a text between words, below its start.
fn wrapped(start: &str, text: &str) -> String {
    wrap_hanging(&format!("{start}{text}"), COLUMNS, start.len()) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_wrapped_and_commands_quoted() {
        let lines = wrapped("- ", "word ".repeat(40).trim_end());
        assert!(lines.lines().skip(1).all(|line| line.starts_with("  word")), "{lines}");
        assert_eq!((code("ls"), code("echo `ls`")), ("`ls`".into(), "echo `ls`".into()));
    }
}
