//! `bench`: runs the benchmarks.

use crate::bench::{self, GROUPS, Group, Scratch, Settings};
use std::{
    env,
    error::Error,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Measure all figures that have a bound
///
/// Each figure compares contestants that take turns within one run, by their fastest turns, because
/// an absolute time depends more on the machine than on the program. Prints a report in Markdown.
///
/// Build it optimised: `cargo build --profile bench -p claude-mem-tools`, then run
/// `target/release/claude-mem-tools bench log`. Build the release last (`cargo build --release
/// --bin claude-mem`): `hooks` measures that. A full run of `log` takes some minutes and 12 GB of
/// disk, which it frees. `all` writes every report and one table of all figures.
#[derive(Debug, clap::Args)]
pub(crate) struct Bench {
    /// The group of figures to measure, or `all`
    #[arg(required_unless_present = "child")]
    group: Option<String>,

    /// Measure only this figure of the group; a wrong name lists them
    #[arg(long, value_name = "FIGURE")]
    only: Option<String>,

    /// With `all`: measure nothing, and render the table from the saved reports
    #[arg(long)]
    kept: bool,

    /// Use tiny sizes: shows that it runs, measures nothing
    #[arg(long)]
    quick: bool,

    /// Create logs below this directory, which should be on a disk [default: the system's temporary
    /// directory]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,

    /// Save the report in this directory, as Markdown and JSON, such as `tools/results`
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Run the part of a figure that needs its own process
    #[arg(long, hide = true, num_args = 1.., value_name = "WORD")]
    child: Vec<String>,
}

impl Bench {
    pub(crate) fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        if !self.child.is_empty() {
            return bench::child(&self.child).map(|()| ExitCode::SUCCESS);
        }
        let name = self.group.clone().unwrap_or_default();
        let chosen: Vec<&Group> = match name.as_str() {
            "all" => GROUPS.iter().collect(),
            _ => GROUPS.iter().filter(|group| group.name == name).collect(),
        };
        if chosen.is_empty() {
            let names: Vec<_> = GROUPS.iter().map(|group| group.name).collect();
            return Err(format!(
                "there is no `{name}` to measure; there is all, {}",
                names.join(", ")
            )
            .into());
        }
        let out = match name.as_str() {
            "all" => Some(self.out.clone().unwrap_or_else(|| PathBuf::from("tools/results"))),
            _ => self.out.clone(),
        };
        if !self.kept {
            self.measure(&chosen, out.as_deref())?;
        }
        if let ("all", Some(out)) = (name.as_str(), &out) {
            super::say(&bench::all::draw_all(out)?)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn measure(&self, chosen: &[&Group], out: Option<&Path>) -> Result<(), Box<dyn Error>> {
        let settings = Settings { quick: self.quick };
        for group in chosen {
            let scratch = Scratch::below(&self.scratch.clone().unwrap_or_else(env::temp_dir))?;
            let report = bench::run(group, self.only.as_deref(), settings, &scratch)?;
            super::say(&report.to_string())?;
            if let Some(out) = out {
                bench::write(&report, out)?;
            }
        }
        Ok(())
    }
}
