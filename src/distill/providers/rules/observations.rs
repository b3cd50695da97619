//! Builds the observations of a turn, the most useful first.

use super::choices::choice_clause;
use super::command_rows;
use super::commands::Purpose;
use super::corrections;
use super::evidence::Fix;
use super::files::{Class, FileChange};
use super::forms::{FormAnswer, is_vague, last_question_of};
use super::interrupted;
use super::kinds::{self, Kind};
use super::parsed_turn::ParsedTurn;
use super::picks::without_option_name;
use super::reply::Observation;
use super::text::{
    TITLE_CHARS_MAX, add, clip, code, contains_any, listing, padded, sentence_case, title, words,
};
use super::titles;
use super::user_rules;
use claude_mem_core::settings::Verbosity;
use claude_mem_memory::modes::Mode;

pub(super) const FACTS_MAX: usize = 14;
const FACT_CHARS_MAX: usize = 320;
const SUBTITLE_CHARS_MAX: usize = 200;
const FILES_MAX: usize = 30;

/// A shorter answer is not a finding.
const FINDING_CHARS_MIN: usize = 100;

/// A shorter answer without any lookup is not a finding.
const CHAT_CHARS_MIN: usize = 400;

/// Number of rows for the answers of forms in a turn. Further answers are facts of the last one.
const FORM_ROWS_MAX: usize = 3;

/// A shorter explanation of why nothing was found is no finding.
const EMPTY_RESULT_CHARS_MIN: usize = 800;

/// A longer report about running work has results, too.
const INTERIM_CHARS_MAX: usize = 600;

/// Failures that are about the machine and not about the project.
const MACHINE_FAULTS: &str = "\
    No such file or directory|command not found|Permission denied|No space left on device|\
    Connection refused|Connection reset|timed out|Could not resolve host";

/// A shorter sentence about the user's choice is unclear without the question.
const ECHO_WORDS_MIN: usize = 7;

/// Builds the observations of a turn with the types of a mode.
pub(super) fn of(parsed: &ParsedTurn<'_>, mode: &Mode, verbosity: Verbosity) -> Vec<Observation> {
    let mut found: Vec<(Kind, Observation)> = Vec::new();
    let mut fixes = Vec::new();
    if parsed.evidence.has_work() {
        let kind = kinds::of_work(parsed);
        let work = interrupted::work(parsed).unwrap_or_else(|| work(parsed, kind));
        found.push((kind, work));
        fixes.extend(fixes_on_the_way(parsed, kind).map(|fix| (Kind::Bugfix, fix)));
    } else if let Some(finding) = finding(parsed, verbosity) {
        let text = format!("{} {}", finding.title, finding.narrative);
        // A review that found nothing names the weaknesses it looked for.
        let kind = match parsed.evidence.has_empty_result {
            true => Kind::Discovery,
            false => kinds::of_finding(&text),
        };
        found.push((kind, finding));
    }
    found.extend(user_rule(parsed).map(|rule| (Kind::Rule, rule)));
    found.extend(user_decisions(parsed).map(|decision| (Kind::Decision, decision)));
    found.extend(user_statements(parsed).map(|statement| (Kind::Discovery, statement)));
    found.extend(fixes);
    found.extend(decisions(parsed).map(|decision| (Kind::Decision, decision)));
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

/// The observation about the changes of the turn.
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
    for text in parsed.remarks.rejections.iter().filter(|text| !is_rule(text)) {
        fact(&mut facts, &format!("Rejected by the user: {text}"));
    }
    for text in parsed.remarks.reasons.iter().chain(&parsed.remarks.errors) {
        fact(&mut facts, text);
    }
    if let Some(works) = command_rows::works_here(parsed) {
        fact(&mut facts, &works);
    }
    for effect in evidence.effects() {
        fact(&mut facts, &effect);
    }
    for commit in evidence.made_commits() {
        fact(&mut facts, &format!("Committed {commit}"));
    }
    for text in evidence.consulted.iter().take(3) {
        fact(&mut facts, text);
    }
    left_to_do(&mut facts, parsed);
    let title = titles::of_work(parsed);
    let narrative = narrative(parsed);
    let is_covered = |text: &&String| {
        narrative.contains(text.as_str()) || facts.contains(text) || same(text, &title)
    };
    let cause = parsed.answer.learned.iter().find(|text| !is_covered(text));
    Observation {
        subtitle: subtitle(parsed, cause.map(String::as_str), &title),
        narrative,
        facts,
        concepts: concepts(kind, !parsed.answer.learned.is_empty()),
        files_read: first(evidence.only_read()),
        files_modified: first(evidence.files.iter().map(|file| file.path.clone()).collect()),
        title,
        ..Observation::default()
    }
}

