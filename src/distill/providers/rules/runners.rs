//! Parses the totals that test runners print.
//!
//! A total is a complete line in the format of its runner. Other lines with numbers, such as a log
//! line with "2 failed", are ignored. The last total of an output counts. The totals of runners
//! that print one per package are added up.

use super::text::{is_among, starts_with_any};

/// Numbers of tests, as reported by the runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    pub(super) passed: u64,
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

/// A line of a test runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Total {
    /// The complete total.
    Whole(Counts),
    /// The total of one package or project, to be added to the others.
    Part(Counts),
    /// The number that passed; another line has the failures.
    Passed(u64),
    /// The number that failed; another line has the passes.
    Failed(u64),
    /// The number that failed, of those that another line counted.
    FailedOf(u64),
}

/// All runners. The first one that recognizes a line parses it.
const RUNNERS: &[fn(&str) -> Option<Total>] = &[
    cargo,
    nextest,
    pytest,
    unittest,
    jest_and_vitest,
    bun_mocha_and_playwright,
    node,
    deno,
    go,
    gradle,
    maven,
    dotnet,
    phpunit,
    rspec_exunit_and_minitest,
    ctest,
    swift,
    flutter,
];

/// A longer line is not a total.
const LINE_BYTES_MAX: usize = 240;

/// The total in an output, if a runner reported any tests.
pub(super) fn total<'o>(lines: impl Iterator<Item = &'o str>) -> Option<Counts> {
    // The runner that printed last, and the totals of all runners.
    let mut last: Option<usize> = None;
    let mut totals = [(Counts::default(), false); RUNNERS.len()];
    for line in lines {
        let line = line.trim();
        let is_likely = line.len() < LINE_BYTES_MAX
            && (line.bytes().any(|byte| byte.is_ascii_digit())
                || starts_with_any(line, "FAIL\t|ok "));
        if !is_likely {
            continue;
        }
        let Some((at, total)) = read_line(line) else { continue };
        let (counts, has_parts) = &mut totals[at];
        match total {
            // If one run covers two libraries, one of them may have no tests.
            Total::Whole(Counts { passed: 0, failed: 0 }) => {}
            Total::Whole(whole) => *counts = whole,
            Total::Part(part) if *has_parts => {
                counts.passed += part.passed;
                counts.failed += part.failed;
            }
            Total::Part(part) => *counts = part,
            Total::Passed(passed) => counts.passed = passed,
            Total::Failed(failed) => counts.failed = failed,
            Total::FailedOf(failed) => {
                counts.passed = counts.passed.saturating_sub(failed);
                counts.failed = failed;
            }
        }
        *has_parts = matches!(total, Total::Part(_));
        let is_about_tests = counts.passed + counts.failed > 0;
        if is_about_tests || last.is_none() {
            last = Some(at);
        }
    }
    last.map(|at| totals[at].0).filter(|counts| counts.passed + counts.failed > 0)
}

/// Parses a line with the first runner that recognizes it. Returns that runner's position and the
/// total.
fn read_line(line: &str) -> Option<(usize, Total)> {
    RUNNERS.iter().enumerate().find_map(|(at, read)| Some((at, read(line)?)))
}

/// Parses a number of tests. Limited to 32 bits so that sums cannot overflow.
fn number(text: &str) -> Option<u64> {
    text.parse::<u32>().ok().map(u64::from)
}

fn whole(passed: u64, failed: u64) -> Total {
    Total::Whole(Counts { passed, failed })
}

const PASSED: &str = "passed|succeeded|pass";
const FAILED: &str = "failed|failure|failures|fail|error|errors|timed out";
const OTHERS: &str = "\
    skipped|skip|skips|todo|pending|total|ignored|measured|filtered out|warning|warnings|\
    deselected|xfailed|xpassed|rerun|excluded|invalid|flaky|did not run|interrupted|cancelled|\
    canceled|expected fail";

