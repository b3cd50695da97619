//! From what a hook was given to an event in the log: whether it may be recorded, and how.

use std::{
    borrow::Cow,
    cell::Cell,
    env, fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use claude_mem_events::{Envelope, Event, EventLog, Id, InputUnreadable, Project};
use claude_mem_log::{Options, sync_is_due};

use crate::{
    dropped::Dropped,
    exclusion::excluded_by,
    input::Input,
    payload::{Malformed, Payload},
    private_turn::PrivateTurn,
    prompt, session_end, session_start, stop, tool_use,
};
use crate::{
    project::{self, ProjectId},
    redaction::{self, redact_envelope},
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
    Policy, clean_bytes, clean_json, clean_text,
    work::{EVENT_BYTES_MAX, Scope},
};

/// The program whose hooks these are.
pub const PLATFORM: &str = "claude-code";
/// Where the agent's own client works, below the data directory.
const INTERNAL_DIR: &str = "observer-sessions";
/// How old the last sync may be while no worker keeps it young.
const UNSYNCED_MAX: Duration = Duration::from_secs(1);

/// Set to anything but `0` or `false` by a user who wants a session left out.
const SKIP: &str = "CLAUDE_MEM_SKIP";
/// Set on the agent's own client: what remembers must not be remembered.
const INTERNAL: &str = "CLAUDE_MEM_INTERNAL";

/// What a hook finds around it.
#[derive(Debug)]
pub struct World {
    pub paths: Paths,
    pub settings: Settings,
    pub environment: Environment,
    pub(super) policy: Policy,
    /// How much redaction may read for one event.
    pub(super) work_bytes_max: u64,
    /// Something was recorded, and no worker heard of it.
    is_alone: Cell<bool>,
}

/// One call of a hook: what was sent, of which session.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) world: &'a World,
    pub(super) payload: Payload<'a>,
    /// As the client names it: `PostToolUse`.
    pub(super) event_name: String,
    /// Where the client stands.
    pub(super) cwd: String,
    pub(super) turn: PrivateTurn,
    /// How much of the record is taken, so that all of it stays below the log's limit.
    pub(super) bytes_taken: usize,
}

/// Something to be recorded, and how much it matters that it is on disk when the hook returns.
#[derive(Debug)]
pub(super) enum Fact {
    /// Prompts, stops and ends: there are few, and each says much.
    Synced(Event),
    /// All others.
    Plain(Event),
}

/// A session that has begun, or goes on.
#[derive(Debug)]
pub struct Begun {
    pub session: String,
    /// `startup`, `resume`, `clear`, `compact`, `fork`.
    pub source: String,
    pub project: Project,
}

impl Begun {
    fn of(fact: Fact, envelope: Envelope) -> Option<Self> {
        let (Fact::Plain(event) | Fact::Synced(event)) = fact;
        let Event::SessionStarted(started) = event else { return None };
        let Envelope { session, project, .. } = envelope;
        Some(Self { session, source: started.source, project })
    }
}

/// Why nothing was recorded.
#[derive(Debug)]
pub enum Problem {
    /// There was nothing on stdin.
    Empty,
    /// What was there is kept, but was not understood.
    Unreadable(String),
    /// The mark of a private turn could not be made.
    Mark(std::io::Error),
    /// The log could not take it.
    Log(claude_mem_log::Error),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("nothing on stdin"),
            Self::Unreadable(why) => write!(f, "unreadable input was kept as it is: {why}"),
            Self::Mark(error) => write!(f, "a private turn cannot be marked as such: {error}"),
            Self::Log(error) => write!(f, "not recorded: {error}"),
        }
    }
}

impl From<claude_mem_log::Error> for Problem {
    fn from(error: claude_mem_log::Error) -> Self {
        Self::Log(error)
    }
}

impl World {
    /// The world of this process; `None` if nothing is to be recorded in it, or there is no place to.
    pub fn found() -> Option<Self> {
        let environment = Environment::of_process();
        let is_set = |name| environment.text(name).is_some_and(|value| flag(&value) != Some(false));
        if is_set(SKIP) || is_set(INTERNAL) {
            return None;
        }
        let paths = Paths::find(&environment).ok()?;
        data_dir::check(&paths).ok()?;
        Some(Self::new(environment, paths))
    }

