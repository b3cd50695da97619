//! The overhead of the log on disk.

use super::sample::{self, Order, PAYLOAD_BYTES};
use crate::bench::{BenchResult, Figure, Row, Scratch, Settings, Verdict};
use std::{fs, path::Path};

pub(super) fn measure_space(settings: Settings, scratch: &Scratch) -> BenchResult<Vec<Figure>> {
    let dir = scratch.place("space");
    let records = settings.size(100_000, 1000);
    sample::fill_sample(&dir, records, Order::Rising)?;
    let payload = records * PAYLOAD_BYTES as u64;
    let (segments, rest) = sizes(&dir)?;
    fs::remove_dir_all(&dir)?;
    let ratio = segments as f64 / payload as f64;
    let row = |name: &str, bytes: u64| {
        Row::new(name, vec![bytes.to_string(), format!("{:.4}", bytes as f64 / payload as f64)])
    };
    Ok(vec![Figure {
        title: "Bytes on disk".into(),
        about: format!("{records} records of 1 KB, segments sealed, index included."),
        columns: vec!["bytes", "per byte of payload"],
        rows: vec![
            row("payload", payload),
            row("segments", segments),
            row("once for each log: its id, the reserve for a full disk", rest),
        ],
        verdict: Some(Verdict {
            target: "at most 1.06 per byte of payload".into(),
            reached: format!("{ratio:.4}"),
            is_met: ratio <= 1.06,
        }),
    }])
}

/// Bytes in segments, and in other files.
fn sizes(dir: &Path) -> BenchResult<(u64, u64)> {
    let (mut segments, mut rest) = (0, 0);
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_segment =
            name == "active.log" || Path::new(&name).extension().is_some_and(|end| end == "seg");
        *if is_segment { &mut segments } else { &mut rest } += entry.metadata()?.len();
    }
    Ok((segments, rest))
}
