//! Titles: the best sentence of a turn, never truncated. File names are the last resort.

use super::answer::Statement;
use super::files::FileChange;
use super::kinds;
use super::markdown::sentences;
use super::parsed_turn::ParsedTurn;
use super::text::{
    TITLE_CHARS_MAX, add, alternatives, code, contains_any, fitting_title, is_introduction,
    is_wide, listing, padded, sentence_case, starts_with_any, title, words,
};

/// Minimum score of a statement about the work.
const SCORE_MIN: i32 = 1;

const NAMES_MAX: usize = 30;

/// Minimum score of an answer; below it, the question is the better title.
const FINDING_SCORE_MIN: i32 = -2;

/// Maximum number of shared words that add to the score.
const SHARED_MAX: i32 = 3;

/// The title for changes: a good commit subject, or the heading of the plan, or the best sentence
/// of the answer, or the request, or the best item of a list, or the changes themselves. Changed
/// files follow in brackets.
///
/// An amended commit keeps its subject, which then does not describe the changes of this turn.
pub(super) fn of_work(turn: &ParsedTurn<'_>) -> String {
    if let Some(plan) = turn.evidence.plan_alone() {
        return title(&format!("Planned: {plan}"));
    }
    let is_known = |subject: &String| turn.earlier.iter().any(|row| row.title.starts_with(subject));
    let subject = turn.evidence.commits().into_iter().rev().find_map(commit_title);
    let (amended, subject): (Option<_>, Option<_>) = match subject {
        Some(subject) if is_known(&subject) => (Some(subject), None),
        subject => (None, subject),
    };
    let request = turn.prompt.title.clone();
    let plan = request.clone().filter(|_| turn.prompt.is_plan);
    let text = subject
        .or(plan)
        .or_else(|| best(turn, SCORE_MIN, |statement| !statement.is_item))
        .or(request)
        .or(amended)
        .or_else(|| best(turn, i32::MIN, |_| true))
        .or_else(|| request_title(turn))
        .unwrap_or_else(|| of_changes(turn));
    with_files(&text, &distinct_names(&turn.evidence.files))
}

/// The title for an answer without changes. A short progress report has none.
pub(super) fn of_finding(turn: &ParsedTurn<'_>, is_long: bool) -> Option<String> {
    if let Some(plan) = turn.evidence.plan_alone() {
        return Some(title(&format!("Planned: {plan}")));
    }
    if turn.evidence.has_empty_result {
        let request =
            sentences(&turn.prompt.request).first().and_then(|text| fitting_title(text))?;
        let mut names: Vec<String> = Vec::new();
        for path in &turn.evidence.read {
            add(&mut names, path.rsplit(['/', '\\']).next().unwrap_or_default(), NAMES_MAX);
        }
        return Some(with_files(&title(&format!("Nothing found: {request}")), &names));
    }
    let any = || best(turn, i32::MIN, |_| true).filter(|_| is_long);
    best(turn, FINDING_SCORE_MIN, |_| true).or_else(|| request_title(turn)).or_else(any)
}

/// The best of the answer's statements that are allowed and fit into a title.
fn best(
    turn: &ParsedTurn<'_>,
    score_min: i32,
    is_allowed: impl Fn(&Statement) -> bool,
) -> Option<String> {
    let context = Context::of(turn);
    let mut best: Option<(i32, String)> = None;
    for (position, statement) in turn.answer.statements.iter().enumerate() {
        let title = Some(statement).filter(|statement| is_allowed(statement));
        let Some(title) = title.and_then(|statement| fitting_title(&statement.text)) else {
            continue;
        };
        let score = context.score(statement, &title, position);
        let is_better = best.as_ref().is_none_or(|(top, _)| score > *top);
        let is_statement = !statement.text.ends_with(['?', '？']) && !names_only_files(&title);
        if score >= score_min && words(&title) >= 3 && is_statement && is_better {
            best = Some((score, title));
        }
    }
    best.map(|(_, title)| title)
}

/// Reports that other work goes on.
const INTERIM: &str = " \
    still running | still going | still working | still out | still pending | still in progress | \
    now running | running in parallel | running in the background | is in progress | in_progress | \
    launched | dispatched | kicked off | report when | report back | report once | \
    waiting for | waiting on | until they finish | until it finishes | once it finishes | \
    while that runs | while it runs | läuft noch | en cours | ещё работает | hâlâ çalışıyor | \
    hala çalışıyor ";
const INTERIM_WIDE: &str = "正在运行|后台运行|还在运行|等待完成|実行中";

