//! From a client's event to an event in the log: whether it may be recorded, and how.

use std::{
    borrow::Cow,
    env, fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use claude_mem_events::{
    Envelope, Event, EventLog, Id, MemoryInjected, PromptSubmitted, SessionStarted, StopScope,
    Submitter,
};
use claude_mem_log::{Options, sync_is_due};

use crate::{
    build_event::{EventBuilder, NotBuilt},
    clients::{Client, HookCommand, evidence},
    dropped::Dropped,
    envelope::{bounded, envelope},
    exclusion::excluded_by,
    incoming::{FileUse, Incoming, IncomingKind, LastMessages, Skip, Stop},
    input::Input,
    occasion::{Occasion, Subject},
    payload::{Malformed, Payload},
    private_turn::PrivateTurn,
    project::{GitHead, ProjectId},
    redaction::{self, redact_envelope},
    transcript,
    unreadable::unreadable,
    unused_start::UnusedStart,
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

/// Set by a user to anything but `0` or `false` to leave a session out.
const SKIP: &str = "CLAUDE_MEM_SKIP";
/// Set for the agent that distills, whose own sessions are not recorded.
const INTERNAL: &str = "CLAUDE_MEM_INTERNAL";

/// Captures events under one set of settings.
#[derive(Debug)]
pub struct Recorder {
    pub paths: Paths,
    pub settings: Settings,
    pub environment: Environment,
    policy: Policy,
    /// How much redaction may read for one event.
    work_bytes_max: u64,
}

/// Where an event comes from.
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
    /// A hook runs as the user in the session's own directory: the project is looked up on disk, and the
    /// client's transcript may be read.
    Hook { client: &'static Client, project_dir: Option<PathBuf> },
    /// A program that talks to the worker must not make us open files. It names the project itself.
    Program { project: ProjectId },
}

/// What became of an event.
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

/// What a hook did.
#[derive(Debug, Default)]
pub struct HookOutcome {
    /// The client that ran the hook, which may not be the one it was registered for. `None` if the payload could
    /// not be read.
    pub client: Option<&'static Client>,
    /// The event, as far as it is known.
    pub kind: Option<IncomingKind>,
    /// Set if a session was started or resumed, or with its first prompt, if memory of the start is given then.
    pub begun: Option<SessionBegun>,
    /// Set if memories may concern what happened.
    pub occasion: Option<Occasion>,
    /// An event was appended, and no worker received the wake-up.
    pub needs_worker: bool,
}

/// A session that was started or resumed.
#[derive(Debug)]
pub struct SessionBegun {
    pub envelope: Envelope,
    /// `startup`, `resume`, `clear`, `compact`, `fork`.
    pub source: String,
}

/// Why an event was not recorded although it should have been.
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
            Self::Marker(error) => write!(f, "a private turn cannot be marked as such: {error}"),
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
struct Admitted {
    envelope: Envelope,
    cwd: String,
    turn: PrivateTurn,
    transcripts_of: Option<&'static Client>,
}

impl Recorder {
    /// A recorder with the settings of this process. `None` if the environment switches recording off or
    /// the data directory cannot be used.
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

    /// The one way into the log for what clients report: admits, redacts and builds the event. Nothing is
    /// appended yet. `rest` holds the fields that the parser did not take.
    pub fn capture(
        &self,
        source: Source<'_>,
        incoming: Incoming<'_>,
        rest: Payload<'_>,
    ) -> Result<Captured, Problem> {
        let captured = self.admit(source).map_err(NotBuilt::from).and_then(|admitted| {
            let Admitted { envelope, cwd, turn, transcripts_of } = admitted;
            let (settings, policy) = (&self.settings, self.policy);
            let builder =
                EventBuilder { settings, policy, cwd, turn, transcripts_of, rest, bytes_used: 0 };
            Ok(Captured::Event { event: builder.build(incoming)?, envelope })
        });
        match captured {
            Ok(event) => Ok(event),
            Err(NotBuilt::Skipped(skip)) => Ok(Captured::Skipped(skip)),
            Err(NotBuilt::Marker(error)) => Err(Problem::Marker(error)),
        }
    }

    /// Captures and appends what a hook was given. Problems are written to the diagnostics.
    pub fn record_hook(&self, hook: HookCommand, input: &Input) -> HookOutcome {
        let mut outcome = HookOutcome { kind: hook.expected, ..HookOutcome::default() };
        let recorded = self.limited(hook.name, || self.record_input(hook, input, &mut outcome));
        if let Err(problem) = recorded {
            self.report(hook.name, &problem);
        }
        outcome
    }

    fn record_input(
        &self,
        hook: HookCommand,
        input: &Input,
        outcome: &mut HookOutcome,
    ) -> Result<(), Problem> {
        if input.bytes.trim_ascii().is_empty() {
            return Err(Problem::Empty);
        }
        // Nearly always it is UTF-8, and checking that is several times faster than repairing it.
        let text = str::from_utf8(&input.bytes)
            .map_or_else(|_| String::from_utf8_lossy(&input.bytes), Cow::Borrowed);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let (mut payload, malformed) = Payload::read(text);
        let client = evidence::judge(hook.client, &payload, &self.environment);
        outcome.client = Some(client);
        let home = self.paths.home.as_deref();
        let is_other = client.name != hook.client.name;
        if is_other && evidence::has_own_hooks(client, hook.client, &self.environment, home) {
            outcome.kind = None;
            return Ok(());
        }
        let expected = hook.expected.filter(|_| !is_other);
        let (has_session, source) = self.hook_source(client, &mut payload);
        let parsed = match malformed {
            Some(malformed) => Err(malformed),
            None if !has_session => Err(Malformed::new("no session id")),
            None => match (client.parse)(&mut payload, expected) {
                Ok(incoming) => Ok(incoming),
                Err(Skip::UnknownEvent(name)) if name.is_empty() => {
                    Err(Malformed::new("it names no event"))
                }
                Err(Skip::UnknownEvent(name)) => {
                    Err(Malformed::new(format!("`{name}` is not an event that is recorded")))
                }
                Err(_) => {
                    outcome.kind = None;
                    return Ok(());
                }
            },
        };
        let captured = match parsed {
            Ok(Incoming::FileUse(used)) => {
                outcome.kind = Some(IncomingKind::FileUse);
                outcome.occasion = self.file_occasion(source, &used);
                return Ok(());
            }
            Ok(mut incoming) => {
                outcome.kind = Some(incoming.kind());
                if let Incoming::Stop(stop) = &mut incoming {
                    self.find_transcript(client, &source, stop);
                }
                if let Incoming::Stop(stop) = &incoming
                    && client.hides_failures
                {
                    self.record_hidden_failures(client, &source, stop)?;
                }
                self.capture(source, incoming, payload)?
            }
            Err(malformed) => self.capture_unreadable(source, hook.name, &malformed, input),
        };
        let Captured::Event { envelope, event } = captured else { return Ok(()) };
        let appended = self.append(&envelope, &event);
        outcome.needs_worker = matches!(appended, Ok(is_awake) if !is_awake);
        match event {
            // A session gets its memory, recorded or not.
            Event::SessionStarted(SessionStarted { source, .. }) => {
                if client.starts_with_prompt() {
                    UnusedStart::of(&self.paths.data, &envelope.session).keep(&source);
                }
                outcome.begun = Some(SessionBegun { envelope, source });
            }
            Event::PromptSubmitted(PromptSubmitted {
                prompt, submitter: Submitter::User, ..
            }) if !prompt.is_empty() => {
                if client.starts_with_prompt() {
                    let unused = UnusedStart::of(&self.paths.data, &envelope.session).take();
                    let begun = |source| SessionBegun { envelope: envelope.clone(), source };
                    outcome.begun = unused.map(begun);
                }
                let subject = Subject::Prompt { text: prompt };
                outcome.occasion = Some(Occasion { envelope, subject });
            }
            Event::ToolUsed(used) if used.has_failed && !used.is_interrupt => {
                outcome.occasion =
                    Subject::failure(used).map(|subject| Occasion { envelope, subject });
            }
            Event::InputUnreadable(unreadable) if appended.is_ok() => {
                return Err(Problem::Unreadable(unreadable.error));
            }
            _ => {}
        }
        appended.map(|_| ())
    }

    /// Finds the transcript of a session whose payloads do not name it.
    fn find_transcript(&self, client: &Client, source: &Source<'_>, stop: &mut Stop<'_>) {
        let (Some(place), StopScope::Turn) = (client.transcript_place, stop.scope) else { return };
        let dir = client.config.dir.find(&self.environment, self.paths.home.as_deref());
        let path = dir.map(|dir| dir.join(place(&source.session, &source.cwd)));
        let Some(path) = path.filter(|path| path.is_file()) else { return };
        let path = path.to_string_lossy().into_owned();
        stop.last_messages = LastMessages::InTranscript(Some(path.clone().into()));
        stop.transcript = Some(path.into());
    }

    /// Records tools that failed in the turn and that no hook reported. The client's id makes each count once,
    /// however often the turn stops.
    fn record_hidden_failures(
        &self,
        client: &Client,
        source: &Source<'_>,
        stop: &Stop<'_>,
    ) -> Result<(), Problem> {
        let (Some(path), Some(read_row), StopScope::Turn) =
            (&stop.transcript, client.turn_row, stop.scope)
        else {
            return Ok(());
        };
        for used in transcript::failed_calls(Path::new(&**path), &stop.prompt_id, read_row) {
            let incoming = Incoming::ToolUse(used);
            let captured = self.capture(source.clone(), incoming, Payload::default())?;
            if let Captured::Event { envelope, event } = captured {
                self.append(&envelope, &event)?;
            }
        }
        Ok(())
    }

    /// A file use is not recorded, but what is not recorded is not given memories either.
    fn file_occasion(&self, source: Source<'_>, used: &FileUse<'_>) -> Option<Occasion> {
        let Admitted { envelope, cwd, turn, .. } = self.admit(source).ok()?;
        let path = used.path.clone().into_owned();
        (!turn.is_on()).then_some(Occasion { envelope, subject: Subject::File { path, cwd } })
    }

    /// Where a hook's payload comes from, and whether anything names its session.
    fn hook_source<'a>(
        &self,
        client: &'static Client,
        payload: &mut Payload<'a>,
    ) -> (bool, Source<'a>) {
        let fields = (client.session)(payload);
        let of_environment = || self.environment.text(client.session_variable?).map(Cow::Owned);
        let session = fields.id.or_else(of_environment);
        let cwd = fields.cwd.unwrap_or_else(|| {
            let cwd = env::current_dir().unwrap_or_default();
            cwd.to_string_lossy().into_owned().into()
        });
        let project_dir = client.project_variable.and_then(|name| self.environment.get(name));
        let access = Access::Hook { client, project_dir: project_dir.map(PathBuf::from) };
        let has_session = session.is_some();
        let session = session.unwrap_or_default();
        (has_session, Source { client: client.name, session, cwd, access })
    }

    /// Runs a capture within the work limit, and reports what was cut because of it.
    pub(super) fn limited<T>(&self, what: &str, capture: impl FnOnce() -> T) -> T {
        let scope = Scope::new(self.work_bytes_max);
        let captured = capture();
        let count = scope.fields_cut();
        if count > 0 {
            let read = scope.bytes_read();
            let message = format_args!(
                "{what}: {count} texts were cut: redaction reached its work limit after {read} bytes"
            );
            diagnostics::record(&self.paths.data, Level::Warn, message);
        }
        captured
    }

    /// Notes a problem, and counts an event that is lost by it.
    fn report(&self, hook: &str, problem: &Problem) {
        if matches!(problem, Problem::Log(_) | Problem::Marker(_)) {
            Dropped::add(&self.paths.data);
        }
        diagnostics::record(&self.paths.data, Level::Error, format_args!("{hook}: {problem}"));
    }

    /// Builds the envelope, unless the session is not to be recorded.
    fn admit(&self, source: Source<'_>) -> Result<Admitted, Skip> {
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
        // A project named by a program has no git directory here, so nothing is opened.
        let GitHead { branch, commit } = project.head();
        let mut envelope = Envelope { branch, commit, ..envelope(source.client, session, project) };
        redact_envelope(&mut envelope, self.policy);
        let turn = PrivateTurn::of(&self.paths.data, &envelope.session);
        Ok(Admitted { envelope, cwd, turn, transcripts_of })
    }

    /// Appends what a session was given.
    pub fn record_injection(&self, envelope: &Envelope, injected: MemoryInjected) {
        if let Err(problem) = self.append(envelope, &injected.into()) {
            self.report("injection", &problem);
        }
    }

    /// Appends an event. Returns whether a worker received the wake-up.
    fn append(&self, envelope: &Envelope, event: &Event) -> Result<bool, Problem> {
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

    /// Keeps a payload that was not understood, under the same exclusions.
    fn capture_unreadable(
        &self,
        source: Source<'_>,
        hook: &str,
        malformed: &Malformed,
        input: &Input,
    ) -> Captured {
        match self.admit(source) {
            Err(skip) => Captured::Skipped(skip),
            Ok(admitted) if admitted.turn.is_on() => Captured::Skipped(Skip::Private),
            Ok(Admitted { envelope, .. }) => {
                let event = unreadable(hook, malformed, input, self.policy).into();
                Captured::Event { envelope, event }
            }
        }
    }
}

/// Whether this is a working directory of the agent that distills. Links on the way to the data directory
/// are followed only if the name of the folder fits.
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
