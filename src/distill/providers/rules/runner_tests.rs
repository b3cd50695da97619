//! One output per runner and outcome, in the format of the runner, with the expected total.

use super::*;

/// Runner, output, expected total.
const OUTPUTS: &[(&str, &str, &str)] = &[
    (
        "cargo",
        "running 12 tests\ntest cart::adds ... ok\n\n\
         test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in \
         0.02s\n\n     \
         Running tests/api.rs\n\n\
         test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished \
         in 0.10s",
        "1 failed, 15 passed",
    ),
    (
        "Bun",
        " 606 pass\n 24 fail\n 16 errors\n 3713 expect() calls\n\
         Ran 630 tests across 96 files. [11.66s]",
        "24 failed, 606 passed",
    ),
    ("nextest", "     Summary [   0.612s] 9 tests run: 9 passed, 0 skipped", "9 passed"),
    (
        "nextest",
        "     Summary [   6.881s] 35/40 tests run: 34 passed (1 slow, 1 flaky), 1 failed, 110 \
         skipped\n\
         error: test run failed",
        "1 failed, 34 passed",
    ),
    (
        "pytest",
        "tests/test_cart.py ..F\n===== 3 failed, 12 passed, 1 warning in 0.51s =====",
        "3 failed, 12 passed",
    ),
    ("pytest", "...\n12 passed, 2 skipped in 61.20s (0:01:01)", "12 passed"),
    ("pytest", "=== 1 error in 0.12s ===", "1 failed, 0 passed"),
    ("unittest", "....\nRan 12 tests in 0.004s\n\nOK (skipped=1)", "11 passed"),
    ("unittest", "Ran 12 tests in 0.004s\n\nFAILED (failures=1, errors=1)", "2 failed, 10 passed"),
    (
        "Jest",
        "Test Suites: 1 failed, 3 passed, 4 total\n\
         Tests:       1 failed, 2 skipped, 12 passed, 15 total\nSnapshots:   0 total",
        "1 failed, 12 passed",
    ),
    (
        "Jest, a file that does not load",
        "Test Suites: 1 failed, 3 passed, 4 total\nTests:       12 passed, 12 total",
        "1 failed, 12 passed",
    ),
    (
        "Vitest",
        " Test Files  2 passed (2)\n      Tests  12 passed | 1 skipped (13)\n   Duration  1.2s",
        "12 passed",
    ),
    (
        "Vitest",
        " Test Files  1 failed | 2 passed (3)\n      Tests  1 failed | 12 passed (13)",
        "1 failed, 12 passed",
    ),
    (
        "Vitest, an error outside of tests",
        " Test Files  1 passed (1)\n      Tests  2 passed (2)\n     Errors  1 error",
        "1 failed, 2 passed",
    ),
    (
        "Bun",
        "src/retry.test.ts:\nlog: batch done, 2 failed, 0 passed\n\n 1321 pass\n 3 skip\n \
         0 fail\n 2903 expect() calls\nRan 1324 tests across 85 files. [2.31s]",
        "1321 passed",
    ),
    ("Bun", " 40 pass\n 2 fail\nRan 42 tests across 3 files. [120.00ms]", "2 failed, 40 passed"),
    (
        "Mocha",
        "  12 passing (3s)\n  2 pending\n  1 failing\n\n  1) cart adds:",
        "1 failed, 12 passed",
    ),
    (
        "Playwright",
        "  1 failed\n    [chromium] › cart.spec.ts:3:1\n  12 passed (30.1s)",
        "1 failed, 12 passed",
    ),
    (
        "node --test",
        "# tests 5\n# suites 1\n# pass 4\n# fail 1\n# cancelled 0",
        "1 failed, 4 passed",
    ),
    ("node --test", "ℹ tests 5\nℹ pass 5\nℹ fail 0", "5 passed"),
    ("tape", "1..2\n# tests 2\n# pass  1\n# fail  1", "1 failed, 1 passed"),
    ("Deno", "ok | 12 passed | 0 failed (1s)", "12 passed"),
    ("Deno", "FAILED | 11 passed | 1 failed (1s)", "1 failed, 11 passed"),
    (
        "go",
        "--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\n    cart_test.go:9: got 3",
        "1 failed, 1 passed",
    ),
    (
        "go",
        "ok  \tshop/cart\t0.012s\nok  \tshop/api\t(cached)\n?   \tshop/cmd\t[no test files]",
        "2 packages passed",
    ),
    (
        "go",
        "ok  \tshop/cart\t0.012s\nFAIL\tshop/api [build failed]\nFAIL",
        "1 failed, 1 package passed",
    ),
    (
        "go, a part of a test",
        "--- FAIL: TestB (0.00s)\n    --- FAIL: TestB/empty (0.00s)\n        a_test.go:4: bad\n\
         FAIL\nFAIL\tshop\t0.002s\nFAIL",
        "1 failed, 0 passed",
    ),
    (
        "go, verbose",
        "--- PASS: TestA (0.00s)\n--- PASS: TestB (0.00s)\n    --- PASS: TestB/empty (0.00s)\n\
         PASS\nok  \tshop\t0.002s\n--- PASS: TestC (0.00s)\npanic: no database\n\
         FAIL\tshop/api\t0.004s",
        "1 failed, 3 passed",
    ),
    ("gotestsum", "DONE 12 tests, 1 skipped, 1 failure in 0.503s", "1 failed, 10 passed"),
    ("Gradle", "1 test completed, 1 failed", "1 failed, 0 passed"),
    (
        "Gradle, two modules",
        "12 tests completed, 1 failed, 2 skipped\n\n3 tests completed, 1 failed",
        "2 failed, 11 passed",
    ),
    ("Gradle", "12 tests completed, 1 failed\n\nBUILD FAILED in 3s", "1 failed, 11 passed"),
    (
        "Maven",
        "[INFO] Tests run: 4, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s -- in \
         CartTest\n\
         [INFO] Results:\n[INFO] Tests run: 12, Failures: 0, Errors: 0, Skipped: 2\n\
         [INFO] BUILD SUCCESS",
        "10 passed",
    ),
    ("Maven", "[ERROR] Tests run: 12, Failures: 1, Errors: 1, Skipped: 0", "2 failed, 10 passed"),
    (
        "dotnet",
        "Passed!  - Failed:     0, Passed:    12, Skipped:     0, Total:    12, Duration: 1 s - \
         A.dll\n\
         Failed!  - Failed:     1, Passed:     3, Skipped:     0, Total:     4, Duration: 1 s - \
         B.dll",
        "1 failed, 15 passed",
    ),
    (
        "dotnet",
        "Test summary: total: 12, failed: 0, succeeded: 12, skipped: 0, duration: 1.2s",
        "12 passed",
    ),
    ("PHPUnit", "OK (12 tests, 30 assertions)", "12 passed"),
    (
        "PHPUnit",
        "FAILURES!\nTests: 12, Assertions: 30, Failures: 1, Errors: 1.",
        "2 failed, 10 passed",
    ),
    ("PHPUnit", "Tests: 2, Assertions: 1, Skipped: 1.", "1 passed"),
    (
        "RSpec, a file that does not load",
        "0 examples, 0 failures, 1 error occurred outside of examples",
        "1 failed, 0 passed",
    ),
    ("RSpec", "Finished in 0.1 seconds\n12 examples, 1 failure, 1 pending", "1 failed, 10 passed"),
    ("ExUnit", "2 doctests, 12 tests, 0 failures, 1 excluded", "13 passed"),
    ("ExUnit", "12 tests, 1 failure", "1 failed, 11 passed"),
    ("ExUnit, a set-up that fails", "2 tests, 0 failures, 2 invalid", "2 failed, 0 passed"),
    ("minitest", "2 runs, 0 assertions, 0 failures, 0 errors, 1 skips", "1 passed"),
    (
        "test-unit",
        "3 tests, 1 assertions, 1 failures, 1 errors, 0 pendings, 0 omissions, 0 notifications",
        "2 failed, 1 passed",
    ),
    ("Jasmine", "3 specs, 1 failure, 1 pending spec", "1 failed, 1 passed"),
    ("Robot Framework", "2 tests, 1 passed, 1 failed", "1 failed, 1 passed"),
    (
        "behave",
        "1 feature passed, 0 failed, 0 skipped\n3 scenarios passed, 0 failed, 1 skipped\n\
         9 steps passed, 0 failed, 2 skipped",
        "3 passed",
    ),
    ("minitest", "12 runs, 30 assertions, 1 failures, 1 errors, 0 skips", "2 failed, 10 passed"),
    ("ctest", "91% tests passed, 1 tests failed out of 12", "1 failed, 11 passed"),
    ("ctest", "100% tests passed, 0 tests failed out of 12", "12 passed"),
    ("ctest 4", "100% tests passed out of 2\n\nTotal Test time (real) =   0.01 sec", "2 passed"),
    (
        "swift, skipped",
        "Executed 3 tests, with 1 test skipped and 1 failure (0 unexpected) in 0.1 (0.1) seconds",
        "1 failed, 1 passed",
    ),
    (
        "swift",
        "Executed 4 tests, with 0 failures (0 unexpected) in 0.1 (0.1) seconds\n\
         Executed 12 tests, with 1 failure (0 unexpected) in 0.1 (0.2) seconds",
        "1 failed, 11 passed",
    ),
    (
        "swift, both libraries",
        "✔ Test run with 12 tests in 3 suites passed after 0.010 seconds.\n\
         Executed 0 tests, with 0 failures (0 unexpected) in 0.0 (0.0) seconds",
        "12 passed",
    ),
    (
        "swift",
        "✘ Test run with 12 tests failed after 0.1 seconds with 2 issues.",
        "2 failed, 10 passed",
    ),
    ("flutter", "00:01 +3: cart adds\n00:05 +12 ~1: All tests passed!", "12 passed"),
    ("flutter", "00:05 +12 -1: Some tests failed.", "1 failed, 12 passed"),
    (
        "two runs: the last one counts",
        "3 failed, 9 passed in 0.5s\n\n12 passed in 0.4s",
        "12 passed",
    ),
];

