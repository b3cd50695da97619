//! Extracts the words of a failed command and its error that can identify a memory.

use super::{
    Query, Term,
    prompt_terms::{PromptTerms, beginning, name, names_subject, shorten},
    stop_words::is_failure,
};
use std::collections::HashSet;

impl PromptTerms {
    /// The words of the lines that name the error, and those of the command. Words of the command
    /// alone only show that it failed before; they are used if it printed nothing.
    pub(super) fn of_failure(command: &str, error: &str) -> Self {
        let (mut query, mut names) = (Query::default(), HashSet::new());
        for word in error_lines(error).flat_map(str::split_whitespace) {
            // A line may begin with any word, and the class of an error is not specific.
            let is_class = |name: &String| name.ends_with("error") || name.ends_with("exception");
            names.extend(name(word, true).filter(|name| !is_class(name)));
            query.add_plain(word);
        }
        query.terms.retain(|term| names.contains(&term.text) || names_cause(&term.text));
        let (errors, mut commands) = (query.terms.len(), Query::default());
        for word in beginning(command, COMMAND_BYTES_MAX).split_whitespace() {
            if errors == 0 {
                names.extend(name(word, true));
            }
            commands.add_plain(word);
            query.add_plain(word);
        }
        shorten(&mut query.terms, |term| names.contains(&term.text));
        let is_name = query.terms.iter().map(|term| names.contains(&term.text)).collect();
        let is_of_command = |term: &Term| commands.terms.iter().any(|it| it.base == term.base);
        let is_needed = query.terms.iter().map(|term| !is_of_command(term)).collect();
        Self { query, is_name, is_needed }
    }
}

/// The lines of an output that name an error; without any, its first and last ones.
fn error_lines(output: &str) -> impl Iterator<Item = &str> {
    let all = || output.lines().map(str::trim).filter(|line| !line.is_empty() && !is_status(line));
    let names_subject = |line: &&str| {
        let start = beginning(line, LINE_BYTES_MAX).to_lowercase();
        FAULTS.iter().any(|fault| start.contains(fault))
    };
    let mut lines: Vec<&str> = all().take(LINES_MAX).filter(names_subject).take(3).collect();
    if lines.is_empty() {
        lines.extend(all().take(1));
        lines.extend(all().next_back().filter(|last| lines.first() != Some(last)));
    } else {
        // The line after an error often has the position or the name.
        let last = lines[lines.len() - 1];
        lines.extend(all().take(LINES_MAX).skip_while(|line| *line != last).skip(1).take(1));
    }
    lines.into_iter().map(|line| beginning(line, LINE_BYTES_MAX))
}

/// `Exit code 1`, which Claude Code puts before the output.
fn is_status(line: &str) -> bool {
    line.strip_prefix("Exit code ").is_some_and(|code| code.parse::<i64>().is_ok())
}

/// Marks of a line that names an error.
const FAULTS: [&str; 16] = [
    "error",
    "fail",
    "fatal",
    "panic",
    "exception",
    "not found",
    "no such",
    "cannot",
    "can't",
    "could not",
    "denied",
    "refused",
    "missing",
    "unknown",
    "invalid",
    "undefined",
];

/// Longer outputs are logs; only their first lines are searched for the error.
const LINES_MAX: usize = 400;
const LINE_BYTES_MAX: usize = 400;
const COMMAND_BYTES_MAX: usize = 200;

/// Returns false for words that any failure may contain.
fn names_cause(word: &str) -> bool {
    names_subject(word) && !is_failure(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan_counter;

    /// The terms: names in brackets, those that a memory needs one of with `!`.
    fn terms(command: &str, error: &str) -> String {
        let PromptTerms { query, is_name, is_needed } = PromptTerms::of_failure(command, error);
        let mut terms = Vec::new();
        for (at, term) in query.terms.iter().enumerate() {
            let text = if is_name[at] { format!("[{}]", term.text) } else { term.text.clone() };
            terms.push(text + if is_needed[at] { "!" } else { "" });
        }
        terms.join(" ")
    }

    #[test]
    fn error_lines_are_read_and_words_of_every_failure_are_left_out() {
        let rust = "Exit code 101\n   Compiling shop\nerror[E0599]: no method named `lessPercent`\n\
                    --> src/cart.rs:43\nnote: done";
        let python = "Traceback (most recent call last):\n  x\nKeyError: 'walrus'";
        let table = [
            ("make", "Exit code 2", "make"),
            ("make", "Exit code 2\nmake: *** No rule", "rule! make"),
            ("npm ci", "npm error code EUSAGE", "npm eusage! ci"),
            (
                "cargo test",
                rust,
                "e0599! method! [lesspercent]! less! percent! src! [cart]! rs! cargo test",
            ),
            ("./walk", python, "keyerror! key! walrus! walk"),
        ];
        for (command, error, expected) in table {
            assert_eq!(terms(command, error), expected, "{command}: {error}");
        }
    }

    #[test]
    fn hostile_output_is_read_in_linear_time() {
        scan_counter::assert_linear(|fragment, size| {
            let text = fragment.repeat(size / fragment.len());
            PromptTerms::of_failure(&text, &text);
        });
    }
}
