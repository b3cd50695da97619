//! Rows to answers: every read of the database that the program makes.

mod alternatives;
mod change_feed;
mod context;
mod costs;
pub mod details;
mod event_lookup;
mod export_view;
mod generations;
mod injections;
mod list_rows;
mod marks;
mod outages;
mod paging;
mod pending;
pub mod search;
mod session_recap;
mod session_view;
mod stats;
mod status;
pub mod timeline;

pub use alternatives::Alternative;
pub use change_feed::{FeedChange, FeedEntry, FeedPosition, InvalidFeedPosition};
pub use context::{ContextMaterial, ContextNote, ContextObservation, ContextQuery, ContextSummary};
pub use costs::{Cost, RequestFailure, Spending};
pub use export_view::{ExportBody, ExportEntry, ExportQuery};
pub use generations::{ComparedObservation, Generation};
pub use injections::{FetchedAfter, Usage};
pub use list_rows::ListRow;
pub use marks::{Correction, Marks, Retired};
pub use outages::{Outage, RulesUsage};
pub use paging::{InvalidPageCursor, PageCursor};
pub use pending::{EventFilter, PendingEvent, PendingKind, PendingTurn, Reprocessing};
pub use session_recap::{RecapEntry, SessionProgress};
pub use session_view::{SessionQuery, SessionView, ToolUseCount};
pub use stats::{DamagedRange, DayStats, ProjectStats};
pub use status::{Counts, PendingCounts, SessionStatus};
