//! A real S3-compatible server for tests: Garage, a single node of it.
//!
//! It is the published crate, built once as a program of its own (see [`executable`]); nothing of it is linked
//! with ours. Each [`S3Server`] has its own directory, ports, key and empty bucket, and is gone with its value.

mod install;
mod server;

pub use install::{S3Error, VERSION, executable};
pub use server::S3Server;
