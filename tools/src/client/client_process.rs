//! One run of the client: its environment, its time limit, and its output.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::install::{ClientError, executable};

/// Tools that run without confirmation, because there is no user.
const TOOLS_ALLOWED: &str = "Agent,Bash,Edit,NotebookEdit,Read,Task,ToolSearch,Write";

/// The time limit of a run.
const TIME_MAX: Duration = Duration::from_secs(120);

/// Time for the client to stop its children after the time limit.
const GRACE: Duration = Duration::from_secs(5);

/// The client and its environment. Several runs share home and project, as sessions of one user do;
/// both are deleted when this is dropped.
#[derive(Debug)]
pub struct Client {
    executable: PathBuf,
    world: TempDir,
    cwd: PathBuf,
    args: Vec<OsString>,
    allowed: Vec<String>,
    env: Vec<(OsString, OsString)>,
    stdin: Vec<u8>,
}

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The exit status.
    pub status: ExitStatus,
    /// Whether it was killed at the time limit.
    pub timed_out: bool,
    /// Its stdout.
    pub stdout: String,
    /// Its stderr.
    pub stderr: String,
}

impl Client {
    /// The installed client in a new environment, connected to the model server at `url`.
    pub fn new(url: &str) -> Result<Self, ClientError> {
        Self::with_executable(executable()?, url)
    }

    /// As [`new`](Self::new), with an installed client.
    pub fn with_executable(executable: PathBuf, url: &str) -> Result<Self, ClientError> {
        let world = fresh_world().map_err(|source| {
            let path = std::env::temp_dir();
            ClientError::Directory { path, source }
        })?;
        let cwd = world.path().join("project");
        let env = environment(&world.path().join("home"), url);
        let (args, allowed, stdin) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { executable, world, cwd, args, allowed, env, stdin })
    }

    /// Its `HOME`; the user's settings are in `.claude/settings.json` below it.
    pub fn home(&self) -> PathBuf {
        self.world.path().join("home")
    }

    /// Its working directory: by default an empty directory `project`.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Sets the working directory, which must exist.
    #[must_use]
    pub fn in_directory(self, cwd: impl Into<PathBuf>) -> Self {
        Self { cwd: cwd.into(), ..self }
    }

    /// Writes the user's settings.
    pub fn settings(self, settings: &Value) -> io::Result<Self> {
        let directory = self.home().join(".claude");
        fs::create_dir_all(&directory)?;
        fs::write(directory.join("settings.json"), settings.to_string())?;
        Ok(self)
    }

    /// Loads the plugin in this directory, without installing it.
    #[must_use]
    pub fn plugin(self, directory: impl AsRef<OsStr>) -> Self {
        self.arg("--plugin-dir").arg(directory)
    }

    /// Sets the model, instead of the client's default.
    #[must_use]
    pub fn model(self, model: &str) -> Self {
        self.arg("--model").arg(model)
    }

    /// Allows this tool without confirmation, such as `mcp__mem__search`. The client's own tools
    /// are allowed.
    #[must_use]
    pub fn allow(mut self, tool: &str) -> Self {
        self.allowed.push(tool.to_owned());
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets its stdin, which is empty by default.
    #[must_use]
    pub fn stdin(self, bytes: impl Into<Vec<u8>>) -> Self {
        Self { stdin: bytes.into(), ..self }
    }

    /// Runs it with one prompt, as `claude -p PROMPT`, and waits for its end. The output is
    /// stream-json.
    pub fn prompt(&self, prompt: &str) -> io::Result<Outcome> {
        let mut allowed = self.allowed.clone();
        allowed.push(TOOLS_ALLOWED.to_owned());
        let mut command = self.command();
        command.args(["-p", "--output-format", "stream-json", "--verbose"]);
        command.arg("--allowedTools").arg(allowed.join(","));
        command.args(&self.args).arg("--").arg(prompt);
        self.run(&mut command)
    }

    /// Runs it with one prompt as an editor does: `permitted` decides whether a tool may be used,
    /// from its name and its input. Returns the last message.
    pub fn converse(
        &self,
        prompt: &str,
        permitted: impl Fn(&str, &Value) -> Value,
    ) -> io::Result<Value> {
        let mut command = self.command();
        command.args(["-p", "--input-format", "stream-json", "--output-format", "stream-json"]);
        command.args(["--verbose", "--permission-prompt-tool", "stdio"]).args(&self.args);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let pid = Pid::from_child(&child);
        let (done, ended) = mpsc::channel::<()>();
        let guard = thread::spawn(move || {
            if ended.recv_timeout(TIME_MAX) == Err(mpsc::RecvTimeoutError::Timeout) {
                let _ = kill_process_group(pid, Signal::KILL);
            }
        });
        writeln!(
            stdin,
            "{}",
            json!({"type": "user", "message": {"role": "user", "content": prompt}})
        )?;
        let mut result = Value::Null;
        for line in BufReader::new(stdout).lines() {
            let message: Value = serde_json::from_str(&line?).unwrap_or_default();
            let request = &message["request"];
            if request["subtype"] == "can_use_tool" {
                let tool = request["tool_name"].as_str().unwrap_or_default();
                let response = permitted(tool, &request["input"]);
                let response = json!({"subtype": "success", "request_id": message["request_id"], "response": response});
                writeln!(stdin, "{}", json!({"type": "control_response", "response": response}))?;
            }
            if message["type"] == "result" {
                result = message;
                break;
            }
        }
        // It exits at the end of its input, after the hooks of the end of a session.
        drop(stdin);
        child.wait()?;
        drop(done);
        drop(guard.join());
        Ok(result)
    }

    /// Runs it with only these arguments, such as `plugin validate DIR`, and waits for its end.
    pub fn call<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> io::Result<Outcome> {
        self.run(self.command().args(args))
    }

    /// The client in this environment without arguments, for interactive use. The child leads its
    /// own process group; the caller must end it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.env_clear().envs(self.env.iter().map(|(name, value)| (name, value)));
        command.current_dir(&self.cwd).process_group(0);
        command
    }

    /// Environment variables that connect a client to this model server only: for a program under
    /// test that starts the client itself.
    pub fn environment(&self) -> &[(OsString, OsString)] {
        &self.env
    }

    /// Output goes to files, because a pipe stays open as long as a descendant holds it.
    fn run(&self, command: &mut Command) -> io::Result<Outcome> {
        let (stdout, stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
        let mut stdin = tempfile::tempfile()?;
        stdin.write_all(&self.stdin)?;
        stdin.rewind()?;
        command.stdin(Stdio::from(stdin));
        command.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
        let (status, timed_out) = wait(command.spawn()?)?;
        Ok(Outcome { status, timed_out, stdout: text(stdout)?, stderr: text(stderr)? })
    }
}

