//! The purpose of a command, and its changes outside the edited files.

use super::shell::{self, Step};
use super::text::{clip, code, is_among, one_line, starts_with_any};

/// Maximum length of a command inside a sentence.
pub(super) const SHOWN_CHARS_MAX: usize = 60;

/// The purpose of a command, the most significant last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Purpose {
    /// It only shows something, or has no notable effect.
    Look,
    /// Any other program.
    Run,
    /// It changes something other than the files that tools edit.
    Effect,
    /// Compilers, linters.
    Build,
    Test,
}

/// Programs that run tests regardless of their arguments.
const TEST_PROGRAMS: &str = "\
    pytest|py.test|jest|vitest|mocha|ava|rspec|phpunit|ctest|tox|bats|playwright|cypress|nextest|\
    jasmine|tape|nose2|behave|robot|pest|nox|gotestsum";
const BUILD_PROGRAMS: &str = "\
    tsc|make|cmake|ninja|webpack|eslint|ruff|mypy|pyright|golangci-lint|gcc|g++|clang|rustc|\
    javac|vite|next|biome|prettier|shellcheck|flake8|black|pylint|bazel|rollup|esbuild";
pub(super) const LOOK_PROGRAMS: &str = "\
    ls|cat|head|tail|grep|rg|find|fd|awk|wc|pwd|echo|printf|jq|which|env|ps|sleep|true|false|\
    tree|stat|diff|cd|test|[|exit|export|set|sort|uniq|cut|tr|date|kill|file|du|df|type|source|\
    xxd|od|touch|mkdir|for|done|fi|seq|tee|read|less|man|whoami|uname|hostname|id|basename|\
    dirname|realpath|curl|wget|cp|chmod|ln|sed|lsof|pgrep|pkill|killall|.|pushd|popd|alias|\
    ulimit|trap|wait|column|nl|cmp|md5sum|sha256sum|strings|tput|clear|history|in|case";

pub(super) fn purpose(words: &[String]) -> Purpose {
    let program = program(words);
    let second = words.get(1).map_or("", String::as_str);
    let is_test = |word: &str| word == "test" || word.starts_with("test:") || word == "check";
    match (program, second) {
        (
            "cargo" | "go" | "mvn" | "dotnet" | "mix" | "swift" | "deno" | "bun" | "zig"
            | "flutter" | "dart",
            "test",
        )
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
        ("mvn" | "mvnw", _) if words.iter().any(|w| w == "test" || w == "verify") => Purpose::Test,
        // `:app:testDebugUnitTest`
        ("gradle" | "gradlew", _) if words.iter().any(|w| w.contains("test")) => Purpose::Test,
        ("python" | "python3", "-m") => match words.get(2).map_or("", String::as_str) {
            "pytest" | "unittest" => Purpose::Test,
            "mypy" | "ruff" | "compileall" => Purpose::Build,
            _ => Purpose::Run,
        },
        ("bundle" | "poetry" | "uv" | "pipenv" | "hatch", "exec" | "run")
        | ("npm" | "yarn" | "pnpm", "exec")
        | ("bun", "x") => purpose(&words[2..]),
        ("cargo", "build" | "check" | "clippy" | "doc")
        | ("go", "build" | "vet")
        | ("mvn" | "mvnw" | "gradle" | "gradlew" | "dotnet" | "swift" | "zig", _)
        | ("flutter" | "dart", "analyze" | "build")
        | ("docker", "build") => Purpose::Build,
        ("yarn" | "pnpm", script) if is_build_script(script) => Purpose::Build,
        ("yarn" | "pnpm", tool) if is_among(tool, TEST_PROGRAMS) => Purpose::Test,
        ("yarn" | "pnpm", tool) if is_among(tool, BUILD_PROGRAMS) => Purpose::Build,
        ("", _)
        | (
            "python" | "python3" | "node" | "perl" | "ruby" | "php",
            "-c" | "-e" | "-p" | "-" | "-r",
        ) => Purpose::Look,
        ("mise" | "task", _) => {
            match words.iter().find(|word| is_test(word) || is_build_script(word)) {
                Some(word) if is_test(word) => Purpose::Test,
                Some(_) => Purpose::Build,
                None => Purpose::Run,
            }
        }
        (program, _) if is_among(program, TEST_PROGRAMS) => Purpose::Test,
        (program, _) if is_among(program, BUILD_PROGRAMS) => Purpose::Build,
        _ if effect(words).is_some() || is_commit(words) => Purpose::Effect,
        ("git" | "gh" | "docker" | "kubectl" | "systemctl" | "journalctl", _) => Purpose::Look,
        (program, _) if is_among(program, LOOK_PROGRAMS) => Purpose::Look,
        _ => Purpose::Run,
    }
}

