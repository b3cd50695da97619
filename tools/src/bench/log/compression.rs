//! From which size, and at which level, compressing a payload pays off.
//!
//! A hook is a new process that compresses once, so the first call in a process counts, including
//! the memory that zstd allocates. It is measured in child processes.

use super::peers;
use crate::bench::{Figure, Outcome, Row, Samples, Scratch, Settings, report, time};
use std::{env, fs, io::Write as _, path::Path, process::Command, time::Duration};

const SIZES: [usize; 11] = [
    256,
    512,
    1 << 10,
    2 << 10,
    4 << 10,
    8 << 10,
    16 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
];
const LEVELS: [i32; 4] = [-5, -1, 1, 3];

/// Sample code that tools read and write: ours.
const SOURCE: [&str; 4] = [
    include_str!("../../../../log/src/format/mod.rs"),
    include_str!("../../../../log/src/read/reader.rs"),
    include_str!("../../../../log/src/write/writer.rs"),
    include_str!("../../../../log/src/read/segment.rs"),
];

pub(super) fn measure(settings: &Settings, scratch: &Scratch) -> Outcome<Vec<Figure>> {
    let corpus = corpus(settings.samples.as_deref())?;
    let rounds = settings.size(15, 1);
    let sizes = if settings.quick { &SIZES[..2] } else { &SIZES[..] };
    let mut rows = Vec::new();
    for size in sizes.iter().filter(|size| **size <= corpus.len()) {
        let samples = slices(&corpus, *size);
        for level in LEVELS {
            let saved = saved(&samples, level)?;
            let file = scratch.place("compression-sample");
            let mut times = Vec::new();
            for round in 0..rounds {
                fs::write(&file, samples[round as usize % samples.len()])?;
                times.push(first_call(level, &file)?);
            }
            let first = Samples::new(String::new(), times);
            let again = again(&samples, level, rounds)?;
            let per_kilobyte = first.min().as_secs_f64() * 1e6 / (saved.max(1.0) / 1024.0);
            let values = vec![
                level.to_string(),
                format!("{:.0} %", 100.0 * saved / *size as f64),
                report::show(first.min()),
                report::show(first.median()),
                report::show(again.min()),
                if saved < 1.0 { "–".into() } else { format!("{per_kilobyte:.1} µs") },
            ];
            rows.push(Row::new(format!("{size} B"), values));
        }
    }
    Ok(vec![Figure {
        title: "Compressing payloads".into(),
        about: format!(
            "zstd over pieces of {}. `First` is the first call in a new process, as in a hook; \
             `again` is with everything warm but a new context.",
            match settings.samples {
                Some(_) =>
                    "hook input: JSON with source code in it, and the files given as samples",
                None => "hook input: JSON with source code in it",
            }
        ),
        columns: vec![
            "level",
            "saved",
            "first, fastest",
            "first, median",
            "again",
            "first, per KB saved",
        ],
        rows,
        verdict: None,
    }])
}

/// Tool inputs and outputs as JSON strings, and whole files of the samples.
fn corpus(samples: Option<&Path>) -> Outcome<Vec<u8>> {
    let mut corpus = Vec::new();
    for source in SOURCE {
        let input = serde_json::json!({
            "session_id": "7e0d2a55-6a0a-4c3b-9f0e-0a7f3f1f5f11",
            "hook_event_name": "PostToolUse",
            "tool_name": "Read",
            "tool_input": {"file_path": "/home/user/project/src/format.rs"},
            "tool_response": {"type": "text", "file": {"content": source, "numLines": source.lines().count()}},
        });
        corpus.extend(serde_json::to_vec(&input)?);
    }
    if let Some(dir) = samples {
        let mut paths =
            fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<Outcome<Vec<_>>>()?;
        paths.sort();
        for path in paths.iter().filter(|path| path.is_file()) {
            corpus.extend(fs::read(path)?);
        }
    }
    Ok(corpus)
}

/// Up to eight pieces of one size, spread over the corpus.
fn slices(corpus: &[u8], size: usize) -> Vec<&[u8]> {
    let count = (corpus.len() / size).clamp(1, 8);
    let step = corpus.len() / count;
    (0..count).map(|index| &corpus[index * step..index * step + size]).collect()
}

/// Bytes saved by compressing a piece, on average.
fn saved(samples: &[&[u8]], level: i32) -> Outcome<f64> {
    let mut saved = 0.0;
    for sample in samples {
        let len = zstd::bulk::compress(sample, level)?.len();
        saved += sample.len().saturating_sub(len) as f64;
    }
    Ok(saved / samples.len() as f64)
}

fn again(samples: &[&[u8]], level: i32, rounds: u64) -> Outcome<Samples> {
    let mut times = Vec::new();
    for round in 0..rounds.max(20) as usize {
        let sample = samples[round % samples.len()];
        times.push(time(|| Ok(zstd::bulk::compress(sample, level)?))?.0);
    }
    Ok(Samples::new(String::new(), times))
}

fn first_call(level: i32, file: &Path) -> Outcome<Duration> {
    let mut command = Command::new(env::current_exe()?);
    // With an equals sign, because a level may look like a flag.
    command.args(["bench", "--child", "compress"]).arg(format!("={level}")).arg(file);
    let text = peers::check(command.output()?)?;
    Ok(Duration::from_nanos(text.trim().parse()?))
}

/// Compresses a file, and prints the nanoseconds.
pub(super) fn compress_once(level: i32, file: &Path) -> Outcome<()> {
    let payload = fs::read(file)?;
    let (taken, _) = time(|| Ok(zstd::bulk::compress(&payload, level)?))?;
    Ok(writeln!(std::io::stdout(), "{}", taken.as_nanos())?)
}
