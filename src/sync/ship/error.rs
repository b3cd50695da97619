//! What can go wrong with a remote, as facts, and what a user can do about it.

use std::{fmt, io, path::PathBuf};

use crate::ship::credentials;
use claude_mem_core::failure::Failure;

/// Why something could not be done with a remote.
#[derive(Debug)]
pub enum Error {
    /// The place makes no sense.
    Place {
        /// As given.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// Nobody answered, or with something else than an answer.
    Unreachable {
        /// Where.
        place: String,
        /// What was said.
        why: String,
    },
    /// The remote knows us not, or does not let us.
    Denied {
        /// Where.
        place: String,
        /// What was said.
        why: String,
    },
    /// There is nothing to be let in with, or it is of no use.
    Credentials {
        /// Where.
        place: String,
        /// What is wrong with them.
        why: String,
    },
    /// There is no such bucket.
    NoBucket {
        /// As given.
        place: String,
    },
    /// An object that must be there is not.
    Missing {
        /// Its name.
        object: String,
    },
    /// An object is not what was put.
    Damaged {
        /// Its name.
        object: String,
        /// In what way.
        why: String,
    },
    /// An entry is of another log than the one whose place it is in.
    OtherLog {
        /// Its name.
        object: String,
        /// Whose it is.
        found: String,
    },
    /// An object was encrypted, and this is not its key.
    WrongKey {
        /// Its name.
        object: String,
        /// The fingerprint of its key.
        needed: String,
        /// The fingerprint of ours, if there is one.
        ours: Option<String>,
    },
    /// An object is not encrypted, though there is a key: it may have been slipped in.
    NotEncrypted {
        /// Its name.
        object: String,
    },
    /// An object was made by a newer version.
    Newer {
        /// Its name.
        object: String,
    },
    /// The remote has what this log has not: it was shipped from elsewhere, or was lost here.
    Diverged {
        /// Where.
        place: String,
        /// In which way.
        why: String,
    },
    /// The remote is older than what was shipped to it: newest entries were deleted, or it was set back.
    RolledBack {
        /// Where.
        place: String,
        /// The newest entry that is there.
        found: u64,
        /// The newest entry that was put.
        shipped: u64,
    },
    /// There is nothing in the remote.
    NoHosts {
        /// Where.
        place: String,
    },
    /// There are several logs in the remote, and nobody said which.
    WhichHost {
        /// Where.
        place: String,
        /// Those there are, with their names.
        hosts: Vec<String>,
    },
    /// The local log.
    Log(claude_mem_log::Error),
    /// A file of ours.
    Io {
        /// What was being done.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// A file could not be dealt with.
    pub fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { action, path: path.into(), source }
    }

    /// Whether the remote is no copy of this log as it is: damaged, set back, or of another history.
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

    /// Whether trying again later may help, without anybody doing anything.
    pub fn is_passing(&self) -> bool {
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
            Self::Unreachable { place, why } => write!(out, "{place} does not answer: {why}"),
            Self::Denied { place, why } => write!(out, "{place} does not let us in: {why}"),
            Self::Credentials { place, why } => write!(out, "nothing lets us into {place}: {why}"),
            Self::NoBucket { place } => write!(out, "there is no bucket of the name in {place}"),
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
            Self::Newer { object } => {
                write!(out, "{object} was put by a newer version of claude-mem")
            }
            Self::Diverged { place, why } => {
                write!(out, "{place} holds another history of this log: {why}")
            }
            Self::RolledBack { place, found, shipped } => write!(
                out,
                "{place} is older than what was shipped: its newest entry is {found:x}, and {shipped:x} was put"
            ),
            Self::NoHosts { place } => write!(out, "there is no log in {place}"),
            Self::WhichHost { place, hosts } => {
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
                "give a directory, or `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `az://CONTAINER/PREFIX`",
            ),
            E::Unreachable { .. } => failure
                .meaning("nothing is lost: what is not shipped yet is in the local log")
                .remedy("try again when the remote is back; shipping goes on where it stopped"),
            E::Denied { ref place, .. } => failure
                .meaning("nothing was read or changed there")
                .remedy(credentials::remedy_of_denied(place)),
            E::Credentials { ref place, .. } => failure
                .meaning("nothing was asked of it; what is not shipped yet is in the local log")
                .remedy(credentials::remedy(place)),
            E::NoBucket { .. } => failure
                .meaning("nothing is lost: what is not shipped yet is in the local log")
                .remedy("make the bucket where it is to be, or name the right one"),
            E::Missing { .. } | E::Damaged { .. } => failure
                .meaning("the rest of the remote can still be used")
                .remedy("on the machine it came from, mend it with `claude-mem verify --remote --repair`; if that is gone, take what is whole with `claude-mem restore --salvage`"),
            E::OtherLog { .. } => failure
                .meaning("somebody copied objects between logs; nothing was taken from it")
                .remedy("see what is there with `claude-mem verify --remote`"),
            E::WrongKey { .. } => failure
                .meaning("nothing can be read without the key it was made with")
                .remedy("bring it from the other machine: `claude-mem key show` there, `claude-mem key import` here"),
            E::NotEncrypted { .. } => failure
                .meaning("it was shipped before there was a key, or somebody slipped it in; nothing was taken from it")
                .remedy("on the machine it came from, bring the key and ship again; or move `ship.key` away to read it as it is"),
            E::Newer { .. } => {
                failure.meaning("nothing was changed").remedy("use a newer version of claude-mem")
            }
            E::Diverged { .. } => failure
                .meaning("nothing was shipped, so that neither side loses events")
                .remedy("see what differs with `claude-mem verify --remote`, bring home what is missing here with `--repair`, or ship to another place"),
            E::RolledBack { .. } => failure
                .meaning("somebody deleted entries there or set it back; nothing was shipped on top of that")
                .remedy("bring it up to date from this log with `claude-mem verify --remote --repair`, or ship to another place"),
            E::NoHosts { .. } => failure.remedy("ship a log there first: `claude-mem ship --to URL`"),
            E::WhichHost { .. } => failure.remedy("choose one with `--host`"),
            E::Io { ref source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                failure.meaning("nothing was left half-done").remedy("make room, then run it again")
            }
            E::Io { .. } => failure,
        }
    }
}
