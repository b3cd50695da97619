//! Which observations a turn is worth, the most useful first.

use super::answer::decisiveness;
use super::begun;
use super::command_rows;
use super::commands::Purpose;
use super::evidence::Fix;
use super::files::{Class, FileChange};
use super::kinds::{self, Kind};
use super::parsed_turn::ParsedTurn;
use super::reply::Observation;
use super::text::{add, clip, code, listing, title};
use claude_mem_core::settings::Verbosity;
use claude_mem_memory::modes::Mode;

pub(super) const FACTS_MAX: usize = 8;
const FACT_CHARS_MAX: usize = 240;
const SUBTITLE_CHARS_MAX: usize = 160;
const FILES_MAX: usize = 30;

/// An answer shorter than this is no finding.
const FINDING_CHARS_MIN: usize = 100;

/// Makes the observations of a turn under a mode.
pub(super) fn of(parsed: &ParsedTurn<'_>, mode: &Mode, verbosity: Verbosity) -> Vec<Observation> {
    let mut found: Vec<(Kind, Observation)> = Vec::new();
    if parsed.evidence.has_work() {
        let kind = kinds::of_work(parsed);
        let work = begun::work(parsed).unwrap_or_else(|| work(parsed, kind));
        found.push((kind, work));
        found.extend(fixes_on_the_way(parsed, kind).map(|fix| (Kind::Bugfix, fix)));
    } else if let Some(finding) = finding(parsed, verbosity) {
        found.push((
            kinds::of_finding(&format!("{} {}", finding.title, finding.narrative)),
            finding,
        ));
    }
    found.extend(rules(parsed).chain(decisions(parsed)).map(|decision| (Kind::Decision, decision)));
    let about_commands = command_rows::detours(parsed).chain(command_rows::failures(parsed));
    found.extend(about_commands.map(|row| (Kind::Discovery, row)));
    if found.is_empty() {
        found.extend(command_rows::works_here_alone(parsed).map(|row| (Kind::Discovery, row)));
    }
    let mut kept: Vec<Observation> = Vec::new();
    for (kind, mut observation) in found {
        kind.within(mode).clone_into(&mut observation.kind);
        observation.concepts.retain(|concept| mode.concepts.iter().any(|word| word.id == *concept));
        if !observation.title.is_empty()
            && !kept.iter().any(|other| other.title == observation.title)
        {
            kept.push(observation);
        }
    }
    kept.truncate(match verbosity {
        Verbosity::Minimal => 2,
        Verbosity::Normal => 5,
        Verbosity::Verbose => 8,
    });
    kept
}

/// The one observation about what was changed.
fn work(parsed: &ParsedTurn<'_>, kind: Kind) -> Observation {
    let evidence = &parsed.evidence;
    let mut facts = Vec::new();
    if kind == Kind::Bugfix {
        for fix in evidence.fixes().iter().take(2) {
            fact(&mut facts, &failed_before(fix));
        }
    }
    for text in file_facts(parsed) {
        fact(&mut facts, &text);
    }
    if let Some(works) = command_rows::works_here(parsed) {
        fact(&mut facts, &works);
    }
    for effect in evidence.effects() {
        fact(&mut facts, &effect);
    }
    for subject in evidence.commits() {
        fact(&mut facts, &format!("Committed “{subject}”"));
    }
    for text in evidence.consulted.iter().chain(&evidence.choices).take(3) {
        fact(&mut facts, text);
    }
    let title = parsed.work_title();
    let cause = parsed.answer.learned.iter().find(|text| !same(text, &title));
    Observation {
        subtitle: subtitle(parsed, cause.map(String::as_str), &title),
        narrative: narrative(parsed),
        facts,
        concepts: concepts(kind, !parsed.answer.learned.is_empty()),
        files_read: first(evidence.only_read()),
        files_modified: first(evidence.files.iter().map(|file| file.path.clone()).collect()),
        title,
        ..Observation::default()
    }
}

