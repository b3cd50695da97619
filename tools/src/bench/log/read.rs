//! Reading the whole log with all checksums.

use super::{
    sample::{self, Order, PAYLOAD_BYTES},
    sqlite,
};
use crate::bench::{
    BenchResult, Contestant, Figure, Row, Samples, Scratch, Settings, Verdict, contest, report,
    time,
};
use claude_mem_log::{Item, Log, verify};
use std::{path::Path, time::Duration};

/// Our contestants.
const OURS: usize = 3;

pub(super) fn measure_read(settings: Settings, scratch: &Scratch) -> BenchResult<Vec<Figure>> {
    let records = settings.size(1 << 20, 2000);
    let place = |name: &str| scratch.place(&format!("read-{name}"));
    let (rising, random, database) = (place("rising"), place("random"), place("database.sqlite"));
    sample::fill_sample(&rising, records, Order::Rising)?;
    sample::fill_sample(&random, records, Order::Random)?;
    sqlite::fill_sqlite(&database, records)?;

    let whole = |taken: Duration, found: (u64, u64)| match found {
        (count, bytes) if count == records && bytes == records * PAYLOAD_BYTES as u64 => Ok(taken),
        found => Err(format!("{found:?} records and bytes, of {records}").into()),
    };
    let mut contestants = [
        Contestant::new("the log", || {
            let (taken, found) = time(|| read(&rising))?;
            whole(taken, found)
        }),
        Contestant::new("the log, ids in random order", || {
            let (taken, found) = time(|| read(&random))?;
            whole(taken, found)
        }),
        Contestant::new("the log, `verify` (SHA-256 of all seals)", || {
            let (taken, report) = time(|| Ok(verify(&rising, &sample::options())?))?;
            whole(taken, (report.records(), records * PAYLOAD_BYTES as u64))
        }),
        Contestant::new("SQLite (reads only: it has no checksums)", || {
            let (taken, found) = time(|| sqlite::read(&database))?;
            whole(taken, found)
        }),
    ];
    let samples = contest(settings.size(15, 2), &mut contestants)?;
    drop(contestants);
    Ok(vec![against_sqlite(&samples), speed(&samples, records)])
}

fn read(dir: &Path) -> BenchResult<(u64, u64)> {
    let mut reader = Log::open(dir, sample::options())?.read_from_start();
    let (mut records, mut bytes) = (0, 0);
    while let Some(item) = reader.next()? {
        match item {
            Item::Record(entry) => {
                records += 1;
                bytes += entry.payload.len() as u64;
            }
            Item::Gap(gap) => return Err(gap.to_string().into()),
        }
    }
    Ok((records, bytes))
}

fn against_sqlite(samples: &[Samples]) -> Figure {
    let sqlite = &samples[OURS];
    let (min, median) = (sqlite.times_min(&samples[0]), sqlite.times_median(&samples[0]));
    Figure {
        title: "Verify and read 1 GB".into(),
        about: "Open, verify every checksum and return every payload of 1,048,576 records of 1 \
                KB, as a rebuild does. Another thread checks the rear of a segment while its \
                front is read. With other log engines: `once.md`."
            .into(),
        columns: report::TIMES.to_vec(),
        rows: report::against_first(samples),
        verdict: Some(Verdict {
            target: "at least 4 × faster than SQLite".into(),
            reached: format!("{min:.2} × (median {median:.2} ×)"),
            is_met: min >= 4.0,
        }),
    }
}

fn speed(samples: &[Samples], records: u64) -> Figure {
    let row = |one: &Samples| {
        let bytes = (records * PAYLOAD_BYTES as u64) as f64;
        let count = records as f64;
        let seconds = one.min().as_secs_f64();
        let values =
            vec![format!("{:.2}", bytes / seconds / 1e9), format!("{:.2}", count / seconds / 1e6)];
        Row::new(&one.name, values)
    };
    Figure {
        title: "Speed of a scan".into(),
        about: "The fastest turns from above.".into(),
        columns: vec!["GB/s of payload", "million records/s"],
        rows: samples[..OURS].iter().map(row).collect(),
        verdict: None,
    }
}
