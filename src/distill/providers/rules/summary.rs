//! The summary of a turn.

use super::interrupted;
use super::markdown::sentences;
use super::parsed_turn::ParsedTurn;
use super::remarks::Remarks;
use super::reply::Summary;
use super::text::{add, clip, code, listing};

const FIELD_CHARS_MAX: usize = 700;
const FILES_MAX: usize = 30;
const LINES_MAX: usize = 10;

/// A shorter message alone is not worth a summary.
const ANSWER_CHARS_MIN: usize = 80;

/// Builds the summary of a turn; `None` if no tool was used and the answer is short.
pub(super) fn of(parsed: &ParsedTurn<'_>) -> Option<Summary> {
    if !is_worth_it(parsed) {
        return None;
    }
    let evidence = &parsed.evidence;
    let has_work = evidence.has_work();
    let mut files_edited: Vec<String> =
        evidence.files.iter().map(|file| file.path.clone()).collect();
    let mut files_read = evidence.only_read();
    files_edited.truncate(FILES_MAX);
    files_read.truncate(FILES_MAX);
    let summary = Summary {
        request: parsed.prompt.request.clone(),
        investigated: clip(&investigated(parsed), FIELD_CHARS_MAX),
        learned: learned(parsed, has_work),
        completed: completed(parsed, has_work),
        next_steps: next_steps(parsed),
        notes: notes(parsed),
        files_read,
        files_edited,
    };
    // A turn without a prompt that only ran `ls` would give an empty summary, which fails to parse.
    let texts = [
        &summary.request,
        &summary.investigated,
        &summary.learned,
        &summary.completed,
        &summary.next_steps,
        &summary.notes,
    ];
    let is_empty = texts.into_iter().all(String::is_empty);
    (!is_empty).then_some(summary)
}

fn is_worth_it(parsed: &ParsedTurn<'_>) -> bool {
    let (evidence, answer, remarks) = (&parsed.evidence, &parsed.answer, &parsed.remarks);
    evidence.has_work()
        || !evidence.read.is_empty()
        || !evidence.searches.is_empty()
        || !evidence.runs.is_empty()
        || !evidence.consulted.is_empty()
        || !evidence.choices.is_empty()
        || *remarks != Remarks::default()
        || !parsed.prompt.rules.is_empty()
        || !parsed.prompt.decisions.is_empty()
        || parsed.prompt.picked.as_ref().is_some_and(|picked| picked.is_decision)
        || !answer.decisions.is_empty()
        || !answer.next.is_empty()
        || answer.narrative.chars().count() >= ANSWER_CHARS_MIN
        || answer.points.len() >= 2
}

fn investigated(parsed: &ParsedTurn<'_>) -> String {
    let evidence = &parsed.evidence;
    let mut parts = Vec::new();
    let read = evidence.shown_read(parsed.cwd);
    if !read.is_empty() {
        parts.push(format!("Read {}.", listing(&read, 5)));
    }
    let searches: Vec<String> = evidence.searches.iter().map(|text| code(text)).collect();
    if !searches.is_empty() {
        parts.push(format!("Searched for {}.", listing(&searches, 3)));
    }
    parts.extend(evidence.consulted.iter().take(4).map(|line| sentence(line)));
    parts.join(" ")
}

fn learned(parsed: &ParsedTurn<'_>, has_work: bool) -> String {
    let answer = &parsed.answer;
    let mut lines: Vec<String> =
        answer.learned.iter().chain(&answer.decisions).take(6).cloned().collect();
    if !has_work && !answer.narrative.is_empty() {
        lines.retain(|line| !answer.narrative.contains(line.as_str()));
        lines.insert(0, answer.narrative.clone());
        if lines.len() == 1 {
            lines.extend(answer.points.iter().take(5).map(|point| format!("- {point}")));
        }
    }
    for reason in parsed.remarks.reasons.iter().chain(&parsed.remarks.errors).take(4) {
        add(&mut lines, reason, LINES_MAX);
    }
    lines.join("\n")
}

fn completed(parsed: &ParsedTurn<'_>, has_work: bool) -> String {
    let mut parts = Vec::new();
    if has_work {
        let stated = sentences(&parsed.answer.narrative);
        let is_new = |text: &&str| !parsed.answer.learned.iter().any(|learned| learned == text);
        parts.extend(stated.iter().copied().filter(is_new).take(3).map(str::to_owned));
    }
    parts.extend(parsed.actions());
    clip(&parts.join(" "), FIELD_CHARS_MAX)
}

fn next_steps(parsed: &ParsedTurn<'_>) -> String {
    let mut steps: Vec<String> = parsed.answer.next.iter().take(6).cloned().collect();
    steps.extend(parsed.is_interrupted.then(|| interrupted::INTERRUPTED.to_owned()));
    steps.extend(parsed.evidence.unfinished.iter().take(6).cloned());
    steps.extend(parsed.remarks.pending.iter().take(6).cloned());
    steps.extend(
        parsed.answer.questions.iter().take(2).map(|question| format!("Open question: {question}")),
    );
    steps.join("\n")
}

fn notes(parsed: &ParsedTurn<'_>) -> String {
    let failures = parsed.evidence.failures();
    let mut notes: Vec<String> =
        failures.iter().take(3).map(|run| sentence(&run.result())).collect();
    notes.extend(parsed.prompt.rules.iter().chain(&parsed.prompt.decisions).cloned());
    notes.extend(parsed.remarks.rejections.iter().map(|text| format!("Rejected: {text}")));
    notes.extend(parsed.remarks.denied.iter().map(|text| format!("Not permitted: {text}")));
    notes
        .extend(parsed.evidence.choices.iter().take(3).map(|choice| sentence(&choice.to_string())));
    notes
        .extend(parsed.remarks.api_error.iter().map(|error| format!("Ended by an error: {error}")));
    notes.join("\n")
}

fn sentence(text: &str) -> String {
    if text.ends_with(['.', '!', '?', '…', '。']) { text.to_owned() } else { format!("{text}.") }
}
