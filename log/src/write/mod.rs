//! Writing the log: appending, syncing, rolling and sealing segments, spilling and merging.

pub(crate) mod maintain;
pub(crate) mod roll;
pub(crate) mod seal;
pub(crate) mod spill;
pub(crate) mod sync;
pub(crate) mod writer;
