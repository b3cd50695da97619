//! Opening the log, appending one record and closing it, as every hook does.

use super::{
    sample::{self, Noise, Order},
    sqlite,
};
use crate::bench::{
    BenchResult, Contestant, Figure, Samples, Scratch, Settings, Verdict, contest, report, time,
};
use claude_mem_log::{Appender, Id};
use std::{path::Path, time::Duration};

pub(super) fn measure_append(settings: Settings, scratch: &Scratch) -> BenchResult<Vec<Figure>> {
    let place = |name: &str| scratch.place(&format!("append-{name}"));
    let (some, empty, large) = (place("some"), place("empty"), place("large"));
    let (database, kept) = (place("database.sqlite"), place("kept.sqlite"));
    let records_some = settings.size(10_000, 100);
    let records_large = settings.size(1 << 20, 1000);
    sample::fill_sample(&some, records_some, Order::Rising)?;
    sample::fill_sample(&large, records_large, Order::Rising)?;
    sqlite::fill_sqlite(&database, records_some)?;
    sqlite::fill_sqlite(&kept, records_some)?;

    let payload = Noise::default().payload();
    let repeats = settings.size(100, 2) as u32;
    let ours = |name: &str, dir| {
        Contestant::new(name, {
            let payload = &payload;
            move || one_turn(repeats, |id| append_once(dir, id, payload))
        })
    };
    let theirs = |name: &str, path| {
        Contestant::new(name, {
            let payload = &payload;
            move || {
                one_turn(repeats / 10 + 1, |id| sqlite::append_once(path, *id.as_bytes(), payload))
            }
        })
    };
    // The last connection to close writes everything back, so one is kept open.
    let kept_open = sqlite::keep_open(&kept)?;
    let mut contestants = [
        ours("the log, 10,000 records", some.as_path()),
        ours("the log, empty at first", empty.as_path()),
        ours("the log, 1 GB", large.as_path()),
        theirs("SQLite, 10,000 records", database.as_path()),
        theirs("SQLite, and another connection stays open", kept.as_path()),
    ];
    // The first turn creates the files.
    contest(1, &mut contestants)?;
    let samples = contest(settings.size(60, 2), &mut contestants)?;
    drop(contestants);
    drop(kept_open);
    std::fs::remove_dir_all(&large)?;
    Ok(vec![against_sqlite(&samples), flatness(&samples)])
}

/// The time of one repetition.
fn one_turn(repeats: u32, mut work: impl FnMut(Id) -> BenchResult<()>) -> BenchResult<Duration> {
    let ids: Vec<Id> = (0..repeats).map(|number| Id::random(u64::from(number))).collect();
    let (taken, ()) = time(|| ids.into_iter().try_for_each(&mut work))?;
    Ok(taken / repeats)
}

fn append_once(dir: &Path, id: Id, payload: &[u8]) -> BenchResult<()> {
    let mut appender = Appender::open(dir, sample::options())?;
    appender.append(&sample::record(id, payload))?;
    Ok(())
}

fn against_sqlite(samples: &[Samples]) -> Figure {
    let (ours, sqlite) = (&samples[0], &samples[3]);
    let (min, median) = (sqlite.times_min(ours), sqlite.times_median(ours));
    Figure {
        title: "One record by a new appender, against SQLite".into(),
        about:
            "Open, append 1 KB, close, no sync; SQLite: open, insert, close (WAL, `synchronous = \
                NORMAL`). A turn is 100 appends of the log or 11 of SQLite; the times are for \
                        one."
                .into(),
        columns: report::TIMES.to_vec(),
        rows: report::against_first(samples),
        verdict: Some(Verdict {
            target: "at most 1/100 of SQLite's time".into(),
            reached: format!("1/{min:.0} (median 1/{median:.0})"),
            is_met: min >= 100.0,
        }),
    }
}

fn flatness(samples: &[Samples]) -> Figure {
    let sizes = &samples[..3];
    let spread = |of: fn(&Samples) -> Duration| {
        let times = || sizes.iter().map(|one| of(one).as_secs_f64());
        times().fold(f64::MIN, f64::max) / times().fold(f64::MAX, f64::min)
    };
    let (min, median) = (spread(Samples::min), spread(Samples::median));
    Figure {
        title: "The same at any size".into(),
        about: "The log's turns from above: an empty log, 10,000 records, 1 GB in 1 KB records."
            .into(),
        columns: report::TIMES.to_vec(),
        rows: report::against_first(sizes),
        verdict: Some(Verdict {
            target: "within 15 % from empty to 1 GB".into(),
            reached: format!(
                "{:.1} % (median {:.1} %)",
                (min - 1.0) * 100.0,
                (median - 1.0) * 100.0
            ),
            is_met: min <= 1.15,
        }),
    }
}
