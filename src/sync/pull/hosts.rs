//! What we know of other machines: their numbers here, their names, and whether they are shown.

use std::{fs, io, path::Path};

use claude_mem_projections::{HOSTS_MAX, Host};

use crate::ship::{Error, manifest::HostId};
use claude_mem_core::{os, paths::Paths};

/// A machine that was heard of.
#[derive(Debug, Clone)]
pub struct Known {
    /// Whose log it is.
    pub id: HostId,
    /// What is kept of it.
    pub host: Host,
}

/// Every machine that was ever pulled from, by number.
pub fn all(paths: &Paths) -> Result<Vec<Known>, Error> {
    let dir = paths.foreign();
    let entries = match fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("list", &dir, error)),
    };
    let mut known = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| Error::io("list", &dir, error))?.path();
        let id = path.file_name().and_then(|name| HostId::parse(name.to_str()?));
        if let (Some(id), Some(host)) = (id, Host::read(&path)) {
            known.push(Known { id, host });
        }
    }
    known.sort_by_key(|known| known.host.number);
    Ok(known)
}

/// The machine that has this log, if we heard of it.
pub(super) fn of(paths: &Paths, id: HostId) -> Result<Option<Known>, Error> {
    Ok(all(paths)?.into_iter().find(|known| known.id == id))
}

/// The machines with this name, or whose id begins like this.
pub fn find(paths: &Paths, name: &str) -> Result<Vec<Known>, Error> {
    let mut known = all(paths)?;
    known.retain(|known| known.host.name == name || known.id.to_string().starts_with(name));
    Ok(known)
}

/// Gives a machine that is new the first number that is free.
pub(super) fn begin(paths: &Paths, id: HostId, name: &str) -> Result<(), Error> {
    let taken: Vec<u8> = all(paths)?.iter().map(|known| known.host.number).collect();
    let Some(number) = (1..=HOSTS_MAX).find(|number| !taken.contains(number)) else {
        let why = format!("there are {HOSTS_MAX} other machines already");
        return Err(Error::Place { place: id.to_string(), why });
    };
    let host = Host { number, name: name.into(), is_hidden: false, is_dropped: false };
    keep(paths, &Known { id, host })
}

/// Keeps what is known, all of it or nothing.
pub fn keep(paths: &Paths, known: &Known) -> Result<(), Error> {
    let dir = paths.foreign().join(known.id.to_string());
    let bytes = serde_json::to_vec_pretty(&known.host).expect("a host is plain data");
    replace(&dir.join(Host::FILE), &bytes)
}

/// Writes a small file so that it is always there, old or new.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let draft = path.with_extension("part");
    fs::write(&draft, bytes).map_err(|error| Error::io("write", &draft, error))?;
    os::rename(&draft, path).map_err(|error| Error::io("write", path, error))
}
