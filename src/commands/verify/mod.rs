//! `claude-mem verify`: check the log, the database and the backup.

mod remote;

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use claude_mem_events::Event;
use claude_mem_log::{Gap, GapReason, Log, Options, Report, quarantine, verify_with};
use claude_mem_projections::Store;
use serde_json::{Value, json};

use claude_mem_core::{
    app::App,
    failure::Failure,
    format::{bytes, count},
    progress::Progress,
};
use claude_mem_memory::semantic::{CheckedVectors, check_vectors, vectors_directory};

/// Check all stored data for damage
///
/// Checks every byte of the log against its checksums, seals and links, and the integrity of the
/// database. Embeds some memories again and compares their vectors. Damaged bytes are copied to
/// `log/quarantine/`; the originals stay unchanged. Exits with code 1 if an event is lost.
/// `--remote` checks the backup, too.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Also read the whole backup, and compare
    #[arg(long)]
    remote: bool,
    /// Backup location [default: the setting `CLAUDE_MEM_SHIP_TO`]
    #[arg(long, value_name = "URL", requires = "remote")]
    from: Option<String>,
    /// Repair the log from the backup, and the backup from the log
    #[arg(long, requires = "remote")]
    repair: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let dir = app.paths.log();
        let report = match fs::metadata(&dir) {
            Ok(_) => check_log(&dir)?,
            // Before the first event there is no log.
            Err(_) => Report::default(),
        };
        let quarantined = quarantine_damage(app, &report);
        let memory = damage_of_memory(app);
        let vectors = sampled_vectors(app);
        let remote = match self.remote {
            true => Some(remote::look(app, self.from.as_deref(), &report, self.repair)?),
            false => None,
        };
        if self.json {
            let mut object = to_json(&report, &quarantined, &memory);
            object["vectors"] = json!(vectors.as_ref().map(|found| {
                let wrong: Vec<String> = found.wrong.iter().map(ToString::to_string).collect();
                json!({"checked": found.checked, "wrong": wrong})
            }));
            if let Some(remote) = &remote {
                object["remote"] = remote.to_json();
            }
            app.output.json(&object)?;
        } else {
            print_report(app, &report, &quarantined, &memory)?;
            if let Some(found) = &vectors {
                let memories = count(found.checked, "memory");
                app.output
                    .line(format_args!("vectors of {memories}: computed again and compared"))?;
            }
            if let Some(remote) = &remote {
                remote.print_report(app)?;
            }
        }
        match remote {
            Some(remote) => remote.verdict(&report)?,
            None => verdict(&report)?,
        }
        verdict_of_memory(&memory)?;
        verdict_of_vectors(app, vectors.as_ref())
    }
}

/// Checks every byte of the log.
pub(super) fn check_log(dir: &Path) -> Result<Report, claude_mem_log::Error> {
    let segments = Log::open(dir, Options::default())?.segments()?;
    let total = segments.iter().map(|segment| segment.bytes).sum();
    let progress = Progress::bytes("checking", total);
    verify_with(dir, &Options::default(), |done| progress.show(done, ""))
}

/// Copies every damaged range to the quarantine, as far as its bytes exist.
fn quarantine_damage(app: &mut App, report: &Report) -> Vec<(Gap, Option<PathBuf>)> {
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
                app.output.say(format_args!(
                    "warning: {gap} cannot be copied to the quarantine: {error}"
                ));
                None
            }
        };
        all.push((*gap, path));
    }
    all
}

/// Result of the database's integrity check; empty if it is intact or does not exist.
fn damage_of_memory(app: &App) -> Vec<String> {
    match Store::open_read_only(&app.paths.memory()) {
        Ok(None) => Vec::new(),
        Ok(Some(store)) => store.damage().unwrap_or_else(|error| vec![error.to_string()]),
        Err(error) => vec![error.to_string()],
    }
}

/// Vectors of some memories, compared with their texts. `None` if there are none, or if the
/// database is damaged.
fn sampled_vectors(app: &mut App) -> Option<CheckedVectors> {
    let store = Store::open_read_only(&app.paths.memory()).ok().flatten()?;
    check_vectors(app, &store).unwrap_or_else(|failure| {
        app.output.say(format_args!("warning: {}", failure.in_one_line()));
        None
    })
}

fn to_json(report: &Report, gaps: &[(Gap, Option<PathBuf>)], memory: &[String]) -> Value {
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

fn print_report(
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

/// Lists the damage of a log, for commands that copy or rewrite it. Segments before the first one
/// that is here do not count: a backup of limited size does not contain them.
pub(super) fn list_damage(app: &mut App, dir: &Path) -> Result<Option<Failure>, Failure> {
    let mut report = check_log(dir)?;
    let first = report.segments.first().map_or(0, |first| first.info.number);
    report.missing.retain(|number| *number > first);
    for number in &report.missing {
        app.output.say(format_args!("warning: segment {number:016x} is missing"));
    }
    for gap in report.gaps().filter(|gap| gap.reason != GapReason::TornWrite) {
        app.output.say(format_args!("warning: {gap}"));
    }
    Ok(verdict(&report).err())
}

fn verdict(report: &Report) -> Result<(), Failure> {
    if report.is_damaged() {
        let is_loss = |gap: &&Gap| gap.reason != GapReason::TornWrite;
        let places = report.gaps().filter(is_loss).count() + report.missing.len();
        let plural = if places == 1 { "" } else { "s" };
        return Err(Failure::new(format!("the log is damaged in {places} place{plural}"))
            .meaning("all other events are readable")
            .remedy("if you have a backup, repair it with `claude-mem verify --remote --repair`"));
    }
    Ok(())
}

fn verdict_of_memory(memory: &[String]) -> Result<(), Failure> {
    if !memory.is_empty() {
        return Err(Failure::new("memory.db is damaged")
            .meaning("the log has everything it contained")
            .remedy("rebuild it with `claude-mem replay`"));
    }
    Ok(())
}

fn verdict_of_vectors(app: &App, found: Option<&CheckedVectors>) -> Result<(), Failure> {
    let Some(found) = found.filter(|found| !found.wrong.is_empty()) else { return Ok(()) };
    let names: Vec<String> = found.wrong.iter().map(ToString::to_string).collect();
    let dir = vectors_directory(app);
    Err(Failure::new(format!("the vectors of {} do not match their texts", names.join(", ")))
        .meaning(
            "search by meaning may find the wrong memories; the memories themselves are intact",
        )
        .remedy(format!("make them again with `rm -r '{}' && claude-mem index`", dir.display())))
}
