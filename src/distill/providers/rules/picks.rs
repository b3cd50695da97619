//! Answers to the assistant's previous message: the question, or the option that a short prompt selects.

use super::forms::{FACT_QUESTIONS, is_step, is_vague, last_question_of};
use super::markdown::{self, Block, sentences};
use super::text::{
    alternatives, clip, contains_any, is_among, one_line, padded, starts_with_any, words,
};

/// The user's choice in a prompt that answers the assistant's previous message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Picked {
    /// The question, or the selected option; empty if unknown.
    pub(super) question: String,
    /// The answer as the user typed it.
    pub(super) answer: String,
    /// Whether it settles more than permission to continue.
    pub(super) is_decision: bool,
}

/// A longer prompt is clear without the question.
const ANSWER_CHARS_MAX: usize = 200;

/// A prompt up to this length is unclear without the question.
const SHORT_CHARS_MAX: usize = 40;

const YES: &str = " \
    yes | yeah | yep | yup | sure | ok | okay | no | nope | go ahead | do it | do that | do so | \
    correct | right | exactly | agreed | sounds good | perfect | proceed | continue | both | \
    neither | ja | nein | oui | non | sí | \
    да | нет | \
    evet | hayır | tamam | olur | approved | confirmed ";

/// Interprets a prompt as the answer to a question at the end of the previous message.
pub(super) fn picked(prompt: &str, previous_message: &str) -> Option<Picked> {
    let answer = one_line(prompt);
    let chars = answer.chars().count();
    if previous_message.is_empty() || chars > ANSWER_CHARS_MAX || answer.is_empty() {
        return None;
    }
    let lower = answer.to_lowercase();
    let text = padded(&lower);
    let option = option_name(&text).and_then(|name| option_text(previous_message, &name));
    let question = last_question(previous_message);
    let is_short = chars <= SHORT_CHARS_MAX;
    let is_yes = starts_with_any(&text, YES)
        || contains_any(&lower, "好的|可以|是的|对|不用|不要|はい|いいえ|네|아니");
    let is_question = answer.ends_with(['?', '？']);
    match (option, question) {
        // "Can you fix 1" selects from a list of problems.
        (Some(option), _) => {
            let is_decision = !is_step(without_option_name(&option))
                && !contains_any(&text, " fix | check | explain | why | what | look ");
            Some(Picked { question: option, answer, is_decision })
        }
        (None, Some(question)) if !is_question && (is_yes || is_short) => {
            let agrees = is_yes && settles(&question, &text);
            let is_decision = is_short && (agrees || names_an_alternative(&question, &text));
            Some(Picked { question, answer, is_decision })
        }
        _ => None,
    }
}

/// Parses the name of an option: `option c`, `c`, `#2`, `the second`.
fn option_name(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    let ordinals = "first|second|third|fourth";
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).copied().unwrap_or_default();
        let is_name = !next.is_empty() && next.len() <= 2;
        if is_among(word, "option|approach|variant|alternative|choice|plan|вариант|seçenek")
            && is_name
        {
            return Some(next.to_owned());
        }
        if let Some(number) = alternatives(ordinals).position(|ordinal| ordinal == *word)
            && is_among(next, "one|option|approach|")
        {
            return Some((number + 1).to_string());
        }
    }
    let bare = words.as_slice();
    let is_mark = |word: &str| {
        word.len() == 1 && word.chars().all(|c| c.is_ascii_digit() || ('a'..='h').contains(&c))
    };
    match bare {
        [word] if is_mark(word) => Some((*word).to_owned()),
        [verb, word] if is_mark(word) && is_among(verb, "do|take|go|use|pick|choose") => {
            Some((*word).to_owned())
        }
        _ => None,
    }
}

/// Finds the text of the named option in the message that offered it.
fn option_text(message: &str, name: &str) -> Option<String> {
    let is_label = |text: &str| {
        let lower = text.to_lowercase();
        let rest = lower.strip_prefix("option ").unwrap_or(&lower);
        rest.strip_prefix(name).is_some_and(|rest| {
            rest.starts_with([':', '.', ')', ' ', '—', '–', '-'])
                && (rest.len() < lower.len() - name.len() || !rest.starts_with(' '))
        })
    };
    let lines = message.lines().map(|line| line.trim_start_matches(['-', '*', '#', ' ', '(', '•']));
    let line = lines.rev().find(|line| is_label(&line.replace("**", "")))?;
    let text = line.replace("**", "");
    (words(&text) >= 2).then(|| clip(&text, 240))
}

/// The last question of a message, with the preceding sentence if the question needs it.
fn last_question(message: &str) -> Option<String> {
    let mut text = String::new();
    for block in markdown::blocks(message) {
        let piece = match block {
            Block::Heading(piece)
            | Block::BoldLine(piece)
            | Block::Paragraph(piece)
            | Block::Labelled(piece) => piece,
            Block::Row(text) | Block::Item { text, .. } => text,
        };
        text.push_str(&piece);
        text.push('\n');
    }
    let found = sentences(&text);
    let at = found.iter().rposition(|sentence| sentence.ends_with(['?', '？']))?;
    // The user does not answer a question far from the end of the message.
    if found.len() - at > 6 {
        return None;
    }
    let is_vague = words(found[at]) < 6 || is_vague(found[at]);
    let before = at.checked_sub(1).map(|before| found[before]).filter(|_| is_vague);
    let question =
        before.map_or_else(|| found[at].to_owned(), |text| format!("{text} {}", found[at]));
    Some(clip(&question, 300))
}

