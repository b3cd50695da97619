//! What the output of a command says: how many tests passed, and what went wrong.

use super::text::{begins, clip, holds, one_line};

/// More lines than this are a log; the first and the last tell.
const LINES_MAX: usize = 4_000;

const ERROR_CHARS_MAX: usize = 180;

/// Tests that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    /// As reported.
    pub(super) passed: u64,
    /// As reported.
    pub(super) failed: u64,
}

impl Counts {
    /// `12 passed` or `2 failed, 12 passed`.
    pub(super) fn shown(self) -> String {
        match self {
            Self { passed, failed: 0 } => format!("{passed} passed"),
            Self { passed, failed } => format!("{failed} failed, {passed} passed"),
        }
    }
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// The telling line.
    pub(super) essence: String,
    /// The program was never run: it did not compile.
    pub(super) is_compile: bool,
    /// How sure we are that this line is the fault, from 1 to 9.
    pub(super) weight: u8,
}

/// The counts of a test run in its output, if any runner reported some.
pub(super) fn counts(output: &str) -> Option<Counts> {
    let mut sum = Counts::default(); // one line per test binary
    let mut last = Counts::default(); // one line, or one line per outcome
    let (mut any_sum, mut any_last) = (false, false);
    for line in lines(output) {
        let line = line.trim();
        if line.starts_with("Test Suites:") || line.starts_with("Test Files") {
            continue;
        }
        let (passed, failed) = counted(line);
        if line.starts_with("test result:") {
            any_sum = true;
            sum.passed += passed.unwrap_or(0);
            sum.failed += failed.unwrap_or(0);
        } else {
            any_last |= passed.is_some() || failed.is_some();
            last.passed = passed.unwrap_or(last.passed);
            last.failed = failed.unwrap_or(last.failed);
        }
    }
    let go = go_counts(output);
    let found = if any_sum { Some(sum) } else { any_last.then_some(last).or(go) };
    found.filter(|counts| counts.passed + counts.failed > 0)
}

/// A count of tests. None has more than 32 bits, so that sums of them never overflow.
fn number(text: &str) -> Option<u64> {
    text.parse::<u32>().ok().map(u64::from)
}

/// Numbers of passed and failed in a line such as `2 failed, 12 passed in 3s`, `# pass 4`,
/// `Tests run: 12, Failures: 1, Errors: 0` or `12 examples, 1 failure`.
fn counted(line: &str) -> (Option<u64>, Option<u64>) {
    if let Some(rest) = line.strip_prefix("Tests run:") {
        let numbers: Vec<u64> =
            rest.split([',', ':']).filter_map(|part| number(part.trim())).collect();
        let [run, failures, errors, ..] = numbers[..] else { return (None, None) };
        return (Some(run.saturating_sub(failures + errors)), Some(failures + errors));
    }
    let tap = |mark: &str| line.strip_prefix(mark).and_then(|n| number(n.trim()));
    if let Some(passed) = tap("# pass ") {
        return (Some(passed), None);
    }
    if let Some(failed) = tap("# fail ") {
        return (None, Some(failed));
    }
    let words: Vec<&str> = line.split_whitespace().take(40).collect();
    let (mut passed, mut failed, mut examples) = (None, None, None);
    for pair in words.windows(2) {
        let Some(number) = number(pair[0].trim_matches(['(', '=', '['])) else { continue };
        match pair[1].trim_end_matches([',', ';', '.', ')', '|', ':']) {
            "passed" | "passing" => passed = Some(number),
            "failed" | "failing" | "failures" | "failure" => failed = Some(number),
            "examples" | "example" => examples = Some(number),
            _ => {}
        }
    }
    if let (Some(examples), Some(failed)) = (examples, failed) {
        passed = Some(examples.saturating_sub(failed));
    }
    (passed, failed)
}

fn go_counts(output: &str) -> Option<Counts> {
    let starting = |mark: &str| lines(output).filter(|l| l.trim_start().starts_with(mark)).count();
    let (passed, failed) = (starting("--- PASS"), starting("--- FAIL"));
    (passed + failed > 0).then_some(Counts { passed: passed as u64, failed: failed as u64 })
}

/// Finds the line that says best what went wrong.
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
    // Runners that print the error apart from the test: the name says more than the values.
    let test = lines[..at].iter().rev().map(|line| line.trim()).find(|line| is_test_name(line));
    if let Some(test) = test.filter(|_| weight == 7) {
        let name = test.trim_start_matches(|c: char| !c.is_alphanumeric());
        essence = format!("{}: {essence}", clip(name, 60));
    }
    let essence = essence.trim_end_matches(" // Object.is equality");
    (!essence.is_empty()).then(|| Fault {
        essence: clip(essence, ERROR_CHARS_MAX),
        is_compile: is_compile(lines[at]),
        weight,
    })
}

/// Said by build tools about errors they have already printed.
const ECHOES: &str = "error: could not compile|error: test failed|error: aborting|error: process didn't exit|\
    error: recipe|error: script|error command failed|error: 1 target failed|\
    error: build failed|failures:|error: failed with exit code";

