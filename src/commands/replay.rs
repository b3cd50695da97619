//! `claude-mem replay`: rebuild the database, or reprocess the log with another prompt or model.

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
};

use clap::Args;
use claude_mem_log::Log;
use claude_mem_projections::{EventFilter, Store};
use serde_json::json;

use super::{confirm::ask, diff::no_generation};
use claude_mem_core::{
    app::App,
    failure::Failure,
    format::{count, number},
    progress::Progress,
    settings::ProviderName,
    time_arg::TimeRange,
};
use claude_mem_distill::{
    self, Estimate, Overrides, PreparedReplay, ReplayOptions, ReplayRequest, RunReport, adopt,
    concurrency, dollars, prompts::Instructions, providers::label, tokens,
};
use claude_mem_memory::{resolve, store};

/// Value of `--prompt` for the instructions in `prompts/init.txt`, or the built-in ones.
const DEFAULT: &str = "default";

/// Rebuild memories from the log
///
/// Without options, rebuilds the database from the log, byte for byte, and sends no request.
///
/// With a selection (`--since`, `--until`, `--project`, `--session`) or an override (`--prompt`,
/// `--model`, `--provider`, `--fresh`, `--shadow`), reprocesses: rebuilds memories as if that
/// prompt, by default the current one, had always been used for the selected events. Recorded
/// responses are reused; only missing ones call the model. The new memories appear all at once when
/// they are complete. If interrupted, run it again to continue. Select everything with `--since
/// 1970-01-01`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags on the command line")]
pub(crate) struct Replay {
    #[command(flatten)]
    between: TimeRange,
    /// Only this project: its name, key or folder
    #[arg(long)]
    project: Option<String>,
    /// Only this session; a prefix of its ID is enough
    #[arg(long)]
    session: Option<String>,
    /// Use the instructions in this file, for new events as well; `default` selects
    /// `prompts/init.txt`, or the built-in instructions
    #[arg(long, value_name = "FILE")]
    prompt: Option<PathBuf>,
    /// Use this model; responses of other models are not reused
    #[arg(long)]
    model: Option<String>,
    /// Use this provider; responses of other models are not reused
    #[arg(long, value_enum)]
    provider: Option<ProviderName>,
    /// Ignore recorded responses and send every request again
    #[arg(long)]
    fresh: bool,
    /// Send no request; the same as `claude-mem replay` alone
    #[arg(long, conflicts_with_all = ["since", "until", "project", "session", "fresh", "prompt", "model",
        "provider", "dry_run", "shadow"])]
    offline: bool,
    /// Estimate requests and cost, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Exceed the daily cap without confirmation
    #[arg(long, short)]
    yes: bool,
    /// Number of sessions to distill in parallel
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    concurrency: Option<u16>,
    /// Keep the current memories; compare the result with `claude-mem diff`
    #[arg(long)]
    shadow: bool,
    /// Switch to the memories of this generation, and use its prompt for new events; 0 is the
    /// original
    #[arg(long, value_name = "GENERATION", exclusive = true)]
    adopt: Option<u32>,
    /// Continue despite a damaged log or failed requests
    #[arg(long)]
    allow_gaps: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Replay {
    /// Exits with code 1 if the log is damaged or requests are left.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let mut store = store::open(app)?;
        let _lock = claude_mem_distill::take_lock(app)?;
        let log = store::open_log(app)?;
        if let Some(generation) = self.adopt {
            store::fold(&mut store, &log)?;
            return make_current(app, &mut store, &log, generation);
        }
        if self.offline {
            return self.rebuild_database(app, &mut store, &log);
        }
        let request = self.request(app, &store)?;
        if request.is_rebuild() && !self.dry_run {
            return self.rebuild_database(app, &mut store, &log);
        }
        store::fold(&mut store, &log)?;
        let prepared = PreparedReplay::new(app, &store, &log, &request)?;
        if self.prompt.is_some() && prepared.prompt_set.is_free() {
            return Err(Failure::usage("the built-in rules have no prompt")
                .meaning("no request was sent, and memory is unchanged")
                .remedy("name the model that the prompt is for, such as `--provider claude`"));
        }
        self.announce(app, &prepared)?;
        if self.dry_run {
            return Ok(());
        }
        if !prepared.is_needed {
            let events = store.checkpoint()?.events;
            return self.report(app, &store, events, None);
        }
        self.reprocess(app, &mut store, prepared)
    }

    fn request(&self, app: &App, store: &Store) -> Result<ReplayRequest<'_>, Failure> {
        let now = app.clock.now();
        let project = self.project.as_deref().map(|name| resolve::only_project(store, name));
        let session = self.session.as_deref().map(|name| resolve::session(store, name));
        Ok(ReplayRequest {
            range: EventFilter {
                since_us: self.between.since_us(now),
                until_us: self.between.until_us(now),
                project: project.transpose()?,
                session: session.transpose()?,
            },
            overrides: Overrides {
                provider: self.provider,
                model: self.model.as_deref(),
                prompt: self.prompt.as_deref().map(|path| match path.to_str() {
                    Some(DEFAULT) => Instructions::Default,
                    _ => Instructions::File(path),
                }),
                ..Overrides::default()
            },
            is_fresh: self.fresh,
            is_shadow: self.shadow,
        })
    }

    /// Prints the estimate before the first request.
    fn announce(&self, app: &mut App, prepared: &PreparedReplay) -> Result<(), Failure> {
        if self.json {
            return match self.dry_run {
                true => app.output.json(&to_json(prepared)),
                false => Ok(()),
            };
        }
        let text = announcement(prepared);
        if self.dry_run {
            return app.output.line(text);
        }
        app.output.say(text);
        Ok(())
    }

    fn reprocess(
        &self,
        app: &mut App,
        store: &mut Store,
        mut prepared: PreparedReplay,
    ) -> Result<(), Failure> {
        let is_beyond = prepared.is_beyond_cap(app, store)?;
        if is_beyond && !self.yes {
            confirm(app, &prepared.estimate)?;
        }
        let is_limited = !self.yes && !is_beyond;
        let concurrency = self.concurrency.map_or_else(|| concurrency(app), usize::from);
        let total = prepared.estimate.requests;
        let progress = Progress::items("distilling", total).with_lines();
        let show = |run_report: &RunReport| {
            let spent = run_report.spent.tokens_in + run_report.spent.tokens_out;
            progress
                .show(run_report.answered as u64, &format!("requests, {} tokens", tokens(spent)));
            true
        };
        let options = ReplayOptions {
            is_limited,
            concurrency,
            allows_gaps: self.allow_gaps,
            prints_waiting: true,
        };
        let run_report = prepared.run(app, store, &options, &show)?;
        drop(progress);
        let events = store.checkpoint()?.events;
        self.report(app, store, events, Some((&run_report, &prepared)))
    }

    /// Builds a new database file, which then replaces the old one.
    fn rebuild_database(&self, app: &mut App, store: &mut Store, log: &Log) -> Result<(), Failure> {
        let folded = store::rebuild(store, log)?;
        self.report(app, store, folded.events, None)
    }

    /// Prints the result. Fails if the log is damaged.
    fn report(
        &self,
        app: &mut App,
        store: &Store,
        events: u64,
        replayed: Option<(&RunReport, &PreparedReplay)>,
    ) -> Result<(), Failure> {
        let nothing = RunReport::default();
        let run_report = replayed.map_or(&nothing, |(run_report, _)| run_report);
        let prepared = replayed.map(|(_, prepared)| prepared);
        let counts = store.counts()?;
        if self.json {
            app.output.json(&json!({
                "events": events,
                "observations": counts.observations,
                "summaries": counts.summaries,
                "gaps": counts.gaps,
                "generation": prepared.map(|prepared| prepared.generation),
                "is_current": prepared.map(|_| !self.shadow),
                "answered": run_report.answered,
                "parked": run_report.parked,
                "tokens_in": run_report.spent.tokens_in,
                "tokens_out": run_report.spent.tokens_out,
                "cost_usd": run_report.spent.cost_micros.map(|micros| micros as f64 / 1e6),
            }))?;
        } else {
            app.output.line(format_args!(
                "{} indexed: {} and {}",
                count(events, "event"),
                count(counts.observations, "observation"),
                count(counts.summaries, "summary")
            ))?;
            if let Some(prepared) = prepared {
                app.output.say(outcome(prepared.generation, self.shadow));
            }
        }
        match counts.gaps {
            0 => Ok(()),
            _ if self.allow_gaps => Ok(()),
            gaps => Err(Failure::new(format!("the log is damaged in {}", count(gaps, "place")))
                .meaning("every readable event was indexed")
                .remedy("see where with `claude-mem verify`, or accept it with `--allow-gaps`")),
        }
    }
}

