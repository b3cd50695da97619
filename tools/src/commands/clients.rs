//! `clients`: runs captured payloads of real clients through the built binary.

use std::{error::Error, fs, path::PathBuf, process::ExitCode};

use claude_mem_tools::client_fixtures::{Row, expected_kind, missing, run, table};

use super::say;

/// Run captured hook payloads of clients through claude-mem
///
/// The directory has a folder for each client. Prints a line for each payload. Fails if a payload
/// gives another kind of event than its file name, if its prompt, command, file or answer is not in
/// the event, or if the hook is not a silent success.
#[derive(Debug, clap::Args)]
pub(crate) struct Clients {
    /// The directory
    directory: PathBuf,
    /// The binary to run
    #[arg(long, default_value = "target/debug/claude-mem")]
    binary: PathBuf,
    /// Only this client
    #[arg(long)]
    client: Option<String>,
    /// Write each folder's `expected.txt`
    #[arg(long)]
    write: bool,
}

impl Clients {
    pub(crate) fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let binary = fs::canonicalize(&self.binary)?;
        let folders = fs::read_dir(fs::canonicalize(&self.directory)?)?.flatten();
        let mut folders: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
        folders.sort();
        let (mut payloads, mut wrong) = (0, 0);
        for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
            let client = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_chosen = self.client.as_ref().is_none_or(|chosen| *chosen == client);
            if !is_chosen || client == "fakes" {
                continue;
            }
            let rows = run(&binary, &client, &folder)?;
            if self.write {
                fs::write(folder.join("expected.txt"), table(&rows))?;
            }
            say(&format!("== {client}: {} payloads", rows.len()))?;
            for row in &rows {
                payloads += 1;
                let problem = problem(row);
                wrong += usize::from(problem.is_some());
                let events =
                    if row.events.is_empty() { "-".into() } else { row.events.join(" + ") };
                let stdout = row.stdout.trim();
                let stdout = if stdout.is_empty() { "" } else { " STDOUT " };
                let problem =
                    problem.map_or_else(String::new, |problem| format!(" WRONG: {problem}"));
                say(&format!("{} → {events}{stdout}{}{problem}", row.file, row.stdout.trim()))?;
            }
        }
        say(&format!("{payloads} payloads, {wrong} wrong"))?;
        Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// The problems with the outcome of a payload.
fn problem(row: &Row) -> Option<String> {
    if let Some(problem) = &row.problem {
        return Some(problem.clone());
    }
    // The arguments of a plugin call, not a payload.
    if !row.payload["hook"].is_null() || row.file.contains("PermissionRequest") {
        return None;
    }
    let kind = |event: &String| event.split(' ').nth(2).unwrap_or_default().to_owned();
    let recorded = row.events.last().map(kind);
    let expected = expected_kind(row);
    if recorded.as_deref() != expected {
        return Some(format!("expected {expected:?}"));
    }
    let missing = missing(row);
    (!missing.is_empty()).then(|| format!("without {missing:?}"))
}
