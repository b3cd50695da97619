//! Errors of remotes, with their meaning and remedy.

use std::{fmt, io, path::PathBuf};

use crate::ship::credentials;
use claude_mem_core::failure::Failure;

/// Why an operation on a remote failed.
#[derive(Debug)]
pub enum Error {
    /// The place is not a valid URL or directory.
    Place {
        place: String,
        why: String,
    },
    /// The remote cannot be reached, or its response is invalid.
    Unreachable {
        place: String,
        why: String,
    },
    /// The remote rejected the credentials or the operation.
    Denied {
        place: String,
        why: String,
    },
    /// There are no credentials, or they are unusable.
    Credentials {
        place: String,
        why: String,
    },
    NoBucket {
        place: String,
    },
    /// A required object is missing.
    Missing {
        object: String,
    },
    /// The content of an object is not what was uploaded.
    Damaged {
        object: String,
        why: String,
    },
    OtherLog {
        object: String,
        found: String,
    },
    /// An object is encrypted with another key.
    WrongKey {
        object: String,
        needed: String,
        ours: Option<String>,
    },
    /// An object is not encrypted although a key is configured: it may be forged.
    NotEncrypted {
        object: String,
    },
    /// The remote is not encrypted, others can write to it, and the user did not say that they
    /// are trusted.
    Untrusted {
        place: String,
    },
    /// An object was written by a newer version.
    Newer {
        object: String,
    },
    /// The remote has data that is not in this log: another machine shipped it, or it was lost
    /// here.
    Diverged {
        place: String,
        why: String,
    },
    /// The remote is older than what was shipped: entries were deleted, or it was rolled back.
    RolledBack {
        place: String,
        found: u64,
        shipped: u64,
    },
    NoHosts {
        place: String,
    },
    /// The remote contains several logs, and none was selected.
    SeveralHosts {
        place: String,
        hosts: Vec<String>,
    },
    Log(claude_mem_log::Error),
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl Error {
    pub fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { action, path: path.into(), source }
    }

    /// Whether the remote is not a valid copy of this log: damaged, rolled back or diverged.
    pub fn is_other_history(&self) -> bool {
        matches!(
            self,
            Self::Missing { .. }
                | Self::Damaged { .. }
                | Self::OtherLog { .. }
                | Self::WrongKey { .. }
                | Self::NotEncrypted { .. }
                | Self::Diverged { .. }
                | Self::RolledBack { .. }
        )
    }

    /// Whether a later attempt may succeed without user action.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }
}

