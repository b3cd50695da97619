//! The real client as a child, with a scripted model.

mod conversation;
mod failures;
mod isolation;
mod processes;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::Duration,
};

use claude_mem_events::FailureClass;
use claude_mem_tools::{
    client::{self, Client},
    model::{self, Script, Server},
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::*;
use crate::providers::{Concern, Limits};
use claude_mem_core::{environment::Environment, paths::Paths, settings::Settings};

/// Long enough for a busy machine; no test waits for it to expire.
const TIME_MAX: Duration = Duration::from_secs(90);

/// A user's machine: a home directory, our data directory, the client and a model.
struct Fixture {
    server: Server,
    client: Client,
    variables: Vec<(String, String)>,
}

impl Fixture {
    fn new(script: Script) -> Self {
        let server = Server::start(script).unwrap();
        let client = Client::with_executable(installed(), &server.url()).unwrap();
        let text = |value: &std::ffi::OsStr| value.to_str().unwrap().to_owned();
        let variables = client.environment().iter();
        let mut variables: Vec<_> =
            variables.map(|(name, value)| (text(name), text(value))).collect();
        // The endpoint and key of the model are user settings, valid for all projects.
        let data = client.home().join(".claude-mem");
        fs::create_dir_all(&data).unwrap();
        let of_user = variables.iter().filter(|(name, _)| name.contains("ANTHROPIC"));
        let of_user = of_user.map(|(name, value)| format!("{name}={value}\n"));
        fs::write(data.join(".env"), of_user.collect::<String>()).unwrap();
        variables.push(("CLAUDE_MEM_CLAUDE_AUTH_METHOD".into(), "api-key".into()));
        Self { server, client, variables }
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.into(), value.into()));
        self
    }

    fn data(&self) -> PathBuf {
        self.client.home().join(".claude-mem")
    }

    fn setup<T>(&self, use_it: impl FnOnce(&Setup<'_>) -> T) -> T {
        let pairs = self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let environment = Environment::fixed(&pairs.collect::<Vec<_>>());
        let paths = Paths { home: Some(self.client.home()), data: self.data() };
        let settings = Settings::load(&paths, &environment);
        use_it(&Setup { settings: &settings, paths: &paths, environment: &environment })
    }

    /// The running supervisors and clients.
    fn processes(&self) -> Vec<Process> {
        processes_in(&self.data().join("observer-sessions"))
    }

    /// A killed process takes a moment to end.
    fn assert_no_process_is_left(&self) {
        for process in self.processes() {
            process.assert_ends();
        }
    }

    /// Requests that the model received. Older clients also probe the server.
    fn requests(&self) -> Vec<model::Request> {
        let is_post = |request: &model::Request| request.method == "POST";
        self.server.requests().into_iter().filter(is_post).collect()
    }

    fn await_request(&self) {
        let mut count = 1;
        while self.requests().is_empty() {
            count = self.server.wait_for_requests(count).len() + 1;
        }
    }

    fn provider(&self) -> Claude {
        self.setup(|setup| Claude::new(setup, installed(), built(), TIME_MAX).unwrap())
    }
}

fn responding(text: &str) -> Fixture {
    Fixture::new(Script::new().otherwise(model::Answer::text(text)))
}

/// The client, installed by npm on first use. Tests fail without it.
fn installed() -> PathBuf {
    client::executable().unwrap_or_else(|error| panic!("{error}"))
}

/// Our own program, built by cargo next to these tests.
fn built() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let tests = env::current_exe().unwrap();
        let program = tests.parent().and_then(Path::parent).unwrap().join("claude-mem");
        let output = Command::new(&program).arg(claude_mem_core::os::CHILD_COMMAND).output();
        let output = output.unwrap_or_else(|error| panic!("`cargo build` comes first: {error}"));
        assert!(
            output.stderr.starts_with(claude_mem_core::os::CHILD_COMMAND.as_bytes()),
            "`cargo build` comes first"
        );
        program
    });
    built.clone()
}

fn request(session: &str) -> Request {
    Request {
        content_session: session.into(),
        system: "You observe another session.".into(),
        digest: format!("Before, in {session}: nothing."),
        text: format!("<tool session=\"{session}\">ls</tool>"),
        closing: "Answer in XML.".into(),
        model: "claude-haiku-4-5".into(),
        limits: Limits { tokens_out_max: 777, time_max: TIME_MAX },
        ..Request::default()
    }
}

/// The last user text that the model received, without the client's notes about the machine.
fn user_text(request: &model::Request) -> String {
    let text = request.last_user_text();
    let own = text.rsplit_once("</system-reminder>").map_or(text.as_str(), |(_, own)| own);
    own.trim_start().to_owned()
}

fn refused(script: Script) -> Refusal {
    Fixture::new(script).provider().send(&request("s")).unwrap_err()
}

/// A process handle that stays valid when the pid is reused.
struct Process {
    pid: Pid,
    handle: rustix::fd::OwnedFd,
}

impl Process {
    /// `None` if it has ended.
    fn of(pid: Pid) -> Option<Self> {
        Some(Self { pid, handle: pidfd_open(pid, PidfdFlags::empty()).ok()? })
    }

    fn assert_ends(&self) {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let limit = Timespec { tv_sec: TIME_MAX.as_secs() as i64, tv_nsec: 0 };
        let mut polled = [PollFd::new(&self.handle, PollFlags::IN)];
        let ended = poll(&mut polled, Some(&limit)).unwrap();
        assert_eq!(ended, 1, "{:?} is still running", self.pid);
    }

    fn is_alive(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut polled = [PollFd::new(&self.handle, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 0
    }
}

/// The supervisor and the client that run in the given directory.
fn processes_in(cwd: &Path) -> Vec<Process> {
    let cwd = fs::canonicalize(cwd).unwrap();
    let is_there = |pid: &Pid| {
        fs::read_link(format!("/proc/{}/cwd", pid.as_raw_nonzero())).is_ok_and(|its| its == cwd)
    };
    let entries = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| Pid::from_raw(entry.ok()?.file_name().to_str()?.parse().ok()?));
    entries.filter(is_there).filter_map(Process::of).collect()
}