/// Statements about the changed files: in the assistant's words where it named the file, else from the
/// difference. Then what else it listed.
pub(super) fn file_facts(parsed: &ParsedTurn<'_>) -> Vec<String> {
    let mut files: Vec<&FileChange> = parsed.evidence.files.iter().collect();
    files.sort_by_key(|file| match file.class() {
        Class::Source => 0,
        Class::Other => 1,
        Class::Test => 2,
    });
    let points = &parsed.answer.points;
    let is_told = |file: &&FileChange| points.iter().any(|point| point.contains(file.name()));
    let mut facts: Vec<String> = points.iter().take(5).cloned().collect();
    let room = FACTS_MAX.saturating_sub(facts.len() + 2).max(2);
    facts.extend(files.into_iter().filter(|file| !is_told(file)).take(room).map(FileChange::fact));
    facts
}

/// What failed, how, and when it passed.
fn failed_before(fix: &Fix<'_>) -> String {
    let essence = fix.before.fault.as_ref().map_or("", |fault| fault.essence.as_str());
    format!("{} failed: {}", code(&fix.before.shown), clip(essence, 140))
}

/// Things that broke and were mended while something else was done. Errors of the compiler are part of
/// writing code, and what a restructuring breaks is part of that: neither is worth a line of its own.
fn fixes_on_the_way<'s>(
    parsed: &'s ParsedTurn<'_>,
    kind: Kind,
) -> impl Iterator<Item = Observation> + 's {
    let is_own = move |fix: &Fix<'_>| {
        let is_compile = fix.before.fault.as_ref().is_some_and(|fault| fault.is_compile);
        let weight = fix.before.fault.as_ref().map_or(0, |fault| fault.weight);
        !matches!(kind, Kind::Bugfix | Kind::Refactor)
            && !is_compile
            && weight >= 5
            && fix.before.purpose != Purpose::Look
    };
    parsed.evidence.fixes().into_iter().filter(is_own).take(2).map(|fix| {
        let essence = fix.before.fault.as_ref().map_or("", |fault| fault.essence.as_str());
        let mut facts = Vec::new();
        fact(&mut facts, &failed_before(&fix));
        for file in fix.files.iter().filter(|file| !file.is_new) {
            fact(&mut facts, &file.fact());
        }
        fact(&mut facts, &fix.after.result());
        let mut by: Vec<String> = fix.files.iter().map(|file| code(&file.shown)).collect();
        let verb = if by.is_empty() { "" } else { "changing " };
        by.extend(fix.effects.iter().take(2).map(|effect| format!("“{effect}”")));
        Observation {
            title: title(&format!("Fixed on the way: {essence}")),
            subtitle: clip(&format!("Passes after {verb}{}", listing(&by, 3)), SUBTITLE_CHARS_MAX),
            facts,
            concepts: concepts(Kind::Bugfix, false),
            files_modified: fix.files.iter().map(|file| file.path.clone()).collect(),
            ..Observation::default()
        }
    })
}

/// The answer to a question that was looked into.
fn finding(parsed: &ParsedTurn<'_>, verbosity: Verbosity) -> Option<Observation> {
    let (evidence, answer) = (&parsed.evidence, &parsed.answer);
    let looked = !evidence.read.is_empty()
        || !evidence.searches.is_empty()
        || !evidence.consulted.is_empty()
        || !evidence.runs.is_empty();
    let headline = parsed.headline().or(answer.points.first().map(String::as_str));
    let chars = answer.lead.chars().count()
        + answer.points.iter().map(|p| p.chars().count()).sum::<usize>();
    let is_enough = looked && verbosity != Verbosity::Minimal || verbosity == Verbosity::Verbose;
    if !is_enough || chars < FINDING_CHARS_MIN {
        return None;
    }
    let title = title(headline?);
    let mut facts = Vec::new();
    for text in answer.learned.iter().chain(&answer.points).chain(&evidence.consulted) {
        if !same(text, &title) {
            fact(&mut facts, text);
        }
    }
    if let Some(works) = command_rows::works_here(parsed) {
        fact(&mut facts, &works);
    }
    let why = parsed.prompt.request.to_lowercase().starts_with("why");
    Some(Observation {
        subtitle: subtitle(parsed, None, &title),
        narrative: answer.lead.clone(),
        facts,
        concepts: vec![if why { "problem-solution" } else { "how-it-works" }.to_owned()],
        files_read: first(evidence.only_read()),
        title,
        ..Observation::default()
    })
}

