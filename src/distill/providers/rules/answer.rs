//! Parses the last message of a turn into results, causes, decisions, next steps and questions.

use super::choices::{is_choice, is_proposal, states_choice};
use super::corrections::Corrections;
use super::markdown::{self, Block, sentences};
use super::text::{
    add, alternatives, clip, contains_any, is_among, one_line, padded, sentence_case,
    starts_with_any, words,
};

const STATEMENT_CHARS_MAX: usize = 320;
const LIST_MAX: usize = 12;
const NARRATIVE_CHARS_MAX: usize = 1_200;

/// A shorter paragraph with a bold label counts as prose, not as a finding.
const FINDING_CHARS_MIN: usize = 160;

/// Maximum number of title candidates.
const STATEMENTS_MAX: usize = 60;

/// A message, with its sentences grouped by subject.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// The first sentence, even if it is only a courtesy.
    pub(super) opening: String,
    /// The first sentence that is a statement.
    pub(super) headline: Option<String>,
    /// Sentences and list items about results and findings, in order. Candidates for a title.
    pub(super) statements: Vec<Statement>,
    /// The prose, without next steps, questions and courtesies.
    pub(super) narrative: String,
    /// List items and table rows about results and findings.
    pub(super) points: Vec<String>,
    /// Decisions, with their reasons.
    pub(super) decisions: Vec<String>,
    /// Causes, conditions and gotchas.
    pub(super) learned: Vec<String>,
    /// Remaining work. If there is none, the assistant's proposals.
    pub(super) next: Vec<String>,
    /// Questions to the user.
    pub(super) questions: Vec<String>,
    /// Passages that correct an earlier statement.
    pub(super) corrections: Corrections,
}

/// A candidate for a title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) text: String,
    /// A list item is a detail of the work rather than its result.
    pub(super) is_item: bool,
}

/// The subject of the part of a message under one heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Section {
    #[default]
    Work,
    Next,
    Decisions,
    Lessons,
}

/// A longer sentence is a statement, not an introduction to a list.
const INTRODUCTION_WORDS_MAX: usize = 14;

const NEXT_HEADINGS: &str = "\
    next|todo|to do|to-do|remaining|follow-up|follow up|left to do|what's left|whats left|\
    not done|still open|still to|outstanding|future|open item|pending|recommend|suggest|\
    nächste schritte|offen|\
    prochaines étapes|próximos pasos|siguientes pasos|prossimi passi|\
    下一步|后续|次のステップ|残り|今後|다음|\
    следующие шаги|осталось|\
    sonraki adım|kalan";
const DECISION_HEADINGS: &str = "\
    decision|decided|trade-off|tradeoff|design choice|choices made|entscheidung|décision|\
    decisiones|\
    решени|karar|\
    决策|决定|決定";
const LESSON_HEADINGS: &str = "\
    root cause|cause|finding|learned|lesson|gotcha|caveat|note|important|watch out|limitation|\
    ursache|hinweis|remarque|nota|\
    原因|注意|\
    причин|neden";

fn section(heading: &str) -> Section {
    let heading = heading.to_lowercase();
    let is = |marks: &str| contains_any(&heading, marks);
    // "Open decisions" are questions; "Proposed decisions" are proposals.
    let is_open = heading.contains('?')
        || is(DECISION_HEADINGS)
            && is("open|pending|needed|required|to make|to take|for you|your |propos|suggest|\
                 recommend|possible|possib|\
                 待|нужн|\
                 gerek");
    match () {
        () if is_open || is(NEXT_HEADINGS) => Section::Next,
        () if is(DECISION_HEADINGS) => Section::Decisions,
        () if is(LESSON_HEADINGS) => Section::Lessons,
        () => Section::Work,
    }
}

