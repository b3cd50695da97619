//! Parses the prompt of a turn: the request, and the decisions and rules of the user.

use super::choices::is_proposal;
use super::markdown::{self, Block, sentences};
use super::picks::{self, Picked};
use super::text::{
    add, alternatives, clip, contains_any, fitting_title, is_among, one_line, padded,
    sentence_case, starts_with_any, words,
};
use super::user_rules;
use crate::turn_prompt::Turn;
use claude_mem_privacy::typed;

/// A longer request has an object.
const ROUTINE_WORDS_MAX: usize = 6;

const REQUEST_CHARS_MAX: usize = 400;

/// A parsed prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Prompt {
    /// The user's text without code and courtesies. A short answer is combined with its question.
    /// Empty if the user typed nothing.
    pub(super) request: String,
    /// The request as a title, if it starts with a task or a plan.
    pub(super) title: Option<String>,
    /// The request is to carry out a plan that the user accepted.
    pub(super) is_plan: bool,
    /// Decisions stated along with the request.
    pub(super) decisions: Vec<String>,
    /// The option that the user selected.
    pub(super) picked: Option<Picked>,
    /// Lasting instructions, quoted.
    pub(super) rules: Vec<String>,
    /// The user's own words, on one line.
    pub(super) text: String,
}

/// Phrases before the request.
const COURTESIES: &str = "\
    please |can you please |could you please |can you |could you |would you |i want you to |\
    i'd like you to |i would like you to |i need you to |we need to |i want to |let's |lets |\
    hey, |hey |hi, |hi |hello, |ok, |ok |ok. |okay, |now |also |bitte |then |great, |thanks, ";

impl Prompt {
    /// Parses the prompts of a turn. Only the user's own words can be rules, decisions, picks.
    pub(super) fn of(turn: &Turn<'_>) -> Self {
        let prompt = typed(turn.prompt).text;
        if let Some(plan) = plan(&prompt) {
            return plan;
        }
        let own = plain(&turn.own_words());
        let typed = plain(&prompt);
        let rules = user_rules::rules(&own).iter().map(|rule| as_rule(rule)).collect();
        let picked = picks::picked(&own, turn.previous_message);
        let mut decisions = Vec::new();
        for sentence in sentences(&own).into_iter().filter(|text| is_choice(text)) {
            add(&mut decisions, clip(&sentence_case(without_courtesy(sentence)), 240), 2);
        }
        let whole = one_line(&typed);
        let bare = without_courtesy(&whole);
        let first = sentences(bare).first().copied().unwrap_or_default();
        let request = match &picked {
            Some(picked) => format!("{} (to: {})", picked.answer, picked.question),
            None => sentence_case(bare),
        };
        Self {
            request: clip(&request, REQUEST_CHARS_MAX),
            title: (begins_with_a_task(bare) && !is_routine(bare) && words(first) >= 3)
                .then(|| fitting_title(first.trim_end_matches('?')))
                .flatten(),
            is_plan: false,
            decisions,
            picked,
            rules,
            text: one_line(&own),
        }
    }
}

/// A plan that the user accepted. Its heading is the request; its text was not written by the user.
fn plan(prompt: &str) -> Option<Prompt> {
    let heading = plan_heading(prompt.trim_start().strip_prefix("Implement the following plan:")?)?;
    Some(Prompt {
        request: clip(&format!("Implement the plan: {heading}"), REQUEST_CHARS_MAX),
        title: fitting_title(&heading).filter(|title| words(title) >= 2),
        is_plan: true,
        ..Prompt::default()
    })
}

/// The first heading of a plan, or its first sentence.
pub(super) fn plan_heading(plan: &str) -> Option<String> {
    let heading = markdown::blocks(plan).into_iter().find_map(|block| match block {
        Block::Heading(text) | Block::BoldLine(text) => Some(text),
        Block::Paragraph(text) | Block::Labelled(text) => {
            sentences(&text).first().map(|first| (*first).to_owned())
        }
        Block::Row(_) | Block::Item { .. } => None,
    })?;
    let labels = "Implementation Plan:|Implementation Plan|Plan:|Plan —|Plan -|План:|Fix Plan:";
    let bare = alternatives(labels).find_map(|label| heading.strip_prefix(label));
    Some(sentence_case(bare.unwrap_or(&heading).trim_start_matches([' ', '—', ':', '-'])))
}

/// The text without Markdown.
fn plain(text: &str) -> String {
    markdown::blocks(text).into_iter().map(block_text).collect::<Vec<_>>().join("\n")
}

fn block_text(block: Block) -> String {
    match block {
        Block::Heading(text)
        | Block::BoldLine(text)
        | Block::Paragraph(text)
        | Block::Labelled(text)
        | Block::Row(text)
        | Block::Item { text, .. } => text,
    }
}

fn without_courtesy(text: &str) -> &str {
    let mut text = text.trim();
    while let Some(rest) = alternatives(COURTESIES).find_map(|words| {
        let head = text.get(..words.len())?;
        head.eq_ignore_ascii_case(words).then(|| &text[words.len()..])
    }) {
        text = rest.trim_start();
    }
    text
}

