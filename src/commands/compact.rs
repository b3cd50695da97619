//! `claude-mem compact`: shrink the log and the database.

use clap::Args;
use serde_json::json;

use super::verify;
use claude_mem_core::{app::App, failure::Failure, format, progress::Progress, time_arg::When};
use claude_mem_maintenance::compact::{self, Options, Outcome};

/// Shrink the log and the database
///
/// Permanently removes forgotten text, responses that a later `replay` superseded, uses of tools
/// that are no longer recorded, and torn writes. Compresses the rest, merges small files, and
/// vacuums the database. Memories keep their IDs. Hooks, the worker and readers can keep running.
/// If interrupted, the next run finishes it.
///
/// Afterwards `claude-mem forget --undo` cannot restore what was forgotten before.
#[derive(Debug, Args)]
pub(crate) struct Compact {
    /// Estimate the result, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Also drop inputs and outputs of distilled tool uses before this time, such as `90d`; a
    /// digest is kept, and `replay` cannot distill them again. Those below 256 bytes are kept
    #[arg(long, value_name = "WHEN")]
    raw_older_than: Option<When>,
    /// Keep responses that a later `replay` superseded, so that you can go back to them without new
    /// requests
    #[arg(long)]
    keep_superseded: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Compact {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let raw_before_us = match &self.raw_older_than {
            Some(when) => Some(when.start(app.clock.now()).as_microsecond().cast_unsigned()),
            None => claude_mem_maintenance::retention::raw_cutoff(app)?,
        };
        let options = Options {
            is_dry_run: self.dry_run,
            is_only_forgotten: false,
            keeps_superseded: self.keep_superseded,
            raw_before_us,
        };
        let outcome = {
            let progress = Progress::items("compacting", PERCENT).with_lines();
            compact::run(app, &options, |done, total| {
                progress.show(done * PERCENT as u64 / total.max(1), "%");
            })?
        };
        if self.json {
            app.output.json(&report(&outcome, self.dry_run))?;
        } else {
            print_report(app, &outcome, &options)?;
        }
        check(&outcome)?;
        match verify::list_damage(app, &app.paths.log())? {
            None => Ok(()),
            Some(damage) => Err(damage.meaning(match outcome.left.as_slice() {
                [] => "the rest was compacted".into(),
                left => format!("the rest was compacted; not the damaged segments {left:x?}"),
            })),
        }
    }
}

const PERCENT: usize = 100;

fn report(outcome: &Outcome, is_dry_run: bool) -> serde_json::Value {
    let Outcome { log_bytes, files, erased, dropped_bytes, left, memory, purged_bytes, .. } =
        outcome;
    json!({
        "dry_run": is_dry_run,
        "log": {"bytes_before": log_bytes.0, "bytes_after": log_bytes.1,
            "files_before": files.0, "files_after": files.1},
        "erased_events": erased,
        "dropped_bytes": dropped_bytes,
        "left_segments": left,
        "database": {"bytes_before": memory.bytes_before, "bytes_after": memory.bytes_after},
        "purged_bytes": purged_bytes,
    })
}

fn print_report(app: &mut App, outcome: &Outcome, options: &Options) -> Result<(), Failure> {
    let is_dry_run = options.is_dry_run;
    let small = match options.raw_before_us {
        Some(_) => "; inputs and outputs below 256 bytes are kept",
        None => "",
    };
    let Outcome { log_bytes, files, erased, dropped_bytes, memory, purged_bytes, .. } = outcome;
    let would = if is_dry_run { "would be " } else { "" };
    let (before, after) = (format::bytes(log_bytes.0), format::bytes(log_bytes.1));
    app.output.line(format_args!(
        "log       {before} in {} → {would}{after} in {}",
        format::count(files.0 as u64, "file"),
        format::count(files.1 as u64, "file")
    ))?;
    let erased = format::count(*erased, "event");
    let torn = match dropped_bytes {
        0 => String::new(),
        bytes => format!(", {} of torn writes", format::bytes(*bytes)),
    };
    app.output.line(format_args!("removed   text of {erased}{torn}{small}"))?;
    if !is_dry_run {
        let (before, after) =
            (format::bytes(memory.bytes_before), format::bytes(memory.bytes_after));
        app.output.line(format_args!("database  {before} → {after}"))?;
        if *purged_bytes > 0 {
            let purged = format::bytes(*purged_bytes);
            app.output.line(format_args!("leftovers {purged} removed"))?;
        }
    }
    Ok(())
}

/// Fails if something could not be removed.
pub(super) fn check(outcome: &Outcome) -> Result<(), Failure> {
    if outcome.is_forgotten_left {
        return Err(Failure::new(format!(
            "forgotten events are in damaged segments: {:x?}",
            outcome.left
        ))
        .meaning("everything else that was forgotten is removed")
        .remedy(
            "repair them with `claude-mem verify --repair`, then run `claude-mem compact` again",
        ));
    }
    if outcome.memory.is_log_in_use {
        return Err(Failure::new("memory.db was in use the whole time")
            .meaning("the log is compacted, but old pages are still in memory.db-wal")
            .remedy("run `claude-mem compact` again when no other program reads it"));
    }
    Ok(())
}