/// Parses a list such as `1 failed, 12 passed, 13 total`, without other words.
fn tally(text: &str, separators: &[char]) -> Option<Counts> {
    let mut counts = Counts::default();
    let mut is_known = false;
    for part in text.split(separators).map(str::trim).take(12) {
        let (count, word) = part.split_once(' ')?;
        let count = number(count)?;
        // `8 passed (1 slow)`
        let word = word.split(" (").next().unwrap_or_default().trim();
        match word {
            word if is_among(word, PASSED) => counts.passed += count,
            word if is_among(word, FAILED) => counts.failed += count,
            word if is_among(word, OTHERS) => {}
            _ => return None,
        }
        is_known = true;
    }
    is_known.then_some(counts)
}

/// `test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s`
fn cargo(line: &str) -> Option<Total> {
    let rest = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let rest = rest.split("; finished in").next().unwrap_or_default();
    tally(rest.trim_end_matches(';'), &[';']).map(Total::Part)
}

/// `Summary [   0.6s] 9/12 tests run: 8 passed (1 slow), 1 failed, 3 skipped`
fn nextest(line: &str) -> Option<Total> {
    let rest = line.strip_prefix("Summary [")?.split_once(" run: ")?.1;
    // The text in brackets may contain a comma.
    let rest = rest.split_once(" (").map_or_else(
        || rest.to_owned(),
        |(head, tail)| format!("{head}{}", tail.split_once(')').map_or("", |(_, after)| after)),
    );
    tally(&rest, &[',']).map(Total::Whole)
}

/// `===== 3 failed, 12 passed, 1 warning in 0.51s =====`, without the bars if it is quiet
fn pytest(line: &str) -> Option<Total> {
    let (counts, time) = line.trim_matches(['=', ' ']).rsplit_once(" in ")?;
    let time = time.split(' ').next().unwrap_or_default().strip_suffix('s')?;
    time.parse::<f32>().ok()?;
    tally(counts, &[',']).map(Total::Whole)
}

/// `Ran 12 tests in 0.01s`, then `OK` or `FAILED (failures=1, errors=1)`
fn unittest(line: &str) -> Option<Total> {
    if let Some(rest) = line.strip_prefix("Ran ") {
        let (count, rest) = rest.split_once(" test")?;
        return Some(whole(number(count)?, 0)).filter(|_| rest.contains(" in "));
    }
    let rest = line.strip_prefix("FAILED (")?.strip_suffix(')')?;
    let counts = rest.split(", ").map(|part| part.split_once('='));
    let mut failed = 0;
    for part in counts {
        let (what, count) = part?;
        let count = number(count)?;
        failed += if matches!(what, "failures" | "errors") { count } else { 0 };
    }
    Some(Total::FailedOf(failed.max(1)))
}

/// `Tests:       1 failed, 12 passed, 13 total` or `Tests  1 failed | 12 passed (13)`. A test file
/// that fails to load runs no tests, but counts as a failure.
fn jest_and_vitest(line: &str) -> Option<Total> {
    let files = ["Test Suites:", "Test Files "].iter().find_map(|mark| line.strip_prefix(mark));
    if let Some(rest) = files {
        return tally(rest.trim(), &[',', '|']).map(|counts| Total::Failed(counts.failed));
    }
    let rest = line.strip_prefix("Tests:").or_else(|| line.strip_prefix("Tests  "))?;
    tally(rest.trim(), &[',', '|']).map(|counts| match counts {
        Counts { passed, failed: 0 } => Total::Passed(passed),
        counts => Total::Whole(counts),
    })
}

/// `1321 pass` and `0 fail`, `12 passing (3s)` and `1 failing`, `12 passed (3.2s)` and `1 failed`,
/// each on a separate line
fn bun_mocha_and_playwright(line: &str) -> Option<Total> {
    let (count, word) = line.split_once(' ')?;
    let count = number(count)?;
    let is_time = |text: &str| text.starts_with('(') && text.ends_with(')');
    let (word, rest) = word.split_once(' ').unwrap_or((word, "(0s)"));
    match word {
        "pass" | "passing" | "passed" if is_time(rest) => Some(Total::Passed(count)),
        "fail" | "failing" | "failed" if is_time(rest) => Some(Total::Failed(count)),
        _ => None,
    }
}

