//! `claude-mem demo`: recorded sessions, processed in a temporary directory.

use std::{
    collections::BTreeSet,
    env, fs,
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::signal::on_signal;
use claude_mem_core::{
    app::App,
    failure::Failure,
    format::count,
    os::path_in_commands,
    settings::{
        ProviderName, Verbosity,
        table::{PROVIDER, VERBOSITY},
    },
    wrap::cut,
};

/// Try claude-mem in a minute, without changing your files
///
/// Feeds three recorded sessions through the real hooks into a temporary directory, and distills
/// them with the built-in rules (no model, no network). Then shows the context of the next session,
/// two searches, and what a replay changes. At a terminal, press Enter for the next step. The
/// directory is deleted afterwards, unless you pass `--keep`.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Keep everything in this folder, which must not exist yet
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// Hook payloads of Claude Code, one per line, with `{cwd}` for the project's folder.
const SESSIONS: &str = include_str!("sessions.jsonl");

const PROMPT_COLUMNS: usize = 60;

/// The password that a tool prints in the first session.
const SECRET: &str = "correct-horse-battery";

#[derive(Deserialize)]
struct Call<'a> {
    hook: &'a str,
    #[serde(borrow)]
    input: &'a RawValue,
}

impl Demo {
    /// Every step is a command that the user could type, and is printed as one.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let demo_dir = DemoDir::new(self.keep.as_deref())?;
        for (number, step) in STEPS.iter().enumerate() {
            if number > 0 && !wants_more(app) {
                break;
            }
            step(&demo_dir, app)?;
        }
        demo_dir.print_next_steps(app)
    }
}

type Step = fn(&DemoDir, &mut App) -> Result<(), Failure>;

/// At a terminal they are shown one by one.
const STEPS: [Step; 5] = [
    |demo_dir, app| {
        demo_dir.record(app)?;
        demo_dir.show(app, "The turns are over: distill them.", &["distill"])
    },
    |demo_dir, app| {
        let title = "A new session starts in the same project. Claude receives:";
        demo_dir.show(app, title, &["context"])
    },
    |demo_dir, app| {
        demo_dir.show(app, "Search finds it by a few words.", &["search", "rounding", "cents"])?;
        demo_dir.show(
            app,
            "Search also finds it by meaning: the memory contains no word of this question.",
            &["search", "how do we keep people from logging in too often", "--limit", "1"],
        )
    },
    |demo_dir, app| demo_dir.show(app, "Every memory names its sources.", &["show", "4"]),
    |demo_dir, app| {
        heading(app, "Try other settings on past sessions, and compare before you switch.")?;
        let minimal = [("CLAUDE_MEM_VERBOSITY", "minimal")];
        demo_dir.shown_with(app, &minimal, &["replay", "--shadow"])?;
        demo_dir.shown_with(app, &[], &["diff"])?;

        heading(app, "Delete the database, and rebuild it from the log.")?;
        fs::remove_file(demo_dir.data().join("memory.db")).map_err(cannot("remove memory.db"))?;
        app.output.line(app.output.dim("$ rm memory.db"))?;
        demo_dir.shown_with(app, &[], &["replay"])
    },
];

/// Waits for Enter, if there is a terminal to press it at.
fn wants_more(app: &mut App) -> bool {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return true;
    }
    let prompt = app.output.dim("\nEnter: next step, q: stop");
    app.output.say(prompt);
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.is_ok() && !answer.trim().eq_ignore_ascii_case("q")
}

/// The directory of the demo. Deleted on drop, unless the user keeps it.
struct DemoDir {
    dir: PathBuf,
    is_kept: bool,
}

impl DemoDir {
    fn new(keep: Option<&Path>) -> Result<Self, Failure> {
        let dir = match keep {
            Some(dir) => std::path::absolute(dir).map_err(cannot("find the folder"))?,
            None => env::temp_dir().join(format!("claude-mem-demo-{}", std::process::id())),
        };
        fs::create_dir(&dir).map_err(|error| {
            Failure::new(format!("{} cannot be created: {error}", dir.display()))
                .remedy("pass a new folder in an existing one with `--keep`")
        })?;
        let demo_dir = Self { dir, is_kept: keep.is_some() };
        if !demo_dir.is_kept {
            let dir = demo_dir.dir.clone();
            on_signal(move || drop(fs::remove_dir_all(dir))).map_err(cannot("await a signal"))?;
        }
        demo_dir.set().map_err(cannot("prepare the folder"))?;
        Ok(demo_dir)
    }

    /// Creates a project with a remote and with the files that the sessions use.
    fn set(&self) -> io::Result<()> {
        let project = self.project();
        fs::create_dir_all(project.join(".git"))?;
        fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n")?;
        let remote = "[remote \"origin\"]\n\turl = https://git.example/ana/shop.git\n";
        fs::write(project.join(".git/config"), remote)?;
        for file in files() {
            let file = project.join(file);
            fs::create_dir_all(file.parent().unwrap_or(&project))?;
            fs::write(file, "")?;
        }
        Ok(())
    }

