//! Shell commands of a turn: their purpose and whether they succeeded.

use serde_json::Value;

use super::checks::{Check, also_passed};
use super::commits::{Commit, commits};
use super::outcomes::{self, Fault};
pub(super) use super::purposes::Purpose;
use super::purposes::{self, LOOK_PROGRAMS, Remote, SHOWN_CHARS_MAX, effect, program, purpose};
use super::runners::{self, Counts, Extent};
use super::shell::{self, Next, Step};
use super::text::{clip, code, is_among, one_line, relative};
use crate::escape::without_ansi;
use crate::turn_prompt::ToolView;

/// Maximum length of a command shown in full.
const WHOLE_CHARS_MAX: usize = 140;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    /// The shell hid the exit code, and the output does not show the outcome.
    Unknown,
}

/// One use of the shell, represented by its most significant command.
#[derive(Debug, Clone)]
pub(super) struct Run {
    /// Position among the tool uses of the turn.
    pub(super) at: usize,
    pub(super) purpose: Purpose,
    /// The command, shortened.
    pub(super) shown: String,
    /// The full command, with the environment variables set for it.
    pub(super) whole: String,
    /// The full command without the prefix that reaches a remote machine.
    pub(super) core: String,
    /// The folder it ran in, relative to the project; empty for the project's root.
    pub(super) folder: String,
    /// The prefix that reaches a remote machine or container; empty for a local command.
    pub(super) way: String,
    /// It was started in the background.
    pub(super) is_background: bool,
    /// It belongs to the project, such as one of its scripts.
    pub(super) is_of_project: bool,
    /// The error, if it failed.
    pub(super) fault: Option<Fault>,
    /// Why it did not start: the program, an option or a file is missing.
    pub(super) refusal: Option<String>,
    /// The number of tests that ran.
    pub(super) counts: Option<Counts>,
    /// Changes outside the edited files, as phrases.
    pub(super) effects: Vec<String>,
    pub(super) commits: Vec<Commit>,
    /// It only shows files.
    pub(super) is_plain_look: bool,
    outcome: Outcome,
    check: Check,
    /// Other checks of the same line that passed: `lint && test` is shown as the test.
    others: Vec<Check>,
}

/// Written by the client instead of an output when the command was not run.
const NOT_RUN: &str =
    "<tool_use_error>|The user doesn't want to|Permission to use|Error: Permission to use";

