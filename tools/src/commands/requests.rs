//! `requests`: measures the parts of requests to a model on transcripts.

use std::{
    collections::BTreeMap,
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::{Arc, Mutex, PoisonError},
};

use claude_mem_tools::model::{Answer, Request, Server, Usage};

use super::say;

/// Measure the parts of requests to a model
///
/// Imports transcripts into an empty data directory, distills them with a scripted model, and
/// prints the bytes of each part of the requests. Uses no network.
#[derive(Debug, clap::Args)]
pub(crate) struct Requests {
    /// The `claude-mem` binary
    binary: PathBuf,
    /// A folder of transcripts
    transcripts: PathBuf,
    /// An empty folder for the data, which is kept
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

/// Bytes by part of a request.
type Parts = BTreeMap<String, usize>;

#[derive(Debug, Default)]
struct Counted {
    requests: usize,
    turns: usize,
    parts: Parts,
}

impl Requests {
    pub(crate) fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        fs::create_dir_all(&self.data)?;
        let (binary, data) = (fs::canonicalize(&self.binary)?, fs::canonicalize(&self.data)?);
        let transcripts = fs::canonicalize(&self.transcripts)?;
        let counted = Arc::new(Mutex::new(Counted::default()));
        let sums = Arc::clone(&counted);
        let server = Server::answering(move |request| {
            sums.lock().unwrap_or_else(PoisonError::into_inner).add(request);
            Answer::text(REPLY).usage(Usage::default())
        })?;
        let transcripts = transcripts.to_string_lossy();
        run(&binary, &data, &server, &["import", "--from", "transcripts", &transcripts])?;
        run(&binary, &data, &server, &["distill"])?;
        let counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
        say(&counted.table())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The shortest valid response: recaps stay short, so that requests can be compared.
const REPLY: &str = "<summary><completed>measured</completed></summary>";

fn run(
    binary: &Path,
    data: &Path,
    server: &Server,
    arguments: &[&str],
) -> Result<(), Box<dyn Error>> {
    let mut command = Command::new(binary);
    command.args(arguments).current_dir(data).env_clear().env("HOME", data);
    command.env("PATH", "/usr/bin:/bin").env("CLAUDE_MEM_DATA_DIR", data.join("memory"));
    command.env("CLAUDE_MEM_WORKER_AUTOSTART", "false").env("CLAUDE_MEM_PROVIDER", "anthropic");
    command.env("CLAUDE_MEM_ANTHROPIC_API_KEY", "key").env("CLAUDE_MEM_MODEL", "model");
    command.env("CLAUDE_MEM_ANTHROPIC_BASE_URL", server.url());
    let output = command.output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

impl Counted {
    fn add(&mut self, request: &Request) {
        self.requests += 1;
        let text = request.last_user_text();
        self.turns += usize::from(text.contains("The turn is over."));
        *self.parts.entry("system".into()).or_default() += request.system_text().len();
        for (part, bytes) in parts(&text) {
            *self.parts.entry(part).or_default() += bytes;
        }
    }

    fn table(&self) -> String {
        let total: usize = self.parts.values().sum();
        let turns = self.turns.max(1);
        let mut rows: Vec<(&String, &usize)> = self.parts.iter().collect();
        rows.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
        let mut lines = vec![
            format!("{} requests, {} turns", self.requests, self.turns),
            String::new(),
            "| part | bytes | share | tokens per turn |".to_owned(),
            "|---|---|---|---|".to_owned(),
        ];
        let row = |part: &str, bytes: usize| {
            let share = bytes as f64 * 100.0 / total.max(1) as f64;
            format!("| {part} | {bytes} | {share:.1} % | {} |", bytes / TOKEN_BYTES / turns)
        };
        lines.extend(rows.into_iter().map(|(part, bytes)| row(part, *bytes)));
        lines.push(row("all", total));
        lines.join("\n")
    }
}

/// A token of English text or code has about four bytes.
const TOKEN_BYTES: usize = 4;

/// Tools whose outputs are counted separately.
const TOOLS: [&str; 8] = ["Bash", "Read", "Grep", "Glob", "Task", "Agent", "Edit", "Write"];

/// Bytes by part of a message. Recorded text is escaped, so a `<` at the start of a line is one of
/// our tags.
fn parts(text: &str) -> Parts {
    let mut parts = Parts::new();
    let (mut part, mut tool) = ("recap".to_owned(), String::new());
    let mut next: Option<String> = None;
    for line in text.split_inclusive('\n') {
        let name = line.strip_prefix('<').map(|rest| {
            let end = rest.find([' ', '>']).unwrap_or(rest.len());
            &rest[..end]
        });
        match name {
            Some("session") => next = Some("frame".into()),
            Some("prompt") => part = "prompt".into(),
            Some("before") => part = "previous answer".into(),
            Some("answer") => part = "answer".into(),
            Some("tool") => {
                let named = line.split('"').nth(1).unwrap_or_default();
                tool = if TOOLS.contains(&named) { named.to_owned() } else { "other tools".into() };
                part = format!("input of {tool}");
            }
            Some("output") => part = format!("output of {tool}"),
            Some("said" | "rejected" | "denied" | "compaction" | "error") => {
                part = "remarks".into();
            }
            Some("/session") => next = Some("closing".into()),
            Some(name) if name.starts_with('/') => next = Some("frame".into()),
            _ => {}
        }
        *parts.entry(part.clone()).or_default() += line.len();
        if let Some(next) = next.take() {
            part = next;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_message_belongs_to_one_part() {
        let text = "\
            Already:\n- x\n<session project=\"p\">\n<prompt number=\"1\">\nfix &lt;b>\n\
            </prompt>\n<tool name=\"Bash\" at=\"1\">\n$ ls\n<output>\na\n</output>\n\
            </tool>\n<said>\nso\n</said>\n<answer>\ndone\n</answer>\n</session>\n\
            The turn is over.";
        let parts = parts(text);
        assert_eq!(parts.values().sum::<usize>(), text.len());
        assert_eq!(parts["closing"], "The turn is over.".len());
        assert_eq!(parts["output of Bash"], "<output>\na\n</output>\n".len());
        assert_eq!(parts["remarks"], "<said>\nso\n</said>\n".len());
        assert_eq!(parts["answer"], "<answer>\ndone\n</answer>\n".len());
        assert!(parts["prompt"] > 0 && parts["recap"] > 0 && parts["input of Bash"] > 0);
    }
}
