//! Finds rules in a prompt: the user's demands, prohibitions and corrections, quoted.
//!
//! A rule addresses the assistant or demands something of the result. A keyword such as "never" is
//! not enough: "The callback never fires" reports a fault.

use super::markdown::sentences;
use super::rule_clause::Clause;
use super::rule_phrases::RULE_LISTS;
use super::text::{add, clip, contains_any, fitting_title, padded, words};

const RULES_MAX: usize = 6;
const RULE_CHARS_MAX: usize = 300;

/// A longer prompt is a plan, a log or a document, unless it is prose of few lines. In such a
/// prompt only clear rules count.
const PROMPT_CHARS_MAX: usize = 1_500;
const DICTATED_CHARS_MAX: usize = 6_000;
const DICTATED_LINES_MAX: usize = 4;

/// The user's lasting instructions, quoted, the strongest first.
pub(super) fn rules(prompt: &str) -> Vec<String> {
    let chars = prompt.chars().count();
    let is_dictated = chars <= DICTATED_CHARS_MAX && prompt.lines().count() <= DICTATED_LINES_MAX;
    if chars > PROMPT_CHARS_MAX && !is_dictated {
        return Vec::new();
    }
    let strength_min = if chars > PROMPT_CHARS_MAX { LISTED } else { 1 };
    let mut found: Vec<(bool, u8, &str)> = Vec::new();
    let mut is_list = false;
    for line in prompt.lines() {
        is_list &= (1..LISTED_WORDS_MAX).contains(&words(line));
        for sentence in sentences(line).into_iter().map(without_address) {
            let strength = strength(sentence);
            let strength = if is_list { strength.max(LISTED) } else { strength };
            if strength >= strength_min {
                found.push((is_list || is_lasting(sentence), strength, sentence));
            }
        }
        is_list |= announces_rules(line);
    }
    found.sort_by_key(|(is_lasting, strength, _)| std::cmp::Reverse((*is_lasting, *strength)));
    let mut rules = Vec::new();
    for (_, _, sentence) in found {
        add(&mut rules, clip(sentence, RULE_CHARS_MAX), RULES_MAX);
    }
    rules
}

/// Removes a leading URL.
fn without_address(sentence: &str) -> &str {
    let (first, rest) = sentence.split_once(' ').unwrap_or((sentence, ""));
    if first.starts_with("https://") { rest.trim_start() } else { sentence }
}

/// The clause of a long rule that states it: "The colors are fine, but the total should be bold".
pub(super) fn stating_clause(rule: &str) -> &str {
    let is_stated = |text: &str| fitting_title(text).is_some_and(|title| strength(&title) > 0);
    if is_stated(rule) {
        return rule;
    }
    let marks = [", but ", ", and ", ", so ", "; ", " - ", ": ", ", "];
    let clauses = marks.iter().flat_map(|mark| {
        rule.match_indices(mark).take(CLAUSES_MAX).map(|(at, mark)| &rule[at + mark.len()..])
    });
    clauses.into_iter().find(|clause| words(clause) >= 3 && is_stated(clause)).unwrap_or(rule)
}

/// Text with more separators is a list.
const CLAUSES_MAX: usize = 6;

/// Strength of a rule in a list of rules, and its maximum length.
const LISTED: u8 = 3;
const LISTED_WORDS_MAX: usize = 16;

/// Matches "The rules are:"
fn announces_rules(line: &str) -> bool {
    let last = sentences(line).pop().unwrap_or_default();
    last.ends_with([':', '：'])
        && words(last) < LISTED_WORDS_MAX
        && contains_any(&padded(&last.to_lowercase()), RULE_LISTS)
}

/// How clearly a sentence states a rule; 0 if it does not. Each of its clauses is checked.
fn strength(sentence: &str) -> u8 {
    if !(2..=60).contains(&words(sentence)) || sentence.starts_with('/') {
        return 0;
    }
    let clauses = sentence.split(" - ").flat_map(|part| part.split(" — "));
    let clauses = clauses.flat_map(|part| part.split("; "));
    // "For the other modules, too: no logic in controllers."
    let clauses = clauses.flat_map(|part| {
        let rest = part.split_once(": ").map(|(_, rest)| rest).filter(|rest| words(rest) >= 3);
        [Some(part), rest].into_iter().flatten()
    });
    clauses.map(|clause| Clause::of(clause).strength()).max().unwrap_or(0)
}

/// Whether a rule is about how to work, and so applies again: standing practice, prohibitions,
/// complaints. A wish for one result is fulfilled once: "The total should be bold".
pub(super) fn is_lasting(rule: &str) -> bool {
    Clause::of(rule).is_lasting()
}

#[cfg(test)]
#[path = "user_rule_tests.rs"]
mod tests;