impl Answer {
    /// Parses a message.
    pub(super) fn of(message: &str) -> Self {
        let mut reader = Reader::default();
        for block in markdown::blocks(message) {
            match block {
                Block::Heading(text) => reader.about = section(&text),
                Block::BoldLine(text) => reader.bold_line(&text),
                Block::Paragraph(text) => reader.paragraph(&one_line(&text)),
                Block::Labelled(text) => reader.labelled(&text),
                Block::Row(text) => reader.row(&text),
                Block::Item { text, is_done } => reader.item(&text, is_done),
            }
        }
        if reader.answer.next.is_empty() {
            reader.answer.next = reader.proposals;
        }
        reader.answer.narrative = first_and_last(&reader.prose, NARRATIVE_CHARS_MAX);
        reader.answer
    }
}

#[derive(Default)]
struct Reader {
    answer: Answer,
    /// Sentences for the narrative.
    prose: Vec<String>,
    proposals: Vec<String>,
    about: Section,
}

impl Reader {
    /// A bold line is a heading. It is also a statement if it is a sentence or contains a
    /// quotation.
    fn bold_line(&mut self, text: &str) {
        self.about = section(text);
        let is_sentence = text.ends_with(['.', '!', '。']) || text.contains(['`', '"', '“']);
        if self.about != Section::Next && (is_sentence && words(text) >= 3 || words(text) >= 7) {
            for sentence in sentences(text) {
                self.sentence(sentence, "", self.about);
            }
        }
    }

    /// A paragraph with a bold label is a finding, unless the label is a heading or the text is a
    /// single sentence.
    fn labelled(&mut self, text: &str) {
        let label = text.split([':', '.', '—']).next().unwrap_or_default();
        let is_finding = self.about != Section::Next
            && section(label) == Section::Work
            && text.chars().count() >= FINDING_CHARS_MIN;
        if is_finding { self.item(text, None) } else { self.paragraph(text) }
    }

    fn paragraph(&mut self, text: &str) {
        // Prose after a list of next steps starts a new subject.
        if self.about == Section::Next && !self.answer.next.is_empty() {
            self.about = Section::Work;
        }
        // A label such as `Next steps:` sets the section for its own paragraph.
        let label = text.split_once(": ").filter(|(label, _)| words(label) <= 3);
        let (about, text) = match label {
            Some((label, rest)) if section(label) != Section::Work => (section(label), rest),
            _ => (self.about, text),
        };
        let mut before = "";
        self.about = if introduces_next(text) { Section::Next } else { self.about };
        for (number, sentence) in sentences(text).into_iter().enumerate() {
            // Under a heading such as "Decisions", the first sentence is the decision and the
            // others explain it.
            let is_detail = about == Section::Decisions && number > 0;
            let about = if is_detail { Section::Work } else { about };
            self.sentence(sentence, before, about);
            before = sentence;
        }
    }

    fn sentence(&mut self, sentence: &str, before: &str, about: Section) {
        let answer = &mut self.answer;
        if answer.opening.is_empty() {
            answer.opening = clip(sentence, STATEMENT_CHARS_MAX);
        }
        answer.corrections.read(sentence);
        // Skip retracted claims and expectations: they are not facts.
        if is_retracted(sentence) {
            return;
        }
        let sentence = without_courtesy(sentence);
        if sentence.ends_with(['?', '？']) {
            self.question(sentence, before);
            return;
        }
        if words(sentence) < 2 || is_courtesy(sentence) {
            return;
        }
        if about == Section::Next || is_next(sentence) {
            add(&mut answer.next, statement(without_next_label(sentence)), LIST_MAX);
            return;
        }
        let statement = statement(sentence);
        if answer.headline.is_none() && words(&statement) >= 4 {
            answer.headline = Some(statement.clone());
        }
        self.sort(sentence, about);
        self.candidate(&statement, false);
        self.prose.push(statement);
    }

    /// Table rows are facts, even below a list of next steps.
    fn row(&mut self, text: &str) {
        if self.about == Section::Next && !self.answer.next.is_empty() {
            self.about = Section::Work;
        }
        self.item(text, None);
    }