/// The user's objection to an earlier observation, for a turn without other observations.
pub(super) fn objection(parsed: &ParsedTurn<'_>, mode: &Mode) -> Option<Observation> {
    let text = corrections::objection(parsed)?;
    let title = title(text);
    Some(Observation {
        kind: Kind::Discovery.within(mode).to_owned(),
        narrative: if same(&title, text) { String::new() } else { clip(text, 600) },
        title,
        subtitle: "Corrected by the user".to_owned(),
        concepts: vec!["gotcha".to_owned()],
        ..Observation::default()
    })
}

/// Facts about the changed files: the assistant's sentence about a file, or else a description of
/// the diff. The assistant's other list items follow.
pub(super) fn file_facts(parsed: &ParsedTurn<'_>) -> Vec<String> {
    let mut files: Vec<&FileChange> = parsed.evidence.files.iter().collect();
    files.sort_by_key(|file| match file.class() {
        Class::Source => 0,
        Class::Other => 1,
        Class::Test => 2,
    });
    let points = &parsed.answer.points;
    let is_covered = |file: &&FileChange| points.iter().any(|point| point.contains(file.name()));
    let mut facts: Vec<String> = points.iter().take(8).cloned().collect();
    let room = 6_usize.saturating_sub(facts.len()).max(2);
    facts.extend(
        files.into_iter().filter(|file| !is_covered(file)).take(room).map(FileChange::fact),
    );
    facts
}

/// Adds the remaining work to the facts, so that the observation is complete without the summary.
fn left_to_do(facts: &mut Vec<String>, parsed: &ParsedTurn<'_>) {
    for text in parsed.answer.next.iter().chain(&parsed.remarks.pending).take(3) {
        facts.truncate(FACTS_MAX - 1);
        fact(facts, &format!("Left to do: {text}"));
    }
}

/// The failure of a check, and the command that passed later.
fn failed_before(fix: &Fix<'_>) -> String {
    let essence = fix.before.fault.as_ref().map_or("", |fault| fault.essence.as_str());
    format!("{} failed: {}", code(&fix.before.shown), clip(essence, 140))
}

/// Problems that were fixed during other work. Excludes compiler and linter errors, tests that were
/// edited until they passed, and breakage during a refactoring: all are part of writing code.
fn fixes_on_the_way<'s>(
    parsed: &'s ParsedTurn<'_>,
    kind: Kind,
) -> impl Iterator<Item = Observation> + 's {
    let is_own = move |fix: &Fix<'_>| {
        let fault =
            fix.before.fault.as_ref().filter(|fault| fault.weight >= 5 && !fault.is_compile);
        let is_of_machine = fault.is_some_and(|fault| contains_any(&fault.essence, MACHINE_FAULTS));
        let is_style = contains_any(&fix.before.shown, "lint|format|fmt|prettier|biome|ruff|black");
        let is_test_edited = fix.files.iter().any(|file| file.class() == Class::Test);
        // A git hook prints the output of any check, so the failing check is unknown.
        let is_hook = fix.before.shown.starts_with("git ");
        let is_changed = !(fix.files.is_empty() && fix.effects.is_empty());
        !matches!(kind, Kind::Bugfix | Kind::Refactor)
            && fault.is_some()
            && !is_of_machine
            && !is_style
            && !is_hook
            && is_changed
            && !is_test_edited
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

