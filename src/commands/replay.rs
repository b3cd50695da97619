//! `claude-mem replay`: rebuild memory from the log, as it is or under another prompt or model.

use std::{
    io::{self, BufRead, IsTerminal},
    path::PathBuf,
};

use clap::Args;
use claude_mem_log::Log;
use claude_mem_projections::{EventFilter, Store};
use serde_json::json;

use super::{diff::no_generation, progress::Progress};
use claude_mem_core::{
    app::App, failure::Failure, format::count, settings::ProviderName, time_arg::Between,
};
use claude_mem_distill::{
    self, Estimate, Overrides, Prepared, ReplayRequest, RunReport, adopt, concurrency, dollars,
    prompts::Instructions, tokens,
};
use claude_mem_memory::{resolve, store};

/// The word for the instructions of `prompts/init.txt`, or the built-in ones.
const DEFAULT: &str = "default";

/// Rebuild memory from the log, or reprocess it
///
/// Alone, it rebuilds the current memory, byte for byte, and sends no request.
///
/// With a selection (`--since`, `--until`, `--project`, `--session`) or a word (`--prompt`, `--model`,
/// `--provider`, `--fresh`, `--shadow`) it reprocesses: memory becomes what it would be had that prompt
/// always been in force over the selected events, by default the prompt in force today. Recorded replies
/// are reused, missing ones are asked for, and the result is shown all at once when it is complete.
/// Interrupted, it goes on where it stopped. Select everything with `--since 1970-01-01`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags on the command line")]
pub(crate) struct Replay {
    #[command(flatten)]
    between: Between,
    /// Only this project: its name, its key, or a folder in it
    #[arg(long)]
    project: Option<String>,
    /// Only this session: its id, or the beginning of it
    #[arg(long)]
    session: Option<String>,
    /// Ask with the instructions in this file, and keep them in force for new events; `default` goes back to
    /// the built-in ones, or those in `prompts/init.txt`
    #[arg(long, value_name = "FILE")]
    prompt: Option<PathBuf>,
    /// Ask this model; replies of others do not count
    #[arg(long)]
    model: Option<String>,
    /// Ask this provider; replies of other models do not count
    #[arg(long, value_enum)]
    provider: Option<ProviderName>,
    /// Ask again even where a reply under the same prompt is recorded
    #[arg(long)]
    fresh: bool,
    /// Send no request; the same as `claude-mem replay` alone
    #[arg(long, conflicts_with_all = ["since", "until", "project", "session", "fresh", "prompt", "model",
        "provider", "dry_run", "shadow"])]
    offline: bool,
    /// Say what it would take, and stop there
    #[arg(long)]
    dry_run: bool,
    /// Spend beyond the day's cap without asking
    #[arg(long, short)]
    yes: bool,
    /// Sessions asked about side by side
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    concurrency: Option<u16>,
    /// Make it to be compared with `claude-mem diff`, and leave memory as it is
    #[arg(long)]
    shadow: bool,
    /// Show the memories of this generation from now on, and use its prompt for new events; 0 is memory as it
    /// was first made
    #[arg(long, value_name = "GENERATION", exclusive = true)]
    adopt: Option<u32>,
    /// Take what there is, even if the log is damaged or questions could not be answered
    #[arg(long)]
    allow_gaps: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Replay {
    /// Ends with code 1 if anything is damaged or left undone.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let mut store = store::open(app)?;
        let _asking = claude_mem_distill::take_lock(app)?;
        let log = store::open_log(app)?;
        if let Some(generation) = self.adopt {
            store::fold(&mut store, &log)?;
            return take_over(app, &mut store, &log, generation);
        }
        if self.offline {
            return self.redraw(app, &mut store, &log, &RunReport::default(), None);
        }
        let request = self.request(app, &store)?;
        if request.is_rebuild() && !self.dry_run {
            return self.redraw(app, &mut store, &log, &RunReport::default(), None);
        }
        store::fold(&mut store, &log)?;
        let prepared = Prepared::new(app, &store, &log, &request)?;
        self.announce(app, &prepared)?;
        if self.dry_run {
            return Ok(());
        }
        if !prepared.is_needed {
            return self.redraw(app, &mut store, &log, &RunReport::default(), None);
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

    /// Says what it will take, before anything is done.
    fn announce(&self, app: &mut App, prepared: &Prepared) -> Result<(), Failure> {
        if self.json {
            return match self.dry_run {
                true => app.output.json(&described(prepared)),
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
        mut prepared: Prepared,
    ) -> Result<(), Failure> {
        let is_beyond = prepared.is_beyond_cap(app, store)?;
        if is_beyond && !self.yes {
            confirm(&prepared.estimate)?;
        }
        let is_limited = !self.yes && !is_beyond;
        let threads = self.concurrency.map_or_else(|| concurrency(app), usize::from);
        let total = prepared.estimate.requests;
        let progress = Progress::new("asked", total);
        let show = |asked: &RunReport| {
            let spent = asked.spent.tokens_in + asked.spent.tokens_out;
            progress.show(asked.answered, &format!("questions, {} tokens", tokens(spent)));
            true
        };
        prepared.has_progress = true;
        let asked = prepared.run(app, store, (is_limited, threads), &show)?;
        drop(progress);
        // A reply that could not be appended in time was put aside. It must be in the log before its end.
        let log = &store::open_log(app)?;
        if let Some(failure) = self.undone(&prepared, &asked, total) {
            store::fold(store, log)?;
            return Err(failure);
        }
        prepared.finish(app)?;
        self.redraw(app, store, log, &asked, Some(&prepared))
    }

    /// Why the generation is not complete, if it is not.
    fn undone(&self, prepared: &Prepared, asked: &RunReport, total: usize) -> Option<Failure> {
        let left = total - asked.answered;
        let generation = prepared.generation;
        let failure = match &asked.stopped {
            Some(stopped) => {
                let why = stopped.message();
                Failure::new(format!(
                    "{why}; {} of {total} are left to ask",
                    count(left, "question")
                ))
            }
            None if asked.parked > 0 && !self.allow_gaps => {
                let parked = count(asked.parked, "question");
                Failure::new(format!("{parked} of {total} could not be answered"))
            }
            None => return None,
        };
        let remedy = "go on with the same command; what was answered is not asked again";
        Some(
            failure
                .meaning(format!("generation {generation} is not complete; memory is as it was"))
                .remedy(remedy),
        )
    }

    /// Draws everything into a new file, which then takes the place of the old one.
    fn redraw(
        &self,
        app: &mut App,
        store: &mut Store,
        log: &Log,
        asked: &RunReport,
        prepared: Option<&Prepared>,
    ) -> Result<(), Failure> {
        let total = store.counts()?;
        let total = (total.tool_uses + total.prompts) as usize;
        let progress = Progress::new("folded", total);
        let is_large = total > 10_000;
        let folded = store.rebuild(log, |folded| {
            if is_large {
                progress.show(folded.events as usize, "events");
            }
        })?;
        drop(progress);
        let counts = store.counts()?;
        if self.json {
            app.output.json(&json!({
                "events": folded.events,
                "observations": counts.observations,
                "summaries": counts.summaries,
                "gaps": counts.gaps,
                "generation": prepared.map(|prepared| prepared.generation),
                "is_current": prepared.map(|_| !self.shadow),
                "answered": asked.answered,
                "parked": asked.parked,
                "tokens_in": asked.spent.tokens_in,
                "tokens_out": asked.spent.tokens_out,
                "cost_usd": asked.spent.cost_micros.map(|micros| micros as f64 / 1e6),
            }))?;
        } else {
            app.output.line(format_args!(
                "{} folded: {} and {} are remembered",
                count(folded.events, "event"),
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
                .meaning("everything that could be read was drawn")
                .remedy("see where with `claude-mem verify`, or accept it with `--allow-gaps`")),
        }
    }
}

fn announcement(prepared: &Prepared) -> String {
    let Prepared { estimate, prompt_set, events, generation, is_begun, is_needed, .. } = prepared;
    if !is_needed {
        return format!("{}: nothing to ask", count(*events, "event"));
    }
    let verb = if *is_begun { "going on with" } else { "making" };
    let text = format!(
        "{verb} generation {generation} of {}: {} to ask about {} of them, by {} ({})",
        count(*events, "event"),
        count(estimate.requests, "question"),
        estimate.events,
        prompt_set.provider,
        prompt_set.model
    );
    if estimate.calls == 0 {
        return text;
    }
    let sum = tokens(estimate.spent.tokens_in + estimate.spent.tokens_out);
    let cost = estimate.spent.cost_micros.map(|cost| format!(", {}", dollars(cost)));
    let cost = cost.unwrap_or_else(|| ", at a price that is not known".into());
    format!("{text}; {}, about {sum} tokens{cost}", count(estimate.calls, "call"))
}

fn described(prepared: &Prepared) -> serde_json::Value {
    let Prepared { estimate, prompt_set, events, generation, is_begun, is_needed, .. } = prepared;
    json!({
        "events": events,
        "events_to_ask": estimate.events,
        "questions": estimate.requests,
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
             then show it with `claude-mem replay --adopt {generation}`"
        ),
        false => format!(
            "generation {generation} is now what is remembered, and its prompt is used for new events; see \
             what changed with `claude-mem diff {generation}`"
        ),
    }
}

/// Asks the user, if there is one.
fn confirm(estimate: &Estimate) -> Result<(), Failure> {
    let refusal = || {
        let sum = tokens(estimate.spent.tokens_in + estimate.spent.tokens_out);
        Failure::new(format!("about {sum} tokens are more than is left of the day's cap"))
            .meaning("nothing was asked")
            .remedy("spend them all the same with `--yes`")
    };
    if !io::stdin().is_terminal() {
        return Err(refusal());
    }
    // The question stands on stderr, like all talk.
    eprint!("That is more than is left of the day's cap. Go on? [y/N] ");
    let mut answer = String::new();
    let _ = io::stdin().lock().read_line(&mut answer);
    if answer.trim().eq_ignore_ascii_case("y") { Ok(()) } else { Err(refusal()) }
}

/// Shows a generation that is complete.
fn take_over(app: &mut App, store: &mut Store, log: &Log, generation: u32) -> Result<(), Failure> {
    let generations = store.generations()?;
    let found = generations.iter().find(|found| found.generation == generation);
    match found {
        None if generation > 0 => {
            return Err(no_generation(generation, &generations));
        }
        Some(found) if !found.is_finished => {
            return Err(Failure::new(format!("generation {generation} is not complete"))
                .meaning("memory is as it was")
                .remedy("complete it with the `claude-mem replay` that began it"));
        }
        _ => {}
    }
    adopt(app, store, log, generation)?;
    store::fold(store, log)?;
    app.output.say(outcome(generation, false));
    Ok(())
}
