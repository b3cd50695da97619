//! `claude-mem pull`: what other machines remember.

use clap::Args;
use serde_json::json;

use super::ship;
use claude_mem_core::{app::App, failure::Failure, format::count};
use claude_mem_memory::store;
use claude_mem_sync::{
    pull,
    ship::remote::{Purpose, Remote},
};

/// Bring what other machines recorded
///
/// Every machine that ships to the same place has a log of its own there. This one's memory then holds theirs
/// as well: search, timeline and context find it, the same repository is one project everywhere, and what is
/// forgotten on one machine is forgotten on all. Every byte is checked; a copy that was fetched before is left as
/// it is if the remote is not what it was. The worker pulls by itself if `CLAUDE_MEM_PULL` says so.
#[derive(Debug, Args)]
pub(crate) struct Pull {
    /// Where the machines ship to [default: the setting `CLAUDE_MEM_SHIP_TO`]
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// Print one JSON object per machine
    #[arg(long)]
    json: bool,
}

impl Pull {
    /// Fetches and folds. Ends with code 1 if a machine's log could not be had.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let place = ship::place(app, "--from", self.from.as_deref())?;
        let remote =
            Remote::open(&place, Purpose::Read, &app.paths, &app.settings, &app.environment)?;
        let outcome = ship::runtime()?.block_on(pull::pull(&remote, &app.paths))?;
        store::open_whole(app)?;
        claude_mem_core::worker_process::wake(&app.paths.data);
        self.tell(app, &outcome)?;
        match outcome.failed.into_iter().next() {
            None => Ok(()),
            Some((name, error)) => {
                let failure = Failure::from(error);
                Err(failure.meaning(format!("what was pulled of {name} before is as it was")))
            }
        }
    }

    fn tell(&self, app: &mut App, outcome: &pull::Outcome) -> Result<(), Failure> {
        for pulled in &outcome.pulled {
            let pull::Pulled { host, name, entry, bytes } = pulled;
            if self.json {
                let host = host.to_string();
                app.output.json(
                    &json!({"host": host, "name": name, "entry": entry, "new_bytes": bytes}),
                )?;
                continue;
            }
            match bytes {
                0 => app.output.line(format_args!("{name}: nothing new"))?,
                bytes => app.output.line(format_args!("{name}: {bytes} bytes of log"))?,
            }
        }
        for (name, error) in &outcome.failed {
            app.output.say(format_args!("warning: {name}: {error}"));
        }
        if !self.json && outcome.pulled.is_empty() && outcome.failed.is_empty() {
            app.output.line("no other machine ships there")?;
        }
        if outcome.failed.len() > 1 {
            let machines = count(outcome.failed.len(), "machine");
            app.output.say(format_args!("of {machines} nothing could be taken over"));
        }
        Ok(())
    }
}
