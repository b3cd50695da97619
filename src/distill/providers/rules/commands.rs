//! Commands that were run: what for, and whether they went well.

use serde_json::Value;

use super::outcomes::{self, Counts, Fault};
use super::shell;
use super::text::{clip, code, is_among, one_line};
use crate::escape::without_ansi;
use crate::turn_prompt::ToolView;

const SHOWN_CHARS_MAX: usize = 60;

/// What a command is for, the most telling last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Purpose {
    /// It only shows something, or does nothing of note.
    Look,
    /// A program that is neither of the others.
    Run,
    /// It changes something outside the files that tools edit.
    Effect,
    /// Compilers, linters.
    Build,
    /// Tests.
    Test,
}

/// One use of the shell, seen by its most telling command.
#[derive(Debug, Clone)]
pub(super) struct Run {
    /// Where it stood among the tools of the turn.
    pub(super) at: usize,
    /// What for.
    pub(super) purpose: Purpose,
    /// The command, short.
    pub(super) shown: String,
    /// It did not go well, whatever its exit code says.
    pub(super) has_failed: bool,
    /// What went wrong.
    pub(super) fault: Option<Fault>,
    /// Tests that ran.
    pub(super) counts: Option<Counts>,
    /// What it changed, in words.
    pub(super) effects: Vec<String>,
    /// Subjects of commits made.
    pub(super) commits: Vec<String>,
    key: String,
    arguments: Vec<String>,
}

impl Run {
    /// Reads one use of the shell.
    pub(super) fn of(
        view: &ToolView<'_>,
        input: &Value,
        output: &Value,
        at: usize,
    ) -> Option<Self> {
        let command = input.get("command").and_then(Value::as_str)?;
        let steps = shell::steps(command);
        let is_unfinished = output.get("backgroundTaskId").is_some_and(Value::is_string)
            || output.get("interrupted") == Some(&Value::Bool(true));
        let printed = printed(output);
        let mut telling: Option<(Purpose, &[String])> = None;
        for words in &steps {
            let purpose = purpose(words);
            if telling.is_none_or(|(best, _)| purpose > best) {
                telling = Some((purpose, words));
            }
        }
        let (mut purpose, words) = telling?;
        if is_unfinished {
            purpose = Purpose::Look;
        }
        let counts = (purpose == Purpose::Test).then(|| outcomes::counts(&printed)).flatten();
        let fault = outcomes::fault(&printed);
        let is_red = counts.is_some_and(|counts| counts.failed > 0)
            || purpose >= Purpose::Build
                && counts.is_none()
                && fault.as_ref().is_some_and(|fault| fault.weight >= 8);
        let has_failed = view.failed || is_red;
        let done = !view.failed && !is_unfinished;
        let commits = if done { commits(&steps, &printed) } else { Vec::new() };
        let effects =
            if done { steps.iter().filter_map(|step| effect(step)).collect() } else { Vec::new() };
        Some(Self {
            at,
            purpose,
            shown: clip(&words.join(" "), SHOWN_CHARS_MAX),
            has_failed,
            fault: fault.filter(|_| has_failed),
            counts,
            effects,
            commits,
            key: key(purpose, words),
            arguments: arguments(words),
        })
    }

    /// Whether this run checks what the other one did: the same program, and one of them on all or part
    /// of what the other ran on.
    pub(super) fn repeats(&self, other: &Self) -> bool {
        let within =
            |few: &Self, many: &Self| few.arguments.iter().all(|a| many.arguments.contains(a));
        self.key == other.key && (within(self, other) || within(other, self))
    }

    /// `cargo test`: 12 passed.
    pub(super) fn result(&self) -> String {
        let outcome = match (self.counts, &self.fault) {
            (Some(counts), _) => counts.shown(),
            (None, Some(fault)) => format!("fails: {}", fault.essence),
            (None, None) => (if self.has_failed { "fails" } else { "passes" }).to_owned(),
        };
        let colon = if self.counts.is_some() { ":" } else { "" };
        format!("{}{colon} {outcome}", code(&self.shown))
    }
}

/// What a program is run on, without what only says how.
fn arguments(words: &[String]) -> Vec<String> {
    let is_how = |word: &&String| {
        word.starts_with('-')
            || word.starts_with("test:")
            || matches!(
                word.as_str(),
                "test" | "t" | "run" | "exec" | "pytest" | "unittest" | "vitest" | "jest"
            )
    };
    words[1..].iter().filter(|word| !is_how(word)).cloned().collect()
}

/// All that a command printed, as one text.
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

/// Programs that test whatever follows.
const TEST_PROGRAMS: &str = "pytest|py.test|jest|vitest|mocha|ava|rspec|phpunit|ctest|tox|bats|playwright|cypress|\
    nextest";
const BUILD_PROGRAMS: &str = "tsc|make|cmake|ninja|webpack|eslint|ruff|mypy|pyright|golangci-lint|gcc|g++|clang|rustc|\
    javac|vite|next|biome|prettier|shellcheck|flake8|black|pylint|bazel|rollup|esbuild";
