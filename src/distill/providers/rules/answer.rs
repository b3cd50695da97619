//! What the assistant said at the end of a turn: the result, reasons, traps, and what is left.

use super::markdown::{self, Block, sentences};
use super::text::{
    add, alternatives, begins, clip, holds, is_among, one_line, sentence_case, words,
};

const STATEMENT_CHARS_MAX: usize = 240;
const LIST_MAX: usize = 8;
const LEAD_CHARS_MAX: usize = 700;

/// A message, sorted by what its sentences are about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// The first sentence of all, be it a courtesy.
    pub(super) opening: String,
    /// The first sentence that states something.
    pub(super) headline: Option<String>,
    /// How the message begins, without courtesies.
    pub(super) lead: String,
    /// Items of lists that are about what was done or found.
    pub(super) points: Vec<String>,
    /// Choices, with their reasons.
    pub(super) decisions: Vec<String>,
    /// Causes, conditions and traps.
    pub(super) learned: Vec<String>,
    /// What is left to do.
    pub(super) next: Vec<String>,
    /// What the user was asked.
    pub(super) questions: Vec<String>,
}

/// What the part of a message under a heading is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Work,
    Next,
    Decisions,
    Lessons,
}

const NEXT_HEADINGS: &str = "next|todo|to do|to-do|remaining|follow-up|follow up|left to do|what's left|whats left|\
    not done|still open|still to|outstanding|future|nächste schritte|offen|prochaines étapes|\
    próximos pasos|siguientes pasos|prossimi passi|下一步|后续|次のステップ|残り|今後|다음|следующие шаги";
const DECISION_HEADINGS: &str =
    "decision|trade-off|tradeoff|design choice|why |entscheidung|décision|decisiones";
const LESSON_HEADINGS: &str = "root cause|cause|finding|learned|lesson|gotcha|caveat|note|important|watch out|limitation|\
    ursache|hinweis|remarque|nota|原因|注意";

fn section(heading: &str) -> Section {
    let heading = heading.to_lowercase();
    let is = |marks: &str| holds(&heading, marks);
    match () {
        () if is(NEXT_HEADINGS) => Section::Next,
        () if is(DECISION_HEADINGS) => Section::Decisions,
        () if is(LESSON_HEADINGS) => Section::Lessons,
        () => Section::Work,
    }
}

impl Answer {
    /// Reads a message.
    pub(super) fn of(message: &str) -> Self {
        let mut answer = Self::default();
        let mut about = Section::Work;
        for block in markdown::blocks(message) {
            match block {
                Block::Heading(text) => about = section(&text),
                Block::Paragraph(text) => answer.paragraph(&text, &mut about),
                Block::Item { text, is_done } => answer.item(&text, is_done, about),
            }
        }
        answer
    }

    fn paragraph(&mut self, text: &str, about: &mut Section) {
        // Prose after a list of next steps is about something else again.
        if *about == Section::Next && !self.next.is_empty() {
            *about = Section::Work;
        }
        // `Next steps: do this` carries its own heading.
        let label = text.split_once(": ").filter(|(label, _)| words(label) <= 3);
        let (now, text) = match label {
            Some((label, rest)) if section(label) != Section::Work => (section(label), rest),
            _ => (*about, text),
        };
        let mut before = "";
        for sentence in sentences(text) {
            self.sentence(sentence, before, now);
            before = sentence;
        }
    }

    fn sentence(&mut self, sentence: &str, before: &str, about: Section) {
        if self.opening.is_empty() {
            self.opening = clip(sentence, STATEMENT_CHARS_MAX);
        }
        let sentence = without_courtesy(sentence);
        if sentence.ends_with(['?', '？']) {
            self.question(sentence, before);
            return;
        }
        if words(sentence) < 3 {
            return;
        }
        let statement = statement(sentence);
        match about {
            _ if is_courtesy(sentence) => {}
            Section::Next => add(&mut self.next, statement, LIST_MAX),
            _ if is_next(sentence) => add(&mut self.next, statement, LIST_MAX),
            _ => {
                self.sort(sentence, about);
                if about == Section::Work {
                    self.tell(&statement);
                }
            }
        }
    }

