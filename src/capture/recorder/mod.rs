//! Captures events of clients: checks exclusions, redacts, and appends to the log.

use std::{
    borrow::Cow,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use claude_mem_events::{Envelope, Event, EventLog, Id, MemoryInjected};
use claude_mem_log::{Options, sync_is_due};

use crate::{
    build_event::{EventBuilder, NotBuilt},
    clients::Client,
    dropped::Dropped,
    envelope::{bounded, envelope},
    exclusion::excluded_by,
    incoming::{Incoming, Skip},
    payload::Payload,
    private_turn::PrivateTurn,
    project::{GitHead, ProjectId},
    redaction::{self, redact_texts},
};
use claude_mem_core::{
    clock::Clock,
    diagnostics::{self, Level},
    environment::Environment,
    os,
    paths::{Paths, data_dir},
    settings::{Settings, SyncMode, table::SYNC, value::flag},
    worker_process::wake,
};
use claude_mem_privacy::{
    Policy, redact_text,
    work::{EVENT_BYTES_MAX, Scope},
};

/// The working directory of the agent that distills, below the data directory.
const INTERNAL_DIR: &str = "observer-sessions";
/// The longest time without a sync while no worker does it.
const UNSYNCED_MAX: Duration = Duration::from_secs(1);

/// Set by a user to anything but `0` or `false` to exclude a session.
const SKIP: &str = "CLAUDE_MEM_SKIP";
/// Set for the agent that distills, whose own sessions are not recorded.
const INTERNAL: &str = "CLAUDE_MEM_INTERNAL";

/// Captures events under one set of settings.
#[derive(Debug)]
pub struct Recorder {
    pub paths: Paths,
    pub settings: Settings,
    pub environment: Environment,
    pub(super) policy: Policy,
    /// Maximum number of bytes that redaction reads for one event.
    work_bytes_max: u64,
}

/// The origin of an event.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    /// The client's name.
    pub client: &'a str,
    pub session: Cow<'a, str>,
    pub cwd: Cow<'a, str>,
    pub access: Access,
}

/// Whether paths in an event may be opened.
#[derive(Debug, Clone)]
pub enum Access {
    /// A hook runs as the user in the session's own directory: the project is looked up on disk,
    /// and the client's transcript can be read.
    Hook { client: &'static Client, project_dir: Option<PathBuf> },
    /// A program connected to the worker must not make us open files. It names the project itself.
    Program { project: ProjectId },
}

/// The result of capturing an event.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are recorded")]
pub enum Captured {
    /// To be appended to the log.
    Event {
        envelope: Envelope,
        event: Event,
    },
    Skipped(Skip),
}

/// Why an event could not be recorded.
#[derive(Debug)]
pub enum Problem {
    /// Stdin was empty.
    Empty,
    /// The payload was stored as `InputUnreadable`.
    Unreadable(String),
    /// The marker of a private turn could not be written.
    Marker(std::io::Error),
    /// The event could not be appended.
    Log(claude_mem_log::Error),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("nothing on stdin"),
            Self::Unreadable(why) => write!(f, "unreadable input was kept as it is: {why}"),
            Self::Marker(error) => write!(f, "cannot mark the turn as private: {error}"),
            Self::Log(error) => write!(f, "not recorded: {error}"),
        }
    }
}

impl From<claude_mem_log::Error> for Problem {
    fn from(error: claude_mem_log::Error) -> Self {
        Self::Log(error)
    }
}

/// A session that may be recorded.
pub(super) struct Admitted {
    pub(super) envelope: Envelope,
    pub(super) cwd: String,
    pub(super) turn: PrivateTurn,
    transcripts_of: Option<&'static Client>,
}

impl Recorder {
    /// A recorder with the settings of this process. `None` if the environment disables recording
    /// or the data directory cannot be used.
    pub fn from_process() -> Option<Self> {
        let environment = Environment::of_process();
        let is_set = |name| environment.text(name).is_some_and(|value| flag(&value) != Some(false));
        if is_set(SKIP) || is_set(INTERNAL) {
            return None;
        }
        let paths = Paths::find(&environment).ok()?;
        data_dir::check(&paths).ok()?;
        Some(Self::new(environment, paths))
    }

    /// Loads the settings, once.
    pub fn new(environment: Environment, paths: Paths) -> Self {
        let settings = Settings::load(&paths, &environment);
        let policy = redaction::policy(&settings);
        Self { paths, settings, environment, policy, work_bytes_max: EVENT_BYTES_MAX }
    }

