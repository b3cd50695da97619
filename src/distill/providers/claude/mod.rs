//! The user's own Claude Code, as a child for each active session, spoken to over stream-json.
//!
//! The child has no tools, reads no settings, runs no hooks, writes no transcripts and works in an empty
//! directory. It is told what happened elsewhere and shall not touch anything itself: the text it is
//! given is untrusted, so everything that could act on it is shut twice.

mod child;
mod find;
mod pool;
mod stream;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
mod world;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use claude_mem_events::FailureClass;

use super::claude::{
    child::{Child, Start},
    pool::{Lease, Pool},
    world::World,
};
use super::{Answer, Ask, Provider, Refusal, Setup};
use claude_mem_core::{os, paths::create_private, settings::table};

/// After so many questions a child starts anew: what it heard long ago costs tokens with every question.
const TURNS_MAX: u32 = 20;

/// As soon as a question makes the child read this many tokens, the next one starts anew.
const HISTORY_TOKENS_MAX: u64 = 60_000;

/// A child without work holds 200 MB; a pause in a session is often longer than this.
const IDLE_MAX: Duration = Duration::from_secs(180);

struct Claude {
    world: World,
    pool: Pool,
    turns_max: u32,
}

pub(super) fn open(setup: &Setup<'_>) -> Result<Box<dyn Provider>, Refusal> {
    let executable = find::executable(setup)?;
    Ok(Box::new(Claude::new(setup, executable, os::launcher(), IDLE_MAX)?))
}

/// Whether Claude Code is there and runs.
pub(super) fn answers(setup: &Setup<'_>) -> bool {
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
            Refusal::of_settings(format!("{} cannot be made: {error}", cwd.display()))
        })?;
        let environment = world::environment(setup);
        let world = World { executable, launcher, cwd, environment };
        let pool = Pool::new(setup.settings.get(&table::MAX_CONCURRENT_AGENTS), idle_max);
        Ok(Self { world, pool, turns_max: TURNS_MAX })
    }

    /// The child that goes on with the agent session the question names, or a new one.
    fn child(&self, lease: &mut Lease<'_>, question: &Ask) -> Result<Child, Refusal> {
        if let Some(child) = lease.take_child() {
            if child.can_go_on_with(question) {
                return Ok(child);
            }
            child.end();
        }
        Child::start(&self.world, &Start::of(question))
    }
}

impl Provider for Claude {
    /// A child whose turn failed is ended, because the failed question would stay in its conversation.
    fn ask(&self, question: &Ask) -> Result<Answer, Refusal> {
        let deadline = Instant::now() + question.limits.time_max;
        let Some(mut lease) = self.pool.lease(&question.content_session, deadline) else {
            let why =
                "all agents are busy: CLAUDE_MEM_MAX_CONCURRENT_AGENTS is how many there may be";
            return Err(Refusal::new(FailureClass::Transient, why));
        };
        let mut child = self.child(&mut lease, question)?;
        let answer = child.ask(question, deadline)?;
        let is_full = child.turns >= self.turns_max || answer.spent.tokens_in >= HISTORY_TOKENS_MAX;
        if !answer.is_cut && !is_full {
            lease.give_back(child);
        }
        Ok(answer)
    }
}