/// `# pass 4` and `# fail 1`, or with `ℹ`
fn node(line: &str) -> Option<Total> {
    let rest = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ "))?;
    match rest.split_once(' ')? {
        ("pass", count) => number(count).map(Total::Passed),
        ("fail", count) => number(count).map(Total::Failed),
        _ => None,
    }
}

/// `ok | 12 passed | 0 failed (1s)` or `FAILED | 11 passed | 1 failed (1s)`
fn deno(line: &str) -> Option<Total> {
    let rest = line.strip_prefix("ok | ").or_else(|| line.strip_prefix("FAILED | "))?;
    tally(rest, &['|']).map(Total::Whole)
}

/// `--- PASS: TestA (0.00s)` of one test, `ok  \tshop/cart\t0.01s` and `FAIL\tshop/cart [build
/// failed]` of a package; `DONE 12 tests, 1 failure in 0.5s`
fn go(line: &str) -> Option<Total> {
    if let Some(rest) = line.strip_prefix("DONE ") {
        let (tests, rest) = rest.split_once(" tests")?;
        let failed = rest.strip_prefix(", ").and_then(|rest| rest.split_once(" failure"));
        let failed = failed.map_or(Some(0), |(count, _)| number(count.rsplit(' ').next()?))?;
        return Some(whole(number(tests)?.saturating_sub(failed), failed));
    }
    let part = |passed, failed| Some(Total::Part(Counts { passed, failed }));
    match line {
        line if starts_with_any(line, "--- PASS: |ok  \t|ok \t") => part(1, 0),
        line if starts_with_any(line, "--- FAIL: |FAIL\t") => part(0, 1),
        _ => None,
    }
}

/// `12 tests completed, 1 failed`, printed only if some fail
fn gradle(line: &str) -> Option<Total> {
    let (tests, rest) = line.split_once(" tests completed, ")?;
    let failed = number(rest.split_once(" failed")?.0)?;
    Some(whole(number(tests)?.saturating_sub(failed), failed))
}

/// `[INFO] Tests run: 12, Failures: 1, Errors: 0, Skipped: 0`, once per module. A line with the
/// elapsed time is about one class.
fn maven(line: &str) -> Option<Total> {
    let line = ["[INFO] ", "[ERROR] ", "[WARNING] "]
        .iter()
        .find_map(|mark| line.strip_prefix(mark))
        .unwrap_or(line);
    let rest = line.strip_prefix("Tests run: ").filter(|rest| !rest.contains("Time elapsed"))?;
    let mut numbers = rest.split([',', ':']).filter_map(|part| number(part.trim()));
    let (run, failures, errors) = (numbers.next()?, numbers.next()?, numbers.next()?);
    let skipped = numbers.next().unwrap_or(0);
    let failed = failures + errors;
    Some(Total::Part(Counts { passed: run.saturating_sub(failed + skipped), failed }))
}

/// `Passed!  - Failed:     0, Passed:    12, Skipped:     0, Total:    12, Duration: 1 s`, once per
/// project; `Test summary: total: 12, failed: 1, succeeded: 11, skipped: 0, duration: 1.2s`
fn dotnet(line: &str) -> Option<Total> {
    let (rest, is_all) = match line.strip_prefix("Test summary: ") {
        Some(rest) => (rest, true),
        None => {
            (line.split_once("!  - ").filter(|(head, _)| is_among(head, "Passed|Failed"))?.1, false)
        }
    };
    let mut counts = Counts::default();
    for part in rest.split(',').take(4) {
        let (what, count) = part.split_once(':')?;
        match what.trim().to_ascii_lowercase().as_str() {
            "failed" => counts.failed = number(count.trim())?,
            "passed" | "succeeded" => counts.passed = number(count.trim())?,
            _ => {}
        }
    }
    Some(if is_all { Total::Whole(counts) } else { Total::Part(counts) })
}