    pub(super) fn new(environment: Environment, paths: Paths) -> Self {
        let settings = Settings::load(&paths, &environment);
        let policy = redaction::policy(&settings);
        let (work_bytes_max, is_alone) = (EVENT_BYTES_MAX, Cell::new(false));
        Self { paths, settings, environment, policy, work_bytes_max, is_alone }
    }

    /// Whether something was recorded and there is no worker to make something of it.
    pub fn is_alone(&self) -> bool {
        self.is_alone.get()
    }

    /// Records what the hook of this name was given, if it may be. Says if a session has begun by it.
    pub fn take(&self, hook: &'static str, input: &Input) -> Result<Option<Begun>, Problem> {
        self.limited(hook, || self.take_input(hook, input))
    }

    /// Captures within the work limit, and reports what was left unread because of it.
    pub(super) fn limited<T>(&self, hook: &'static str, capture: impl FnOnce() -> T) -> T {
        let scope = Scope::new(self.work_bytes_max);
        let captured = capture();
        let count = scope.fields_cut();
        if count > 0 {
            let read = scope.bytes_read();
            let message = format_args!(
                "{hook}: {count} texts were cut: redaction reached its work limit after {read} bytes"
            );
            diagnostics::record(&self.paths.data, Level::Warn, message);
        }
        captured
    }

    fn take_input(&self, hook: &'static str, input: &Input) -> Result<Option<Begun>, Problem> {
        if input.bytes.trim_ascii().is_empty() {
            return Err(Problem::Empty);
        }
        // Nearly always it is text, and to see that alone is several times faster than to mend it.
        let text = str::from_utf8(&input.bytes)
            .map_or_else(|_| String::from_utf8_lossy(&input.bytes), Cow::Borrowed);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let (mut payload, malformed) = Payload::read(text);
        let session = payload
            .take_text("session_id")
            .filter(|session| !session.is_empty())
            .or_else(|| self.environment.text("CLAUDE_CODE_SESSION_ID").map(Cow::Owned));
        let session = session.map(|session| bounded(clean_text(&session, self.policy).text));
        let cwd = self.cwd(&mut payload);
        let Some(envelope) = self.admit(session.as_deref().unwrap_or_default(), &cwd) else {
            return Ok(None);
        };
        let turn = PrivateTurn::of(&self.paths.data, &envelope.session);
        let mut call =
            Call { world: self, payload, event_name: String::new(), cwd, turn, bytes_taken: 0 };
        call.event_name = call.text("hook_event_name");
        let unreadable = match (malformed, session) {
            (Some(malformed), _) => malformed,
            (None, None) => Malformed { error: "no session_id".into(), is_truncated: false },
            (None, Some(_)) => match call.fact(hook)? {
                Ok(None) => return Ok(None),
                Ok(Some(fact)) => {
                    // A session is told what is remembered, recorded or not.
                    if let Err(problem) = self.record(&envelope, &fact) {
                        self.report(hook, &problem);
                    }
                    return Ok(Begun::of(fact, envelope));
                }
                Err(malformed) => malformed,
            },
        };
        if PrivateTurn::of(&self.paths.data, &envelope.session).is_on() {
            return Ok(None);
        }
        let event = self.unreadable(hook, &unreadable, input);
        let error = event.error.clone();
        self.record(&envelope, &Fact::Synced(event.into()))?;
        Err(Problem::Unreadable(error))
    }

    /// Notes what went wrong, and counts an event that is lost by it.
    pub fn report(&self, hook: &'static str, problem: &Problem) {
        if matches!(problem, Problem::Log(_) | Problem::Mark(_)) {
            Dropped::add(&self.paths.data);
        }
        diagnostics::record(&self.paths.data, Level::Error, format_args!("{hook}: {problem}"));
    }

    /// Where the client stands: as it says, else where it started us.
    fn cwd(&self, payload: &mut Payload<'_>) -> String {
        let told = payload.take_text("cwd").filter(|cwd| !cwd.is_empty());
        let told = told.map(|cwd| bounded(clean_text(&cwd, self.policy).text));
        told.or_else(|| Some(env::current_dir().ok()?.to_string_lossy().into_owned()))
            .unwrap_or_default()
    }

