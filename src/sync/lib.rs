//! Backup and synchronisation: the log is shipped to a remote, and other machines' logs are pulled from it.

pub mod pull;
pub mod ship;
