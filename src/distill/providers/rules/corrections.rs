//! Corrections: which earlier observations of the session a turn retracts.

use std::collections::HashSet;

use super::markdown::sentences;
use super::parsed_turn::ParsedTurn;
use super::text::{alternatives, clip, contains_any, padded, starts_with_any, words};
use super::titles::rare_words;
use crate::recap::EarlierRow;

/// Minimum number of rare words that a correction and the earlier observation share.
const SHARED_MIN: usize = 2;

/// The minimum if only the subject identifies the observation, as in a report that something still
/// fails.
const SUBJECT_SHARED_MIN: usize = 3;

/// The minimum if a fix restates a cause found earlier.
const CAUSE_SHARED_MIN: usize = 4;

const PASSAGES_MAX: usize = 6;
const PASSAGE_CHARS_MAX: usize = 500;

/// A longer prompt quotes and describes; an objection is only searched for at its start.
const OBJECTION_CHARS_MAX: usize = 400;

/// A prompt up to this length that reports "does not work" is about the latest work.
const SHORT_REPORT_WORDS_MAX: usize = 9;

const AGREEMENTS: &str =
    "you're |you’re |you are |you were |du hast |tu as |您|你|вы правы|ты прав|haklısın";

/// Sentences that retract something, each joined with the next sentence, which states the
/// correction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Corrections {
    passages: Vec<String>,
    is_open: bool,
    /// The assistant reports that its own fix has no effect.
    finds_no_effect: bool,
}

impl Corrections {
    /// The passages that contain a denial. The others only agree.
    fn denials(&self) -> impl Iterator<Item = &String> {
        let denials = " \
            not | no | never | wrong | incorrect | instead | but | rather | misread | mistaken | \
            misunderstood | \
            nicht | kein | sondern | pas | sino | \
            не | нет | а не | неправильно | \
            değil | yok | yanlış ";
        self.passages.iter().filter(move |passage| {
            let lower = passage.to_lowercase().replace('’', "'");
            contains_any(&padded(&lower), denials) || contains_any(&lower, "n't |不|没|错")
        })
    }

    /// Processes the assistant's next sentence.
    pub(super) fn read(&mut self, sentence: &str) {
        let starts = is_correction(sentence);
        self.finds_no_effect |= is_without_effect(sentence);
        if starts && self.passages.len() < PASSAGES_MAX {
            self.passages.push(clip(sentence, PASSAGE_CHARS_MAX));
        } else if let Some(passage) = self.passages.last_mut().filter(|_| self.is_open) {
            *passage = clip(&format!("{passage} {sentence}"), PASSAGE_CHARS_MAX);
        }
        // After an agreement, the explanation can take several sentences. After a correction, it is
        // the next sentence.
        let agrees = |passage: &String| starts_with_any(&passage.to_lowercase(), AGREEMENTS);
        self.is_open = starts || self.is_open && self.passages.last().is_some_and(agrees);
    }
}

/// Whether the assistant retracts something, or contrasts its earlier statement with the facts.
fn is_correction(sentence: &str) -> bool {
    let lower = sentence.to_lowercase().replace('’', "'");
    let own = "\
        you're right|you are right|you're absolutely right|you are absolutely right|\
        you're correct|you're absolutely correct|you are correct|you were correct|i was wrong|\
        my mistake|i misread|i misunderstood|i was mistaken|correction:|my earlier|\
        i previously said|what i said earlier|not what i said|was wrong about|i apologize|\
        the actual cause|the actual problem|the real cause|the real problem|the real issue|\
        actual root cause|real root cause|it wasn't |it was not the|wasn't the cause|\
        wasn't the problem|was not the cause|was not the problem|turned out to be wrong|\
        du hast recht|sie haben recht|tu as raison|\
        vous avez raison|tienes razón|\
        您说得对|你说得对|我错了|判断错了|\
        вы правы|ты прав|я ошибся|на самом деле|\
        haklısın|haklısınız|yanılmışım|aslında sorun";
    contains_any(&lower, own)
}

