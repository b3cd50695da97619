//! The part of `verify` that looks at what was shipped.

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
    local_state::State,
    manifest::HostId,
    remote::{Purpose, Remote},
    repair::{self, Mended},
    verify::{Damage, Findings, check},
};

/// What is there, and what was done about it.
#[derive(Debug)]
pub(super) struct Looked {
    place: String,
    findings: Findings,
    /// After mending: what is still wrong there, and what is whole again.
    after: Option<After>,
}

#[derive(Debug)]
struct After {
    here: Mended,
    is_remote_mended: bool,
    report: Report,
    findings: Findings,
}

/// Reads what was shipped to `from`, or to where things are shipped, and mends if asked to.
pub(super) fn look(
    app: &mut App,
    from: Option<&str>,
    report: &Report,
    is_repair: bool,
) -> Result<Looked, Failure> {
    let place = place(app, "--from", from)?;
    let Some(host) = local::host(&app.paths.log())? else {
        return Err(Failure::new("nothing was recorded here, so there is nothing to compare")
            .remedy("get a copy back with `claude-mem restore --from URL`"));
    };
    let remote = Remote::open(&place, Purpose::Read, &app.paths, &app.settings, &app.environment)?;
    let runtime = runtime()?;
    let mut findings = runtime.block_on(check(&remote, host, &app.paths.log()))?;
    findings.differences.extend(rollback(app, &remote, host, &findings));
    let mut looked = Looked { place, findings, after: None };
    let is_something_wrong = report.is_damaged() || !looked.findings.is_sound();
    if is_repair && is_something_wrong {
        looked.after = Some(runtime.block_on(repair(app, &remote, host, report, &looked))?);
    }
    Ok(looked)
}

/// Says so if the remote is older than what was shipped to it from here.
fn rollback(app: &App, remote: &Remote, host: HostId, findings: &Findings) -> Option<String> {
    let shipped = State::load(&app.paths)?;
    let found = findings.head.as_ref().map_or(0, |head| head.number);
    let is_same = shipped.place == remote.place() && shipped.host == host.to_string();
    (is_same && found < shipped.number).then(|| {
        let (place, shipped) = (remote.place().into(), shipped.number);
        Error::RolledBack { place, found, shipped }.to_string()
    })
}

/// First what is wrong here, from there; then what is wrong there, from here.
async fn repair(
    app: &App,
    remote: &Remote,
    host: HostId,
    report: &Report,
    looked: &Looked,
) -> Result<After, Failure> {
    let dir = app.paths.log();
    let mut here = Mended::default();
    if let Some(head) = &looked.findings.head {
        here = repair::mend(remote, head, &dir, report).await?;
    }
    let mut between = check(remote, host, &dir).await?;
    between.differences.extend(rollback(app, remote, host, &between));
    let mut is_remote_mended = false;
    if !between.is_sound() {
        if let Some(head) = &between.head
            && !repair::is_all_here(remote, head, &dir).await?
        {
            let why = "it has events that are not here and could not be brought".into();
            return Err(Error::Diverged { place: looked.place.clone(), why }.into());
        }
        let mut shipper =
            Shipper::open(&looked.place, &app.paths, &app.settings, &app.environment, app.clock)?;
        shipper.again().await?;
        is_remote_mended = true;
    }
    let findings = check(remote, host, &dir).await?;
    Ok(After { here, is_remote_mended, report: repair::report(&dir)?, findings })
}

impl Looked {
    pub(super) fn described(&self) -> Value {
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
            "mended_here": self.after.as_ref().map(|after| &after.here.mended),
            "not_mended_here": self.after.as_ref().map(|after| &after.here.left),
            "is_remote_mended": self.after.as_ref().map(|after| after.is_remote_mended),
        })
    }

    pub(super) fn tell(&self, app: &mut App) -> Result<(), Failure> {
        let Findings { head, objects, damage, differences, behind_bytes, .. } = &self.findings;
        let place = &self.place;
        match head {
            None => {
                app.output.line(format_args!("{place}: nothing of this log can be read there"))?;
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
        for line in after.here.mended.iter().chain(&after.here.left) {
            app.output.line(line)?;
        }
        if after.is_remote_mended {
            app.output.line("the remote was mended from here")?;
        }
        if !after.here.mended.is_empty() {
            app.output.say("what came back becomes memory with the next command that reads it");
        }
        Ok(())
    }

    /// What is still wrong, here or there.
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
            None => Err(failure.meaning("what is whole can be restored").remedy(
                "mend it from here, and here from it, with `claude-mem verify --remote --repair`",
            )),
            Some(_) => Err(failure.meaning("everything that could be mended was")),
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
