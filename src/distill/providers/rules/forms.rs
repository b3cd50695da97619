//! Answers in forms: which of them are decisions, and the question that was asked.

use std::fmt;

use super::markdown::sentences;
use super::text::{alternatives, contains_any, is_among, padded, starts_with_any, words};

/// A question from a form, with the user's answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FormAnswer {
    /// The form's short name for the question; empty if unknown.
    pub(super) header: String,
    pub(super) question: String,
    pub(super) answer: String,
    /// The form's description of the option that was chosen; empty if unknown.
    pub(super) description: String,
    /// The user typed the answer instead of choosing an option.
    pub(super) is_typed: bool,
}

/// Names of questions about the order of the work.
const STEP_HEADERS: &str =
    "next|next step|next steps|sequencing|sequence|order|proceed|commit|push|merge|pr";

/// In a question: it is about the next step of the work. Between spaces, so that a question about
/// "commits" or "PRs", which asks for a custom, is none of them.
const STEP_QUESTIONS: &str = " \
    next step | what next | do next | proceed | continue | sequence | ready to | look good | \
    looks good | look right | approve | stop here | go on with | wait for | try again | \
    meanwhile | more urgent | check out | me to run | me to check | me to test | \
    me to fix | me to deploy | commit | push | pr | pull request | merge | \
    nächster schritt | weitermachen | prochaine étape | siguiente paso | \
    следующий шаг | продолжить | \
    sıradaki adım | devam edeyim ";
const STEP_QUESTIONS_WIDE: &str = "提交|推送|强推|合并|下一步|接下来|继续吗";

/// In a question: it asks about the user's situation.
pub(super) const FACT_QUESTIONS: &str = " \
    do you have | do you see | you see | are you on | are you in | are you using | \
    are you running | are you testing | did you | have you | is it | are they | \
    hast du | siehst du | as-tu | vois-tu | tienes ";

/// In a question: it asks how things are done from now on.
const CUSTOMS: &str = " \
    commits | prs | always | every | each | automatically | by default | convention | \
    policy | strategy | format | style | workflow ";

const PERMISSIONS: &str = " \
    can i | may i | shall i | ok to | okay to | kann ich | darf ich | puis-je | puedo | \
    можно ли ";

/// Begin an option or an answer that only says how to go on.
const STEPS: &str = " \
    wait | retry | rerun | proceed | continue | go ahead | looks good | commit | push | \
    merge | archive | stop here | not now | later | skip for now | leave it for now | start ";

/// Whether an answer, or the option that was chosen, only says how to go on.
pub(super) fn is_step(text: &str) -> bool {
    let text = padded(&text.to_lowercase());
    starts_with_any(&text, STEPS) || ends_with_a_time(&text)
}

fn ends_with_a_time(padded: &str) -> bool {
    [" now ", " first ", " later "].iter().any(|end| padded.ends_with(end))
}

/// `Keep it (one commit each) or copy it?` is about what is outside of the brackets.
fn without_brackets(text: &str) -> String {
    let mut depth = 0_usize;
    let mut kept = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(c),
            _ => {}
        }
    }
    kept
}

/// Whether a question is about the next step of the work.
fn asks_for_a_step(question: &str) -> bool {
    let lower = without_brackets(question).to_lowercase();
    let text = padded(&lower);
    let is_about_work = contains_any(&text, STEP_QUESTIONS)
        || contains_any(&lower, STEP_QUESTIONS_WIDE)
        || ends_with_a_time(&text)
        || text.ends_with(" next ")
        // "I will delete the old carts. OK?"
        || is_among(text.trim(), "ok|okay|right|correct|agreed");
    is_about_work && !contains_any(&text, CUSTOMS)
        || contains_any(&text, PERMISSIONS)
        || contains_any(&text, FACT_QUESTIONS)
        || starts_with_any(&text, " did | was | were ")
}

/// Whether an answer states how things are, and chooses nothing.
fn is_statement(answer: &str) -> bool {
    let text = padded(&answer.to_lowercase());
    let pointing =
        " there is | there are | there's | it is | it's | this is | that's | that is | they are ";
    let is_verb = |word: &str| is_among(word, "is|are|was|were|isn't|aren't|has|have");
    let has_subject =
        starts_with_any(&text, " the ") && text.split_whitespace().take(8).any(is_verb);
    starts_with_any(&text, pointing) || has_subject
}

impl FormAnswer {
    /// Whether the answer settles more than what to do next.
    pub(super) fn is_decision(&self) -> bool {
        // Turkish marks a question with a particle instead of a question mark.
        let asks_back = self.answer.contains(['?', '？'])
            || contains_any(&padded(&self.answer.to_lowercase()), " mı | mi | mu | mü ");
        !asks_back
            && !asks_for_a_step(last_question_of(&self.question))
            && !is_among(&self.header.to_lowercase(), STEP_HEADERS)
            && !is_step(&self.answer)
            && !self.is_statement()
    }