/// Matches "The fix I just made won't affect the server."
fn is_without_effect(sentence: &str) -> bool {
    let text = padded(&sentence.to_lowercase().replace('’', "'"));
    let own = " \
        i just made | i made | i've made | my fix | my last fix | my previous fix | \
        my earlier fix | my first fix | my change | my last change | my previous change | \
        my earlier change ";
    let effect = " \
        won't affect | doesn't affect | does not affect | didn't affect | won't help | \
        doesn't help | didn't help | did not help | won't fix | doesn't fix | didn't fix | \
        did not fix | has no effect | had no effect | changes nothing | changed nothing | \
        makes no difference | made no difference ";
    contains_any(&text, own) && contains_any(&text, effect)
}

/// Titles of the earlier observations that this turn retracts.
pub(super) fn corrected_titles<'t>(parsed: &ParsedTurn<'t>) -> Vec<&'t str> {
    let mut titles: Vec<&'t str> = Vec::new();
    let found = reverted(parsed)
        .into_iter()
        .chain(retracted(parsed))
        .chain(failed_fixes(parsed))
        .chain(restated_diagnosis(parsed))
        .chain(ineffective_fixes(parsed))
        .chain(denied(parsed));
    for title in found {
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    titles
}

/// The user's objection, if it contains more than the objection itself.
pub(super) fn objection<'p>(parsed: &'p ParsedTurn<'_>) -> Option<&'p str> {
    let prompt = parsed.prompt.text.as_str();
    (is_objection(opening(prompt)) && words(prompt) >= 5).then_some(prompt)
}

/// Earlier statements of the assistant. Rules and decisions are the user's, and only the user can
/// retract them.
fn statements<'p, 't>(parsed: &'p ParsedTurn<'t>) -> impl Iterator<Item = &'p EarlierRow<'t>> {
    parsed.earlier.iter().filter(|row| !matches!(row.kind, "rule" | "decision"))
}

fn body(row: &EarlierRow<'_>) -> String {
    format!("{} {}", row.narrative, row.facts.join(" "))
}

/// The number of rare words of a text that are in the set.
fn shared(text: &str, words: &HashSet<String>) -> usize {
    let lower = text.to_lowercase();
    rare_words(&lower).filter(|word| words.contains(*word)).collect::<HashSet<_>>().len()
}

fn rare(text: &str) -> HashSet<String> {
    rare_words(&text.to_lowercase()).map(str::to_owned).collect()
}

/// The start of the prompt, where an objection is expected.
fn opening(prompt: &str) -> &str {
    prompt.char_indices().nth(OBJECTION_CHARS_MAX).map_or(prompt, |(end, _)| &prompt[..end])
}

/// Work whose commit was reverted: the newest observation that names this commit and no other.
fn reverted<'t>(parsed: &ParsedTurn<'t>) -> Option<&'t str> {
    let effects = parsed.evidence.effects();
    let revert = effects.iter().find_map(|effect| effect.split_once("git revert "))?.1;
    let is_hash =
        |word: &&str| word.len() >= 7 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let hash = revert.split(|c: char| !c.is_ascii_alphanumeric()).find(is_hash);
    let hash = hash.map(|hash| &hash[..7]);
    let commits = |row: &&EarlierRow<'_>| {
        row.facts.iter().filter(|fact| fact.starts_with("Committed")).count()
    };
    let is_meant = |row: &&EarlierRow<'_>| match hash {
        Some(hash) => row.title.contains(hash) || body(row).contains(hash),
        None => contains_any(revert, "HEAD"),
    };
    let rows = parsed.earlier.iter().rev().filter(|row| commits(row) == 1);
    rows.into_iter().find(is_meant).map(|row| row.title)
}

