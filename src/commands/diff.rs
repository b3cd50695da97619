//! `claude-mem diff`: compare generations of memories.

use clap::Args;
use claude_mem_projections::{ComparedObservation, Generation, Store};
use serde_json::{Value, json};

use super::memory_rows::{MemoryRow, memory_lines};
use claude_mem_core::{app::App, failure::Failure, format::number};
use claude_mem_distill::{Change, changes};
use claude_mem_memory::store;

/// Compare generations of memories
///
/// Lists observations that are gone, new or reworded. Compares one generation with what it
/// replaced, or would replace; two with each other. Generation 0 is the original.
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// One generation, or the earlier and the later of two [default: the latest]
    #[arg(num_args = 0..=2, value_name = "GENERATION")]
    generations: Vec<u32>,
    /// Print one JSON object per change
    #[arg(long)]
    json: bool,
}

impl Diff {
    /// Prints changes in chronological order.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let store = store::read_whole(app)?;
        let (before, after) = self.chosen(&store)?;
        let changes = changes(
            store.replaced_observations(after, before)?,
            store.generation_observations(after)?,
        );
        if self.json {
            return changes.iter().try_for_each(|change| app.output.json(&to_json(change)));
        }
        let counts = Counts::of(&changes);
        let before = before.map_or_else(
            || "the previous memories".to_owned(),
            |before| format!("generation {before}"),
        );
        app.output.line(format_args!("generation {after} against {before}: {counts}"))?;
        let generations = store.generations()?;
        let is_unfinished = |known: &Generation| known.generation == after && !known.is_finished;
        if generations.iter().any(is_unfinished) {
            app.output.say(format_args!(
                "note: generation {after} is incomplete: it lacks the memories of requests that \
                 failed or were not sent; complete it by running the same `claude-mem replay` again"
            ));
        }
        print(app, &changes)
    }

    fn chosen(&self, store: &Store) -> Result<(Option<u32>, u32), Failure> {
        let known = store.generations()?;
        let (before, after) = match self.generations[..] {
            [] => match known.first() {
                Some(latest) => (None, latest.generation),
                None => {
                    return Err(Failure::new("there is no generation to compare")
                        .remedy("make one with `claude-mem replay --prompt FILE --shadow`"));
                }
            },
            [after] => (None, after),
            [before, after, ..] => (Some(before), after),
        };
        for generation in before.into_iter().chain([after]) {
            let is_known = known.iter().any(|known| known.generation == generation);
            if generation > 0 && !is_known {
                return Err(no_generation(generation, &known));
            }
        }
        Ok((before, after))
    }
}

pub(super) fn no_generation(generation: u32, known: &[Generation]) -> Failure {
    let numbers: Vec<String> = known.iter().map(|known| known.generation.to_string()).collect();
    Failure::usage(format!("there is no generation {generation}")).remedy(match numbers.len() {
        0 => "make one with `claude-mem replay --shadow`".to_owned(),
        _ => format!("existing generations: {}", numbers.join(", ")),
    })
}

#[derive(Default)]
struct Counts {
    gone: usize,
    new: usize,
    reworded: usize,
    same: usize,
}

impl Counts {
    fn of(changes: &[Change]) -> Self {
        let mut counts = Self::default();
        for change in changes {
            match change {
                Change::Gone(_) => counts.gone += 1,
                Change::New(_) => counts.new += 1,
                Change::Reworded(..) => counts.reworded += 1,
                Change::Same(_) => counts.same += 1,
            }
        }
        counts
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [gone, new, reworded, same] =
            [self.gone, self.new, self.reworded, self.same].map(number);
        write!(f, "{gone} gone, {new} new, {reworded} reworded, {same} the same")
    }
}

fn print(app: &mut App, changes: &[Change]) -> Result<(), Failure> {
    let place = |change: &Change| {
        let observation = change.observation();
        (observation.session.clone(), observation.prompt_number)
    };
    let is_change = |change: &&Change| !matches!(change, Change::Same(_));
    let changes: Vec<&Change> = changes.iter().filter(is_change).collect();
    for turn in changes.chunk_by(|one, other| place(one) == place(other)) {
        let (session, number) = place(turn[0]);
        let number = number.map(|number| format!(", prompt {number}")).unwrap_or_default();
        app.output.line(app.output.dim(&format!("session {session}{number}")))?;
        let rows = |change: &&Change| match change {
            Change::Gone(old) => vec![row("-", "31", old)],
            Change::New(new) => vec![row("+", "32", new)],
            Change::Reworded(old, new) => vec![row("~", "33", old), row("", "33", new)],
            Change::Same(_) => Vec::new(),
        };
        let rows: Vec<MemoryRow> = turn.iter().flat_map(rows).collect();
        let columns = app.output.columns();
        let lines = memory_lines(&app.output, columns, &rows, |_, text| text.to_owned());
        lines.iter().flatten().try_for_each(|line| app.output.line(line))?;
    }
    Ok(())
}

fn row(sign: &str, colour: &'static str, observation: &ComparedObservation) -> MemoryRow {
    MemoryRow {
        id: sign.into(),
        label: observation.kind.clone(),
        colour,
        title: observation.title.clone(),
        ..MemoryRow::default()
    }
}

fn to_json(change: &Change) -> Value {
    let (word, before, after) = match change {
        Change::Gone(old) => ("gone", Some(old), None),
        Change::New(new) => ("new", None, Some(new)),
        Change::Reworded(old, new) => ("reworded", Some(old), Some(new)),
        Change::Same(same) => ("same", Some(same), Some(same)),
    };
    let observation = change.observation();
    let texts = |observation: &ComparedObservation| {
        json!({
            "type": observation.kind, "title": observation.title, "subtitle": observation.subtitle,
            "narrative": observation.narrative, "facts": observation.facts, "files": observation.files,
        })
    };
    json!({
        "change": word,
        "session": observation.session,
        "prompt_number": observation.prompt_number,
        "before": before.map(texts),
        "after": after.map(texts),
    })
}