impl From<claude_mem_log::Error> for Error {
    fn from(error: claude_mem_log::Error) -> Self {
        Self::Log(error)
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place { place, why } => write!(out, "{place} cannot be used: {why}"),
            Self::Unreachable { place, why } => write!(out, "{place} cannot be reached: {why}"),
            Self::Denied { place, why } => write!(out, "{place} denied access: {why}"),
            Self::Credentials { place, why } => {
                write!(out, "no usable credentials for {place}: {why}")
            }
            Self::NoBucket { place } => write!(out, "the bucket in {place} does not exist"),
            Self::Missing { object } => write!(out, "{object} is missing in the remote"),
            Self::Damaged { object, why } => {
                write!(out, "{object} in the remote is damaged: {why}")
            }
            Self::OtherLog { object, found } => {
                write!(out, "{object} in the remote belongs to another log, {found}")
            }
            Self::WrongKey { object, needed, ours: Some(ours) } => {
                write!(out, "{object} is encrypted with key {needed}, and the key here is {ours}")
            }
            Self::WrongKey { object, needed, ours: None } => {
                write!(out, "{object} is encrypted with key {needed}, and there is no key here")
            }
            Self::NotEncrypted { object } => {
                write!(out, "{object} in the remote is not encrypted, though there is a key here")
            }
            Self::Untrusted { place } => {
                write!(out, "{place} is not encrypted, and others may be able to write to it")
            }
            Self::Newer { object } => {
                write!(out, "{object} was written by a newer version of claude-mem")
            }
            Self::Diverged { place, why } => {
                write!(out, "{place} holds another history of this log: {why}")
            }
            Self::RolledBack { place, found, shipped } => write!(
                out,
                "{place} is older than what was shipped: its newest entry is {found:x}, and \
                 {shipped:x} was shipped"
            ),
            Self::NoHosts { place } => write!(out, "there is no log in {place}"),
            Self::SeveralHosts { place, hosts } => {
                write!(out, "there are several logs in {place}: {}", hosts.join(", "))
            }
            Self::Log(error) => error.fmt(out),
            Self::Io { action, path, source } => {
                write!(out, "cannot {action} {}: {source}", path.display())
            }
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        use Error as E;
        let failure = Self::new(error.to_string());
        match error {
            E::Log(error) => error.into(),
            E::Place { .. } => Self::usage(error.to_string()).remedy(
                "give a directory, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, \
                 `az://CONTAINER/PREFIX`",
            ),
            E::Unreachable { .. } => failure
                .meaning("nothing is lost: events that are not shipped yet are in the local log")
                .remedy(
                    "try again when the remote is reachable; shipping continues where it \
                     stopped",
                ),
            E::Denied { ref place, .. } => failure
                .meaning("nothing was read or changed there")
                .remedy(credentials::denied_hint(place)),
            E::Credentials { ref place, .. } => failure
                .meaning(
                    "no request was sent; events that are not shipped yet are in the local \
                     log",
                )
                .remedy(credentials::credentials_remedy(place)),
            E::NoBucket { .. } => failure
                .meaning("nothing is lost: events that are not shipped yet are in the local log")
                .remedy("create the bucket, or correct its name"),
            E::Missing { .. } | E::Damaged { .. } => {
                failure.meaning("the rest of the remote can still be used").remedy(
                    "repair it with `claude-mem verify --remote --repair` on the machine that \
                    shipped it; if that machine is lost, restore the intact rest with `claude-mem \
                    restore --salvage`",
                )
            }
            E::OtherLog { .. } => failure
                .meaning("objects were copied between logs; it was not used")
                .remedy("see what is there with `claude-mem verify --remote`"),
            E::WrongKey { .. } => {
                failure.meaning("it can be read only with the key that encrypted it").remedy(
                    "copy the key from the other machine: `claude-mem remote key show` there, \
                     `claude-mem remote key import` here",
                )
            }
            E::NotEncrypted { .. } => failure
                .meaning("it was shipped before there was a key, or it was forged; it was not used")
                .remedy(
                    "on the machine that shipped it, import the key and ship again; or move \
                     `ship.key` away to read unencrypted objects",
                ),
            E::Untrusted { .. } => failure
                .meaning(
                    "nothing was fetched: anyone who can write there can add memories that look like \
                     your own, and hide yours",
                )
                .remedy(
                    "use the same key on every machine (`claude-mem remote key new`); or, if you trust \
                     everyone who can write there, say so once with `claude-mem remote pull --trust`",
                ),
            E::Newer { .. } => {
                failure.meaning("nothing was changed").remedy("use a newer version of claude-mem")
            }
            E::Diverged { .. } => {
                failure.meaning("nothing was shipped, so that neither side loses events").remedy(
                    "compare with `claude-mem verify --remote`, copy missing events to this \
                     machine with `--repair`, or ship to another place",
                )
            }
            E::RolledBack { .. } => failure
                .meaning("entries were deleted, or the remote was rolled back; nothing was shipped")
                .remedy(
                    "bring it up to date from this log with `claude-mem verify --remote \
                     --repair`, or ship to another place",
                ),
            E::NoHosts { .. } => {
                failure.remedy("ship a log there first: `claude-mem ship --to URL`")
            }
            E::SeveralHosts { .. } => failure.remedy("choose one with `--host`"),
            E::Io { ref source, .. } if source.kind() == io::ErrorKind::StorageFull => failure
                .meaning("nothing was left half-done")
                .remedy("free disk space, then run it again"),
            E::Io { .. } => failure,
        }
    }
}