const LOOK_PROGRAMS: &str = "ls|cat|head|tail|grep|rg|find|fd|awk|wc|pwd|echo|printf|jq|which|env|ps|sleep|true|false|\
    tree|stat|diff|cd|test|[|exit|export|set|sort|uniq|cut|tr|date|kill|file|du|df|type|\
    source|xxd|od|touch|mkdir|for|done|fi|seq|tee|read|less|man|whoami|uname|hostname|id|\
    basename|dirname|realpath|curl|wget|cp|chmod|ln|sed|lsof|pgrep|pkill|killall|.|pushd|popd|\
    alias|ulimit|trap|wait|column|nl|cmp|md5sum|sha256sum|strings|tput|clear|history|in|case";

fn purpose(words: &[String]) -> Purpose {
    let program = program(words);
    let second = words.get(1).map_or("", String::as_str);
    let is_test = |word: &str| word == "test" || word.starts_with("test:") || word == "check";
    match (program, second) {
        ("cargo" | "go" | "mvn" | "dotnet" | "mix" | "swift" | "deno" | "bun" | "zig", "test")
        | ("npm" | "yarn" | "pnpm", "test" | "t")
        | ("cargo", "nextest")
        | ("node", "--test") => Purpose::Test,
        ("npm" | "yarn" | "pnpm" | "bun", "run") => match words.get(2).map_or("", String::as_str) {
            script if script.starts_with("test") => Purpose::Test,
            script if is_build_script(script) => Purpose::Build,
            _ => Purpose::Run,
        },
        ("make" | "just" | "rake" | "gradle" | "gradlew", _)
            if words.iter().any(|w| is_test(w)) =>
        {
            Purpose::Test
        }
        ("python" | "python3", "-m") => match words.get(2).map_or("", String::as_str) {
            "pytest" | "unittest" => Purpose::Test,
            "mypy" | "ruff" | "compileall" => Purpose::Build,
            _ => Purpose::Run,
        },
        ("bundle" | "poetry" | "uv" | "pipenv" | "hatch", "exec" | "run") => purpose(&words[2..]),
        ("cargo", "build" | "check" | "clippy" | "doc")
        | ("go", "build" | "vet")
        | ("mvn" | "gradle" | "gradlew" | "dotnet" | "swift" | "zig", _)
        | ("docker", "build") => Purpose::Build,
        ("yarn" | "pnpm", script) if is_build_script(script) => Purpose::Build,
        ("", _) => Purpose::Look,
        (program, _) if is_among(program, TEST_PROGRAMS) => Purpose::Test,
        (program, _) if is_among(program, BUILD_PROGRAMS) => Purpose::Build,
        _ if effect(words).is_some() || is_commit(words) => Purpose::Effect,
        ("git" | "gh" | "docker" | "kubectl" | "systemctl" | "journalctl", _) => Purpose::Look,
        (program, _) if is_among(program, LOOK_PROGRAMS) => Purpose::Look,
        _ => Purpose::Run,
    }
}

fn is_build_script(script: &str) -> bool {
    ["build", "lint", "typecheck", "type-check", "check", "tsc"]
        .iter()
        .any(|s| script.starts_with(s))
}

/// The name of the program, without where it lies.
fn program(words: &[String]) -> &str {
    let first = words.first().map_or("", String::as_str);
    first.rsplit('/').next().unwrap_or_default()
}

/// What stays the same when the same thing is run again. Runners of one language are one program.
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

fn is_commit(words: &[String]) -> bool {
    program(words) == "git" && words.iter().skip(1).any(|word| word == "commit")
}

/// The commits made, with their short hash where git printed it.
fn commits(steps: &[Vec<String>], printed: &str) -> Vec<String> {
    let Some(step) = steps.iter().find(|step| is_commit(step)) else { return Vec::new() };
    let reported: Vec<String> = printed.lines().filter_map(reported_commit).collect();
    if !reported.is_empty() {
        return reported;
    }
    let is_message = |word: &str| {
        word == "--message"
            || word.starts_with('-') && !word.starts_with("--") && word.ends_with('m')
    };
    let flag = step.iter().position(|word| is_message(word));
    let message = flag.and_then(|at| step.get(at + 1)).map_or("", String::as_str);
    let mut lines = message.lines().map(str::trim);
    let subject = lines.find(|line| !line.is_empty() && !line.starts_with("$(cat"));
    subject.map(|subject| vec![clip(subject, 120)]).unwrap_or_default()
}

/// `[main 1a2b3c4] Subject` as git prints it.
fn reported_commit(line: &str) -> Option<String> {
    let (head, subject) = line.strip_prefix('[')?.split_once("] ")?;
    let hash = head.split(' ').next_back()?;
    let is_hash = hash.len() >= 7 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    is_hash.then(|| clip(subject, 120))
}

