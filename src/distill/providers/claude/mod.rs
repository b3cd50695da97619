//! The user's own Claude Code: one child process per active session, over stream-json.
//!
//! The child has no tools, reads no settings, runs no hooks, writes no transcripts and works in an
//! empty directory. The text it receives is untrusted, so everything that could act on it is
//! disabled twice.

mod child;
mod find;
mod launch;
mod pool;
mod stream;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use claude_mem_events::FailureClass;

use super::claude::{
    child::{Child, ChildSpec},
    launch::LaunchConfig,
    pool::{Lease, Pool},
};
use super::{Provider, Refusal, Request, Response, Setup};
use claude_mem_core::{os, paths::create_private, settings::table};

/// A child is replaced after this many requests: its history costs tokens with every request.
const TURNS_MAX: u32 = 20;

/// A child is replaced once a request makes it read this many tokens.
const HISTORY_TOKENS_MAX: u64 = 60_000;

/// An idle child uses 200 MB; pauses in a session are often longer than this.
const IDLE_MAX: Duration = Duration::from_secs(180);

pub use find::client_version;

struct Claude {
    launch: LaunchConfig,
    pool: Pool,
    turns_max: u32,
}

pub(super) fn open(setup: &Setup<'_>) -> Result<Box<dyn Provider>, Refusal> {
    let executable = find::executable(setup)?;
    Ok(Box::new(Claude::new(setup, executable, os::launcher(), IDLE_MAX)?))
}

/// Whether Claude Code is installed and runs.
pub(super) fn is_available(setup: &Setup<'_>) -> bool {
    find::executable(setup).is_ok()
}

impl Claude {
    fn new(
        setup: &Setup<'_>,
        executable: PathBuf,
        launcher: PathBuf,
        idle_max: Duration,
    ) -> Result<Self, Refusal> {
        let cwd = setup.paths.data.join("observer-sessions");
        create_private(&cwd).map_err(|error| {
            Refusal::of_settings(format!("cannot create {}: {error}", cwd.display()))
        })?;
        let environment = launch::environment(setup);
        let launch = LaunchConfig { executable, launcher, cwd, environment };
        let pool = Pool::new(setup.settings.get(&table::MAX_CONCURRENT_AGENTS), idle_max);
        Ok(Self { launch, pool, turns_max: TURNS_MAX })
    }

    /// The child that continues the agent session of the request, or a new one.
    fn child(&self, lease: &mut Lease<'_>, request: &Request) -> Result<Child, Refusal> {
        if let Some(child) = lease.take_child() {
            if child.can_continue(request) {
                return Ok(child);
            }
            child.end();
        }
        Child::start(&self.launch, &ChildSpec::of(request))
    }
}

impl Provider for Claude {
    /// A child whose turn failed is ended, because the failed request would stay in its
    /// conversation.
    fn send(&self, request: &Request) -> Result<Response, Refusal> {
        let deadline = Instant::now() + request.limits.time_max;
        let Some(mut lease) = self.pool.lease(&request.content_session, deadline) else {
            let why = "all agents are busy; CLAUDE_MEM_MAX_CONCURRENT_AGENTS sets their number";
            return Err(Refusal::new(FailureClass::Transient, why));
        };
        let mut child = self.child(&mut lease, request)?;
        let response = child.send(request, deadline)?;
        let is_full =
            child.turns >= self.turns_max || response.spent.tokens_in >= HISTORY_TOKENS_MAX;
        if !response.is_cut && !is_full {
            lease.give_back(child);
        }
        Ok(response)
    }
}