impl Outcome {
    /// The lines of stream-json output.
    pub fn messages(&self) -> Vec<Value> {
        self.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The last message of type `result`, or `null`.
    pub fn result(&self) -> Value {
        let found = self.messages().into_iter().rfind(|message| message["type"] == "result");
        found.unwrap_or_default()
    }
}

fn fresh_world() -> io::Result<TempDir> {
    let world = tempfile::Builder::new().prefix("claude-mem-client-").tempdir()?;
    for name in ["home", "project"] {
        fs::create_dir(world.path().join(name))?;
    }
    Ok(world)
}

fn environment(home: &Path, url: &str) -> Vec<(OsString, OsString)> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let mut env = vec![("HOME".into(), home.into()), ("PATH".into(), path)];
    let switches = [
        ("ANTHROPIC_BASE_URL", url),
        ("ANTHROPIC_API_KEY", "sk-ant-scripted"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("DISABLE_ERROR_REPORTING", "1"),
        ("DISABLE_TELEMETRY", "1"),
        ("LANG", "C.UTF-8"),
        ("NO_PROXY", "127.0.0.1"),
    ];
    env.extend(switches.map(|(name, value)| (name.into(), value.into())));
    env
}

/// Waits for the child, up to the time limit. Then its group receives a signal to exit, so that it can
/// stop its own children, and is killed later.
fn wait(mut child: Child) -> io::Result<(ExitStatus, bool)> {
    let pid = Pid::from_child(&child);
    let (ended, end) = mpsc::channel();
    // Only watched here and reaped below, so that its process id is not reused until then.
    let watch = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let watcher = thread::spawn(move || {
        let _ = ended.send(waitid(WaitId::Pid(pid), watch).map(|_| ()));
    });
    let timed_out = end.recv_timeout(TIME_MAX).is_err();
    if timed_out {
        let _ = kill_process_group(pid, Signal::TERM);
        let _ = end.recv_timeout(GRACE);
    }
    // Also kills processes that a client left behind in its group.
    let _ = kill_process_group(pid, Signal::KILL);
    let status = child.wait()?;
    drop(watcher.join());
    Ok((status, timed_out))
}

fn text(mut file: File) -> io::Result<String> {
    file.rewind()?;
    io::read_to_string(file)
}
