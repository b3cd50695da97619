//! `claude-mem retry`: ask once more what was given up on.

use std::time::Duration;

use clap::Args;

use super::distill::report;
use claude_mem_core::{app::App, failure::Failure, format::count};
use claude_mem_distill::{self, Limits, Retry, RunOptions};
use claude_mem_memory::store;

/// Ask once more about what the agent failed at, and about all that waits
///
/// A question whose answers could not be read three times, which timed out five times, or which was refused as it
/// is, is parked until you retry it. What waits for a login or for credit is asked about, too, without waiting any longer.
#[derive(Debug, Args)]
pub(crate) struct RetryParked {
    /// Only these: ids of sessions or events, or the beginning of them [default: all]
    ids: Vec<String>,
    /// All of them, which is also what happens without ids
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Show what is parked, and send no request
    #[arg(long)]
    list: bool,
    /// Print one JSON object, or one per question with `--list`
    #[arg(long)]
    json: bool,
}

impl RetryParked {
    /// Ends with code 1 if something still cannot be answered.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        if self.list {
            return self.show(app);
        }
        let limits = Limits { age_max_us: None, ..Limits::default() };
        let retry = Some(Retry { ids: self.ids });
        let options = RunOptions { limits, wait_max: Duration::from_secs(120), retry };
        let distilled = claude_mem_distill::distill(app, &options)?;
        report(app, &distilled, self.json)
    }

    fn show(self, app: &mut App) -> Result<(), Failure> {
        let store = store::read_whole(app)?;
        let retry = Retry { ids: self.ids };
        for turn in retry.parked(&store)? {
            let (session, number, events) = (&turn.content_session, turn.turn, turn.pending.len());
            let attempts = turn.pending.iter().map(|pending| pending.attempts).max().unwrap_or(0);
            if self.json {
                app.output.json(&serde_json::json!({
                    "session": session, "project": turn.project.label, "prompt_number": number,
                    "events": events, "attempts": attempts,
                }))?;
            } else {
                app.output.line(format_args!(
                    "{session} prompt {number}: {}, asked {}",
                    count(events, "event"),
                    count(attempts, "time")
                ))?;
            }
        }
        Ok(())
    }
}
