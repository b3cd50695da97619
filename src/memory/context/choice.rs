//! Selects the observations for a session's context: the highest value per character.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use claude_mem_projections::{ContextObservation, search::Statement};

use super::{
    freshness::{FileState, Files},
    names::names,
    text::units,
};

/// A selected observation.
#[derive(Debug)]
pub(super) struct ChosenObservation<'a> {
    pub(super) memory: &'a ContextObservation,
    /// Its line on the page.
    pub(super) line: String,
    line_chars: usize,
    /// The size of the line in the budget.
    pub(super) line_units: usize,
    score: f64,
    /// The names in its title and files, as indexes.
    names: Vec<usize>,
}

/// Half-life of the score of a memory or name, in days.
const HALF_LIFE_DAYS: f64 = 10.0;
/// The value of a name that the page does not show yet, relative to age and type.
const NAME_SHARE: f64 = 0.3;
/// Names that only one session uses are worth less: most are not used again.
const NAME_OF_ONE_SESSION: f64 = 0.5;
/// Share of a name's weight that does not decrease with age.
const NAME_MIN: f64 = 0.3;
/// Number of files of an observation that count as its names.
const NAMED_FILES_MAX: usize = 3;
/// Added to the length of a line, so that a few characters less do not outweigh its content.
const LINE_CHARS: f64 = 40.0;
/// Maximum share of the lines for one session, for all subagents, and for all automated sessions
/// (one eighth).
const SHARE_MAX: usize = 8;
const SHARE_LINES_MIN: usize = 4;

/// The remaining candidates.
#[derive(Debug)]
pub(super) struct Choice<'a> {
    left: Vec<ChosenObservation<'a>>,
    /// The weight of each name; 0 once the page shows it.
    weights: Vec<f64>,
    share_max: usize,
    taken: HashMap<Source, usize>,
    /// Statements of the selected observations.
    statements: HashSet<Statement>,
}

/// Sources of observations that may not fill the page.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Source {
    Session(Option<i64>),
    Subagents,
    Automated,
}

impl<'a> Choice<'a> {
    /// Names in `shown` are known already. `line` renders an observation.
    pub(super) fn new(
        observations: impl Iterator<Item = &'a ContextObservation>,
        files: &Files<'_>,
        now_us: u64,
        count: usize,
        shown: &str,
        line: impl Fn(&ContextObservation, FileState) -> String,
    ) -> Self {
        let observations: Vec<_> = observations.collect();
        let mut index = NameIndex::default();
        let titles: Vec<Vec<usize>> =
            observations.iter().map(|memory| index.add_title(memory)).collect();
        for (memory, title) in observations.iter().zip(&titles) {
            index.count(memory, title);
        }
        let mut weights = index.weights(now_us);
        for name in names(shown) {
            if let Some(at) = index.places.get(&*name) {
                weights[*at] = 0.0;
            }
        }
        let left = observations.into_iter().zip(titles).map(|(memory, names)| {
            let state = state_of_all(memory, files);
            let line = line(memory, state);
            let (line_chars, line_units) = (line.chars().count(), units(&line));
            let score = score(memory, state, now_us);
            ChosenObservation { memory, line, line_chars, line_units, score, names }
        });
        Self {
            left: left.collect(),
            weights,
            share_max: (count / SHARE_MAX).max(SHARE_LINES_MIN),
            taken: HashMap::new(),
            statements: HashSet::new(),
        }
    }

    /// Removes and returns the candidate with the highest value per character whose line is short
    /// enough. A candidate that repeats an earlier choice is dropped: comparing only selected lines
    /// is cheaper than comparing all candidates.
    pub(super) fn take_best(&mut self, units_max: usize) -> Option<ChosenObservation<'a>> {
        loop {
            let best = self.remove_best(units_max)?;
            if statement(best.memory).is_none_or(|text| self.statements.insert(text)) {
                return Some(best);
            }
        }
    }

    /// Names on the page add no value.
    fn remove_best(&mut self, units_max: usize) -> Option<ChosenObservation<'a>> {
        let value = |one: &ChosenObservation<'_>| {
            let new: f64 = one.names.iter().map(|name| self.weights[*name]).sum();
            (one.score + NAME_SHARE * new) / (LINE_CHARS + one.line_chars as f64)
        };
        let is_open = |one: &ChosenObservation<'_>| {
            sources(one.memory)
                .all(|source| self.taken.get(&source).is_none_or(|taken| *taken < self.share_max))
        };
        let mut best: Option<(f64, i64, usize)> = None;
        for (at, one) in self.left.iter().enumerate().filter(|(_, one)| one.line_units <= units_max)
        {
            let (value, id) = (value(one), one.memory.id);
            let is_better =
                best.is_none_or(|best| value.total_cmp(&best.0).then(id.cmp(&best.1)).is_gt());
            // Few candidates reach this check.
            if is_better && is_open(one) {
                best = Some((value, id, at));
            }
        }
        Some(self.left.swap_remove(best?.2))
    }

    /// Records that the page shows this observation.
    pub(super) fn show(&mut self, one: &ChosenObservation<'_>) {
        for name in &one.names {
            self.weights[*name] = 0.0;
        }
        for source in sources(one.memory) {
            *self.taken.entry(source).or_default() += 1;
        }
    }
}

