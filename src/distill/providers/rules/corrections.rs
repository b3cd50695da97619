//! Corrections: which earlier memories of the session a turn takes back.

use std::collections::HashSet;

use super::markdown::sentences;
use super::parsed_turn::ParsedTurn;
use super::text::{alternatives, begins, clip, holds, padded, words};
use super::titles::rare_words;
use crate::recap::EarlierRow;

/// Rare words that the correction and the earlier memory must share.
const SHARED_MIN: usize = 2;

/// The same if only the subject says what is meant: somebody reports that it still fails.
const SUBJECT_SHARED_MIN: usize = 3;

/// The same if a fix states the cause that was found before it.
const CAUSE_SHARED_MIN: usize = 4;

const PASSAGES_MAX: usize = 6;
const PASSAGE_CHARS_MAX: usize = 500;

/// A longer prompt quotes and describes; only its beginning objects.
const OBJECTION_CHARS_MAX: usize = 400;

/// A prompt of so few words that says "does not work" is about what was just done.
const SHORT_REPORT_WORDS_MAX: usize = 9;

const AGREEMENTS: &str =
    "you're |you’re |you are |you were |du hast |tu as |您|你|вы правы|ты прав|haklısın";

/// Sentences that take something back, each with the next one, which says what holds instead.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Corrections {
    passages: Vec<String>,
    is_open: bool,
    /// The assistant says of its own fix that it changes nothing.
    finds_no_effect: bool,
}

impl Corrections {
    /// The passages that deny something. Others only agree.
    fn denials(&self) -> impl Iterator<Item = &String> {
        let denials = " not | no | never | wrong | incorrect | instead | but | rather | misread | mistaken | misunderstood | nicht | \
             kein | sondern | pas | sino | не | нет | а не | неправильно | değil | yok | yanlış ";
        self.passages.iter().filter(move |passage| {
            let lower = passage.to_lowercase().replace('’', "'");
            holds(&padded(&lower), denials) || holds(&lower, "n't |不|没|错")
        })
    }

    /// Reads the next sentence of the assistant.
    pub(super) fn read(&mut self, sentence: &str) {
        let starts = is_correction(sentence);
        self.finds_no_effect |= is_without_effect(sentence);
        if starts && self.passages.len() < PASSAGES_MAX {
            self.passages.push(clip(sentence, PASSAGE_CHARS_MAX));
        } else if let Some(passage) = self.passages.last_mut().filter(|_| self.is_open) {
            *passage = clip(&format!("{passage} {sentence}"), PASSAGE_CHARS_MAX);
        }
        // Who agrees explains what holds; who corrects says it in the next sentence.
        let agrees = |passage: &String| begins(&passage.to_lowercase(), AGREEMENTS);
        self.is_open = starts || self.is_open && self.passages.last().is_some_and(agrees);
    }
}

/// The assistant takes something back, or contrasts what it said with what is.
fn is_correction(sentence: &str) -> bool {
    let lower = sentence.to_lowercase().replace('’', "'");
    let own = "you're right|you are right|you're absolutely right|you are absolutely right|you're correct|\
        you're absolutely correct|you are correct|you were correct|i was wrong|my mistake|i misread|i misunderstood|\
        i was mistaken|correction:|my earlier|i previously said|what i said earlier|not what i said|was wrong about|\
        i apologize|the actual cause|the actual problem|the real cause|the real problem|the real issue|\
        actual root cause|real root cause|it wasn't |it was not the|wasn't the cause|wasn't the problem|\
        was not the cause|was not the problem|turned out to be wrong|du hast recht|sie haben recht|tu as raison|\
        vous avez raison|tienes razón|您说得对|你说得对|我错了|判断错了|вы правы|ты прав|я ошибся|на самом деле|\
        haklısın|haklısınız|yanılmışım|aslında sorun";
    holds(&lower, own)
}

