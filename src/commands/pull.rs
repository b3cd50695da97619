//! `claude-mem remote pull`: fetch other machines' logs.

use clap::Args;
use serde_json::json;

use super::ship;
use claude_mem_core::{app::App, failure::Failure, format::count};
use claude_mem_memory::{semantic::erase_hidden, store};
use claude_mem_sync::{
    pull,
    ship::remote::{Purpose, Remote},
};

/// Fetch memories from your other machines
///
/// Every machine that ships to the same place has its own log there. After a pull, search, timeline
/// and context include their memories, a repository is one project on all machines, and what you
/// forget on one machine is forgotten on all. Every byte is checked; if the remote was rolled back,
/// the local copy stays unchanged. With `CLAUDE_MEM_PULL` the worker pulls automatically.
#[derive(Debug, Args)]
pub(crate) struct Pull {
    /// Backup location [default: the setting `CLAUDE_MEM_SHIP_TO`]
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// Trust everyone who can write to this location, from now on. Needed once, if it is shared and
    /// there is no key
    #[arg(long)]
    trust: bool,
    /// Print one JSON object per machine
    #[arg(long)]
    json: bool,
}

impl Pull {
    /// Exits with code 1 if a machine's log could not be fetched.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let place = ship::place(app, "--from", self.from.as_deref())?;
        let remote =
            Remote::open(&place, Purpose::Read, &app.paths, &app.settings, &app.environment)?;
        if self.trust {
            pull::trust(&remote, &app.paths)?;
        }
        let outcome = ship::runtime()?.block_on(pull::pull(&remote, &app.paths))?;
        let (store, _) = store::open_whole(app)?;
        // They may have forgotten something.
        erase_hidden(app, &store)?;
        claude_mem_core::worker_process::wake(&app.paths.data);
        self.print_result(app, &outcome)?;
        match outcome.failed.into_iter().next() {
            None => Ok(()),
            Some((name, error)) => {
                let failure = Failure::from(error);
                Err(failure.meaning(format!("the local copy of {name}'s log is unchanged")))
            }
        }
    }

    fn print_result(&self, app: &mut App, outcome: &pull::PullOutcome) -> Result<(), Failure> {
        for pulled in &outcome.pulled {
            let pull::PulledHost { host, name, entry, bytes } = pulled;
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
            app.output.line("no other machine ships to this place")?;
        }
        if outcome.failed.len() > 1 {
            let machines = count(outcome.failed.len(), "machine");
            app.output.say(format_args!("nothing could be fetched from {machines}"));
        }
        Ok(())
    }
}
