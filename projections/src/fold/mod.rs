//! Events to rows: the projections, folding new events into the database, and rebuilding it.

mod batch;
mod compactions;
mod corrections;
mod decision_text;
mod duplicates;
pub(crate) mod files_touched;
pub(crate) mod forgettings;
pub(crate) mod fts_rebuild;
mod imports;
mod incremental;
mod injections;
mod log_history;
mod observations;
pub(crate) mod projection;
mod projects;
pub(crate) mod prompts;
pub(crate) mod rebuild;
mod replacements;
mod replies;
mod reprocesses;
mod revisions;
pub(crate) mod sessions;
mod sources;
mod stops;
mod summaries;
mod tool_uses;
mod unreadable;

pub use compactions::Compacted;
pub(crate) use compactions::Compactions;
pub use corrections::names_observation;
pub use imports::imported_tool_use;
pub use incremental::{FoldState, Folded, RebuildReason};
pub use log_history::HistoryRebuild;
pub use projection::{Projection, Rows};
pub use rebuild::rebuild;
pub use replies::is_parked_after;
pub use sessions::SILENCE_US;

/// Every projection, in the order in which each event is applied: later ones read the rows of
/// earlier ones.
pub const ALL: &[&dyn Projection] = &[
    &projects::Projects,
    &sessions::Sessions,
    &prompts::Prompts,
    &tool_uses::ToolUses,
    &stops::Stops,
    &replies::Replies,
    &observations::Observations,
    &corrections::Corrections,
    &replacements::Replacements,
    &summaries::Summaries,
    &reprocesses::Reprocesses,
    &forgettings::Forgettings,
    &imports::Imports,
    &unreadable::Unreadable,
    &compactions::Compactions,
    &injections::Injections,
    &revisions::Revisions,
];
