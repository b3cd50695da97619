//! The part of `verify` that checks the backup.

use claude_mem_log::Report;
use serde_json::{Value, json};

use crate::commands::ship::{entry, place, runtime};
use claude_mem_core::{
    app::App,
    failure::Failure,
    format::{bytes, count},
};
use claude_mem_sync::ship::{
    Error, Shipper, local,
    manifest::HostId,
    remote::{Purpose, Remote},
    repair::{self, RepairOutcome},
    verify::{Damage, Findings, verify_remote},
};

/// What the check found, and the result of the repair.
#[derive(Debug)]
pub(super) struct RemoteReport {
    place: String,
    findings: Findings,
    /// The result of a repair: remaining damage, and repaired segments.
    after: Option<RepairResult>,
}

#[derive(Debug)]
struct RepairResult {
    here: RepairOutcome,
    is_remote_repaired: bool,
    report: Report,
    findings: Findings,
}

/// Reads the backup at `from`, or at the configured location, and repairs it on request.
pub(super) fn look(
    app: &mut App,
    from: Option<&str>,
    report: &Report,
    is_repair: bool,
) -> Result<RemoteReport, Failure> {
    let place = place(app, "--from", from)?;
    let Some(host) = local::host(&app.paths.log())? else {
        return Err(Failure::new("no events are recorded here, so there is nothing to compare")
            .remedy("restore a backup with `claude-mem restore --from URL`"));
    };
    let remote = Remote::open(&place, Purpose::Read, &app.paths, &app.settings, &app.environment)?;
    let runtime = runtime()?;
    let mut findings = runtime.block_on(verify_remote(&remote, host, &app.paths.log()))?;
    runtime.block_on(add_refusal(app, &place, &mut findings))?;
    let mut looked = RemoteReport { place, findings, after: None };
    let is_something_wrong = report.is_damaged() || !looked.findings.is_sound();
    if is_repair && is_something_wrong {
        looked.after = Some(runtime.block_on(repair(app, &remote, host, report, &looked))?);
    }
    Ok(looked)
}

/// Adds the reason why the next `ship` would refuse this remote, unless it is known already.
async fn add_refusal(app: &App, place: &str, findings: &mut Findings) -> Result<(), Error> {
    if !findings.is_sound() {
        return Ok(());
    }
    let mut shipper = Shipper::open(place, &app.paths, &app.settings, &app.environment, app.clock)?;
    match shipper.check().await {
        Err(error) if error.is_other_history() => findings.differences.push(error.to_string()),
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    Ok(())
}

/// Repairs the log from the remote first, then the remote from the log.
async fn repair(
    app: &App,
    remote: &Remote,
    host: HostId,
    report: &Report,
    looked: &RemoteReport,
) -> Result<RepairResult, Failure> {
    let dir = app.paths.log();
    let mut here = RepairOutcome::default();
    if let Some(head) = &looked.findings.head {
        here = repair::repair(remote, head, &dir, report).await?;
    }
    let mut between = verify_remote(remote, host, &dir).await?;
    add_refusal(app, &looked.place, &mut between).await?;
    let mut is_remote_repaired = false;
    if !between.is_sound() {
        if let Some(head) = &between.head
            && !repair::is_remote_contained(remote, head, &dir).await?
        {
            let why = "it has events that are missing here and could not be fetched".into();
            return Err(Error::Diverged { place: looked.place.clone(), why }.into());
        }
        let mut shipper =
            Shipper::open(&looked.place, &app.paths, &app.settings, &app.environment, app.clock)?;
        shipper.reship().await?;
        is_remote_repaired = true;
    }
    let mut findings = verify_remote(remote, host, &dir).await?;
    add_refusal(app, &looked.place, &mut findings).await?;
    Ok(RepairResult { here, is_remote_repaired, report: repair::report(&dir)?, findings })
}

impl RemoteReport {
    pub(super) fn to_json(&self) -> Value {
        let Findings { head, objects, differences, unneeded, behind_bytes, .. } = &self.findings;
        json!({
            "place": self.place,
            "entry": head.as_ref().map(|head| head.number),
            "hash": head.as_ref().map(|head| head.hash.to_string()),
            "objects": objects,
            "log_bytes": head.as_ref().map(claude_mem_sync::ship::remote_head::Head::bytes),
            "behind_bytes": behind_bytes,
            "unneeded_objects": unneeded,
            "is_damaged": !self.findings.is_sound(),
            "damage": self.findings.damage.iter().map(damage).collect::<Vec<_>>(),
            "differences": differences,
            "repaired_here": self.after.as_ref().map(|after| &after.here.repaired),
            "unrepaired_here": self.after.as_ref().map(|after| &after.here.unrepaired),
            "is_remote_repaired": self.after.as_ref().map(|after| after.is_remote_repaired),
        })
    }

    pub(super) fn print_report(&self, app: &mut App) -> Result<(), Failure> {
        let Findings { head, objects, damage, differences, behind_bytes, .. } = &self.findings;
        let place = &self.place;
        match head {
            None => {
                app.output.line(format_args!("{place}: no readable backup of this log"))?;
            }
            Some(head) => app.output.line(format_args!(
                "{place}: {} of log in {}: read and checked; entry {}",
                bytes(head.bytes()),
                count(*objects, "object"),
                entry(head)
            ))?,
        }
        for damage in damage {
            let part = match (damage.segment, damage.range) {
                (Some(segment), Some((from, to))) => {
                    format!(" (bytes {from} to {to} of segment {segment:016x})")
                }
                _ => String::new(),
            };
            app.output.line(format_args!("{}{part}", damage.what))?;
        }
        for difference in differences {
            app.output.line(difference)?;
        }
        if *behind_bytes > 0 {
            app.output.line(format_args!("{} are not shipped yet", bytes(*behind_bytes)))?;
        }
        let Some(after) = &self.after else { return Ok(()) };
        for line in after.here.repaired.iter().chain(&after.here.unrepaired) {
            app.output.line(line)?;
        }
        if after.is_remote_repaired {
            app.output.line("the remote was repaired from this log")?;
        }
        if !after.here.repaired.is_empty() {
            app.output.say("repaired events are indexed by the next command that reads memories");
        }
        Ok(())
    }

    /// Fails if damage is left, here or in the remote.
    pub(super) fn verdict(&self, report: &Report) -> Result<(), Failure> {
        let (report, findings) = match &self.after {
            Some(after) => (&after.report, &after.findings),
            None => (report, &self.findings),
        };
        if findings.is_sound() {
            return super::verdict(report);
        }
        let places = findings.damage.len() + findings.differences.len();
        let failure =
            Failure::new(format!("{} is damaged in {}", self.place, count(places, "place")));
        match self.after {
            None => Err(failure
                .meaning("the intact parts can be restored")
                .remedy("repair both from each other with `claude-mem verify --remote --repair`")),
            Some(_) => Err(failure.meaning("everything that could be repaired was repaired")),
        }
    }
}

fn damage(damage: &Damage) -> Value {
    json!({
        "what": damage.what,
        "segment": damage.segment,
        "from": damage.range.map(|range| range.0),
        "to": damage.range.map(|range| range.1),
    })
}
