//! Reading the log: forwards, backwards, and as it grows.

pub(crate) mod backwards;
pub(crate) mod item;
pub(crate) mod log;
pub(crate) mod reader;
pub(crate) mod rewritten;
pub(crate) mod seen_ids;
pub(crate) mod segment;
pub(crate) mod tail;
