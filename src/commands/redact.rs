//! `claude-mem redact`: today's rules for secrets, for the whole past.

use clap::Args;
use serde_json::json;

use super::{confirm::confirm, progress::Progress};
use crate::{app::App, compact, failure::Failure, words};

/// Take secrets out of everything that was recorded
///
/// Secrets are replaced before anything is recorded, by the rules of the version that records it. This applies
/// today's rules to the whole log, removes what they find for good, and draws memory again.
#[derive(Debug, Args)]
pub(crate) struct Redact {
    /// Only say how many events have secrets in them
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Redact {
    /// Looks, asks, and replaces.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let found = apply(app, true)?;
        let events = words::count(found.events, "event");
        if self.dry_run || found.events == 0 {
            return match self.json {
                true => app.output.json(&json!({"events": found.events, "dry_run": true})),
                false => app.output.line(format_args!("secrets in {events}")),
            };
        }
        if !self.yes {
            confirm(
                app,
                &format!("secrets in {events} would be replaced for good"),
                &format!("Replace the secrets in {events} for good?"),
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
        Err(Failure::new(format!("damaged segments were left as they are: {:x?}", done.left))
            .remedy("mend them with `claude-mem verify --repair`, then do this again"))
    }
}

fn apply(app: &mut App, is_dry_run: bool) -> Result<compact::Redacted, Failure> {
    const PERCENT: usize = 100;
    let progress = Progress::new(if is_dry_run { "looking" } else { "replacing" }, PERCENT);
    compact::redact(app, is_dry_run, |done, total| {
        progress.show((done * PERCENT as u64 / total.max(1)) as usize, "%");
    })
}