impl Run {
    /// Parses one use of the shell.
    pub(super) fn of(
        view: &ToolView<'_>,
        (input, output): (&Value, &Value),
        (cwd, at): (&str, usize),
    ) -> Option<Self> {
        let command = input.get("command").and_then(Value::as_str)?;
        let printed = printed(output);
        if view.failed && super::text::starts_with_any(&printed, NOT_RUN) {
            return None;
        }
        let steps = shell::steps(command);
        let is_background = output.get("backgroundTaskId").is_some_and(Value::is_string)
            || printed.starts_with("Command running in background");
        let is_unfinished = is_background || output.get("interrupted") == Some(&Value::Bool(true));
        let remotes: Vec<Option<Remote>> = steps.iter().map(purposes::remote).collect();
        let mut telling: Option<(Purpose, usize)> = None;
        for (number, step) in steps.iter().enumerate() {
            let purpose = match &remotes[number] {
                Some(remote) => {
                    let inner = remote.steps.iter().map(|step| purpose(&step.words));
                    inner.max().unwrap_or(Purpose::Look)
                }
                None => purpose(&step.words),
            };
            if telling.is_none_or(|(best, _)| purpose > best) {
                telling = Some((purpose, number));
            }
        }
        let (mut purpose, number) = telling?;
        let words = &steps[number].words;
        let is_look = |step: &Step| is_among(program(&step.words), LOOK_PROGRAMS);
        let is_plain_look = match &remotes[number] {
            Some(remote) => remote.steps.iter().all(is_look),
            None => is_look(&steps[number]),
        };
        let inner = remotes[number].as_ref().map(|remote| {
            let texts: Vec<&str> = remote.steps.iter().map(|step| step.text.as_str()).collect();
            clip(&texts.join(" && "), WHOLE_CHARS_MAX)
        });
        let core = inner.unwrap_or_else(|| whole(&steps, number, cwd));
        let is_of_project = purposes::is_of_project(words);
        if is_unfinished {
            purpose = Purpose::Look;
        }
        let check = Check::of(words, purpose);
        let extent = extent(&steps, number);
        let is_program = |step: &&Step| purposes::purpose(&step.words) >= Purpose::Run;
        let runs_tests = match purpose {
            Purpose::Test => true,
            // A linter runs none. The total of a line with several programs may be of another one.
            Purpose::Build if !purposes::is_build_tool(words) => false,
            Purpose::Build | Purpose::Run => steps.iter().filter(is_program).count() == 1,
            Purpose::Look | Purpose::Effect => false,
        };
        let counts =
            runs_tests.then(|| runners::total(outcomes::lines(&printed), extent)).flatten();
        // `./ci.sh` and `mvn package` run tests if their output has a total.
        if counts.is_some() {
            purpose = Purpose::Test;
        }
        let fault = outcomes::fault(&printed);
        let outcome = if is_unfinished {
            Outcome::Unknown
        } else {
            outcome((&steps, number), purpose, (view.failed, &printed), (counts, fault.as_ref()))
        };
        let has_failed = outcome == Outcome::Failed;
        let done = !view.failed && !is_unfinished;
        let commits = if done { commits(&steps, &printed, view.commit) } else { Vec::new() };
        let all = steps.iter().zip(&remotes).flat_map(|(step, remote)| match remote {
            Some(remote) => remote.steps.iter().map(|step| &step.words).collect(),
            None => vec![&step.words],
        });
        let effects = if done {
            all.filter_map(|words| effect_with(words, &printed)).collect()
        } else {
            Vec::new()
        };
        let refusal = (view.failed || has_failed).then(|| outcomes::refusal(&printed)).flatten();
        // The program that runs the command may be the one that refuses it.
        let written = || {
            let words = steps[number].text.split(' ').skip_while(|word| word.contains('='));
            words.collect::<Vec<_>>().join(" ")
        };
        let shown = if refusal.is_some() { written() } else { shown_words(words) };
        Some(Self {
            at,
            purpose,
            shown: clip(&shown, SHOWN_CHARS_MAX),
            whole: whole(&steps, number, cwd),
            folder: folder(&steps[..number], view.cwd, cwd),
            way: remotes[number]
                .as_ref()
                .map_or_else(String::new, |remote| clip(&remote.way, WHOLE_CHARS_MAX)),
            outcome,
            is_background,
            is_of_project,
            refusal,
            fault: fault.filter(|_| has_failed),
            // A run can fail although no test did, for example to set up.
            counts: counts.filter(|counts| has_failed == (counts.failed > 0)),
            effects,
            commits,
            is_plain_look,
            core,
            check,
            others: if done { also_passed(&steps, number) } else { Vec::new() },
        })
    }

    pub(super) fn has_failed(&self) -> bool {
        self.outcome == Outcome::Failed
    }

    /// Whether it certainly succeeded.
    pub(super) fn has_passed(&self) -> bool {
        self.outcome == Outcome::Passed
    }

    /// Whether it ran any tests, passed or failed.
    pub(super) fn has_begun(&self) -> bool {
        self.counts.is_some() && self.refusal.is_none()
    }

    /// Whether it runs only selected tests.
    pub(super) fn is_part(&self) -> bool {
        let names = |word: &str| {
            is_among(word, "-run|-k|-t|--filter|-test.run|--grep|-g") || word.contains("::")
        };
        self.purpose == Purpose::Test && self.whole.split(' ').any(names)
    }

    /// Whether this run and the other one are the same check: the same program, and the arguments
    /// of one include those of the other.
    pub(super) fn repeats(&self, other: &Self) -> bool {
        self.check.repeats(&other.check)
    }

    /// Whether this run determines the final outcome of an earlier run's check.
    pub(super) fn settles(&self, earlier: &Self) -> bool {
        let is_same_program = self.check.key == earlier.check.key && self.refusal.is_none();
        self.repeats(earlier)
            || self.others.iter().any(|check| check.repeats(&earlier.check))
            || earlier.refusal.is_some() && is_same_program
    }

    /// Compares this run with a command that an earlier turn of the session showed as `shown`.
    /// Returns whether it passed, or `None` if it is a different check.
    pub(super) fn verdict_on_shown(&self, shown: &str) -> Option<bool> {
        let words = shell::steps(shown).into_iter().next().map(|step| step.words);
        let words = words.unwrap_or_default();
        let earlier = Check::of(&words, purpose(&words));
        let passed_beside = self.others.iter().any(|check| check.repeats(&earlier));
        match self.check.repeats(&earlier) {
            _ if words.is_empty() => None,
            true => Some(self.has_passed()),
            false => passed_beside.then_some(true),
        }
    }