/// "The fix I just made won't affect the server."
fn is_without_effect(sentence: &str) -> bool {
    let text = padded(&sentence.to_lowercase().replace('’', "'"));
    let own = " i just made | i made | i've made | my fix | my last fix | my previous fix | my earlier fix | my first fix | \
         my change | my last change | my previous change | my earlier change ";
    let effect = " won't affect | doesn't affect | does not affect | didn't affect | won't help | doesn't help | didn't help | \
         did not help | won't fix | doesn't fix | didn't fix | did not fix | has no effect | had no effect | changes nothing | \
         changed nothing | makes no difference | made no difference ";
    holds(&text, own) && holds(&text, effect)
}

/// Titles of the earlier memories that this turn takes back.
pub(super) fn corrected_titles<'t>(parsed: &ParsedTurn<'t>) -> Vec<&'t str> {
    let mut titles: Vec<&'t str> = Vec::new();
    let found = reverted(parsed)
        .into_iter()
        .chain(taken_back(parsed))
        .chain(not_mended(parsed))
        .chain(diagnosed_again(parsed))
        .chain(without_effect(parsed))
        .chain(denied(parsed));
    for title in found {
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    titles
}

/// The user's objection, if it says more than that something is wrong.
pub(super) fn objection<'p>(parsed: &'p ParsedTurn<'_>) -> Option<&'p str> {
    let prompt = parsed.prompt.text.as_str();
    (is_objection(opening(prompt)) && words(prompt) >= 5).then_some(prompt)
}

/// What the assistant stated: the words of the user hold until the user takes them back.
fn statements<'p, 't>(parsed: &'p ParsedTurn<'t>) -> impl Iterator<Item = &'p EarlierRow<'t>> {
    parsed.earlier.iter().filter(|row| !matches!(row.kind, "rule" | "decision"))
}

fn body(row: &EarlierRow<'_>) -> String {
    format!("{} {}", row.narrative, row.facts.join(" "))
}

/// How many rare words of a text are in the set.
fn shared(text: &str, said: &HashSet<String>) -> usize {
    let lower = text.to_lowercase();
    rare_words(&lower).filter(|word| said.contains(*word)).collect::<HashSet<_>>().len()
}

fn rare(text: &str) -> HashSet<String> {
    rare_words(&text.to_lowercase()).map(str::to_owned).collect()
}

/// The start of the prompt, where an objection stands.
fn opening(prompt: &str) -> &str {
    prompt.char_indices().nth(OBJECTION_CHARS_MAX).map_or(prompt, |(end, _)| &prompt[..end])
}

/// Work of which the commit was reverted: the newest memory that names the commit, if it has no
/// other.
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
        None => holds(revert, "HEAD"),
    };
    let rows = parsed.earlier.iter().rev().filter(|row| commits(row) == 1);
    rows.into_iter().find(is_meant).map(|row| row.title)
}

/// The memory that the user objects to, or that the assistant takes back in so many words.
///
/// The correction shares rare words with the memory. Without shared words it is about something
/// that was never remembered.
fn taken_back<'t>(parsed: &ParsedTurn<'t>) -> Option<&'t str> {
    let passages =
        || parsed.answer.corrections.denials().chain(parsed.remarks.corrections.denials());
    let prompt = opening(&parsed.prompt.text);
    let objects = is_objection(prompt);
    if !objects && passages().next().is_none() {
        return None;
    }
    let mut said = String::new();
    if objects || passages().any(|passage| begins(&passage.to_lowercase(), AGREEMENTS)) {
        said.push_str(prompt);
    }
    for passage in passages() {
        said.push(' ');
        said.push_str(passage);
    }
    let said = rare(&said);
    // What was said last is corrected most often, and a title says best what a memory is about.
    let latest = statements(parsed).map(|row| row.at).max()?;
    let ranked = statements(parsed).filter_map(|row| {
        let (in_title, in_body) = (shared(row.title, &said), shared(&body(row), &said));
        let is_last = row.at == latest;
        // Work stays done, whatever was said about it.
        let is_claim = matches!(row.kind, "discovery" | "bugfix" | "security_alert");
        let is_about = is_claim && in_title >= SHARED_MIN && in_title + in_body > SHARED_MIN
            || is_last && objects && in_title + in_body >= SHARED_MIN
            || is_last && is_claim && in_title > 0 && in_title + in_body > SHARED_MIN;
        is_about.then(|| (2 * in_title + in_body.min(4) + usize::from(is_last), row.title))
    });
    ranked.max_by_key(|(score, _)| *score).map(|(_, title)| title)
}

