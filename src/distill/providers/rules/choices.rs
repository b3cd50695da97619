//! Recognizes decisions, and the option that a short answer to a question selects.

use std::fmt;

use super::markdown::{self, Block, sentences};
use super::text::{
    alternatives, clip, contains_any, fitting_title, is_among, one_line, padded, starts_with_any,
    words,
};

/// A subject and a verb of choosing.
const CHOSEN: &str = " \
    i chose | we chose | you chose | user chose | i decided | we decided | you decided | \
    user decided | i went with | we went with | you went with | i opted | we opted | i picked | \
    we picked | you picked | user picked | i settled on | we settled on | was chosen | \
    were chosen | was decided | we agreed on | we agreed to | we agreed that | you confirmed | \
    user confirmed | ich habe mich | haben uns entschieden | wurde entschieden | j'ai choisi | \
    elegí | \
    решил | решили | решено | выбрал | выбрали | \
    seçtim | seçtik | tercih ettim | karar verdik | karar verdim ";

/// The same verbs at the start of a sentence, where the subject is omitted.
const CHOSEN_FIRST: &str =
    " chose | decided | went with | opted | picked | settled on | entschieden ";

/// Verbs that state a decision only together with an alternative or a reason.
const KEPT: &str = " \
    i kept | we kept | i switched | we switched | i rejected | we rejected | i dropped | \
    i avoided | i used | i replaced | i preferred | we dropped ";
const KEPT_FIRST: &str = " kept | switched to | rejected | avoided | preferred | dropped ";

/// Marks of a temporary choice, or of one about this turn only. Such a choice is not a lasting
/// decision.
const PASSING: &str = " \
    for now | for the moment | this turn | this session | didn't ask | did not ask | not asked | \
    you asked | uncommitted | unstaged | untracked | scratch | temporary | temporarily | \
    amended | fixup | force-pushed | subagent | agent | came back ";

const CHOSEN_WIDE: &str = "选择了|决定|采用了|選択し|採用し|決めました|선택했|결정했";

/// Words that introduce an alternative or a reason.
const REASONS: &str = " \
    because | since | so that | instead of | rather than | as it | as the | over | \
    statt | weil | \
    au lieu de | parce que | en lugar de | porque | \
    вместо | потому | \
    yerine | çünkü ";

const PROPOSALS: &str = " \
    recommend | recommended | recommendation | suggest | suggested | suggestion | would | \
    could | option | options | consider | should | might | i'd | propose | proposal | if you | \
    alternatively | may want | can either | \
    empfehle | könnte | sollte | recommande | \
    предлагаю | рекомендую | можно | \
    öneririm | öneri ";

/// Whether a sentence of the assistant states a decision.
pub(super) fn is_choice(lower: &str) -> bool {
    let text = padded(lower);
    // "That fits your decision" is unclear without the sentence before it.
    let is_reference =
        starts_with_any(&text, " this | that | it ") || lower.starts_with(['—', '–', '这', '那']);
    if is_proposal(lower) || is_reference {
        return false;
    }
    let has_reason = contains_any(&text, REASONS) && !contains_any(&text, PASSING);
    contains_any(&text, CHOSEN)
        || starts_with_any(&text, CHOSEN_FIRST)
        || contains_any(lower, CHOSEN_WIDE)
        || has_reason && (begins_a_clause(lower, KEPT) || starts_with_any(&text, KEPT_FIRST))
        || has_reason && acted_against_an_alternative(&text)
}

/// Whether one of the phrases begins the text or a clause of it: "the finding I kept" does not.
fn begins_a_clause(lower: &str, phrases: &str) -> bool {
    alternatives(phrases).map(str::trim).any(|phrase| {
        lower.match_indices(phrase).any(|(at, _)| {
            let before = lower[..at].trim_end();
            let joined = [" and", " so", " but", " then", " therefore", " instead", " also"];
            before.is_empty()
                || before.ends_with([',', ';', ':', '.', '—', '–', '('])
                || before.len() < at && joined.iter().any(|word| before.ends_with(word))
        })
    })
}

/// Maximum number of words between the verb and its alternative.
const ACTION_WORDS_MAX: usize = 14;

/// Matches `I pinned the image rather than migrating` and `Counted per address instead of per
/// account, because …`: the alternative follows a verb of action in the same clause.
fn acted_against_an_alternative(text: &str) -> bool {
    let alternatives = [" instead of ", " rather than "];
    let Some(at) = alternatives.iter().filter_map(|mark| text.find(mark)).min() else {
        return false;
    };
    let clause = text[..at].rsplit(" , ").next().unwrap_or_default();
    let is_past = |word: &str| word.len() > 3 && word.ends_with("ed");
    let words: Vec<&str> = clause.split(' ').filter(|word| !word.is_empty()).collect();
    let acted = words.windows(2).any(|pair| matches!(pair, ["i" | "we", verb] if is_past(verb)));
    let begins_so = words.first().is_some_and(|word| is_past(word))
        && clause.len() + 1 >= at
        && words.len() <= ACTION_WORDS_MAX;
    (acted || begins_so) && contains_any(text, " because | since | so that | as the | as it ")
}

