//! Appends from many processes at once.

use super::{
    peers,
    sample::{self, Noise},
};
use crate::bench::{Contestant, Figure, Outcome, Row, Samples, Scratch, Settings, contest, time};
use claude_mem_log::{Appender, Id, Item, Log};
use std::{
    env, fs,
    io::{self, Read as _, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

const PROCESSES: u64 = 8;

pub(super) fn measure(settings: &Settings, scratch: &Scratch) -> Outcome<Vec<Figure>> {
    let dir = scratch.place("processes");
    let plain = settings.size(20_000, 20);
    let synced = settings.size(200, 3);
    let cases = [
        (1, plain, "no"),
        (PROCESSES, plain / PROCESSES, "no"),
        (1, synced, "each"),
        (PROCESSES, synced / PROCESSES + 1, "each"),
    ];
    let mut contestants: Vec<_> = cases
        .iter()
        .map(|(processes, records, sync)| {
            let dir = &dir;
            let sync_text = if *sync == "no" { "no sync" } else { "each synced" };
            let plural = if *processes == 1 { "process" } else { "processes" };
            Contestant::new(format!("{processes} {plural}, {sync_text}"), move || {
                append_at_once(dir, *processes, *records, sync)
            })
        })
        .collect();
    let samples = contest(settings.size(7, 1), &mut contestants)?;
    drop(contestants);
    let row = |(one, (processes, records, _)): (&Samples, &(u64, u64, &str))| {
        let rate = |taken: Duration| {
            format!("{:.1}", (processes * records) as f64 / taken.as_secs_f64() / 1e3)
        };
        Row::new(&one.name, vec![rate(one.min()), rate(one.median())])
    };
    Ok(vec![Figure {
        title: "Appending from many processes at once".into(),
        about: "Each process opens the log once and appends 1 KB records one by one; every record \
                is found afterwards."
            .into(),
        columns: vec!["thousand records/s, fastest", "median"],
        rows: samples.iter().zip(&cases).map(row).collect(),
        verdict: None,
    }])
}

/// From the moment all processes are ready to the end of the last one.
fn append_at_once(dir: &Path, processes: u64, records: u64, sync: &str) -> Outcome<Duration> {
    let mut children = Vec::new();
    for _ in 0..processes {
        let mut command = Command::new(env::current_exe()?);
        command.args(["bench", "--child", "append"]).arg(dir).arg(records.to_string()).arg(sync);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        children.push(pipes.spawn()?);
    }
    for child in &mut children {
        let out = child.stdout.as_mut().ok_or("no pipe")?;
        // It prints a line when it is ready. If it failed, that is found below.
        let _ = out.read(&mut [0])?;
    }
    let (taken, ()) = time(|| {
        for child in &mut children {
            drop(child.stdin.take());
        }
        children.iter_mut().try_for_each(|child| child.wait().map(|_| ())).map_err(Into::into)
    })?;
    children.into_iter().try_for_each(finish)?;
    let found = count(dir)?;
    fs::remove_dir_all(dir)?;
    if found == processes * records {
        Ok(taken)
    } else {
        Err(format!("{found} records found, of {}", processes * records).into())
    }
}

fn finish(child: Child) -> Outcome<()> {
    peers::check(child.wait_with_output()?).map(|_| ())
}

fn count(dir: &Path) -> Outcome<u64> {
    let mut reader = Log::open(dir, sample::options())?.read_from_start();
    let mut records = 0;
    while let Some(item) = reader.next()? {
        records += u64::from(matches!(item, Item::Record(_)));
    }
    Ok(records)
}

/// Prints a line when it is ready, waits until stdin ends, and appends.
pub(super) fn append(dir: &Path, records: u64, sync: &str) -> Outcome<()> {
    let mut appender = Appender::open(dir, sample::options())?;
    let payload = Noise::default().payload();
    let mut out = io::stdout();
    out.write_all(b".")?;
    out.flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    for number in 0..records {
        appender.append(&sample::record(Id::random(number), &payload))?;
        if sync == "each" {
            appender.sync()?;
        }
    }
    Ok(())
}
