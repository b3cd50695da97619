//! `claude-mem memory edit`: change the text of an observation.

use std::{
    fs,
    io::{self, IsTerminal as _},
    path::Path,
    process::Command,
};

use clap::Args;

use super::pin::report;
use claude_mem_core::{app::App, failure::Failure, user_file};
use claude_mem_memory::{
    revise::{Change, Edit, Editable, editable, revise},
    store,
};
use claude_mem_projections::search::MemoryId;

/// Change the text of an observation
///
/// Without options, the text is opened in the editor of `$VISUAL` or `$EDITOR`. Search finds the
/// new text only. New sessions get the new text, on all machines. A reprocessing keeps it.
#[derive(Debug, Args)]
pub(crate) struct EditMemory {
    /// The observation, such as `12`
    #[arg(value_name = "ID")]
    id: MemoryId,
    /// New title
    #[arg(long)]
    title: Option<String>,
    /// New text
    #[arg(long)]
    text: Option<String>,
    /// New type, such as `decision`
    #[arg(long, value_name = "TYPE")]
    r#type: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl EditMemory {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let mut store = store::open_folded(app)?;
        let given = Edit { title: self.title, text: self.text, type_: self.r#type };
        let edit = match given == Edit::default() {
            true => parse(&in_editor(app, &render(&editable(&store, self.id)?))?)?,
            false => given,
        };
        let revised = revise(app, &mut store, self.id, &Change::Edit(edit), "cli")?;
        report(app, self.id, "edited", &revised, self.json)
    }
}

/// The file that the editor shows: two named lines, an empty one, the text.
fn render(memory: &Editable) -> String {
    let Editable { title, text, type_ } = memory;
    format!("Title: {title}\nType: {type_}\n\n{text}\n")
}

fn parse(file: &str) -> Result<Edit, Failure> {
    let (head, text) = file.split_once("\n\n").unwrap_or((file, ""));
    let value = |name: &str| {
        let line = head.lines().find_map(|line| line.strip_prefix(name));
        line.map(|value| value.trim().to_owned()).ok_or_else(|| {
            Failure::new(format!("the line `{name}` is missing"))
                .meaning("nothing was changed")
                .remedy("keep the first lines, and change only what follows them")
        })
    };
    // An empty line stays as it is: there may have been no title or text before.
    let filled = |text: String| Some(text).filter(|text| !text.is_empty());
    Ok(Edit {
        title: filled(value("Title:")?),
        type_: filled(value("Type:")?),
        text: filled(text.trim().to_owned()),
    })
}

/// Opens the text in the user's editor, in a private file that is removed afterwards.
fn in_editor(app: &App, text: &str) -> Result<String, Failure> {
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| app.environment.text(name));
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    if editor.is_none() && !is_terminal {
        return Err(Failure::usage("there is no terminal to edit at")
            .meaning("nothing was changed")
            .remedy("pass the new text with `--title` and `--text`, or set EDITOR"));
    }
    let editor = editor.unwrap_or_else(|| "vi".into());
    let path = app.paths.data.join(format!("edit-{}.md", std::process::id()));
    let failed = |error: std::io::Error| {
        Failure::new(format!("{} cannot be written: {error}", path.display()))
            .meaning("nothing was changed")
    };
    let edited = user_file::write_new(&path, text.as_bytes())
        .map_err(failed)
        .and_then(|()| run_editor(&editor, &path));
    let removed = fs::remove_file(&path).map_err(failed);
    let edited = edited?;
    removed?;
    Ok(edited.replace("\r\n", "\n"))
}

fn run_editor(editor: &str, path: &Path) -> Result<String, Failure> {
    let failed = |what: String| {
        Failure::new(format!("the editor `{editor}` {what}"))
            .meaning("nothing was changed")
            .remedy("set EDITOR, or use `--title` and `--text`")
    };
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or("vi");
    let status = Command::new(program).args(words).arg(path).status();
    match status {
        Err(error) => Err(failed(format!("did not start: {error}"))),
        Ok(status) if !status.success() => Err(failed(format!("failed: {status}"))),
        Ok(_) => fs::read_to_string(path)
            .map_err(|error| failed(format!("left a file that cannot be read: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_the_editor_is_parsed() {
        let texts = ["one\n\ntwo\n- three", "Type: no type\n\nx", ""];
        for text in texts {
            let memory =
                Editable { title: "a: b".into(), text: text.into(), type_: "decision".into() };
            let edit = parse(&render(&memory)).unwrap();
            assert_eq!(edit.title.as_deref(), Some("a: b"));
            assert_eq!(edit.type_.as_deref(), Some("decision"));
            assert_eq!(edit.text.unwrap_or_default(), text);
        }
        assert!(parse("nothing of it").is_err());
    }
}
