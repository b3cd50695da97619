//! `bench`: the figures that were promised, measured.

use crate::bench::{self, GROUPS, Scratch, Settings};
use std::{env, error::Error, path::PathBuf, process::ExitCode};

/// Measure what was promised
///
/// Each figure compares things that take turns within one run, and counts their fastest turns, because a
/// time by itself says more about the machine than about the program. Prints a report in Markdown.
///
/// Build it optimised, without the slow linking of a release:
/// `cargo build --profile bench -p claude-mem-tools`, then run `target/release/claude-mem-tools bench log`.
/// `hooks` measures the release: `cargo build --release --bin claude-mem` first. A full run of `log` takes some minutes and 12 GB of disk, and gives the space back.
#[derive(Debug, clap::Args)]
pub(crate) struct Bench {
    /// What to measure: `log`, `hooks`, `fold`, `ask`
    #[arg(required_unless_present = "child")]
    group: Option<String>,

    /// Measure only this: for `log` append, read, space, memory, compression, processes; for `hooks` save, parallel, memory; for `ask` tokens
    #[arg(long, value_name = "FIGURE")]
    only: Option<String>,

    /// Use tiny sizes and leave the other engines out: shows that it runs, measures nothing
    #[arg(long)]
    quick: bool,

    /// Leave the other engines out; building them takes a minute the first time
    #[arg(long)]
    no_peers: bool,

    /// Make logs below this directory, which should be on a disk [default: the system's for temporary files]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,

    /// Compress the files in this directory as well, as samples of what is recorded
    #[arg(long, value_name = "DIR")]
    samples: Option<PathBuf>,

    /// Keep the report in this directory, as Markdown and JSON, such as `tools/results`
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// What a figure needs to be done in a process of its own
    #[arg(long, hide = true, num_args = 1.., value_name = "WORD")]
    child: Vec<String>,
}

impl Bench {
    pub(crate) fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        if !self.child.is_empty() {
            return bench::child(&self.child).map(|()| ExitCode::SUCCESS);
        }
        let name = self.group.unwrap_or_default();
        let Some(group) = GROUPS.iter().find(|group| group.name == name) else {
            let names: Vec<_> = GROUPS.iter().map(|group| group.name).collect();
            return Err(
                format!("there is no `{name}` to measure; there is {}", names.join(", ")).into()
            );
        };
        let peers = !self.quick && !self.no_peers;
        let settings = Settings { quick: self.quick, peers, samples: self.samples };
        let scratch = Scratch::below(&self.scratch.unwrap_or_else(env::temp_dir))?;
        let report = bench::run(group, self.only.as_deref(), &settings, &scratch)?;
        super::say(&report.to_string())?;
        if let Some(out) = &self.out {
            bench::write(&report, out)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
