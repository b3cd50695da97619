//! Parses the totals that test runners print.
//!
//! A total is a complete line in the format of its runner. Other lines with numbers, such as a log
//! line with "2 failed", are ignored. The last total of an output counts. The totals of runners
//! that print one per package are added up. A skipped test has not passed.
//!
//! If an output is piped through `tail` or `grep`, passed tests are a total only if the number of
//! failed tests is known, too.

use super::text::{is_among, starts_with_any};

/// Numbers of tests, as reported by the runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    pub(super) passed: u64,
    pub(super) failed: u64,
    /// `passed` counts packages, because the runner does not list their tests.
    is_packages: bool,
}

impl Counts {
    fn count(&mut self, has_passed: bool) {
        self.passed += u64::from(has_passed);
        self.failed += u64::from(!has_passed);
    }

    /// `12 passed` or `2 failed, 12 passed`.
    pub(super) fn shown(self) -> String {
        let noun = match (self.is_packages, self.passed) {
            (false, _) => "",
            (true, 1) => " package",
            (true, _) => " packages",
        };
        match self {
            Self { passed, failed: 0, .. } => format!("{passed}{noun} passed"),
            Self { passed, failed, .. } => format!("{failed} failed, {passed}{noun} passed"),
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
    /// The number that passed; a later line has the failures, if there are any.
    PassedAlone(u64),
    /// The number that passed; earlier lines have the failures, if there are any.
    PassedLast(u64),
    /// The number that failed; another line has the passes.
    Failed(u64),
    /// The numbers that failed and were skipped, of those that another line counted.
    NotPassed { failed: u64, skipped: u64 },
    /// Further failures, which the total does not count.
    MoreFailed(u64),
    /// One test, or a package without a result of its tests.
    One { has_passed: bool, is_package: bool },
}

/// What one runner printed so far.
#[derive(Debug, Clone, Copy, Default)]
struct Printed {
    counts: Counts,
    /// The previous line was a part, too.
    has_parts: bool,
    /// The number of failed tests is known.
    is_complete: bool,
    /// Tests since the last package.
    in_package: Counts,
}

/// All runners. The first one that recognizes a line parses it.
const RUNNERS: &[fn(&str) -> Option<Total>] = &[
    cargo,
    nextest,
    pytest,
    unittest,
    jest_and_vitest,
    bun,
    mocha,
    playwright,
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
    robot_and_behave,
];

/// A longer line is not a total.
const LINE_BYTES_MAX: usize = 240;

/// How much of an output is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    /// The shell may have removed the start, as `tail` does.
    End,
    /// The shell may have removed any line, as `grep` does.
    Some,
}

/// The total in an output, if a runner reported any tests.
pub(super) fn total<'o>(lines: impl Iterator<Item = &'o str>, extent: Extent) -> Option<Counts> {
    // The runner that printed last, and the totals of all runners.
    let mut last: Option<usize> = None;
    let mut totals = [Printed::default(); RUNNERS.len()];
    let mut is_list_cut = true;
    for line in lines {
        let line = line.trim();
        let is_likely = line.len() < LINE_BYTES_MAX
            && (line.bytes().any(|byte| byte.is_ascii_digit())
                || starts_with_any(line, "FAIL\t|ok "));
        let read = if is_likely { read_line(line) } else { None };
        let Some((at, total)) = read else {
            // Playwright lists failed tests before its total. `tail` may have removed their number.
            if !line.is_empty() {
                is_list_cut = is_listed_test(line);
            }
            continue;
        };
        let printed = &mut totals[at];
        match total {
            Total::PassedAlone(passed) if extent == Extent::Some => {
                printed.add(Total::Passed(passed));
            }
            Total::PassedLast(passed) if extent == Extent::Some || is_list_cut => {
                printed.add(Total::Passed(passed));
            }
            total => printed.add(total),
        }
        is_list_cut = false;
        let is_about_tests = printed.counts.passed + printed.counts.failed > 0;
        if is_about_tests || last.is_none() {
            last = Some(at);
        }
    }
    let printed = last.map(|at| totals[at])?;
    let Counts { passed, failed, .. } = printed.counts;
    let is_complete = printed.is_complete || extent == Extent::Whole;
    (is_complete && passed + failed > 0).then_some(printed.counts)
}

