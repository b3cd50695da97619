//! Imports the notes that Claude Code writes for itself: its auto memory, `memory/*.md` of each
//! project.
//!
//! A note is marked with its origin, so that it is not sent to Claude Code, which reads its own
//! files. When a file has changed, its new text supersedes the imported one.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use claude_mem_events::{Id, MemoryAdded, MemoryRevised, ObservationRef, Revision};
use serde_json::json;

use crate::{
    cannot_read,
    home::Home,
    lines::Lines,
    sink::{Sink, stable_id},
    transcripts::begin_of,
};
use claude_mem_capture::{CLAUDE_CODE, envelope};
use claude_mem_core::{app::App, failure::Failure};
use claude_mem_privacy::redact_text;

/// The name of the origin in events and rows.
const VIA: &str = "auto-memory";
/// A longer file is not a note.
const BYTES_MAX: u64 = 256 << 10;

/// Imports the notes below Claude Code's folder of projects.
pub(super) fn import_auto_memory(
    app: &App,
    sink: &mut Sink<'_>,
    path: &Path,
) -> Result<(), Failure> {
    let failed = |error: io::Error| cannot_read(path, &error);
    let folders = folders_typed_in(path);
    let mut home = Home::new(app);
    let known = sink.store.auto_memory_notes()?;
    for folder in entries(path).map_err(failed)? {
        let notes = entries(&folder.join("memory")).unwrap_or_default();
        let notes: Vec<PathBuf> = notes.into_iter().filter(|file| is_note(file)).collect();
        if notes.is_empty() {
            continue;
        }
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(cwd) = folder_of(&folder).or_else(|| folders.get(&name).cloned()) else {
            sink.leave_out("notes of a folder that is unknown");
            continue;
        };
        let Some(project) = home.project_in(&cwd) else {
            sink.leave_out("notes of projects that are excluded");
            continue;
        };
        let envelope = envelope(CLAUDE_CODE.name, "", project);
        for file in notes {
            let note = match Note::read(&file) {
                // An index alone contains nothing but references to the notes.
                Ok(Some(note)) if note.text.is_empty() => continue,
                Ok(Some(note)) => note,
                Ok(None) => {
                    sink.leave_out("notes that are too long");
                    continue;
                }
                Err(error) => {
                    sink.report.damage.push(format!("{}: {error}", file.display()));
                    continue;
                }
            };
            let place = format!("{name}/{}", note.file);
            let text = redact_text(&note.text, home.policy).text;
            let earlier = known.iter().filter(|known| known.file == place);
            if earlier.clone().any(|known| known.text == text) {
                sink.report.known += 1;
                continue;
            }
            let id = stable_id(note.time_us, &[VIA, &place, &note.text]);
            sink.add("MemoryAdded", id, &envelope, || {
                let added = MemoryAdded {
                    title: note.title.clone(),
                    text: text.clone(),
                    via: VIA.into(),
                    metadata: json!({ "file": place }).to_string(),
                    ..MemoryAdded::default()
                };
                added.into()
            })?;
            let by = ObservationRef { event: *id.as_bytes(), number: 1 };
            for earlier in earlier {
                let target = earlier.observation;
                let parts = [VIA, "superseded", &Id::from_bytes(target.event).to_string()];
                sink.add("MemoryRevised", stable_id(note.time_us, &parts), &envelope, || {
                    let revision = Revision::SupersededBy(by);
                    MemoryRevised { target, revision, via: VIA.into() }.into()
                })?;
            }
        }
    }
    Ok(())
}

/// A file of the auto memory.
struct Note {
    file: String,
    title: String,
    text: String,
    time_us: u64,
}

impl Note {
    /// `None` if the file is too long.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        let metadata = fs::metadata(path)?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
        }
        if metadata.len() > BYTES_MAX {
            return Ok(None);
        }
        let written = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let text = String::from_utf8_lossy(&fs::read(path)?).into_owned();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (head, body) = front_matter(&text);
        let body = match file == INDEX {
            true => without_pointers(body, path.parent().unwrap_or(path)),
            false => body.to_owned(),
        };
        let described = head.lines().find_map(|line| line.strip_prefix("description:"));
        let title = described.map(|text| text.trim().trim_matches(['"', '\'']).to_owned());
        Ok(Some(Self {
            title: title.filter(|title| !title.is_empty()).unwrap_or_else(|| file.clone()),
            text: body.trim().to_owned(),
            time_us: u64::try_from(written.as_micros()).unwrap_or(0),
            file,
        }))
    }
}

/// The lines between `---` at the beginning, and the rest.
fn front_matter(text: &str) -> (&str, &str) {
    let parts = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---"));
    parts.map_or(("", text), |(head, body)| (head, body.trim_start_matches('-')))
}

/// The file that lists the others, one line for each.
const INDEX: &str = "MEMORY.md";

/// The text of the index without the lines that refer to a note in this folder; empty if only
/// headings are left.
fn without_pointers(text: &str, folder: &Path) -> String {
    let is_pointer = |line: &str| {
        let target = line.split_once("](").and_then(|(_, rest)| rest.split_once(')'));
        target.is_some_and(|(file, _)| is_note(Path::new(file)) && folder.join(file).is_file())
    };
    let left: Vec<&str> = text.lines().filter(|line| !is_pointer(line)).collect();
    let says_something = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    if left.iter().any(says_something) { left.join("\n") } else { String::new() }
}

fn is_note(file: &Path) -> bool {
    file.extension().is_some_and(|end| end == "md")
}

fn entries(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    found.sort();
    Ok(found)
}

/// The folder of a project, from a transcript next to its notes.
fn folder_of(folder: &Path) -> Option<String> {
    let files = entries(folder).ok()?;
    let mut transcripts =
        files.iter().filter(|file| file.extension().is_some_and(|end| end == "jsonl"));
    transcripts.find_map(|file| Some(begin_of(file)?.cwd))
}

/// The folders in which prompts were typed, by Claude Code's name for each. The name does not
/// identify the folder: every character except letters and digits is replaced by a dash.
fn folders_typed_in(projects: &Path) -> HashMap<String, String> {
    #[derive(serde::Deserialize)]
    struct Entry {
        project: String,
    }
    let mut folders = HashMap::new();
    let history = projects.with_file_name("history.jsonl");
    let Ok(mut lines) = Lines::open(&history) else { return folders };
    while let Ok(Some(line)) = lines.next() {
        let entry = serde_json::from_slice::<Entry>(line.bytes.unwrap_or_default());
        if let Ok(Entry { project }) = entry {
            let name = project.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
            folders.insert(name, project);
        }
    }
    folders
}
