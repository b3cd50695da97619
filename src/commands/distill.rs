//! `claude-mem distill`: distill and index what is pending, in the foreground.

use std::time::Duration;

use clap::Args;
use claude_mem_events::FailureClass;
use serde_json::json;

use super::{DistillCommand, index::embed};
use claude_mem_core::{
    app::App,
    failure::Failure,
    format::{count, number},
    worker_process::is_worker_running,
};
use claude_mem_distill::{
    self, Distilled, RunOptions, Stopped, dollars,
    providers::{auto::remedy, label},
    tokens,
};
use claude_mem_memory::{semantic::Depth, store};

/// Distill pending events into memories now
///
/// Sends every pending event to the provider, records the responses, and updates the database.
/// Events that cannot be distilled stay pending in the log.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Distill {
    #[command(subcommand)]
    command: Option<DistillCommand>,
    /// Skip turns that are still in progress
    #[arg(long)]
    due: bool,
    /// Stop after waiting this long for a provider that does not respond
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    wait: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Distill {
    /// Whether the output goes through a pager.
    pub(crate) fn is_long(&self) -> bool {
        matches!(self.command, Some(DistillCommand::Costs(_)))
    }

    /// Exits with code 1 if the provider fails or if requests were parked.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        if let Some(command) = self.command {
            return command.run(app);
        }
        let wait_max = Duration::from_secs(self.wait);
        let options = RunOptions { is_due_only: self.due, wait_max, ..RunOptions::default() };
        let distilled = claude_mem_distill::distill(app, &options)?;
        let reported = report(app, &distilled, self.json);
        embed_without_worker(app);
        reported
    }
}

/// Gives new memories their vectors. The worker does that by itself, and a failure changes nothing
/// about the memories. After an import there may be tens of thousands, which would take too long
/// for one command.
fn embed_without_worker(app: &mut App) {
    const TIME_MAX: Duration = Duration::from_secs(10 * 60);
    if is_worker_running(&app.paths.data) {
        return;
    }
    let embedded =
        store::open_whole(app).and_then(|(store, _)| embed(app, &store, Depth::Rows, TIME_MAX));
    match embedded {
        Ok(Some(done)) if done.counts.missing > 0 && !done.is_claimed => {
            let missing = number(done.counts.missing);
            app.output.say(format_args!(
                "note: {missing} vectors are missing, so search by meaning is incomplete; the \
                 worker or `claude-mem index` makes them"
            ));
        }
        Ok(_) => {}
        Err(failure) => app.output.say(format_args!("warning: {}", failure.in_one_line())),
    }
}

/// Prints the result, and fails if something needs the user's attention.
pub(crate) fn report(app: &mut App, distilled: &Distilled, is_json: bool) -> Result<(), Failure> {
    let run_report = &distilled.report;
    if is_json {
        app.output.json(&to_json(distilled))?;
    } else if run_report.answered + run_report.parked > 0 || run_report.stopped.is_none() {
        app.output.line(summary(distilled))?;
    }
    match &run_report.stopped {
        None if run_report.parked == 0 => Ok(()),
        None => {
            let reasons: Vec<&str> = run_report.reasons.iter().map(String::as_str).collect();
            let (parked, why) = (count(run_report.parked, "request"), reasons.join("; "));
            Err(Failure::new(format!("{parked} failed repeatedly: {why}"))
                .meaning("they are parked: their events stay in the log and are not sent again")
                .remedy("retry with `claude-mem distill retry`"))
        }
        Some(stopped @ Stopped::Cap(_)) => {
            app.output.say(format_args!(
                "{}; the rest stays pending until tomorrow (CLAUDE_MEM_DAILY_TOKENS_MAX, \
                 CLAUDE_MEM_DAILY_COST_MAX)",
                stopped.message()
            ));
            Ok(())
        }
        Some(stopped) => {
            let who = &distilled.provider;
            let failure = Failure::new(format!("{who} is unavailable: {}", stopped.message()))
                .meaning("events stay pending in the log and are distilled later");
            Err(match stopped {
                Stopped::Provider { class: FailureClass::Auth, .. } => {
                    failure.remedy(remedy(who, "auth"))
                }
                Stopped::Provider { class: FailureClass::Quota, .. } => {
                    failure.remedy(remedy(who, "quota"))
                }
                _ => failure,
            })
        }
    }
}

fn summary(distilled: &Distilled) -> String {
    let Distilled { report, provider, model, folded } = distilled;
    if report.answered == 0 {
        return format!("nothing pending; {} indexed", count(*folded, "event"));
    }
    let text = format!(
        "{} for {} answered by {}: {}, {}",
        count(report.answered, "request"),
        count(report.events.len(), "event"),
        label(provider, model),
        count(report.observations, "observation"),
        count(report.summaries, "summary")
    );
    let spent = &report.spent;
    let cost = spent.cost_micros.map(|cost| format!(", {}", dollars(cost))).unwrap_or_default();
    match spent.tokens_in + spent.tokens_out {
        0 => text,
        sum => format!("{text}; {} tokens{cost}", tokens(sum)),
    }
}

fn to_json(distilled: &Distilled) -> serde_json::Value {
    let Distilled { report, provider, model, folded } = distilled;
    json!({
        "answered": report.answered,
        "parked": report.parked,
        "events": report.events.len(),
        "observations": report.observations,
        "summaries": report.summaries,
        "tokens_in": report.spent.tokens_in,
        "tokens_cached": report.spent.tokens_cached,
        "tokens_out": report.spent.tokens_out,
        "cost_usd": report.spent.cost_micros.map(|micros| micros as f64 / 1e6),
        "provider": provider,
        "model": model,
        "folded": folded,
        "stopped": report.stopped.as_ref().map(Stopped::message),
    })
}
