//! The memory service between the tables and the front ends: opening the store, the context of a session, notes
//! written by hand, forgetting, and the modes that say which kinds of observations there are.

pub mod context;
pub mod forget;
pub mod modes;
pub mod remember;
pub mod store;
