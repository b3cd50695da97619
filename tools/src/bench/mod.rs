//! Benchmarks: groups of figures, each a comparison within one run.
//!
//! The machines are shared and noisy, so no figure is an absolute time. Contestants take turns,
//! round after round; the ratio of the fastest turns counts, and that of the medians is shown. A
//! group is one file with a function, and one line in [`GROUPS`].

pub(crate) mod all;
mod contest;
mod fold;
mod hooks;
mod log;
mod machine;
mod recall;
mod report;
mod scratch;
mod vectors;
mod worker;

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

pub(crate) use contest::{Contestant, Samples, contest, time};
pub(crate) use report::{Figure, Report, Row, Verdict};
pub(crate) use scratch::Scratch;

pub(crate) type BenchResult<T> = Result<T, Box<dyn Error>>;

/// A group of figures.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// The figures, by their names for `--only`.
    pub(crate) figures: &'static [(&'static str, Measure)],
}

/// Measures one figure, or a few that need the same preparation.
pub(crate) type Measure = fn(Settings, &Scratch) -> BenchResult<Vec<Figure>>;

/// Every group.
pub(crate) const GROUPS: &[Group] = &[
    log::LOG,
    hooks::HOOKS,
    hooks::ADDED,
    fold::FOLD,
    recall::RECALL,
    worker::WORKER,
    vectors::VECTORS,
];

/// Options of a benchmark.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// Tiny sizes, to check that everything runs. The figures mean nothing.
    pub(crate) quick: bool,
}

impl Settings {
    /// Chooses one of two sizes.
    pub(crate) fn size(self, full: u64, quick: u64) -> u64 {
        if self.quick { quick } else { full }
    }
}

/// Measures a group, or one figure of it.
pub(crate) fn run(
    group: &Group,
    only: Option<&str>,
    settings: Settings,
    scratch: &Scratch,
) -> BenchResult<Report> {
    let wanted: Vec<_> =
        group.figures.iter().filter(|(name, _)| only.is_none_or(|only| only == *name)).collect();
    if wanted.is_empty() {
        let names: Vec<_> = group.figures.iter().map(|(name, _)| *name).collect();
        return Err(format!("`{}` has only: {}", group.name, names.join(", ")).into());
    }
    let mut report = Report {
        group: group.name,
        about: group.about,
        machine: machine::describe_machine(scratch.path()),
        quick: settings.quick,
        figures: Vec::new(),
    };
    for (name, measure) in wanted {
        eprintln!("{} {name} …", group.name);
        report.figures.extend(measure(settings, scratch)?);
    }
    Ok(report)
}

/// The binary to measure: the given one, or the one next to this program.
pub(crate) fn binary() -> BenchResult<PathBuf> {
    let named = env::var_os("CLAUDE_MEM_BINARY").map(PathBuf::from);
    let found = named.unwrap_or(env::current_exe()?.with_file_name("claude-mem"));
    match found.is_file() {
        true => Ok(found),
        false => Err(format!(
            "there is no {}: build it with `cargo build --release --bin claude-mem`, or name \
             another in CLAUDE_MEM_BINARY",
            found.display()
        )
        .into()),
    }
}

/// Runs a part of a figure in a child process: `bench child …`.
pub(crate) fn child(words: &[String]) -> BenchResult<()> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["fold", ref rest @ ..] => fold::child(rest),
        _ => log::child(&words),
    }
}

/// Saves a report as Markdown and as JSON.
pub(crate) fn write(report: &Report, dir: &Path) -> BenchResult<()> {
    fs::create_dir_all(dir)?;
    fs::write(dir.join(format!("{}.md", report.group)), report.to_string())?;
    let json = serde_json::to_string_pretty(report)?;
    Ok(fs::write(dir.join(format!("{}.json", report.group)), json + "\n")?)
}
