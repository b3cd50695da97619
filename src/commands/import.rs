//! `claude-mem import`: import memories and past sessions.

use std::path::PathBuf;

use clap::Args;
use claude_mem_events::EventLog;
use claude_mem_log::{Log, Options};
use claude_mem_projections::Store;
use serde_json::json;

use claude_mem_capture::redaction;
use claude_mem_core::{
    app::App,
    failure::Failure,
    format::{count, number},
    paths,
    time_arg::When,
};
use claude_mem_distill::{self, Estimate, dollars, tokens};
use claude_mem_import::{self, From, Report, Scope, Sink};
use claude_mem_memory::store;

/// Import memories or past sessions
///
/// Reads the database of the TypeScript claude-mem, what Claude Code, Codex, Copilot, Gemini, Qwen
/// Code and OpenCode keep of past sessions, or a file of `claude-mem export`. Events that exist are
/// skipped, so you can interrupt and repeat it. It sends no request: distill imported sessions with
/// `claude-mem distill`. The output estimates what that costs.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// A file or folder [default: the usual place of `--from`]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// Format of PATH [default: detected]
    #[arg(long, value_enum)]
    from: Option<From>,
    /// Print what would be added, and add nothing
    #[arg(long)]
    dry_run: bool,
    /// Only events since this time, such as `2026-03-01` or `90d`
    #[arg(long, value_name = "WHEN")]
    since: Option<When>,
    /// Only this project: its name, key or folder
    #[arg(long)]
    project: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Import {
    /// Exits with code 1 if a file is damaged; what could be read is kept.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let (from, path) = self.source(app)?;
        let now = app.clock.now();
        let since = self.since.as_ref().map(|when| when.start(now).as_microsecond());
        let since_us = since.and_then(|since| u64::try_from(since).ok()).unwrap_or(0);
        let scope = Scope { since_us, project: self.project.clone() };
        let (mut store, _) = store::open_whole(app)?;
        // A dry run imports into a log that is deleted afterwards.
        let scratch =
            self.dry_run.then(tempfile::tempdir).transpose().map_err(|error| {
                Failure::new(format!("cannot create a temporary folder: {error}"))
            })?;
        let dir = scratch.as_ref().map_or_else(|| app.paths.log(), |dir| dir.path().into());
        let log = EventLog::open(&dir, Options::default())?;
        let mut sink = Sink::new(&store, log, scope, redaction::policy(&app.settings));
        let imported = claude_mem_import::import(app, &mut sink, from, &path);
        let report = sink.report;
        imported?;
        let estimate = match (&scratch, report.added_total()) {
            (_, 0) => None,
            (Some(_), _) => {
                let log = Log::open(&dir, Options::default())?;
                let mut added = Store::in_memory()?;
                store::fold(&mut added, &log)?;
                Some(claude_mem_distill::estimate(app, &store, (&added, &log))?)
            }
            (None, _) => {
                let log = store::open_log(app)?;
                store::fold(&mut store, &log)?;
                Some(claude_mem_distill::estimate(app, &store, (&store, &log))?)
            }
        };
        let shown = ImportResult { from, path, is_dry_run: self.dry_run, report, estimate };
        if self.json {
            app.output.json(&shown.to_json())?;
        } else {
            shown.print_text(app)?;
        }
        shown.verdict()
    }

    fn source(&self, app: &App) -> Result<(From, PathBuf), Failure> {
        let path =
            self.path.as_ref().map(|path| paths::expand_tilde(path, app.paths.home.as_deref()));
        match (self.from, path) {
            (Some(from), Some(path)) => Ok((from, path)),
            (None, Some(path)) => Ok((claude_mem_import::recognise(&path)?, path)),
            (Some(from), None) => from.usual_place(app).map(|path| (from, path)).ok_or_else(|| {
                Failure::usage("no file to import").remedy("pass a path: `claude-mem import FILE`")
            }),
            (None, None) => Err(nothing_named(app)),
        }
    }
}

