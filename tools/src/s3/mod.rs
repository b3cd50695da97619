//! A real S3-compatible server for tests: a single node of Garage.
//!
//! It is the published crate, built once as a separate program (see [`executable`]) and not linked
//! with ours. Each [`S3Server`] has its own directory, ports, key and empty bucket, and is deleted
//! when dropped.

mod install;
mod server;

pub use install::{S3Error, VERSION, executable};
pub use server::S3Server;
