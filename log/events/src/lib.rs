//! The events that claude-mem records, and how each is encoded.
//!
//! An event is written once and never changed. Each kind has its own file with its type, its number
//! on disk, every older version, and a test that fixes its bytes. Unknown kinds are kept unchanged:
//! they can be shipped, skipped, and read by a version that knows them.
//!
//! A payload is an [`Envelope`] (machine, client, session, project; the same for all kinds)
//! followed by the event's own body. The time is part of the record's [`Id`].
#![warn(missing_docs)]

#[macro_use]
mod define_event;

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
mod memory_injected;
mod memory_revised;
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
pub use define_event::{TextForm, Versioned, VisitTexts};
pub use envelope::{Envelope, Project};
pub use event_log::{EventItem, EventLog, EventReader, Recorded};
pub use forgotten::Forgotten;
pub use imported::Imported;
pub use input_unreadable::InputUnreadable;
pub use log_compacted::LogCompacted;
pub use memory_added::{MemoryAdded, NoteScope};
pub use memory_injected::{InjectionMoment, MemoryInjected, ObservationRef};
pub use memory_revised::{MemoryRevised, Revision};
pub use project_merged::ProjectMerged;
pub use prompt_submitted::{PromptSubmitted, Submitter};
pub use reprocess_finished::ReprocessFinished;
pub use reprocess_started::ReprocessStarted;
pub use session_ended::SessionEnded;
pub use session_started::SessionStarted;
pub use summary_requested::{Remark, RemarkKind, StopScope, SummaryRequested};
pub use tombstone::Tombstone;
pub use tool_used::ToolUsed;

use claude_mem_log::Error;
use serde::{Deserialize, Deserializer, Serialize as _, Serializer};
use std::fmt;

/// Why a record cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// Written by a newer version of claude-mem.
    Version {
        /// The kind.
        kind: u16,
        /// Its version.
        version: u16,
    },
    /// Encoded with an unknown codec.
    Codec(u8),
    /// The body does not match its kind and version.
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
        /// An event.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Event {
            $($(#[$doc])* $name($name),)*
            /// The payload was erased; that it happened, and when, is still known.
            Erased {
                /// Its kind.
                kind: u16,
                /// Its tombstone, if there is one.
                left: Option<Box<Tombstone>>,
            },
            /// Of a kind or version that this program does not know. Kept unchanged.
            Unknown {
                /// Its kind.
                kind: u16,
                /// Version of that kind.
                version: u16,
                /// Its codec.
                codec: u8,
                /// The whole payload.
                payload: Vec<u8>,
            },
        }

        impl Event {
            /// The name of its kind.
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

            /// Serializes its fields, for people and scripts. The encoding on disk is another one.
            pub fn serialize_body<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$name(body) => body.serialize(serializer),)*
                    Self::Erased { .. } => serializer.serialize_unit(),
                    Self::Unknown { payload, .. } => serializer.serialize_bytes(payload),
                }
            }

            /// Deserializes the output of [`serialize_body`](Self::serialize_body) by the name of a
            /// kind. Fields that an older version did not have get their default value. `None` for
            /// an unknown kind or a newer version.
            pub fn deserialize_body<'de, D: Deserializer<'de>>(
                name: &str,
                version: u16,
                deserializer: D,
            ) -> Result<Option<Self>, D::Error> {
                match name {
                    $(stringify!($name) if (1..=$name::VERSION).contains(&version) => {
                        $name::deserialize(deserializer).map(|body| Some(Self::$name(body)))
                    })*
                    _ => Ok(None),
                }
            }

            /// The version that is written.
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

        impl VisitTexts for Event {
            /// A record of an unknown kind cannot be read, so it has no texts.
            fn visit_texts(&mut self, visit: &mut dyn FnMut(TextForm, &mut String)) {
                match self {
                    $(Self::$name(body) => body.visit_texts(visit),)*
                    Self::Erased { left, .. } => {
                        if let Some(left) = left {
                            left.visit_texts(visit);
                        }
                    }
                    Self::Unknown { .. } => {}
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
    /// A session of the assistant began or was resumed.
    SessionStarted,
    /// A prompt was submitted, by the user or by the client itself.
    PromptSubmitted,
    /// The assistant ran a tool and saw its result.
    ToolUsed,
    /// The assistant stopped: a summary is requested.
    SummaryRequested,
    /// The session ended.
    SessionEnded,
    /// The agent replied to a request about some events.
    AgentReplied,
    /// The agent did not reply, or its reply was unreadable.
    AgentFailed,
    /// Reprocessing of earlier events began.
    ReprocessStarted,
    /// Reprocessing is complete or was cancelled.
    ReprocessFinished,
    /// A memory written by hand.
    MemoryAdded,
    /// Something is forgotten, or a forgetting is undone.
    Forgotten,
    /// One row of another store.
    Imported,
    /// The input of a hook could not be parsed.
    InputUnreadable,
    /// Two projects were merged.
    ProjectMerged,
    /// The log is compacted up to here.
    LogCompacted,
    /// A session was given memories.
    MemoryInjected,
    /// A memory was corrected by hand.
    MemoryRevised,
}
