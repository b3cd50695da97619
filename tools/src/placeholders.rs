//! Counts the placeholders that redaction leaves in text without secrets, such as source code.
//!
//! Files are sent through the hook, as the output of a tool, and read back from the log, so the
//! count is what a user would lose.

use std::{
    collections::BTreeMap,
    error::Error,
    ffi::OsStr,
    fmt, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use claude_mem_events::{Event, Recorded};
use claude_mem_log::{Item, Log, Options};
use serde_json::{Map, Value, json};

/// The maximum length of a string in a hook before it is cut, with a margin.
const PIECE_BYTES_MAX: usize = 200 << 10;
/// Bytes per hook.
const HOOK_BYTES_MAX: usize = 1 << 20;

/// The result for one folder.
#[derive(Debug, Default)]
pub struct Report {
    /// Number of text files.
    pub files: u64,
    /// Their size.
    pub bytes: u64,
    /// Placeholders by rule.
    pub rules: BTreeMap<String, u64>,
    /// Lines with a placeholder, as stored.
    pub lines: Vec<String>,
}

impl Report {
    /// Placeholders of all rules.
    pub fn placeholders(&self) -> u64 {
        self.rules.values().sum()
    }

    /// Placeholders per megabyte of text.
    pub fn per_megabyte(&self) -> f64 {
        self.placeholders() as f64 / (self.bytes as f64 / 1e6).max(f64::MIN_POSITIVE)
    }

    fn add(&mut self, before: &str, stored: &str) {
        let mut old = count(before);
        for (rule, number) in count(stored) {
            let new = number.saturating_sub(old.remove(&rule).unwrap_or(0));
            if new > 0 {
                *self.rules.entry(rule).or_default() += new;
            }
        }
        let is_new = |line: &&str| line.contains("[redacted:") && !before.contains(*line);
        self.lines.extend(stored.lines().filter(is_new).map(str::to_owned));
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = self.bytes as f64 / 1e6;
        write!(f, "{} | {megabytes:.1} | {} | ", self.files, self.placeholders())?;
        write!(f, "{:.2}", self.per_megabyte())
    }
}

/// Counts the placeholders that `binary` leaves in the files below `folder` with one of these
/// extensions. Its data goes to `home`, which must be empty.
pub fn measure(
    binary: &Path,
    home: &Path,
    folder: &Path,
    extensions: &[&str],
) -> Result<Report, Box<dyn Error>> {
    let mut report = Report::default();
    let mut batch = Batch { binary, home, pieces: Vec::new(), bytes: 0, hooks: 0 };
    let mut sent = Vec::new();
    for file in files(folder, extensions)? {
        let Ok(text) = String::from_utf8(fs::read(&file)?) else { continue };
        report.files += 1;
        report.bytes += text.len() as u64;
        for piece in pieces(&text) {
            sent.extend(batch.push(piece.to_owned())?);
        }
    }
    sent.extend(batch.flush()?);
    let stored = stored(&home.join("log"))?;
    if stored.len() != sent.len() {
        return Err(format!("{} texts sent, {} stored", sent.len(), stored.len()).into());
    }
    for (before, stored) in sent.iter().zip(&stored) {
        report.add(before, stored);
    }
    Ok(report)
}

/// Texts for the next hook.
struct Batch<'a> {
    binary: &'a Path,
    home: &'a Path,
    pieces: Vec<String>,
    bytes: usize,
    hooks: u64,
}

impl Batch<'_> {
    /// Adds a text. Returns the texts that were sent because of it.
    fn push(&mut self, piece: String) -> Result<Vec<String>, Box<dyn Error>> {
        let is_full = self.bytes + piece.len() > HOOK_BYTES_MAX;
        let sent = if is_full { self.flush()? } else { Vec::new() };
        self.bytes += piece.len();
        self.pieces.push(piece);
        Ok(sent)
    }

    /// Runs one hook with all waiting texts.
    fn flush(&mut self) -> Result<Vec<String>, Box<dyn Error>> {
        let sent = std::mem::take(&mut self.pieces);
        self.bytes = 0;
        if sent.is_empty() {
            return Ok(sent);
        }
        self.hooks += 1;
        let members: Map<String, Value> =
            sent.iter().enumerate().map(|(at, text)| (format!("e{at:06}"), json!(text))).collect();
        let payload = json!({
            "session_id": "s", "cwd": self.home, "hook_event_name": "PostToolUse", "tool_name": "Read",
            "tool_use_id": format!("t{}", self.hooks), "tool_input": {}, "tool_response": members,
        });
        let mut hook = Command::new(self.binary)
            .arg("save")
            .env("HOME", self.home)
            .env("CLAUDE_MEM_DATA_DIR", self.home)
            .env("CLAUDE_MEM_WORKER_AUTOSTART", "false")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        if let Some(mut input) = hook.stdin.take() {
            input.write_all(payload.to_string().as_bytes())?;
        }
        match hook.wait()?.success() {
            true => Ok(sent),
            false => Err("a hook failed".into()),
        }
    }
}

/// All files below a folder with one of these extensions, in order.
fn files(folder: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let (mut folders, mut files) = (vec![folder.to_path_buf()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if entry.file_type()?.is_file() && extensions.contains(&extension) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The text in pieces that a hook stores whole, cut between lines where possible.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let is_end = |at: &usize| rest.is_char_boundary(*at);
        let most = (0..=rest.len().min(PIECE_BYTES_MAX)).rev().find(is_end).unwrap_or(0);
        let end = match rest[..most].rfind('\n') {
            Some(line) if most < rest.len() => line + 1,
            _ => most,
        };
        let (piece, behind) = rest.split_at(end);
        rest = behind;
        Some(piece)
    })
}

/// Every stored text, in the order in which they were sent.
fn stored(log: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut texts = Vec::new();
    let log = Log::open(log, Options::default())?;
    let mut reader = log.read_from_start();
    while let Some(item) = reader.next()? {
        let Item::Record(entry) = item else { return Err("the log is damaged".into()) };
        let Event::ToolUsed(used) = Recorded::from_entry(&entry).event else { continue };
        let output: BTreeMap<String, String> = serde_json::from_str(&used.output)?;
        texts.extend(output.into_values());
    }
    Ok(texts)
}

fn count(text: &str) -> BTreeMap<String, u64> {
    let mut rules = BTreeMap::new();
    for rest in text.split("[redacted:").skip(1) {
        if let Some((rule, _)) = rest.split_once(']') {
            *rules.entry(rule.to_owned()).or_default() += 1;
        }
    }
    rules
}
