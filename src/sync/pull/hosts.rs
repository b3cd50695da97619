//! The other hosts: their numbers, names, and whether they are shown.

use std::{fs, io, path::Path};

use claude_mem_projections::{HOSTS_MAX, Host};

use crate::ship::{Error, manifest::HostId};
use claude_mem_core::{os, paths::Paths};

#[derive(Debug, Clone)]
pub struct KnownHost {
    pub id: HostId,
    pub host: Host,
}

/// All hosts that were ever pulled from, by number.
pub fn all(paths: &Paths) -> Result<Vec<KnownHost>, Error> {
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
            known.push(KnownHost { id, host });
        }
    }
    known.sort_by_key(|known| known.host.number);
    Ok(known)
}

/// The host with this log id, if known.
pub(super) fn with_id(paths: &Paths, id: HostId) -> Result<Option<KnownHost>, Error> {
    Ok(all(paths)?.into_iter().find(|known| known.id == id))
}

/// Hosts with this name or id prefix.
pub fn find(paths: &Paths, name: &str) -> Result<Vec<KnownHost>, Error> {
    let mut known = all(paths)?;
    known.retain(|known| known.host.name == name || known.id.to_string().starts_with(name));
    Ok(known)
}

/// Assigns the first free number to a new host.
pub(super) fn add(paths: &Paths, id: HostId, name: &str) -> Result<(), Error> {
    let taken: Vec<u8> = all(paths)?.iter().map(|known| known.host.number).collect();
    let Some(number) = (1..=HOSTS_MAX).find(|number| !taken.contains(number)) else {
        let why = format!("the maximum of {HOSTS_MAX} other machines is reached");
        return Err(Error::Place { place: id.to_string(), why });
    };
    let host = Host {
        number,
        name: name.into(),
        is_hidden: false,
        is_dropped: false,
        is_confirmed: false,
    };
    save(paths, &KnownHost { id, host })
}

pub fn save(paths: &Paths, known: &KnownHost) -> Result<(), Error> {
    let dir = paths.foreign().join(known.id.to_string());
    let bytes = serde_json::to_vec_pretty(&known.host).expect("a host is plain data");
    replace(&dir.join(Host::FILE), &bytes)
}

pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let draft = path.with_extension("part");
    fs::write(&draft, bytes).map_err(|error| Error::io("write", &draft, error))?;
    os::rename(&draft, path).map_err(|error| Error::io("write", path, error))
}
