//! `claude-mem log`: show recorded events.

pub(super) mod event_text;
pub(super) mod json;
mod select;

use std::{collections::HashSet, fs, path::Path, thread, time::Duration};

use clap::Args;
use claude_mem_events::{EventItem, EventReader, Gap, Recorded, Seq};
use claude_mem_log::{Item, Log as Segments, Options, maintain};
use select::Selection;

use claude_mem_core::{app::App, failure::Failure, time_arg::TimeRange};

/// Show recorded events
///
/// Lists events in the order of the log, the newest last. With IDs, shows those events in full: a
/// `PLACE` of the list, an event's ID or a prefix of it, or the ID of a tool use.
#[derive(Debug, Args)]
pub(crate) struct Log {
    /// Show these events in full
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    /// Show all fields of each event
    #[arg(long)]
    raw: bool,
    /// Keep printing new events until interrupted
    #[arg(long, short)]
    follow: bool,
    #[command(flatten)]
    between: TimeRange,
    /// Only this session; a prefix of its ID is enough
    #[arg(long)]
    session: Option<String>,
    /// Only this project: its name or key
    #[arg(long)]
    project: Option<String>,
    /// Only this kind, such as `ToolUsed`; can be repeated
    #[arg(long)]
    kind: Vec<String>,
    /// Maximum number of events, newest first; 0 for all [default: 50; all with --json]
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,
}

/// Default of `--limit`.
const LIMIT: usize = 50;
/// Polling interval of `--follow`: hooks do not notify readers.
const FOLLOW_PAUSE: Duration = Duration::from_millis(200);

impl Log {
    /// Whether it runs until interrupted.
    pub(crate) fn is_endless(&self) -> bool {
        self.follow
    }

    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let dir = app.paths.data.join("log");
        merge_spilled(&dir);
        let segments = Segments::open(&dir, Options::default())?;
        let selection = Selection::new(&self, app.clock.now())?;
        let mut view = View { app, is_json: self.json, is_raw: self.raw || !self.ids.is_empty() };
        if !self.ids.is_empty() {
            return show_each(&mut view, &segments, &selection, &self.ids);
        }
        let limit = self.limit.unwrap_or(if self.json { 0 } else { LIMIT });
        let position = match limit {
            0 => list_all(&mut view, &segments, &selection)?,
            limit => list_last(&mut view, &segments, &selection, limit)?,
        };
        if self.follow { follow(&mut view, &segments, &selection, position) } else { Ok(()) }
    }
}

/// Prints new events until interrupted, or until the output is closed.
fn follow(
    view: &mut View<'_>,
    segments: &Segments,
    selection: &Selection,
    mut position: Seq,
) -> Result<(), Failure> {
    loop {
        thread::sleep(FOLLOW_PAUSE);
        position = read_on(view, EventReader::from(segments, position), selection)?;
    }
}

/// Merges spilled records into the log, so that they are visible.
pub(super) fn merge_spilled(dir: &Path) {
    let is_spilled = fs::read_dir(dir.join("spill")).is_ok_and(|mut files| files.next().is_some());
    if is_spilled {
        // Without write permission they stay for a process that has it.
        let _ = maintain(dir, &Options::default());
    }
}

struct View<'a> {
    app: &'a mut App,
    is_json: bool,
    is_raw: bool,
}

impl View<'_> {
    fn item(&mut self, item: &EventItem) -> Result<(), Failure> {
        match item {
            EventItem::Event(recorded) => self.event(recorded),
            EventItem::Gap(gap) => self.gap(gap),
        }
    }

    fn event(&mut self, recorded: &Recorded) -> Result<(), Failure> {
        let output = &mut self.app.output;
        match (self.is_json, self.is_raw) {
            (true, is_raw) => output.json(&json::event(recorded, is_raw)),
            (false, true) => output.line(event_text::event_text(recorded, output)),
            (false, false) => output.line(event_text::event_row(recorded, output)),
        }
    }

    fn gap(&mut self, gap: &Gap) -> Result<(), Failure> {
        let output = &mut self.app.output;
        match self.is_json {
            true => output.json(&json::gap(gap)),
            false => output.line(event_text::gap(gap, output)),
        }
    }
}

fn list_all(
    view: &mut View<'_>,
    segments: &Segments,
    selection: &Selection,
) -> Result<Seq, Failure> {
    let reader = match selection.since_us {
        0 => EventReader::from(segments, Seq::START),
        since_us => EventReader::since(segments, since_us)?,
    };
    read_on(view, reader, selection)
}

/// Prints all events that can be read now, and returns the next position.
fn read_on(
    view: &mut View<'_>,
    mut reader: EventReader,
    selection: &Selection,
) -> Result<Seq, Failure> {
    while let Some(met) = reader.next()? {
        if selection.includes(&met) {
            view.item(&met)?;
        }
    }
    Ok(reader.position())
}

/// Reads from the end, so that the newest events of a long log appear at once.
fn list_last(
    view: &mut View<'_>,
    segments: &Segments,
    selection: &Selection,
    limit: usize,
) -> Result<Seq, Failure> {
    let mut found = Vec::new();
    let mut end = Seq::START;
    let mut seen = HashSet::new();
    let mut is_more = false;
    let mut backwards = segments.read_backwards(None)?;
    while let Some(item) = backwards.next()? {
        let met = match item {
            Item::Record(entry) => EventItem::Event(Recorded::from_entry(&entry)),
            Item::Gap(gap) => EventItem::Gap(gap),
        };
        if let EventItem::Event(recorded) = &met {
            end = end.max(recorded.seq.next());
        }
        let is_new = match &met {
            EventItem::Event(recorded) => seen.insert(recorded.id),
            EventItem::Gap(_) => true,
        };
        if !is_new || !selection.includes(&met) {
            continue;
        }
        if found.len() == limit {
            is_more = true;
            break;
        }
        found.push(met);
    }
    if is_more && !view.is_json {
        view.app.output.say("earlier events are not shown; see all with `--limit 0`");
    }
    if found.is_empty() && !view.is_json {
        view.app.output.say("no events match");
    }
    for met in found.iter().rev() {
        view.item(met)?;
    }
    Ok(end)
}

fn show_each(
    view: &mut View<'_>,
    segments: &Segments,
    selection: &Selection,
    ids: &[String],
) -> Result<(), Failure> {
    for id in ids {
        let found = select::find(segments, selection, id)?;
        if found.is_empty() {
            return Err(Failure::usage(format!("there is no event `{id}`"))
                .remedy("find it with `claude-mem log --limit 0`"));
        }
        for recorded in &found {
            view.event(recorded)?;
        }
    }
    Ok(())
}
