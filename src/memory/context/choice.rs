//! Selects the memories for a session's context, by usefulness rather than age alone.

use std::collections::HashMap;

use claude_mem_projections::{ContextMaterial, ContextObservation};

use super::freshness::{FileState, Files};

/// A selected memory.
#[derive(Debug)]
pub(crate) struct Chosen<'a> {
    pub memory: &'a ContextObservation,
    /// Number of earlier observations with the same identity.
    pub repeats: usize,
    /// State of the files it names.
    pub files: FileState,
    pub score: f64,
}

/// Half-life of a memory's score, in days.
const HALF_LIFE_DAYS: f64 = 10.0;
/// One session, and all subagents together, get at most 1/3 of the lines.
const SHARE_MAX: usize = 3;

/// Selects up to `count`, the best first.
pub(crate) fn choose<'a>(
    material: &'a ContextMaterial,
    files: &Files<'_>,
    now_us: u64,
    count: usize,
) -> Vec<Chosen<'a>> {
    let mentions = mentions(&material.observations);
    let mut chosen: Vec<Chosen<'a>> = Vec::new();
    let mut seen: HashMap<Identity<'_>, usize> = HashMap::new();
    for memory in &material.observations {
        // Newest first, so a duplicate found later is older.
        if let Some(&same) = identity(memory).and_then(|identity| seen.get(&identity)) {
            chosen[same].repeats += 1;
            continue;
        }
        seen.extend(identity(memory).map(|identity| (identity, chosen.len())));
        let state = state_of_all(memory, files);
        let score = score(memory, state, now_us, &mentions);
        chosen.push(Chosen { memory, repeats: 0, files: state, score });
    }
    for one in &mut chosen {
        // Repeated memories matter more.
        one.score += 0.1 * (one.repeats.min(3) as f64);
    }
    chosen.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then(other.memory.id.cmp(&one.memory.id))
    });
    keep_shares(chosen, count)
}

/// Limits the share of one session and of subagents.
fn keep_shares(chosen: Vec<Chosen<'_>>, count: usize) -> Vec<Chosen<'_>> {
    let share = (count / SHARE_MAX).max(4);
    let mut per_session: HashMap<Option<i64>, usize> = HashMap::new();
    let mut of_subagents = 0;
    let mut kept = Vec::new();
    for one in chosen {
        let of_session = per_session.entry(one.memory.session).or_default();
        if *of_session >= share || one.memory.is_of_subagent && of_subagents >= share {
            continue;
        }
        *of_session += 1;
        of_subagents += usize::from(one.memory.is_of_subagent);
        kept.push(one);
        if kept.len() == count {
            break;
        }
    }
    kept
}

fn score(
    memory: &ContextObservation,
    files: FileState,
    now_us: u64,
    mentions: &HashMap<&str, usize>,
) -> f64 {
    let days = now_us.saturating_sub(memory.at_us) as f64 / 86_400e6;
    let recency = 0.5_f64.powf(days / HALF_LIFE_DAYS);
    let kind = match memory.kind.as_str() {
        "rule" => 0.7,
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
    let again = memory.files.iter().filter_map(|file| mentions.get(file.as_str())).max();
    let again = 0.05 * again.copied().unwrap_or(1).saturating_sub(1).min(5) as f64;
    let chatter = if memory.is_of_subagent { -0.2 } else { 0.0 };
    recency + kind + about + again + chatter
}

/// Number of memories that name each file.
fn mentions(memories: &[ContextObservation]) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    for file in memories.iter().flat_map(|memory| &memory.files) {
        *counts.entry(file.as_str()).or_default() += 1;
    }
    counts
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

/// Observations with the same kind, title and files share one line.
type Identity<'a> = (&'a str, String, Vec<&'a str>);

/// The identity of an observation; `None` without a title.
///
/// Titles are equal up to white space, a final full stop and the case of the first letter.
/// Similarity is not enough: two titles that differ in one name or number are two facts, and
/// merging would lose one.
fn identity(memory: &ContextObservation) -> Option<Identity<'_>> {
    let words: Vec<&str> = memory.title.split_whitespace().collect();
    let title = words.join(" ");
    let mut letters = title.trim_end_matches('.').chars();
    let title: String = letters.next()?.to_lowercase().chain(letters).collect();
    let mut files: Vec<&str> = memory.files.iter().map(String::as_str).collect();
    files.sort_unstable();
    files.dedup();
    Some((&memory.kind, title, files))
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

    fn ids(observations: Vec<ContextObservation>, count: usize) -> Vec<i64> {
        let material = ContextMaterial { observations, ..ContextMaterial::default() };
        let files = Files::of(Path::new("/nowhere/at/all"), None);
        choose(&material, &files, NOW_US, count).iter().map(|one| one.memory.id).collect()
    }

    #[test]
    fn a_decision_of_last_week_outweighs_a_change_of_yesterday() {
        let rows =
            vec![memory(2, "change", "touched a file", 24), memory(1, "decision", "use WAL", 120)];
        assert_eq!(ids(rows, 2), [1, 2]);
    }

    #[test]
    fn repeated_memories_are_one_line() {
        let rows = vec![
            memory(3, "bugfix", "Reader skips torn frames now", 1),
            memory(2, "bugfix", "reader skips  torn frames now.", 2),
            memory(1, "bugfix", "Writer retries short writes", 3),
        ];
        assert_eq!(ids(rows, 9), [3, 1]);
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
            let shown = ids(vec![one.clone(), other.clone()], 9);
            assert_eq!(shown.len(), 2, "{one:?} and {other:?}");
        }
        let numbered = (1..=80).map(|id| {
            memory(id, "bugfix", &format!("{long}, part {id} of the whole migration"), 1)
        });
        assert_eq!(ids(numbered.collect(), 100).len(), 80);
    }

    #[test]
    fn neither_one_session_nor_subagents_fill_the_page() {
        let words =
            ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"];
        let title =
            |id: i64| format!("{} {}", words[(id % 10) as usize], words[(id / 10 % 10) as usize]);
        let busy = (20..50).map(|id| ContextObservation {
            session: Some(1),
            ..memory(id, "feature", &title(id), 1)
        });
        let mut rows: Vec<_> = busy.collect();
        rows.push(memory(7, "change", "from another day", 200));
        let chosen = ids(rows, 12);
        assert_eq!(chosen.len(), 5);
        assert!(chosen.contains(&7));

        let crowd = (20..50).map(|id| ContextObservation {
            is_of_subagent: true,
            ..memory(id, "feature", &title(id), 1)
        });
        assert_eq!(ids(crowd.collect(), 12).len(), 4);
    }
}
