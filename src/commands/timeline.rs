//! `claude-mem timeline`: memories around a point in time.

use clap::Args;
use claude_mem_projections::{
    search::{Hit, MemoryId, has_several_clients},
    timeline::TimelineWindow,
};
use serde::Serialize;

use super::{
    hit_labels::{colour, label},
    memory_rows::{MemoryRow, memory_lines},
};
use claude_mem_core::{app::App, failure::Failure, time_arg::local};
use claude_mem_memory::{
    memory_json::HitJson,
    resolve, store,
    timeline::{TimelineAnchor, TimelineRequest, TimelineScope, timeline},
};

/// Show what happened around a memory or a time
///
/// Lists prompts, observations and summaries in chronological order. The anchor is an observation
/// (`12`), a summary (`S3`), a prompt (`P9`), a time (`2026-03-01 14:30`, `yesterday`), or words:
/// then it is their best match. Without an anchor, shows the latest.
#[derive(Debug, Args)]
pub(crate) struct Timeline {
    /// The memory, time or words to center on
    #[arg(value_name = "ANCHOR")]
    anchor: Vec<String>,
    /// Number of memories before it
    #[arg(long, short = 'B', value_name = "N", default_value_t = 10)]
    before: usize,
    /// Number of memories after it
    #[arg(long, short = 'A', value_name = "N", default_value_t = 10)]
    after: usize,
    /// Only this project: its name or key [default: the anchor's]
    #[arg(long)]
    project: Option<String>,
    /// All projects
    #[arg(long, conflicts_with = "project")]
    all_projects: bool,
    /// Only observations of this type, such as `bugfix`, or `prompts`, `observations` or
    /// `sessions`; can be repeated
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// Before the anchor.
const ANCHOR: &str = "▶ ";

impl Timeline {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let store = store::read_folded(app)?;
        resolve::check_filter(&store, self.project.as_deref())?;
        let text = self.anchor.join(" ");
        let request = TimelineRequest {
            anchor: match text.is_empty() {
                true => TimelineAnchor::Now,
                false => TimelineAnchor::Any(text.clone()),
            },
            before: self.before,
            after: self.after,
            scope: match (self.project, self.all_projects) {
                (Some(name), _) => TimelineScope::Named(name),
                (None, true) => TimelineScope::All,
                (None, false) => TimelineScope::OfAnchor,
            },
            types: self.types,
        };
        let found = timeline(app, &store, &request)?;
        if let Some(hint) = found.hint {
            let is_id = text.parse::<MemoryId>().is_ok();
            return Err(match is_id {
                true => Failure::usage(hint).remedy("find its ID with `claude-mem search`"),
                false => Failure::new(format!("nothing matches `{text}`")).remedy(hint),
            });
        }
        match self.json {
            true => print_json(app, found),
            false => print(app, &found),
        }
    }
}

fn print_json(app: &mut App, found: TimelineWindow) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Moment {
        is_anchor: bool,
        #[serde(flatten)]
        hit: HitJson,
    }
    found.moments.into_iter().try_for_each(|hit| {
        let is_anchor = Some(hit.name) == found.anchor;
        app.output.json(&Moment { is_anchor, hit: hit.into() })
    })
}

/// A heading per day, a row per memory; an arrow marks the anchor.
fn print(app: &mut App, found: &TimelineWindow) -> Result<(), Failure> {
    if found.moments.is_empty() {
        app.output.say("no memories near this time");
        return Ok(());
    }
    let ids = found.moments.iter().map(|hit| hit.name.to_string().len());
    let width = ids.max().unwrap_or(0);
    let rows: Vec<MemoryRow> = found.moments.iter().map(|hit| row(hit, found, width)).collect();
    let output = &app.output;
    let mark = |row: &MemoryRow, title: &str| match row.id.starts_with(ANCHOR) {
        true => output.paint("1", title),
        false => title.to_owned(),
    };
    let lines = memory_lines(output, output.columns(), &rows, mark);
    let mut day = String::new();
    let mut is_marked = found.anchor.is_some();
    for (hit, lines) in found.moments.iter().zip(lines) {
        if !is_marked && hit.at_us >= found.at_us {
            is_marked = true;
            print_moment(app, found.at_us)?;
        }
        let date = local(hit.at_us, "%Y-%m-%d");
        if date != day {
            app.output.line(app.output.paint("1", &date))?;
            day = date;
        }
        lines.into_iter().try_for_each(|line| app.output.line(line))?;
    }
    if !is_marked {
        print_moment(app, found.at_us)?;
    }
    Ok(())
}

fn print_moment(app: &mut App, at_us: u64) -> Result<(), Failure> {
    let moment = local(at_us, "%Y-%m-%d %H:%M");
    app.output.line(app.output.paint("1;33", &format!("{ANCHOR}{moment}")))
}

fn row(hit: &Hit, found: &TimelineWindow, width: usize) -> MemoryRow {
    let anchor = if Some(hit.name) == found.anchor { ANCHOR } else { "  " };
    let client = hit.client.clone().filter(|_| has_several_clients(&found.moments));
    MemoryRow {
        id: format!("{anchor}{:>width$}", hit.name.to_string()),
        time: local(hit.at_us, "%H:%M"),
        client: client.unwrap_or_default(),
        label: label(hit).to_owned(),
        colour: colour(hit),
        title: hit.marked_title(),
        ..MemoryRow::default()
    }
}
