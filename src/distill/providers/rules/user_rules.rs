//! Rules of the user: what the user wants, forbids or corrects, in the user's own words.
//!
//! A rule is an address to the assistant or a demand on the result. A keyword such as "never" is not
//! enough: "The callback never fires" reports a fault.

use super::markdown::sentences;
use super::prompt::begins_with_a_task;
use super::text::{add, begins, clip, holds, padded, words};

const RULES_MAX: usize = 6;
const RULE_CHARS_MAX: usize = 300;

/// A longer prompt is a plan, a log or a document.
const PROMPT_CHARS_MAX: usize = 1_500;

/// Holds beyond this turn.
const STANDING: &str = " always | from now on | going forward | next time | in future | in the future | every time | any time | \
     anytime | never ever | at all times | remember that | remember to | in this repo we | in this project we | \
     ab jetzt | immer | künftig | toujours | désormais | siempre | всегда | впредь | запомни | her zaman | bundan sonra | \
     her seferinde | unutma ";
const STANDING_WIDE: &str = "以后|每次|始终|一律|统一|今後|常に|必ず|항상";

/// Demands: on the result, or wishes of the user.
const DEMANDS: &str = " must | must not | mustn't | should not | shouldn't | should | should always | should only | should never | \
     has to be | have to be | needs to be | need to be | need to have | needs to have | make sure | ensure | be sure | \
     i want | i only want | i don't want | i do not want | we want | we don't want | we only want | i'd like | i would like | \
     i prefer | prefer | preferable | preferably | i'd rather | i would rather | i don't like | i do not like | \
     i would only | i need | we need | we use | we don't use | we never | is settled | settled already | \
     deliberate | deliberately | on purpose | not important | isn't relevant | not relevant | it's allowed | is allowed | \
     i allow | is fine to | i'll do the | i will do the | i'll handle | i will handle | i'll take care of | \
     i will take care of | supposed to | allowed to | not allowed | don't reinvent | where possible | wherever possible | whenever possible | \
     soll | sollte | muss | ich will | ich möchte | bitte kein | bitte nicht | il faut | doit | je veux | je préfère | \
     debe | quiero | no quiero | prefiero | должен | должна | должно | должны | нужно чтобы | хочу чтобы | хочу | \
     не хочу | нельзя | обязательно | lazım | gerek | olmalı | olmasın | istiyorum | istemiyorum | önemli değil | tercih ";
const DEMANDS_WIDE: &str = "必须|应该|务必|一定要|我希望|我想要|我要|需要|禁止|不能|不要|别用|请用|只要|しないで|べき|ではなく|のみ|해야|하지 마";

/// Begin a demand that something stays.
const STAYS: &str = " keep | leave | please keep | please leave | and keep | and leave ";

/// What the user wants, whatever else the sentence says.
const WISHES: &str = " i only want | i don't want | i do not want | i don't like | i do not like | i prefer | i'd rather | \
     i would rather | we only want | we don't want | we do not want | i want to use | i want to keep | i want to avoid ";

/// Considerations, which are no demands yet.
const CONSIDERATIONS: &str = " maybe | perhaps | i think we should | i think that we should | i guess | i feel | i still feel | \
     i wonder | we could | good idea | vielleicht | peut-être | quizás | может быть | belki ";

/// Announce a list of rules, at the end of a line.
const RULE_LISTS: &str = " rules | requirements | constraints | conditions | guidelines | conventions | regeln | règles | \
     reglas | правила | kurallar ";

/// Prohibitions and contrasts.
const LIMITS: &str = " don't | do not | dont | never | instead of | rather than | , not | but not | and not | not just | but only | \
     but instead | no need to | too verbose | nicht | kein | keine | statt | ne pas | jamais | au lieu de | nunca | \
     en lugar de | никогда | вместо | не надо | не нужно | не делай | не используй | asla | yerine | kullanma | yapma ";

/// The same if the sentence is a command. In a statement they mostly report something.
const COMMAND_LIMITS: &str = " only | without | avoid | stop | no more | exactly | just a | no longer | nur | seulement | solo | \
     только | sadece ";

/// Holds only for the moment, or only for what lies on the table.
const PASSING: &str = " yet | just yet | right now | for now | at the moment | for the moment | not now | vorerst | pour l'instant | \
     por ahora | пока | şimdilik ";

/// Requests in the form of a question.
const POLITE: &str = " can you | could you | would you | can we | could we | please ";

/// Ask for an answer, not for a change.
const INQUIRIES: &str =
    " why | how | what | which | whether | explain | tell | check | see | verify | look | find ";

/// Orders of work, in commands.
const ORDERS: &str = " first | before you | before starting | begin by | begin with | start with | start by | follow ";

/// Complaints that imply a rule; they may be questions.
const COMPLAINTS: &str = " why are you | why aren't you | why arent you | why aren'tyou | why do you | why did you | why didn't you | \
     you're supposed | you are supposed | i told you | i asked you | as i said | i said | you forgot | too verbose | \
     you should have | that's not what | isn't this listed | still using | i did not say | i didn't say | \
     i did not ask | i didn't ask | ich habe gesagt | я же | я просил | söyledim | demiştim ";

/// Questions that are demands.
const NEGATIVE_QUESTIONS: &str = " can't | cant | couldn't | shouldn't | wouldn't it | why not | why don't we | why don't you | \
     can we have ";