/// The answer to a question, if it needed a lookup or is long.
fn finding(parsed: &ParsedTurn<'_>, verbosity: Verbosity) -> Option<Observation> {
    let (evidence, answer) = (&parsed.evidence, &parsed.answer);
    let looked = !evidence.read.is_empty()
        || !evidence.searches.is_empty()
        || !evidence.consulted.is_empty()
        || !evidence.runs.is_empty();
    let chars = answer.narrative.chars().count()
        + answer.points.iter().map(|point| point.chars().count()).sum::<usize>();
    let chars_min = match verbosity {
        Verbosity::Minimal => return None,
        _ if evidence.has_empty_result => EMPTY_RESULT_CHARS_MIN,
        Verbosity::Normal if !looked => CHAT_CHARS_MIN,
        Verbosity::Normal | Verbosity::Verbose => FINDING_CHARS_MIN,
    };
    let is_interim = chars < INTERIM_CHARS_MAX && titles::is_interim(parsed);
    if chars < chars_min || is_interim {
        return None;
    }
    let title = titles::of_finding(parsed, chars >= CHAT_CHARS_MIN)?;
    let mut facts = Vec::new();
    let reasons = parsed.remarks.reasons.iter().chain(&parsed.remarks.errors);
    for text in answer.points.iter().chain(reasons).chain(&evidence.consulted) {
        if !same(text, &title) {
            fact(&mut facts, text);
        }
    }
    if let Some(works) = command_rows::works_here(parsed) {
        fact(&mut facts, &works);
    }
    left_to_do(&mut facts, parsed);
    let why = parsed.prompt.request.to_lowercase().starts_with("why");
    Some(Observation {
        subtitle: subtitle(parsed, None, &title),
        narrative: narrative(parsed),
        facts,
        concepts: vec![if why { "problem-solution" } else { "how-it-works" }.to_owned()],
        files_read: first(evidence.only_read()),
        title,
        ..Observation::default()
    })
}

/// Whether the user's reason for rejecting a tool use is a lasting instruction.
fn is_rule(rejection: &str) -> bool {
    corrections::is_objection(rejection) || !user_rules::rules(rejection).is_empty()
}

/// The user's rules, quoted: one observation for all rules of the turn.
fn user_rule(parsed: &ParsedTurn<'_>) -> Option<Observation> {
    let is_decision = |rule: &&String| parsed.prompt.decisions.iter().any(|text| same(rule, text));
    let mut rules: Vec<String> =
        parsed.prompt.rules.iter().filter(|rule| !is_decision(rule)).cloned().collect();
    for rejection in parsed.remarks.own_words.iter().filter(|text| is_rule(text)) {
        add(&mut rules, rejection, FACTS_MAX);
    }
    let (rule, others) = rules.split_first()?;
    let title = title(&sentence_case(user_rules::stating_clause(rule)));
    let mut facts = Vec::new();
    if title.len() + 1 < rule.len() {
        fact(&mut facts, rule);
    }
    for other in others {
        fact(&mut facts, other);
    }
    let text = clip(&parsed.prompt.text, 600);
    let is_covered = same(&text, rule) || text.is_empty();
    Some(Observation {
        title,
        subtitle: "Said by the user".to_owned(),
        narrative: if is_covered { String::new() } else { format!("The user: “{text}”") },
        facts,
        concepts: user_rules::is_lasting(rule).then(|| "pattern".to_owned()).into_iter().collect(),
        ..Observation::default()
    })
}

/// The user's decisions: in forms, among options, in the prompt. The title starts with the choice.
fn user_decisions<'s>(parsed: &'s ParsedTurn<'_>) -> impl Iterator<Item = Observation> + 's {
    let decision = |title: String, how: &str, text: String| Observation {
        narrative: if same(&title, &text) { String::new() } else { text },
        title,
        subtitle: how.to_owned(),
        concepts: vec!["trade-off".to_owned()],
        ..Observation::default()
    };
    let forms = parsed.evidence.choices.iter().filter(|choice| choice.is_decision());
    let forms = forms.map(move |choice| {
        decision(chosen_title(choice), "Answered by the user", choice.to_string())
    });
    let mut forms: Vec<Observation> = forms.collect();
    // A row for every answer of a long form would displace the work.
    for choice in forms.split_off(forms.len().min(FORM_ROWS_MAX)) {
        let last = &mut forms[FORM_ROWS_MAX - 1];
        fact(&mut last.facts, &format!("Also answered: {}", choice.title));
    }
    let picked = parsed.prompt.picked.iter().filter(|picked| picked.is_decision);
    let picked = picked.map(move |picked| {
        let text = format!("{} → {}", picked.question.trim_end_matches('.'), picked.answer);
        let is_question = picked.question.ends_with(['?', '？']);
        let chosen = if is_question {
            title(&format!(
                "{} — {}",
                picked.answer.trim_end_matches('.'),
                question_in(&picked.question)
            ))
        } else {
            title(&sentence_case(without_option_name(&picked.question)))
        };
        decision(chosen, "Chosen by the user", text)
    });
    let stated = parsed.prompt.decisions.iter();
    let stated = stated.map(move |text| decision(title(text), "Decided by the user", text.clone()));
    forms.into_iter().chain(picked).chain(stated).take(4)
}

