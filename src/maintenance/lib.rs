//! Maintenance of the stored log: compaction, retention, and redaction of what is already stored.

pub mod compact;
mod purge;
pub mod redact;
pub mod retention;
