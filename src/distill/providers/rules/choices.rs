//! Recognizes decisions that the assistant states, and proposals.

use super::text::{alternatives, contains_any, fitting_title, padded, starts_with_any};

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
}