/// Whether the answer only reports that work goes on: its first or its last sentence does.
pub(super) fn is_interim(turn: &ParsedTurn<'_>) -> bool {
    let mut sentences = turn.answer.statements.iter().filter(|statement| !statement.is_item);
    let ends = [sentences.next(), sentences.next_back()];
    ends.into_iter().flatten().any(|statement| {
        let lower = statement.text.to_lowercase();
        contains_any(&padded(&lower), INTERIM) || contains_any(&lower, INTERIM_WIDE)
    })
}

/// The texts that statements are compared with.
struct Context {
    files: Vec<String>,
    symbols: Vec<String>,
    /// Rare words of the prompt and the commits.
    subjects: Vec<String>,
}

/// Progress reports, which apply to most turns.
const STATUS: &str = " \
    pushed | committed | deployed | tests pass | tests passed | all tests | passes | passing | \
    is ready | are ready | you can | is live | are live | is running | is complete | \
    are complete | is done | are done | been completed | verified | all green | no errors | \
    is up to date | working tree | is clean | both changes | changes are in | ready to | \
    ready for | succeeded | build passes | lint | up and running | complete | \
    created successfully | triggered | refresh | try | please | is now running | to stop it | \
    went through | written to | is updated | are updated | is in place | are in place | armed | \
    in full | done | committed as | draft | still running | now running | in progress | \
    amended | squashed | delegating | report when | uncommitted | is successful | \
    full suite | build clean | completed successfully | deployed successfully | tree clean | mergeable | checks pass | \
    good news | nothing more | are clean | all clean | still clean | still pending | \
    ist fertig | erledigt | c'est fait | está listo | \
    тесты проходят | готово | выполнено | отправлено | \
    tamamlandı | açık | yeşil | senkron | temiz ";
const STATUS_WIDE: &str = "\
    测试通过|改好了|完成了|已完成|已提交|已推送|已部署|一切正常|完了しました|テストが通|완료";

/// Instructions to the user, which do not describe what was done.
const INSTRUCTIONS: &str = " \
    run this | run the following | run it | use this | try this | then run | to deploy | to stop | \
    to fix | to use | to test | how to use | restart your | reload | open | go ahead | just add | \
    you need | you'll need | test the | check new ";

/// Words that refer to a previous sentence.
const REFERENCES: &str = " \
    this | that | it | it's | these | those | both | they | there | there's | here | here's | \
    so | and | but | also | which | then | same | such | now | however | instead | otherwise | \
    except | not | just | yes | no | that's | one | another | all | its | if | once | only ";

/// Announcements of the next action, which do not describe the work.
const ANNOUNCEMENTS: &str = " \
    i'll | i will | i'm going | i am going | let me | let's | let us | now i | now i'll | \
    now let | now let's | now please | now add | next i | next i'll | next, | next step | \
    first i'll | first, let | going to | about to | starting | looking at | looking into | \
    checking | based on my | i read | i've read | read all | read the | read every | \
    reviewed all | reviewed the | i reviewed | i've reviewed | i'm stopping | i'm waiting | \
    to correct | need to correct | the rest of | answered , | analysis phase | while that | \
    will report | \
    jetzt werde | je vais | voy a | \
    сейчас | теперь я | \
    şimdi ";

const FIRST_PERSON: &str = " \
    i | i'm | i've | i'd | i'll | my | let | we'll | you | your | you're | please | sorry | want ";

/// Causes and effects.
const CAUSES: &str =
    " because | root cause | caused by | the cause | due to | the bug was | the problem was ";
const EFFECTS: &str = " \
    because | root cause | caused by | the cause | due to | so that | instead of | no longer | \
    now | was missing | fixed by | which made | turns out | the bug was | the problem was | \
    never | silently | only when | by default | \
    weil | jetzt | \
    потому | теперь | причина | \
    çünkü | artık ";

impl Context {
    fn of(turn: &ParsedTurn<'_>) -> Self {
        let files = &turn.evidence.files;
        let symbols = files.iter().flat_map(|file| {
            file.gained.iter().chain(&file.touched).chain(file.renamed.iter().map(|(_, new)| new))
        });
        let commits = turn.evidence.commits().join(" ");
        let subjects = format!("{} {commits}", turn.prompt.request).to_lowercase();
        Self {
            files: files.iter().map(|file| file.name().to_owned()).collect(),
            symbols: symbols.filter(|symbol| symbol.len() >= 4).take(60).cloned().collect(),
            subjects: rare_words(&subjects).take(80).map(str::to_owned).collect(),
        }
    }

