//! Finds the error in the output of a command.

use super::text::{clip, contains_any, is_among, one_line, starts_with_any};

/// Of longer outputs, only the first and the last lines are read.
const LINES_MAX: usize = 4_000;

const ERROR_CHARS_MAX: usize = 180;

/// The error of a failed command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// The line that describes the error best.
    pub(super) essence: String,
    /// The program was not run because it did not compile.
    pub(super) is_compile: bool,
    /// Confidence that this line is the error, from 1 to 9.
    pub(super) weight: u8,
}

/// Finds the line that describes the error best.
pub(super) fn fault(output: &str) -> Option<Fault> {
    let lines: Vec<&str> = lines(output).collect();
    let mut best: Option<(u8, usize)> = None;
    for (at, line) in lines.iter().enumerate() {
        let weight = weight(line);
        if weight > best.map_or(0, |(best, _)| best) {
            best = Some((weight, at));
        }
    }
    let (weight, at) = best.or_else(|| first_words(&lines).map(|at| (1, at)))?;
    let mut essence = essence(&lines[at..]);
    // Some runners print the error separately from the test. The test name is more useful than the
    // values.
    let test = lines[..at].iter().rev().map(|line| line.trim()).find(|line| is_test_name(line));
    if let Some(test) = test.filter(|_| weight == 7) {
        let name = test.trim_start_matches(|c: char| !c.is_alphanumeric());
        essence = format!("{}: {essence}", clip(name, 60));
    }
    let essence = essence.trim_end_matches(" // Object.is equality");
    (!essence.is_empty()).then(|| Fault {
        essence: clip(&without_folder(essence), ERROR_CHARS_MAX),
        is_compile: is_compile(lines[at]),
        weight,
    })
}

/// Summary lines of build tools, printed after the actual errors.
const ECHOES: &str = "\
    error: could not compile|error: test failed|error: aborting|error: process didn't exit|\
    error: recipe|error: script|error command failed|error: 1 target failed|error: build failed|\
    failures:|error: failed with exit code";

/// Rates how well a line describes an error.
fn weight(line: &str) -> u8 {
    let line = line.trim_end();
    let text = line.trim_start();
    let lower = text.get(..text.len().min(400)).unwrap_or(text).to_lowercase();
    if text.is_empty() || starts_with_any(&lower, ECHOES) {
        return 0;
    }
    if text.starts_with("FAILED ") && text.contains("::") && text.contains(" - ") {
        return 9;
    }
    if line.starts_with("E  ") && contains_any(&lower, "error|assert|exception") {
        return 8;
    }
    match () {
        () if starts_with_any(text, "error[E") || contains_any(&lower, COMPILERS) => 8,
        () if is_exception(text) || starts_with_any(text, "fatal: |error: |undefined: |** (") => 7,
        () if starts_with_any(text, "--- FAIL: |Error: |Caused by:") || is_located(text) => 6,
        () if is_test_name(text)
            || starts_with_any(text, "ERROR|[ERROR]")
            || contains_any(&lower, COMPLAINTS) =>
        {
            5
        }
        () if starts_with_any(text, "npm ERR! |npm error |FAIL|make: ***") => 3,
        () if contains_any(&lower, "error|failed|fehler|erreur|失敗|失败|エラー|错误") => {
            2
        }
        () => 0,
    }
}

const COMPILERS: &str = "panicked at| error ts|: error:|- error ts|: error cs|.java:[|.kt:[";
const COMPLAINTS: &str = "command not found|no such file|permission denied|cannot find|can't find|\
    undefined reference|connection refused|already in use|timed out|no module|no tests ran|\
    no tests found|no test files found|no tests were found|: syntax error";

/// Messages printed when a command did not start: by shells, by programs about invalid arguments,
/// and by servers about missing permissions.
const REFUSALS: &str = "\
    command not found|: not found|no such file or directory|unrecognized subcommand|\
    unknown command|unknown option|unknown flag|unknown shorthand|unrecognized option|\
    unrecognized argument|invalid option|unexpected argument|is not recognized as|\
    no such command|no such option|missing script|script not found|did not match any file|\
    no module named|permission denied|authentication failed|access denied|text file busy|\
    flag provided but not defined|[rejected]|not a git repository|none of the git remotes|\
    cannot be launched inside|could not write index|no configured push destination|\
    requires authentication|cannot find module|komut bulunamadı|böyle bir dosya ya da dizin yok|\
    команда не найдена|нет такого файла|отказано в доступе|\
    未找到命令|没有那个文件或目录|\
    command introuvable|befehl nicht gefunden";

