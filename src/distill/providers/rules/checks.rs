//! Identifies checks: which commands run the same tests, build or linter.

use super::purposes::{Purpose, is_commit, program, purpose};
use super::shell::{Next, Step};

/// The subject of a test, build or lint command. Two runs of the same program are the same check if
/// the arguments of one include those of the other.
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

/// Further checks that must have passed when the whole command line succeeded. Excludes the step at
/// `shown`.
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

/// A key that stays the same when a check is run again. Different runners of one language share a
/// key.
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

/// The arguments that select what a program checks, without options that only change how it runs.
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
    // `./...` selects everything, and `lint:fix` checks the same as `lint`.
    let is_all = |word: &&String| matches!(word.as_str(), "./..." | "...");
    let is_what = |word: &&String| !is_how(word) && !is_all(word);
    let bare = |word: &String| word.strip_suffix(":fix").unwrap_or(word).to_owned();
    words.iter().skip(1).filter(is_what).map(bare).collect()
}
