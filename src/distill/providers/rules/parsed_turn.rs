//! A turn as read: what was asked, what the tools show, what was said at the end.

use super::answer::Answer;
use super::evidence::Evidence;
use super::files::FileChange;
use super::kinds;
use super::prompt::Prompt;
use super::text::{clip, code, is_wide, listing, title, words};
use crate::turn_prompt::Turn;

/// A shorter first sentence, such as "The server is up again.", says less than the subject of a commit.
const HEADLINE_CHARS_MIN: usize = 32;

/// Everything that observations and summary are made from.
pub(super) struct ParsedTurn<'t> {
    /// Where the session works.
    pub(super) cwd: &'t str,
    /// The prompt.
    pub(super) prompt: Prompt,
    /// The last message; empty while the turn goes on.
    pub(super) answer: Answer,
    /// The tools.
    pub(super) evidence: Evidence,
    /// What the session remembers already.
    pub(super) digest: &'t str,
    /// The turn is over, and was not finished.
    pub(super) is_interrupted: bool,
}

impl<'t> ParsedTurn<'t> {
    /// Reads a turn.
    pub(super) fn of(turn: &Turn<'t>) -> Self {
        Self {
            cwd: turn.cwd,
            prompt: Prompt::of(turn.prompt),
            answer: Answer::of(turn.last_assistant_message.unwrap_or_default()),
            evidence: Evidence::of(turn),
            digest: turn.digest.unwrap_or_default(),
            is_interrupted: turn.is_interrupted,
        }
    }

    /// What the message says first, if that tells something about this turn.
    pub(super) fn headline(&self) -> Option<&str> {
        self.answer.headline.as_deref().filter(|text| self.is_telling(text))
    }

    fn is_telling(&self, text: &str) -> bool {
        let lower = text.to_lowercase();
        let is_report = lower.contains("test")
            && (lower.starts_with("all ") || lower.contains("pass"))
            || [
                "is complete",
                "are complete",
                "is now complete",
                "been completed",
                "are done",
                "is done",
            ]
            .iter()
            .any(|mark| lower.contains(mark));
        if words(text) < 4 || is_report && !text.contains('`') {
            return false;
        }
        let names_a_file = self.evidence.files.iter().any(|file| text.contains(file.name()));
        let request = self.prompt.request.to_lowercase();
        let shares = lower
            .split(|c: char| !c.is_alphanumeric())
            .any(|word| word.chars().count() >= 5 && request.contains(word));
        text.contains('`')
            || names_a_file
            || shares
            || text.chars().count() >= 40
            || text.contains(is_wide)
    }

    /// The title for what was done: as the assistant told it, unless it was cut or short and a commit
    /// says it better; else as it was asked for; else from the changes.
    pub(super) fn work_title(&self) -> String {
        let commits = self.evidence.commits();
        let subject = commits.last().map(|subject| title(&without_kind(subject)));
        let headline = self.headline().map(title);
        let is_good =
            |text: &String| !text.contains('…') && text.chars().count() >= HEADLINE_CHARS_MIN;
        let asked = self.prompt.title.clone();
        let told = headline.clone().filter(is_good).or(subject).or(headline);
        told.or(asked).unwrap_or_else(|| self.changes_title())
    }

    /// The title for what was done, from the changes alone.
    fn changes_title(&self) -> String {
        let files = &self.evidence.files;
        if let [file] = files.as_slice() {
            return title(&single(file));
        }
        let of = |is_new: bool| -> Vec<String> {
            files
                .iter()
                .filter(|file| file.is_new == is_new)
                .map(|file| file.name().to_owned())
                .collect()
        };
        let (created, changed) = (of(true), of(false));
        let effects = self.evidence.effects();
        match (created.as_slice(), changed.as_slice()) {
            ([], []) => title(effects.first().map_or("", String::as_str)),
            (created, []) => title(&format!("Created {}", listing(created, 3))),
            ([], changed) => title(&format!("Changed {}", listing(changed, 3))),
            (created, changed) => title(&format!(
                "Created {} and changed {}",
                listing(created, 2),
                listing(changed, 2)
            )),
        }
    }

    /// What was done, as sentences.
    pub(super) fn actions(&self) -> Vec<String> {
        let evidence = &self.evidence;
        let named = |is_new: bool| -> Vec<String> {
            let files = evidence.files.iter().filter(|file| file.is_new == is_new);
            files.map(|file| code(&file.shown)).collect()
        };
        let mut actions = Vec::new();
        for (verb, files) in [("Created", named(true)), ("Changed", named(false))] {
            if !files.is_empty() {
                actions.push(format!("{verb} {}.", listing(&files, 6)));
            }
        }
        actions.extend(evidence.effects().iter().take(6).map(|effect| format!("{effect}.")));
        actions.extend(
            evidence.commits().iter().map(|subject| format!("Committed “{}”.", clip(subject, 100))),
        );
        actions.extend(evidence.passed().iter().map(|run| format!("{}.", run.result())));
        actions
    }
}

fn single(file: &FileChange) -> String {
    let shown = file.shown.as_str();
    match (file.is_new, file.renamed.first(), file.subject()) {
        (true, _, Some(names)) => format!("Created {shown} with {names}"),
        (true, _, None) => format!("Created {shown}"),
        (false, Some((old, new)), _) => {
            format!("Renamed {} to {} in {shown}", code(old), code(new))
        }
        (false, None, Some(names)) if file.gained.is_empty() => {
            format!("Changed {names} in {shown}")
        }
        (false, None, Some(names)) => format!("Added {names} to {shown}"),
        (false, None, None) => format!("Changed {shown}"),
    }
}

/// `fix(cart): round once` says `cart: round once`, and `fix: round once` says `round once`.
fn without_kind(subject: &str) -> String {
    match subject.split_once(": ") {
        Some((prefix, rest)) if kinds::of_prefix(subject).is_some() => {
            let scope = prefix.split_once('(').and_then(|(_, scope)| scope.split_once(')'));
            scope.map_or_else(|| rest.to_owned(), |(scope, _)| format!("{scope}: {rest}"))
        }
        _ => subject.to_owned(),
    }
}
