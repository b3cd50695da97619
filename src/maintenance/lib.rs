//! Maintenance of the stored log: compaction, retention, repair, and redaction of what is already
//! stored.

pub mod compact;
mod purge;
pub mod redact;
pub mod repair;
pub mod retention;
