//! Tools for tests of claude-mem: a scripted model server, a bucket that fails on demand, the real
//! Claude Code client, a storm of killed processes, steady load on a worker, and a
//! pseudo-terminal. All of them need Unix.

#![cfg(unix)]

pub mod azure;
pub mod bucket;
pub mod client;
pub mod client_fixtures;
pub mod crash;
mod http_server;
pub mod model;
pub mod placeholders;
pub mod pseudo_terminal;
pub mod random;
pub mod s3;
pub mod soak;
pub mod tls;
pub mod worker_process;
