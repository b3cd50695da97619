//! Tests of parsing commands and their output.

use super::*;
use serde_json::json;

fn run(command: &str, output: &str) -> Run {
    let failed = output.starts_with("Exit code");
    let view = ToolView { tool: "Bash", failed, ..ToolView::default() };
    let output = if failed { json!(output) } else { json!({"stdout": output, "stderr": ""}) };
    Run::of(&view, (&json!({"command": command}), &output), ("/p", 0)).unwrap()
}

fn shown_commits(run: &Run) -> Vec<String> {
    run.commits.iter().map(ToString::to_string).collect()
}

#[test]
fn the_most_significant_program_determines_the_purpose() {
    let cases = [
        ("cd a && cargo test -p x 2>&1 | tail -3", Purpose::Test, "cargo test -p x"),
        ("npm run test:unit -- cart", Purpose::Test, "npm run test:unit -- cart"),
        ("uv run pytest -q tests", Purpose::Test, "uv run pytest -q tests"),
        ("make check", Purpose::Test, "make check"),
        ("yarn typecheck && yarn vitest run", Purpose::Test, "yarn vitest run"),
        ("pnpm exec jest", Purpose::Test, "pnpm exec jest"),
        ("./mvnw -B clean verify", Purpose::Test, "./mvnw -B clean verify"),
        ("./gradlew :app:testDebugUnitTest", Purpose::Test, "./gradlew :app:testDebugUnitTest"),
        ("mvn -B package", Purpose::Build, "mvn -B package"),
        ("npx tsc --noEmit", Purpose::Build, "tsc --noEmit"),
        ("docker compose up -d", Purpose::Effect, "docker compose up -d"),
        ("git status && ls", Purpose::Look, "git status"),
        ("python scripts/load.py", Purpose::Run, "python scripts/load.py"),
    ];
    for (command, purpose, shown) in cases {
        let run = run(command, "");
        assert_eq!((run.purpose, run.shown.as_str()), (purpose, shown), "{command}");
    }
}

#[test]
fn folders_on_a_windows_drive_are_relative_in_every_notation() {
    for to in ["D:/shop/src", "d:/shop/src", "/d/shop/src", "src"] {
        let steps = shell::steps(&format!("cd {to} && go test"));
        assert_eq!(folder(&steps[..1], "", "D:\\shop"), "src", "{to}");
    }
    let steps = shell::steps("cd /d/shop && go test");
    assert_eq!(folder(&steps[..1], "", "D:\\shop"), "");
    assert_eq!(folder(&steps[..1], "", "/home/ada"), "/d/shop");
    let steps = shell::steps("cd D:/shop/src && go test");
    assert_eq!(folder(&steps[..1], "", "/d/shop"), "src");
    let steps = shell::steps("cd //nas/share/shop/src && go test");
    assert_eq!(folder(&steps[..1], "", r"\\nas\share\shop"), "src");
}

#[test]
fn a_failure_hidden_by_a_pipe_is_detected() {
    let hidden = run("cargo test | tail -1", "test result: FAILED. 3 passed; 1 failed; 0 ignored");
    assert!(hidden.has_failed());
    assert_eq!(hidden.result(), "`cargo test`: 1 failed, 3 passed");
    assert!(run("tsc | head", "a.ts(1,2): error TS1005: ';' expected.").has_failed());
    assert!(
        !run("cargo test", "test tells_error ... ok\ntest result: ok. 1 passed; 0 failed")
            .has_failed()
    );
}

#[test]
fn an_incomplete_or_truncated_command_can_end_with_an_operator() {
    assert!(run("cargo test &&", "Exit code 2\nsyntax error").has_failed());
    assert!(!run("cargo test && # and then", "").has_failed());
    assert!(!run(&"cargo test -p a && ".repeat(60), "").has_failed());
    assert!(!run(&format!("set -o pipefail; {}", "cat a | ".repeat(60)), "").has_failed());
}

#[test]
fn a_run_repeats_another_on_the_same_or_a_part() {
    let all = run("cargo test", "");
    let part = run("cargo test cart", "");
    let other = run("cargo test login", "");
    assert!(all.repeats(&part) && part.repeats(&all));
    assert!(!part.repeats(&other) && !all.repeats(&run("npm test", "")));
    assert!(run("npx vitest run a.test.ts", "").repeats(&run("npm test", "")));
}