/// Whether the part of a sentence that would become the title states the decision. Otherwise the
/// title would describe something that happened earlier.
pub(super) fn states_choice(sentence: &str) -> bool {
    let clause = choice_clause(sentence);
    let title = fitting_title(clause).unwrap_or_default().to_lowercase();
    let is_whole = title.len() + 1 >= clause.len();
    is_whole
        || is_choice(&title)
        || contains_any(&padded(&title), CHOSEN)
        || begins_with_choice(&title)
}

fn begins_with_choice(lower: &str) -> bool {
    let text = padded(lower);
    starts_with_any(&text, CHOSEN_FIRST)
        || starts_with_any(&text, KEPT_FIRST)
        || contains_any(&text, KEPT)
        || contains_any(&text, " instead of | rather than ")
}

/// Whether a sentence only proposes something.
pub(super) fn is_proposal(lower: &str) -> bool {
    contains_any(&padded(lower), PROPOSALS) || contains_any(lower, "建议|推荐|可以考虑|おすすめ")
}

/// The part of a sentence that states the decision.
pub(super) fn choice_clause(text: &str) -> &str {
    let marks = [", so I ", ", so we ", ", so ", ", but ", "; ", " — ", ". "];
    let starts = marks.iter().filter_map(|mark| {
        let clause = &text[text.find(mark)? + mark.len()..];
        is_choice(&clause.to_lowercase()).then_some(clause)
    });
    starts.min_by_key(|clause| clause.len()).unwrap_or(text)
}

/// A question from a form, with the user's answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Choice {
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
const FACT_QUESTIONS: &str = " \
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
fn is_step(text: &str) -> bool {
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

impl Choice {
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

impl fmt::Display for Choice {
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

/// Whether a question is unclear without the sentence before it: it refers to something that it
/// does not name first.
pub(super) fn is_vague(question: &str) -> bool {
    let lower = padded(&question.to_lowercase());
    let first = |list| alternatives(list).filter_map(|word| lower.find(&format!(" {word} "))).min();
    let name = first("the|a|an|der|die|das|le|la|el");
    let reference = first("it|this|that|them|these|those|它|это|bunu");
    words(question) < 4 || reference.is_some_and(|at| name.is_none_or(|name| at < name))
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
    fn a_choice_needs_a_subject_that_chose() {
        for text in [
            "i chose a queue over polling, because polling misses events.",
            "we went with sqlite.",
            "chose tabs over spaces.",
            "kept the old route, because clients still call it.",
            "i pinned the image rather than migrating, because backups need 15.",
            "counted per address instead of per account, because accounts can be locked out.",
            "我们选择了 sqlite。",
            "мы решили хранить всё в sqlite.",
        ] {
            assert!(is_choice(text), "{text}");
        }
        for text in [
            "i recommend a queue instead of polling.",
            "the cache uses lru instead of fifo because reads repeat.",
            "you could switch to sqlite, because it is one file.",
            "option a — extract the parser.",
            "kept the tests green.",
            "i'd avoid titles like this because they age.",
            "together with the hints we added earlier, the shop now says euro instead of cents.",
            "that's three carts instead of one, which i merged.",
            "it is unknown, so i left it open rather than guessed.",
            "left the file untracked rather than committing, since you didn't ask for it.",
            "kept the branch uncommitted for now, because the tests run.",
            "——这符合你的决定。",
            "that is what we decided.",
            "three findings moved files between the groups we agreed.",
            "since it was the last commit, i amended it rather than adding one.",
            "i stopped and came back rather than guess.",
            "i fixed it directly rather than asking the agent, because it was small.",
            "the one finding i kept is about carts, since guests use them.",
        ] {
            assert!(!is_choice(text), "{text}");
        }
    }

    #[test]
    fn the_title_of_a_choice_states_it() {
        let long = "\
            Checked the docs of the cart against the rules of the shop, and they name the same \
            eleven patterns of old, so I kept the old cart because guests use it.";
        assert!(states_choice(long));
        let before = "\
            Checked the docs of the cart against the rules of the shop and they name the same \
            eleven patterns of old carts that other pages have and I matched those rather than \
            new ones because guests use them.";
        assert!(!states_choice(before));
    }

    fn answered(header: &str, question: &str, answer: &str) -> Choice {
        let (header, question, answer) = (header.into(), question.into(), answer.into());
        Choice { header, question, answer, is_typed: true, ..Choice::default() }
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
        let chosen = Choice { is_typed: false, ..answered("", "Which look?", "The card is flat") };
        assert!(chosen.is_decision());
        assert!(answered("", "Which look?", "The card is flat").is_statement());
    }

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