/// What was said to be mended last, and fails still: the user reports it, and this turn finds
/// another cause.
fn not_mended<'t>(parsed: &ParsedTurn<'t>) -> Vec<&'t str> {
    let finds = parsed.evidence.has_work()
        && (!parsed.remarks.reasons.is_empty() || !parsed.answer.learned.is_empty());
    if !finds || !is_failure_report(&parsed.prompt.text) {
        return Vec::new();
    }
    let Some(latest) = statements(parsed).map(|row| row.at).max() else { return Vec::new() };
    let said = rare(&subject(parsed));
    let is_meant = |row: &&EarlierRow<'_>| {
        row.at == latest
            && matches!(row.kind, "discovery" | "bugfix" | "change")
            && shared(&format!("{} {}", row.title, body(row)), &said) >= SUBJECT_SHARED_MIN
    };
    statements(parsed).filter(is_meant).map(|row| row.title).collect()
}

/// A diagnosis that the fix right after it restates: the cause that was fixed is the right one.
fn diagnosed_again<'t>(parsed: &ParsedTurn<'t>) -> Option<&'t str> {
    let is_approval = words(&parsed.prompt.text) <= SHORT_REPORT_WORDS_MAX;
    let cause = " root cause | the cause | the problem | the issue | because | caused by | was not | wasn't | instead of ";
    let stated: Vec<&str> = sentences(&parsed.answer.narrative)
        .into_iter()
        .filter(|sentence| holds(&padded(&sentence.to_lowercase()), cause))
        .collect();
    if !is_approval || !parsed.evidence.has_work() || stated.is_empty() {
        return None;
    }
    let latest = statements(parsed).map(|row| row.at).max()?;
    let said = rare(&stated.join(" "));
    let is_meant = |row: &&EarlierRow<'_>| {
        let text = format!("{} {}", row.title, body(row));
        row.at == latest
            && row.kind == "discovery"
            && holds(
                &padded(&text.to_lowercase()),
                " root cause | the cause | caused by | the problem | the issue ",
            )
            && shared(&text, &said) >= CAUSE_SHARED_MIN
    };
    statements(parsed).find(is_meant).map(|row| row.title)
}

/// The last fix, if the assistant says that it changes nothing.
fn without_effect<'t>(parsed: &ParsedTurn<'t>) -> Vec<&'t str> {
    let is_said = [&parsed.answer.corrections, &parsed.remarks.corrections]
        .iter()
        .any(|corrections| corrections.finds_no_effect);
    let latest = statements(parsed).map(|row| row.at).max().filter(|_| is_said);
    let is_meant = |row: &&EarlierRow<'_>| Some(row.at) == latest && row.kind == "bugfix";
    statements(parsed).filter(is_meant).map(|row| row.title).collect()
}

/// What a turn is about: its words and its files.
fn subject(parsed: &ParsedTurn<'_>) -> String {
    let (answer, remarks) = (&parsed.answer, &parsed.remarks);
    let files = parsed.evidence.files.iter().map(|file| file.name().to_owned());
    let texts = answer.learned.iter().chain(&answer.points).chain(&remarks.reasons).cloned();
    let head = [opening(&parsed.prompt.text).to_owned(), answer.narrative.clone()];
    head.into_iter().chain(texts).chain(files).collect::<Vec<_>>().join(" ")
}

