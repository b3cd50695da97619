//! `claude-mem why`: which turn wrote a line, or edited a file.

use clap::Args;

use super::hit_labels::plain;
use claude_mem_core::{
    app::App,
    failure::Failure,
    format::count,
    time_arg::local,
    wrap::{cut, fit, width},
};
use claude_mem_memory::{
    store,
    why::{MemoryOfTurn, Turn, WhyFile, WhyLine, split_line},
};
use serde::Serialize;

/// A prompt is shown up to here; `claude-mem show` has the rest.
const PROMPT_CHARS_MAX: usize = 300;

/// Show which turn wrote a line or edited a file, and why
///
/// For a line, `git blame` names the commit, and the log the edit that wrote exactly this line
/// before that commit. Prints the commit, the turn with its prompt, and the memories of that turn.
/// For a file, prints the turns that edited it, newest first. Works without git from the log alone.
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// The file, and the number of a line, such as `src/cart.rs:42`
    #[arg(value_name = "FILE[:LINE]")]
    place: String,
    /// Maximum number of turns
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

impl Why {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let store = store::read_folded(app)?;
        let (file, line) = split_line(&self.place);
        let found = WhyFile::find(file);
        let Some(line) = line else {
            let turns = found.turns(&store, self.limit)?;
            return turns.iter().enumerate().try_for_each(|(at, turn)| {
                if self.json {
                    return app.output.json(&FileTurn { file, turn });
                }
                if at > 0 {
                    app.output.line("")?;
                }
                print_turn(app, turn)
            });
        };
        let why = found.line(app, &store, line)?;
        match self.json {
            true => app.output.json(&why)?,
            false => print_line(app, &why)?,
        }
        match why.turn {
            Some(_) => Ok(()),
            None => Err(Failure::new(format!("no recorded edit wrote line {line} of {file}"))
                .meaning("it was written by hand, by a shell command, or before recording began")
                .remedy(format!(
                    "list the turns that edited the file with `claude-mem why {file}`"
                ))),
        }
    }
}

#[derive(Debug, Serialize)]
struct FileTurn<'a> {
    file: &'a str,
    #[serde(flatten)]
    turn: &'a Turn,
}

fn print_line(app: &mut App, why: &WhyLine) -> Result<(), Failure> {
    let place = app.output.dim(&format!("{}:{}:", why.file, why.line));
    app.output.line(format_args!("{place} {}", plain(why.text.trim())))?;
    let git = match (&why.commit, &why.git_problem) {
        (Some(commit), _) => {
            let time = local(commit.at_us, "%Y-%m-%d %H:%M");
            let id: String = commit.id.chars().take(12).collect();
            let id = app.output.paint("33", &id);
            format!("commit {id}, {time}, {}: {}", plain(&commit.author), plain(&commit.subject))
        }
        (None, Some(problem)) => format!("from the log alone: {}", plain(problem)),
        (None, None) => "not committed yet".into(),
    };
    app.output.line(git)?;
    why.turn.as_ref().map_or(Ok(()), |turn| print_turn(app, turn))
}

fn print_turn(app: &mut App, turn: &Turn) -> Result<(), Failure> {
    let time = local(turn.at_us, "%Y-%m-%d %H:%M");
    let what = match (turn.found_by, turn.edits) {
        ("commit", _) => "committed".to_owned(),
        (_, 1) => "edited".to_owned(),
        (_, edits) => format!("{} until", count(edits, "edit")),
    };
    let branch = turn.branch.as_ref().map(|branch| format!(", branch {branch}"));
    let (session, project) = (plain(&turn.session), plain(&turn.project));
    let branch = plain(&branch.unwrap_or_default());
    app.output.line(format_args!("{what} {time} in session {session}, {project}{branch}"))?;
    if let Some(prompt) = &turn.prompt {
        let text = prompt.text.as_deref().unwrap_or("(private)");
        let text = cut(plain(text).trim(), PROMPT_CHARS_MAX);
        app.output.line(format_args!("asked ({}): {text}", prompt.id))?;
    }
    let label = |memory: &MemoryOfTurn| memory.type_.clone().unwrap_or_else(|| "summary".into());
    let id_columns = turn.memories.iter().map(|memory| width(&memory.id)).max().unwrap_or(0);
    let labels = turn.memories.iter().map(|memory| width(&label(memory)));
    let label_columns = labels.max().unwrap_or(0);
    for memory in &turn.memories {
        let id = app.output.paint("1", &format!("{:>id_columns$}", memory.id));
        let name = app.output.paint("34", &fit(&plain(&label(memory)), label_columns));
        let title = cut(&plain(&memory.title), PROMPT_CHARS_MAX);
        let line = format!("  {id}  {name}  {title}");
        app.output.line(app.output.hanging(id_columns + label_columns + 6, &line))?;
    }
    Ok(())
}