    fn score(&self, statement: &Statement, title: &str, position: usize) -> i32 {
        let lower = title.to_lowercase();
        let text = padded(&lower);
        let names_file = self.files.iter().any(|file| title.contains(file.as_str()));
        let names_symbol = self.symbols.iter().any(|symbol| title.contains(symbol.as_str()));
        let shared = self.subjects.iter().filter(|word| lower.contains(word.as_str())).count();
        let is_verb = kinds::of_verb(title).is_some();
        let wide = title.chars().filter(|c| is_wide(*c)).count() >= 6;
        let is_short = words(title) < 5 && !wide;
        let is_table_row = statement.is_item && title.matches(": ").count() > 1;
        2 * i32::from(names_symbol)
            + i32::from(names_file)
            + i32::from(title.contains('`'))
            + 2 * i32::from(contains_any(&text, EFFECTS))
            + 2 * i32::from(contains_any(&text, CAUSES))
            + 2 * i32::from(is_verb)
            + i32::from(wide)
            + (shared as i32).min(SHARED_MAX)
            + 2 * i32::from(position == 0)
            + i32::from(position == 1)
            - i32::from(position > 8)
            - i32::from(statement.is_item)
            - 4 * i32::from(contains_any(&text, STATUS) || contains_any(&lower, STATUS_WIDE))
            - 4 * i32::from(starts_with_any(&text, INSTRUCTIONS))
            - 2 * i32::from(starts_with_any(&text, FIRST_PERSON))
            - 4 * i32::from(starts_with_any(&text, ANNOUNCEMENTS))
            - 3 * i32::from(starts_with_any(&text, REFERENCES))
            - 3 * i32::from(statement.text.ends_with([':', '：']))
            - 4 * i32::from(is_introduction(&statement.text))
            - 3 * i32::from(is_short)
            - 2 * i32::from(title.contains("://"))
            - 2 * i32::from(
                contains_any(&text, " i'd | i'll | i can | you'd | want me | option | test the ")
                    || title.contains('✅'),
            )
            - 2 * i32::from(statement.is_item && label_chars(title).is_some())
            - 3 * i32::from(is_table_row)
            - i32::from(starts_with_any(
                &text,
                " when | after | while | before | in | on | for | with ",
            ))
    }
}

/// The length of the label before a colon: `Region: eu-west-1` is a property, not a result.
fn label_chars(title: &str) -> Option<usize> {
    let (label, _) = title.split_once(": ")?;
    let chars = label.chars().count();
    (chars <= 30 && !label.contains('`')).then_some(chars)
}

/// Words that are unlikely to occur in most sentences.
pub(super) fn rare_words(lower: &str) -> impl Iterator<Item = &str> {
    const COMMON: &str = "\
        please|could|would|should|which|there|their|these|those|about|after|again|before|because|\
        where|while|using|make|sure|files|file|change|changes|update|commit|issue|following|\
        implement|plan|still|other|first|being|check|current|currently|something|anything|\
        everything|right|want|need|think";
    lower.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| {
        word.chars().count() >= 5 && !alternatives(COMMON).any(|common| common == *word)
    })
}

/// The subject of a commit as a title, unless it is too general.
fn commit_title(subject: &str) -> Option<String> {
    let text = without_kind(subject);
    let lower = padded(&text.to_lowercase());
    let is_generic = starts_with_any(
        &lower,
        " wip | fix review | address review | review comments | address feedback | \
         update changelog | merge | fixup | squash | bump version | apply suggestions | minor | \
         cleanup | more fixes | checkpoint ",
    );
    let title = fitting_title(&text)?;
    (words(&title) >= 3 && !is_generic && !names_only_files(&title)).then_some(title)
}

/// Converts `fix(cart): round once` to `cart: round once`, and `fix: round once` to `round once`.
fn without_kind(subject: &str) -> String {
    match subject.split_once(": ") {
        Some((prefix, rest)) if kinds::of_prefix(subject).is_some() => {
            let scope = prefix.split_once('(').and_then(|(_, scope)| scope.split_once(')'));
            scope.map_or_else(|| rest.to_owned(), |(scope, _)| format!("{scope}: {rest}"))
        }
        _ => subject.to_owned(),
    }
}

/// The request as a title, unless it is only an answer such as "yes".
fn request_title(turn: &ParsedTurn<'_>) -> Option<String> {
    // `Shall I go on? → yes` does not say what was done.
    let is_permission = turn.prompt.picked.as_ref().is_some_and(|picked| !picked.is_decision);
    let request = Some(&turn.prompt.request).filter(|_| !is_permission)?;
    let title = fitting_title(request.trim_end_matches('?'))?;
    (words(&title) >= 4)
        .then(|| format!("Asked: {title}"))
        .filter(|title| title.chars().count() <= TITLE_CHARS_MAX)
}