/// The observation that the user objects to, or that the assistant explicitly retracts.
///
/// The correction must share rare words with the observation. Otherwise it is about something that
/// was never recorded.
fn retracted<'t>(parsed: &ParsedTurn<'t>) -> Option<&'t str> {
    let passages =
        || parsed.answer.corrections.denials().chain(parsed.remarks.corrections.denials());
    let prompt = opening(&parsed.prompt.text);
    let objects = is_objection(prompt);
    if !objects && passages().next().is_none() {
        return None;
    }
    let mut stated = String::new();
    if objects || passages().any(|passage| starts_with_any(&passage.to_lowercase(), AGREEMENTS)) {
        stated.push_str(prompt);
    }
    for passage in passages() {
        stated.push(' ');
        stated.push_str(passage);
    }
    let stated = rare(&stated);
    // The latest statement is the most likely one to be corrected, and a title identifies the
    // subject better than the body.
    let latest = statements(parsed).map(|row| row.at).max()?;
    let ranked = statements(parsed).filter_map(|row| {
        let (in_title, in_body) = (shared(row.title, &stated), shared(&body(row), &stated));
        let is_last = row.at == latest;
        // Completed work stays recorded, even if a statement about it was wrong.
        let is_claim = matches!(row.kind, "discovery" | "bugfix" | "security_alert");
        let is_about = is_claim && in_title >= SHARED_MIN && in_title + in_body > SHARED_MIN
            || is_last && objects && (is_claim || in_title > 0) && in_title + in_body >= SHARED_MIN
            || is_last && is_claim && in_title > 0 && in_title + in_body > SHARED_MIN;
        is_about.then(|| (2 * in_title + in_body.min(4) + usize::from(is_last), row.title))
    });
    ranked.max_by_key(|(score, _)| *score).map(|(_, title)| title)
}

/// The latest fixes, if the user reports that the problem persists and this turn finds another
/// cause.
fn failed_fixes<'t>(parsed: &ParsedTurn<'t>) -> Vec<&'t str> {
    let finds = parsed.evidence.has_work()
        && (!parsed.remarks.reasons.is_empty() || !parsed.answer.learned.is_empty());
    if !finds || !is_failure_report(&parsed.prompt.text) {
        return Vec::new();
    }
    let Some(latest) = statements(parsed).map(|row| row.at).max() else { return Vec::new() };
    let stated = rare(&subject(parsed));
    let is_meant = |row: &&EarlierRow<'_>| {
        row.at == latest
            && matches!(row.kind, "discovery" | "bugfix" | "change")
            && shared(&format!("{} {}", row.title, body(row)), &stated) >= SUBJECT_SHARED_MIN
    };
    statements(parsed).filter(is_meant).map(|row| row.title).collect()
}

/// A diagnosis that the next fix restates. The cause that was fixed replaces the earlier one.
fn restated_diagnosis<'t>(parsed: &ParsedTurn<'t>) -> Option<&'t str> {
    let is_approval = words(&parsed.prompt.text) <= SHORT_REPORT_WORDS_MAX;
    let cause = " \
        root cause | the cause | the problem | the issue | because | caused by | was not | \
        wasn't | instead of ";
    let stated: Vec<&str> = sentences(&parsed.answer.narrative)
        .into_iter()
        .filter(|sentence| contains_any(&padded(&sentence.to_lowercase()), cause))
        .collect();
    if !is_approval || !parsed.evidence.has_work() || stated.is_empty() {
        return None;
    }
    let latest = statements(parsed).map(|row| row.at).max()?;
    let stated = rare(&stated.join(" "));
    let is_meant = |row: &&EarlierRow<'_>| {
        let text = format!("{} {}", row.title, body(row));
        row.at == latest
            && row.kind == "discovery"
            && contains_any(
                &padded(&text.to_lowercase()),
                " root cause | the cause | caused by | the problem | the issue ",
            )
            && shared(&text, &stated) >= CAUSE_SHARED_MIN
    };
    statements(parsed).find(is_meant).map(|row| row.title)
}

/// The latest fixes, if the assistant reports that they have no effect.
fn ineffective_fixes<'t>(parsed: &ParsedTurn<'t>) -> Vec<&'t str> {
    let is_reported = [&parsed.answer.corrections, &parsed.remarks.corrections]
        .iter()
        .any(|corrections| corrections.finds_no_effect);
    let latest = statements(parsed).map(|row| row.at).max().filter(|_| is_reported);
    let is_meant = |row: &&EarlierRow<'_>| Some(row.at) == latest && row.kind == "bugfix";
    statements(parsed).filter(is_meant).map(|row| row.title).collect()
}

/// The subject of a turn: its text and its files.
fn subject(parsed: &ParsedTurn<'_>) -> String {
    let (answer, remarks) = (&parsed.answer, &parsed.remarks);
    let files = parsed.evidence.files.iter().map(|file| file.name().to_owned());
    let texts = answer.learned.iter().chain(&answer.points).chain(&remarks.reasons).cloned();
    let head = [opening(&parsed.prompt.text).to_owned(), answer.narrative.clone()];
    head.into_iter().chain(texts).chain(files).collect::<Vec<_>>().join(" ")
}

