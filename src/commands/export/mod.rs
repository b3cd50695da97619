//! `claude-mem export`: events or memories as text.

mod markdown;

use std::{
    collections::HashSet,
    io::{self, BufWriter, IsTerminal as _, Write},
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use claude_mem_events::{EventItem, EventReader, Recorded, Seq};
use claude_mem_log::GapReason;
use claude_mem_projections::{ExportQuery, Store};

use claude_mem_core::{
    app::App,
    failure::Failure,
    format::{self, number},
    progress::Progress,
    safe_text::write_json,
    time_arg::TimeRange,
    user_file::{Readers, UserFile},
};
use claude_mem_import::export::Exported;
use claude_mem_memory::{log_progress::LogProgress, resolve, store};

/// Export events or memories
///
/// `jsonl` writes every event, one per line: `claude-mem import` restores the same memories on
/// another machine. `markdown` writes memories for reading.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    /// File, device or pipe to write to [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    between: TimeRange,
    /// Only this project: its name, key or folder
    #[arg(long)]
    project: Option<String>,
    /// Only this session; a prefix of its ID is enough
    #[arg(long)]
    session: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Events, one per line
    Jsonl,
    /// Memories, for reading
    Markdown,
}

impl Export {
    /// Replaces a regular file only when everything is written.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let store = if self.needs_memory() { Some(store::read_whole(app)?) } else { None };
        let wanted = self.query(app, store.as_ref())?;
        let log = store::open_log(app)?;
        // At a terminal, the output itself shows the progress.
        let is_shown = self.output.is_none() && io::stdout().is_terminal();
        let write = |out: &mut dyn Write| match &store {
            Some(store) if self.format == Format::Markdown => {
                let total = if is_shown { 0 } else { store.export_count(&wanted)? };
                let progress = (!is_shown).then(|| Progress::items("exporting", total as usize));
                markdown::write_markdown(store, &wanted, progress.as_ref(), out)
            }
            _ => {
                let progress = (!is_shown).then(|| LogProgress::new("exporting", &log, None));
                events(&mut EventReader::from(&log, Seq::START), &wanted, progress.as_ref(), out)
            }
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
            Ok(written) => written.print_result(app, self.output.as_deref()),
            Err(ExportError::Ours(failure)) => return Err(failure),
            // The reader closed the pipe.
            Err(ExportError::Out(error)) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(ExportError::Out(error)) => {
                let to = self.output.as_deref().unwrap_or(Path::new("stdout")).display();
                return Err(Failure::new(format!("{to} cannot be written: {error}")));
            }
        }
        Ok(())
    }

    /// Events come from the log; only project and session names need the database.
    fn needs_memory(&self) -> bool {
        self.format == Format::Markdown || self.project.is_some() || self.session.is_some()
    }

    fn query(&self, app: &App, store: Option<&Store>) -> Result<ExportQuery, Failure> {
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

enum ExportError {
    Out(io::Error),
    Ours(Failure),
}

impl From<io::Error> for ExportError {
    fn from(error: io::Error) -> Self {
        Self::Out(error)
    }
}

impl From<claude_mem_log::Error> for ExportError {
    fn from(error: claude_mem_log::Error) -> Self {
        Self::Ours(error.into())
    }
}

impl From<claude_mem_projections::Error> for ExportError {
    fn from(error: claude_mem_projections::Error) -> Self {
        Self::Ours(error.into())
    }
}

#[derive(Default)]
struct ExportCounts {
    what: &'static str,
    count: u64,
    /// Damage in the log, which cannot be exported.
    gaps: u64,
}

impl ExportCounts {
    fn print_result(&self, app: &mut App, file: Option<&Path>) {
        let Self { what, count, gaps } = self;
        if *gaps > 0 {
            let gaps = format::count(*gaps, "damaged place of the log");
            app.output.say(format_args!("warning: skipped {gaps}"));
        }
        if let Some(file) = file {
            let count = number(*count);
            app.output.say(format_args!("{count} {what} written to {}", file.display()));
        }
    }
}

fn events(
    reader: &mut EventReader,
    wanted: &ExportQuery,
    progress: Option<&LogProgress>,
    out: &mut dyn Write,
) -> Result<ExportCounts, ExportError> {
    let mut written = ExportCounts { what: "events", ..ExportCounts::default() };
    let mut seen = HashSet::new();
    while let Some(met) = reader.next()? {
        let recorded = match met {
            EventItem::Event(recorded) => {
                if let Some(progress) = progress {
                    progress.show(recorded.seq);
                }
                recorded
            }
            // A write that was cut short was never acknowledged: nothing is missing.
            EventItem::Gap(gap) => {
                written.gaps += u64::from(gap.reason != GapReason::TornWrite);
                continue;
            }
        };
        if !is_selected(&recorded, wanted) || !seen.insert(recorded.id) {
            continue;
        }
        write_json(out, &Exported::of(&recorded))?;
        out.write_all(b"\n")?;
        written.count += 1;
    }
    Ok(written)
}

fn is_selected(recorded: &Recorded, wanted: &ExportQuery) -> bool {
    let (envelope, at_us) = (&recorded.envelope, recorded.at_us());
    at_us >= wanted.since_us
        && (wanted.until_us == 0 || at_us < wanted.until_us)
        && (wanted.project.is_empty() || envelope.project.key == wanted.project)
        && (wanted.session.is_empty() || envelope.session == wanted.session)
}

/// New files are readable by their owner alone.
fn into_file(
    file: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<ExportCounts, ExportError>,
) -> Result<ExportCounts, ExportError> {
    let mut out = BufWriter::new(UserFile::create(file, Readers::Owner)?);
    let written = write(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.commit()?;
    Ok(written)
}