impl Printed {
    fn add(&mut self, total: Total) {
        let counts = &mut self.counts;
        match total {
            // If one run covers two libraries, one of them may have no tests.
            Total::Whole(Counts { passed: 0, failed: 0, .. }) => {}
            Total::Whole(whole) => *counts = whole,
            Total::Part(part) if self.has_parts => {
                counts.passed += part.passed;
                counts.failed += part.failed;
            }
            Total::Part(part) => *counts = part,
            Total::Passed(passed) | Total::PassedAlone(passed) | Total::PassedLast(passed) => {
                counts.passed = passed;
            }
            Total::Failed(failed) => counts.failed = failed,
            Total::NotPassed { failed, skipped } => {
                counts.passed = counts.passed.saturating_sub(failed + skipped);
                counts.failed = failed;
            }
            Total::MoreFailed(failed) => counts.failed += failed,
            Total::One { has_passed, is_package: false } => {
                counts.count(has_passed);
                self.in_package.count(has_passed);
            }
            // Its tests are listed if they failed or if the run is verbose.
            Total::One { has_passed, is_package: true } => {
                let listed = if has_passed {
                    self.in_package.passed + self.in_package.failed
                } else {
                    self.in_package.failed
                };
                if listed == 0 {
                    counts.count(has_passed);
                    counts.is_packages |= has_passed;
                }
                self.in_package = Counts::default();
            }
        }
        self.has_parts = matches!(total, Total::Part(_));
        self.is_complete |= !matches!(total, Total::Passed(_));
    }
}

