//! The facts that claude-mem records, and how each becomes bytes.
//!
//! An event is written once and never changed. Each kind has a file of its own with its type, its number
//! on disk, every older version, and a test that fixes its bytes. Kinds that this version does not know
//! are kept as they are: they can be shipped, skipped, and read by a version that knows them.
//!
//! A payload is an [`Envelope`] (who and where, the same for all kinds) followed by the event's own body.
//! When it happened is part of the record's [`Id`].
#![warn(missing_docs)]

mod agent_failed;
mod agent_replied;
mod blank;
mod codec;
mod envelope;
mod event_log;
mod forgotten;
mod imported;
mod input_unreadable;
mod log_compacted;
mod memory_added;
mod project_merged;
mod prompt_submitted;
mod reprocess_finished;
mod reprocess_started;
mod session_ended;
mod session_started;
mod summary_requested;
mod tombstone;
mod tool_used;

pub use agent_failed::{AgentFailed, FailureClass};
pub use agent_replied::AgentReplied;
pub use claude_mem_log::{Gap, Id, Seq};
pub use envelope::{Envelope, Project};
pub use event_log::{EventItem, EventLog, EventReader, Recorded};
pub use forgotten::Forgotten;
pub use imported::Imported;
pub use input_unreadable::InputUnreadable;
pub use log_compacted::LogCompacted;
pub use memory_added::MemoryAdded;
pub use project_merged::ProjectMerged;
pub use prompt_submitted::{PromptSubmitted, Submitter};
pub use reprocess_finished::ReprocessFinished;
pub use reprocess_started::ReprocessStarted;
pub use session_ended::SessionEnded;
pub use session_started::SessionStarted;
pub use summary_requested::{StopScope, SummaryRequested};
pub use tombstone::Tombstone;
pub use tool_used::ToolUsed;

use claude_mem_log::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// An event whose body has versions.
pub trait Versioned: Sized + Serialize {
    /// Its number on disk, for ever; never reused.
    const KIND: u16;
    /// What we write. Every older one we still read.
    const VERSION: u16;
    /// Reads a body of any version so far.
    fn read(version: u16, body: &[u8]) -> Result<Self, DecodeError>;
}

/// Why bytes are not the event they claim to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// Written by a newer version of claude-mem.
    Version {
        /// The kind.
        kind: u16,
        /// Its version.
        version: u16,
    },
    /// Encoded in a way that this version does not know.
    Codec(u8),
    /// Not what the kind and version promise.
    Malformed(String),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { kind, version } => {
                write!(out, "version {version} of event kind {kind} is newer than this program")
            }
            Self::Codec(codec) => write!(out, "codec {codec} is newer than this program"),
            Self::Malformed(why) => write!(out, "not a readable event: {why}"),
        }
    }
}

impl std::error::Error for DecodeError {}

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A fact.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Event {
            $($(#[$doc])* $name($name),)*
            /// Its payload was removed for good; that it happened, and when, is still known.
            Erased {
                /// What it was.
                kind: u16,
                /// What is left of it, if anything is.
                left: Option<Box<Tombstone>>,
            },
            /// Of a kind or version that this program does not know. Kept intact.
            Unknown {
                /// What it is, to whoever wrote it.
                kind: u16,
                /// Version of that kind.
                version: u16,
                /// How it is encoded.
                codec: u8,
                /// Everything that was recorded.
                payload: Vec<u8>,
            },
        }

        impl Event {
            /// Its name, as shown to people.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => stringify!($name),)*
                    Self::Erased { kind, .. } | Self::Unknown { kind, .. } => Self::name_of(*kind),
                }
            }

            /// The name of a kind.
            pub fn name_of(kind: u16) -> &'static str {
                match kind {
                    $($name::KIND => stringify!($name),)*
                    _ => "Unknown",
                }
            }

            /// Its number on disk.
            pub fn kind(&self) -> u16 {
                match self {
                    $(Self::$name(_) => $name::KIND,)*
                    Self::Erased { kind, .. } | Self::Unknown { kind, .. } => *kind,
                }
            }

            /// The names of all kinds that this program knows.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// Gives what it says to any serializer, field by field, for people and for scripts. On disk
            /// it has a form of its own.
            pub fn serialize_body<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$name(body) => body.serialize(serializer),)*
                    Self::Erased { .. } => serializer.serialize_unit(),
                    Self::Unknown { payload, .. } => serializer.serialize_bytes(payload),
                }
            }

            /// Reads what [`serialize_body`](Self::serialize_body) gave, of a kind by its name. `None` if this
            /// program knows no such kind, or another version of it.
            pub fn deserialize_body<'de, D: Deserializer<'de>>(
                name: &str,
                version: u16,
                deserializer: D,
            ) -> Result<Option<Self>, D::Error> {
                match name {
                    $(stringify!($name) if version == $name::VERSION => {
                        $name::deserialize(deserializer).map(|body| Some(Self::$name(body)))
                    })*
                    _ => Ok(None),
                }
            }

            /// The version of its kind that it is written in.
            pub fn version(&self) -> u16 {
                match self {
                    $(Self::$name(_) => $name::VERSION,)*
                    Self::Erased { .. } => 0,
                    Self::Unknown { version, .. } => *version,
                }
            }

            fn write_body(&self, out: &mut Vec<u8>) -> Result<(), Error> {
                match self {
                    $(Self::$name(body) => codec::write(body, out)?,)*
                    Self::Erased { .. } => {}
                    Self::Unknown { payload, .. } => out.extend_from_slice(payload),
                }
                Ok(())
            }

            fn read_body(kind: u16, version: u16, body: &[u8]) -> Result<Option<Self>, DecodeError> {
                match kind {
                    $($name::KIND => $name::read(version, body).map(|body| Some(Self::$name(body))),)*
                    _ => Ok(None),
                }
            }
        }

        $(impl From<$name> for Event {
            fn from(event: $name) -> Self {
                Self::$name(event)
            }
        })*
    };
}

events! {
    /// A session of the assistant began, or went on.
    SessionStarted,
    /// A prompt was submitted, by the user or by the client itself.
    PromptSubmitted,
    /// The assistant ran a tool and saw its result.
    ToolUsed,
    /// The assistant stopped: a good moment to sum up.
    SummaryRequested,
    /// The session ended.
    SessionEnded,
    /// The agent answered a question about some events.
    AgentReplied,
    /// The agent did not answer, or not readably.
    AgentFailed,
    /// Some of the past is being put to the agent again.
    ReprocessStarted,
    /// Reprocessing is complete, or was given up.
    ReprocessFinished,
    /// A memory written by hand.
    MemoryAdded,
    /// Something is to be forgotten, or a forgetting is taken back.
    Forgotten,
    /// One row of another store.
    Imported,
    /// A hook was given something that is not what a hook is given.
    InputUnreadable,
    /// Two projects are one.
    ProjectMerged,
    /// From here on, what is no longer needed of the past is removed from it.
    LogCompacted,
}