    /// The only path from clients into the log: admits, redacts and builds the event. Nothing is
    /// appended yet. `rest` contains the fields that the parser did not take.
    pub fn capture(
        &self,
        source: Source<'_>,
        incoming: Incoming<'_>,
        rest: Payload<'_>,
    ) -> Result<Captured, Problem> {
        let captured = self.admit(source).map_err(NotBuilt::from).and_then(|admitted| {
            let Admitted { envelope, cwd, turn, transcripts_of } = admitted;
            let builder = EventBuilder {
                settings: &self.settings,
                home: self.paths.home.as_deref(),
                policy: self.policy,
                cwd,
                turn,
                transcripts_of,
                rest,
                bytes_used: 0,
            };
            Ok(Captured::Event { event: builder.build(incoming)?, envelope })
        });
        match captured {
            Ok(event) => Ok(event),
            Err(NotBuilt::Skipped(skip)) => {
                // The user excluded nothing: the settings could not be read.
                if matches!(skip, Skip::Project) && self.settings.is_unknown() {
                    Dropped::add(&self.paths.data);
                }
                Ok(Captured::Skipped(skip))
            }
            Err(NotBuilt::Marker(error)) => Err(Problem::Marker(error)),
        }
    }

    /// Runs a capture within the work limit, and reports texts that were cut because of it.
    pub(super) fn limited<T>(&self, what: &str, capture: impl FnOnce() -> T) -> T {
        let scope = Scope::new(self.work_bytes_max);
        let captured = capture();
        let count = scope.fields_cut();
        if count > 0 {
            let read = scope.bytes_read();
            let message = format_args!(
                "{what}: {count} texts were cut: redaction reached its work limit after {read} \
                 bytes"
            );
            diagnostics::record(&self.paths.data, Level::Warn, message);
        }
        captured
    }

    /// Logs a problem, and counts the lost event.
    pub(super) fn report(&self, hook: &str, problem: &Problem) {
        if matches!(problem, Problem::Log(_) | Problem::Marker(_)) {
            Dropped::add(&self.paths.data);
        }
        diagnostics::record(&self.paths.data, Level::Error, format_args!("{hook}: {problem}"));
    }

    /// Builds the envelope, unless the session must not be recorded.
    pub(super) fn admit(&self, source: Source<'_>) -> Result<Admitted, Skip> {
        let redacted = |text: &str| bounded(redact_text(text, self.policy).text);
        let (session, cwd) = (redacted(&source.session), redacted(&source.cwd));
        let (project, transcripts_of) = match source.access {
            Access::Program { project } => (project, None),
            Access::Hook { client, project_dir } => {
                let project = ProjectId::of(project_dir.as_deref().unwrap_or(Path::new(&cwd)));
                let data = &self.paths.data;
                if [Path::new(&cwd), &project.root].into_iter().any(|dir| is_internal(data, dir)) {
                    return Err(Skip::OurAgent);
                }
                (project, Some(client))
            }
        };
        let home = self.paths.home.as_deref();
        if excluded_by(&self.settings, &project, Path::new(&cwd), home).is_some() {
            return Err(Skip::Project);
        }
        // A project named by a program has no git directory, so nothing is opened.
        let GitHead { branch, commit } = project.head();
        let mut envelope = Envelope { branch, commit, ..envelope(source.client, session, project) };
        redact_texts(&mut envelope, self.policy);
        let turn = PrivateTurn::of(&self.paths.data, &envelope.session);
        Ok(Admitted { envelope, cwd, turn, transcripts_of })
    }

    /// Appends the memories that a session was given.
    pub fn record_injection(&self, envelope: &Envelope, injected: MemoryInjected) {
        if let Err(problem) = self.append(envelope, &injected.into()) {
            self.report("injection", &problem);
        }
    }

    /// Appends an event. Returns whether a worker received the wake-up.
    pub(super) fn append(&self, envelope: &Envelope, event: &Event) -> Result<bool, Problem> {
        let dir = self.paths.data.join("log");
        let options = Options::default();
        let mut log = EventLog::open(&dir, options.clone())?;
        let now_us = Clock::new(&self.environment).now().as_microsecond().cast_unsigned();
        log.record(Id::random(now_us), envelope, event)?;
        let is_worker_awake = wake(&self.paths.data);
        let is_frequent = matches!(
            event,
            Event::SessionStarted(_) | Event::ToolUsed(_) | Event::MemoryInjected(_)
        );
        let is_sync_due = !is_frequent
            || self.settings.get(&SYNC) == SyncMode::Always
            || !is_worker_awake && sync_is_due(&dir, &options, UNSYNCED_MAX);
        if is_sync_due && let Err(error) = log.sync() {
            // The event is recorded, and survives everything but a power failure.
            diagnostics::record(&self.paths.data, Level::Warn, error);
        }
        Ok(is_worker_awake)
    }
}

/// Whether this is a working directory of the agent that distills. Links on the way to the data
/// directory are followed only if the name of the folder fits.
pub fn is_internal(data: &Path, dir: &Path) -> bool {
    let is_named = |dir: &&Path| dir.file_name().is_some_and(|name| name == INTERNAL_DIR);
    let Some(parent) = dir.ancestors().find(is_named).and_then(Path::parent) else {
        return false;
    };
    let real = |dir: &Path| os::canonicalize(dir).unwrap_or_else(|_| PathBuf::from(dir));
    real(parent) == real(data)
}

#[cfg(test)]
mod tests;