/// Questions that are demands wherever these words stand.
const STANDING_QUESTIONS: &str = " can you always | can it always | can we always | could you always | could it always | please always | \
     would you always | kannst du immer | her zaman yapabilir | можешь всегда ";

/// Begin a question, with or without its mark.
const QUESTIONS: &str = " what | which | how | where | when did | does | did | is there | are there | is it | is this | was | were | who ";

/// Statements about the speaker's own work, knowledge or expectation.
const NO_DEMANDS: &str = " i don't know | i don't understand | i do not understand | i don't think | i don't see | i do not see | i don't get | \
     don't worry | never mind | nevermind | should work | should be fine | should be fixed | should be able | should have been | \
     i should | should i | should we | what should | i need to | i need you to | i want you to | i want to | i'd like to | \
     i would like to | i'd like you | i would like you | we need to | let me know | i never | it never | they never | we want to | \
     doesn't | does not | didn't | did not | seems | still does ";

/// "I need you to …" begins a task.
const NO_DEMANDS_WIDE: &str = "需要你|帮我|我现在要";

/// What the user wants to hold, in the user's words, the strongest first.
pub(super) fn rules(prompt: &str) -> Vec<String> {
    if prompt.chars().count() > PROMPT_CHARS_MAX || is_pasted(prompt) {
        return Vec::new();
    }
    let mut found: Vec<(u8, &str)> = Vec::new();
    let mut is_list = false;
    for line in prompt.lines() {
        is_list &= (1..LISTED_WORDS_MAX).contains(&words(line));
        for sentence in sentences(line) {
            let strength = strength(sentence);
            let strength = if is_list { strength.max(LISTED) } else { strength };
            if strength > 0 {
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

/// How clearly a sentence states a rule; 0 if it does not.
fn strength(sentence: &str) -> u8 {
    let lower = sentence.to_lowercase().replace('’', "'");
    let text = padded(&lower);
    let count = words(sentence);
    if !(2..=60).contains(&count) || sentence.starts_with('/') {
        return 0;
    }
    let is_question = sentence.ends_with(['?', '？']);
    let is_everywhere = holds(&text, " everywhere ") && !begins_with_a_task(sentence);
    let is_standing =
        (is_everywhere || holds(&text, STANDING) || holds(&lower, STANDING_WIDE)) && count >= 3;
    let is_demand = holds(&text, DEMANDS) || holds(&lower, DEMANDS_WIDE) || begins(&text, STAYS);
    let is_command = is_command(&text);
    // "Rename it, no other change" is a task.
    let is_exclusion = holds(&text, " , no ") && !begins_with_a_task(sentence);
    let is_limit =
        holds(&text, LIMITS) || is_exclusion || is_command && holds(&text, COMMAND_LIMITS);
    let is_order = holds(&text, ORDERS) || text.ends_with(" before ");
    let is_conditional = holds(&text, " if there is | if there are ") && !holds(&text, INQUIRIES);
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
                || is_request
                || is_tagged && !begins(&text, QUESTIONS);
            u8::from(is_demand && count >= 4) * 2
        }
        () if begins(&text, QUESTIONS) => 0,
        () if is_report || holds(&text, " never mind | nevermind | don't worry ") => 0,
        () if is_standing => 4,
        () if holds(&text.replace(" yet another ", " another "), PASSING) => 0,
        () if is_wish(&text) => 2 + u8::from(is_limit),
        () if holds(&text, CONSIDERATIONS) && !is_limit => 0,
        () if holds(&text, " we need to have | we need to be ") => 2,
        () if holds(&text, NO_DEMANDS) || holds(&lower, NO_DEMANDS_WIDE) => {
            u8::from(is_limit && is_command)
        }
        () if count < 3 => 0,
        () if is_demand && is_limit => 3,
        () if is_demand || is_limit => 2,
        () if (is_order || is_conditional) && is_command => 1,
        () => 0,
    }
}

/// "I want JSON first", but not "I want to see it", which begins a task.
fn is_wish(text: &str) -> bool {
    let mut wanted = text.match_indices(" i want ").map(|(at, wish)| &text[at + wish.len() - 1..]);
    holds(text, WISHES) || wanted.any(|what| !begins(what, " to | you "))
}

/// Whether a rule is about how to work, and so holds again: what is always or never done, what the user forbids, what
/// the user had to complain about. A wish for one result is fulfilled once: "The total should be bold".
pub(super) fn is_lasting(rule: &str) -> bool {
    let lower = rule.to_lowercase().replace('’', "'");
    let text = padded(&lower);
    if holds(&text, COMPLAINTS) || holds(&text, STANDING_QUESTIONS) {
        return true;
    }
    if rule.ends_with(['?', '？']) || holds(&text, NO_DEMANDS) {
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
    let subjects = " i | it | the | this | that | they | we | you | he | there | these | those | what | when | where | who | how | why | \
         i've | i'm | my | our | your ";
    !begins(text, subjects)
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
        ] {
            assert!(!is_lasting(text), "{text}");
        }
        let both = "The total should be bold, not red. Never use npm here.";
        assert_eq!(rules(both)[0], "Never use npm here.");
    }

    #[test]
    fn pasted_text_is_not_the_user() {
        assert!(rules("Implement the following plan:\n\n# Plan\nNever use npm.").is_empty());
        assert!(rules("diff:\n@@ -1 +1 @@\n- never use npm\n+ always use pnpm").is_empty());
        assert!(rules(&"Always use pnpm. ".repeat(100)).is_empty());
    }
}
