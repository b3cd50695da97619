//! `secrets`: counts redactions in ordinary source code.

use std::{collections::BTreeMap, error::Error, fs, path::PathBuf, process::ExitCode};

use claude_mem_tools::placeholders::measure;

use super::say;

/// Extensions of the files to read.
const EXTENSIONS: &[&str] = &[
    "rs", "py", "js", "mjs", "ts", "go", "c", "h", "java", "rb", "md", "json", "toml", "yml",
    "yaml",
];

/// Count the placeholders that redaction leaves in source code, by rule
///
/// Sends every text file below the folders through the hook and counts the placeholders in the log.
/// Source code contains few real secrets, so this is an upper bound of false redactions. Prints
/// Markdown, as saved in `tools/results/secrets.md`.
#[derive(Debug, clap::Args)]
pub(crate) struct Secrets {
    /// The program to test
    #[arg(long, default_value = "target/release/claude-mem")]
    binary: PathBuf,
    /// Print every line with a placeholder
    #[arg(long)]
    show: bool,
    /// A name and a folder, such as `Rust=src`
    #[arg(required = true, value_name = "NAME=FOLDER")]
    folders: Vec<String>,
}

impl Secrets {
    pub(crate) fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let binary = self.binary.canonicalize()?;
        let mut rules = BTreeMap::<String, u64>::new();
        let mut bytes = 0;
        say("| | files | MB | placeholders | per MB |\n|---|---|---|---|---|")?;
        for folder in &self.folders {
            let (name, folder) =
                folder.split_once('=').ok_or("a folder needs a name: `Rust=src`")?;
            let home = tempfile::tempdir()?;
            let report = measure(&binary, home.path(), &fs::canonicalize(folder)?, EXTENSIONS)?;
            say(&format!("| {name} | {report} |"))?;
            for line in report.lines.iter().filter(|_| self.show) {
                eprintln!("{name}: {line}");
            }
            bytes += report.bytes;
            for (rule, count) in report.rules {
                *rules.entry(rule).or_default() += count;
            }
        }
        say("\n| rule | placeholders | per MB |\n|---|---|---|")?;
        let megabytes = (bytes as f64 / 1e6).max(f64::MIN_POSITIVE);
        let mut rules: Vec<_> = rules.into_iter().collect();
        rules.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (rule, count) in rules {
            say(&format!("| {rule} | {count} | {:.3} |", count as f64 / megabytes))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
