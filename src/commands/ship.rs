//! `claude-mem ship`: a copy of the log elsewhere.

use std::{pin::pin, time::Duration};

use clap::Args;
use serde_json::json;

use claude_mem_core::{
    app::App,
    failure::Failure,
    format::{bytes, count},
    os,
    settings::{keep, table::SHIP_TO},
};
use claude_mem_sync::ship::{self, Shipped, Shipper, remote_head::Head};

/// Copy the log to another place
///
/// Puts everything that was recorded and is not there yet into a directory or a bucket, and takes away what was
/// forgotten here. The place holds a complete log at any moment; stopped half-way, the next run goes on. With a
/// key (`claude-mem key new`), nobody who has only the place can read it.
#[derive(Debug, Args)]
pub(crate) struct Ship {
    /// A directory, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or `az://CONTAINER/PREFIX` [default: the setting
    /// `CLAUDE_MEM_SHIP_TO`]
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// Remember the place: the worker ships there from now on, at most a second behind
    #[arg(long, requires = "to")]
    save: bool,
    /// Go on shipping as things are recorded, until stopped
    #[arg(long)]
    follow: bool,
    /// With `--follow`: look for something new this often
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 400)]
    every: u64,
    /// Print one JSON object for each time something was shipped
    #[arg(long)]
    json: bool,
}

impl Ship {
    /// Ships once, or on and on.
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
        let done = runtime.block_on(shipper.once())?;
        self.tell(app, &shipper, &done, true)
    }

    /// Ends when told to, in the middle of a turn if need be. The system would see to that, but not for the first
    /// process of a container, which has to listen.
    async fn go_on(&self, app: &mut App, shipper: &mut Shipper) -> Result<(), Failure> {
        let told_to_end = os::told_to_end();
        let told_to_end = told_to_end
            .map_err(|error| Failure::new(format!("signals cannot be received: {error}")))?;
        let mut told_to_end = pin!(told_to_end);
        let mut backoff = ship::Backoff::default();
        let mut pause = Duration::ZERO;
        loop {
            let turn = async {
                tokio::time::sleep(pause).await;
                shipper.once().await
            };
            let turn = tokio::select! {
                () = &mut told_to_end => return Ok(()),
                turn = turn => turn,
            };
            pause = match turn {
                Ok(done) => {
                    if backoff.succeeded() {
                        app.output.say(format_args!("{} answers again", shipper.remote().place()));
                    }
                    self.tell(app, shipper, &done, false)?;
                    Duration::from_millis(self.every)
                }
                Err(error) if error.is_passing() => {
                    if backoff.is_first() {
                        app.output.say(format_args!("warning: {error}; trying again"));
                    }
                    backoff.failed()
                }
                Err(error) => return Err(error.into()),
            };
        }
    }

    fn tell(
        &self,
        app: &mut App,
        shipper: &Shipper,
        done: &Shipped,
        is_nothing_told: bool,
    ) -> Result<(), Failure> {
        if let Some(why) = &done.undeleted {
            app.output.say(format_args!(
                "warning: what is no longer part of the log could not be deleted there: {why}"
            ));
        }
        let is_nothing = done.objects == 0 && done.deleted == 0;
        if is_nothing && !is_nothing_told {
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
                "is_encrypted": shipper.remote().key().is_some(),
            }));
        }
        let Some(head) = head else {
            return app.output.line("nothing was recorded yet, so there is nothing to ship");
        };
        let what = match done.objects {
            0 => "everything was there already".to_owned(),
            objects => format!(
                "{} of log shipped in {} ({})",
                bytes(done.log_bytes),
                count(objects as usize, "object"),
                bytes(done.put_bytes)
            ),
        };
        app.output.line(format_args!(
            "{place}: {what}; it holds {} of log, entry {}",
            bytes(head.bytes()),
            entry(head),
        ))
    }
}

/// Which state of a remote this is: the number of its newest entry, and enough of its hash to compare.
pub(super) fn entry(head: &Head) -> String {
    format!("{} ({})", head.number, &head.hash.to_string()[..12])
}

/// The place that was given by this option, or the one that is remembered.
pub(super) fn place(app: &App, option: &str, given: Option<&str>) -> Result<String, Failure> {
    match given.map_or_else(|| app.settings.get(&SHIP_TO), str::to_owned) {
        place if place.is_empty() => {
            Err(Failure::usage("it is not known where the copy of the log is").remedy(format!(
                "say where with `{option}`, or for good with `claude-mem settings set SHIP_TO URL`"
            )))
        }
        // Remembered, and used from anywhere, so it must not depend on where we stand.
        place if !place.contains("://") && !place.starts_with(['/', '~']) => {
            Ok(std::path::absolute(&place)
                .map_or(place, |absolute| absolute.to_string_lossy().into_owned()))
        }
        place => Ok(place),
    }
}

/// Where the asking is done.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("no runtime could be started: {error}")))
}