/// Matches `[chromium] › cart.spec.ts:3:1 › adds ───`, not the progress of a test that has a mark.
fn is_listed_test(line: &str) -> bool {
    line.contains(" › ") && line.starts_with(|c: char| c == '[' || c.is_alphabetic())
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
    Total::Whole(Counts { passed, failed, ..Counts::default() })
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

/// `Ran 12 tests in 0.01s`, then `OK (skipped=1)` or `FAILED (failures=1, errors=1)`
fn unittest(line: &str) -> Option<Total> {
    if let Some(rest) = line.strip_prefix("Ran ") {
        let (count, rest) = rest.split_once(" test")?;
        return Some(whole(number(count)?, 0)).filter(|_| rest.contains(" in "));
    }
    let (rest, has_failed) = match line.strip_prefix("FAILED (") {
        Some(rest) => (rest, true),
        None => (line.strip_prefix("OK (")?, false),
    };
    let (mut failed, mut skipped) = (0, 0);
    for part in rest.strip_suffix(')')?.split(", ") {
        let (what, count) = part.split_once('=')?;
        match what {
            "failures" | "errors" => failed += number(count)?,
            "skipped" | "expected failures" => skipped += number(count)?,
            _ => {}
        }
    }
    Some(Total::NotPassed { failed: failed.max(u64::from(has_failed)), skipped })
}

/// `Tests:       1 failed, 12 passed, 13 total` or `Tests  1 failed | 12 passed (13)`. A test file
/// that fails to load runs no tests, but counts as a failure. So does `Errors  1 error`, which no
/// test caught.
fn jest_and_vitest(line: &str) -> Option<Total> {
    let files = ["Test Suites:", "Test Files "].iter().find_map(|mark| line.strip_prefix(mark));
    if let Some(rest) = files {
        return tally(rest.trim(), &[',', '|']).map(|counts| Total::Failed(counts.failed));
    }
    if let Some(rest) = line.strip_prefix("Errors  ") {
        return tally(rest.trim(), &['|']).map(|counts| Total::MoreFailed(counts.failed));
    }
    let rest = line.strip_prefix("Tests:").or_else(|| line.strip_prefix("Tests  "))?;
    tally(rest.trim(), &[',', '|']).map(|counts| match counts {
        Counts { passed, failed: 0, .. } => Total::Passed(passed),
        counts => Total::Whole(counts),
    })
}

/// `1321 pass` and `0 fail`
fn bun(line: &str) -> Option<Total> {
    match line.split_once(' ')? {
        (count, "pass") => number(count).map(Total::Passed),
        (count, "fail") => number(count).map(Total::Failed),
        _ => None,
    }
}

/// `12 passing (3s)` and `1 failing`
fn mocha(line: &str) -> Option<Total> {
    match line.split_once(' ')? {
        (count, "failing") => number(count).map(Total::Failed),
        (count, rest) => {
            number(count).filter(|_| is_timed(rest, "passing")).map(Total::PassedAlone)
        }
    }
}

/// `1 failed`, the names of the failed tests, and `12 passed (3.2s)`
fn playwright(line: &str) -> Option<Total> {
    match line.split_once(' ')? {
        (count, "failed") => number(count).map(Total::Failed),
        (count, rest) => number(count).filter(|_| is_timed(rest, "passed")).map(Total::PassedLast),
    }
}

/// Matches `passed (3.2s)`.
fn is_timed(text: &str, word: &str) -> bool {
    let time = text.strip_prefix(word).map(str::trim);
    time.is_some_and(|time| time.starts_with('(') && time.ends_with(')'))
}

/// `# pass 4` and `# fail 1`, or with `ℹ`
fn node(line: &str) -> Option<Total> {
    let rest = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ "))?;
    match rest.split_once(' ')? {
        ("pass", count) => number(count.trim()).map(Total::Passed),
        ("fail", count) => number(count.trim()).map(Total::Failed),
        _ => None,
    }
}

/// `ok | 12 passed | 0 failed (1s)` or `FAILED | 11 passed | 1 failed (1s)`
fn deno(line: &str) -> Option<Total> {
    let rest = line.strip_prefix("ok | ").or_else(|| line.strip_prefix("FAILED | "))?;
    tally(rest, &['|']).map(Total::Whole)
}

/// `--- PASS: TestA (0.00s)` of one test, `ok  \tshop/cart\t0.01s` and `FAIL\tshop/cart [build
/// failed]` of a package; `DONE 12 tests, 1 skipped, 1 failure in 0.5s`. A part of a test, as
/// `TestA/empty`, counts with its test.
fn go(line: &str) -> Option<Total> {
    if let Some(rest) = line.strip_prefix("DONE ") {
        let (tests, rest) = rest.split_once(" test")?;
        let count = |what: &str| rest.split(", ").find_map(|part| number(part.split_once(what)?.0));
        let (failed, skipped) = (count(" failure").unwrap_or(0), count(" skipped").unwrap_or(0));
        return Some(whole(number(tests)?.saturating_sub(failed + skipped), failed));
    }
    let one = |has_passed, is_package| Some(Total::One { has_passed, is_package });
    match line {
        line if starts_with_any(line, "--- PASS: |--- FAIL: ") => {
            let name = line.split(' ').nth(2).filter(|name| !name.contains('/'))?;
            one(line.starts_with("--- PASS: "), name.is_empty())
        }
        line if starts_with_any(line, "ok  \t|ok \t") => one(true, true),
        line if line.starts_with("FAIL\t") => one(false, true),
        _ => None,
    }
}

/// `12 tests completed, 1 failed, 2 skipped`, printed once per module, only if some fail
fn gradle(line: &str) -> Option<Total> {
    let (tests, rest) =
        line.split_once(" tests completed, ").or_else(|| line.split_once(" test completed, "))?;
    let (failed, rest) = rest.split_once(" failed")?;
    let skipped = rest.strip_prefix(", ").and_then(|rest| number(rest.strip_suffix(" skipped")?));
    let failed = number(failed)?;
    let passed = number(tests)?.saturating_sub(failed + skipped.unwrap_or(0));
    Some(Total::Part(Counts { passed, failed, ..Counts::default() }))
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
    Some(Total::Part(Counts {
        passed: run.saturating_sub(failed + skipped),
        failed,
        ..Counts::default()
    }))
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

/// `OK (12 tests, 30 assertions)` or `Tests: 12, Assertions: 30, Failures: 1, Skipped: 1.`
fn phpunit(line: &str) -> Option<Total> {
    if let Some(rest) = line.strip_prefix("OK (") {
        return Some(whole(number(rest.split_once(" test")?.0)?, 0));
    }
    let rest = line.strip_prefix("Tests: ").filter(|rest| rest.contains(", Assertions: "))?;
    let (mut tests, mut failed, mut skipped) = (0, 0, 0);
    for part in format!("Tests: {rest}").trim_end_matches('.').split(", ") {
        let (what, count) = part.split_once(": ")?;
        match what {
            "Tests" => tests = number(count)?,
            "Failures" | "Errors" => failed += number(count)?,
            "Skipped" | "Incomplete" => skipped += number(count)?,
            _ => {}
        }
    }
    Some(whole(tests.saturating_sub(failed + skipped), failed))
}

/// `12 examples, 1 failure`, `2 doctests, 12 tests, 1 failure, 1 excluded`,
/// `12 runs, 30 assertions, 1 failures, 0 errors, 0 skips`. `invalid` tests failed to set up.
fn rspec_exunit_and_minitest(line: &str) -> Option<Total> {
    let (mut all, mut failed, mut is_known, mut has_tests) = (0, 0, false, false);
    let mut skipped = 0;
    for part in line.split(", ").take(8) {
        let (count, what) = part.split_once(' ')?;
        let count = number(count)?;
        match what {
            "example" | "examples" | "test" | "tests" | "doctest" | "doctests" | "runs"
            | "property" | "properties" | "spec" | "specs" => {
                all += count;
                has_tests = true;
            }
            "failure" | "failures" | "errors" => {
                failed += count;
                is_known = true;
            }
            // No example ran.
            "error occurred outside of examples" | "errors occurred outside of examples" => {
                all += count;
                failed += count;
            }
            "invalid" => failed += count,
            "pending" | "excluded" | "skipped" | "skips" | "pendings" | "omissions"
            | "pending spec" | "pending specs" => skipped += count,
            "assertions" | "notifications" => {}
            _ => return None,
        }
    }
    // Other runners print `4 errors` alone after their total.
    (is_known && has_tests).then(|| whole(all.saturating_sub(failed + skipped), failed))
}

/// `91% tests passed, 1 tests failed out of 12` or, since version 4, `100% tests passed out of 12`
fn ctest(line: &str) -> Option<Total> {
    let rest = line.split_once("% tests passed")?.1;
    let (failed, rest) = rest.split_once(" out of ")?;
    let failed = match failed.strip_prefix(", ") {
        Some(failed) => number(failed.split_once(" test")?.0)?,
        None => 0,
    };
    Some(whole(number(rest)?.saturating_sub(failed), failed))
}

/// `Executed 12 tests, with 1 test skipped and 1 failure (0 unexpected) in 0.1 (0.2) seconds`,
/// `✔ Test run with 12 tests in 3 suites passed after 0.01 seconds.`
fn swift(line: &str) -> Option<Total> {
    if let Some(rest) = line.strip_prefix("Executed ") {
        let (tests, rest) = rest.split_once(" test")?;
        let rest = rest.split_once("with ")?.1.split_once(" failure")?.0;
        let (skipped, failed) = rest.split_once(" skipped and ").unwrap_or(("0 ", rest));
        let (skipped, failed) = (number(skipped.split(' ').next()?)?, number(failed)?);
        return Some(whole(number(tests)?.saturating_sub(failed + skipped), failed));
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

/// `12 tests, 11 passed, 1 failed` or `11 scenarios passed, 1 failed, 0 skipped`
fn robot_and_behave(line: &str) -> Option<Total> {
    let (count, rest) = line.split_once(' ')?;
    let words = ["tests, ", "test, ", "scenarios passed, ", "scenario passed, "];
    let (word, rest) = words.iter().find_map(|word| Some((*word, rest.strip_prefix(word)?)))?;
    let mut counts = tally(rest, &[','])?;
    if word.starts_with("scenario") {
        counts.passed = number(count)?;
    }
    number(count).map(|_| Total::Whole(counts))
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
