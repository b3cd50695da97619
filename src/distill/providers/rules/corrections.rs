//! Corrections: which earlier memory of the session a turn takes back.

use super::parsed_turn::ParsedTurn;
use super::text::{begins, holds, padded};
use super::titles::rare_words;

/// Rare words that the correction and the earlier memory must share.
const SHARED_MIN: usize = 2;

/// The title of the earlier memory that this turn corrects, if it corrects one.
///
/// The user or the assistant says that something was wrong, and the correction shares rare words with
/// the memory. Without shared words it is about something that was never remembered.
pub(super) fn corrected_title<'t>(parsed: &ParsedTurn<'t>) -> Option<&'t str> {
    let prompt = parsed.prompt.text.as_str();
    if !is_objection(prompt) && parsed.answer.corrections.is_empty() {
        return None;
    }
    let text = format!("{prompt} {}", parsed.answer.corrections.join(" ")).to_lowercase();
    let said: Vec<&str> = rare_words(&text).collect();
    let shared = |text: &str| {
        let lower = text.to_lowercase();
        let mut words: Vec<&str> = rare_words(&lower).filter(|word| said.contains(word)).collect();
        words.sort_unstable();
        words.dedup();
        words.len()
    };
    // What was said last is corrected most often, and a title says best what a memory is about.
    let rows = || parsed.earlier.iter().filter(|row| row.kind != "rule");
    let latest = rows().map(|row| row.at).max()?;
    let ranked = rows().filter_map(|row| {
        let body = format!("{} {}", row.narrative, row.facts.join(" "));
        let (in_title, in_body) = (shared(row.title), shared(&body));
        let is_about =
            in_title >= SHARED_MIN || row.at == latest && in_title + in_body >= SHARED_MIN;
        is_about.then(|| (2 * in_title + in_body.min(4) + usize::from(row.at == latest), row.title))
    });
    ranked.max_by_key(|(score, _)| *score).map(|(_, title)| title)
}

/// Whether the user objects to what the assistant said or did.
fn is_objection(prompt: &str) -> bool {
    let text = padded(&prompt.to_lowercase().replace('’', "'"));
    let starts = " no , | no it | no that | nope | actually | that's wrong | that's not | that is not | wrong | not true | this is wrong |\
         you're wrong | you are wrong | this isn't | nein , | non , | нет , | это не | hayır | yanlış ";
    let within = " that's not correct | that is not correct | is not correct | that's incorrect | is incorrect | you misunderstood ";
    begins(&text, starts)
        || holds(&text, within)
        || prompt.starts_with("不对")
        || prompt.starts_with("不是")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{recap::EarlierRow, turn_prompt::Turn};

    fn corrected<'t>(prompt: &'t str, answer: &'t str) -> Option<&'t str> {
        let row = |kind, title| EarlierRow { kind, title, ..EarlierRow::default() };
        let turn = Turn {
            prompt,
            last_assistant_message: Some(answer),
            earlier: vec![
                row("discovery", "The nginx block for staging is missing"),
                row("rule", "Use the nginx block on staging"),
                row("feature", "Added a discount to the cart"),
            ],
            is_over: true,
            ..Turn::default()
        };
        corrected_title(&ParsedTurn::of(&turn))
    }

    #[test]
    fn a_correction_names_what_it_corrects() {
        let found = corrected("no, staging has an nginx block", "Let me look.");
        assert_eq!(found, Some("The nginx block for staging is missing"));
        let answer = "You're right, the nginx block on staging exists; the port was wrong.";
        assert_eq!(corrected("look again", answer), Some("The nginx block for staging is missing"));
    }

    #[test]
    fn without_an_objection_or_shared_words_nothing_is_corrected() {
        assert_eq!(corrected("Deploy nginx to staging", "Deployed."), None);
        assert_eq!(corrected("no, use another colour", "Changed."), None);
    }
}
