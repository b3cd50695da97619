//! `claude-mem demo`: the whole path, on recorded sessions, in a place of its own.

use std::{
    collections::BTreeSet,
    env, fs, io,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use claude_mem_core::{
    app::App,
    failure::Failure,
    os::path_in_commands,
    settings::{
        ProviderName, Verbosity,
        table::{PROVIDER, VERBOSITY},
    },
};

/// See the whole of it in a minute, without touching anything of yours
///
/// Feeds three recorded sessions through the real hooks into a temporary directory, distils them with the rules
/// that are built in (no model, no network), and shows what the next session would be told, a search, and what a
/// replay changes. Everything is gone afterwards, unless `--keep` names a folder for it.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Leave everything in this folder, which must not exist yet
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// What Claude Code sent, a line each, with `{cwd}` where the project's folder was.
const SESSIONS: &str = include_str!("sessions.jsonl");

/// The password that a tool prints in the first session.
const SECRET: &str = "correct-horse-battery";

/// One call of a hook.
#[derive(Deserialize)]
struct Call<'a> {
    hook: &'a str,
    #[serde(borrow)]
    input: &'a RawValue,
}

impl Demo {
    /// Every step is a command that the user could have typed, and is shown as such.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let stage = Stage::new(self.keep.as_deref())?;
        let shown = stage.record(app)?;
        app.output.line(shown)?;

        stage.show(app, "The turns are over: what happened is distilled.", &["distill"])?;
        stage.show(
            app,
            "A new session begins in the same project. Claude is told:",
            &["context"],
        )?;
        stage.show(
            app,
            "What you half remember can be found.",
            &["search", "rounding", "cents"],
        )?;
        stage.show(app, "And traced to what it was made of.", &["show", "1"])?;

        heading(app, "Another way to remember, tried on the past before it is made current.")?;
        let verbose = [("CLAUDE_MEM_VERBOSITY", "verbose")];
        stage.shown_with(app, &verbose, &["replay", "--shadow"])?;
        stage.shown_with(app, &[], &["diff"])?;

        heading(app, "The database is deleted, and rebuilt from the log.")?;
        fs::remove_file(stage.data().join("memory.db")).map_err(cannot("remove memory.db"))?;
        app.output.line(app.output.dim("$ rm memory.db"))?;
        stage.shown_with(app, &[], &["replay"])?;
        stage.farewell(app)
    }
}

/// The place where it happens. What was not asked to be kept is gone when it is dropped.
struct Stage {
    dir: PathBuf,
    is_kept: bool,
}

impl Stage {
    fn new(keep: Option<&Path>) -> Result<Self, Failure> {
        let dir = match keep {
            Some(dir) => std::path::absolute(dir).map_err(cannot("find the folder"))?,
            None => env::temp_dir().join(format!("claude-mem-demo-{}", std::process::id())),
        };
        fs::create_dir(&dir).map_err(|error| {
            Failure::new(format!("{} cannot be made: {error}", dir.display()))
                .remedy("name a folder that does not exist yet, in one that does, with `--keep`")
        })?;
        let stage = Self { dir, is_kept: keep.is_some() };
        stage.set().map_err(cannot("prepare the folder"))?;
        Ok(stage)
    }

    /// A project with a remote and with the files that the sessions are about.
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

    /// Calls the hooks as Claude Code does, and says what was recorded.
    fn record(&self, app: &mut App) -> Result<String, Failure> {
        heading(app, "Three recorded sessions of Claude Code, through the real hooks.")?;
        let cwd = path_in_commands(self.project().display().to_string());
        let cwd = Value::from(cwd).to_string();
        let cwd = &cwd[1..cwd.len() - 1];
        let mut times = Vec::new();
        for line in SESSIONS.lines() {
            let call: Call<'_> = serde_json::from_str(line)
                .map_err(|error| Failure::new(format!("the recording is broken: {error}")))?;
            let input = call.input.get().replace("{cwd}", cwd);
            app.output.line(described(call.hook, &input))?;
            times.push(self.hook(call.hook, &input)?);
        }
        times.sort_unstable();
        let median = times[times.len() / 2].as_secs_f64() * 1000.0;
        let count = times.len();
        Ok(match self.holds(SECRET)? {
            false => format!(
                "\n{count} hook calls, each back in {median:.1} ms (median). One tool printed a password; it is in no file."
            ),
            true => return Err(Failure::new("a password was stored that should not have been")),
        })
    }

    /// Whether any file of the log has this in it.
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
            stdin.write_all(input.as_bytes()).map_err(cannot("speak to a hook"))?;
        }
        child.wait().map_err(cannot("wait for a hook"))?;
        Ok(began.elapsed())
    }

    /// This program, about to run in the project with nothing of the user's own settings or memory.
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
        command.env(VERBOSITY.name, Verbosity::Minimal.name());
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
        // Without a stdin of its own, `context` would take itself for the hook.
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

    fn farewell(&self, app: &mut App) -> Result<(), Failure> {
        heading(app, "That was all of it. To have it in Claude Code: claude-mem install")?;
        if self.is_kept {
            let (data, project) = (self.data(), self.project());
            app.output.line(format_args!(
                "The memory of the demo stays. To look at it in a browser:\n  cd {} && CLAUDE_MEM_DATA_DIR={} claude-mem viewer",
                project.display(),
                data.display()
            ))?;
        }
        Ok(())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.is_kept {
            // What cannot be removed is in the directory for temporary files, where it ends sooner or later.
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

fn heading(app: &mut App, text: &str) -> Result<(), Failure> {
    app.output.line("")?;
    app.output.line(app.output.paint("1", text))
}

/// The files that the sessions are about, relative to the project.
fn files() -> BTreeSet<&'static str> {
    let starts = SESSIONS.match_indices("\"{cwd}/").map(|(at, start)| at + start.len());
    starts.filter_map(|at| SESSIONS[at..].split('"').next()).collect()
}

/// One line about a call: which hook, and of what.
fn described(hook: &str, input: &str) -> String {
    let input: Value = serde_json::from_str(input).unwrap_or_default();
    let text = |name: &str| input[name].as_str().unwrap_or_default();
    let tool = &input["tool_input"];
    let what = match hook {
        "new" => text("prompt"),
        "save" => ["file_path", "command", "pattern", "url", "description"]
            .iter()
            .find_map(|name| tool[*name].as_str())
            .unwrap_or_default(),
        "summary" => text("last_assistant_message"),
        _ => text("session_id").split('-').next().unwrap_or_default(),
    };
    let what = what.lines().next().unwrap_or_default().replace(&format!("{}/", text("cwd")), "");
    let what: String = what.chars().take(60).collect();
    let event = match text("tool_name") {
        "" => text("hook_event_name").to_owned(),
        tool => format!("{} {tool}", text("hook_event_name")),
    };
    format!("  {hook:<8} {event:<26} {what}")
}

fn cannot(what: &str) -> impl FnOnce(io::Error) -> Failure {
    move |error| Failure::new(format!("the demo cannot {what}: {error}"))
}
