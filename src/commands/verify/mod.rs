//! `claude-mem verify`: read everything, and say what is whole.

mod remote;

use std::{fs, path::PathBuf};

use clap::Args;
use claude_mem_events::Event;
use claude_mem_log::{Gap, GapReason, Options, Report, quarantine, verify};
use claude_mem_projections::Store;
use serde_json::{Value, json};

use claude_mem_core::{
    app::App,
    failure::Failure,
    format::{bytes, count},
};

/// Read everything that is stored, and say what is damaged
///
/// Checks every byte of the log against its checksums, seals and links, and the database against itself. What
/// is damaged is copied to `log/quarantine/`; nothing is changed where it is. Ends with code 1 if something is
/// lost. With `--remote` the same for what was shipped.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Also read everything that was shipped, and compare
    #[arg(long)]
    remote: bool,
    /// Where it was shipped to [default: the setting `CLAUDE_MEM_SHIP_TO`]
    #[arg(long, value_name = "URL", requires = "remote")]
    from: Option<String>,
    /// Mend what is damaged here from the remote, and what is damaged there from here
    #[arg(long, requires = "remote")]
    repair: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Verify {
    /// Reads, sets damaged bytes aside, and reports.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let dir = app.paths.log();
        let report = match fs::metadata(&dir) {
            Ok(_) => verify(&dir, &Options::default())?,
            // Before the first event there is nothing to be damaged.
            Err(_) => Report::default(),
        };
        let set_aside = set_aside(app, &report);
        let memory = damage_of_memory(app);
        let remote = match self.remote {
            true => Some(remote::look(app, self.from.as_deref(), &report, self.repair)?),
            false => None,
        };
        if self.json {
            let mut described = described(&report, &set_aside, &memory);
            if let Some(remote) = &remote {
                described["remote"] = remote.described();
            }
            app.output.json(&described)?;
        } else {
            tell(app, &report, &set_aside, &memory)?;
            if let Some(remote) = &remote {
                remote.tell(app)?;
            }
        }
        match remote {
            Some(remote) => remote.verdict(&report)?,
            None => verdict(&report)?,
        }
        verdict_of_memory(&memory)
    }
}

/// Copies every damaged stretch aside, as far as there are bytes left of it.
fn set_aside(app: &mut App, report: &Report) -> Vec<(Gap, Option<PathBuf>)> {
    let options = Options::default();
    let dir = app.paths.log();
    let mut all = Vec::new();
    for gap in report.gaps() {
        let is_bytes =
            gap.len > 0 && !matches!(gap.reason, GapReason::Truncated | GapReason::MissingSegment);
        let path = match is_bytes.then(|| quarantine(&dir, &options, gap)) {
            None => None,
            Some(Ok(path)) => Some(path),
            Some(Err(error)) => {
                app.output.say(format_args!("warning: {gap} cannot be set aside: {error}"));
                None
            }
        };
        all.push((*gap, path));
    }
    all
}

/// What the database says of itself; nothing if it is whole, or if there is none.
fn damage_of_memory(app: &App) -> Vec<String> {
    match Store::open_read_only(&app.paths.memory()) {
        Ok(None) => Vec::new(),
        Ok(Some(store)) => store.damage().unwrap_or_else(|error| vec![error.to_string()]),
        Err(error) => vec![error.to_string()],
    }
}

fn described(report: &Report, gaps: &[(Gap, Option<PathBuf>)], memory: &[String]) -> Value {
    let gap = |(gap, path): &(Gap, Option<PathBuf>)| {
        json!({
            "segment": gap.segment,
            "offset": gap.offset,
            "bytes": gap.len,
            "reason": gap.reason.describe(),
            "is_loss": gap.reason != GapReason::TornWrite,
            "id": gap.id.map(|id| id.to_string()),
            "kind": gap.kind.map(Event::name_of),
            "set_aside": path,
        })
    };
    let segment = |segment: &claude_mem_log::SegmentReport| {
        json!({
            "segment": segment.info.number,
            "path": segment.info.path,
            "bytes": segment.info.bytes,
            "records": segment.records,
            "is_sealed": segment.info.seal.is_some(),
            "damaged": segment.gaps.len(),
        })
    };
    json!({
        "is_damaged": report.is_damaged(),
        "records": report.records(),
        "bytes": report.bytes(),
        "segments": report.segments.iter().map(segment).collect::<Vec<_>>(),
        "damage": gaps.iter().map(gap).collect::<Vec<_>>(),
        "missing_segments": report.missing,
        "spilled_files": report.spilled,
        "memory": memory,
    })
}

fn tell(
    app: &mut App,
    report: &Report,
    gaps: &[(Gap, Option<PathBuf>)],
    memory: &[String],
) -> Result<(), Failure> {
    app.output.line(format_args!(
        "{} in {}, {}: read and checked",
        count(report.records(), "event"),
        count(report.segments.len(), "segment"),
        bytes(report.bytes())
    ))?;
    for number in &report.missing {
        app.output.line(format_args!("segment {number:016x} is missing"))?;
    }
    for (gap, path) in gaps {
        let aside = path.as_ref().map(|path| format!("; copied to {}", path.display()));
        app.output.line(format_args!("{gap}{}", aside.unwrap_or_default()))?;
    }
    for line in memory {
        app.output.line(format_args!("memory.db: {line}"))?;
    }
    Ok(())
}

fn verdict(report: &Report) -> Result<(), Failure> {
    if report.is_damaged() {
        let is_loss = |gap: &&Gap| gap.reason != GapReason::TornWrite;
        let places = report.gaps().filter(is_loss).count() + report.missing.len();
        let plural = if places == 1 { "" } else { "s" };
        return Err(Failure::new(format!("the log is damaged in {places} place{plural}"))
            .meaning("every other event can be read, and is")
            .remedy("if it was shipped, mend it with `claude-mem verify --remote --repair`"));
    }
    Ok(())
}

fn verdict_of_memory(memory: &[String]) -> Result<(), Failure> {
    if !memory.is_empty() {
        return Err(Failure::new("memory.db is damaged")
            .meaning("all it held is in the log")
            .remedy("rebuild it with `claude-mem replay`"));
    }
    Ok(())
}