#[test]
fn the_total_of_every_runner_is_read() {
    for (runner, output, expected) in OUTPUTS {
        let counts = total(output.lines(), Extent::End).map(Counts::shown);
        assert_eq!(counts.as_deref(), Some(*expected), "{runner}: {output}");
    }
}

#[test]
fn other_lines_with_numbers_are_not_totals() {
    for output in [
        "compiled 3 files\n0 passed",
        "retry: 2 failed, 0 passed, giving up",
        "12 passed through the gate",
        "Tests are run with 3 failed attempts",
        "3 fail because of the cart",
        "3 examples, all good",
        "OK (see above)",
        "Ran 3 migrations",
        "Executed 3 statements",
        "",
    ] {
        assert_eq!(total(output.lines(), Extent::End), None, "{output}");
    }
}

#[test]
fn passed_tests_alone_are_no_total_if_lines_may_be_missing() {
    let cases = [
        (Extent::End, "    [chromium] › cart.spec.ts:3:1 › adds ──\n  12 passed (30.1s)"),
        (Extent::End, "  12 passed (30.1s)"),
        (Extent::Some, "  12 passed (30.1s)"),
        (Extent::Some, "  12 passing (3s)"),
        (Extent::Some, " 40 pass"),
        (Extent::Some, "# tests 5\n# pass 4"),
        (Extent::End, "Tests:       12 passed, 12 total\nSnapshots:   0 total"),
        (Extent::End, "      Tests  12 passed (12)\n   Duration  1.2s"),
    ];
    for (extent, output) in cases {
        assert_eq!(total(output.lines(), extent), None, "{output}");
        assert!(total(output.lines(), Extent::Whole).is_some(), "{output}");
    }
    let listed = "  ✓  3 [chromium] › cart.spec.ts:3:1 › adds (5ms)\n\n  3 passed (0.6s)";
    assert_eq!(total(listed.lines(), Extent::End).map(Counts::shown).as_deref(), Some("3 passed"));
}