/// A command with more output did start.
const REFUSAL_LINES_MAX: usize = 25;

/// The line that explains why a command did not start.
pub(super) fn refusal(output: &str) -> Option<String> {
    let is_one = |line: &&str| {
        let line = line.trim();
        line.len() < 300 && {
            let lower = line.to_lowercase();
            contains_any(&lower, REFUSALS) || lower.starts_with("usage: ")
        }
    };
    if output.lines().nth(REFUSAL_LINES_MAX).is_some() {
        return None;
    }
    let line = output.lines().find(is_one)?.trim();
    // `/bin/bash: line 1: go: command not found`
    let line = line
        .split_once(": line ")
        .and_then(|(_, rest)| rest.split_once(": "))
        .map_or(line, |(_, rest)| rest);
    let line =
        line.strip_prefix("error: ").or_else(|| line.strip_prefix("Error: ")).unwrap_or(line);
    Some(clip(line, ERROR_CHARS_MAX))
}

/// Whether a line is the name of a failed test, as runners mark it.
fn is_test_name(text: &str) -> bool {
    starts_with_any(text, "● |✗ |× |✕ ")
}

/// Complete lines that build tools print at the end of a failed run, and of a successful one.
const FAILED_RUNS: &str = "\
    BUILD FAILURE|BUILD FAILED|FAIL|FAILURES!|ERRORS!|error: test run failed|Test Run Failed.|\
    ELIFECYCLE  Test failed. See above for more details.|error: Test failed";
const PASSED_RUNS: &str = "BUILD SUCCESS|BUILD SUCCESSFUL|Test Run Successful.";

/// Whether a run succeeded, as the last line about it says.
pub(super) fn verdict(output: &str) -> Option<bool> {
    output.lines().rev().take(LINES_MAX).find_map(|line| {
        let line = line.trim().trim_start_matches("[INFO] ");
        let line = line.split(" in ").next().unwrap_or_default();
        let is_rust =
            starts_with_any(line, "error: test failed, to rerun pass|error: could not compile");
        match line {
            line if is_rust || is_among(line, FAILED_RUNS) => Some(false),
            line if is_among(line, PASSED_RUNS) => Some(true),
            _ => None,
        }
    })
}

/// Matches `KeyError: 'x'`, `Uncaught TypeError: …`, `java.lang.IllegalStateException: …`.
fn is_exception(text: &str) -> bool {
    let text = text.strip_prefix("Uncaught ").unwrap_or(text);
    let name = text.split([':', ' ']).next().unwrap_or_default();
    let class = name.rsplit('.').next().unwrap_or_default();
    (name.ends_with("Error") || name.ends_with("Exception"))
        && class.len() > "Error".len()
        && text.len() > name.len() + 2
        && class.starts_with(|c: char| c.is_ascii_uppercase())
}

/// Matches `main.go:12:3: undefined: x`, from compilers that do not print the word "error".
fn is_located(text: &str) -> bool {
    let mut parts = text.splitn(4, ':');
    let file = parts.next().unwrap_or_default();
    let numbers = parts.next().is_some_and(|line| line.parse::<u32>().is_ok())
        && parts.next().is_some_and(|column| column.parse::<u32>().is_ok());
    numbers && file.contains('.') && !file.contains(' ')
}

fn is_compile(line: &str) -> bool {
    let marks = "error[E|error TS|: error:|: error CS|.java:[|.kt:[|SyntaxError|\
        undefined reference|CompileError";
    contains_any(line, marks) || is_located(line.trim())
}

/// `/usr/bin/python3: No module` is the same failure as `/opt/bin/python3: No module`.
fn without_folder(essence: &str) -> String {
    let (first, rest) = essence.split_at(essence.find(": ").unwrap_or(0));
    let is_program = first.starts_with('/') && first.contains("/bin/") && !first.contains(' ');
    let name = if is_program { first.rsplit('/').next().unwrap_or(first) } else { first };
    format!("{name}{rest}")
}

