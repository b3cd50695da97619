//! Rules of the user: what the user wants, forbids or corrects, in the user's own words.
//!
//! A rule is an address to the assistant or a demand on the result. A keyword such as "never" is
//! not enough: "The callback never fires" reports a fault.

use super::markdown::sentences;
use super::prompt::begins_with_a_task;
use super::rule_phrases::{
    ALTERNATIVES, CIRCUMSTANCES, COMMAND_LIMITS, COMPLAINTS, CONSIDERATIONS, CONTRASTS, DEMANDS,
    DEMANDS_WIDE, FILLERS, FOR_NOW, INQUIRIES, LOOKS, NEGATIVE_QUESTIONS, NO_DEMANDS,
    NO_DEMANDS_WIDE, ORDERS, OUTWARD, PASSING, POLITE, PROHIBITIONS, PRONOUNS, QUESTIONS,
    RULE_LISTS, STANDING, STANDING_QUESTIONS, STANDING_WIDE, STAYS, WISHES,
};
use super::text::{add, alternatives, begins, clip, fitting_title, holds, padded, words};

const RULES_MAX: usize = 6;
const RULE_CHARS_MAX: usize = 300;

/// A longer prompt is a plan, a log or a document, unless it is running text of few lines. Such a
/// text weighs much, so that only clear rules of it count.
const PROMPT_CHARS_MAX: usize = 1_500;
const DICTATED_CHARS_MAX: usize = 6_000;
const DICTATED_LINES_MAX: usize = 4;

/// What the user wants to hold, in the user's words, the strongest first.
pub(super) fn rules(prompt: &str) -> Vec<String> {
    let chars = prompt.chars().count();
    let is_dictated = chars <= DICTATED_CHARS_MAX && prompt.lines().count() <= DICTATED_LINES_MAX;
    if chars > PROMPT_CHARS_MAX && !is_dictated || is_pasted(prompt) {
        return Vec::new();
    }
    let strength_min = if chars > PROMPT_CHARS_MAX { LISTED } else { 1 };
    let mut found: Vec<(u8, &str)> = Vec::new();
    let mut is_list = false;
    for line in prompt.lines() {
        is_list &= (1..LISTED_WORDS_MAX).contains(&words(line));
        for sentence in sentences(line) {
            let strength = strength(sentence);
            let strength = if is_list { strength.max(LISTED) } else { strength };
            if strength >= strength_min {
                found.push((strength, sentence));
            }
        }
        is_list |= announces_rules(line);
    }
    found.sort_by_key(|(strength, sentence)| std::cmp::Reverse((is_lasting(sentence), *strength)));
    let mut rules = Vec::new();
    for (_, sentence) in found {
        add(&mut rules, clip(without_address(sentence), RULE_CHARS_MAX), RULES_MAX);
    }
    rules
}

/// Without the link that a prompt begins with.
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

/// More marks make a list.
const CLAUSES_MAX: usize = 6;

/// The strength of a rule in a list of them, and how long it may be.
const LISTED: u8 = 3;
const LISTED_WORDS_MAX: usize = 16;

/// "The rules are:"
fn announces_rules(line: &str) -> bool {
    let last = sentences(line).pop().unwrap_or_default();
    last.ends_with([':', '：'])
        && words(last) < LISTED_WORDS_MAX
        && holds(&padded(&last.to_lowercase()), RULE_LISTS)
}

/// Plans, logs, diffs and code that the user pasted.
fn is_pasted(prompt: &str) -> bool {
    let lower = prompt.to_lowercase();
    let marks = "implement the following plan|\n@@ -|=== diff|\ndiff --git|traceback (most recent|\n    at |base directory for this skill|\
        this session is being continued";
    let code_lines = prompt.lines().filter(|line| is_code(line)).count();
    holds(&lower, marks) || code_lines * 3 > prompt.lines().count().max(6)
}

