//! A home directory for each test, in which it runs the built binary.

use std::{
    env,
    ffi::OsStr,
    fs,
    io::{Read as _, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use claude_mem_tools::{client::Client, pseudo_terminal};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A temporary home directory.
pub(crate) struct Sandbox {
    dir: tempfile::TempDir,
}

/// The result of running the binary.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Adds a line to the file of skipped checks, which `tools/test` counts: the runner hides what a
/// passing test prints.
pub(crate) fn count_as_skipped(why: &str) {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("skipped-checks.txt");
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let mut file = fs::OpenOptions::new().append(true).create(true).open(file).unwrap();
    file.write_all(format!("{test}: {why}\n").as_bytes()).unwrap();
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("home")).unwrap();
        Self { dir }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// The data directory. It exists once something is written.
    pub(crate) fn data(&self) -> PathBuf {
        self.home().join(".claude-mem")
    }

    /// Deletes the database; the next command rebuilds it from the log.
    pub(crate) fn delete_database(&self) {
        for suffix in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(self.data().join(format!("memory.db{suffix}")));
        }
    }

    /// Writes a file below the home directory, and the directories above it.
    pub(crate) fn write(&self, path: &str, text: &str) -> PathBuf {
        let file = self.home().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }

    /// Reads a file below the home directory.
    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.home().join(path)).unwrap()
    }

    /// The binary with the home directory as working directory, and nothing of this process's
    /// environment.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(binary());
        command.args(arguments).env_clear().env("HOME", self.home()).env("PATH", "/usr/bin:/bin");
        // Only tests of the worker start one.
        command.env("CLAUDE_MEM_WORKER_AUTOSTART", "false");
        // Only tests of vectors need them.
        command.env("CLAUDE_MEM_SEMANTIC", "off");
        command.current_dir(self.home());
        command
    }

    /// A shell in its own namespaces that runs a script whose `$0` is the binary. `None` where that
    /// is not allowed: the check is then counted as skipped.
    pub(crate) fn in_own_world(&self, script: &str) -> Option<Command> {
        let allowed = Command::new("unshare").args(["-rm", "true"]).output();
        if !allowed.is_ok_and(|output| output.status.success()) {
            assert!(std::env::var_os("CI").is_none(), "CI must allow name spaces (`unshare -rm`)");
            count_as_skipped("name spaces are not allowed here");
            return None;
        }
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", script]).arg(binary());
        command.env_clear().env("HOME", self.home()).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        Some(command)
    }

    /// Runs the binary with empty stdin, and waits for its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Run {
        self.run_with(arguments, &[], "")
    }

    /// Runs the binary with these variables and this stdin, and waits for its end.
    pub(crate) fn run_with<S: AsRef<OsStr>>(
        &self,
        arguments: &[S],
        environment: &[(&str, &str)],
        stdin: impl AsRef<[u8]>,
    ) -> Run {
        let mut command = self.command(arguments);
        command.envs(environment.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A program may exit without reading its input, which closes the pipe.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_ref());
        let output = child.wait_with_output().unwrap();
        Run {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs a hook as Claude Code does. It must always exit with 0, print nothing to stderr, and
    /// respond with one JSON object.
    pub(crate) fn hook(&self, name: &str, stdin: impl AsRef<[u8]>) -> Value {
        self.hook_with(name, &[], stdin)
    }

    /// As [`hook`](Self::hook), with these variables.
    pub(crate) fn hook_with(
        &self,
        name: &str,
        environment: &[(&str, &str)],
        stdin: impl AsRef<[u8]>,
    ) -> Value {
        self.run_with(&[name], environment, stdin).answer()
    }

    /// Makes the client that distills use the model server at `url`, for all projects.
    pub(crate) fn use_gateway(&self, url: &str) {
        let lines = format!("ANTHROPIC_BASE_URL={url}\nANTHROPIC_API_KEY=sk-ant-scripted\n");
        self.write(".claude-mem/.env", &lines);
    }

    /// All events, as in `claude-mem log --json --raw`.
    pub(crate) fn events(&self) -> Vec<Value> {
        let listed = self.run(&["log", "--json", "--raw"]).ok();
        listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The lines of the diagnostics log.
    pub(crate) fn diagnostics(&self) -> String {
        fs::read_to_string(self.data().join("logs/claude-mem.log")).unwrap_or_default()
    }
}

impl Run {
    /// The response of a hook that behaved as a hook must.
    pub(crate) fn answer(self) -> Value {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{self:?}");
        let answer: Value = serde_json::from_str(&self.stdout).unwrap();
        assert_eq!(answer["continue"], true, "{self:?}");
        answer
    }

    /// Stdout of a successful run; anything else fails the test.
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.stdout
    }

    /// Stderr of a run with this exit code; anything else fails the test.
    pub(crate) fn fails(self, code: i32) -> String {
        assert_eq!(self.code, code, "{self:?}");
        self.stderr
    }
}

/// The real Claude Code in its own environment, connected to the model server at `url`. It is
/// installed if missing; if that fails, so does the test.
pub(crate) fn real_client(url: &str) -> Client {
    Client::new(url).unwrap_or_else(|error| panic!("Claude Code cannot be installed here: {error}"))
}

/// Runs our binary in the environment of the real client.
pub(crate) fn ours(client: &Client, arguments: &[&str]) -> String {
    ours_with(client, arguments, &[])
}

/// The same with more variables.
pub(crate) fn ours_with(client: &Client, arguments: &[&str], more: &[(&str, &str)]) -> String {
    let mut command = Command::new(binary());
    command.args(arguments).env_clear().env("HOME", client.home()).current_dir(client.cwd());
    command.env("PATH", "/usr/bin:/bin").envs(more.iter().copied());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The binary under test. `CLAUDE_MEM_TEST_BINARY` names another one, such as an older build, to
/// see which tests it fails.
pub(crate) fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        env::var_os("CLAUDE_MEM_TEST_BINARY")
            .map_or_else(|| env!("CARGO_BIN_EXE_claude-mem").into(), PathBuf::from)
    })
}