/// Observations that name code which turns out not to exist, after the user reported a failure.
fn denied<'t>(parsed: &ParsedTurn<'t>) -> Vec<&'t str> {
    if !is_failure_report(&parsed.prompt.text) && !is_objection(opening(&parsed.prompt.text)) {
        return Vec::new();
    }
    let denials = " \
        doesn't exist | does not exist | didn't exist | did not exist | never existed | \
        isn't there | is not there | \
        existiert nicht | n'existe pas | no existe | \
        не существует | mevcut değil ";
    let mut names: HashSet<&str> = HashSet::new();
    for sentence in parsed.answer.learned.iter().chain(&parsed.remarks.reasons) {
        let lower = sentence.to_lowercase().replace('’', "'");
        if contains_any(&padded(&lower), denials) || lower.contains("不存在") {
            names.extend(sentence.split('`').skip(1).step_by(2).filter(|name| name.len() >= 4));
        }
    }
    let is_meant = |row: &&EarlierRow<'_>| {
        let body = body(row);
        names.iter().any(|name| body.contains(&format!("`{name}`")) || row.title.contains(name))
    };
    statements(parsed).filter(is_meant).map(|row| row.title).collect()
}

/// Whether the user objects to a statement or an action of the assistant.
pub(super) fn is_objection(prompt: &str) -> bool {
    let text = padded(&prompt.to_lowercase().replace('’', "'"));
    let starts = " \
        no , | no it | no that | nope | actually | that's wrong | that's not | that is not | \
        wrong | not true | this is wrong | you're wrong | you are wrong | this isn't | nein , | \
        non , | \
        нет , | это не | неправда | \
        hayır | yanlış | doğru değil ";
    let within = " \
        that's not correct | that is not correct | is not correct | not correct | \
        that's incorrect | is incorrect | you misunderstood ";
    starts_with_any(&text, starts)
        || contains_any(&text, within)
        || ["不对", "不是", "错了"].iter().any(|word| prompt.starts_with(word))
}

/// Whether the user reports that the work did not help.
fn is_failure_report(prompt: &str) -> bool {
    let start = opening(prompt);
    let text = padded(&start.to_lowercase().replace('’', "'"));
    let persists = " \
        still not | still doesn't | still does not | still fails | still failing | \
        still broken | still wrong | still the same | still get | still getting | still see | \
        still seeing | still shows | still showing | still reports | still reporting | \
        same error | same problem | same issue | same result | not fixed | isn't fixed | \
        didn't help | did not help | didn't fix | did not fix | didn't work | did not work | \
        is now broken | now broken | happens again | \
        immer noch | hat nicht geholfen | toujours pas | sigue sin | no ha funcionado | \
        всё ещё | все ещё | все еще | по-прежнему | не помогло | та же ошибка | то же самое | \
        hala | hâlâ | düzelmedi | aynı hata | işe yaramadı ";
    let persists_wide = "还是不|还是报|还是有|仍然|没用|没有解决|没解决|同样的错误|まだ|直ってい";
    let short = " \
        not work | doesn't work | does not work | not working | isn't working | not correct | \
        no effect | no change | \
        geht nicht | funktioniert nicht | ne marche pas | no funciona | \
        не работает | çalışmıyor | olmadı ";
    // A partial improvement is not a failure.
    if contains_any(
        &text,
        " better | closer | almost | improved | nearly | besser | mieux | mejor | \
         лучше | daha iyi ",
    ) {
        return false;
    }
    let is_short = words(start) <= SHORT_REPORT_WORDS_MAX;
    let not_to_work = alternatives("not to work|不行|不工作|動かない");
    contains_any(&text, persists)
        || starts_with_any(&text, " still ")
        || contains_any(start, persists_wide)
        || is_short
            && (contains_any(&text, short)
                || not_to_work.into_iter().any(|mark| text.contains(mark)))
}

#[cfg(test)]
#[path = "correction_tests.rs"]
mod tests;
