//! The memory of a rebuild.

use super::sample;
use crate::bench::{BenchResult, Figure, Row, Scratch, Settings, Verdict};
use claude_mem_log::{Log, Options as LogOptions};
use claude_mem_projections::{Options, rebuild as draw};
use std::{env, fs, io::Write as _, path::Path, process::Command};

const LIMIT_MB: f64 = 300.0;

pub(super) fn measure_memory(settings: Settings, scratch: &Scratch) -> BenchResult<Vec<Figure>> {
    let dir = scratch.place("memory-log");
    let events = sample::fill_sample(&dir, settings.size(1_000_000, 500))?;
    let database = scratch.place("memory.db");
    let output = Command::new(env::current_exe()?)
        .args(["bench", "--child", "fold", "rebuild"])
        .args([&dir, &database])
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [folded, anonymous, peak, millis] = numbers[..] else {
        return Err(format!("the rebuild printed {text:?}").into());
    };
    if folded != events {
        return Err(format!("{folded} events folded, of {events}").into());
    }
    let megabytes = |kilobytes: u64| kilobytes as f64 / 1024.0;
    let most = megabytes(peak);
    let values = vec![
        format!("{most:.0} MB"),
        format!("{:.0} MB", megabytes(anonymous)),
        format!("{:.1} s", millis as f64 / 1000.0),
        format!("{} MB", fs::metadata(&database)?.len() >> 20),
    ];
    fs::remove_dir_all(&dir)?;
    fs::remove_file(&database)?;
    Ok(vec![Figure {
        title: "Memory of a rebuild of 1 million events".into(),
        about: format!(
            "A process that folds {events} events, including replies. Its peak resident memory \
             (`VmHWM`, which includes mapped pages), and the largest anonymous memory seen after \
             a batch (`RssAnon`)."
        ),
        columns: vec!["peak", "of its own", "took", "database"],
        rows: vec![Row::new("rebuild", values)],
        verdict: Some(Verdict {
            target: format!("below {LIMIT_MB:.0} MB"),
            reached: format!("{most:.0} MB"),
            is_met: most < LIMIT_MB,
        }),
    }])
}

/// Rebuilds the database from the log, and prints the number of events, the peak memory and the
/// time.
pub(super) fn rebuild(log: &Path, database: &Path) -> BenchResult<()> {
    let log = Log::open(log, LogOptions::default())?;
    let mut anonymous = 0;
    let start = std::time::Instant::now();
    let folded = draw(database, &log, &Options::default(), |_| {
        anonymous = anonymous.max(kilobytes("RssAnon:"));
    })?;
    anonymous = anonymous.max(kilobytes("RssAnon:"));
    let (events, peak, millis) = (folded.events, kilobytes("VmHWM:"), start.elapsed().as_millis());
    Ok(writeln!(std::io::stdout(), "{events} {anonymous} {peak} {millis}")?)
}

fn kilobytes(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}