fn is_code(line: &str) -> bool {
    let text = line.trim();
    begins(text, "$ |> |+ |- [|PS C:|{|}|//|#!|import |const |def |func |fn |class ")
        || text.ends_with(['{', '}', ';'])
        || begins(text, "error|warning|[error|[info")
}

/// How clearly a sentence states a rule; 0 if it does not. Each clause of it can state one.
fn strength(sentence: &str) -> u8 {
    if !(2..=60).contains(&words(sentence)) || sentence.starts_with('/') {
        return 0;
    }
    let clauses = sentence.split(" - ").flat_map(|part| part.split(" — "));
    clauses.flat_map(|part| part.split("; ")).map(clause_strength).max().unwrap_or(0)
}

fn clause_strength(clause: &str) -> u8 {
    let lower = clause.to_lowercase().replace('’', "'");
    let text = padded(&lower);
    let count = words(clause);
    if count < 2 {
        return 0;
    }
    let main = main_clause(&text);
    let is_question = clause.ends_with(['?', '？']);
    let is_everywhere = holds(&text, " everywhere ") && !begins_with_a_task(clause);
    let is_standing =
        (is_everywhere || holds(&text, STANDING) || holds(&lower, STANDING_WIDE)) && count >= 3;
    let is_demand = holds(&text, DEMANDS) || holds(&lower, DEMANDS_WIDE) || begins(main, STAYS);
    let is_command = is_command(main);
    // "Rename it, no other change" is a task.
    let is_exclusion = holds(&text, " , no ") && !begins_with_a_task(clause) || is_ban(&text);
    let forbids = holds(&text, PROHIBITIONS) || forbids_in_russian(&text);
    let is_limit = forbids
        || holds(&text, CONTRASTS)
        || is_exclusion
        || is_command && holds_as_limit(main, COMMAND_LIMITS);
    let is_order = holds(&text, ORDERS) || text.ends_with(" before ");
    let is_conditional = holds(&text, " if there is | if there are ") && !holds(&text, INQUIRIES);
    // "Use the second cart", but not "Use the cart to sell pens", which is a task.
    let is_means = begins(main, " use ") && !holds(main, " to | on this | and ");
    let is_complaint = holds(&text, COMPLAINTS);
    let is_report = is_fault_report(&text);
    match () {
        () if is_complaint && !is_report => 3,
        () if is_question => {
            // "The cart should not depend on the shop, should it?"
            let is_tagged = holds(&text, " should not | should never | must not | must never ");
            let is_request = begins(&text, POLITE) && is_limit && !holds(&text, INQUIRIES);
            let is_demand = begins(&text, NEGATIVE_QUESTIONS)
                || begins(&text, WISHES)
                || holds(&text, STANDING_QUESTIONS)
                || begins(&text, POLITE) && holds(&text, " every time | any time | anytime ")
                || is_request
                || is_tagged && !begins(&text, QUESTIONS);
            u8::from(is_demand && count >= 4) * 2
        }
        () if begins(&text, QUESTIONS) => 0,
        () if is_report || holds(&text, " never mind | nevermind | don't worry ") => 0,
        () if holds(&text, ALTERNATIVES) => 0,
        // "Check the notes, but don't change them."
        () if begins(main, LOOKS) => {
            let (_, rest) = main.split_once(" , ").unwrap_or_default();
            let has_rule = holds(rest, " should | must | don't | do not | dont | never ");
            u8::from(has_rule && !holds(&text, PASSING)) * 2
        }
        () if is_standing => 4,
        () if holds(&text.replace(" yet another ", " another "), PASSING) => {
            u8::from(is_command && forbids && holds(main, OUTWARD)) * 2
        }
        () if holds(&text, FOR_NOW) => u8::from(is_command && is_limit) * 2,
        () if is_wish(&text) => 2 + u8::from(is_limit),
        () if holds(&text, CONSIDERATIONS) && !is_limit => 0,
        () if holds(&text, " we need to have | we need to be ") => 2,
        () if holds(&text, NO_DEMANDS) || holds(&lower, NO_DEMANDS_WIDE) => {
            u8::from(is_limit && is_command)
        }
        () if count < 3 => 0,
        () if is_demand && is_limit => 3,
        () if is_demand || is_exclusion || is_limit && is_command => 2,
        () if (is_order || is_conditional || is_means) && is_command => 1,
        () => 0,
    }
}

