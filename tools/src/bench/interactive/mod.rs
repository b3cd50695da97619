//! The figures of what a person waits for: a key in the interactive search, a page of the viewer.

mod stats;
mod typing;

use std::{
    path::PathBuf,
    time::{Duration, SystemTime},
};

use claude_mem_tools::worker_process::command;

use super::{
    Figure, Group, Outcome, Row, Samples, Scratch, Settings, Verdict, binary,
    fold::sample::{self, Times},
    report::show,
};

pub(super) const GROUP: Group = Group {
    name: "interactive",
    about: "What a person waits for, in a large memory and in a small one. The memory is a year \
            of turns, each with a prompt, eight tool uses, a stop, and a response with two \
            observations and a summary.",
    figures: &[("typing", typing::measure), ("stats", stats::measure)],
};

/// Observations of a session of the sample, and its events.
const SESSION: (u64, u64) = (20, 112);
/// Embedding everything would take hours.
const WITHOUT_VECTORS: (&str, &str) = ("CLAUDE_MEM_SEMANTIC", "off");
const COLUMNS: &[&str] = &["p50", "p95", "longest", "× first, p50"];

/// The home directory of a year of work with this many observations.
fn home(scratch: &Scratch, observations: u64) -> Outcome<PathBuf> {
    const YEAR_US: u64 = 365 * 24 * 3600 * 1_000_000;
    let home = scratch.place(&format!("interactive-{observations}"));
    if home.exists() {
        return Ok(home);
    }
    let events = observations / SESSION.0 * SESSION.1;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_micros() as u64;
    let times = Times { first_us: now - YEAR_US, step_us: YEAR_US / events };
    sample::fill_over(&home.join(".claude-mem/log"), events, times)?;
    match command(&binary()?, &home, &["index"])
        .env(WITHOUT_VECTORS.0, WITHOUT_VECTORS.1)
        .status()?
    {
        status if status.success() => Ok(home),
        status => Err(format!("`index` ended with {status}").into()),
    }
}

/// A memory of this many observations, and a small one to compare with.
fn sizes(settings: &Settings) -> [u64; 2] {
    [settings.size(1000, 20), settings.size(100_000, 200)]
}

/// The times of a figure. The last ones count.
fn figure(title: &str, about: &str, samples: &[Samples], limit: Duration) -> Figure {
    let row = |one: &Samples| {
        let ratio = format!("{:.1}", one.times_median(&samples[0]));
        Row::new(&one.name, vec![show(one.median()), show(one.at(0.95)), show(one.max()), ratio])
    };
    let p95 = samples.last().map_or(Duration::MAX, |last| last.at(0.95));
    Figure {
        title: title.into(),
        about: about.into(),
        columns: COLUMNS.to_vec(),
        rows: samples.iter().map(row).collect(),
        verdict: Some(Verdict {
            target: format!("p95 below {}", show(limit)),
            reached: show(p95),
            is_met: p95 < limit,
        }),
    }
}
