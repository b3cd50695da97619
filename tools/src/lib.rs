//! What the tests of claude-mem stand on: a scripted model server, a bucket that lies, the real Claude Code
//! client, a storm of killed processes, one of socket events, and steady load on a worker. All of it needs Unix.

#![cfg(unix)]

pub mod azure;
pub mod bucket;
pub mod client;
pub mod client_fixtures;
pub mod crash;
pub mod model;
pub mod placeholders;
pub mod s3;
pub mod soak;
pub mod socket_storm;
pub mod tls;
