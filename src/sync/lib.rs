//! Backup and synchronization: ships the log to a remote, and pulls the logs of other hosts.

pub mod pull;
pub mod ship;
