//! `inspect ls`: lists the segments.

use super::{FrameOrGap, OpenedLog, Outcome, show_time, state_name};
use claude_mem_log::SegmentInfo;
use serde::Serialize;
use std::{io::Write, path::Path};

/// A segment, on one line.
#[derive(Debug, Serialize)]
struct Line {
    segment: u64,
    generation: u32,
    state: &'static str,
    bytes: u64,
    records: u64,
    first: Option<String>,
    last: Option<String>,
    file: String,
}

/// Lists the segments of the log in `dir`.
pub(crate) fn list(dir: &Path, json: bool, out: &mut impl Write) -> Outcome<()> {
    let inspected = OpenedLog::open(dir)?;
    if !json {
        writeln!(
            out,
            "{:>8} {:>3} {:<7} {:>11} {:>9}  {:<28} {:<28} file",
            "segment", "gen", "state", "bytes", "records", "earliest", "latest"
        )?;
    }
    for segment in &inspected.segments {
        let line = line(&inspected, segment)?;
        if json {
            writeln!(out, "{}", serde_json::to_string(&line)?)?;
            continue;
        }
        let Line { segment, generation, state, bytes, records, first, last, file } = line;
        let (first, last) = (first.unwrap_or("-".into()), last.unwrap_or("-".into()));
        writeln!(
            out,
            "{segment:>8} {generation:>3} {state:<7} {bytes:>11} {records:>9}  {first:<28} \
             {last:<28} {file}"
        )?;
    }
    Ok(())
}

/// From the seal if there is one; otherwise by reading the segment.
fn line(inspected: &OpenedLog, segment: &SegmentInfo) -> Outcome<Line> {
    let mut records = 0;
    let mut times: Option<(u64, u64)> = None;
    if let Some(seal) = &segment.seal {
        records = seal.records;
        times = (records > 0).then_some((seal.time_min_us, seal.time_max_us));
    } else {
        inspected.walk(segment, |_, met| {
            if let FrameOrGap::Record(header, _) = met {
                let time = header.id.time_us();
                let (first, last) = times.unwrap_or((time, time));
                times = Some((first.min(time), last.max(time)));
                records += 1;
            }
            Ok(())
        })?;
    }
    Ok(Line {
        segment: segment.number,
        generation: segment.generation,
        state: state_name(segment.state),
        bytes: segment.bytes,
        records,
        first: times.map(|(first, _)| show_time(first)),
        last: times.map(|(_, last)| show_time(last)),
        file: segment.path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
    })
}
