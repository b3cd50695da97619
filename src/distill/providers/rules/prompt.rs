//! What the user asked for.

use super::answer::decisiveness;
use super::markdown::{self, Block, sentences};
use super::text::{
    add, alternatives, begins, clip, holds, is_among, one_line, sentence_case, title, words,
};

const REQUEST_CHARS_MAX: usize = 400;

/// A prompt, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Prompt {
    /// In the user's words, without code and courtesies; empty if the prompt was not the user's.
    pub(super) request: String,
    /// The request as a title, if it begins with what to do.
    pub(super) title: Option<String>,
    /// It asks for an answer.
    pub(super) is_question: bool,
    /// Choices stated along with the request.
    pub(super) decisions: Vec<String>,
    /// What shall hold from now on.
    pub(super) rules: Vec<String>,
}

/// Written into prompts by the client, with all they hold.
const CLIENT_TAGS: &str = "task-notification|system-reminder|local-command-stdout|local-command-caveat|command-name|\
    command-message|ide_selection|ide_opened_file";

/// Before what is asked for.
const COURTESIES: &str = "please |can you please |could you please |can you |could you |would you |i want you to |\
    i'd like you to |i would like you to |i need you to |we need to |i want to |let's |lets |\
    hey, |hey |hi, |hi |hello, |ok, |ok |okay, |now |also |bitte |then |great, |thanks, ";

impl Prompt {
    /// Reads a prompt.
    pub(super) fn of(prompt: &str) -> Self {
        let prompt = without_client_tags(prompt);
        let text = markdown::blocks(&prompt).into_iter().map(text).collect::<Vec<_>>();
        let mut rules = Vec::new();
        for sentence in text.iter().flat_map(|text| sentences(text)).filter(|text| is_rule(text)) {
            add(&mut rules, clip(&sentence_case(without_courtesy(sentence)), 200), 3);
        }
        let mut decisions = Vec::new();
        for sentence in text.iter().flat_map(|text| sentences(text)).filter(|text| is_choice(text))
        {
            add(&mut decisions, clip(&sentence_case(without_courtesy(sentence)), 240), 2);
        }
        let whole = text.join(" ");
        let bare = without_courtesy(&whole);
        let first = sentences(bare).first().copied().unwrap_or_default();
        let is_question = first.ends_with(['?', '？']) && !begins_with_a_task(bare);
        Self {
            request: clip(&sentence_case(bare), REQUEST_CHARS_MAX),
            title: (begins_with_a_task(bare) && words(first) >= 3)
                .then(|| title(first.trim_end_matches('?'))),
            is_question,
            decisions,
            rules,
        }
    }
}

fn text(block: Block) -> String {
    match block {
        Block::Heading(text) | Block::Paragraph(text) | Block::Item { text, .. } => text,
    }
}

fn without_client_tags(prompt: &str) -> String {
    let mut text = prompt.to_owned();
    for tag in alternatives(CLIENT_TAGS) {
        let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
        let mut kept = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(at) = rest.find(&open) {
            kept.push_str(&rest[..at]);
            let inside = &rest[at + open.len()..];
            rest = inside.find(&close).map_or("", |end| &inside[end + close.len()..]);
        }
        kept.push_str(rest);
        text = kept;
    }
    text
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

/// Verbs with which tasks begin.
const TASKS: &str = "fix|debug|repair|resolve|correct|solve|add|implement|create|build|support|write|introduce|\
    make|generate|set|setup|allow|enable|refactor|rename|extract|clean|simplify|move|split|\
    restructure|replace|migrate|convert|merge|inline|update|bump|upgrade|configure|change|\
    remove|delete|document|improve|optimize|optimise|speed|port|deploy|install|use|switch|\
    test|investigate|find|review|handle|disable|drop|extend|format|release|publish|commit|\
    reduce|cache|validate";

fn begins_with_a_task(text: &str) -> bool {
    let verb: String =
        text.chars().take_while(|c| c.is_alphabetic()).flat_map(char::to_lowercase).collect();
    is_among(&verb, TASKS)
}

/// A request names alternatives easily; only with a reason, or in so many words, it is a choice.
fn is_choice(sentence: &str) -> bool {
    !sentence.ends_with(['?', '？'])
        && decisiveness(&sentence.to_lowercase()) >= 3
        && !is_rule(sentence)
}

/// What the user wants to hold beyond this turn.
fn is_rule(sentence: &str) -> bool {
    let lower = one_line(without_courtesy(sentence)).to_lowercase();
    let starts = "always |never |from now on|remember that|remember: |remember to |going forward|\
        in future|don't ever |do not ever ";
    let within = "always use |never use | from now on|in this repo we |in this project we ";
    words(&lower) >= 4 && !lower.ends_with('?') && (begins(&lower, starts) || holds(&lower, within))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_becomes_a_title() {
        let prompt = Prompt::of(
            "Hey, can you please add rate limiting to the login route? Use Redis.\n```\ncode\n```",
        );
        assert_eq!(prompt.title.as_deref(), Some("Add rate limiting to the login route"));
        assert_eq!(prompt.request, "Add rate limiting to the login route? Use Redis.");
        assert!(!prompt.is_question);
        assert!(Prompt::of("How does the login work?").is_question);
        assert_eq!(Prompt::of("do some work").title, None);
    }

    #[test]
    fn rules_are_noticed_and_complaints_are_not() {
        let prompt = Prompt::of("Always use pnpm here, never npm. Then add zod.");
        assert_eq!(prompt.rules, ["Always use pnpm here, never npm."]);
        assert!(Prompt::of("The callback never fires. It always worked.").rules.is_empty());
    }

    #[test]
    fn what_the_client_wrote_is_not_the_user() {
        let prompt = "<task-notification>\n<summary>Agent finished</summary>\n</task-notification>";
        assert_eq!(Prompt::of(prompt), Prompt::default());
        assert_eq!(Prompt::of("Fix it<system-reminder>x").request, "Fix it");
    }
}
