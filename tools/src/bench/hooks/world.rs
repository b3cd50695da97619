//! A home directory, a project, and the programs measured in them.

use std::{
    env,
    ffi::OsStr,
    fs,
    io::{self, Write as _},
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use claude_mem_events::{Envelope, Event, EventLog, Id};
use claude_mem_log::Log;
use claude_mem_projections::{Options, rebuild};
use serde_json::json;

use crate::bench::{BenchResult, Scratch, binary};

/// Files in the project, which memories refer to.
pub(super) const FILES: u64 = 40;
/// The path of the project in the home directory.
const PROJECT: &str = "work/shop";

/// Creates a git project with a remote in this home directory.
pub(super) fn project_in(home: &Path) -> io::Result<PathBuf> {
    let project = home.join(PROJECT);
    fs::create_dir_all(project.join(".git"))?;
    fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n")?;
    let config =
        "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@example.com:ada/shop.git\n";
    fs::write(project.join(".git/config"), config)?;
    Ok(project)
}

/// The environment of hooks: a home directory without settings, a git project with a remote.
#[derive(Debug)]
pub(super) struct World {
    pub(super) home: PathBuf,
    pub(super) hook: PathBuf,
    pub(super) empty: PathBuf,
    /// The wake socket, open as if a worker ran, so that hooks leave syncing to it unless
    /// configured otherwise. Nothing reads it: an unread datagram costs the hook the same.
    _worker: UnixDatagram,
}

impl World {
    /// Records replies, one a minute, and builds the database.
    pub(super) fn fill(
        &self,
        replies: u64,
        reply: impl Fn(u64) -> (Envelope, Event),
    ) -> BenchResult<()> {
        const START_US: u64 = 1_790_000_000_000_000;
        let dir = self.data().join("log");
        let mut log = EventLog::open(&dir, claude_mem_log::Options::default())?;
        let mut batch = Vec::new();
        for number in 0..replies {
            let (envelope, event) = reply(number);
            batch.push((Id::new(START_US + number * 60_000_000, number << 2), envelope, event));
            if batch.len() == 1000 || number + 1 == replies {
                log.record_all(&batch)?;
                batch.clear();
            }
        }
        let log = Log::open(&dir, claude_mem_log::Options::default())?;
        rebuild(&self.data().join("memory.db"), &log, &Options::default(), |_| ())?;
        Ok(())
    }

    pub(super) fn new(scratch: &Scratch, name: &str) -> BenchResult<Self> {
        let home = scratch.place(name);
        let project = project_in(&home)?;
        for file in 0..FILES {
            fs::write(project.join(format!("file_{file}.rs")), "fn main() {}\n")?;
        }
        fs::create_dir_all(home.join(".claude-mem"))?;
        let worker = UnixDatagram::bind(home.join(".claude-mem/worker.wake"))?;
        Ok(Self {
            hook: installed(&binary()?, scratch)?,
            empty: empty(scratch)?,
            home,
            _worker: worker,
        })
    }

    /// The data directory.
    pub(super) fn data(&self) -> PathBuf {
        self.home.join(".claude-mem")
    }

    pub(super) fn command(&self, program: &Path, sync: &str) -> Command {
        self.command_of("save", program, sync)
    }

    pub(super) fn command_of(&self, hook: &str, program: &Path, sync: &str) -> Command {
        command_in(&self.home, hook, program, sync)
    }

    /// Runs it: writes its input, reads its output, waits for its end. Returns the time.
    pub(super) fn turn(&self, program: &Path, sync: &str, input: &[u8]) -> BenchResult<Duration> {
        run(&mut self.command(program, sync), input)
    }

    /// The number of recorded events, to check that the hook did its work.
    pub(super) fn recorded(&self) -> BenchResult<usize> {
        let mut command = Command::new(&self.hook);
        command.args(["log", "--json"]).env_clear().env("HOME", &self.home);
        let output = command.output()?;
        Ok(String::from_utf8(output.stdout)?.lines().count())
    }
}

/// A hook of a session in the project of this home.
pub(super) fn command_in(home: &Path, hook: &str, program: &Path, sync: &str) -> Command {
    let project = home.join(PROJECT);
    let mut command = Command::new(program);
    command.arg(hook).env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin");
    command.env("CLAUDE_PROJECT_DIR", &project).env("CLAUDE_MEM_SYNC", sync);
    command.env("CLAUDE_MEM_WORKER_AUTOSTART", "false");
    command.current_dir(&project);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// A command whose stdin and stdout are pipes.
pub(super) fn run(command: &mut Command, input: &[u8]) -> BenchResult<Duration> {
    let start = Instant::now();
    let mut child = command.spawn()?;
    // A program that does nothing may exit before it reads its input.
    let _ = child.stdin.take().ok_or("stdin is a pipe")?.write_all(input);
    let output = child.wait_with_output()?;
    let taken = start.elapsed();
    if !output.status.success() {
        return Err(
            format!("{} ended with {}", command.get_program().display(), output.status).into()
        );
    }
    Ok(taken)
}

/// The input of `save` for a tool that printed this.
pub(super) fn input_of(stdout: &str) -> Vec<u8> {
    json!({
        "session_id": "977713de-060a-4749-8b22-2125d5a8195f",
        "transcript_path": "/home/ada/.claude/projects/-work-shop/977713de-060a-4749-8b22-2125d5a8195f.jsonl",
        "cwd": "/home/ada/work/shop", "prompt_id": "012595b7-40b0-479a-b9ca-78af2b473567",
        "permission_mode": "default", "effort": {"level": "medium"},
        "hook_event_name": "PostToolUse", "tool_name": "Bash",
        "tool_input": {"command": "cargo test", "description": "Run the tests"},
        "tool_response": {"stdout": stdout, "stderr": "", "interrupted": false, "isImage": false},
        "tool_use_id": "toolu_01A09q90qw90lq917835lq9", "duration_ms": 4711,
    })
    .to_string()
    .into_bytes()
}

/// The input of `save`, `bytes` long, with output like that of a test run.
pub(super) fn input(bytes: usize) -> Vec<u8> {
    let mut stdout = String::new();
    let room = bytes.saturating_sub(input_of("").len());
    for number in 0_u64.. {
        let line = format!(
            "test shop::cart::case_{:x} ... ok\n",
            number.wrapping_mul(0x9E37_79B9) & 0xFF_FFFF
        );
        // A line break is two characters in JSON.
        if stdout.len() + number as usize + line.len() + 1 > room {
            break;
        }
        stdout.push_str(&line);
    }
    input_of(&stdout)
}

/// A copy, as an installation makes one: files written in pieces by a linker are mapped in smaller
/// pages.
fn installed(program: &Path, scratch: &Scratch) -> BenchResult<PathBuf> {
    let name = program.file_name().ok_or("a program has a name")?;
    let copy = scratch.place(&format!("installed-{}", name.display()));
    fs::copy(program, &copy)?;
    Ok(copy)
}

/// A program that does nothing, built like the hook: optimised, static, at a fixed address.
fn empty(scratch: &Scratch) -> BenchResult<PathBuf> {
    let (source, program) = (scratch.place("empty.rs"), scratch.place("empty"));
    fs::write(&source, "fn main() {}\n")?;
    let flags = [
        "-O",
        "-Cpanic=abort",
        "-Cstrip=symbols",
        "-Ctarget-feature=+crt-static",
        "-Crelocation-model=static",
    ];
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let status =
        Command::new(compiler).args(flags).arg(&source).arg("-o").arg(&program).status()?;
    if status.success() {
        installed(&program, scratch)
    } else {
        Err(format!("rustc ended with {status}").into())
    }
}

/// Node, if installed.
pub(super) fn node() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|dir| dir.join(OsStr::new("node"))).find(|found| found.is_file())
}
