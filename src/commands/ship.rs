//! `claude-mem ship`: back up the log.

use std::{pin::pin, time::Duration};

use clap::Args;
use serde_json::json;

use super::verify;
use claude_mem_core::{
    app::App,
    failure::Failure,
    format::{bytes, count},
    os,
    settings::{keep, table::SHIP_TO},
};
pub(crate) use claude_mem_sync::ship::runtime;
use claude_mem_sync::ship::{self, Shipped, Shipper, remote_head::Head};

/// Back up the log to a directory or bucket
///
/// Uploads new events, and deletes what was forgotten here. The backup is a complete log at all
/// times; if interrupted, the next run continues. With a key (`claude-mem remote key new`) the backup is
/// encrypted.
#[derive(Debug, Args)]
pub(crate) struct Ship {
    /// A directory, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or `az://CONTAINER/PREFIX` [default:
    /// the setting `CLAUDE_MEM_SHIP_TO`]
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// Save the place: from now on the worker ships there within a second
    #[arg(long, requires = "to")]
    save: bool,
    /// Keep shipping new events until stopped
    #[arg(long)]
    follow: bool,
    /// With `--follow`: how often to check for new events
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 400)]
    every: u64,
    /// Print one JSON object per upload
    #[arg(long)]
    json: bool,
}

impl Ship {
    /// Whether it runs until interrupted.
    pub(crate) fn is_endless(&self) -> bool {
        self.follow
    }

    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let place = place(app, "--to", self.to.as_deref())?;
        let mut shipper =
            Shipper::open(&place, &app.paths, &app.settings, &app.environment, app.clock)?;
        if self.save {
            keep(&app.paths, &SHIP_TO, Some(&place))?;
        }
        let runtime = runtime()?;
        if self.follow {
            return runtime.block_on(self.go_on(app, &mut shipper));
        }
        let result = runtime.block_on(shipper.ship());
        let damage = verify::list_damage(app, &app.paths.log())?;
        match (result, damage) {
            (Ok(done), damage) => {
                self.print_result(app, &shipper, &done, true)?;
                damage.map_or(Ok(()), |damage| {
                    Err(damage.meaning(
                    "everything was shipped as it is; what the backup had before is intact there",
                ))
                })
            }
            // The damage is the difference.
            (Err(error), Some(damage)) if error.is_other_history() => Err(damage
                .meaning(format!("nothing was shipped: {error}"))
                .remedy("repair it with `claude-mem verify --remote --repair`, then ship again")),
            (Err(error), _) => Err(error.into()),
        }
    }

    /// Stops on a signal, even during an upload. The default action would do, but the first process
    /// of a container has none: it must handle signals itself.
    async fn go_on(&self, app: &mut App, shipper: &mut Shipper) -> Result<(), Failure> {
        let termination = os::termination();
        let termination = termination
            .map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))?;
        let mut termination = pin!(termination);
        let mut backoff = ship::Backoff::default();
        let mut pause = Duration::ZERO;
        loop {
            let turn = async {
                tokio::time::sleep(pause).await;
                shipper.ship().await
            };
            let turn = tokio::select! {
                () = &mut termination => return Ok(()),
                turn = turn => turn,
            };
            pause = match turn {
                Ok(done) => {
                    if backoff.succeeded() {
                        app.output
                            .say(format_args!("{} is reachable again", shipper.remote().place()));
                    }
                    self.print_result(app, shipper, &done, false)?;
                    Duration::from_millis(self.every)
                }
                Err(error) if error.is_transient() => {
                    if backoff.is_first() {
                        app.output.say(format_args!("warning: {error}; retrying"));
                    }
                    backoff.failed()
                }
                Err(error) => return Err(error.into()),
            };
        }
    }

    fn print_result(
        &self,
        app: &mut App,
        shipper: &Shipper,
        done: &Shipped,
        is_nothing_reported: bool,
    ) -> Result<(), Failure> {
        if let Some(why) = &done.undeleted {
            app.output.say(format_args!(
                "warning: cannot delete unneeded objects from the backup: {why}"
            ));
        }
        if done.is_refilled {
            app.output.say(format_args!("warning: {}", ship::REFILLED));
        }
        let is_nothing = done.objects == 0 && done.deleted == 0;
        if is_nothing && !is_nothing_reported {
            return Ok(());
        }
        let place = shipper.remote().place();
        let head = shipper.head();
        if self.json {
            return app.output.json(&json!({
                "place": place,
                "host": head.map(|head| head.host.to_string()),
                "entry": head.map(|head| head.number),
                "hash": head.map(|head| head.hash.to_string()),
                "log_bytes": head.map_or(0, Head::bytes),
                "new_log_bytes": done.log_bytes,
                "put_bytes": done.put_bytes,
                "objects": done.objects,
                "deleted": done.deleted,
                "is_refilled": done.is_refilled,
                "is_encrypted": shipper.remote().key().is_some(),
            }));
        }
        let Some(head) = head else {
            return app.output.line("nothing to ship: no events are recorded yet");
        };
        let total = bytes(head.bytes());
        let what = match done.objects {
            0 => format!("already up to date; {total} of log"),
            objects => {
                let of = match done.log_bytes == head.bytes() {
                    true => String::new(),
                    false => format!(" of {total}"),
                };
                format!(
                    "{}{of} of log shipped in {} ({})",
                    bytes(done.log_bytes),
                    count(objects as usize, "object"),
                    bytes(done.put_bytes)
                )
            }
        };
        app.output.line(format_args!("{place}: {what}, entry {}", entry(head)))
    }
}

/// The state of a remote: the number of its newest entry, and a prefix of its hash.
pub(super) fn entry(head: &Head) -> String {
    format!("{} ({})", head.number, &head.hash.to_string()[..12])
}

/// The place passed with this option, or the one in the settings.
pub(super) fn place(app: &App, option: &str, given: Option<&str>) -> Result<String, Failure> {
    match given.map_or_else(|| app.settings.get(&SHIP_TO), str::to_owned) {
        place if place.is_empty() => Err(Failure::usage("no backup location is configured")
            .remedy(format!(
                "pass `{option} URL`, or save it with `claude-mem settings set SHIP_TO URL`"
            ))),
        // The saved place is used from any directory, so it must be absolute.
        place if !place.contains("://") && !place.starts_with(['/', '~']) => {
            Ok(std::path::absolute(&place)
                .map_or(place, |absolute| absolute.to_string_lossy().into_owned()))
        }
        place => Ok(place),
    }
}