/// How telling a line is.
fn weight(line: &str) -> u8 {
    let line = line.trim_end();
    let text = line.trim_start();
    let lower = text.get(..text.len().min(400)).unwrap_or(text).to_lowercase();
    if text.is_empty() || begins(&lower, ECHOES) {
        return 0;
    }
    if text.starts_with("FAILED ") && text.contains("::") && text.contains(" - ") {
        return 9;
    }
    if line.starts_with("E  ") && holds(&lower, "error|assert|exception") {
        return 8;
    }
    match () {
        () if begins(text, "error[E") || holds(&lower, COMPILERS) => 8,
        () if is_exception(text) || begins(text, "fatal: |error: |undefined: ") => 7,
        () if begins(text, "--- FAIL: |Error: |Caused by:") || is_located(text) => 6,
        () if is_test_name(text) || begins(text, "ERROR") || holds(&lower, COMPLAINTS) => 5,
        () if begins(text, "npm ERR! |npm error |FAIL|make: ***") => 3,
        () if holds(&lower, "error|failed|fehler|erreur|失敗|失败|エラー|错误") => 2,
        () => 0,
    }
}

const COMPILERS: &str = "panicked at| error ts|: error:|- error ts";
const COMPLAINTS: &str = "command not found|no such file|permission denied|cannot find|can't find|\
    undefined reference|connection refused|already in use|timed out|no module";

/// The name of a test that failed, as runners mark it.
fn is_test_name(text: &str) -> bool {
    begins(text, "● |✗ |× |✕ ")
}

/// `KeyError: 'x'`, `Uncaught TypeError: …`, `java.lang.IllegalStateException: …`.
fn is_exception(text: &str) -> bool {
    let text = text.strip_prefix("Uncaught ").unwrap_or(text);
    let name = text.split([':', ' ']).next().unwrap_or_default();
    let class = name.rsplit('.').next().unwrap_or_default();
    (name.ends_with("Error") || name.ends_with("Exception"))
        && class.len() > "Error".len()
        && text.len() > name.len() + 2
        && class.starts_with(|c: char| c.is_ascii_uppercase())
}

/// `main.go:12:3: undefined: x`, as compilers without the word "error" write it.
fn is_located(text: &str) -> bool {
    let mut parts = text.splitn(4, ':');
    let file = parts.next().unwrap_or_default();
    let numbers = parts.next().is_some_and(|line| line.parse::<u32>().is_ok())
        && parts.next().is_some_and(|column| column.parse::<u32>().is_ok());
    numbers && file.contains('.') && !file.contains(' ')
}

fn is_compile(line: &str) -> bool {
    let marks = "error[E|error TS|: error:|SyntaxError|undefined reference";
    holds(line, marks) || is_located(line.trim())
}

/// The telling line with what belongs to it on the next ones.
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
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let head = text.lines().take(LINES_MAX);
    let all = text.lines().count();
    head.chain(text.lines().skip(LINES_MAX.max(all.saturating_sub(LINES_MAX))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_counts_are_read_from_the_usual_runners() {
        let cases = [
            (
                "test result: ok. 12 passed; 0 failed; 1 ignored\n\ntest result: FAILED. 3 passed; 1 failed; 0 ignored",
                "1 failed, 15 passed",
            ),
            ("===== 3 failed, 12 passed, 1 warning in 0.51s =====", "3 failed, 12 passed"),
            ("============ 5 passed in 0.12s ============", "5 passed"),
            (
                "Test Suites: 1 failed, 3 passed, 4 total\nTests:       1 failed, 12 passed, 13 total",
                "1 failed, 12 passed",
            ),
            (
                " Test Files  2 passed (2)\n      Tests  1 failed | 12 passed (13)",
                "1 failed, 12 passed",
            ),
            ("  12 passing (3s)\n  1 failing", "1 failed, 12 passed"),
            ("12 examples, 1 failure", "1 failed, 11 passed"),
            ("Tests run: 12, Failures: 1, Errors: 1, Skipped: 0", "2 failed, 10 passed"),
            ("# tests 5\n# pass 4\n# fail 1", "1 failed, 4 passed"),
            ("--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL", "1 failed, 1 passed"),
            ("     Summary [   0.6s] 9 tests run: 9 passed, 0 skipped", "9 passed"),
        ];
        for (output, expected) in cases {
            assert_eq!(counts(output).map(Counts::shown).as_deref(), Some(expected), "{output}");
        }
        assert_eq!(counts("compiled 3 files\n0 passed"), None);
    }

    #[test]
    fn the_telling_line_of_a_failure_is_found() {
        let cases = [
            (
                "Exit code 101\n   Compiling a\nerror[E0382]: borrow of moved value: `x`\n  --> src/a.rs:3:5\nerror: could not compile `a`",
                "error[E0382]: borrow of moved value: `x` (src/a.rs:3:5)",
            ),
            (
                "running 1 test\nthread 'cart::adds' (7) panicked at src/cart.rs:9:5:\nassertion `left == right` failed\n  left: 3\n right: 4\n",
                "cart::adds: assertion `left == right` failed (left: 3, right: 4)",
            ),
            (
                "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\nKeyError: 'user_id'",
                "KeyError: 'user_id'",
            ),
            (
                "E   AssertionError: x\n=== short ===\nFAILED tests/test_a.py::test_b - AssertionError: assert 1 == 2",
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
                "   × keys expire 3ms\n\nAssertionError: expected -1 to be 60 // Object.is equality",
                "keys expire 3ms: AssertionError: expected -1 to be 60",
            ),
            ("Exit code 127\nbash: foo: command not found", "bash: foo: command not found"),
            ("Exit code 3\nout\nerr", "out"),
        ];
        for (output, expected) in cases {
            assert_eq!(fault(output).unwrap().essence, expected);
        }
        assert_eq!(fault("Exit code 1"), None);
    }

    #[test]
    fn odd_output_does_no_harm() {
        for text in [
            "",
            "\n\n",
            "error[E",
            "●",
            "Tests run:",
            "Tests run: 1",
            "panicked at",
            "--- FAIL: ",
            ":1:2:",
        ] {
            let _ = (counts(text), fault(text));
        }
    }
}
