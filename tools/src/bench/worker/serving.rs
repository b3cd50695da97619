//! A running worker to measure.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use claude_mem_tools::worker_process::{self, WorkerProcess, wait_for};
use serde_json::json;

use crate::bench::{BenchResult, Scratch, binary};

/// A worker, and its home directory.
pub(super) struct Serving {
    pub(super) home: PathBuf,
    pub(super) worker: WorkerProcess,
}

impl Serving {
    pub(super) fn start(
        scratch: &Scratch,
        name: &str,
        environment: &[(&str, &str)],
    ) -> BenchResult<Self> {
        let home = scratch.place(name);
        let worker = WorkerProcess::start(&binary()?, &home, environment)?;
        Ok(Self { home, worker })
    }

    /// Waits until no event is unindexed or pending.
    pub(super) fn wait_until_done(&self) -> BenchResult<()> {
        let mut lines = self.worker.lines()?;
        wait_for("a worker without work", || {
            let health = lines.ask(&json!({"type": "health"})).ok()?;
            let is_none = |name: &str| health[name]["events"] == 0;
            (is_none("unfolded") && is_none("unanswered")).then_some(())
        })
    }
}

/// Our binary with this home directory.
pub(super) fn command(
    home: &Path,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> BenchResult<Command> {
    let mut command = worker_process::command(&binary()?, home, arguments);
    command.envs(environment.iter().copied());
    Ok(command)
}