/// A rule as the user typed it, without a leading greeting or answer.
fn as_rule(sentence: &str) -> String {
    let mut text = without_courtesy(sentence);
    let answers = "yes and |yes, |yes but |yes |and |but |so |one more thing, |oh and ";
    while let Some(rest) = alternatives(answers).find_map(|words| {
        let head = text.get(..words.len())?;
        head.eq_ignore_ascii_case(words).then(|| without_courtesy(&text[words.len()..]))
    }) {
        text = rest;
    }
    sentence_case(&one_line(text))
}

/// Verbs that start a task.
const TASKS: &str = "\
    fix|debug|repair|resolve|correct|solve|add|implement|create|build|support|write|introduce|\
    make|generate|set|setup|allow|enable|refactor|rename|extract|clean|simplify|move|split|\
    restructure|replace|migrate|convert|merge|inline|update|bump|upgrade|configure|change|remove|\
    delete|document|improve|optimize|optimise|speed|port|deploy|install|use|switch|test|\
    investigate|find|review|handle|disable|drop|extend|format|release|publish|commit|reduce|\
    cache|validate";

/// `Commit and push`: the request does not say what it is about.
fn is_routine(request: &str) -> bool {
    let text = padded(&request.to_lowercase());
    starts_with_any(&text, " commit | release | publish | deploy | test it | test this | merge ")
        && words(request) <= ROUTINE_WORDS_MAX
}

pub(super) fn begins_with_a_task(text: &str) -> bool {
    let verb: String =
        text.chars().take_while(|c| c.is_alphabetic()).flat_map(char::to_lowercase).collect();
    is_among(&verb, TASKS)
}

/// Whether the user states a decision: "let's go with SQLite, since …".
fn is_choice(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    let chosen = " \
        go with | going with | i choose | i chose | i pick | let's use | we'll use | let's do | \
        i decided | we decided | let's keep | stick with | settle on | wir nehmen | on prend | \
        vamos con | \
        берём | beriem | kullanalım ";
    let reasons = " \
        because | since | so that | instead of | rather than | \
        weil | statt | parce que | porque ";
    let text = padded(&lower);
    !sentence.ends_with(['?', '？'])
        && words(sentence) >= 5
        && (contains_any(&text, chosen) && !contains_any(&text, " if | would | could ")
            || contains_any(&text, " is better , | is better and ") && contains_any(&text, reasons)
            || contains_any(&lower, "就用|选择|采用|に決め|にしましょう"))
        && (!is_proposal(&lower) || contains_any(&text, " option | options "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(prompt: &str) -> Prompt {
        Prompt::of(&Turn { prompt, ..Turn::default() })
    }

    #[test]
    fn a_task_becomes_the_title() {
        let prompt = read(
            "Hey, can you please add rate limiting to the login route? Use Redis.\n```\ncode\n```",
        );
        assert_eq!(prompt.title.as_deref(), Some("Add rate limiting to the login route"));
        assert_eq!(prompt.request, "Add rate limiting to the login route? Use Redis.");
        assert_eq!(read("do some work").title, None);
    }

    #[test]
    fn a_routine_request_is_not_a_title() {
        for prompt in ["Commit and push", "commit all your recent changes", "Deploy it to staging"]
        {
            assert_eq!(read(prompt).title, None, "{prompt}");
        }
        assert!(read("Release the carts of guests after thirty days").title.is_some());
    }

    #[test]
    fn the_heading_of_a_plan_is_the_request() {
        let prompt = read(
            "Implement the following plan:\n\n# Plan: Show prices in euro\n\nNever use cents.",
        );
        assert_eq!(prompt.title.as_deref(), Some("Show prices in euro"));
        assert_eq!(prompt.request, "Implement the plan: Show prices in euro");
        assert!(prompt.rules.is_empty());
    }

    #[test]
    fn rules_are_found_and_fault_reports_are_not() {
        let prompt = read("Always use pnpm here, never npm. Then add zod.");
        assert_eq!(prompt.rules, ["Always use pnpm here, never npm."]);
        assert_eq!(read("Yes and do not wrap lines.").rules, ["Do not wrap lines."]);
        assert!(read("The callback never fires. It always worked.").rules.is_empty());
    }

    #[test]
    fn a_choice_of_the_user_is_a_decision() {
        let prompt = read("ok let's go with SQLite instead of Postgres since there is one writer.");
        assert_eq!(
            prompt.decisions,
            ["Go with SQLite instead of Postgres since there is one writer."]
        );
        assert!(read("Should we go with SQLite?").decisions.is_empty());
    }

    #[test]
    fn a_short_answer_keeps_its_question() {
        let previous_message = "Should I drop the old column or keep it?";
        let turn = Turn { prompt: "yes", previous_message, ..Turn::default() };
        let request = "yes (to: Should I drop the old column or keep it?)";
        assert_eq!(Prompt::of(&turn).request, request);
    }
}