fn sources(memory: &ContextObservation) -> impl Iterator<Item = Source> {
    let session = match memory.is_automated {
        true => Source::Automated,
        false => Source::Session(memory.session),
    };
    [Some(session), memory.is_of_subagent.then_some(Source::Subagents)].into_iter().flatten()
}

/// The sessions that use a name in a title, and the last use. A name used by several sessions is
/// likely to be used again.
#[derive(Debug, Default)]
struct NameIndex {
    places: HashMap<String, usize>,
    /// Without duplicates; few sessions use the same name.
    sessions: Vec<Vec<Option<i64>>>,
    last_us: Vec<u64>,
}

impl NameIndex {
    /// Adds the names of a title and returns their indexes without duplicates. Only names in titles
    /// are shown.
    fn add_title(&mut self, memory: &ContextObservation) -> Vec<usize> {
        let mut added = Vec::new();
        for name in title_names(memory) {
            let next = self.places.len();
            added.push(*self.places.entry(name.into_owned()).or_insert(next));
        }
        added.sort_unstable();
        added.dedup();
        self.sessions.resize_with(self.places.len(), Vec::new);
        self.last_us.resize(self.places.len(), 0);
        added
    }

    /// Counts the names of a title, and those in the rest of the memory.
    fn count(&mut self, memory: &ContextObservation, title: &[usize]) {
        let Self { places, sessions, last_us } = self;
        let texts = memory.facts.iter().chain([&memory.narrative]);
        let inner = texts.flat_map(|text| names(text));
        let inner = inner.filter_map(|name| places.get(&*name).copied());
        for at in title.iter().copied().chain(inner) {
            if !sessions[at].contains(&memory.session) {
                sessions[at].push(memory.session);
            }
            last_us[at] = last_us[at].max(memory.at_us);
        }
    }

    fn weights(&self, now_us: u64) -> Vec<f64> {
        let weight = |(sessions, last_us): (&Vec<Option<i64>>, &u64)| {
            let count = sessions.len();
            let alone = if count == 1 { NAME_OF_ONE_SESSION } else { 1.0 };
            let age = NAME_MIN + (1.0 - NAME_MIN) * recency(*last_us, now_us);
            (1.0 + count as f64).log2() * age * alone
        };
        self.sessions.iter().zip(&self.last_us).map(weight).collect()
    }
}

fn title_names(memory: &ContextObservation) -> impl Iterator<Item = Cow<'_, str>> {
    let files = memory.files.iter().take(NAMED_FILES_MAX);
    names(&memory.title).chain(files.filter_map(|file| names(file).next()))
}

fn recency(at_us: u64, now_us: u64) -> f64 {
    let days = now_us.saturating_sub(at_us) as f64 / 86_400e6;
    0.5_f64.powf(days / HALF_LIFE_DAYS)
}

fn score(memory: &ContextObservation, files: FileState, now_us: u64) -> f64 {
    let kind = match memory.kind.as_str() {
        "security_alert" => 0.6,
        "decision" => 0.5,
        "bugfix" => 0.4,
        "feature" | "security_note" => 0.35,
        "discovery" => 0.25,
        "refactor" => 0.2,
        _ => 0.1,
    };
    let about = match files {
        FileState::Same => 0.3,
        FileState::Changed => 0.1,
        FileState::Unknown => 0.0,
        FileState::Gone => -0.4,
    };
    let chatter = if memory.is_of_subagent { -0.2 } else { 0.0 };
    recency(memory.at_us, now_us) + kind + about + chatter
}

/// Files checked per memory.
const FILES_MAX: usize = 4;

/// The worst state of the files. `Gone` only if none is left.
fn state_of_all(memory: &ContextObservation, files: &Files<'_>) -> FileState {
    let states: Vec<_> =
        memory.files.iter().take(FILES_MAX).map(|file| files.state(file, memory.at_us)).collect();
    let has = |state| states.contains(&state);
    if !states.is_empty() && states.iter().all(|state| *state == FileState::Gone) {
        FileState::Gone
    } else if has(FileState::Changed) || has(FileState::Gone) {
        FileState::Changed
    } else if has(FileState::Same) {
        FileState::Same
    } else {
        FileState::Unknown
    }
}

