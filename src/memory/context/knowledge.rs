//! The last section of the page: titles of the most useful observations, as many as fit.

use std::collections::HashSet;

use claude_mem_projections::ContextObservation;
use jiff::tz::TimeZone;

use super::{
    choice::{Choice, ChosenObservation},
    commands,
    freshness::{FileState, Files},
    page::reference,
    sheet::{ALL, Entry, Layout, Sheet, heading_units},
    text::{TITLE_CHARS_MAX, clipped, moment, units, without_repeats},
};

const TITLE: &str = "Known";
/// A longer title that the page says already is not repeated.
const TITLE_CHARS_MIN: usize = 30;
const FULL_CHARS_MAX: usize = 420;
/// Length of the files listed after a title, in characters.
const FILES_CHARS_MAX: usize = 60;
/// Size of a line and a day heading without their texts.
const LINE_FRAME_UNITS: usize = 6;
/// If less space is left, no title fits.
const LINE_UNITS_MIN: usize = 40;

/// The most useful observations that fit, by day; some of them in full if there is space.
pub(super) fn add_knowledge(
    sheet: &mut Sheet,
    layout: &Layout<'_>,
    observations: &[ContextObservation],
    files: &Files<'_>,
    zone: &TimeZone,
) {
    let left = observations.iter().filter(|memory| {
        let title = &memory.title;
        let is_long = title.chars().count() >= TITLE_CHARS_MIN;
        let is_command =
            [commands::WORKS_HERE, commands::USE_INSTEAD].iter().any(|it| title.starts_with(*it));
        let is_shown = sheet.shows(memory.id) || is_long && sheet.text().contains(title.as_str());
        !is_command && !is_shown
    });
    let now_us = u64::try_from(layout.now.as_microsecond()).unwrap_or(0);
    let mut choice = Choice::new(left, files, now_us, layout.observations_max, sheet.text(), line);
    let mut part = sheet.part(ALL);
    part.reserve(heading_units(TITLE));
    let year = layout.now.to_zoned(zone.clone()).year();
    let mut lines: Vec<(ChosenObservation<'_>, String)> = Vec::new();
    let mut days = HashSet::new();
    while lines.len() < layout.observations_max
        && part.left() > LINE_UNITS_MIN
        && let Some(one) = choice.take_best(part.left().saturating_sub(LINE_FRAME_UNITS + 1))
    {
        let day = date(one.memory.at_us, year, zone);
        let heading = if days.contains(&day) { "" } else { day.as_str() };
        let units = one.line_units + units(heading) + LINE_FRAME_UNITS;
        if part.left() > units && part.take(&one.line) {
            if days.insert(day.clone()) {
                part.take(&day);
            }
            choice.show(&one);
            lines.push((one, day));
        }
    }
    let mut full = HashSet::new();
    for (one, _) in lines.iter_mut().take(layout.full_count) {
        let text = format!("\n  {}", clipped(&rest(one.memory, sheet.text()), FULL_CHARS_MAX));
        if text.len() > 4 && part.take(&text) {
            one.line.push_str(&text);
            if !text.ends_with('…') {
                full.insert(one.memory.id);
            }
        }
    }
    lines.sort_by_key(|(one, _)| std::cmp::Reverse((one.memory.at_us, one.memory.id)));
    let mut last = String::new();
    let mut entries = Vec::new();
    for (ChosenObservation { memory, line, .. }, day) in lines {
        if last != day {
            entries.push(Entry::plain(format!("{day}:")));
            last = day;
        }
        let id = memory.id;
        let is_full = full.contains(&id);
        entries.push(if is_full { Entry::in_full(id, line) } else { Entry::of(id, line) });
    }
    sheet.push(TITLE, entries);
}

/// What the narrative and the facts say besides the title and the page so far.
fn rest(memory: &ContextObservation, page: &str) -> String {
    let facts = memory.facts.iter().map(String::as_str);
    let parts: Vec<&str> = [memory.narrative.as_str()].into_iter().chain(facts).collect();
    without_repeats(&parts, &format!("{page}\n{}", memory.title))
}

/// A date, with the year if it is not the current one.
fn date(at_us: u64, this_year: i16, zone: &TimeZone) -> String {
    let at = moment(at_us, zone);
    at.strftime(if at.year() == this_year { "%b %-d" } else { "%b %-d, %Y" }).to_string()
}

/// A title with its files in brackets, unless it names one. Of the types, only `decision` and
/// `security_alert` are shown.
fn line(memory: &ContextObservation, state: FileState) -> String {
    let ContextObservation { kind, title, files, .. } = memory;
    let title = match title.as_str() {
        "" => memory.facts.first().map_or("(untitled)", String::as_str),
        title => title,
    };
    let title = clipped(title, TITLE_CHARS_MAX);
    let kind = match kind.as_str() {
        "decision" | "security_alert" => format!("{kind}: "),
        _ => String::new(),
    };
    let mut marks = Vec::new();
    let base = |file: &str| file.rsplit(['/', '\\']).next().unwrap_or(file).to_owned();
    if !files.iter().any(|file| title.contains(&base(file))) {
        marks = named_files(files);
    }
    match state {
        FileState::Changed => marks.push("changed since".into()),
        FileState::Gone => marks.push("gone".into()),
        FileState::Same | FileState::Unknown => {}
    }
    let marks = if marks.is_empty() { String::new() } else { format!(" [{}]", marks.join(", ")) };
    format!("{} {kind}{title}{marks}", reference(memory))
}

/// The first files inside the project that fit.
fn named_files(files: &[String]) -> Vec<String> {
    let is_inside = |file: &&String| !file.starts_with(['/', '~', '\\']) && !file.contains(':');
    let inside: Vec<&String> = files.iter().filter(is_inside).collect();
    let mut chars = 0;
    let fitting = inside.iter().take_while(|file| {
        chars += file.chars().count();
        chars <= FILES_CHARS_MAX
    });
    let mut named: Vec<String> = fitting.map(|file| (*file).clone()).collect();
    if !named.is_empty() && named.len() < inside.len() {
        named.push(format!("{} more", inside.len() - named.len()));
    }
    named
}
