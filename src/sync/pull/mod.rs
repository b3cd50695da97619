//! Other machines' logs, brought here from the remote that all of them ship to.
//!
//! Each has a folder below `foreign/` in the data directory, named by the id of its log: a copy of its segments
//! that nobody appends to but us, what was taken over last (`pulled.json`), and what we call it (`host.json`).
//! Folding reads them beside our own log. Nothing here is shipped.

mod copy;
mod hosts;

pub use hosts::{Known, all, find, keep};

use std::fs::File;

use copy::Copy;

use crate::ship::{Error, local, manifest::HostId, remote::Remote, remote_head};
use claude_mem_core::{
    os::open_lock,
    paths::{Paths, create_private},
};

/// What came of one machine.
#[derive(Debug)]
pub struct Pulled {
    /// Whose log it is.
    pub host: HostId,
    /// What the machine is called.
    pub name: String,
    /// The number of the entry of the remote that we have now.
    pub entry: u64,
    /// Bytes of log that are new here.
    pub bytes: u64,
}

/// What a pull came to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The machines that were looked at.
    pub pulled: Vec<Pulled>,
    /// Those of which nothing could be taken over, and why. Their copies are as they were.
    pub failed: Vec<(String, Error)>,
}

impl Outcome {
    /// Whether there is anything to be folded.
    pub fn is_new(&self) -> bool {
        self.pulled.iter().any(|pulled| pulled.bytes > 0)
    }
}

/// Brings what is new of every other machine. One that cannot be had does not keep us from the others.
pub async fn pull(remote: &Remote, paths: &Paths) -> Result<Outcome, Error> {
    let folder = paths.foreign();
    create_private(&folder).map_err(|error| Error::io("create", &folder, error))?;
    let _alone = lock(paths)?;
    let own = local::host(&paths.log())?;
    let mut outcome = Outcome::default();
    for host in remote_head::hosts(remote).await? {
        if Some(host) == own {
            continue;
        }
        let known = match hosts::of(paths, host)? {
            Some(known) if known.host.is_dropped => continue,
            known => known,
        };
        let described = remote_head::describe(remote, host).await;
        let name = match (described, &known) {
            (Ok(Some(described)), _) if !described.name.is_empty() => described.name,
            (_, Some(known)) => known.host.name.clone(),
            _ => host.to_string()[..8].to_owned(),
        };
        match bring(remote, paths, host, &name, known).await {
            Ok(pulled) => outcome.pulled.push(pulled),
            // Then so is everything else.
            Err(error) if error.is_passing() => return Err(error),
            Err(error) => outcome.failed.push((name, error)),
        }
    }
    Ok(outcome)
}

async fn bring(
    remote: &Remote,
    paths: &Paths,
    host: HostId,
    name: &str,
    known: Option<Known>,
) -> Result<Pulled, Error> {
    let dir = paths.foreign().join(host.to_string());
    create_private(&dir).map_err(|error| Error::io("create", &dir, error))?;
    let copy = Copy::new(host, dir);
    let (entry, bytes) = copy.bring(remote).await?;
    // Only now is it a log that can be folded.
    match known {
        Some(mut known) if known.host.name != name => {
            name.clone_into(&mut known.host.name);
            keep(paths, &known)?;
        }
        Some(_) => {}
        None => hosts::begin(paths, host, name)?,
    }
    Ok(Pulled { host, name: name.to_owned(), entry, bytes })
}

/// Two pulls at the same time would write to the same files.
fn lock(paths: &Paths) -> Result<File, Error> {
    let path = paths.foreign().join("lock");
    let file = open_lock(&path).map_err(|error| Error::io("create", &path, error))?;
    file.lock().map_err(|error| Error::io("lock", &path, error))?;
    Ok(file)
}