    /// The number of arguments that restrict the check. Fewer arguments mean a broader check.
    pub(super) fn breadth(&self) -> usize {
        self.check.arguments.len()
    }

    /// The words of the command, to compare it with another one.
    pub(super) fn tokens(&self) -> Vec<&str> {
        let mut tokens: Vec<&str> = self
            .whole
            .split(|c: char| c.is_whitespace() || "\"'`;&|()".contains(c))
            .filter(|word| !word.is_empty())
            .collect();
        tokens.sort_unstable();
        tokens.dedup();
        tokens
    }

    /// Formats the result: `cargo test`: 12 passed.
    pub(super) fn result(&self) -> String {
        let outcome = match (self.counts, &self.fault) {
            (Some(counts), _) => counts.shown(),
            (None, Some(fault)) => format!("fails: {}", fault.essence),
            (None, None) => (if self.has_failed() { "fails" } else { "passes" }).to_owned(),
        };
        let colon = if self.counts.is_some() { ":" } else { "" };
        format!("{}{colon} {outcome}", code(&self.shown))
    }
}

/// Determines whether a run succeeded. The exit code decides unless the shell hid it. Then the
/// runner's total and its verdict decide, and without them an error that only a failing run prints.
fn outcome(
    (steps, number): (&[Step], usize),
    purpose: Purpose,
    (has_failed, printed): (bool, &str),
    (counts, fault): (Option<Counts>, Option<&Fault>),
) -> Outcome {
    if let Some(code) = reported_exit(&steps[number + 1..], printed) {
        return if code == 0 { Outcome::Passed } else { Outcome::Failed };
    }
    let is_hidden = is_hidden(steps, number);
    // The line may break something on purpose, test, restore it and test again.
    if is_hidden && runs_repeatedly(steps, number, purpose) {
        return Outcome::Unknown;
    }
    let verdict = (purpose >= Purpose::Build).then(|| outcomes::verdict(printed)).flatten();
    let is_green = match (counts.map(|counts| counts.failed == 0), verdict) {
        (Some(is_green), Some(verdict)) => Some(is_green && verdict),
        (total, verdict) => total.or(verdict),
    };
    let weight = fault.map_or(0, |fault| fault.weight);
    match (has_failed, is_hidden, is_green) {
        (false, false, _) => Outcome::Passed,
        (_, true, Some(is_green)) => {
            if is_green {
                Outcome::Passed
            } else {
                Outcome::Failed
            }
        }
        // A later step of the same line failed.
        (true, false, Some(true)) if number + 1 < steps.len() => Outcome::Passed,
        (true, true, None) if purpose >= Purpose::Build && weight < 5 => Outcome::Unknown,
        (true, _, _) => Outcome::Failed,
        (false, true, None) => match purpose {
            Purpose::Test | Purpose::Build if weight >= 8 => Outcome::Failed,
            Purpose::Test => Outcome::Unknown,
            Purpose::Build | Purpose::Run if weight > 2 => Outcome::Unknown,
            _ => Outcome::Passed,
        },
    }
}

/// Whether a line runs the same check several times, in sequence or in a loop. Its exit code and
/// totals then do not show the outcome of the last run.
fn runs_repeatedly(steps: &[Step], number: usize, purpose: Purpose) -> bool {
    if purpose != Purpose::Test {
        return false;
    }
    let check = Check::of(&steps[number].words, purpose);
    let is_loop = |step: &Step| program(&step.words) == "for";
    let is_same = |step: &&Step| {
        purposes::purpose(&step.words) == purpose && Check::of(&step.words, purpose).repeats(&check)
    };
    steps[..number].iter().any(is_loop) || steps.iter().filter(is_same).count() > 1
}

/// Whether the exit code of the line may differ from that of the step.
fn is_hidden(steps: &[Step], number: usize) -> bool {
    let has_pipefail =
        steps[..number].iter().any(|step| step.words.iter().any(|word| word == "pipefail"));
    // The last step can have an operator, too, because a long command is truncated.
    let first_other = steps[number..].iter().find(|step| match step.next {
        Next::And => false,
        Next::Pipe => !has_pipefail,
        Next::Or | Next::Then | Next::End => true,
    });
    first_other.is_some_and(|step| step.next != Next::End)
}

/// How much of a step's output the line shows.
fn extent(steps: &[Step], number: usize) -> Extent {
    let is_filter =
        |step: &Step| is_among(program(&step.words), "grep|egrep|rg|awk|sed|head|findstr");
    match steps[number + 1..].iter().any(is_filter) {
        true => Extent::Some,
        false if is_hidden(steps, number) => Extent::End,
        false => Extent::Whole,
    }
}

