//! Copies of the log elsewhere: in a directory, or in a bucket.
//!
//! What a remote holds, below the place that the user gave, for each log (each machine) of its own:
//!
//! | name | holds |
//! |---|---|
//! | `hosts/HOST/host` | which machine that is, for people |
//! | `hosts/HOST/chain/N` | the N-th entry: a manifest, or what was appended since the entry before |
//! | `hosts/HOST/seg/SEGMENT.gGG/FROM-TO.HASH` | a stretch of a segment, never changed |
//!
//! Numbers are hexadecimal. `HOST` is the id of the log. No name tells anything of what was recorded.
//!
//! Entries are put in order and only if absent, so there is one history, whoever ships. A *manifest* lists
//! every segment with its generation, length, hash and the objects it is made of. An *increment* carries the
//! bytes that were appended to the last segment, and is the only object put when a session goes on: what it
//! takes to be a second behind is one small object a second. Each entry holds the hash of the one before.
//! After some hundred increments a new manifest takes them in. The state of a log is its newest manifest and
//! the increments behind it; it is complete at any moment, because an object is put before the entry that
//! names it and deleted after the manifest that does not is there.
//!
//! Every object is packed by `object`: compressed, encrypted if there is a key, checked when it is read.

mod amazon;
mod azure;
mod backoff;
pub mod backup;
mod credentials;
pub mod error;
mod error_text;
mod fetch;
mod gc;
mod google;
pub mod key;
pub mod local;
pub mod local_state;
pub mod manifest;
mod object;
mod object_store_text;
mod plan;
pub mod remote;
pub mod remote_head;
pub mod repair;
pub mod restore;
mod shipper;
pub mod status;
mod upload;
pub mod verify;

use std::time::Duration;

use claude_mem_core::failure::Failure;
use tokio::runtime::{Builder, Runtime};

pub use backoff::Backoff;
pub use error::Error;
pub use shipper::{REFILLED, Shipped, Shipper};

/// Runs requests to a remote.
pub fn runtime() -> Result<Runtime, Failure> {
    built(Builder::new_current_thread().enable_all())
}

/// Runs what concerns the backup alone: without sockets it needs no descriptors, and at rest no threads.
pub fn runtime_of_backup() -> Result<Runtime, Failure> {
    let mut builder = Builder::new_current_thread();
    built(builder.enable_time().max_blocking_threads(1).thread_keep_alive(Duration::from_secs(1)))
}

fn built(builder: &mut Builder) -> Result<Runtime, Failure> {
    builder.build().map_err(|error| Failure::new(format!("no runtime could be started: {error}")))
}

#[cfg(test)]
mod tests;