/// The part of a padded sentence that states or orders something, without what leads to it.
fn main_clause(text: &str) -> &str {
    let mut text = text;
    loop {
        let filler = alternatives(FILLERS).find(|filler| text.starts_with(filler));
        let circumstance = begins(text, CIRCUMSTANCES).then(|| text.find(" , ")).flatten();
        let length = match (filler, circumstance) {
            (Some(filler), _) => filler.len(),
            (None, Some(at)) => at + " , ".len(),
            (None, None) => return text,
        };
        text = &text[length - 1..];
    }
}

/// Words that a limit may follow at the beginning of a command.
const LIMIT_WORDS_BEFORE_MAX: usize = 3;

fn holds_as_limit(main: &str, limits: &str) -> bool {
    alternatives(limits).any(|limit| {
        main.match_indices(limit).any(|(at, _)| {
            let before = &main[..at];
            before.split_whitespace().count() <= LIMIT_WORDS_BEFORE_MAX
                || [" ,", " and", " but"].iter().any(|word| before.ends_with(word))
                || at + limit.len() == main.len()
        })
    })
}

/// `не меняй`, `не удаляйте`: the verb tells that it is a command.
fn forbids_in_russian(text: &str) -> bool {
    let commands = ["ай", "уй", "яй", "йте", "ите", "ьте", "ши", "удь"];
    let is_command = |verb: &str| commands.iter().any(|ending| verb.ends_with(ending));
    let mut words = text.split(' ').skip_while(|word| *word != "не");
    words.next().is_some() && words.next().is_some_and(is_command)
}

const BAN_WORDS_MAX: usize = 8;

/// "No emojis in comments", but not "No data is returned".
fn is_ban(text: &str) -> bool {
    let others = " no , | no it | no that | no this | no i | no you | no we | no the | no one | no need | no problem | no worries | \
         no idea | no change | no changes | no luck | no matter | no longer | no response | no reply | no replies | no wait | no not ";
    let verbs =
        " is | are | was | were | has | have | does | did | do | shown | found | returned | seems ";
    let count = text.split_whitespace().count();
    begins(text, " no ") && !begins(text, others) && !holds(text, verbs) && count <= BAN_WORDS_MAX
}

/// "I want JSON first", but not "I want to see it", which begins a task.
fn is_wish(text: &str) -> bool {
    let mut wanted = text.match_indices(" i want ").map(|(at, wish)| &text[at + wish.len() - 1..]);
    holds(text, WISHES) || wanted.any(|what| !begins(what, " to | you "))
}

/// Whether a rule is about how to work, and so holds again: what is always or never done, what the
/// user forbids, what the user had to complain about. A wish for one result is fulfilled once: "The
/// total should be bold".
pub(super) fn is_lasting(rule: &str) -> bool {
    let lower = rule.to_lowercase().replace('’', "'");
    let text = padded(&lower);
    if holds(&text, COMPLAINTS) || holds(&text, STANDING_QUESTIONS) {
        return true;
    }
    let is_passing = holds(&text, PASSING) || holds(&text, FOR_NOW);
    if rule.ends_with(['?', '？']) || holds(&text, NO_DEMANDS) || is_passing {
        return false;
    }
    // "So that it is always visible" describes a result.
    let customs = " should always | must always | you always | we always | never | from now on | going forward | next time | in future | \
         remember that | remember to | in this repo we | in this project we | we don't use | we do not use | i prefer | \
         ab jetzt | immer | künftig | niemals | toujours | désormais | jamais | siempre | nunca | всегда | впредь | никогда | \
         her zaman | bundan sonra | asla ";
    let prohibitions = " don't | do not | dont | avoid | stop | no need to | nicht | kein | keine | ne pas | не надо | не нужно | \
         не делай | не используй | kullanma | yapma ";
    begins(&text, " always | please always | we use | prefer ")
        || holds(&text, customs)
        || is_command(&text) && holds(&text, prohibitions)
        || holds(&lower, STANDING_WIDE)
        || holds(&lower, "不要|别用|禁止|しないで|하지 마")
}