#[test]
fn commits_and_other_effects_are_described() {
    let commit = run(
        "git add -A && git commit -m x && git push origin main",
        "[main 1a2b3c4] fix: cart\n 1 file changed",
    );
    assert_eq!(shown_commits(&commit), ["1a2b3c4 “fix: cart”"]);
    assert_eq!(commit.effects, ["Pushed to `origin main`"]);
    let quiet = run("git commit -q -m \"$(cat <<'EOF'\nAdd carts\n\nBody\nEOF\n)\"", "");
    assert_eq!(shown_commits(&quiet), ["“Add carts”"]);
    assert_eq!(shown_commits(&run("git commit -qam 'Pin it'", "")), ["“Pin it”"]);
    let view = ToolView { tool: "Bash", commit: "8f14e45fceea167a", ..ToolView::default() };
    let input = json!({"command": "git commit -qm 'Pin it'"});
    let known = Run::of(&view, (&input, &json!({"stdout": ""})), ("/p", 0)).unwrap();
    assert_eq!(shown_commits(&known), ["8f14e45 “Pin it”"]);
    assert_eq!(run("npm install --save zod", "").effects, ["Installed `zod`"]);
    assert_eq!(run("npm install", "").effects, Vec::<String>::new());
    assert_eq!(run("git mv a.rs b.rs", "").effects, ["Moved `a.rs` to `b.rs`"]);
    assert!(run("git commit -m x", "Exit code 1\nnothing to commit").commits.is_empty());
}

#[test]
fn the_exit_code_is_trusted_unless_the_shell_hid_it() {
    let noise = "log: 2 failed, 0 passed\nerror[E0308]: shown by a test";
    for command in ["bun test", "bun test 2>&1", "cd a && bun test && echo done", "bun test > out"]
    {
        let run = run(command, noise);
        assert!(run.has_passed() && !run.has_failed(), "{command}");
    }
    let hidden = ["bun test | tail -3", "bun test || true", "bun test; echo done"];
    for command in hidden {
        assert!(run(command, noise).has_failed(), "{command}");
        let quiet = run(command, "all quiet");
        assert!(!quiet.has_passed() && !quiet.has_failed(), "{command}");
        assert!(run(command, " 12 pass\n 0 fail").has_passed(), "{command}");
    }
    assert!(run("set -o pipefail; bun test | tail -3", noise).has_passed());
    assert!(run("bun test; echo \"exit: $?\"", "noise\nexit: 0").has_passed());
    assert!(run("bun test | tail; echo exit=${PIPESTATUS[0]}", "noise\nexit=1").has_failed());
}

#[test]
fn a_later_step_that_fails_is_not_the_tests_fault() {
    let pushed = run("bun test && git push", "Exit code 1\n 12 pass\n 0 fail\nrejected");
    assert!(pushed.has_passed());
    assert!(run("bun test", "Exit code 1\n 12 pass\n 0 fail\ncoverage too low").has_failed());
    // `grep` exits with 1 when it finds nothing.
    let quiet = run("cargo test | grep FAILED", "Exit code 1");
    assert!(!quiet.has_failed() && !quiet.has_passed());
}

#[test]
fn a_command_that_was_not_run_is_not_a_failure() {
    let view = ToolView { tool: "Bash", failed: true, ..ToolView::default() };
    for text in [
        "<tool_use_error>Sibling tool call errored</tool_use_error>",
        "The user doesn't want to proceed with this tool use.",
    ] {
        let run = Run::of(&view, (&json!({"command": "make"}), &json!(text)), ("/p", 0));
        assert!(run.is_none(), "{text}");
    }
}

#[test]
fn a_command_is_shown_so_that_it_can_be_run_again() {
    let go = run("export PATH=/opt/go/bin:$PATH && cd /p/api && go build ./cmd/ 2>&1 | tail", "");
    assert_eq!(go.whole, "export PATH=/opt/go/bin:$PATH && go build ./cmd/");
    assert_eq!(go.folder, "api");
    assert_eq!(run("cd /p && make test", "").folder, "");
    assert_eq!(run("cd .. && make test", "").folder, "");
    assert_eq!(run("cd /q/web && npm test", "").folder, "/q/web");
}

#[test]
fn a_remote_command_is_classified_by_what_it_runs() {
    let cases = [
        (
            "ssh -i ~/.ssh/k root@h \"nginx -t && systemctl reload nginx\"",
            "ssh -i ~/.ssh/k root@h",
            Purpose::Effect,
        ),
        ("docker compose exec -T web npm test", "docker compose exec -T web", Purpose::Test),
        (
            "kubectl exec -n shop web-1 -- cat /etc/hosts",
            "kubectl exec -n shop web-1 --",
            Purpose::Look,
        ),
        ("ssh h <<'EOF'\nsystemctl restart web\nEOF", "ssh h", Purpose::Effect),
        ("bash -lc 'cargo test'", "", Purpose::Test),
    ];
    for (command, way, purpose) in cases {
        let run = run(command, "");
        assert_eq!((run.way.as_str(), run.purpose), (way, purpose), "{command}");
    }
}