/// `OK (12 tests, 30 assertions)` or `Tests: 12, Assertions: 30, Failures: 1, Errors: 1.`
fn phpunit(line: &str) -> Option<Total> {
    if let Some(rest) = line.strip_prefix("OK (") {
        return Some(whole(number(rest.split_once(" test")?.0)?, 0));
    }
    let rest = line.strip_prefix("Tests: ").filter(|rest| rest.contains(", Assertions: "))?;
    let (mut tests, mut failed) = (0, 0);
    for part in format!("Tests: {rest}").trim_end_matches('.').split(", ") {
        let (what, count) = part.split_once(": ")?;
        match what {
            "Tests" => tests = number(count)?,
            "Failures" | "Errors" => failed += number(count)?,
            _ => {}
        }
    }
    Some(whole(tests.saturating_sub(failed), failed))
}

/// `12 examples, 1 failure`, `2 doctests, 12 tests, 1 failure, 1 excluded`,
/// `12 runs, 30 assertions, 1 failures, 0 errors, 0 skips`
fn rspec_exunit_and_minitest(line: &str) -> Option<Total> {
    let (mut all, mut failed, mut is_known, mut has_tests) = (0, 0, false, false);
    for part in line.split(", ").take(8) {
        let (count, what) = part.split_once(' ')?;
        let count = number(count)?;
        match what {
            "example" | "examples" | "test" | "tests" | "doctest" | "doctests" | "runs"
            | "property" | "properties" => {
                all += count;
                has_tests = true;
            }
            "failure" | "failures" | "errors" => {
                failed += count;
                is_known = true;
            }
            "error occurred outside of examples" | "errors occurred outside of examples" => {
                failed += count;
            }
            "pending" | "excluded" | "skipped" | "invalid" | "assertions" | "skips" => {}
            _ => return None,
        }
    }
    // Other runners print `4 errors` alone after their total.
    (is_known && has_tests).then(|| whole(all.saturating_sub(failed), failed))
}

/// `91% tests passed, 1 tests failed out of 12`
fn ctest(line: &str) -> Option<Total> {
    let rest = line.split_once("% tests passed, ")?.1;
    let (failed, rest) = rest.split_once(" tests failed out of ")?;
    let failed = number(failed)?;
    Some(whole(number(rest)?.saturating_sub(failed), failed))
}

/// `Executed 12 tests, with 1 failure (0 unexpected) in 0.1 (0.2) seconds`,
/// `✔ Test run with 12 tests in 3 suites passed after 0.01 seconds.`
fn swift(line: &str) -> Option<Total> {
    if let Some(rest) = line.strip_prefix("Executed ") {
        let (tests, rest) = rest.split_once(" test")?;
        let failed = number(rest.split_once("with ")?.1.split_once(" failure")?.0)?;
        return Some(whole(number(tests)?.saturating_sub(failed), failed));
    }
    let rest = line.split_once("Test run with ")?.1;
    let tests = number(rest.split_once(" test")?.0)?;
    if rest.contains(" passed after ") {
        return Some(whole(tests, 0));
    }
    let issues = rest.rsplit_once(" with ")?.1.split_once(" issue")?.0;
    let failed = number(issues)?.clamp(1, tests.max(1));
    Some(whole(tests.saturating_sub(failed), failed))
}

/// `00:05 +12 ~1 -1: Some tests failed.` or `00:05 +12: All tests passed!`
fn flutter(line: &str) -> Option<Total> {
    let (counts, verdict) = line.split_once(": ")?;
    if !starts_with_any(verdict, "All tests passed!|Some tests failed.") {
        return None;
    }
    let count = |sign: char| counts.split(' ').find_map(|part| number(part.strip_prefix(sign)?));
    Some(whole(count('+')?, count('-').unwrap_or(0)))
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