/// What the user said shall hold from now on, and what was answered to questions.
fn rules<'s>(parsed: &'s ParsedTurn<'_>) -> impl Iterator<Item = Observation> + 's {
    let rules = parsed.prompt.rules.iter().map(|rule| (rule, "Said by the user", "pattern"));
    let choices =
        parsed.evidence.choices.iter().map(|choice| (choice, "Answered by the user", "trade-off"));
    rules.chain(choices).take(3).map(|(text, subtitle, concept)| Observation {
        title: title(text),
        subtitle: subtitle.to_owned(),
        narrative: whole(text),
        concepts: vec![concept.to_owned()],
        ..Observation::default()
    })
}

/// Choices stated by the user, or at the end.
fn decisions<'s>(parsed: &'s ParsedTurn<'_>) -> impl Iterator<Item = Observation> + 's {
    let headline = parsed.headline().unwrap_or_default();
    let stated = parsed.prompt.decisions.iter().chain(&parsed.answer.decisions);
    let decisions = stated.filter(move |text| *text != headline);
    decisions.take(2).map(|text| Observation {
        title: title(choice(text)),
        subtitle: subtitle(parsed, None, text),
        narrative: whole(text),
        concepts: vec!["trade-off".to_owned(), "why-it-exists".to_owned()],
        ..Observation::default()
    })
}

/// The part of a sentence that states the choice.
fn choice(text: &str) -> &str {
    let starts = [", so I ", ", so we ", ", so ", "; ", " — "].iter().filter_map(|mark| {
        let clause = &text[text.find(mark)? + mark.len()..];
        (decisiveness(&clause.to_lowercase()) > 0).then_some(clause)
    });
    starts.min_by_key(|clause| clause.len()).unwrap_or(text)
}

fn concepts(kind: Kind, has_lesson: bool) -> Vec<String> {
    let mut concepts = vec![match kind {
        Kind::Bugfix => "problem-solution",
        _ => "what-changed",
    }];
    if has_lesson {
        concepts.push(if kind == Kind::Bugfix { "gotcha" } else { "how-it-works" });
    }
    concepts.into_iter().map(str::to_owned).collect()
}

/// Why it matters: the cause found, else what was asked, if the title does not say it already.
fn subtitle(parsed: &ParsedTurn<'_>, cause: Option<&str>, title: &str) -> String {
    let request =
        Some(parsed.prompt.request.as_str()).filter(|text| !text.is_empty() && !same(text, title));
    match (cause, request) {
        (Some(cause), _) => clip(cause, SUBTITLE_CHARS_MAX),
        (None, Some(request)) => clip(&format!("Asked: {request}"), SUBTITLE_CHARS_MAX),
        (None, None) => String::new(),
    }
}

/// How the assistant told it, else what was done.
fn narrative(parsed: &ParsedTurn<'_>) -> String {
    let lead = &parsed.answer.lead;
    if parsed.headline().is_some() { lead.clone() } else { parsed.actions().join(" ") }
}

/// A text that its title had to cut.
fn whole(text: &str) -> String {
    if title(text).len() + 1 >= text.len() { String::new() } else { text.to_owned() }
}

fn fact(facts: &mut Vec<String>, text: &str) {
    add(facts, clip(text, FACT_CHARS_MAX), FACTS_MAX);
}

fn first(mut paths: Vec<String>) -> Vec<String> {
    paths.truncate(FILES_MAX);
    paths
}

/// Whether two texts say the same, one of them perhaps cut.
fn same(left: &str, right: &str) -> bool {
    let bare = |text: &str| text.trim_end_matches(['.', '…', '?', '!', '。', ':']).to_lowercase();
    let (left, right) = (bare(left), bare(right));
    !right.is_empty() && (left.starts_with(&right) || right.starts_with(&left))
}
