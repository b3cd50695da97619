//! The summary of a turn.

use super::markdown::sentences;
use super::reply::Summary;
use super::story::Story;
use super::text::{clip, code, listing};

const FIELD_CHARS_MAX: usize = 700;
const FILES_MAX: usize = 30;

/// A message shorter than this says nothing that is worth a summary by itself.
const LEAD_CHARS_MIN: usize = 80;

/// Sums up a turn; none if nothing was done or learned.
pub(super) fn of(story: &Story<'_>) -> Option<Summary> {
    if !tells(story) {
        return None;
    }
    let evidence = &story.evidence;
    let has_work = evidence.has_work();
    let mut files_edited: Vec<String> =
        evidence.files.iter().map(|file| file.path.clone()).collect();
    let mut files_read = evidence.only_read();
    files_edited.truncate(FILES_MAX);
    files_read.truncate(FILES_MAX);
    Some(Summary {
        request: story.asked.request.clone(),
        investigated: clip(&investigated(story), FIELD_CHARS_MAX),
        learned: learned(story, has_work),
        completed: completed(story, has_work),
        next_steps: next_steps(story),
        notes: notes(story),
        files_read,
        files_edited,
    })
}

fn tells(story: &Story<'_>) -> bool {
    let (evidence, said) = (&story.evidence, &story.said);
    evidence.has_work()
        || !evidence.failures().is_empty()
        || !evidence.passed().is_empty()
        || !story.asked.rules.is_empty()
        || !story.asked.decisions.is_empty()
        || !said.decisions.is_empty()
        || !said.next.is_empty()
        || said.lead.chars().count() >= LEAD_CHARS_MIN
        || said.points.len() >= 2
}

fn investigated(story: &Story<'_>) -> String {
    let evidence = &story.evidence;
    let mut parts = Vec::new();
    let read = evidence.shown_read(story.cwd);
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

fn learned(story: &Story<'_>, has_work: bool) -> String {
    let said = &story.said;
    let mut lines: Vec<String> =
        said.learned.iter().chain(&said.decisions).take(6).cloned().collect();
    if !has_work && !said.lead.is_empty() {
        lines.retain(|line| !said.lead.contains(line.as_str()));
        lines.insert(0, said.lead.clone());
        if lines.len() == 1 {
            lines.extend(said.points.iter().take(5).map(|point| format!("- {point}")));
        }
    }
    lines.join("\n")
}

fn completed(story: &Story<'_>, has_work: bool) -> String {
    let mut parts = Vec::new();
    if has_work && story.headline().is_some() {
        let told = sentences(&story.said.lead);
        let is_news = |text: &&str| !story.said.learned.iter().any(|learned| learned == text);
        parts.extend(told.iter().copied().filter(is_news).take(3).map(str::to_owned));
    }
    parts.extend(story.actions());
    clip(&parts.join(" "), FIELD_CHARS_MAX)
}

fn next_steps(story: &Story<'_>) -> String {
    let mut steps: Vec<String> = story.said.next.iter().take(6).cloned().collect();
    steps.extend(story.evidence.unfinished.iter().take(6).cloned());
    steps.extend(
        story.said.questions.iter().take(2).map(|question| format!("Open question: {question}")),
    );
    steps.join("\n")
}

fn notes(story: &Story<'_>) -> String {
    let failures = story.evidence.failures();
    let mut notes: Vec<String> =
        failures.iter().take(3).map(|run| sentence(&run.result())).collect();
    notes.extend(story.asked.rules.iter().chain(&story.asked.decisions).cloned());
    notes.extend(story.evidence.choices.iter().take(3).map(|choice| sentence(choice)));
    notes.join("\n")
}

fn sentence(text: &str) -> String {
    if text.ends_with(['.', '!', '?', '…', '。']) { text.to_owned() } else { format!("{text}.") }
}
