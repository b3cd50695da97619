//! Events to rows, and rows to answers: the only SQL in claude-mem.
//!
//! [`Store`] is the database. [`Store::fold`] reads the log in order and writes rows; [`rebuild()`] draws all
//! of them again into a new file. Each file here that implements [`Projection`] says which rows an event
//! becomes. Everything is derived: the same log gives the same rows, byte for byte.

mod addresses;
mod asking;
mod chronicle;
mod columns;
mod compactions;
mod context;
mod copies;
mod costs;
mod daily;
pub mod details;
mod dump;
mod erasing;
mod error;
mod evidence;
mod files;
mod fold;
mod forgetting;
mod forgettings;
mod generations;
mod hosts;
mod imports;
mod indexing;
mod kin;
mod known;
mod listed;
#[cfg(test)]
mod looks;
mod news;
mod observations;
mod open;
mod outages;
mod outstanding;
mod pages;
mod past;
mod projection;
mod projects;
mod prompts;
mod rebuild;
mod replies;
mod reprocesses;
#[cfg(test)]
mod scene;
mod schema;
pub mod search;
mod sessions;
mod shared;
mod sources;
mod standing;
mod stops;
mod store;
mod stories;
mod summaries;
mod system;
mod tidying;
pub mod timeline;
mod tool_uses;
mod unreadable;
mod upstream;
pub mod words;
pub mod xml;

pub use addresses::{Addressed, Forgetting};
pub use asking::{Progress, Remembered};
pub use chronicle::{Chapter, Chronicle, Entry};
pub use compactions::Compacted;
pub use context::{Material, Memory, Note, Summary, Wanted};
pub use costs::{Cost, Failure, Spent};
pub use daily::{Damage, Day, Share};
pub use erasing::{Eraser, Erasure};
pub use error::{Error, Result};
pub use fold::{Folded, Redraw, State};
pub use forgetting::{Touching, WouldForget};
pub use generations::{Compared, Generation};
pub use hosts::{Foreign, HOSTS_MAX, Host, HostState, at_home, foreign, log_of};
pub use imports::imported_tool_use;
pub use kin::Telling;
pub use listed::Listed;
pub use news::{Happened, Heard, News, NotHeard};
pub use outages::{ByRules, Outage};
pub use outstanding::{Pending, Range, Reprocessing, Turn, Waiting};
pub use pages::{Mark, NotAMark};
pub use past::Rebuilt;
pub use projection::{Projection, Rows};
pub use rebuild::rebuild;
pub use replies::ATTEMPTS_MAX;
pub use sessions::SILENCE_US;
pub use standing::{Counts, Lag, Session};
pub use store::{Checkpoint, KINDS, Options, Store};
pub use stories::{Told, Uses, Which};
pub use tidying::Tidied;
pub use upstream::{Upstream, UpstreamRow, UpstreamTable};

/// Every projection, in the order in which each event is shown to them: later ones read the rows of
/// earlier ones.
pub const ALL: &[&dyn Projection] = &[
    &projects::Projects,
    &sessions::Sessions,
    &prompts::Prompts,
    &tool_uses::ToolUses,
    &stops::Stops,
    &replies::Replies,
    &observations::Observations,
    &summaries::Summaries,
    &reprocesses::Reprocesses,
    &forgettings::Forgettings,
    &imports::Imports,
    &unreadable::Unreadable,
    &compactions::Compactions,
];
