//! Compaction of a gigabyte of log, compared with copying it.

use super::{
    Contestant, Figure, Group, Outcome, Row, Samples, Scratch, Settings, Verdict, contest, time,
};
use claude_mem_log::{
    Appender, Compactor, Id, Item, KeepAll, Log, Options, Packing, Record, SegmentInfo,
    SegmentState, maintain,
};
use std::{
    env, fmt::Write as _, fs, io::Write as _, path::Path, process::Command, sync::Mutex, thread,
};

pub(crate) const GROUP: Group = Group {
    name: "compact",
    about: "Rewriting complete segments: read, check, compress, hash, write, read again, sync.",
    figures: &[("speed", speed)],
};

/// The measurements that the figures share.
struct Measured {
    bytes: u64,
    bytes_after: u64,
    records: u64,
    samples: Vec<Samples>,
    megabytes: f64,
}

const LIMIT_MB: f64 = 100.0;
/// As in `claude-mem compact`.
const THREADS: usize = 3;
const TIME_US: u64 = 1_763_000_000_000_000;
/// Tool uses have 4 KB on average, as in the figures of hooks.
const LINES: u64 = 157;

fn speed(settings: &Settings, scratch: &Scratch) -> Outcome<Vec<Figure>> {
    let dir = scratch.place("compact-log");
    fill(&dir, settings.size(1 << 30, 4 << 20))?;
    let bytes: u64 = segments(&dir)?.iter().map(|info| info.bytes).sum();
    let records: u64 =
        segments(&dir)?.iter().flat_map(|info| &info.seal).map(|seal| seal.records).sum();
    let (copied, compacted) = (scratch.place("copied"), scratch.place("compacted"));
    let once = scratch.place("once");
    copy(&dir, &once)?;
    compact(&once)?;
    let mut contestants = vec![
        Contestant::new("cp -r and sync", || {
            let _ = fs::remove_dir_all(&copied);
            Ok(time(|| copy(&dir, &copied))?.0)
        }),
        Contestant::new("compaction", || {
            let _ = fs::remove_dir_all(&compacted);
            copy(&dir, &compacted)?;
            Ok(time(|| compact(&compacted))?.0)
        }),
        Contestant::new("copy of a compacted log", || {
            let _ = fs::remove_dir_all(&copied);
            Ok(time(|| copy(&once, &copied))?.0)
        }),
        Contestant::new("compaction of a compacted log", || {
            let _ = fs::remove_dir_all(&compacted);
            copy(&once, &compacted)?;
            Ok(time(|| compact(&compacted))?.0)
        }),
        Contestant::new("reading it", || Ok(time(|| read(&dir))?.0)),
        Contestant::new("reading it compacted", || Ok(time(|| read(&once))?.0)),
    ];
    let samples = contest(settings.size(5, 1), &mut contestants)?;
    drop(contestants);
    fs::remove_dir_all(&compacted)?;
    copy(&dir, &compacted)?;
    let bytes_after = segments(&once)?.iter().map(|info| info.bytes).sum();
    Ok(figures(&Measured { bytes, bytes_after, records, samples, megabytes: peak(&compacted)? }))
}

fn figures(measured: &Measured) -> Vec<Figure> {
    let Measured { bytes, bytes_after, records, ref samples, megabytes } = *measured;
    let seconds = |index: usize| samples[index].min().as_secs_f64();
    let ratio = seconds(0) / seconds(1);
    let row = |index: usize, name: &str| {
        let bytes = if index == 2 || index == 3 { bytes_after } else { bytes };
        let rate = bytes as f64 / seconds(index) / f64::from(1 << 20);
        Row::new(name, vec![format!("{:.2} s", seconds(index)), format!("{rate:.0} MB/s")])
    };
    let ratio_again = seconds(2) / seconds(3);
    vec![
        Figure {
            title: "Compacting a log against copying it".into(),
            about: format!(
                "{} MB of tool uses as JSON, as hooks record them, {} bytes each on average; {} \
                 MB afterwards.",
                bytes >> 20,
                bytes / records.max(1),
                bytes_after >> 20
            ),
            columns: vec!["best", "of what there was"],
            rows: vec![row(0, "cp -r and sync"), row(1, "compaction")],
            verdict: Some(Verdict {
                target: "at least half the speed of copying".into(),
                reached: format!("{ratio:.2}"),
                is_met: ratio >= 0.5,
            }),
        },
        Figure {
            title: "Compacting what is compressed already against copying it".into(),
            about: "The same log again, as after forgetting or for a merge: read, checked, \
                    hashed, written, read again and synced."
                .into(),
            columns: vec!["best", "of what there was"],
            rows: vec![row(2, "cp -r and sync"), row(3, "compaction")],
            verdict: Some(Verdict {
                target: "at least half the speed of copying".into(),
                reached: format!("{ratio_again:.2}"),
                is_met: ratio_again >= 0.5,
            }),
        },
        Figure {
            title: "Reading a compacted log".into(),
            about: format!(
                "Every record, checked and unpacked, as a rebuild reads them: {:.1} of the time \
                 of reading the log as it was written. No limit is set.",
                seconds(5) / seconds(4)
            ),
            columns: vec!["best", "of what there was"],
            rows: vec![row(4, "as it was written"), row(5, "compacted")],
            verdict: None,
        },
        Figure {
            title: "Memory of a compaction".into(),
            about: "Peak memory of a process that compacts that log (`VmHWM`).".into(),
            columns: vec!["most"],
            rows: vec![Row::new("compaction", vec![format!("{megabytes:.1} MB")])],
            verdict: Some(Verdict {
                target: "below 100 MB".into(),
                reached: format!("{megabytes:.1} MB"),
                is_met: megabytes < LIMIT_MB,
            }),
        },
    ]
}