    fn tell(&mut self, statement: &str) {
        if self.headline.is_none() && words(statement) >= 4 {
            self.headline = Some(statement.to_owned());
        }
        if self.lead.chars().count() + statement.chars().count() < LEAD_CHARS_MAX {
            if !self.lead.is_empty() {
                self.lead.push(' ');
            }
            self.lead.push_str(statement);
        }
    }

    fn item(&mut self, text: &str, is_done: Option<bool>, about: Section) {
        let statement = statement(text);
        if is_done == Some(false) || about == Section::Next && is_done.is_none() {
            add(&mut self.next, statement, LIST_MAX);
        } else if words(text) >= 2 {
            self.sort(text, about);
            if about == Section::Work {
                add(&mut self.points, statement, LIST_MAX);
            }
        }
    }

    fn sort(&mut self, sentence: &str, about: Section) {
        let lower = sentence.to_lowercase();
        if about == Section::Decisions || decisiveness(&lower) >= 2 {
            add(&mut self.decisions, statement(sentence), LIST_MAX);
        } else if about == Section::Lessons || is_lesson(&lower) {
            add(&mut self.learned, statement(sentence), LIST_MAX);
        }
    }

    fn question(&mut self, sentence: &str, before: &str) {
        let lower = sentence.to_lowercase();
        let offers = "anything else|let me know|does that help|make sense|how can i help";
        if words(sentence) >= 4 && !holds(&lower, offers) {
            // `Shall I change that?` says nothing without what stands before it.
            let is_vague = lower
                .split(|c: char| !c.is_alphabetic())
                .any(|w| ["that", "this", "it"].contains(&w));
            let question =
                if is_vague { format!("{before} {sentence}") } else { sentence.to_owned() };
            add(&mut self.questions, clip(&question, STATEMENT_CHARS_MAX), LIST_MAX);
        }
    }
}

/// Words that open a message without saying anything.
const OPENINGS: &str = "all done|done|perfect|great|excellent|sure|ok|okay|yes|certainly|got it|agreed|good|\
    fertig|erledigt|listo|hecho|terminé|fait|voilà|klar|完成了|完了しました";

/// Without `Done.`, `Done —` and the like before what is really said, and without who says it.
fn without_courtesy(sentence: &str) -> &str {
    let mut text = sentence.trim();
    let opening = alternatives(OPENINGS).find_map(|word| {
        let rest =
            text.get(word.len()..).filter(|_| text[..word.len()].eq_ignore_ascii_case(word))?;
        rest.trim_start().strip_prefix(['.', '!', ',', ':', '—', '–', '-'])
    });
    text = opening.map_or(text, str::trim);
    let speakers = "I've successfully |I have successfully |I successfully |I've now |I've also |I've |\
        I’ve |I have |I also |I |We've |We have |Successfully |I just ";
    let speaker = alternatives(speakers).find_map(|who| text.strip_prefix(who));
    let goes_on = |rest: &&str| {
        let verb = rest.split(' ').next().unwrap_or_default();
        verb.ends_with("ed") || is_among(verb, PAST)
    };
    speaker.filter(goes_on).unwrap_or(text)
}

/// Past forms without `-ed` that begin results.
const PAST: &str = "made|wrote|ran|found|built|set|put|split|cut|rewrote|got|took|went|chose|left|kept|read|\
    swapped|dropped";

fn is_courtesy(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    let starts = "here's|here is|here are|let me|i'll|i’ll|i will|i'm |now let|let's|if you|feel free|\
        happy to|glad|you're right|you are right|good question|thanks|thank you|sorry|hope |\
        this is ready|everything is|everything works|looking at|hier ist|voici|aquí está|以下";
    begins(&lower, starts)
}

