//! `claude-mem redact`: apply the current secret rules to the whole log.

use clap::Args;
use serde_json::json;

use super::confirm::confirm;
use claude_mem_core::{app::App, failure::Failure, format, progress::Progress};
use claude_mem_maintenance::redact::{self, Redacted, Rules};

/// Remove secrets from everything that was recorded
///
/// Secrets are replaced before an event is recorded, by the rules of the version at that time. This
/// command applies the current rules to the whole log, permanently removes what they find, and
/// rebuilds the database.
#[derive(Debug, Args)]
pub(crate) struct Redact {
    /// Only report which rules find secrets, by day
    #[arg(long)]
    dry_run: bool,
    /// Skip the confirmation
    #[arg(long)]
    yes: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Redact {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let found = apply(app, true)?;
        let events = format::count(found.events, "event");
        if self.dry_run || found.events == 0 {
            return match self.json {
                true => print_json(app, &found),
                false => print_table(app, &found, &events),
            };
        }
        if !self.yes {
            confirm(
                app,
                &format!("secrets in {events} would be permanently replaced"),
                &format!("Permanently replace the secrets in {events}?"),
            )?;
        }
        let done = apply(app, false)?;
        match self.json {
            true => app.output.json(&json!({"events": done.events, "segments": done.segments})),
            false => app.output.line(format_args!("replaced secrets in {events}")),
        }?;
        if done.left.is_empty() {
            return Ok(());
        }
        Err(Failure::new(format!("damaged segments were not changed: {:x?}", done.left))
            .remedy("repair them with `claude-mem verify --repair`, then run this again"))
    }
}

fn print_json(app: &mut App, found: &Redacted) -> Result<(), Failure> {
    let by_day: serde_json::Map<_, _> =
        found.by_day.iter().map(|(day, rules)| (day.to_string(), json!(rules))).collect();
    let by_rule = by_rule(found);
    let secrets: u64 = by_rule.values().sum();
    app.output.json(&json!({
        "events": found.events,
        "secrets": secrets,
        "by_rule": by_rule,
        "by_day": by_day,
        "dry_run": true,
    }))
}

/// One line per day and rule, one per rule if there are several days, and a total.
fn print_table(app: &mut App, found: &Redacted, events: &str) -> Result<(), Failure> {
    const DAY_COLUMNS: usize = 10;
    let total = by_rule(found);
    if !total.is_empty() {
        let width = total.keys().map(String::len).max().unwrap_or(0);
        let line = |day: &str, rule: &str, count: &str| {
            format!("{day:<DAY_COLUMNS$}  {rule:<width$}  {count:>7}")
        };
        app.output.line(app.output.dim(&line("day", "rule", "secrets")))?;
        for (day, rules) in &found.by_day {
            for (rule, count) in rules {
                app.output.line(line(&day.to_string(), rule, &count.to_string()))?;
            }
        }
        let days = found.by_day.values().filter(|rules| !rules.is_empty()).count();
        for (rule, count) in total.iter().filter(|_| days > 1) {
            app.output.line(line("all", rule, &count.to_string()))?;
        }
    }
    app.output.line(format_args!("secrets in {events}"))
}

fn by_rule(found: &Redacted) -> Rules {
    let mut total = Rules::new();
    for (rule, count) in found.by_day.values().flatten() {
        *total.entry(rule.clone()).or_default() += count;
    }
    total
}

fn apply(app: &mut App, is_dry_run: bool) -> Result<Redacted, Failure> {
    let progress = Progress::bytes(if is_dry_run { "searching" } else { "replacing" }, 0);
    redact::redact(app, is_dry_run, |done, total| {
        progress.set_total(total);
        progress.show(done, "");
    })
}