    /// Who and where, unless this is a session that is not to be remembered.
    fn admit(&self, session: &str, cwd: &str) -> Option<Envelope> {
        let project = project::identify(cwd, &self.environment);
        let data = &self.paths.data;
        if [Path::new(cwd), &project.root].into_iter().any(|dir| is_internal(data, dir)) {
            return None;
        }
        self.admits(&project, Path::new(cwd)).then(|| self.envelope(project, PLATFORM, session))
    }

    /// Whether no setting leaves the project out.
    pub(super) fn admits(&self, project: &ProjectId, cwd: &Path) -> bool {
        excluded_by(&self.settings, project, cwd, self.paths.home.as_deref()).is_none()
    }

    /// Who and where.
    pub(super) fn envelope(&self, project: ProjectId, platform: &str, session: &str) -> Envelope {
        let mut envelope = Envelope {
            host: os::host_name(),
            platform: bounded(platform.into()),
            session: bounded(session.into()),
            project: Project {
                key: bounded(project.key),
                label: bounded(project.label),
                root: bounded(project.root.to_string_lossy().into_owned()),
            },
        };
        redact_envelope(&mut envelope, self.policy);
        envelope
    }

    fn record(&self, envelope: &Envelope, fact: &Fact) -> Result<(), Problem> {
        let dir = self.paths.data.join("log");
        let options = Options::default();
        let mut log = EventLog::open(&dir, options.clone())?;
        let (Fact::Synced(event) | Fact::Plain(event)) = fact;
        let now_us = Clock::new(&self.environment).now().as_microsecond().cast_unsigned();
        log.record(Id::random(now_us), envelope, event)?;
        let is_heard = wake(&self.paths.data);
        self.is_alone.set(!is_heard);
        let is_synced = match fact {
            Fact::Synced(_) => true,
            Fact::Plain(_) => {
                self.settings.get(&SYNC) == SyncMode::Always
                    || !is_heard && sync_is_due(&dir, &options, UNSYNCED_MAX)
            }
        };
        if is_synced && let Err(error) = log.sync() {
            // It is recorded, and survives everything but a loss of power.
            diagnostics::record(&self.paths.data, Level::Warn, error);
        }
        Ok(())
    }

    /// What was given, as text. The last word of a text without an end is left out: it may be the first
    /// half of a secret, which no rule would know.
    fn unreadable(
        &self,
        hook: &'static str,
        malformed: &Malformed,
        input: &Input,
    ) -> InputUnreadable {
        let is_cut = malformed.is_truncated || input.cut.is_some();
        let bytes = if is_cut { without_last_word(&input.bytes) } else { &input.bytes };
        let error = match input.cut {
            Some(cut) => format!("{} ({cut})", malformed.error),
            None => malformed.error.clone(),
        };
        InputUnreadable {
            hook: hook.into(),
            error: clean_text(&error, self.policy).text,
            text: clean_bytes(bytes, self.policy),
            bytes: input.len,
        }
    }
}

impl Call<'_> {
    /// The event that the client speaks of decides, and only where it names none the command does: a
    /// hook registered for the wrong event still records what happened.
    pub(super) fn fact(
        mut self,
        hook: &'static str,
    ) -> Result<Result<Option<Fact>, Malformed>, Problem> {
        let fact = match (self.event_name.as_str(), hook) {
            ("SessionStart", _) | ("", "context") => Some(session_start::fact(&mut self)),
            ("UserPromptSubmit", _) | ("", "new") => Some(prompt::fact(&mut self)?),
            ("PostToolUse" | "PostToolUseFailure", _) | ("", "save") => tool_use::fact(&mut self),
            ("Stop" | "SubagentStop", _) | ("", "summary") => stop::fact(&mut self),
            ("SessionEnd", _) | ("", "cleanup") => Some(session_end::fact(&mut self)),
            (other, _) => {
                let error = format!("`{other}` is not an event that is recorded");
                return Ok(Err(Malformed { error, is_truncated: false }));
            }
        };
        Ok(Ok(fact))
    }

    /// A field, as text that may be stored; empty if it is absent.
    pub(super) fn text(&mut self, name: &str) -> String {
        let text = self.payload.take_text(name);
        text.map(|text| self.clean(&text)).unwrap_or_default()
    }

    /// A text that may be stored.
    pub(super) fn clean(&mut self, text: &str) -> String {
        let text = clean_text(text, self.policy()).text;
        self.bytes_taken += text.len();
        text
    }

    /// A field, as JSON that may be stored; empty if it is absent.
    pub(super) fn json(&mut self, name: &str) -> String {
        let Some(json) = self.payload.take(name) else { return String::new() };
        let json = clean_json(json, self.policy());
        self.bytes_taken += json.len();
        json
    }

    /// Every field that nobody asked for, as JSON that may be stored.
    pub(super) fn extra(&mut self) -> String {
        let rest = std::mem::take(&mut self.payload).rest();
        if rest.is_empty() { rest } else { clean_json(&rest, self.policy()) }
    }

    pub(super) fn policy(&self) -> Policy {
        self.world.policy.after(self.bytes_taken)
    }
}