/// A command at a terminal of this size.
pub(crate) struct AtTerminal {
    child: Child,
    /// The controlling end of the terminal.
    screen: fs::File,
    unread: Vec<u8>,
}

impl AtTerminal {
    /// Starts the command with all standard streams connected to the terminal.
    pub(crate) fn start(command: Command, columns: u16, rows: u16) -> Self {
        let (child, screen) = pseudo_terminal::spawn(command, columns, rows).unwrap();
        Self { child, screen, unread: Vec::new() }
    }

    /// Types keys.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.screen.write_all(keys.as_bytes()).unwrap();
    }

    /// Reads up to and including this text. The rest is read next.
    pub(crate) fn read_until(&mut self, text: &str) -> String {
        let mut piece = [0; 4096];
        loop {
            let found = self.unread.windows(text.len()).position(|part| part == text.as_bytes());
            if let Some(at) = found {
                let rest = self.unread.split_off(at + text.len());
                let read = std::mem::replace(&mut self.unread, rest);
                return String::from_utf8_lossy(&read).into_owned();
            }
            match self.screen.read(&mut piece) {
                Ok(length) if length > 0 => self.unread.extend_from_slice(&piece[..length]),
                end => {
                    let shown = String::from_utf8_lossy(&self.unread);
                    panic!("{end:?} before `{text}` in {shown}")
                }
            }
        }
    }

    /// Changes the size, as if the window were resized.
    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        pseudo_terminal::resize(&self.screen, columns, rows).unwrap();
        self.signal(Signal::WINCH);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Closes the terminal without a signal, and returns the exit code of the command.
    pub(crate) fn hang_up(&mut self) -> i32 {
        self.screen = fs::File::open("/dev/null").unwrap();
        self.child.wait().unwrap().code().unwrap()
    }

    /// Reads all output until the command ends, and returns it with the exit code.
    pub(crate) fn finish(&mut self) -> (Vec<String>, i32) {
        let mut pieces = vec![String::from_utf8_lossy(&self.unread).into_owned()];
        let mut piece = [0; 8192];
        // Reading fails once the other end is closed.
        while let Ok(length) = self.screen.read(&mut piece) {
            if length == 0 {
                break;
            }
            pieces.push(String::from_utf8_lossy(&piece[..length]).into_owned());
        }
        (pieces, self.child.wait().unwrap().code().unwrap())
    }
}

impl Drop for AtTerminal {
    /// A failed test leaves no process behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