/// What the user typed into a form about how things are.
fn user_statements<'s>(parsed: &'s ParsedTurn<'_>) -> impl Iterator<Item = Observation> + 's {
    let typed = parsed.evidence.choices.iter().filter(|choice| choice.is_statement());
    typed.take(2).map(|choice| Observation {
        title: title(&sentence_case(&choice.answer)),
        subtitle: "Stated by the user".to_owned(),
        narrative: choice.to_string(),
        concepts: vec!["how-it-works".to_owned()],
        ..Observation::default()
    })
}

/// Formats `Auto-execute — Should a plan wait for approval?`
fn chosen_title(choice: &FormAnswer) -> String {
    let answer = choice.answer.trim_end_matches(['.', '。']);
    let answer = ["(Recommended)", "(recommended)", "(recomanat)", "(Önerilen)", "(推荐)"]
        .iter()
        .find_map(|mark| answer.strip_suffix(mark))
        .map_or(answer, str::trim);
    let question = question_in(&choice.question);
    let last = last_question_of(&choice.question);
    // If the question does not fit, use its last sentence or its subject.
    let short = if is_vague(last) { "" } else { last };
    let fitting = [question, short, choice.header.as_str(), last]
        .into_iter()
        .filter(|text| !text.is_empty() && !text.ends_with('…'))
        .map(|text| format!("{answer} — {text}"))
        .find(|whole| whole.chars().count() <= TITLE_CHARS_MAX);
    fitting.unwrap_or_else(|| title(&format!("{answer} — {question}")))
}

/// The question in a text, without its introduction unless the question needs it.
fn question_in(text: &str) -> &str {
    let question = last_question_of(text);
    if is_vague(question) { text } else { question }
}

/// Decisions that the last message states, in a turn that changed something. "You chose …" is
/// skipped because the user's answer has its own observation.
fn decisions<'s>(parsed: &'s ParsedTurn<'_>) -> impl Iterator<Item = Observation> + 's {
    let count = if parsed.evidence.has_work() { 2 } else { 0 };
    let has_answered = user_decisions(parsed).next().is_some();
    let repeats = move |text: &&String| {
        let lower = text.to_lowercase();
        let is_yours = contains_any(
            &padded(&lower),
            " you chose | you decided | you picked | you went with | you confirmed | \
             user chose | user picked ",
        ) || contains_any(&lower, "你选择|你决定");
        is_yours && (has_answered || words(text) < ECHO_WORDS_MIN)
    };
    parsed.answer.decisions.iter().filter(move |text| !repeats(text)).take(count).map(|text| {
        Observation {
            title: title(choice_clause(text)),
            subtitle: "Decided in the session".to_owned(),
            narrative: whole(text),
            concepts: vec!["trade-off".to_owned(), "why-it-exists".to_owned()],
            ..Observation::default()
        }
    })
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

/// The cause, or else the request, if the title does not contain it. Questions are skipped: the
/// prompt is stored separately, and the observation has the answer.
fn subtitle(parsed: &ParsedTurn<'_>, cause: Option<&str>, title: &str) -> String {
    // A picked option or an answered question is the assistant's text.
    let picked = parsed.prompt.picked.as_ref().map(|picked| picked.answer.as_str());
    let request = picked.unwrap_or(&parsed.prompt.request);
    let is_covered = request.is_empty() || same(request, title) || request.ends_with(['?', '？']);
    match cause {
        Some(cause) => clip(cause, SUBTITLE_CHARS_MAX),
        None if is_covered => String::new(),
        None => clip(&format!("Asked: {request}"), SUBTITLE_CHARS_MAX),
    }
}

/// The assistant's text, or else a list of the actions.
fn narrative(parsed: &ParsedTurn<'_>) -> String {
    let narrative = &parsed.answer.narrative;
    if narrative.is_empty() { parsed.actions().join(" ") } else { narrative.clone() }
}

/// The text, or an empty string if the title already shows all of it.
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

/// Whether two texts are equal, ignoring case, final punctuation and truncation.
fn same(left: &str, right: &str) -> bool {
    let bare = |text: &str| text.trim_end_matches(['.', '…', '?', '!', '。', ':']).to_lowercase();
    let (left, right) = (bare(left), bare(right));
    !right.is_empty() && (left.starts_with(&right) || right.starts_with(&left))
}
