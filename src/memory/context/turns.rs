//! Lines about sessions: open work, and requests and results turn by turn.

use std::collections::HashSet;

use claude_mem_projections::{ContextSession, ContextSummary, SessionState};
use jiff::{Timestamp, tz::TimeZone};

use super::{
    failed_command::FailedCommand,
    page::on_host,
    sheet::Entry,
    text::{clipped, day, moment, units, without_repeats},
};

const OPEN_CHARS_MAX: usize = 200;
const STATE_CHARS_MAX: usize = 400;
/// Limits of the text of one turn.
const TURN_CHARS_MIN: usize = 170;
const TURN_CHARS_MAX: usize = 600;
/// Size of a line without its text.
const LINE_UNITS: usize = 2;
/// Size of the line that counts the omitted turns.
const GAP_UNITS: usize = 20;
/// The maximum share of the request in a turn's line (one third).
const REQUEST_PART: usize = 3;

/// Remaining work of the last sessions, latest first.
pub(super) fn open_ends(sessions: &[ContextSession], zone: &TimeZone) -> Vec<Entry> {
    let mut seen = HashSet::new();
    let open = sessions.iter().filter_map(next_steps);
    let open = open.filter(|turn| seen.insert(turn.next_steps.clone()));
    open.map(|turn| {
        let text = clipped(&turn.next_steps, OPEN_CHARS_MAX);
        let (day, host) = (day(turn.at_us, zone), on_host(&turn.host));
        Entry::plain(format!("- S{} ({day}{host}) {text}", turn.id))
    })
    .collect()
}

/// Only the last two turns are searched for open work: work left by earlier ones is probably done.
fn next_steps(session: &ContextSession) -> Option<&ContextSummary> {
    session.turns.iter().rev().take(2).find(|turn| !turn.next_steps.is_empty())
}

/// The time of a session's last turn.
pub(super) fn when(session: &ContextSession, zone: &TimeZone, now: Timestamp) -> String {
    let at_us = session.turns.last().map_or(0, |turn| turn.at_us);
    let clock = moment(at_us, zone).strftime("%H:%M").to_string();
    format!("{} {clock} ({})", day(at_us, zone), ago(at_us, now))
}

fn ago(at_us: u64, now: Timestamp) -> String {
    let minutes = (now.as_microsecond() - at_us.cast_signed()) / 60_000_000;
    match minutes {
        ..=1 => "just now".into(),
        2..120 => format!("{minutes} minutes ago"),
        120..2880 => format!("{} hours ago", minutes / 60),
        _ => format!("{} days ago", minutes / 1440),
    }
}

/// One line per turn. If not all fit, the last turn is kept because the next session continues it,
/// the first because it introduces the session, then those before the last.
pub(super) fn lines(session: &ContextSession, units_max: usize) -> Vec<Entry> {
    let turns: Vec<&ContextSummary> =
        session.turns.iter().filter(|turn| !result(turn).is_empty()).collect();
    let turns = if turns.is_empty() { session.turns.iter().collect() } else { turns };
    let [earlier @ .., last] = &turns[..] else { return Vec::new() };
    let chars_max = (units_max / turns.len()).clamp(TURN_CHARS_MIN, TURN_CHARS_MAX);
    let mut left = units_max.saturating_sub(GAP_UNITS);
    let mut fitting = |turn: &ContextSummary, chars_max: usize| {
        let text = line(turn, chars_max);
        let rest = left.checked_sub(units(&text) + LINE_UNITS)?;
        left = rest;
        Some(Entry::plain(text))
    };
    // The last turn can take twice the space of others, and is never omitted.
    let sizes = [(2 * chars_max).min(TURN_CHARS_MAX), chars_max, chars_max / 2];
    let last = sizes.into_iter().find_map(|chars_max| fitting(last, chars_max));
    let mut lines: Vec<Entry> = last.into_iter().collect();
    let Some((first, between)) = earlier.split_first() else { return lines };
    let first = fitting(first, chars_max);
    let shown = between.iter().rev().map_while(|turn| fitting(turn, chars_max));
    lines.extend(shown);
    let left_out = turns.len() - lines.len() - usize::from(first.is_some());
    if left_out > 0 && first.is_some() {
        let turns = if left_out == 1 { "turn" } else { "turns" };
        lines.push(Entry::plain(format!("- … {left_out} {turns}")));
    }
    lines.extend(first);
    lines.reverse();
    lines
}

fn line(turn: &ContextSummary, chars_max: usize) -> String {
    let request = clipped(&turn.request, chars_max / REQUEST_PART);
    let result = result(turn);
    match (request.as_str(), result.as_str()) {
        (request, "") => format!("- {request}"),
        ("", result) => format!("- {}", clipped(result, chars_max)),
        (request, result) => {
            let left = chars_max.saturating_sub(request.chars().count());
            format!("- {request} → {}", clipped(result, left))
        }
    }
}

/// The results and findings of a turn; if there are none, what it investigated.
fn result(turn: &ContextSummary) -> String {
    let parts = [&turn.completed, &turn.learned].map(String::as_str);
    match without_repeats(&parts, "") {
        none if none.is_empty() => turn.investigated.clone(),
        result => result,
    }
}

/// The current state of a session whose history was compacted.
pub(super) fn state(state: &SessionState, failed: Option<&FailedCommand>) -> Vec<Entry> {
    let next = state.session.turns.iter().rev().find(|turn| !turn.next_steps.is_empty());
    let failed = failed.map(|FailedCommand { command, error }| match error.as_str() {
        "" => format!("`{command}`"),
        error => format!("`{command}`: {error}"),
    });
    let lines = [
        ("Asked last", Some(state.last_prompt.clone())),
        ("Open", next.map(|turn| turn.next_steps.clone())),
        ("Last failing command", failed),
    ];
    let line = |(name, text): (&str, Option<String>)| {
        let text = clipped(&text?, STATE_CHARS_MAX);
        (!text.is_empty()).then(|| Entry::plain(format!("- {name}: {text}")))
    };
    lines.into_iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::sheet::Sheet;

    #[test]
    fn the_last_turn_is_shown_even_without_space() {
        let turn = |number: usize, letter: &str| ContextSummary {
            request: format!("turn {number}"),
            completed: letter.repeat(400),
            ..ContextSummary::default()
        };
        for letter in ["a ", "ş "] {
            let session = ContextSession { turns: (1..=9).map(|at| turn(at, letter)).collect() };
            for units_max in [220, 500, 900, 3000] {
                let mut sheet = Sheet::new(4000);
                sheet.push("Last", lines(&session, units_max));
                let text = sheet.text();
                assert!(text.contains("turn 9 →"), "{units_max}: {text}");
                assert!(units(text) <= units_max + 20, "{units_max}: {text}");
            }
            let mut sheet = Sheet::new(4000);
            sheet.push("Last", lines(&session, 900));
            assert!(sheet.text().contains("turn 1 →") && sheet.text().contains("- … "));
        }
    }
}
