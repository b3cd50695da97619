//! `hook-path`: which functions hooks run through, as a linker script that puts them side by side.

use std::{
    collections::{BTreeSet, HashMap},
    error::Error,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use serde_json::{Value, json};

use super::say;
use crate::bench::project_in;

/// Print the linker script that keeps the functions of the hooks together
///
/// A program is brought into memory in pieces of 64 KB, when they are first run. What a hook runs through is
/// a thirtieth of the whole, and where it lies all over it, most pieces are brought in for one function each.
/// Runs the hooks under `valgrind`. The result is kept in `src/hooks.ld`; names that no longer exist
/// in it do no harm.
#[derive(Debug, clap::Args)]
pub(crate) struct HookPath {
    /// The program with its symbols: `cargo rustc --release --bin claude-mem -- -C strip=none`
    binary: PathBuf,
}

impl HookPath {
    pub(crate) fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let home = tempfile::tempdir()?;
        let stage = Stage::new(&self.binary, home.path())?;
        stage.remember()?;
        let mut functions = stage.functions("save", &tool_use(100))?;
        functions.extend(stage.functions("new", &prompt())?);
        functions.extend(stage.functions("summary", &stop())?);
        // The C library is not compiled function by function, but SQLite and zstd are.
        functions.retain(|name| is_of_rust(name));
        let recording: BTreeSet<String> = functions.iter().cloned().collect();
        let start = json!({"hook_event_name": "SessionStart", "source": "startup"});
        let mut rest = stage.functions("context", &start)?;
        rest.extend(stage.functions("save", &tool_use(30_000))?);
        functions.extend(rest.into_iter().filter(|name| !recording.contains(name)));
        let end = json!({"hook_event_name": "SessionEnd", "reason": "other"});
        functions.extend(stage.functions("cleanup", &end)?);
        say(&script(&functions, &namesakes(&self.binary)?))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn prompt() -> Value {
    json!({"hook_event_name": "UserPromptSubmit", "prompt": "Fix the rounding"})
}

fn tool_use(lines: usize) -> Value {
    json!({
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "cargo test"},
        "tool_response": {"stdout": "test cart::rounds_half_up ... ok\n".repeat(lines)},
    })
}

fn edit(session: usize) -> Value {
    let new = format!("total({session}).round()");
    json!({
        "hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_use_id": "t2",
        "tool_input": {"file_path": "src/cart.rs", "old_string": "total()", "new_string": new},
        "tool_response": {"filePath": "src/cart.rs"},
    })
}

fn stop() -> Value {
    let said =
        "I fixed the rounding in `src/cart.rs`, because each line was rounded before summing.";
    json!({"hook_event_name": "Stop", "last_assistant_message": said})
}

/// A home and a project under git with a remote, as hooks meet them.
struct Stage<'a> {
    binary: &'a Path,
    home: &'a Path,
    project: PathBuf,
}

/// As many sessions before this one that what they left has to be chosen from and sorted.
const SESSIONS: usize = 40;

impl<'a> Stage<'a> {
    fn new(binary: &'a Path, home: &'a Path) -> Result<Self, Box<dyn Error>> {
        let project = project_in(home)?;
        fs::create_dir_all(project.join("src"))?;
        fs::write(project.join("src/cart.rs"), "fn total() {}\n")?;
        Ok(Self { binary, home, project })
    }

    fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", self.home).env("CLAUDE_MEM_PROVIDER", "extract");
        command.env("CLAUDE_MEM_WORKER_AUTOSTART", "false").stdout(Stdio::null());
        command.env("CLAUDE_PROJECT_DIR", &self.project).current_dir(&self.project);
        command
    }

    /// Records sessions, and has them distilled.
    fn remember(&self) -> Result<(), Box<dyn Error>> {
        for number in 0..SESSIONS {
            let session = format!("s{number}");
            let calls = [
                ("new", prompt()),
                ("save", edit(number)),
                ("save", tool_use(9)),
                ("summary", stop()),
            ];
            for (hook, call) in calls {
                self.run(self.program(self.binary).arg(hook), &session, &call)?;
            }
        }
        let status = self.program(self.binary).arg("project").status()?;
        if status.success() { Ok(()) } else { Err(format!("`project` ended with {status}").into()) }
    }

    fn run(
        &self,
        command: &mut Command,
        session: &str,
        call: &Value,
    ) -> Result<(), Box<dyn Error>> {
        let mut call = call.clone();
        call["session_id"] = json!(session);
        call["cwd"] = json!(self.project);
        let input = self.home.join("input.json");
        fs::write(&input, call.to_string())?;
        let status = command.stdin(fs::File::open(&input)?).status();
        let program = command.get_program().display();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{program} ended with {status}").into()),
            Err(error) => Err(format!("{program}: {error}").into()),
        }
    }

    /// Runs a hook and gives the functions it went through, in the order of the profile.
    fn functions(&self, hook: &str, call: &Value) -> Result<Vec<String>, Box<dyn Error>> {
        let profile = self.home.join("profile");
        let mut valgrind = self.program("valgrind");
        valgrind.args(["--tool=callgrind", "--demangle=no", "--quiet"]);
        valgrind.arg(format!("--callgrind-out-file={}", profile.display()));
        self.run(valgrind.arg(self.binary).arg(hook), "now", call)?;
        Ok(functions(&fs::read_to_string(profile)?))
    }
}