/// The content of an observation, for comparison; `None` without a title. Observations with the
/// same content share one line.
pub(super) fn statement(memory: &ContextObservation) -> Option<Statement> {
    Statement::of(&memory.kind, &memory.title, memory.files.iter().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const NOW_US: u64 = 1_763_000_000_000_000;
    const HOUR_US: u64 = 3_600_000_000;

    fn memory(id: i64, kind: &str, title: &str, hours_ago: u64) -> ContextObservation {
        ContextObservation {
            id,
            at_us: NOW_US - hours_ago * HOUR_US,
            session: Some(id),
            kind: kind.into(),
            title: title.into(),
            ..ContextObservation::default()
        }
    }

    fn chosen(observations: &[ContextObservation], count: usize, shown: &str) -> Vec<i64> {
        let files = Files::of(Path::new("/nowhere/at/all"), None);
        let mut choice =
            Choice::new(observations.iter(), &files, NOW_US, count, shown, |memory, _| {
                memory.title.clone()
            });
        let mut ids = Vec::new();
        while ids.len() < count
            && let Some(one) = choice.take_best(usize::MAX)
        {
            choice.show(&one);
            ids.push(one.memory.id);
        }
        ids
    }

    fn ids(observations: &[ContextObservation], count: usize) -> Vec<i64> {
        chosen(observations, count, "")
    }

    #[test]
    fn a_decision_of_last_week_outweighs_a_change_of_yesterday() {
        let rows =
            [memory(2, "change", "touched it", 24), memory(1, "decision", "keep WAL on", 120)];
        assert_eq!(ids(&rows, 2), [1, 2]);
    }

    #[test]
    fn equal_memories_are_one_line() {
        let rows = [
            memory(3, "bugfix", "Reader skips torn frames now", 1),
            memory(2, "bugfix", "The reader skips  torn frames.", 2),
            memory(1, "bugfix", "Writer retries short writes!", 3),
        ];
        assert_eq!(ids(&rows, 9), [3, 1]);
    }

    #[test]
    fn new_names_come_before_repeated_ones() {
        let rows = [
            memory(3, "bugfix", "Fixed a fault in cart.rs today", 1),
            memory(2, "bugfix", "Fixed a fault in cart.rs again", 2),
            memory(1, "bugfix", "Fixed a fault in mail.rs today", 3),
        ];
        assert_eq!(chosen(&rows, 9, ""), [3, 1, 2]);
        assert_eq!(chosen(&rows, 9, "cart.rs is known")[0], 1);
    }

    #[test]
    fn a_short_title_comes_before_an_equally_informative_long_one() {
        let long = "Fixed the fault, which was hard to find and took very long, in mail.rs at last";
        let rows = [memory(2, "bugfix", long, 1), memory(1, "bugfix", "Fixed mail.rs", 1)];
        assert_eq!(ids(&rows, 9), [1, 2]);
    }

    #[test]
    fn observations_that_differ_in_a_word_a_number_a_file_or_a_kind_are_never_merged() {
        let long = "Fixed the crash in the payment service when the basket of a guest is empty";
        let with_file = |id, file: &str| ContextObservation {
            files: vec![file.into()],
            ..memory(id, "bugfix", long, id.cast_unsigned())
        };
        let pairs = [
            (
                memory(1, "bugfix", long, 1),
                memory(2, "bugfix", &long.replace("payment", "invoice"), 2),
            ),
            (
                memory(1, "bugfix", "Raised limit to 10", 1),
                memory(2, "bugfix", "Raised limit to 11", 2),
            ),
            (memory(1, "bugfix", "Set delay to -1", 1), memory(2, "bugfix", "Set delay to 1", 2)),
            (memory(1, "change", "Renamed a to b", 1), memory(2, "change", "Renamed b to a", 2)),
            (memory(1, "bugfix", "Use WAL", 1), memory(2, "decision", "Use WAL", 2)),
            (with_file(1, "src/payment.rs"), with_file(2, "src/checkout.rs")),
            (memory(1, "bugfix", "", 1), memory(2, "bugfix", "", 2)),
        ];
        for (one, other) in pairs {
            let shown = ids(&[one.clone(), other.clone()], 9);
            assert_eq!(shown.len(), 2, "{one:?} and {other:?}");
        }
        let numbered = (1..=80).map(|id| {
            memory(id, "bugfix", &format!("{long}, part {id} of the whole migration"), 1)
        });
        let numbered: Vec<_> = numbered.collect();
        assert_eq!(ids(&numbered, 100).len(), 80);
    }

    #[test]
    fn neither_one_session_nor_subagents_nor_programs_fill_the_page() {
        let crowd = |change: fn(&mut ContextObservation)| {
            let mut rows = Vec::new();
            for id in 20..50 {
                let mut row = memory(id, "feature", &format!("Feature number {id} is new"), 1);
                change(&mut row);
                rows.push(row);
            }
            rows.push(memory(7, "change", "from another day", 200));
            ids(&rows, 12)
        };
        for chosen in [
            crowd(|row| row.session = Some(1)),
            crowd(|row| row.is_of_subagent = true),
            crowd(|row| row.is_automated = true),
        ] {
            assert_eq!(chosen.len(), 5);
            assert!(chosen.contains(&7));
        }
    }
}
