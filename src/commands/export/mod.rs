//! `claude-mem export`: everything recorded, or everything remembered, as text.

mod markdown;

use std::{
    collections::HashSet,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use claude_mem_events::{EventItem, EventReader, Recorded, Seq};
use claude_mem_projections::{ExportQuery, Store};

use claude_mem_core::{
    app::App,
    failure::Failure,
    safe_text::write_json,
    time_arg::Between,
    user_file::{Readers, UserFile},
};
use claude_mem_import::export::Exported;
use claude_mem_memory::{resolve, store};

/// Write out what was recorded or remembered
///
/// As `jsonl`, one event per line, nothing is lost: `claude-mem import` makes the same memory of it on another
/// machine. As `markdown`, memories are written to be read.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// In which form
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    /// Into this file, device or pipe [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    between: Between,
    /// Only this project: its name, its key, or a folder in it
    #[arg(long)]
    project: Option<String>,
    /// Only this session: its id, or the beginning of it
    #[arg(long)]
    session: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Events, one per line
    Jsonl,
    /// Memories, to be read
    Markdown,
}

impl Export {
    /// Replaces a regular file only when all is written.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let store = if self.needs_memory() { Some(store::read_whole(app)?) } else { None };
        let wanted = self.wanted(app, store.as_ref())?;
        let log = store::open_log(app)?;
        let write = |out: &mut dyn Write| match &store {
            Some(store) if self.format == Format::Markdown => markdown::write(store, &wanted, out),
            _ => events(&mut EventReader::from(&log, Seq::START), &wanted, out),
        };
        let written = match &self.output {
            None => {
                let mut out = BufWriter::new(io::stdout().lock());
                let written = write(&mut out);
                written.and_then(|written| Ok(out.flush().map(|()| written)?))
            }
            Some(file) => into_file(file, write),
        };
        match written {
            Ok(written) => written.tell(app, self.output.as_deref()),
            Err(Problem::Ours(failure)) => return Err(failure),
            // Whoever reads it has seen enough.
            Err(Problem::Out(error)) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(Problem::Out(error)) => {
                let to = self.output.as_deref().unwrap_or(Path::new("stdout")).display();
                return Err(Failure::new(format!("{to} cannot be written: {error}")));
            }
        }
        Ok(())
    }

    /// Events are read from the log alone, unless a project or session must be found by its name.
    fn needs_memory(&self) -> bool {
        self.format == Format::Markdown || self.project.is_some() || self.session.is_some()
    }

    fn wanted(&self, app: &App, store: Option<&Store>) -> Result<ExportQuery, Failure> {
        let now = app.clock.now();
        let named = |name: &Option<String>| store.zip(name.clone());
        let project = named(&self.project).map(|(store, name)| resolve::only_project(store, &name));
        let session = named(&self.session).map(|(store, name)| resolve::session(store, &name));
        Ok(ExportQuery {
            since_us: self.between.since_us(now).unwrap_or(0),
            until_us: self.between.until_us(now).unwrap_or(0),
            project: project.transpose()?.unwrap_or_default(),
            session: session.transpose()?.unwrap_or_default(),
        })
    }
}

/// What kept something from being written.
enum Problem {
    Out(io::Error),
    Ours(Failure),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Out(error)
    }
}

impl From<claude_mem_log::Error> for Problem {
    fn from(error: claude_mem_log::Error) -> Self {
        Self::Ours(error.into())
    }
}

impl From<claude_mem_projections::Error> for Problem {
    fn from(error: claude_mem_projections::Error) -> Self {
        Self::Ours(error.into())
    }
}

/// What was written.
#[derive(Default)]
struct Written {
    what: &'static str,
    count: u64,
    /// Damage in the log, which cannot be exported.
    gaps: u64,
}

impl Written {
    fn tell(&self, app: &mut App, file: Option<&Path>) {
        let Self { what, count, gaps } = self;
        if *gaps > 0 {
            app.output.say(format_args!("warning: {gaps} damaged places of the log are left out"));
        }
        if let Some(file) = file {
            app.output.say(format_args!("{count} {what} written to {}", file.display()));
        }
    }
}

fn events(
    reader: &mut EventReader,
    wanted: &ExportQuery,
    out: &mut dyn Write,
) -> Result<Written, Problem> {
    let mut written = Written { what: "events", ..Written::default() };
    let mut seen = HashSet::new();
    while let Some(met) = reader.next()? {
        let recorded = match met {
            EventItem::Event(recorded) => recorded,
            EventItem::Gap(_) => {
                written.gaps += 1;
                continue;
            }
        };
        if !is_wanted(&recorded, wanted) || !seen.insert(recorded.id) {
            continue;
        }
        write_json(out, &Exported::of(&recorded))?;
        out.write_all(b"\n")?;
        written.count += 1;
    }
    Ok(written)
}

fn is_wanted(recorded: &Recorded, wanted: &ExportQuery) -> bool {
    let (envelope, at_us) = (&recorded.envelope, recorded.at_us());
    at_us >= wanted.since_us
        && (wanted.until_us == 0 || at_us < wanted.until_us)
        && (wanted.project.is_empty() || envelope.project.key == wanted.project)
        && (wanted.session.is_empty() || envelope.session == wanted.session)
}

/// New files are readable by their owner alone.
fn into_file(
    file: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<Written, Problem>,
) -> Result<Written, Problem> {
    let mut out = BufWriter::new(UserFile::create(file, Readers::Owner)?);
    let written = write(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.commit()?;
    Ok(written)
}