    fn item(&mut self, text: &str, is_done: Option<bool>) {
        let mut kept = Vec::new();
        for sentence in sentences(text) {
            self.answer.corrections.read(sentence);
            kept.extend(Some(sentence).filter(|sentence| !is_retracted(sentence)));
        }
        let text = kept.join(" ");
        let text = text.as_str();
        let statement = statement(text);
        let is_next = self.about == Section::Next && is_done.is_none();
        if is_done == Some(false) || is_next {
            add(&mut self.answer.next, statement, LIST_MAX);
        } else if words(text) >= 2 {
            // The first sentence of an item states it; the others explain it.
            for (number, sentence) in sentences(text).into_iter().enumerate() {
                let is_detail = self.about == Section::Decisions && number > 0;
                self.sort(sentence, if is_detail { Section::Work } else { self.about });
            }
            self.candidate(&statement, true);
            add(&mut self.answer.points, statement, LIST_MAX);
        }
    }

    fn candidate(&mut self, statement: &str, is_item: bool) {
        if self.answer.statements.len() < STATEMENTS_MAX {
            self.answer.statements.push(Statement { text: statement.to_owned(), is_item });
        }
    }

    fn sort(&mut self, sentence: &str, about: Section) {
        let lower = sentence.to_lowercase();
        let is_proposed = is_proposal(&lower);
        if is_proposed && contains_any(&lower, "recommend|suggest|propose|i'd |i would ") {
            add(&mut self.proposals, statement(sentence), LIST_MAX);
        } else if !is_proposed
            && (about == Section::Decisions || is_choice(&lower) && states_choice(sentence))
        {
            add(&mut self.answer.decisions, statement(sentence), LIST_MAX);
        } else if about == Section::Lessons || is_lesson(&lower) {
            add(&mut self.answer.learned, statement(sentence), LIST_MAX);
        }
    }

    fn question(&mut self, sentence: &str, before: &str) {
        let lower = sentence.to_lowercase();
        let offers = "anything else|let me know|does that help|make sense|how can i help";
        if words(sentence) >= 4 && !contains_any(&lower, offers) {
            // `Shall I change that?` is unclear without the sentence before it.
            let is_vague = lower
                .split(|c: char| !c.is_alphabetic())
                .any(|w| ["that", "this", "it"].contains(&w));
            let question =
                if is_vague { format!("{before} {sentence}") } else { sentence.to_owned() };
            add(&mut self.answer.questions, clip(&question, STATEMENT_CHARS_MAX), LIST_MAX);
        }
    }
}

/// Returns all sentences, or the first and last ones if the text exceeds `chars_max`.
fn first_and_last(sentences: &[String], chars_max: usize) -> String {
    let chars = |text: &String| text.chars().count() + 1;
    if sentences.iter().map(chars).sum::<usize>() <= chars_max {
        return sentences.join(" ");
    }
    let mut room = chars_max * 2 / 3;
    let fits = |text: &&String| {
        let fit = chars(text) <= room;
        room = room.saturating_sub(chars(text));
        fit
    };
    let head = sentences.iter().take_while(fits).count();
    let mut room = chars_max / 3;
    let fits = |text: &&String| {
        let fit = chars(text) <= room;
        room = room.saturating_sub(chars(text));
        fit
    };
    let tail = sentences[head..].iter().rev().take_while(fits).count();
    let (first, last) = (&sentences[..head], &sentences[sentences.len() - tail..]);
    [first.join(" "), last.join(" ")].join(" … ").trim_matches([' ', '…']).to_owned()
}

/// Openings that state nothing.
const OPENINGS: &str = "\
    all done|done|perfect|great|excellent|sure|ok|okay|yes|certainly|got it|agreed|good|\
    you're right|you are right|you're absolutely right|good catch|good point|good question|\
    fixed it|found it|confirmed|fertig|erledigt|listo|hecho|terminé|fait|voilà|klar|\
    完成了|完了しました|好的|\
    готово|tamam|tamamlandı";