fn announcement(prepared: &PreparedReplay) -> String {
    let PreparedReplay { estimate, prompt_set, events, generation, is_begun, is_needed, .. } =
        prepared;
    if !is_needed {
        let done = format!("{}: nothing to reprocess", count(*events, "event"));
        return match prompt_set.is_free() {
            true => format!(
                "{done}, all are distilled by this version of the built-in rules; distill them by \
                 a model with `--provider`, or again with `--fresh`"
            ),
            false => done,
        };
    }
    let verb = if *is_begun { "continuing" } else { "making" };
    let text = format!(
        "{verb} generation {generation} of {}: {} for {} of them, by {}",
        count(*events, "event"),
        count(estimate.requests, "request"),
        number(estimate.events),
        label(&prompt_set.provider, &prompt_set.model)
    );
    if estimate.calls == 0 {
        return text;
    }
    let sum = tokens(estimate.spent.tokens_in + estimate.spent.tokens_out);
    let cost = estimate.spent.cost_micros.map(|cost| format!(", {}", dollars(cost)));
    let cost = cost.unwrap_or_else(|| ", price unknown".into());
    format!("{text}; {}, about {sum} tokens{cost}", count(estimate.calls, "call"))
}

fn to_json(prepared: &PreparedReplay) -> serde_json::Value {
    let PreparedReplay { estimate, prompt_set, events, generation, is_begun, is_needed, .. } =
        prepared;
    json!({
        "events": events,
        "events_to_distill": estimate.events,
        "requests": estimate.requests,
        "calls": estimate.calls,
        "tokens_in": estimate.spent.tokens_in,
        "tokens_out": estimate.spent.tokens_out,
        "cost_usd": estimate.spent.cost_micros.map(|micros| micros as f64 / 1e6),
        "provider": prompt_set.provider,
        "model": prompt_set.model,
        "prompt_version": prompt_set.version,
        "generation": is_needed.then_some(generation),
        "is_begun": is_begun,
    })
}

