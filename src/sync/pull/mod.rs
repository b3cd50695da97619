//! Pulls the logs of other hosts from the shared remote.
//!
//! Each host has a folder in `foreign/`, named by the id of its log: its segments, the newest
//! pulled entry (`pulled.json`) and its description (`host.json`). The fold reads them like our own
//! log. They are not shipped.

mod copy;
mod hosts;
mod trust;

pub use trust::trust;

pub use hosts::{KnownHost, all, find, save};

use std::fs::File;

use copy::HostCopy;

use crate::ship::{Error, local, manifest::HostId, remote::Remote, remote_head};
use claude_mem_core::{
    os::open_lock,
    paths::{Paths, create_private},
};

#[derive(Debug)]
pub struct PulledHost {
    pub host: HostId,
    pub name: String,
    pub entry: u64,
    pub bytes: u64,
}

#[derive(Debug, Default)]
pub struct PullOutcome {
    pub pulled: Vec<PulledHost>,
    /// Hosts that failed, with the reason. Their copies are unchanged.
    pub failed: Vec<(String, Error)>,
}

impl PullOutcome {
    /// Whether there are new events to fold.
    pub fn is_new(&self) -> bool {
        self.pulled.iter().any(|pulled| pulled.bytes > 0)
    }
}

/// Pulls all other hosts. An error of one host does not stop the others.
pub async fn pull(remote: &Remote, paths: &Paths) -> Result<PullOutcome, Error> {
    let folder = paths.foreign();
    create_private(&folder).map_err(|error| Error::io("create", &folder, error))?;
    let _alone = lock(paths)?;
    let own = local::host(&paths.log())?;
    let mut outcome = PullOutcome::default();
    for host in remote_head::hosts(remote).await? {
        if Some(host) == own {
            continue;
        }
        let known = match hosts::with_id(paths, host)? {
            Some(known) if known.host.is_dropped => continue,
            known => known,
        };
        trust::check(remote, paths)?;
        let described = remote_head::describe(remote, host).await;
        let name = match (described, &known) {
            (Ok(Some(described)), _) if !described.name.is_empty() => shown_name(&described.name),
            (_, Some(known)) => known.host.name.clone(),
            _ => host.to_string()[..8].to_owned(),
        };
        match pull_host(remote, paths, host, &name, known).await {
            Ok(pulled) => outcome.pulled.push(pulled),
            // The remote is unreachable, so all other hosts would fail, too.
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => outcome.failed.push((name, error)),
        }
    }
    Ok(outcome)
}

/// The name of another machine, which anyone who can write to the remote can choose. It is shown in
/// the context of sessions, so it cannot contain a sentence or markup.
fn shown_name(name: &str) -> String {
    const CHARS_MAX: usize = 40;
    let is_plain = |c: &char| c.is_alphanumeric() || "-_.".contains(*c);
    name.chars().map(|c| if is_plain(&c) { c } else { '-' }).take(CHARS_MAX).collect()
}

async fn pull_host(
    remote: &Remote,
    paths: &Paths,
    host: HostId,
    name: &str,
    known: Option<KnownHost>,
) -> Result<PulledHost, Error> {
    let dir = paths.foreign().join(host.to_string());
    create_private(&dir).map_err(|error| Error::io("create", &dir, error))?;
    let copy = HostCopy::new(host, dir);
    let (entry, bytes) = copy.update(remote).await?;
    // The copy is complete: make it visible to the fold.
    match known {
        Some(mut known) if known.host.name != name => {
            name.clone_into(&mut known.host.name);
            save(paths, &known)?;
        }
        Some(_) => {}
        None => hosts::add(paths, host, name)?,
    }
    Ok(PulledHost { host, name: name.to_owned(), entry, bytes })
}

/// Prevents two concurrent pulls from writing to the same files.
fn lock(paths: &Paths) -> Result<File, Error> {
    let path = paths.foreign().join("lock");
    let file = open_lock(&path).map_err(|error| Error::io("create", &path, error))?;
    file.lock().map_err(|error| Error::io("lock", &path, error))?;
    Ok(file)
}