    /// Whether the user states how things are instead of choosing.
    pub(super) fn is_statement(&self) -> bool {
        self.is_typed && is_statement(&self.answer)
    }
}

impl fmt::Display for FormAnswer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} → {}", self.question, self.answer)?;
        if self.description.is_empty() { Ok(()) } else { write!(out, " — {}", self.description) }
    }
}

/// The last question of a text; all of it if it asks none.
pub(super) fn last_question_of(text: &str) -> &str {
    let found = sentences(text);
    found.iter().rev().find(|text| text.ends_with(['?', '？'])).copied().unwrap_or(text)
}

/// Whether a question is unclear without the sentence before it: it refers to something that it
/// does not name first.
pub(super) fn is_vague(question: &str) -> bool {
    let lower = padded(&question.to_lowercase());
    let first = |list| alternatives(list).filter_map(|word| lower.find(&format!(" {word} "))).min();
    let name = first("the|a|an|der|die|das|le|la|el");
    let reference = first("it|this|that|them|these|those|它|это|bunu");
    words(question) < 4 || reference.is_some_and(|at| name.is_none_or(|name| at < name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(header: &str, question: &str, answer: &str) -> FormAnswer {
        let (header, question, answer) = (header.into(), question.into(), answer.into());
        FormAnswer { header, question, answer, is_typed: true, ..FormAnswer::default() }
    }

    #[test]
    fn answers_that_hold_beyond_the_next_step_are_decisions() {
        for (header, question, answer) in [
            ("Storage", "Which database should the carts use?", "SQLite"),
            ("Errors", "What should happen if the payment fails halfway?", "Roll back the order"),
            ("Retries", "How often should a failed call be repeated?", "Three times"),
            ("Scope", "Include the admin pages in the redesign?", "No, the shop only"),
            ("Naming", "Should the class be called Cart or Basket?", "Basket"),
            ("Commits", "Should commits be squashed before every merge?", "Yes, always"),
            ("Git", "What commit message format do you want?", "Conventional commits"),
            (
                "API",
                "The old route has two callers left. What do we do with it?",
                "Keep it for a year",
            ),
            ("Auth", "Wo soll das Token liegen?", "Im Schlüsselbund"),
            ("缓存", "缓存应该放在哪里？", "放在内存里"),
            ("Тесты", "Где хранить данные для тестов?", "В папке fixtures"),
            ("Önbellek", "Önbellek nerede dursun?", "Diskte"),
            ("History", "Keep the history (one merge commit each) or copy the files?", "Copy them"),
            ("Fix", "The total can be fixed two ways. Which?", "Round once"),
            ("Deletion", "Should deleted carts be kept?", "Delete them after 30 days"),
        ] {
            assert!(answered(header, question, answer).is_decision(), "{question} {answer}");
        }
        for (header, question, answer) in [
            ("", "The tests fail. Can I remove the old carts?", "Yes"),
            ("", "Hangi sepet?", "bunu eklemek mi gerekiyor"),
            ("Next step", "The cart works. What now?", "Write the tests"),
            ("Direction", "Which part should I build next?", "The invoice"),
            ("Commit", "The working tree has other changes.", "Only my two files"),
            ("PR", "What should the draft PR contain?", "Both commits"),
            ("Review", "Does this plan look good?", "Yes"),
            ("Sequencing", "The bug is older. How do you want to go on?", "The bug alone"),
            ("Order", "Fix the bug in a change of its own first?", "Yes, alone"),
            ("Release", "The build takes an hour. What do you want to do?", "Wait for the build"),
            ("Merge", "Is #12 ready to be closed?", "Close it"),
            ("Docs", "The guide is done. What about the spec?", "Archive it now"),
            ("提交", "哪些文件放进这个提交？", "全部"),
            ("Continue", "Should I continue with phase 2?", "Yes, continue"),
            ("Verify", "Do you want me to run all tests?", "Yes, run them"),
            ("Confirm", "I will delete the old carts. OK?", "Yes"),
            ("System", "Which system are you on?", "The till in the shop"),
            ("Access", "Do you have access to the till?", "Yes"),
            ("Plan", "Approve this plan?", "Approve"),
            ("Changelog", "There is no changelog. What should I update?", "There is one in docs"),
            (
                "Hero",
                "What should the page show?",
                "The picture there is the default one, not mine",
            ),
        ] {
            assert!(!answered(header, question, answer).is_decision(), "{question} {answer}");
        }
        let chosen =
            FormAnswer { is_typed: false, ..answered("", "Which look?", "The card is flat") };
        assert!(chosen.is_decision());
        assert!(answered("", "Which look?", "The card is flat").is_statement());
    }
}
