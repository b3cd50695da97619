//! A running worker to measure.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use claude_mem_tools::worker_process::{self, WorkerProcess, wait_for};
use serde_json::json;

use crate::bench::{Outcome, Scratch, binary};

/// The unit of process times in Linux, in ticks per second.
const TICK: Duration = Duration::from_millis(10);

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
    ) -> Outcome<Self> {
        let home = scratch.place(name);
        let worker = WorkerProcess::start(&binary()?, &home, environment)?;
        Ok(Self { home, worker })
    }

    /// Waits until no event is unindexed or pending.
    pub(super) fn wait_until_done(&self) -> Outcome<()> {
        let mut lines = self.worker.lines()?;
        wait_for("a worker without work", || {
            let health = lines.ask(&json!({"type": "health"})).ok()?;
            let is_none = |name: &str| health[name]["events"] == 0;
            (is_none("unfolded") && is_none("unanswered")).then_some(())
        })
    }

    /// The number of syncs of the log.
    pub(super) fn syncs(&self) -> Outcome<u64> {
        let health = self.worker.lines()?.ask(&json!({"type": "health"}))?;
        Ok(health["syncs"].as_u64().ok_or("the health of a worker has `syncs`")?)
    }

    /// The number of tool uses in the log.
    pub(super) fn recorded(&self) -> Outcome<usize> {
        let output = command(&self.home, &["log", "--json"], &[])?.output()?;
        let text = String::from_utf8(output.stdout)?;
        Ok(text.lines().filter(|line| line.contains("\"ToolUsed\"")).count())
    }
}

/// The processor time of a process, with all its threads.
pub(super) fn processor(pid: u32) -> Outcome<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // Its name, in brackets, may contain anything.
    let (_, fields) = stat.rsplit_once(')').ok_or("a process has a name")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(TICK * ticks as u32)
}

/// Our binary with this home directory.
pub(super) fn command(
    home: &Path,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Outcome<Command> {
    let mut command = worker_process::command(&binary()?, home, arguments);
    command.envs(environment.iter().copied());
    Ok(command)
}