/// "The callback never fires": what happens, not what shall happen.
fn is_fault_report(text: &str) -> bool {
    let demands = " should | must | want | need | always use | never use | make sure | ensure | don't | do not | please | next time | \
         from now on ";
    let faults = " fails | fires | failed | error | crashes | crashed | broken | worked | appeared | doesn't | does not | didn't | \
         is not working | isn't working | not work | i see | i get | i got | shows | showing | stopped | happens | happened | \
         seem | seems | was | were | noticed | couldn't find | cannot find | can't find | would stop ";
    holds(text, faults) && !holds(text, demands)
}

/// Whether a sentence tells somebody to do something: it does not begin with its subject.
fn is_command(text: &str) -> bool {
    let subjects =
        " the | these | those | what | when | where | who | how | why | my | our | your ";
    // "In the shop we tested it" has a subject, too.
    let places = " in | on | at | with | as | since | given ";
    !begins(text, subjects) && !begins(text, PRONOUNS) && !begins(text, places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_addressed_to_the_assistant() {
        for text in [
            "Always use pnpm here, never npm.",
            "Don't open a pull request, just a commit.",
            "I don't want any shadows.",
            "Prices should be shown in euro, not in cents.",
            "We only want short answers, no explanation.",
            "Next time let me merge.",
            "Write the tests first.",
            "Why are you still using jest?",
            "Can't the tests share one fixture?",
            "If carts are shown, can you always add the total?",
            "Much better. The cart should not depend on the shop, should it?",
            "Internal names are never breaking changes, only the API is.",
            "I prefer tabs.",
            "It doesn't sort the tabs, and I want names first, prices second.",
            "I want to use the second table, because guests have no name.",
            "The same branch, no new one.",
            "Add the two cases, use one table where possible.",
            "Keep the old names.",
            "https://shop.example/issues/7 Use the second cart, not the first.",
            "Instead of yet another cart, add a column to the first one.",
            "I don't like the second cart, isn't there a simpler way?",
            "Can you show prices in euro instead of cents?",
            "We need to have the totals in a table.",
            "Ensure that error pages name the cart.",
            "Open two tickets if there are two faults.",
            "Yes, commit it, and I'll do the release.",
            "Do not update the server yet.",
            "Let's only build the first cart for now.",
            "I've reverted your changes - focus only on the second cart.",
            "Can we have a link any time a cart is named?",
            "Why aren't we using one table for these tests?",
            "The code should be clear, so that a comment doesn't say what it does, only why.",
            "No emojis in the comments.",
            "This repo uses tabs.",
            "Let's not copy the cart.",
            "Run the tests after every change.",
            "Сначала напиши тесты.",
            "Please push directly to main.",
            "Use the second writer.",
            "Write the notes in English.",
            "Ask me before deleting carts.",
            "Good idea to keep both running.",
            "Check the notes, but don't change them.",
            "Не меняй корзину.",
            "Butonlar aynı renkte olsun.",
            "不要用 npm，统一用 pnpm。",
            "Никогда не используй npm.",
            "Her zaman pnpm kullan.",
        ] {
            let rule = text
                .trim_start_matches("Much better. ")
                .trim_start_matches("https://shop.example/issues/7 ");
            assert_eq!(rules(text), [rule], "{text}");
        }
    }

    #[test]
    fn reports_questions_and_tasks_are_no_rules() {
        for text in [
            "The callback never fires.",
            "It always worked.",
            "Never mind, we look at it later.",
            "How does the login work?",
            "Should we use pnpm?",
            "I don't know why it fails.",
            "Fix the login.",
            "commit",
            "I want you to analyze the cart.",
            "The build only fails on Windows.",
            "I like the new cart.",
            "Isn't that also a price?",
            "Does the cart keep its items in the future?",
            "So from now on every order is mailed?",
            "You have been changing the cart one hour before!",
            "Do not change the code just yet.",
            "I don't care about the total right now.",
            "Maybe we should round the total.",
            "I think we should be clearer on the page.",
            "Save the notes so we can keep on it.",
            "Rename the cart, no other change.",
            "I want to see the cart.",
            "Can you explain why it shows cents instead of euro?",
            "Can you add a total?",
            "Check if there are two carts.",
            "On this page: i don't see the button.",
            "In the first shop we tested it by hand and not with the tool.",
            "The totals do not seem to be right.",
            "It will also never be set on a server.",
            "The steps are too large, I can see each of them rather than one line.",
            "This file is generated by a script, not written by hand.",
            "Alternatively we could write a second cart instead of a list.",
            "The question is if it should have two colors.",
            "Investigate the cart and give me an analysis first.",
            "Given this page, check the notes and ensure we can go on.",
            "Start with task 2.",
            "Make a proposal for carts that only have one item.",
            "You can say the same of the colors we use in the cart.",
            "Ah, but the cart doesn't need to be a list.",
            "We should find a way to read it.",
            "No data is returned.",
            "No, it works.",
            "Use the cart to sell two pens.",
        ] {
            assert_eq!(rules(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn the_items_of_a_list_of_rules_are_rules() {
        let text = "Look into the cart, no code yet. The rules are:\nsimple solution\nno breaking changes\n\
                    Then tell me in many words what you found, where it stands, and why it went wrong.";
        assert_eq!(rules(text), ["simple solution", "no breaking changes"]);
        assert!(rules("The cart has these parts:\nsimple list\nlong total").is_empty());
    }

    #[test]
    fn a_rule_about_how_to_work_lasts_and_a_wish_for_a_result_does_not() {
        for text in [
            "Always use pnpm here.",
            "Don't open a pull request, just a commit.",
            "Yes and do not wrap lines in comments.",
            "Why are you still using jest?",
            "Internal names are never breaking changes, only the API is.",
            "不要用 npm。",
        ] {
            assert!(is_lasting(text), "{text}");
        }
        for text in [
            "The total should be bold, not red.",
            "We should not show carts to guests.",
            "Find a way to make the total always visible.",
            "On this page: i don't see the button.",
            "Can't we reuse the cart instead of a new one?",
            "Put the notes into a file instead of the page.",
            "Make sure the modal covers the page.",
            "I want a button in the header.",
            "Do not update the server yet.",
        ] {
            assert!(!is_lasting(text), "{text}");
        }
        let both = "The total should be bold, not red. Never use npm here.";
        assert_eq!(rules(both)[0], "Never use npm here.");
    }

    #[test]
    fn a_long_rule_is_called_by_the_clause_that_states_it() {
        let list = "We have the front page and the topics, such as carts and notes, whatever";
        let rule =
            format!("{list}, but it should be as easy as possible to get to where you want to go.");
        let clause = "it should be as easy as possible to get to where you want to go.";
        assert_eq!(stating_clause(&rule), clause);
        assert_eq!(stating_clause("Never use npm here."), "Never use npm here.");
        assert_eq!(stating_clause(list), list);
    }

    #[test]
    fn pasted_text_is_not_the_user() {
        assert!(rules("Implement the following plan:\n\n# Plan\nNever use npm.").is_empty());
        assert!(rules("diff:\n@@ -1 +1 @@\n- never use npm\n+ always use pnpm").is_empty());
        assert!(rules(&"Always use pnpm.\n".repeat(100)).is_empty());
        let dictated = format!(
            "{}I don't want a second cart, not even for guests.",
            "It was slow. ".repeat(150)
        );
        assert_eq!(rules(&dictated), ["I don't want a second cart, not even for guests."]);
    }
}
