//! Reading the log: forwards, backwards, and as it grows.

pub(crate) mod backwards;
pub(crate) mod dedup;
pub(crate) mod item;
pub(crate) mod log;
mod readahead;
pub(crate) mod reader;
pub(crate) mod rewritten;
pub(crate) mod segment;
pub(crate) mod tail;