fn outcome(generation: u32, is_shadow: bool) -> String {
    match is_shadow {
        true => format!(
            "generation {generation} is complete; compare it with `claude-mem diff {generation}`, \
             then switch to it with `claude-mem replay --adopt {generation}`"
        ),
        false => format!(
            "generation {generation} is now current, and its prompt is used for new events; see \
             what changed with `claude-mem diff {generation}`"
        ),
    }
}

fn confirm(app: &mut App, estimate: &Estimate) -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        let sum = tokens(estimate.spent.tokens_in + estimate.spent.tokens_out);
        return Err(Failure::new(format!("about {sum} tokens exceed the daily cap"))
            .meaning("no request was sent")
            .remedy("exceed the cap with `--yes`"));
    }
    ask(app, "This exceeds the daily cap. Continue?")
}

/// Makes a complete generation the current one.
fn make_current(
    app: &mut App,
    store: &mut Store,
    log: &Log,
    generation: u32,
) -> Result<(), Failure> {
    let generations = store.generations()?;
    let found = generations.iter().find(|found| found.generation == generation);
    match found {
        None if generation > 0 => {
            return Err(no_generation(generation, &generations));
        }
        Some(found) if !found.is_finished => {
            return Err(Failure::new(format!("generation {generation} is incomplete"))
                .meaning("the current memories are unchanged")
                .remedy("complete it by running the same `claude-mem replay` again"));
        }
        _ => {}
    }
    adopt(app, store, log, generation)?;
    store::fold(store, log)?;
    app.output.say(outcome(generation, false));
    Ok(())
}