/// The error line, joined with its continuation on the following lines.
fn essence(lines: &[&str]) -> String {
    let line = lines[0].trim();
    let next = |at: usize| lines.get(at).map_or("", |line| line.trim());
    if line.contains("panicked at") {
        let thread = line.split('\'').nth(1).filter(|name| *name != "main");
        let mut text = thread.map(|name| format!("{name}: ")).unwrap_or_default();
        text.push_str(next(1));
        if next(2).starts_with("left:") && next(3).starts_with("right:") {
            text = format!("{text} ({}, {})", next(2), next(3));
        }
        return one_line(&text);
    }
    if line.starts_with("error[") && next(1).starts_with("--> ") {
        return format!("{line} ({})", next(1).trim_start_matches("--> "));
    }
    if let Some(test) = line.strip_prefix("--- FAIL: ") {
        let test = test.split(' ').next().unwrap_or_default();
        return format!("{test}: {}", next(1));
    }
    if line == "Caused by:" || line.starts_with("● ") || line.starts_with("FAIL ") {
        let more = lines[1..].iter().map(|line| line.trim()).find(|line| !line.is_empty());
        return one_line(&format!("{line} {}", more.unwrap_or_default()));
    }
    let line = line.strip_prefix("FAILED ").unwrap_or(line);
    one_line(line.strip_prefix("E  ").unwrap_or(line))
}

/// The first line that is not the client's own `Exit code 3`.
fn first_words(lines: &[&str]) -> Option<usize> {
    lines.iter().position(|line| !line.trim().is_empty() && !line.starts_with("Exit code"))
}

/// The first and the last lines of a text.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let head = text.lines().take(LINES_MAX);
    let all = text.lines().count();
    head.chain(text.lines().skip(LINES_MAX.max(all.saturating_sub(LINES_MAX))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_describes_a_failure_is_found() {
        let cases = [
            (
                "Exit code 101\n   Compiling a\n\
                 error[E0382]: borrow of moved value: `x`\n  --> src/a.rs:3:5\n\
                 error: could not compile `a`",
                "error[E0382]: borrow of moved value: `x` (src/a.rs:3:5)",
            ),
            (
                "running 1 test\nthread 'cart::adds' (7) panicked at src/cart.rs:9:5:\n\
                 assertion `left == right` failed\n  left: 3\n right: 4\n",
                "cart::adds: assertion `left == right` failed (left: 3, right: 4)",
            ),
            (
                "Traceback (most recent call last):\n  \
                 File \"a.py\", line 3, in <module>\nKeyError: 'user_id'",
                "KeyError: 'user_id'",
            ),
            (
                "E   AssertionError: x\n=== short ===\n\
                 FAILED tests/test_a.py::test_b - AssertionError: assert 1 == 2",
                "tests/test_a.py::test_b - AssertionError: assert 1 == 2",
            ),
            (
                "--- FAIL: TestSum (0.00s)\n    sum_test.go:12: got 3, want 4\nFAIL",
                "TestSum: sum_test.go:12: got 3, want 4",
            ),
            (
                "src/a.ts(3,5): error TS2345: Argument of type 'string'",
                "src/a.ts(3,5): error TS2345: Argument of type 'string'",
            ),
            (
                "   × keys expire 3ms\n\n\
                 AssertionError: expected -1 to be 60 // Object.is equality",
                "keys expire 3ms: AssertionError: expected -1 to be 60",
            ),
            ("Exit code 127\nbash: foo: command not found", "bash: foo: command not found"),
            ("Exit code 1\n/usr/bin/python3: No module named x", "python3: No module named x"),
            ("Exit code 3\nout\nerr", "out"),
        ];
        for (output, expected) in cases {
            assert_eq!(fault(output).unwrap().essence, expected);
        }
        assert_eq!(fault("Exit code 1"), None);
    }

    #[test]
    fn arbitrary_output_does_not_panic() {
        for text in ["", "\n\n", "error[E", "●", "panicked at", "--- FAIL: ", ":1:2:"] {
            let _ = fault(text);
        }
    }
}
