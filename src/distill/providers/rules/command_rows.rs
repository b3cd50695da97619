//! Observations about commands: checks that still fail, failures that are resolved, and which
//! command to use instead of another.

use super::commands::{Purpose, Run};
use super::evidence::Detour;
use super::parsed_turn::ParsedTurn;
use super::reply::Observation;
use super::text::{TITLE_CHARS_MAX, clip, code, contains_any, title};
use claude_mem_memory::context::WORKS_HERE;

/// Longer commands are shortened in titles.
const WRONG_CHARS_MAX: usize = 30;
const RIGHT_CHARS_MAX: usize = 44;

/// Separates the command from the error in the title of a failure.
const FAILS: &str = " fails: ";

/// Checks that still fail. Each one replaces the observation of an earlier turn about the same
/// program.
pub(super) fn failures<'s>(parsed: &'s ParsedTurn<'_>) -> impl Iterator<Item = Observation> + 's {
    let reports_passing_tests = reports_passing_tests(parsed);
    let is_open = move |run: &&Run| run.purpose != Purpose::Test || !reports_passing_tests;
    parsed.evidence.failures().into_iter().filter(is_open).take(2).map(|run| {
        let essence = run.fault.as_ref().map_or("", |fault| fault.essence.as_str());
        let mut facts = vec![clip(&run.result(), 240)];
        if run.counts.is_some() && !essence.is_empty() {
            facts.push(clip(essence, 240));
        }
        let shown = code(&run.shown);
        let room = TITLE_CHARS_MAX.saturating_sub(shown.chars().count() + FAILS.len());
        let title = match (run.counts, essence.chars().count()) {
            (_, 8..) if essence.chars().count() <= room => format!("{shown}{FAILS}{essence}"),
            (Some(counts), _) => format!("{shown}{FAILS}{}", counts.shown()),
            _ => title(&format!("{shown}{FAILS}{essence}")),
        };
        Observation {
            corrects: earlier_failures(parsed, |shown| run.verdict_on_shown(shown).is_some()),
            title,
            subtitle: "Not seen to pass again in this turn".to_owned(),
            facts,
            concepts: vec!["gotcha".to_owned()],
            ..Observation::default()
        }
    })
}

/// Whether the last message reports that the tests pass. A failed run then covered only a part, or
/// failed on purpose.
fn reports_passing_tests(parsed: &ParsedTurn<'_>) -> bool {
    let green = "\
        tests pass|tests are green|all green|suite green|suite is green|suite passes|all pass|\
        tests all pass|\
        测试通过|测试全部通过|\
        тесты проходят|тесты прошли|\
        testler geçiyor|testler geçti";
    parsed.answer.statements.iter().any(|statement| {
        let lower = statement.text.to_lowercase();
        contains_any(&lower, green)
            && !contains_any(&lower, "fail|not all|except|失败|не все|hariç")
    })
}

/// Titles of failures from earlier turns that a run in this turn refutes.
pub(super) fn withdrawn(parsed: &ParsedTurn<'_>) -> Vec<String> {
    let runs = &parsed.evidence.runs;
    earlier_failures(parsed, |shown| {
        runs.iter().rev().find_map(|run| run.verdict_on_shown(shown)) == Some(true)
    })
}

fn earlier_failures(parsed: &ParsedTurn<'_>, is_meant: impl Fn(&str) -> bool) -> Vec<String> {
    let mut titles: Vec<String> = Vec::new();
    for line in parsed.digest.lines() {
        let Some((_, title)) = line.split_once(": ") else { continue };
        let shown = title.strip_prefix('`').and_then(|rest| rest.split_once(&format!("`{FAILS}")));
        if shown.is_some_and(|(shown, _)| is_meant(shown))
            && !titles.iter().any(|known| known == title)
        {
            titles.push(title.to_owned());
        }
    }
    titles
}