/// The exit code that a later step printed, as in `; echo "exit: $?"`.
fn reported_exit(later: &[Step], printed: &str) -> Option<i32> {
    let echo = later.iter().find(|step| program(&step.words) == "echo")?;
    let text = echo.words[1..].join(" ");
    let (before, after) = ["$?", "${PIPESTATUS[0]}", "$PIPESTATUS"]
        .iter()
        .find_map(|variable| text.split_once(variable))?;
    printed.lines().rev().take(50).find_map(|line| {
        line.trim()
            .strip_prefix(before.trim_start())?
            .strip_suffix(after.trim_end())?
            .trim()
            .parse()
            .ok()
    })
}

/// The words of a command, each clipped: a word can be a whole program in quotes.
fn shown_words(words: &[String]) -> String {
    words.iter().map(|word| clip(word, SHOWN_CHARS_MAX)).collect::<Vec<_>>().join(" ")
}

/// The step as written, preceded by the steps that set up its environment.
fn whole(steps: &[Step], number: usize, cwd: &str) -> String {
    let is_setup = |step: &&Step| {
        step.words.is_empty() && step.text.contains('=')
            || is_among(program(&step.words), "export|source|.")
    };
    let setup = steps[..number].iter().filter(is_setup).map(|step| step.text.as_str());
    let texts: Vec<&str> = setup.chain([steps[number].text.as_str()]).collect();
    let mut text = texts.join(" && ");
    for mark in [" 2>&1", " 2>/dev/null", " >/dev/null", " > /dev/null"] {
        text = text.replace(mark, "");
    }
    if cwd.len() > 1 {
        text = text.replace(&format!("{}/", cwd.trim_end_matches('/')), "");
    }
    clip(&one_line(&text), WHOLE_CHARS_MAX)
}

/// The folder a step runs in, relative to the project.
fn folder(before: &[Step], at: &str, project: &str) -> String {
    let project = &project.replace('\\', "/");
    let mut folder = if at.is_empty() { project.clone() } else { at.replace('\\', "/") };
    for step in before.iter().filter(|step| is_among(program(&step.words), "cd|pushd")) {
        let Some(to) = step.words.get(1).map(|to| to.trim_end_matches('/').replace('\\', "/"))
        else {
            continue;
        };
        // The recorded folder of a tool use can be the one after the command.
        let is_there = folder.ends_with(&format!("/{to}"));
        match to.as_str() {
            "." | "" | "-" | "~" => {}
            to if to.starts_with(['/', '$', '~']) || to.contains(':') => to.clone_into(&mut folder),
            _ if is_there => {}
            ".." => folder.truncate(folder.rfind('/').unwrap_or(0)),
            to => folder = format!("{folder}/{}", to.trim_start_matches("./")),
        }
    }
    let folder = with_drive(folder, project);
    let shown = relative(&folder, project);
    if shown.trim_end_matches('/') == project.trim_end_matches('/') {
        String::new()
    } else {
        shown.to_owned()
    }
}

/// Writes the drive of a folder as the project does: `D:/shop`, or `/d/shop` in Git Bash.
fn with_drive(folder: String, project: &str) -> String {
    let drive_of = |path: &str| match path.as_bytes() {
        [letter, b':', b'/', ..] | [b'/', letter, b'/', ..] => {
            letter.is_ascii_alphabetic().then_some(letter.to_ascii_lowercase())
        }
        _ => None,
    };
    match (project.split_at_checked(2), drive_of(project), drive_of(&folder)) {
        (Some((drive, _)), Some(ours), Some(its)) if ours == its => {
            format!("{drive}{}", &folder[2..])
        }
        _ => folder,
    }
}

/// The change a command makes, with the URL it printed for the created object.
fn effect_with(words: &[String], printed: &str) -> Option<String> {
    let effect = effect(words)?;
    if program(words) != "gh" {
        return Some(effect);
    }
    let address = printed.split_whitespace().find(|word| word.starts_with("https://"));
    Some(match address {
        Some(address) => format!("{effect}: {}", clip(address, 120)),
        None => effect,
    })
}

/// The printed output as one text.
fn printed(output: &Value) -> String {
    let text = match output {
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let part = |key| fields.get(key).and_then(Value::as_str).unwrap_or_default();
            format!("{}\n{}", part("stdout"), part("stderr"))
        }
        _ => String::new(),
    };
    without_ansi(&text).into_owned()
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