/// The longest name, id or path that is recorded beside an event. Paths are shorter on every system, and the
/// record must have room for its texts.
const NAME_BYTES_MAX: usize = 4096;

/// As much of a name, id or path as is recorded.
pub(super) fn bounded(mut text: String) -> String {
    let mut end = text.len().min(NAME_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

/// Whether the agent's own client is at work here. Links in the way to the data directory are only followed
/// when the name of the folder gives reason to.
pub fn is_internal(data: &Path, dir: &Path) -> bool {
    let is_named = |dir: &&Path| dir.file_name().is_some_and(|name| name == INTERNAL_DIR);
    let Some(parent) = dir.ancestors().find(is_named).and_then(Path::parent) else {
        return false;
    };
    let real = |dir: &Path| os::canonicalize(dir).unwrap_or_else(|_| PathBuf::from(dir));
    real(parent) == real(data)
}

/// The bytes up to the last one that cannot be part of a key or a password.
fn without_last_word(bytes: &[u8]) -> &[u8] {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_+/=.-%~".contains(byte);
    let end = bytes.iter().rposition(|byte| !is_word(byte)).map_or(0, |at| at + 1);
    &bytes[..end]
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::input::Bytes;

    #[test]
    fn half_a_secret_at_the_end_is_left_out() {
        let cases = [("{\"key\":\"sk-ant-ab", "{\"key\":\""), ("a b ", "a b "), ("word", "")];
        for (text, expected) in cases {
            assert_eq!(without_last_word(text.as_bytes()), expected.as_bytes());
        }
    }

    #[test]
    fn past_the_work_limit_an_event_is_stored_cut_and_the_diagnostics_say_so() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let paths = Paths { home: None, data: data.clone() };
        let secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
        let text = serde_json::json!({
            "session_id": "s", "cwd": dir.path(), "hook_event_name": "PostToolUse", "tool_name": "Bash",
            "tool_input": {"command": "ls"},
            "tool_response": format!("{} {secret}", "password ".repeat(10_000)),
        })
        .to_string();
        let world = World { work_bytes_max: 50_000, ..World::new(Environment::fixed(&[]), paths) };
        let bytes = Bytes::Small(text.clone().into_bytes());
        let input = Input { bytes, len: text.len() as u64, cut: None };
        world.take("save", &input).unwrap();
        let log = claude_mem_log::Log::open(&data.join("log"), Options::default()).unwrap();
        let mut reader = claude_mem_events::EventReader::from(&log, claude_mem_events::Seq::START);
        let Some(claude_mem_events::EventItem::Event(met)) = reader.next().unwrap() else {
            panic!()
        };
        let Event::ToolUsed(used) = met.event else { panic!("{:?}", met.event) };
        assert_eq!(used.tool, "Bash");
        assert!(used.output.contains("[not read: "), "{}", used.output);
        assert!(!used.output.contains("16C7e42F"), "{}", used.output);
        let diagnostics = fs::read_to_string(data.join("logs/claude-mem.log")).unwrap();
        assert!(diagnostics.contains("redaction reached its work limit"), "{diagnostics}");
    }

    #[test]
    fn the_agents_own_folder_is_known_through_links() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        fs::create_dir_all(data.join("observer-sessions/x")).unwrap();
        std::os::unix::fs::symlink(&data, dir.path().join("link")).unwrap();
        let internal = |path: &str| is_internal(&data, &dir.path().join(path));
        assert!(internal("data/observer-sessions") && internal("link/observer-sessions/x"));
        assert!(!internal("data") && !internal("observer-sessions"));
    }
}