/// The names in a profile: `fn=(12) name` where it is run or `cfn=(12) name` where it is called, and only
/// the number the next time.
fn functions(profile: &str) -> Vec<String> {
    let mut names = Vec::new();
    for line in profile.lines() {
        let Some(told) = line.strip_prefix("fn=(").or_else(|| line.strip_prefix("cfn=(")) else {
            continue;
        };
        if let Some((_, name)) = told.split_once(") ")
            && !name.starts_with("0x")
        {
            names.push(name.to_owned());
        }
    }
    names
}

fn is_of_rust(name: &str) -> bool {
    name.starts_with("_ZN") || name.starts_with("_R")
}

/// All functions of a program, by pattern: how many share it.
fn namesakes(binary: &Path) -> Result<HashMap<String, usize>, Box<dyn Error>> {
    let output = Command::new("nm").arg(binary).output().map_err(|error| format!("nm: {error}"))?;
    let mut namesakes = HashMap::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        if let [_, "t" | "T" | "w" | "W", name] = *line.split(' ').collect::<Vec<_>>() {
            *namesakes.entry(pattern(name)).or_default() += 1;
        }
    }
    Ok(namesakes)
}

/// A name that stands for more functions than this stands for many that hooks do not run through.
const NAMESAKES_MAX: usize = 4;

fn script(functions: &[String], namesakes: &HashMap<String, usize>) -> String {
    let mut patterns = Vec::new();
    for function in functions {
        let pattern = pattern(function);
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    // Those that bring many others along come last, lest they draw apart what is run.
    patterns.sort_by_key(|name| namesakes.get(name).is_some_and(|count| *count > NAMESAKES_MAX));
    let lines: Vec<_> = patterns.iter().map(|name| line(name)).collect();
    format!(
        "/* What hooks run through, side by side. Made by `claude-mem-tools hook-path`. */\n\
         SECTIONS {{\n  .text.hooks : {{\n{}\n  }}\n}}\nINSERT BEFORE .text;",
        lines.join("\n")
    )
}

/// What its author or the compiler held to be run rarely is kept apart under another name, and what one part of a
/// crate has from another has a number behind its own.
fn line(name: &str) -> String {
    let sections = format!(".text.{name} .text.unlikely.{name}");
    if name.ends_with('*') {
        return format!("    *({sections})");
    }
    format!("    *({sections} .text.{name}.llvm.* .text.unlikely.{name}.llvm.*)")
}

/// A name without what changes from compiler to compiler: the number or hash at its end in one way of writing
/// names, the mark of a crate in the other. Signs that mean something in a script stand for any.
fn pattern(name: &str) -> String {
    let name = name.split_once(".llvm.").map_or(name, |(name, _)| name);
    let stem = match name.rfind("17h") {
        Some(hash) if name.starts_with("_ZN") => format!("{}17h*", &name[..hash]),
        _ => without_crate_marks(name),
    };
    stem.chars()
        .map(|letter| {
            let is_plain = letter.is_ascii_alphanumeric() || "_.*".contains(letter);
            if is_plain { letter } else { '?' }
        })
        .collect()
}

/// `_RNvCs1a2b_5alloc` becomes `_RNvCs*_5alloc`.
fn without_crate_marks(name: &str) -> String {
    if !name.starts_with("_R") {
        return name.to_owned();
    }
    let mut parts = name.split("Cs");
    let mut stem = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.split_once('_').map_or(part, |(_, rest)| rest);
        stem.push_str("Cs*_");
        stem.push_str(rest);
    }
    stem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_after_the_next_compilation() {
        let cases = [
            ("_ZN10claude_mem5hooks3run17hc0c0c12713872e4bE", "_ZN10claude_mem5hooks3run17h*"),
            (
                "_ZN4core3ptr9_$LT$T$GT$4drop17h0123456789abcdefE",
                "_ZN4core3ptr9_?LT?T?GT?4drop17h*",
            ),
            ("_RNvMs3_NtCslNYArtu3iFV_5alloc3str", "_RNvMs3_NtCs*_5alloc3str"),
            ("sqlite3VdbeExec", "sqlite3VdbeExec"),
            ("_RNvCslNYArtu3iFV_5alloc3str.llvm.152438", "_RNvCs*_5alloc3str"),
        ];
        for (name, expected) in cases {
            assert_eq!(pattern(name), expected);
        }
    }

    #[test]
    fn a_profile_names_each_function_once_and_places_without_a_name_are_left_out() {
        let profile =
            "fn=(1) main\ncfn=(2) sqlite3_step\nfn=(3) 0x0000000000b71f50\nfn=(2)\n16 4\n";
        assert_eq!(functions(profile), ["main", "sqlite3_step"]);
        let namesakes = HashMap::from([("clone".to_owned(), 100), ("main".to_owned(), 1)]);
        let script = script(&["clone".into(), "main".into(), "main".into()], &namesakes);
        let places: Vec<_> = script.match_indices("*(.text.").map(|(at, _)| at + 8).collect();
        assert_eq!(places.len(), 2, "{script}");
        assert!(script[places[0]..].starts_with("main .text.unlikely.main "), "{script}");
    }
}