/// Which command to use, and which one to avoid.
pub(super) fn detours<'s>(parsed: &'s ParsedTurn<'_>) -> impl Iterator<Item = Observation> + 's {
    // Skip a title that would name the same single word twice.
    let is_useful = |detour: &Detour<'_>| {
        let (wrong, right) = shown_pair(&detour.wrong.core, &detour.right.core);
        wrong != right || wrong.contains(' ')
    };
    let detours = parsed.evidence.detours().into_iter().filter(is_useful).take(2);
    detours.map(|Detour { wrong, why, right }| {
        let place = if right.folder.is_empty() {
            String::new()
        } else {
            format!(" in {}", code(&right.folder))
        };
        let works = if right.has_passed() { "Works" } else { "Runs" };
        Observation {
            title: detour_title(&wrong.core, why, &right.core),
            subtitle: clip(why, 160),
            facts: vec![
                format!("{works}: {}{place}", code(&right.whole)),
                format!("Fails: {}: {}", code(&wrong.whole), clip(why, 160)),
            ],
            concepts: vec!["gotcha".to_owned()],
            ..Observation::default()
        }
    })
}

/// Formats `Use B, not A: why`, shortened to fit a title.
fn detour_title(wrong: &str, why: &str, right: &str) -> String {
    let (wrong, right) = shown_pair(wrong, right);
    let (wrong, right) = (code(&wrong), code(&right));
    let fits = |text: &String| text.chars().count() <= TITLE_CHARS_MAX;
    let same = wrong == right;
    let all = if same {
        format!("{wrong}{FAILS}{why}")
    } else {
        format!("Use {right}, not {wrong}: {why}")
    };
    let short = if same {
        format!("{wrong} works in another form")
    } else {
        format!("Use {right}, not {wrong}")
    };
    Some(all).filter(fits).unwrap_or(short)
}

/// Two commands as a title shows them: whole if they are short, else by their first words and what
/// differs.
fn shown_pair(wrong: &str, right: &str) -> (String, String) {
    if wrong.chars().count() <= WRONG_CHARS_MAX && right.chars().count() <= RIGHT_CHARS_MAX {
        return (wrong.to_owned(), right.to_owned());
    }
    let words = [wrong, right].map(|command| command.split(' ').collect::<Vec<_>>());
    let [few, many] = &words;
    let start = few.iter().zip(many).take_while(|(one, other)| one == other).count();
    let rest = few.len().min(many.len()) - start;
    let ends = few.iter().rev().zip(many.iter().rev());
    let end = ends.take(rest).take_while(|(one, other)| one == other).count();
    let shown = |words: &[&str], chars_max: usize| {
        let own = words[start..words.len() - end].join(" ");
        let before = words[..start].join(" ");
        match (start, own.is_empty()) {
            (0 | 1, _) => head(&words.join(" "), chars_max),
            (_, true) => head(&before, chars_max),
            (_, false) => {
                let first = head(&before, chars_max / 2);
                let gap = if first.len() < before.len() { " … " } else { " " };
                format!("{first}{gap}{}", head(&own, chars_max * 2 / 3))
            }
        }
    };
    (shown(few, WRONG_CHARS_MAX), shown(many, RIGHT_CHARS_MAX))
}

/// The first words of a command.
fn head(command: &str, chars_max: usize) -> String {
    let mut head = String::new();
    for word in command.trim_end_matches('…').split(' ') {
        if !head.is_empty() && head.chars().count() + word.chars().count() >= chars_max {
            break;
        }
        if !head.is_empty() {
            head.push(' ');
        }
        head.push_str(word);
    }
    clip(&head, chars_max).trim_end_matches('…').to_owned()
}

/// The commands that succeeded, as one fact.
pub(super) fn works_here(parsed: &ParsedTurn<'_>) -> Option<String> {
    let works = parsed.evidence.works_here();
    (!works.is_empty()).then(|| format!("{WORKS_HERE}{}", works.join(", ")))
}