/// Removes openings such as `Done.` or `Done —`, and the subject before a past-tense verb.
fn without_courtesy(sentence: &str) -> &str {
    let mut text = sentence.trim();
    let opening = alternatives(OPENINGS).find_map(|word| {
        let head = text.get(..word.len()).filter(|head| head.eq_ignore_ascii_case(word))?;
        text[head.len()..]
            .trim_start()
            .strip_prefix(['.', '!', ',', ':', '—', '–', '-', '。', '！'])
    });
    text = opening.map_or(text, str::trim);
    let speakers = "\
        I've successfully |I have successfully |I successfully |I've now |I've also |I've |I’ve |\
        I have |I also |I |We've |We have |Successfully |I just ";
    let speaker = alternatives(speakers).find_map(|who| text.strip_prefix(who));
    let goes_on = |rest: &&str| {
        let verb = rest.split(' ').next().unwrap_or_default();
        verb.ends_with("ed") || is_among(verb, PAST)
    };
    speaker.filter(goes_on).unwrap_or(text)
}

/// Irregular past-tense verbs that start a result.
const PAST: &str = "\
    made|wrote|ran|found|built|set|put|split|cut|rewrote|got|took|went|chose|left|kept|read|\
    swapped|dropped";

/// Whether a sentence only announces or closes something.
fn is_courtesy(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    let always = "\
        let me |now let|let's |waiting on |waiting for |feel free|happy to|glad |thanks|\
        thank you|sorry|hope |\
        以下|looking at |\
        hier ist|voici|aquí está|good question|i'll |i’ll |i will ";
    let if_short =
        "here's|here is|here are|i'm |if you|this is ready|everything is|everything works";
    starts_with_any(&lower, always) && words(&lower) <= 25
        || starts_with_any(&lower, if_short) && words(&lower) <= 9
}

/// Whether a paragraph ends by announcing a list of next steps.
fn introduces_next(text: &str) -> bool {
    let announces = "\
        next step|what's left|what is left|what remains|remaining work|still open|left to do|\
        do next|\
        nächste schritte|prochaines étapes|próximos pasos|\
        下一步|次のステップ|\
        следующие шаги|следующий шаг|\
        sıradaki adım|sonraki adım";
    let last = sentences(text).last().map(|sentence| sentence.to_lowercase()).unwrap_or_default();
    last.ends_with([':', '：'])
        && words(&last) <= INTRODUCTION_WORDS_MAX
        && contains_any(&last, announces)
}

fn is_next(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    let starts = "\
        next |next:|next,|todo |todo:|to do:|remaining|still |you'll need|you will need|\
        you may want|you might want|you should|you can now|follow-up|i haven't|i have not|\
        i didn't|i did not|not yet|make sure to|don't forget|remember to|als nächstes|il reste|\
        queda |\
        falta ";
    let within =
        "remains to|still needs|still need to|left to do|not yet |is left for|follow-up pr";
    starts_with_any(&lower, starts) || contains_any(&lower, within)
}

/// Removes a label such as `Next:`; the list of steps already has a heading.
fn without_next_label(step: &str) -> &str {
    let labels =
        "next|next up|next step|next steps|todo|to do|follow-up|follow-ups|remaining|still open";
    match step.split_once(':') {
        Some((label, rest))
            if is_among(&label.trim().to_lowercase(), labels) && !rest.trim().is_empty() =>
        {
            rest.trim()
        }
        _ => step,
    }
}

fn is_lesson(lower: &str) -> bool {
    let marks = "\
        turns out|turned out|root cause|the cause|caused by|because|due to|problem was|issue was|\
        bug was|the reason|note that|note:|beware|careful|gotcha|caveat|only works|only if|\
        must be|must not|silently|by default|important:|workaround|keep in mind|\
        ursache|weil |cause |porque|\
        因为|原因|注意|ため|\
        потому что|причин|из-за|\
        çünkü|nedeni|yüzünden";
    contains_any(lower, marks)
}

/// Whether a sentence repeats a claim that was wrong, or states an expectation.
fn is_retracted(sentence: &str) -> bool {
    let text = padded(&sentence.to_lowercase().replace('’', "'"));
    let marks = " \
        i'd said | i had said | i said earlier | i claimed | claim is wrong | claim was wrong | \
        i previously said | i told you | i had one piece | i had the | i'd expect | \
        i would expect | i suspect | my guess | presumably ";
    contains_any(&text, marks)
}

/// Cleans a sentence so that it reads well on its own.
fn statement(text: &str) -> String {
    clip(&sentence_case(&one_line(without_courtesy(text))), STATEMENT_CHARS_MAX)
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
