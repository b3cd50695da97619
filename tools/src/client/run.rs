//! One run of the client: its world, its limit of time, and what it left behind.

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

/// How long the client may take to put its children away once its time is up.
const GRACE: Duration = Duration::from_secs(5);

/// The client and the world it lives in. Several runs share home and project, as sessions of one user do;
/// both are removed when this is dropped.
#[derive(Debug)]
pub struct Client {
    executable: PathBuf,
    world: TempDir,
    cwd: PathBuf,
    args: Vec<OsString>,
    allowed: Vec<String>,
    env: Vec<(OsString, OsString)>,
    stdin: Vec<u8>,
    limit: Duration,
}

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// As the system tells it.
    pub status: ExitStatus,
    /// Whether it had to be killed because its time was up.
    pub timed_out: bool,
    /// Everything it printed.
    pub stdout: String,
    /// Everything it complained about.
    pub stderr: String,
}

impl Client {
    /// The installed client in a fresh world, talking to the model server at `url`.
    pub fn new(url: &str) -> Result<Self, ClientError> {
        Self::with_executable(executable()?, url)
    }

    /// As [`new`](Self::new), with a client that is already there.
    pub fn with_executable(executable: PathBuf, url: &str) -> Result<Self, ClientError> {
        let world = fresh_world().map_err(|source| {
            let path = std::env::temp_dir();
            ClientError::Directory { path, source }
        })?;
        let cwd = world.path().join("project");
        let env = environment(&world.path().join("home"), url);
        let (args, allowed, stdin) = (Vec::new(), Vec::new(), Vec::new());
        let limit = Duration::from_secs(120);
        Ok(Self { executable, world, cwd, args, allowed, env, stdin, limit })
    }

    /// Its `HOME`; settings of the user are in `.claude/settings.json` below it.
    pub fn home(&self) -> PathBuf {
        self.world.path().join("home")
    }

    /// Where it works: an empty directory `project` of its own, unless told otherwise.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Works there instead. The directory must exist.
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

    /// The model it asks for, instead of the client's own choice.
    #[must_use]
    pub fn model(self, model: &str) -> Self {
        self.arg("--model").arg(model)
    }

    /// Lets this tool run without asking, such as `mcp__mem__search`. The client's own are allowed.
    #[must_use]
    pub fn allow(mut self, tool: &str) -> Self {
        self.allowed.push(tool.to_owned());
        self
    }

    /// A further argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Further arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// A further variable of its environment, or another value for one it has.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// What it reads on stdin: nothing, unless told otherwise.
    #[must_use]
    pub fn stdin(self, bytes: impl Into<Vec<u8>>) -> Self {
        Self { stdin: bytes.into(), ..self }
    }

    /// How long a run may take: two minutes, unless told otherwise.
    #[must_use]
    pub fn limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Puts one prompt to it, as `claude -p PROMPT`, and waits for the end. The output is stream-json.
    pub fn prompt(&self, prompt: &str) -> io::Result<Outcome> {
        let mut allowed = self.allowed.clone();
        allowed.push(TOOLS_ALLOWED.to_owned());
        let mut command = self.command();
        command.args(["-p", "--output-format", "stream-json", "--verbose"]);
        command.arg("--allowedTools").arg(allowed.join(","));
        command.args(&self.args).arg("--").arg(prompt);
        self.run(&mut command)
    }

    /// Puts one prompt to it as an editor does: `permitted` answers whether a tool may be used, from its name and its input.
    /// Returns the last message.
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
        let limit = self.limit;
        let guard = thread::spawn(move || {
            if ended.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
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
        // It ends when its input does, after the hooks of the end of a session.
        drop(stdin);
        child.wait()?;
        drop(done);
        drop(guard.join());
        Ok(result)
    }

    /// Runs it with the given arguments alone, such as `plugin validate DIR`, and waits for the end.
    pub fn call<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> io::Result<Outcome> {
        self.run(self.command().args(args))
    }

    /// The client in this world without any argument, for those who talk to it as it runs. The child leads
    /// its own process group; whoever starts it ends it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.env_clear().envs(self.env.iter().map(|(name, value)| (name, value)));
        command.current_dir(&self.cwd).process_group(0);
        command
    }

    /// Variables that make any client in this world talk to the model server, and to nobody else: for a
    /// program under test that starts the client by itself.
    pub fn environment(&self) -> &[(OsString, OsString)] {
        &self.env
    }

    /// Output goes to files, because a pipe stays open for as long as any descendant keeps it.
    fn run(&self, command: &mut Command) -> io::Result<Outcome> {
        let (stdout, stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
        let mut stdin = tempfile::tempfile()?;
        stdin.write_all(&self.stdin)?;
        stdin.rewind()?;
        command.stdin(Stdio::from(stdin));
        command.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
        let (status, timed_out) = wait(command.spawn()?, self.limit)?;
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

/// Waits for the child, at most for `limit`. After that its group is asked to end, so that it can put its
/// own children away, and then killed.
fn wait(mut child: Child, limit: Duration) -> io::Result<(ExitStatus, bool)> {
    let pid = Pid::from_child(&child);
    let (ended, end) = mpsc::channel();
    // It is only watched here and reaped below, so that its number stays its own until then.
    let watch = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let watcher = thread::spawn(move || {
        let _ = ended.send(waitid(WaitId::Pid(pid), watch).map(|_| ()));
    });
    let timed_out = end.recv_timeout(limit).is_err();
    if timed_out {
        let _ = kill_process_group(pid, Signal::TERM);
        let _ = end.recv_timeout(GRACE);
    }
    // Also what a client that ended by itself left behind in its group.
    let _ = kill_process_group(pid, Signal::KILL);
    let status = child.wait()?;
    drop(watcher.join());
    Ok((status, timed_out))
}

fn text(mut file: File) -> io::Result<String> {
    file.rewind()?;
    io::read_to_string(file)
}