fn is_next(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    let starts = "next|todo|to do:|remaining|still |you'll need|you will need|you may want|\
        you might want|you should|you can now|follow-up|i haven't|i have not|i didn't|\
        i did not|not yet|make sure to|don't forget|remember to|als nächstes|il reste|queda |\
        falta ";
    let within =
        "remains to|still needs|still need to|left to do|not yet |is left for|follow-up pr";
    begins(&lower, starts) || holds(&lower, within)
}

/// How clearly a sentence states a choice: from 2 on it is one.
pub(super) fn decisiveness(lower: &str) -> u8 {
    let chosen = "decided|chose |chosen |opted |went with|going with|go with |trade-off|tradeoff|\
        in favour of|in favor of|settled on|deliberately|entschieden|en lugar de |plutôt que|\
        選択し|採用し|选择了|决定";
    let against = " instead of | rather than | over using |statt | au lieu de ";
    let reasons = "because|since |so that| so |as it |, which|weil |damit |parce que|porque| — ";
    u8::from(holds(lower, chosen)) * 2
        + u8::from(holds(lower, against))
        + u8::from(holds(lower, against) && holds(lower, reasons))
}

fn is_lesson(lower: &str) -> bool {
    let marks = "turns out|turned out|root cause|the cause|caused by|because|due to|problem was|\
        issue was|bug was|the reason|note that|note:|beware|careful|gotcha|caveat|only works|\
        only if|must be|must not|silently|by default|important:|workaround|keep in mind|\
        ursache|weil |cause |porque|因为|原因|注意|ため";
    holds(lower, marks)
}

/// A sentence as it may stand alone.
fn statement(text: &str) -> String {
    clip(&sentence_case(&one_line(without_courtesy(text))), STATEMENT_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_sorted_by_what_it_is_about() {
        let answer = Answer::of(
            "Done! I've fixed the login redirect. The root cause was a cookie marked `Secure` on http.\n\n\
             ### Changes\n- `auth.ts`: sets the flag only on https\n- Tests for both\n\n\
             I chose a per-request flag over a setting, because proxies differ. Note that Safari caches it.\n\n\
             **Next steps:**\n- Deploy to staging\n- [x] Done already\n\nWould you like me to deploy it now?\n\
             Is there anything else?",
        );
        assert_eq!(answer.headline.as_deref(), Some("Fixed the login redirect."));
        assert_eq!(answer.points, ["`auth.ts`: sets the flag only on https", "Tests for both"]);
        assert_eq!(
            answer.decisions,
            ["Chose a per-request flag over a setting, because proxies differ."]
        );
        assert_eq!(
            answer.learned,
            ["The root cause was a cookie marked `Secure` on http.", "Note that Safari caches it."]
        );
        assert_eq!(answer.next, ["Deploy to staging"]);
        assert_eq!(answer.questions, ["Would you like me to deploy it now?"]);
    }

    #[test]
    fn courtesies_say_nothing() {
        for message in
            ["Done.", "All done, everything works.", "Sure! Let me look at that for you.", "ok", ""]
        {
            assert_eq!(Answer::of(message).headline, None, "{message}");
        }
    }

    #[test]
    fn other_languages_pass_unharmed() {
        let answer = Answer::of(
            "Der Warenkorb rechnet jetzt mit Rabatten. Ursache war ein Rundungsfehler.\n\n## Nächste Schritte\n- Tests ergänzen",
        );
        assert_eq!(answer.headline.as_deref(), Some("Der Warenkorb rechnet jetzt mit Rabatten."));
        assert_eq!(answer.learned, ["Ursache war ein Rundungsfehler."]);
        assert_eq!(answer.next, ["Tests ergänzen"]);
        let answer = Answer::of(
            "ログイン処理のバグを修正しました。原因はトークンの期限切れです。\n\n次のステップ：\n- テストを追加",
        );
        assert_eq!(answer.headline.as_deref(), Some("ログイン処理のバグを修正しました。"));
        assert_eq!(answer.next, ["テストを追加"]);
    }
}
