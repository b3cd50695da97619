//! Checks: which commands test, build or lint the same.

use super::purposes::{Purpose, is_commit, program, purpose};
use super::shell::{Next, Step};

/// What a command checks: the same program, on all or part of the same things, checks the same.
#[derive(Debug, Clone)]
pub(super) struct Check {
    pub(super) key: String,
    pub(super) arguments: Vec<String>,
}

impl Check {
    pub(super) fn of(words: &[String], purpose: Purpose) -> Self {
        Self { key: key(purpose, words), arguments: arguments(words) }
    }

    pub(super) fn repeats(&self, other: &Self) -> bool {
        let within =
            |few: &Self, many: &Self| few.arguments.iter().all(|a| many.arguments.contains(a));
        self.key == other.key && (within(self, other) || within(other, self))
    }
}

/// The checks of a line that ended well, besides the one that is shown: those that had to pass for
/// the next step to be run, and for the line to end well.
pub(super) fn also_passed(steps: &[Step], shown: usize) -> Vec<Check> {
    let decides = |at: usize| {
        let goes_on = steps[at].next == Next::And || at + 1 == steps.len();
        goes_on && steps[at..].iter().all(|step| !matches!(step.next, Next::Or | Next::Then))
    };
    let others = steps.iter().enumerate().filter(|(at, _)| *at != shown && decides(*at));
    others
        .map(|(_, step)| (purpose(&step.words), &step.words))
        .filter(|(purpose, _)| *purpose >= Purpose::Build)
        .map(|(purpose, words)| Check::of(words, purpose))
        .collect()
}

/// What stays the same when the same thing is run again. Runners of one language are one program.
fn key(purpose: Purpose, words: &[String]) -> String {
    let program = program(words);
    match (purpose, program) {
        (Purpose::Test, "npm" | "yarn" | "pnpm" | "jest" | "vitest" | "mocha" | "bun") => {
            "test js".into()
        }
        (Purpose::Test, "pytest" | "python" | "python3" | "poetry" | "uv" | "tox") => {
            "test py".into()
        }
        (Purpose::Test, program) => format!("test {program}"),
        _ => format!("{program} {}", words.get(1).map_or("", String::as_str)),
    }
}

/// What a program is run on, without what only says how.
fn arguments(words: &[String]) -> Vec<String> {
    let is_how = |word: &&String| {
        word.starts_with('-')
            || word.starts_with("test:")
            || matches!(
                word.as_str(),
                "test" | "t" | "run" | "exec" | "pytest" | "unittest" | "vitest" | "jest"
            )
    };
    let words = if is_commit(words) { &[] } else { words };
    // `./...` is everything, and `lint:fix` checks what `lint` does.
    let is_all = |word: &&String| matches!(word.as_str(), "./..." | "...");
    let is_what = |word: &&String| !is_how(word) && !is_all(word);
    let bare = |word: &String| word.strip_suffix(":fix").unwrap_or(word).to_owned();
    words.iter().skip(1).filter(is_what).map(bare).collect()
}
