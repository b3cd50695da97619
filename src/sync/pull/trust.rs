//! Which remotes are trusted: anyone who can write to one without a key can write memories that look
//! like the user's own.

use std::{fs, path::PathBuf};

use super::hosts::replace;
use crate::ship::{Error, remote::Remote};
use claude_mem_core::paths::{Paths, create_private};

/// The places that the user trusts, as a JSON list.
fn file(paths: &Paths) -> PathBuf {
    paths.foreign().join("trusted.json")
}

fn trusted(paths: &Paths) -> Vec<String> {
    let text = fs::read(file(paths)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Fails unless only this user and the owners of the key can write to the remote, or the user
/// trusts it.
pub(super) fn check(remote: &Remote, paths: &Paths) -> Result<(), Error> {
    let place = remote.place();
    if !remote.is_writable_by_others() || trusted(paths).iter().any(|trusted| trusted == place) {
        return Ok(());
    }
    Err(Error::Untrusted { place: place.into() })
}

/// Remembers that the user trusts everyone who can write to the remote.
pub fn trust(remote: &Remote, paths: &Paths) -> Result<(), Error> {
    let mut places = trusted(paths);
    places.retain(|place| place != remote.place());
    places.push(remote.place().into());
    let (file, dir) = (file(paths), paths.foreign());
    create_private(&dir).map_err(|error| Error::io("create", &dir, error))?;
    replace(&file, &serde_json::to_vec(&places).expect("a list of texts is plain data"))
}