/// The same as an observation, for a turn that has no other.
pub(super) fn works_here_alone(parsed: &ParsedTurn<'_>) -> Option<Observation> {
    let works = parsed.evidence.works_here();
    let first = works.first()?;
    Some(Observation {
        title: title(&format!("{WORKS_HERE}{first}")),
        facts: vec![works_here(parsed)?],
        concepts: vec!["how-it-works".to_owned()],
        ..Observation::default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::providers::rules::extract;
    use crate::turn_prompt::{ToolView, Turn};
    use claude_mem_core::settings::Verbosity;
    use claude_mem_memory::modes::Mode;

    /// The reply to a turn that ran these commands. An output that starts with `Exit code` is a
    /// failure; a command that starts with `edit ` is an edit.
    fn reply(runs: &[(&str, &str)], digest: Option<&str>) -> String {
        let texts: Vec<(String, String, bool)> = runs
            .iter()
            .map(|(command, output)| {
                let failed = output.starts_with("Exit code");
                let output = if failed {
                    (*output).to_owned()
                } else {
                    json!({"stdout": output}).to_string()
                };
                let input = match command.strip_prefix("edit ") {
                    Some(path) => json!({"file_path": path, "old_string": "a", "new_string": "b"}),
                    None => json!({"command": command}),
                };
                (input.to_string(), output, failed)
            })
            .collect();
        let tools =
            texts.iter().zip(runs).map(|((input, output, failed), (command, _))| ToolView {
                tool: if command.starts_with("edit ") { "Edit" } else { "Bash" },
                input,
                output,
                failed: *failed,
                cwd: "/p",
                ..ToolView::default()
            });
        let turn =
            Turn { cwd: "/p", tools: tools.collect(), is_over: true, digest, ..Turn::default() };
        extract(&turn, &Mode::code(), Verbosity::Normal)
    }

    #[test]
    fn a_detour_names_the_working_and_the_failing_command() {
        let cases = [
            (
                ("wrap bun run test", "Exit code 2\nerror: unrecognized subcommand 'bun'"),
                ("bun run test", " 12 pass\n 0 fail"),
                "Use `bun run test`, not `wrap bun run test`: unrecognized subcommand 'bun'",
            ),
            (
                ("go build ./cmd", "Exit code 127\n/bin/bash: line 1: go: command not found"),
                ("PATH=/opt/go/bin:$PATH go build ./cmd", ""),
                "Use `PATH=/opt/go/bin:$PATH go build ./cmd`, not `go build ./cmd`: go: command \
                 not found",
            ),
            (
                ("make pano", "Exit code 127\nbash: make: komut bulunamadı"),
                ("gmake pano", ""),
                "Use `gmake pano`, not `make pano`: bash: make: komut bulunamadı",
            ),
            (
                ("make отчёт", "Exit code 127\nbash: make: команда не найдена"),
                ("gmake отчёт", ""),
                "Use `gmake отчёт`, not `make отчёт`: bash: make: команда не найдена",
            ),
            (
                ("make 报告", "Exit code 127\nbash: make: 未找到命令"),
                ("gmake 报告", ""),
                "Use `gmake 报告`, not `make 报告`: bash: make: 未找到命令",
            ),
        ];
        for (wrong, right, title) in cases {
            let reply = reply(&[wrong, right], None);
            assert!(reply.contains(&format!("<title>{title}</title>")), "{title}\n{reply}");
        }
    }

    #[test]
    fn more_verbose_output_is_not_a_detour() {
        let wrong = ("git stash", "Exit code 1\nerror: could not write index");
        assert!(!reply(&[wrong, ("GIT_TRACE=1 git stash", "")], None).contains("Use `"));
    }

    #[test]
    fn a_long_command_is_called_by_what_differs() {
        let host = "shop secret set HOST --body '203.0.113.7' --of warehouse";
        let cases = [
            (
                format!("{host} --repo example/warehouse-and-shop"),
                host.to_owned(),
                "Use `shop secret set HOST --body '203.0.113.7'`, not `shop secret set … --repo`",
            ),
            (
                host.to_owned(),
                format!("SHOP_REGION=eu-central-1-b {host}"),
                "Use `SHOP_REGION=eu-central-1-b shop secret set`, not `shop secret set HOST --body`",
            ),
            (
                host.to_owned(),
                host.replace(" --body", " --of example/warehouse --body"),
                "Use `shop secret set HOST --of example/warehouse`, not `shop secret set HOST`",
            ),
        ];
        for (wrong, right, title) in cases {
            let refused = "Exit code 1\nerror: unknown option";
            let reply = reply(&[(&wrong, refused), (&right, "ok")], None);
            assert!(reply.contains(&format!("<title>{title}")), "{title}\n{reply}");
        }
        let refused = ("git stash", "Exit code 1\nerror: could not write index");
        assert!(!reply(&[refused, ("git stash list", "")], None).contains("git stash list"));
    }

    #[test]
    fn a_failed_git_hook_is_not_recorded_as_a_fix() {
        let failed = "Exit code 1\nerror: Item 3 failed";
        let fixed = |command| {
            let runs = [(command, failed), ("edit /p/cart.rs", ""), (command, "ok")];
            reply(&runs, None).contains("Fixed on the way")
        };
        assert!(fixed("./pack --all"));
        let missing = "Exit code 1\nerror: .venv/bin/activate: No such file or directory";
        let runs = [("./pack --all", missing), ("edit /p/cart.rs", ""), ("./pack --all", "ok")];
        assert!(!reply(&runs, None).contains("Fixed on the way"));
        assert!(!fixed("git commit -m carts"));
    }

    #[test]
    fn one_off_commands_are_not_recorded_as_working() {
        let works = |command| reply(&[(command, " 12 pass\n 0 fail")], None).contains("Works here");
        assert!(works("bun run test"));
        for command in [
            "go build -o /tmp/x ./cmd",
            "cd /tmp/x && go test ./...",
            "command -v golangci-lint",
            "dotnet --version",
        ] {
            assert!(!works(command), "{command}");
        }
        let killed = reply(&[("kill $(lsof -ti:80) 2>/dev/null; go build ./cmd", "")], None);
        assert!(killed.contains("Works here: `go build ./cmd`"), "{killed}");
    }

    #[test]
    fn a_replacement_that_runs_failing_tests_still_counts() {
        let refused = ("wrap bun run test", "Exit code 2\nerror: unrecognized subcommand 'bun'");
        let failed = ("bun run test", "Exit code 1\n 11 pass\n 1 fail");
        let reply = reply(&[refused, failed], None);
        assert!(reply.contains("<title>Use `bun run test`, not `wrap bun run test`"), "{reply}");
        assert!(reply.contains("<fact>Runs: `bun run test`</fact>"), "{reply}");
    }

    #[test]
    fn an_edit_in_between_or_a_different_command_is_not_a_detour() {
        let refused = ("wrap bun run test", "Exit code 2\nerror: unrecognized subcommand 'bun'");
        let passed = ("bun run test", " 12 pass\n 0 fail");
        assert!(!reply(&[refused, ("edit /p/a.ts", "{}"), passed], None).contains("<title>Use "));
        assert!(!reply(&[refused, ("cargo doc --open", "")], None).contains("<title>Use "));
        let unknown = "Exit code 129\nerror: unknown option `cached'";
        let (add, commit) = (("git add web/cart", unknown), ("git commit -m web/cart", ""));
        assert!(!reply(&[add, commit], None).contains("<title>Use "));
        let (test, lint) =
            (("bun run test", "Exit code 1\nCannot find module 'x'"), ("bun run lint", ""));
        assert!(!reply(&[test, lint], None).contains("<title>Use "));
        let other = ("bun run tests", "Exit code 1\nerror: Script not found \"tests\"");
        let found = reply(&[other, ("bun run test", " 12 pass\n 0 fail")], None);
        assert!(found.contains("<title>Use `bun run test`, not `bun run tests`"), "{found}");
        let begun = format!("Exit code 1\n{}ls: x: No such file or directory", "line\n".repeat(40));
        assert!(!reply(&[("bun run test all", &begun), passed], None).contains("<title>Use "));
        assert!(
            !reply(
                &[("ls a b", "Exit code 1\nls: No such file or directory"), ("ls a c", "")],
                None
            )
            .contains("<title>Use ")
        );
    }

    #[test]
    fn a_passing_run_in_a_later_turn_retracts_a_failure() {
        let failed = reply(&[("bun test", "Exit code 1\n 11 pass\n 1 fail")], None);
        assert!(
            failed.contains("<title>`bun test` fails: 1 failed, 11 passed</title>"),
            "{failed}"
        );
        let digest = "- bugfix: Other\n- discovery: `bun test` fails: 1 failed, 11 passed";
        let passed = reply(&[("bun run test", " 12 pass\n 0 fail")], Some(digest));
        let corrects = "<corrects>`bun test` fails: 1 failed, 11 passed</corrects>";
        assert!(passed.contains(corrects) && !passed.contains("<title>`bun test`"), "{passed}");
        let worse = reply(&[("bun test", "Exit code 1\n 10 pass\n 2 fail")], Some(digest));
        assert!(
            worse.contains(corrects) && worse.contains("fails: 2 failed, 10 passed"),
            "{worse}"
        );
        let other = reply(&[("cargo test", "test result: ok. 1 passed; 0 failed")], Some(digest));
        assert!(!other.contains("<corrects>"), "{other}");
    }

    #[test]
    fn within_a_turn_only_the_last_run_counts() {
        let failed = ("bun test", "Exit code 1\n 11 pass\n 1 fail");
        let reply =
            reply(&[failed, ("edit /p/a.ts", "{}"), ("bun test src", " 12 pass\n 0 fail")], None);
        assert!(!reply.contains("fails:"), "{reply}");
    }

    #[test]
    fn a_commit_settles_a_failed_selected_test() {
        let failed = ("go test ./cart -run TestTotal", "Exit code 1\n--- FAIL: TestTotal (0.00s)");
        let commit = ("git commit -m x", "[main 1a2b3c4] x\n 1 file changed");
        assert!(reply(&[failed], None).contains("` fails: "));
        assert!(!reply(&[failed, commit], None).contains("` fails: "));
        let all = ("go test ./...", "Exit code 1\n--- FAIL: TestTotal (0.00s)");
        assert!(reply(&[all, commit], None).contains("` fails: "));
    }

    #[test]
    fn a_line_that_tests_several_times_has_an_unknown_outcome() {
        let red = "FAIL\tshop/cart 0.1s\n=== restored ===\nok  \tshop/cart 0.1s";
        let twice = "\
            cp a.go /x; go test ./cart -run T | tail -5; cp /x a.go; go test ./cart -run T | \
            tail -2";
        let in_loop = "for m in 1 2; do sh break.sh $m; go test ./cart | tail -1; done; git status";
        for command in [twice, in_loop] {
            assert!(!reply(&[(command, red)], None).contains("` fails: "), "{command}");
        }
        let once = "go test ./cart -run T | tail -5";
        assert!(reply(&[(once, "FAIL\tshop/cart 0.1s")], None).contains("` fails: "));
    }

    #[test]
    fn inline_scripts_are_not_detours() {
        let refused =
            "Exit code 1\nModuleNotFoundError: No module named 'yaml'\nerror: unknown option";
        for (wrong, right) in [
            ("node /tmp/x/t.js --all", "node /tmp/x/t2.js --all"),
            ("python -c \"import yaml,sys; print(1)\"", "python -c \"import yaml; print(1)\""),
        ] {
            assert!(!reply(&[(wrong, refused), (right, "1")], None).contains("<title>Use "));
        }
    }

    #[test]
    fn commands_that_work_are_one_fact() {
        let runs = [
            ("edit /p/a.ts", "{}"),
            ("git status", "clean"),
            ("bun test src/a.test.ts", " 2 pass\n 0 fail"),
            ("bun test", " 12 pass\n 0 fail"),
            ("cd web && npm run lint", ""),
            ("ssh -i k root@h 'systemctl restart web'", ""),
        ];
        let text = reply(&runs, None);
        let works =
            "Works here: `bun test` (12 passed), `npm run lint` in `web`, `ssh -i k root@h`";
        assert!(text.contains(works), "{text}");
        let alone = reply(&[("bun test", " 12 pass\n 0 fail")], None);
        assert!(alone.contains("<title>Works here: `bun test` (12 passed)</title>"), "{alone}");
        assert!(!reply(&[("ls", ""), ("git status", "")], None).contains("Works here"));
    }
}
