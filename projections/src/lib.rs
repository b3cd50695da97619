//! Events to rows, and rows to answers: the only SQL in claude-mem.
//!
//! [`Store`] is the database. [`Store::fold`] reads the log in order and writes rows; [`rebuild()`]
//! writes all of them into a new file. Everything is derived: the same log gives the same rows,
//! byte for byte.
//!
//! - [`fold`]: events to rows. Each [`Projection`] defines which rows an event becomes.
//! - [`query`]: rows to answers.
//! - [`maintain`]: what to forget and erase, vacuuming, dumps.
//!
//! Below them: `store` (opening, files and schema of the database), `hosts` (the logs of several
//! machines in one database), [`xml`] (parsing an agent's reply) and `fts_terms` (additional search
//! terms).

mod error;
pub mod fold;
mod fts_terms;
mod hosts;
pub mod maintain;
mod opencode;
pub mod query;
#[cfg(test)]
mod scan_counter;
mod store;
#[cfg(test)]
mod test_log;
pub mod text;
mod upstream;
pub mod xml;

pub use error::{Error, Result};
pub use fold::{
    ALL, Compacted, FoldState, Folded, HistoryRebuild, Projection, RebuildReason, Rows, SILENCE_US,
    imported_tool_use, is_parked_after, names_observation, rebuild,
};
pub use hosts::{
    HOSTS_MAX, Host, HostLog, HostState, host_logs, host_of, local_seq, redact_foreign,
};
pub use maintain::{
    Eraser, Erasure, ForgetPreview, ForgetTargets, Forgetting, MemorySource, Vacuumed,
};
pub use opencode::{OpenCodeRecords, OpenCodeSession};
pub use query::{
    Alternative, AutoMemoryNote, ComparedObservation, ContextMaterial, ContextNote,
    ContextObservation, ContextQuery, ContextSession, ContextSummary, Correction, Cost, Counts,
    DamagedRange, DayStats, EventFilter, EventQuery, EventRow, ExportBody, ExportEntry,
    ExportQuery, FeedChange, FeedEntry, FeedPosition, FetchedAfter, FileCount, FileQuery,
    Generation, InvalidFeedPosition, InvalidPageCursor, ListRow, Marks, Outage, PageCursor,
    PendingCounts, PendingEvent, PendingKind, PendingTurn, ProjectAlias, ProjectStats, RecapEntry,
    Reprocessing, RequestFailure, Retired, RulesUsage, SessionProgress, SessionQuery, SessionState,
    SessionStatus, SessionView, Spending, SqlRows, ToolUseCount, Usage, details, file_edits,
    report, search, timeline,
};
pub use store::{Checkpoint, KINDS, Options, Store};
pub use upstream::{Upstream, UpstreamRow, UpstreamTable};
