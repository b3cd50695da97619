//! `claude-mem distill retry`: retry parked requests.

use std::time::Duration;

use clap::Args;

use super::distill::report;
use claude_mem_core::{app::App, failure::Failure, format::count};
use claude_mem_distill::{self, Retry, RunOptions};
use claude_mem_memory::store;

/// Retry failed requests, and distill everything pending
///
/// A request is parked when its response was unusable three times, when it timed out five times, or
/// when the provider rejected it. Requests that wait for a login or for credit are retried, too,
/// without further delay.
#[derive(Debug, Args)]
pub(crate) struct RetryParked {
    /// IDs of sessions or events; prefixes are enough [default: all]
    ids: Vec<String>,
    /// Retry all, which is the default
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// List parked requests, and send none
    #[arg(long)]
    list: bool,
    /// Print one JSON object, or one per request with `--list`
    #[arg(long)]
    json: bool,
}

impl RetryParked {
    /// Exits with code 1 if a request fails again.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        if self.list {
            return self.show(app);
        }
        let retry = Some(Retry { ids: self.ids });
        let options =
            RunOptions { wait_max: Duration::from_secs(120), retry, ..RunOptions::default() };
        let distilled = claude_mem_distill::distill(app, &options)?;
        report(app, &distilled, self.json)
    }

    fn show(self, app: &mut App) -> Result<(), Failure> {
        let store = store::read_whole(app)?;
        let retry = Retry { ids: self.ids };
        let parked = retry.parked(&store)?;
        if parked.is_empty() {
            app.output.say("no request is parked");
        }
        for turn in parked {
            let (session, number, events) = (&turn.content_session, turn.turn, turn.pending.len());
            let attempts = turn.pending.iter().map(|pending| pending.attempts).max().unwrap_or(0);
            if self.json {
                app.output.json(&serde_json::json!({
                    "session": session, "project": turn.project.label, "prompt_number": number,
                    "events": events, "attempts": attempts,
                }))?;
            } else {
                app.output.line(format_args!(
                    "{session} prompt {number}: {}, sent {}",
                    count(events, "event"),
                    count(attempts, "time")
                ))?;
            }
        }
        Ok(())
    }
}