    fn project(&self) -> PathBuf {
        self.dir.join("shop")
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// Calls the hooks as Claude Code does, and prints a line for each session.
    fn record(&self, app: &mut App) -> Result<(), Failure> {
        heading(app, "Three recorded sessions of Claude Code, through the real hooks.")?;
        let cwd = path_in_commands(self.project().display().to_string());
        let cwd = Value::from(cwd).to_string();
        let cwd = &cwd[1..cwd.len() - 1];
        let (mut times, mut calls, mut asked) = (Vec::new(), 0, String::new());
        for line in SESSIONS.lines() {
            let call: Call<'_> = serde_json::from_str(line).map_err(|error| {
                Failure::new(format!("the recorded sessions are invalid: {error}"))
            })?;
            let input = call.input.get().replace("{cwd}", cwd);
            times.push(self.hook(call.hook, &input)?);
            calls += 1;
            match call.hook {
                "new" => asked = prompt(&input),
                "cleanup" => {
                    let line = format!("  {:<14} {asked}", count(calls, "hook call"));
                    app.output.line(line)?;
                    calls = 0;
                }
                _ => {}
            }
        }
        times.sort_unstable();
        let median = times[times.len() / 2].as_secs_f64() * 1000.0;
        let count = times.len();
        if self.holds(SECRET)? {
            return Err(Failure::new("a password was stored that should not have been"));
        }
        app.output.line(format_args!(
            "{count} hook calls, {median:.1} ms each (median). One tool printed a password; no \
             file contains it."
        ))
    }

    /// Whether any file of the log contains this text.
    fn holds(&self, text: &str) -> Result<bool, Failure> {
        let log = fs::read_dir(self.data().join("log")).map_err(cannot("read the log"))?;
        Ok(log.flatten().any(|file| {
            fs::read(file.path())
                .is_ok_and(|bytes| memchr::memmem::find(&bytes, text.as_bytes()).is_some())
        }))
    }

    fn hook(&self, name: &str, input: &str) -> Result<Duration, Failure> {
        let mut command = self.command(&[name])?;
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let began = Instant::now();
        let mut child = command.spawn().map_err(cannot("start a hook"))?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes()).map_err(cannot("write to a hook"))?;
        }
        child.wait().map_err(cannot("wait for a hook"))?;
        Ok(began.elapsed())
    }

    /// A command of this program, in the project, isolated from the user's settings and data.
    fn command(&self, arguments: &[&str]) -> Result<Command, Failure> {
        let program = env::current_exe().map_err(cannot("find this program"))?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.project()).env_clear();
        for name in ["PATH", "TERM", "NO_COLOR", "TZ", "LANG", "SystemRoot"] {
            command.envs(env::var_os(name).map(|value| (name, value)));
        }
        command.env("HOME", &self.dir).env("USERPROFILE", &self.dir);
        command.env("CLAUDE_MEM_DATA_DIR", self.data());
        command.env(PROVIDER.name, ProviderName::Extract.name());
        command.env(VERBOSITY.name, Verbosity::Normal.name());
        command.env("CLAUDE_MEM_WORKER_AUTOSTART", "false").env("PAGER", "cat");
        Ok(command)
    }

    fn show(&self, app: &mut App, title: &str, arguments: &[&str]) -> Result<(), Failure> {
        heading(app, title)?;
        self.shown_with(app, &[], arguments)
    }

    fn shown_with(
        &self,
        app: &mut App,
        environment: &[(&str, &str)],
        arguments: &[&str],
    ) -> Result<(), Failure> {
        let set: String =
            environment.iter().map(|(name, value)| format!("{name}={value} ")).collect();
        app.output.line(app.output.dim(&format!("$ {set}claude-mem {}", arguments.join(" "))))?;
        let mut command = self.command(arguments)?;
        command.envs(environment.iter().copied());
        // Without a terminal as stdin, `context` would run as a hook.
        if arguments == ["context"] {
            command.args(["--project", "."]);
        }
        let status = command.status().map_err(cannot("run a command"))?;
        if status.success() {
            return Ok(());
        }
        Err(Failure::new(format!("`claude-mem {}` failed", arguments.join(" ")))
            .remedy("this should not happen; please report it with what is above"))
    }

    fn print_next_steps(&self, app: &mut App) -> Result<(), Failure> {
        heading(app, "End of the demo. To set it up in Claude Code: claude-mem install")?;
        if self.is_kept {
            let (data, project) = (self.data(), self.project());
            app.output.line(format_args!(
                "The demo's memories are kept. To see them in a browser:\n  \
                 cd {} && CLAUDE_MEM_DATA_DIR={} claude-mem viewer",
                project.display(),
                data.display()
            ))?;
        }
        Ok(())
    }
}

impl Drop for DemoDir {
    fn drop(&mut self) {
        if !self.is_kept {
            // If this fails, the system cleans its temporary directory sooner or later.
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

fn heading(app: &mut App, text: &str) -> Result<(), Failure> {
    app.output.line("")?;
    app.output.line(app.output.paint("1", text))
}

/// The files that the sessions use, relative to the project.
fn files() -> BTreeSet<&'static str> {
    let starts = SESSIONS.match_indices("\"{cwd}/").map(|(at, start)| at + start.len());
    starts.filter_map(|at| SESSIONS[at..].split('"').next()).collect()
}

/// The first line of the prompt, cut to the width of the terminal.
fn prompt(input: &str) -> String {
    let input: Value = serde_json::from_str(input).unwrap_or_default();
    let prompt = input["prompt"].as_str().unwrap_or_default().lines().next().unwrap_or_default();
    cut(prompt, PROMPT_COLUMNS)
}

fn cannot(what: &str) -> impl FnOnce(io::Error) -> Failure {
    move |error| Failure::new(format!("the demo cannot {what}: {error}"))
}
