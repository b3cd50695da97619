//! Copies of the log in a directory or bucket.
//!
//! The layout of a remote, for each log (each host):
//!
//! | name | contents |
//! |---|---|
//! | `hosts/HOST/host` | description of the host, for people |
//! | `hosts/HOST/chain/N` | entry N: a manifest, or an increment |
//! | `hosts/HOST/seg/SEGMENT.gGG/FROM-TO.HASH` | a part of a segment, immutable |
//!
//! Numbers are hexadecimal. `HOST` is the id of the log. No name reveals recorded content.
//!
//! Entries are created in order and only if absent, so there is one history. A *manifest* lists
//! every segment with its generation, length, hash and objects. An *increment* contains the bytes
//! appended to the last segment. It is the only object that is uploaded during a session: one small
//! object per second at most. Each entry contains the hash of the previous one. After some hundred
//! increments a new manifest includes them. The state of a log is its newest manifest and the
//! increments after it. It is always complete: an object is uploaded before the entry that
//! references it, and deleted after a manifest that does not reference it exists.
//!
//! Every object is packed by `object`: compressed, encrypted if there is a key, and verified when
//! it is read.

mod amazon;
mod azure;
mod backoff;
pub mod backup;
pub mod comparison;
mod credentials;
pub mod error;
mod error_text;
mod fetch;
mod garbage;
mod google;
pub mod key;
pub mod local;
pub mod local_state;
pub mod manifest;
mod object;
mod plan;
pub mod remote;
pub mod remote_head;
pub mod repair;
pub mod restore;
mod shipper;
pub mod status;
mod upload;
pub mod verify;

use std::{io, time::Duration};

use tokio::runtime::{Builder, Runtime};

pub use backoff::Backoff;
pub use error::Error;
pub use shipper::{REFILLED, Shipped, Shipper};

/// A runtime for requests to a remote.
pub fn runtime() -> Result<Runtime, Error> {
    // Tokio panics if it cannot open its descriptors, so as many are opened before.
    let descriptors: io::Result<Vec<_>> = (0..DESCRIPTORS / 2).map(|_| io::pipe()).collect();
    descriptors.map_err(|error| Error::io("start", "the async runtime", error))?;
    built(Builder::new_current_thread().enable_all())
}

/// Descriptors of a runtime: for events, for waking it, and for signals.
const DESCRIPTORS: usize = 8;

/// A runtime for the backup only: no sockets, so no descriptors, and no threads when idle.
pub fn backup_runtime() -> Result<Runtime, Error> {
    let mut builder = Builder::new_current_thread();
    built(builder.enable_time().max_blocking_threads(1).thread_keep_alive(Duration::from_secs(1)))
}

fn built(builder: &mut Builder) -> Result<Runtime, Error> {
    builder.build().map_err(|error| Error::io("start", "the async runtime", error))
}

#[cfg(test)]
mod tests;
