//! Maintenance of the stored log: compaction, retention, repair, and redaction of stored events.

pub mod compact;
mod purge;
pub mod redact;
pub mod repair;
pub mod retention;