/// Tool uses of some kilobytes, similar but not equal, up to this many bytes.
fn fill(dir: &Path, bytes: u64) -> Outcome<()> {
    let mut appender = Appender::open(dir, Options::default())?;
    let (mut written, mut number) = (0, 0_u64);
    while written < bytes {
        let payload = tool_use(number);
        let id = Id::new(TIME_US + number * 1000, number << 2);
        appender.append(&Record {
            id,
            kind: 3,
            schema: 1,
            codec: 1,
            payload: payload.as_bytes(),
        })?;
        written += payload.len() as u64;
        number += 1;
    }
    appender.sync()?;
    claude_mem_log::roll(dir, &Options::default())?;
    maintain(dir, &Options::default())?;
    Ok(())
}

fn tool_use(number: u64) -> String {
    let mut text =
        format!("{{\"file_path\":\"/home/me/project/src/part_{}.rs\",\"content\":\"", number % 97);
    for line in 0..(number * 7 % LINES + 4) {
        let value = (number ^ line).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let _ = write!(text, "    let value_{line} = compute({value:x}, {line});\\n");
    }
    text + "\"}"
}

fn segments(dir: &Path) -> Outcome<Vec<SegmentInfo>> {
    let mut segments = Log::open(dir, Options::default())?.segments()?;
    segments.retain(|info| info.state == SegmentState::Sealed);
    Ok(segments)
}

fn copy(from: &Path, to: &Path) -> Outcome<()> {
    for command in
        [Command::new("cp").arg("-r").arg(from).arg(to), Command::new("sync").arg("-f").arg(to)]
    {
        if !command.status()?.success() {
            return Err(format!("{command:?} failed").into());
        }
    }
    Ok(())
}

fn compact(dir: &Path) -> Outcome<()> {
    let compactor = Compactor::begin(dir, &Options::default(), Packing::default())?;
    let compactor = compactor.ok_or("another process compacts it")?;
    let waiting = Mutex::new(segments(dir)?.into_iter());
    let next = || waiting.lock().map(|mut waiting| waiting.next());
    thread::scope(|scope| {
        let work = || -> Result<(), String> {
            while let Some(info) = next().map_err(|error| error.to_string())? {
                let done = compactor.rewrite(&[info], &mut KeepAll);
                done.map_err(|error| error.to_string())?.ok_or("it is damaged")?;
            }
            Ok(())
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(())
    })
}

fn read(dir: &Path) -> Outcome<()> {
    let mut reader = Log::open(dir, Options::default())?.read_from_start();
    while let Some(item) = reader.next()? {
        let Item::Record(_) = item else { return Err("it is damaged".into()) };
    }
    Ok(())
}

/// The peak memory of a child process, in megabytes.
fn peak(dir: &Path) -> Outcome<f64> {
    let output = Command::new(env::current_exe()?)
        .args(["bench", "--child", "compact"])
        .arg(dir)
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let kilobytes: f64 = text.trim().parse().map_err(|_| format!("the child printed {text:?}"))?;
    Ok(kilobytes / 1024.0)
}

/// Compacts the log in `dir`, and prints its peak memory.
pub(super) fn child(words: &[&str]) -> Outcome<()> {
    let [dir] = words else { return Err("compact DIR".into()) };
    compact(Path::new(dir))?;
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).ok_or("no such line")?;
    let kilobytes = line.split_whitespace().nth(1).ok_or("no number")?;
    Ok(writeln!(std::io::stdout(), "{kilobytes}")?)
}