#[test]
fn a_subject_loses_trailers_and_a_pull_request_keeps_its_address() {
    let commit = run("git commit -F m", "[main 1a2b3c4] Fix carts Signed-off-by: Ana Change-Id: 7");
    assert_eq!(shown_commits(&commit), ["1a2b3c4 “Fix carts”"]);
    let request = run("gh pr create --title x", "Creating\nhttps://github.com/a/shop/pull/7");
    assert_eq!(request.effects, ["Ran `gh pr create --title x`: https://github.com/a/shop/pull/7"]);
}

#[test]
fn a_later_run_settles_a_failed_check() {
    let failed = |command: &str| run(command, "Exit code 1\nerror: 1 problem");
    let lint = failed("bun run lint:fix");
    assert!(run("bun run lint", "").settles(&lint));
    assert!(run("bun run lint && bun run test | tail -5", " 3 pass\n 0 fail").settles(&lint));
    assert!(!run("bun run lint || bun run test", " 3 pass\n 0 fail").settles(&lint));
    assert!(!run("bun run lint; bun run test", " 3 pass\n 0 fail").settles(&lint));
    assert!(!run("bun run build", "").settles(&lint));
    let part = failed("go test ./cart/ -run TestTotal");
    assert!(run("go test ./... | grep -v ok", "").settles(&part));
    let absent = run("go build ./cart", "Exit code 127\nbash: go: command not found");
    assert!(run("/opt/go/bin/go build -o cart ./shop", "").settles(&absent));
    assert!(!run("npm run build", "").settles(&absent));
}

#[test]
fn the_verdict_of_the_runner_is_believed_if_the_shell_hid_the_exit_code() {
    let failed = [
        ("go test ./... | tail -3", "ok  \tshop/api\t0.01s\nok  \tshop/cart\t0.01s\nFAIL"),
        ("./gradlew test | tail -3", "BUILD FAILED in 3s\n2 actionable tasks: 2 executed"),
        ("mvn test | tail", "[INFO] BUILD FAILURE\n[INFO] Total time:  1.2 s"),
        ("cargo test | tail -1", "error: test failed, to rerun pass `--lib`"),
        ("mix test | tail -3", "2 tests, 0 failures, 2 invalid"),
        (
            "npx vitest run | tail -4",
            "Test Files  1 passed (1)\nTests  2 passed (2)\nErrors  1 error",
        ),
    ];
    for (command, output) in failed {
        assert!(run(command, output).has_failed(), "{command}");
    }
    assert!(run("gradle test | tail -3", "BUILD SUCCESSFUL in 5s").has_passed());
    assert!(run("mvn test | tail -9", "[INFO] BUILD SUCCESS").has_passed());
    let unknown = [
        ("npx playwright test | tail -1", "  12 passed (30.1s)"),
        ("bun test | grep pass", " 40 pass"),
        ("python scripts/load.py | tail -3", "KeyError: 'user_id'"),
        ("ruby a.rb | tail -3", "a.rb:1: syntax error, unexpected end-of-input"),
        ("mvn package | tail -1", "[ERROR] Plugin maven-jar-plugin could not be resolved"),
    ];
    for (command, output) in unknown {
        let run = run(command, output);
        assert!(!run.has_failed() && !run.has_passed(), "{command}");
    }
}

#[test]
fn a_command_that_prints_a_total_runs_tests() {
    for command in ["./ci.sh | tail -3", "python manage.py test", "mvn package", "ruby a.rb"] {
        let run = run(command, "Ran 12 tests in 0.01s\n\nOK");
        assert_eq!((run.purpose, run.has_passed()), (Purpose::Test, true), "{command}");
    }
    let lint = run("bun run lint", "Ran 12 tests in 0.01s\n\nOK");
    assert_eq!((lint.purpose, lint.counts), (Purpose::Build, None));
    let both = run("make; ./ci.sh", "Ran 12 tests in 0.01s\n\nOK");
    assert_eq!((both.purpose, both.counts), (Purpose::Build, None), "tests of which one?");
    assert_eq!(run("cat log.txt", "Ran 12 tests in 0.01s\n\nOK").purpose, Purpose::Look);
}

#[test]
fn a_run_that_fails_without_a_failed_test_is_not_shown_as_passed() {
    let output = "Exit code 1\nAll files | 70\nTests:       12 passed, 12 total\n\
                  Jest: \"global\" coverage threshold for lines (80%) not met: 70%";
    let run = run("npx jest --coverage", output);
    assert!(run.has_failed() && run.counts.is_none());
}