/// Whether a title consists only of paths and words such as "Changed".
fn names_only_files(title: &str) -> bool {
    let is_path = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '/' && c != '.');
        word.contains('/')
            || word.rsplit_once('.').is_some_and(|(name, extension)| {
                !name.is_empty()
                    && (1..=5).contains(&extension.len())
                    && extension.chars().all(char::is_alphanumeric)
            })
    };
    let verbs = "\
        changed|created|updated|modified|added|edited|deleted|removed|and|more|in|the|files|file|\
        a|with";
    let mut has_path = false;
    title.split_whitespace().all(|word| {
        has_path |= is_path(word);
        is_path(word)
            || alternatives(verbs).any(|verb| verb == word.to_lowercase().trim_matches([',', ':']))
            || word.chars().all(|c| !c.is_alphabetic())
    }) && has_path
}

/// Appends the changed files to the title, if it does not name them and they fit.
fn with_files(title: &str, names: &[String]) -> String {
    if names.is_empty() || names.iter().any(|name| title.contains(name.as_str())) {
        return title.to_owned();
    }
    for shown in [3, 2, 1] {
        let more = names.len().saturating_sub(shown);
        let list = names.iter().take(shown).cloned().collect::<Vec<_>>().join(", ");
        let rest = if more > 0 { format!(" +{more}") } else { String::new() };
        let longer = format!("{title} ({list}{rest})");
        if longer.chars().count() <= TITLE_CHARS_MAX {
            return longer;
        }
    }
    title.to_owned()
}

/// File names without duplicates. If two files have the same name, their folder is included.
fn distinct_names(files: &[FileChange]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let base =
        |file: &FileChange| file.shown.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
    for file in files {
        let is_shared = files.iter().filter(|other| base(other) == base(file)).count() > 1;
        let parts: Vec<&str> = file.shown.rsplit(['/', '\\']).take(2).collect();
        let name = match parts.as_slice() {
            [name, folder] if is_shared => format!("{folder}/{name}"),
            _ => base(file),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// A title from the changes alone.
fn of_changes(turn: &ParsedTurn<'_>) -> String {
    let files = &turn.evidence.files;
    if let [file] = files.as_slice() {
        return title(&single_file(file));
    }
    // Function names are more specific than file names.
    let names = files.iter().flat_map(|file| file.gained.iter().chain(&file.touched));
    let mut symbols: Vec<String> = Vec::new();
    for name in names {
        add(&mut symbols, code(name), 3);
    }
    let has_new = files.iter().any(|file| file.is_new);
    let effects = turn.evidence.effects();
    match (files.len(), symbols.is_empty()) {
        (0, _) => title(effects.first().map_or("", String::as_str)),
        (count, false) => {
            title(&format!("Changed {} in {count} files", listing(&symbols, symbols.len())))
        }
        (count, true) => {
            let verb = if has_new { "Wrote" } else { "Edited" };
            title(&format!("{verb} {count} files"))
        }
    }
}

fn single_file(file: &FileChange) -> String {
    let shown = file.shown.as_str();
    match (file.is_new, file.renamed.first(), file.subject()) {
        (true, _, Some(names)) => format!("Created {shown} with {names}"),
        (true, _, None) => format!("Created the file {shown}"),
        (false, Some((old, new)), _) => {
            format!("Renamed {} to {} in {shown}", code(old), code(new))
        }
        (false, None, Some(names)) if file.gained.is_empty() => {
            format!("Changed {names} in {shown}")
        }
        (false, None, Some(names)) => format!("Added {names} to {shown}"),
        (false, None, None) => sentence_case(&format!("edited the file {shown}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recap::EarlierRow;
    use crate::turn_prompt::{ToolView, Turn};

    #[test]
    fn an_amended_commit_is_titled_by_its_changes() {
        let title = |earlier: &[&'static str]| {
            let input = r#"{"command":"git commit --amend -m 'feat: add carts for guests'"}"#;
            let tool = ToolView { tool: "Bash", input, output: "{}", ..ToolView::default() };
            let row = |title: &&'static str| EarlierRow { title, ..EarlierRow::default() };
            let turn = Turn {
                tools: vec![tool],
                last_assistant_message: Some(
                    "Fixed the rounding of `total`, because it was done twice.",
                ),
                earlier: earlier.iter().map(row).collect(),
                is_over: true,
                ..Turn::default()
            };
            of_work(&ParsedTurn::of(&turn))
        };
        assert_eq!(title(&[]), "Add carts for guests");
        let fixed = "Fixed the rounding of `total`, because it was done twice";
        assert_eq!(title(&["Add carts for guests (cart.rs)"]), fixed);
    }
}
