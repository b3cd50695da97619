//! README and docs/: every command runs, every link leads somewhere.

use std::{
    env, fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use crate::{import::upstream::left_behind, sandbox::Sandbox};

/// Precedes a block that no test can run, and gives the reason.
const NOT_RUN: &str = "<!-- not run: ";

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A Markdown file: its path in the repository, and its text.
struct Page {
    path: String,
    text: String,
}

impl Page {
    fn read(path: &str) -> Self {
        let text = fs::read_to_string(repository().join(path)).unwrap();
        Self { path: path.into(), text }
    }

    /// Fenced blocks: the line before the fence, the language, the content.
    fn blocks(&self) -> Vec<(&str, &str, &str)> {
        let parts: Vec<&str> = self.text.split("```").collect();
        let pairs = parts.chunks_exact(2);
        pairs
            .map(|pair| {
                let before = pair[0].trim_end_matches('\n').lines().last().unwrap_or_default();
                let (language, content) = pair[1].split_once('\n').unwrap_or((pair[1], ""));
                (before, language, content)
            })
            .collect()
    }

    /// The text without fenced blocks.
    fn prose(&self) -> String {
        self.text.split("```").step_by(2).collect()
    }

    /// Inline code, such as `claude-mem status`.
    fn code_spans(&self) -> Vec<String> {
        self.prose().split('`').skip(1).step_by(2).map(|span| span.replace('\n', " ")).collect()
    }
}

/// README.md and everything in docs/.
fn guides() -> Vec<Page> {
    let mut paths: Vec<String> = fs::read_dir(repository().join("docs"))
        .unwrap()
        .map(|entry| format!("docs/{}", entry.unwrap().file_name().to_str().unwrap()))
        .filter(|path| path.ends_with(".md"))
        .collect();
    paths.push("README.md".into());
    paths.sort();
    paths.iter().map(|path| Page::read(path)).collect()
}

/// A past session of Claude Code.
const TRANSCRIPT: &str = concat!(
    r#"{"type":"user","sessionId":"0a4d3c52-7c44-4a3c-9a8e-0f6a1e3b5c77","cwd":"/scratch/cart","uuid":"u1","#,
    r#""timestamp":"2026-03-01T10:00:00.000Z","message":{"role":"user","content":"Never add a dependency."}}"#,
    "\n",
);

/// A home directory with the memory of the demo, and `claude-mem` on the PATH.
struct DemoHome {
    sandbox: Sandbox,
}

impl DemoHome {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        sandbox.run(&["demo", "--keep", "demo"]).ok();
        fs::rename(sandbox.home().join("demo/data"), sandbox.data()).unwrap();
        fs::create_dir(sandbox.home().join("bin")).unwrap();
        symlink(env!("CARGO_BIN_EXE_claude-mem"), sandbox.home().join("bin/claude-mem")).unwrap();
        // The browser that `claude-mem viewer` starts.
        sandbox.write("bin/xdg-open", "#!/bin/sh\n");
        let opener = sandbox.home().join("bin/xdg-open");
        fs::set_permissions(opener, fs::Permissions::from_mode(0o755)).unwrap();
        sandbox.write("demo/shop/my-prompt.txt", "Remember only what was decided, and why.\n");
        sandbox.write(
            ".claude/projects/-scratch-cart/0a4d3c52-7c44-4a3c-9a8e-0f6a1e3b5c77.jsonl",
            TRANSCRIPT,
        );
        left_behind(&sandbox);
        Self { sandbox }
    }

    fn project(&self) -> PathBuf {
        self.sandbox.home().join("demo/shop")
    }

    fn shell(&self, script: &str) -> Output {
        let home = self.sandbox.home();
        let mut command = Command::new("/bin/sh");
        command.args(["-euc", script]).current_dir(self.project()).env_clear();
        command.env("HOME", &home).env("PATH", format!("{}/bin:/usr/bin:/bin", home.display()));
        command.env("CLAUDE_MEM_PROVIDER", "extract").env("CLAUDE_MEM_WORKER_PORT", "0");
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// Runs a script that must succeed, and returns its output.
    fn run(&self, path: &str, script: &str) -> String {
        let output = self.shell(script);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{path}: this failed:\n{script}\n{stderr}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for DemoHome {
    fn drop(&mut self) {
        self.sandbox.run(&["worker", "stop"]);
    }
}

/// Runs the `sh` blocks of a page in order, and compares its `console` blocks with the real output.
fn run_page(page: &Page) {
    let newcomer = DemoHome::new();
    for (before, language, content) in page.blocks() {
        match (language, content.trim()) {
            _ if before.starts_with(NOT_RUN) => {}
            // This test is part of that command.
            ("sh", "./tools/test") => {
                let ci = fs::read_to_string(repository().join(".ci/run")).unwrap();
                assert!(ci.lines().any(|line| line == "exec ./tools/test"), "{ci}");
            }
            // A release takes minutes to build; the debug binary has the same command.
            ("sh", "cargo run --release -- demo") => {
                newcomer.run(&page.path, "claude-mem demo");
            }
            // The first half is a test of its own.
            ("sh", "cargo install --locked --path . && claude-mem install") => {
                newcomer.run(&page.path, "claude-mem install");
            }
            ("sh", script) => {
                newcomer.run(&page.path, script);
            }
            ("console", session) => {
                let (command, expected) = session.split_once('\n').unwrap();
                let printed = newcomer.run(&page.path, command.strip_prefix("$ ").unwrap());
                assert_matches(&page.path, expected, printed.trim_end());
            }
            _ => {}
        }
    }
}

/// Compares line by line. `…` stands for any text, alone on its line for any lines. Numbers, months
/// and weekdays equal any other: they depend on the moment.
fn assert_matches(path: &str, expected: &str, printed: &str) {
    let mut printed_lines = printed.lines();
    let mut skip = false;
    for expected in expected.lines() {
        if expected == "…" {
            skip = true;
            continue;
        }
        let is_like = |line: &&str| line_matches(&timeless(expected), &timeless(line));
        let found =
            if skip { printed_lines.find(is_like) } else { printed_lines.next().filter(is_like) };
        assert!(found.is_some(), "{path}: nothing like {expected:?} here in:\n{printed}");
        skip = false;
    }
    assert!(skip || printed_lines.next().is_none(), "{path}: there is more:\n{printed}");
}

fn line_matches(expected: &str, mut rest: &str) -> bool {
    let whole = !expected.ends_with('…');
    for (index, part) in expected.split('…').enumerate() {
        let found = if index == 0 { rest.starts_with(part).then_some(0) } else { rest.find(part) };
        let Some(at) = found else { return false };
        rest = &rest[at + part.len()..];
    }
    !whole || rest.is_empty()
}

fn timeless(line: &str) -> String {
    let names = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec Mon Tue Wed Thu Fri Sat Sun";
    let line = line.replace(|c: char| c.is_ascii_digit(), "0");
    names.split(' ').fold(line, |line, name| line.replace(name, "Day"))
}

#[test]
fn every_command_of_the_readme_works() {
    run_page(&Page::read("README.md"));
}

#[test]
fn every_command_in_docs_works() {
    let pages = guides();
    let with_commands = |page: &&Page| page.text.contains("```sh\n") && page.path != "README.md";
    let pages: Vec<&Page> = pages.iter().filter(with_commands).collect();
    assert!(pages.len() > 5, "docs/ has lost its commands");
    for page in pages {
        run_page(page);
    }
}

#[test]
fn few_blocks_are_not_run_and_each_has_a_reason() {
    let mut not_run = 0;
    for page in guides() {
        for (before, language, _) in page.blocks() {
            // TypeScript is the example that `tests/http/extension.rs` runs.
            let known = ["sh", "console", "text", "ts"].contains(&language);
            assert!(known, "{}: a block of `{language}`: use sh, console or text", page.path);
            if let Some(reason) = before.strip_prefix(NOT_RUN) {
                let reason = reason.strip_suffix(" -->").unwrap();
                assert!(reason.len() > 10, "{}: give a reason, not {reason:?}", page.path);
                not_run += 1;
            }
        }
    }
    assert!(not_run <= 3, "{not_run} blocks are not run");
}

#[test]
fn every_command_and_option_that_is_mentioned_exists() {
    let newcomer = DemoHome::new();
    let mut checked = 0;
    for page in guides() {
        for span in page.code_spans() {
            // With `--help`, the parser checks everything before it, and nothing is done. `<id>` is
            // the syntax of commands that docs/deviations.md quotes.
            if span.starts_with("claude-mem ") && !span.contains(['…', '<']) {
                newcomer.run(&page.path, &format!("{span} --help"));
                checked += 1;
            }
        }
    }
    assert!(checked > 50, "{checked}");
    let unknown = newcomer.shell("claude-mem forget --everything --help");
    assert_eq!(unknown.status.code(), Some(2));
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let others = [
        "AGENTS.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        ".github/CONTRIBUTING.md",
        ".github/SECURITY.md",
    ];
    let mut checked = 0;
    for page in guides().into_iter().chain(others.map(Page::read)) {
        let prose = page.prose();
        for link in prose.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            if link.contains("://") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let folder = Path::new(&page.path).parent().unwrap();
            let target = repository().join(folder).join(file);
            assert!(target.exists(), "{}: {link} is not there", page.path);
            if !heading.is_empty() {
                let text = fs::read_to_string(&target).unwrap();
                let anchors = text.lines().filter(|line| line.starts_with('#'));
                let mut anchors = anchors.map(|line| {
                    line.trim_start_matches(['#', ' '])
                        .to_lowercase()
                        .replace(' ', "-")
                        .replace(',', "")
                });
                assert!(anchors.any(|anchor| anchor == heading), "{}: no {link}", page.path);
            }
            checked += 1;
        }
    }
    assert!(checked > 40, "{checked}");
}

#[test]
fn every_path_in_the_design_page_and_in_the_table_of_additions_exists() {
    let mut table = Page::read("ARCHITECTURE.md");
    let (_, rest) = table.text.split_once("## Where to add something").unwrap();
    table.text = rest.split_once("\n## ").unwrap().0.to_owned();
    let is_path = |span: &String| {
        let name = span.rsplit('/').next().unwrap();
        span.contains('/')
            && !span.starts_with(['/', '~'])
            && !name.starts_with("x.")
            && !name.contains("000N")
    };
    for (page, paths_min) in [(table, 15), (Page::read("docs/design.md"), 5)] {
        let paths: Vec<String> = page.code_spans().into_iter().filter(is_path).collect();
        assert!(paths.len() > paths_min, "{paths:?}");
        for path in paths {
            let exists = repository().join(&path).exists();
            assert!(exists, "{} names {path}, which is not there", page.path);
        }
    }
}

#[test]
fn each_crate_depends_only_on_crates_above_it_in_the_table() {
    let page = Page::read("ARCHITECTURE.md");
    let rows = page.text.lines().filter_map(|line| line.split_once("/` | `claude-mem-"));
    let mut above = Vec::new();
    for (folder, rest) in rows {
        let folder = folder.trim_start_matches("| `").split("/`").next().unwrap();
        let manifest = fs::read_to_string(repository().join(folder).join("Cargo.toml")).unwrap();
        let manifest = manifest.split("[dev-dependencies]").next().unwrap();
        for dependency in manifest.lines().filter_map(|line| line.strip_prefix("claude-mem-")) {
            let name = dependency.split(['.', ' ']).next().unwrap().to_owned();
            assert!(
                folder == "tools" || above.contains(&name),
                "{folder} depends on {name}, which is not above it"
            );
        }
        above.push(rest.split('`').next().unwrap().to_owned());
    }
    assert!(above.len() > 15, "{above:?}");
}

#[test]
fn every_test_that_the_threat_model_names_exists() {
    let mut search = Command::new("git");
    search.args(["grep", "-hE", r"fn [a-z0-9_]+\(", "--", "*.rs"]).current_dir(repository());
    let functions = String::from_utf8(search.output().unwrap().stdout).unwrap();
    let page = Page::read(".github/SECURITY.md");
    let is_test = |span: &&String| span.matches('_').count() > 3 && !span.contains(['.', '/']);
    let spans = page.code_spans();
    let named: Vec<&String> = spans.iter().filter(is_test).collect();
    assert!(named.len() > 40, "{named:?}");
    for name in named.iter().filter(|name| name.to_lowercase() == ***name) {
        assert!(functions.contains(&format!("fn {name}(")), ".github/SECURITY.md: no test {name}");
    }
}

#[test]
fn the_readme_is_short_and_links_every_page_in_docs() {
    let readme = Page::read("README.md");
    let lines = readme.text.lines().count();
    assert!(lines <= 200, "README.md has {lines} lines");
    for page in guides().iter().filter(|page| page.path != "README.md") {
        assert!(readme.text.contains(&format!("({})", page.path)), "no link to {}", page.path);
    }
}

#[test]
fn cargo_installs_it_from_its_folder() {
    let root = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO"));
    command.args(["install", "--path", ".", "--debug", "--locked", "--offline", "--quiet"]);
    command.arg("--root").arg(root.path()).current_dir(repository());
    // With the variables of this package, the build script of ring would run again, and everything
    // above it be built again, here and in the next build outside of the test.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_")
            || text.starts_with("CARGO_MANIFEST_")
            || text == "OUT_DIR"
        {
            command.env_remove(&name);
        }
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut installed = Command::new(root.path().join("bin/claude-mem"));
    let version = installed.arg("--version").output().unwrap().stdout;
    assert!(String::from_utf8(version).unwrap().starts_with("claude-mem 0."));
}