fn nothing_named(app: &App) -> Failure {
    let found: Vec<String> = From::all()
        .filter(|from| from.usual_place(app).is_some_and(|path| path.exists()))
        .map(|from| format!("`claude-mem import --from {}`", from.flag()))
        .collect();
    let failure = Failure::usage("nothing to import: pass `--from` or a file");
    match found.is_empty() {
        true => failure.remedy("see the formats with `claude-mem import --help`"),
        false => failure.remedy(format!("found data for {}", found.join(" and "))),
    }
}

struct ImportResult {
    from: From,
    path: PathBuf,
    is_dry_run: bool,
    report: Report,
    estimate: Option<Estimate>,
}

impl ImportResult {
    fn to_json(&self) -> serde_json::Value {
        let report = &self.report;
        json!({
            "from": self.from.name(),
            "path": self.path,
            "is_dry_run": self.is_dry_run,
            "added": report.added,
            "known": report.known,
            "copies": report.copies,
            "left_out": report.left_out,
            "tool_uses_left_out": report.tool_uses_left_out,
            "refused": report.refused,
            "damage": report.damage,
            "bytes": report.bytes,
            "to_distill": self.estimate.as_ref().map(|estimate| json!({
                "events": estimate.events,
                "requests": estimate.requests,
                "calls": estimate.calls,
                "tokens_in": estimate.spent.tokens_in,
                "tokens_out": estimate.spent.tokens_out,
                "cost_usd": estimate.spent.cost_micros.map(|micros| micros as f64 / 1e6),
            })),
        })
    }

    fn print_text(&self, app: &mut App) -> Result<(), Failure> {
        let report = &self.report;
        let verb = if self.is_dry_run { "would be added" } else { "added" };
        let from = self.from.name();
        app.output.line(format_args!(
            "{} {verb} from {from}, {} in memory before",
            count(report.added_total(), "event"),
            number(report.known)
        ))?;
        let refused = report.refused.iter().map(|(why, count)| ("refused", why.as_str(), *count));
        let left_out = report.left_out.iter().map(|(why, count)| ("left out", *why, *count));
        let added = report.added.iter().map(|(what, count)| ("", *what, *count));
        for (verdict, what, count) in added.chain(left_out).chain(refused) {
            let verdict = if verdict.is_empty() { String::new() } else { format!("{verdict}: ") };
            app.output.line(format_args!("  {verdict}{} {what}", number(count)))?;
        }
        if report.copies > 0 {
            let copies = count(report.copies, "event");
            app.output.line(format_args!("{copies} repeated in forks of sessions, read once"))?;
        }
        if report.tool_uses_left_out_total() > 0 {
            let reasons: Vec<String> = report
                .tool_uses_left_out
                .iter()
                .map(|(reason, count)| format!("{count} {reason}"))
                .collect();
            app.output.line(format_args!(
                "{} left out: {}",
                count(report.tool_uses_left_out_total(), "tool use"),
                reasons.join(", ")
            ))?;
        }
        match &self.estimate {
            Some(estimate) if estimate.requests > 0 => {
                let spent = &estimate.spent;
                let sum = tokens(spent.tokens_in + spent.tokens_out);
                let cost = spent.cost_micros.map(|cost| format!(", {}", dollars(cost)));
                // The built-in rules call no model.
                let cost = match estimate.calls {
                    0 => String::new(),
                    _ => format!(", about {sum} tokens{}", cost.unwrap_or_default()),
                };
                let (events, requests) =
                    (count(estimate.events, "event"), count(estimate.requests, "request"));
                if self.is_dry_run {
                    let what = format!("to distill: {events} in {requests}{cost}");
                    return app.output.line(what);
                }
                app.output.say(format_args!(
                    "pending: {events} in {requests}{cost}\n\
                     distill them now with `claude-mem distill`, or let the worker do it within \
                     the daily caps"
                ));
            }
            _ => {}
        }
        Ok(())
    }

    fn verdict(&self) -> Result<(), Failure> {
        let Some(first) = self.report.damage.first() else { return Ok(()) };
        let all = self.report.damage.len();
        let more = if all > 1 { format!(" (and {} more)", all - 1) } else { String::new() };
        Err(Failure::new(format!("{} is damaged: {first}{more}", self.path.display()))
            .meaning("everything readable was imported; the file is unchanged"))
    }
}
