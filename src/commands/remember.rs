//! `claude-mem remember`: write a memory by hand.

use std::io::{self, IsTerminal, Read};

use clap::Args;
use serde_json::json;

use claude_mem_core::{app::App, failure::Failure};
use claude_mem_memory::{
    remember::{Note, Remembered, note_scope, remember},
    store,
};

/// Limit for text on stdin.
const TEXT_BYTES_MAX: u64 = 8 << 20;

/// Write a memory by hand
///
/// It comes first in the context of new sessions in this project, or in all projects with
/// `--global`. Without TEXT, or with `-`, the text is read from stdin. Text between `<private>`
/// tags, and keys and passwords of known formats, are removed.
#[derive(Debug, Args)]
pub(crate) struct Remember {
    /// What to remember
    #[arg(value_name = "TEXT")]
    text: Vec<String>,
    /// Title
    #[arg(long)]
    title: Option<String>,
    /// Type, such as `decision` or `bugfix` [default: note]
    #[arg(long, value_name = "TYPE")]
    r#type: Option<String>,
    /// A concept to find it by; can be repeated
    #[arg(long, value_name = "WORD")]
    concept: Vec<String>,
    /// A related file; can be repeated
    #[arg(long)]
    file: Vec<String>,
    /// Project name, key or folder [default: the project of this folder]
    #[arg(long)]
    project: Option<String>,
    /// Give it to sessions of all projects
    #[arg(long)]
    global: bool,
    /// Give it to sessions of all projects in this folder
    #[arg(long, value_name = "DIR", conflicts_with = "global")]
    tree: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Remember {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let text = match &self.text[..] {
            [] if io::stdin().is_terminal() => String::new(),
            [] => on_stdin()?,
            [dash] if dash == "-" => on_stdin()?,
            words => words.join(" "),
        };
        if text.trim().is_empty() && self.title.is_none() {
            return Err(Failure::usage("there is no text to remember")
                .remedy("pass it as in `claude-mem remember \"we use tabs\"`"));
        }
        let note = Note {
            title: self.title.unwrap_or_default(),
            text,
            type_: self.r#type.unwrap_or_default(),
            concepts: self.concept,
            files: self.file,
            project: self.project,
            via: "cli",
            scope: note_scope(self.global, self.tree.as_deref())?,
        };
        let mut store = store::open_folded(app)?;
        let remembered = remember(app, &mut store, &note)?;
        report(app, &remembered, self.json)
    }
}

fn report(app: &mut App, remembered: &Remembered, is_json: bool) -> Result<(), Failure> {
    let Remembered { event, name, place, is_redacted } = remembered;
    if is_json {
        return app.output.json(&json!({
            "id": name,
            "event": event.to_string(),
            "project": place,
            "is_redacted": is_redacted,
        }));
    }
    if *is_redacted {
        app.output.say("note: private text or secrets were removed");
    }
    match name {
        Some(name) => app.output.line(format_args!("remembered {name} in {place}")),
        None => app.output.line(format_args!("remembered in {place}")),
    }
}

fn on_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    match io::stdin().lock().take(TEXT_BYTES_MAX).read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::new(format!("stdin is not readable as text: {error}"))),
    }
}