/// Removes the option name from `2. Cache in memory` and `Option B: polling`.
pub(super) fn without_option_name(option: &str) -> &str {
    let rest = option.strip_prefix("Option ").unwrap_or(option);
    let name = rest.chars().next().filter(char::is_ascii_alphanumeric);
    let rest =
        name.and_then(|_| rest[1..].trim_start().strip_prefix([':', '.', ')', '—', '–', '-']));
    rest.map(str::trim_start).filter(|rest| words(rest) >= 2).unwrap_or(option)
}

const ROUTINE: &str = " \
    commit | push | merge | proceed | continue | start | run | go ahead | look | check | deploy | \
    pr | anything else | ready | implement this | apply | done | fix ";

/// Whether an answer decides more than permission for routine work.
fn settles(question: &str, answer: &str) -> bool {
    let question = padded(&question.to_lowercase());
    let choice = " \
        should we | should i | prefer | approach | instead | rather | keep it | drop | \
        replace | switch | which | rename | or keep | by default ";
    let bare_no = starts_with_any(answer, " no | nope | nein | нет | hayır ");
    contains_any(&question, choice) && (!contains_any(&question, ROUTINE) || bare_no)
}

/// Words that are in every question.
const COMMON: &str = "it|that|this|the|them|one|and|for|you|should|use|both";

/// Whether an answer names one of the alternatives that the question offers: "drop it", to "Should
/// I drop the column or keep it?"
fn names_an_alternative(question: &str, answer: &str) -> bool {
    let lower = question.to_lowercase();
    let question = padded(last_question_of(&lower));
    let offers =
        contains_any(&question, " or | oder | ou | или | yoksa ") || question.contains("还是");
    let is_named = |word: &str| {
        word.chars().count() >= 3
            && !is_among(word, COMMON)
            && question.contains(&format!(" {word} "))
    };
    offers
        && !contains_any(&question, FACT_QUESTIONS)
        && !starts_with_any(answer, YES)
        && !contains_any(&question, ROUTINE)
        && answer.split_whitespace().any(is_named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_answer_keeps_the_question() {
        let message = "\
            Two ways:\n\n- **Option A**: a queue\n- **Option B**: polling every minute\n\n\
            Which one do you prefer?";
        let picked_b = picked("I like option B", message).unwrap();
        assert_eq!(picked_b.question, "Option B: polling every minute");
        assert!(picked_b.is_decision);
        let yes = picked("yes", "The old route is unused. Should I remove it or keep it?").unwrap();
        assert_eq!(yes.question, "The old route is unused. Should I remove it or keep it?");
        assert!(yes.is_decision);
        let drop = "All tests pass. Should I drop the old column or keep it?";
        assert_eq!(
            picked("yes", drop).unwrap().question,
            "Should I drop the old column or keep it?"
        );
        let go = picked("yes please", "Shall I commit this?").unwrap();
        assert!(!go.is_decision);
        assert_eq!(picked("What about the tests?", message), None);
        assert_eq!(picked("yes", ""), None);
        assert_eq!(picked("commit", "All tests pass."), None);
        let fix = picked("can you fix option 1", "1. The cart rounds twice\n2. No tests").unwrap();
        assert!(!fix.is_decision);
        let builds = "1. Restart the build\n2. Wait for the build to end\n\nWhich one?";
        assert!(!picked("option 2", builds).unwrap().is_decision);
    }

    #[test]
    fn an_answer_may_name_the_alternative() {
        let is_decision = |answer, question| picked(answer, question).unwrap().is_decision;
        for (answer, question) in [
            ("drop it", "All tests pass. Should I drop the old totals column or keep it?"),
            ("spaces", "Do you want tabs or spaces?"),
            ("keep the old one please", "Replace the theme or keep the old one?"),
            ("sqlite", "Sollen wir Postgres oder SQLite nehmen?"),
        ] {
            assert!(is_decision(answer, question), "{answer}");
        }
        for (answer, question) in [
            ("the tests", "Should I run the tests or commit?"),
            ("looks nice", "Should the card be flat or round?"),
            ("the till", "Are you testing with the till or the web shop?"),
            ("yes, the guide too", "Shall I write the guide or the tests?"),
            ("merge et", "Merge edeyim mi yoksa sen mi bakarsın?"),
            ("what it does", "Is there anything unclear about it?"),
        ] {
            assert!(!is_decision(answer, question), "{answer}");
        }
    }

    #[test]
    fn numbered_options_are_found() {
        let message = "1. Cache in Redis\n2. Cache in memory\n\nWhich one?";
        assert_eq!(picked("2", message).unwrap().question, "2. Cache in memory");
        assert_eq!(picked("the first one", message).unwrap().question, "1. Cache in Redis");
    }
}