/// Memories that name in code what turns out not to exist, after the user reported a failure.
fn denied<'t>(parsed: &ParsedTurn<'t>) -> Vec<&'t str> {
    if !is_failure_report(&parsed.prompt.text) && !is_objection(opening(&parsed.prompt.text)) {
        return Vec::new();
    }
    let denials = " doesn't exist | does not exist | didn't exist | did not exist | never existed | isn't there | is not there | \
         existiert nicht | n'existe pas | no existe | не существует | mevcut değil ";
    let mut names: HashSet<&str> = HashSet::new();
    for sentence in parsed.answer.learned.iter().chain(&parsed.remarks.reasons) {
        let lower = sentence.to_lowercase().replace('’', "'");
        if holds(&padded(&lower), denials) || lower.contains("不存在") {
            names.extend(sentence.split('`').skip(1).step_by(2).filter(|name| name.len() >= 4));
        }
    }
    let is_meant = |row: &&EarlierRow<'_>| {
        let body = body(row);
        names.iter().any(|name| body.contains(&format!("`{name}`")) || row.title.contains(name))
    };
    statements(parsed).filter(is_meant).map(|row| row.title).collect()
}

/// Whether the user objects to what the assistant said or did.
pub(super) fn is_objection(prompt: &str) -> bool {
    let text = padded(&prompt.to_lowercase().replace('’', "'"));
    let starts = " no , | no it | no that | nope | actually | that's wrong | that's not | that is not | wrong | not true | this is wrong | \
         you're wrong | you are wrong | this isn't | nein , | non , | нет , | это не | неправда | hayır | yanlış | doğru değil ";
    let within = " that's not correct | that is not correct | is not correct | not correct | that's incorrect | is incorrect | \
         you misunderstood ";
    begins(&text, starts)
        || holds(&text, within)
        || ["不对", "不是", "错了"].iter().any(|word| prompt.starts_with(word))
}

/// Whether the user reports that what was done did not help.
fn is_failure_report(prompt: &str) -> bool {
    let start = opening(prompt);
    let text = padded(&start.to_lowercase().replace('’', "'"));
    let persists = " still not | still doesn't | still does not | still fails | still failing | still broken | still wrong | still the same | \
         still get | still getting | still see | still seeing | still shows | still showing | still reports | still reporting | \
         same error | same problem | same issue | same result | not fixed | isn't fixed | didn't help | did not help | \
         didn't fix | did not fix | didn't work | did not work | is now broken | now broken | happens again | \
         immer noch | hat nicht geholfen | toujours pas | sigue sin | no ha funcionado | всё ещё | все ещё | все еще | \
         по-прежнему | не помогло | та же ошибка | то же самое | hala | hâlâ | düzelmedi | aynı hata | işe yaramadı ";
    let persists_wide = "还是不|还是报|还是有|仍然|没用|没有解决|没解决|同样的错误|まだ|直ってい";
    let short = " not work | doesn't work | does not work | not working | isn't working | not correct | no effect | no change | \
         geht nicht | funktioniert nicht | ne marche pas | no funciona | не работает | çalışmıyor | olmadı ";
    // What helps a little was done.
    if holds(
        &text,
        " better | closer | almost | improved | nearly | besser | mieux | mejor | лучше | daha iyi ",
    ) {
        return false;
    }
    let is_short = words(start) <= SHORT_REPORT_WORDS_MAX;
    let not_to_work = alternatives("not to work|不行|不工作|動かない");
    holds(&text, persists)
        || begins(&text, " still ")
        || holds(start, persists_wide)
        || is_short
            && (holds(&text, short) || not_to_work.into_iter().any(|mark| text.contains(mark)))
}

#[cfg(test)]
#[path = "correction_tests.rs"]
mod tests;
