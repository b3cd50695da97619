//! Verifies everything in a remote.

use std::{collections::HashSet, path::Path};

use crate::ship::{
    Error,
    comparison::{Depth, compare},
    local::{self, blocking},
    manifest::{HostId, Part, PartLocation},
    remote::{Buffers, Remote},
    remote_head::{self, Head},
};

#[derive(Debug, Clone)]
pub struct Findings {
    /// The newest intact state.
    pub head: Option<Head>,
    /// Objects read.
    pub objects: u64,
    pub damage: Vec<Damage>,
    /// Segments that differ between remote and local log.
    pub differences: Vec<String>,
    /// Unreferenced objects.
    pub unneeded: usize,
    pub behind_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The error, with the name of the object.
    pub what: String,
    /// The segment it is a part of,
    pub segment: Option<u64>,
    /// and its range.
    pub range: Option<(u64, u64)>,
}

impl Findings {
    /// Whether the remote is intact and equal to the local log.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty() && self.differences.is_empty()
    }
}

const AHEAD_MAX: usize = 4;

/// Reads every object, and compares with the log in `dir`.
pub async fn verify_remote(remote: &Remote, host: HostId, dir: &Path) -> Result<Findings, Error> {
    let mut findings = Findings {
        head: None,
        objects: 0,
        damage: Vec::new(),
        differences: Vec::new(),
        unneeded: 0,
        behind_bytes: 0,
    };
    findings.head = newest_intact(remote, host, &mut findings.damage).await?;
    if let Err(error) = remote_head::describe(remote, host).await {
        findings.damage.push(damage(error, None)?);
    }
    let owned = dir.to_path_buf();
    let here = blocking(move || local::segments(&owned, host, (0, 0))).await?;
    let Some(head) = findings.head.clone() else {
        findings.behind_bytes = here.iter().map(|here| here.bytes).sum();
        return Ok(findings);
    };
    check_parts(remote, &head, &mut findings).await?;
    findings.objects += head.increments.len() as u64 + 2;
    let needed: HashSet<String> = head.objects().into_iter().collect();
    let listed = remote.list(&format!("{}/seg", host.folder())).await?;
    findings.unneeded = listed.iter().filter(|name| !needed.contains(*name)).count();
    let compared = blocking(move || compare(&head, &here, Depth::All)).await?;
    findings.differences.extend(compared.differences);
    findings.behind_bytes = compared.behind_bytes;
    Ok(findings)
}

/// The newest intact state. Newer damaged entries are reported as damage.
pub async fn newest_intact(
    remote: &Remote,
    host: HostId,
    found: &mut Vec<Damage>,
) -> Result<Option<Head>, Error> {
    match remote_head::newest(remote, host, 0).await {
        Ok(head) => return Ok(head),
        Err(error) => found.push(damage(error, None)?),
    }
    for number in remote_head::entries(remote, host).await?.into_iter().rev() {
        match remote_head::load(remote, host, number).await {
            Ok(head) => return Ok(Some(head)),
            Err(error) => {
                let again = damage(error, None)?;
                if !found.contains(&again) {
                    found.push(again);
                }
            }
        }
    }
    Ok(None)
}

/// Converts errors that mean damage; passes on others.
fn damage(error: Error, at: Option<(u64, &Part)>) -> Result<Damage, Error> {
    match error {
        Error::Missing { .. }
        | Error::Damaged { .. }
        | Error::OtherLog { .. }
        | Error::NotEncrypted { .. }
        | Error::WrongKey { .. } => Ok(Damage {
            what: error.to_string(),
            segment: at.map(|(segment, _)| segment),
            range: at.map(|(_, part)| (part.from, part.to)),
        }),
        error => Err(error),
    }
}

async fn check_parts(remote: &Remote, head: &Head, findings: &mut Findings) -> Result<(), Error> {
    let segments = &head.manifest.segments;
    let parts: Vec<(u64, &Part)> = segments
        .iter()
        .flat_map(|segment| segment.parts.iter().map(|part| (segment.number, part)))
        .collect();
    let buffers = Buffers::default();
    for parts in parts.chunks(AHEAD_MAX) {
        let read = |(_, part): &(u64, &Part)| {
            let (part, remote, buffers) = (head.fetched(part), remote.clone(), buffers.clone());
            tokio::spawn(async move { part.give(&remote, &buffers, |_| Ok(())).await })
        };
        let tasks: Vec<_> = parts.iter().map(read).collect();
        for (task, at) in tasks.into_iter().zip(parts) {
            findings.objects += match at.1.at {
                PartLocation::Object(_) => 1,
                PartLocation::Run(first, last) => last - first + 1,
            };
            if let Err(error) = task.await.map_err(|error| remote_head::stopped(&error))? {
                findings.damage.push(damage(error, Some(*at))?);
            }
        }
    }
    Ok(())
}
