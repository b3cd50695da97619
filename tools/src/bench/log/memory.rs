//! The memory of a reader.

use super::sample::{self, Order, PAYLOAD_BYTES};
use crate::bench::{BenchResult, Figure, Row, Scratch, Settings, Verdict};
use claude_mem_log::Log;
use std::{env, fs, io::Write as _, path::Path, process::Command};

const LIMIT_MB: f64 = 64.0;

pub(super) fn measure_memory(settings: Settings, scratch: &Scratch) -> BenchResult<Vec<Figure>> {
    let dir = scratch.place("memory");
    let records = settings.size(10 << 20, 2000);
    sample::fill_sample(&dir, records, Order::Random)?;
    let mut command = Command::new(env::current_exe()?);
    let output = command.args(["bench", "--child", "read"]).arg(&dir).output()?;
    let text = String::from_utf8(output.stdout)?;
    fs::remove_dir_all(&dir)?;
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [found, anonymous, resident] = *numbers else {
        return Err(format!("the reader printed {text:?}").into());
    };
    if found != records {
        return Err(format!("{found} records read, of {records}").into());
    }
    let megabytes = |kilobytes: u64| kilobytes as f64 / 1024.0;
    let values = [anonymous, resident].map(|size| format!("{:.1} MB", megabytes(size))).to_vec();
    let most = megabytes(anonymous);
    let gigabytes = (records * PAYLOAD_BYTES as u64) as f64 / f64::from(1 << 30);
    Ok(vec![Figure {
        title: "Memory of a reader over 10 GB".into(),
        about: format!(
            "A process that reads {gigabytes:.1} GB of 1 KB records from the first to the last, \
             ids in random order, which is the worst case. The largest `RssAnon` in \
             `/proc/self/status`, read after every 1000."
        ),
        columns: vec!["beyond mapped pages", "with mapped pages"],
        rows: vec![Row::new("reader", values)],
        verdict: Some(Verdict {
            target: "below 64 MB beyond mapped pages".into(),
            reached: format!("{most:.1} MB"),
            is_met: most < LIMIT_MB,
        }),
    }])
}

/// Reads the log in `dir`, and prints the number of records and the peak memory.
pub(super) fn read(dir: &Path) -> BenchResult<()> {
    let mut reader = Log::open(dir, sample::options())?.read_from_start();
    let (mut records, mut anonymous, mut resident) = (0_u64, 0, 0);
    while reader.next()?.is_some() {
        records += 1;
        if records.is_multiple_of(1000) {
            let status = fs::read_to_string("/proc/self/status")?;
            anonymous = anonymous.max(kilobytes(&status, "RssAnon:")?);
            resident = resident.max(kilobytes(&status, "VmRSS:")?);
        }
    }
    Ok(writeln!(std::io::stdout(), "{records} {anonymous} {resident}")?)
}

fn kilobytes(status: &str, name: &str) -> BenchResult<u64> {
    let line = status.lines().find(|line| line.starts_with(name)).ok_or("no such line")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse()?)
}