/// What a command changes outside the edited files, in words; none if nothing of note.
fn effect(words: &[String]) -> Option<String> {
    let rest: Vec<&str> =
        words.iter().skip(1).filter(|word| !word.starts_with('-')).map(String::as_str).collect();
    let shown = || Some(format!("Ran {}", code(&clip(&words.join(" "), SHOWN_CHARS_MAX))));
    let named = |verb: &str, from: usize| {
        let names: Vec<String> = rest.iter().skip(from).take(6).map(|name| code(name)).collect();
        (!names.is_empty()).then(|| format!("{verb} {}", names.join(", ")))
    };
    match (program(words), rest.as_slice()) {
        ("mv", [from, to]) | ("git", ["mv", from, to]) => {
            Some(format!("Moved {} to {}", code(from), code(to)))
        }
        ("rm", [_, ..]) => named("Deleted", 0),
        ("git", ["rm", _, ..]) => named("Deleted", 1),
        (
            "npm" | "yarn" | "pnpm" | "bun" | "cargo" | "poetry" | "uv" | "go" | "gem" | "composer"
            | "apt" | "apt-get" | "brew",
            ["install" | "add" | "i" | "get" | "require", _, ..],
        )
        | ("pip" | "pip3", ["install", _, ..]) => named("Installed", 1),
        (
            "npm" | "yarn" | "pnpm" | "bun" | "cargo" | "poetry" | "uv" | "pip",
            ["uninstall" | "remove", _, ..],
        ) => named("Removed", 1),
        ("git", ["push", ..]) => Some(format!("Pushed{}", target(&rest))),
        ("git", ["tag", name, ..]) => Some(format!("Tagged {}", code(name))),
        ("git", ["merge" | "rebase" | "revert" | "cherry-pick", _, ..])
        | ("gh", ["pr" | "release" | "issue", "create" | "merge" | "close", ..])
        | (
            "docker" | "podman",
            ["compose", "up" | "down" | "restart", ..] | ["run" | "push" | "restart" | "rm", _, ..],
        )
        | ("docker-compose", ["up" | "down" | "restart", ..])
        | (
            "kubectl",
            ["apply" | "delete" | "rollout" | "scale" | "create" | "patch" | "set", ..],
        )
        | ("helm", ["install" | "upgrade" | "uninstall" | "rollback", ..])
        | ("terraform" | "tofu" | "pulumi", ["apply" | "destroy" | "import" | "up", ..])
        | ("systemctl", ["start" | "stop" | "restart" | "enable" | "disable" | "reload", ..])
        | (
            "crontab" | "ansible-playbook" | "alembic" | "prisma" | "vercel" | "flyctl" | "fly"
            | "netlify",
            [_, ..],
        )
        | (_, [.., "migrate"]) => shown(),
        _ => None,
    }
}

fn target(rest: &[&str]) -> String {
    rest.get(1..)
        .filter(|target| !target.is_empty())
        .map_or_else(String::new, |target| format!(" to {}", code(&one_line(&target.join(" ")))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(command: &str, output: &str) -> Run {
        let failed = output.starts_with("Exit code");
        let view = ToolView { tool: "Bash", failed, ..ToolView::default() };
        let output = if failed { json!(output) } else { json!({"stdout": output, "stderr": ""}) };
        Run::of(&view, &json!({"command": command}), &output, 0).unwrap()
    }

    #[test]
    fn the_most_telling_program_says_what_a_command_is_for() {
        let cases = [
            ("cd a && cargo test -p x 2>&1 | tail -3", Purpose::Test, "cargo test -p x"),
            ("npm run test:unit -- cart", Purpose::Test, "npm run test:unit -- cart"),
            ("uv run pytest -q tests", Purpose::Test, "uv run pytest -q tests"),
            ("make check", Purpose::Test, "make check"),
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
    fn a_failure_hidden_by_a_pipe_is_seen() {
        let hidden =
            run("cargo test | tail -1", "test result: FAILED. 3 passed; 1 failed; 0 ignored");
        assert!(hidden.has_failed);
        assert_eq!(hidden.result(), "`cargo test`: 1 failed, 3 passed");
        assert!(run("tsc | head", "a.ts(1,2): error TS1005: ';' expected.").has_failed);
        assert!(
            !run("cargo test", "test tells_error ... ok\ntest result: ok. 1 passed; 0 failed")
                .has_failed
        );
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
    fn commits_and_other_effects_are_told_in_words() {
        let commit = run(
            "git add -A && git commit -m x && git push origin main",
            "[main 1a2b3c4] fix: cart\n 1 file changed",
        );
        assert_eq!(commit.commits, ["fix: cart"]);
        assert_eq!(commit.effects, ["Pushed to `origin main`"]);
        let quiet = run("git commit -q -m \"$(cat <<'EOF'\nAdd carts\n\nBody\nEOF\n)\"", "");
        assert_eq!(quiet.commits, ["Add carts"]);
        assert_eq!(run("git commit -qam 'Pin it'", "").commits, ["Pin it"]);
        assert_eq!(run("npm install --save zod", "").effects, ["Installed `zod`"]);
        assert_eq!(run("npm install", "").effects, Vec::<String>::new());
        assert_eq!(run("git mv a.rs b.rs", "").effects, ["Moved `a.rs` to `b.rs`"]);
        assert!(run("git commit -m x", "Exit code 1\nnothing to commit").commits.is_empty());
    }
}