/// Whether the program runs the tests of a project as a part of its build.
pub(super) fn is_build_tool(words: &[String]) -> bool {
    is_among(program(words), "make|mvn|mvnw|gradle|gradlew|bazel|ninja|cmake|dotnet|swift|zig")
}

fn is_build_script(script: &str) -> bool {
    ["build", "lint", "typecheck", "type-check", "check", "tsc"]
        .iter()
        .any(|s| script.starts_with(s))
}

/// The name of the program, without its directory.
pub(super) fn program(words: &[String]) -> &str {
    let first = words.first().map_or("", String::as_str);
    first.rsplit(['/', '\\']).next().unwrap_or_default().trim_end_matches(".exe")
}

pub(super) fn is_commit(words: &[String]) -> bool {
    program(words) == "git" && words.iter().skip(1).any(|word| word == "commit")
}

/// Describes the change a command makes outside the edited files; `None` if there is no notable
/// one.
pub(super) fn effect(words: &[String]) -> Option<String> {
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

/// A command that is passed to another machine, container or shell.
pub(super) struct Remote {
    /// The prefix: `ssh -i key root@host`; empty for a shell on this machine.
    pub(super) way: String,
    /// The commands that run there.
    pub(super) steps: Vec<Step>,
}

/// Options of `ssh`, and of commands that enter containers, that take a value.
const VALUED: &str = "\
    -i|-p|-o|-l|-F|-J|-L|-R|-D|-W|-b|-c|-E|-e|-I|-m|-O|-S|-w|-u|--user|--env|--env-file|\
    --workdir|-n|--namespace|--container|--context|-f|--file";

/// Parses the command inside `ssh host '…'`, `docker exec …`, `kubectl exec … -- …` or `bash -c
/// '…'`.
pub(super) fn remote(step: &Step) -> Option<Remote> {
    let words = &step.words;
    let operand = |from: usize| {
        let mut at = from;
        while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
            at += if is_among(word, VALUED) { 2 } else { 1 };
        }
        at
    };
    let second = words.get(1).map_or("", String::as_str);
    // The position of the remote name.
    let target = match (program(words), second) {
        ("bash" | "sh" | "zsh", flag) if flag.starts_with('-') && flag.ends_with('c') => 1,
        ("ssh", _) => operand(1),
        ("docker" | "podman", "exec") => operand(2),
        ("docker" | "podman", "compose") | ("docker-compose", _) => {
            let exec = words.iter().position(|word| word == "exec")?;
            operand(exec + 1)
        }
        ("kubectl" | "oc", "exec") => words.iter().position(|word| word == "--")?,
        _ => return None,
    };
    let way = words.get(..=target)?;
    let inner = words[target + 1..].join(" ");
    let text = if inner.is_empty() || inner == "bash -s" { &step.document } else { &inner };
    let way =
        if matches!(program(words), "bash" | "sh" | "zsh") { String::new() } else { way.join(" ") };
    Some(Remote { way, steps: shell::steps(text) })
}

/// Whether a program that is neither a test nor a build belongs to the project. If so, the command
/// to run it is worth recording.
pub(super) fn is_of_project(words: &[String]) -> bool {
    let first = words.first().map_or("", String::as_str);
    let second = words.get(1).map_or("", String::as_str);
    let is_script = |word: &str| {
        starts_with_any(word, "./|scripts/|script/|bin/|tools/") && !word.contains("node_modules/")
    };
    match program(words) {
        "npm" | "pnpm" | "yarn" | "bun" | "mise" | "deno" | "hatch" | "rails" | "flutter" => {
            is_among(second, "run|start|dev|serve|server")
        }
        "cargo" | "go" | "dotnet" | "uv" | "poetry" => second == "run",
        "just" | "task" | "make" | "rake" => true,
        "python" | "python3" | "node" | "bash" | "sh" | "tsx" | "ruby" => is_script(second),
        _ => is_script(first),
    }
}
