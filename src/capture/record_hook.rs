//! Records the payload of a hook, and finds out whether memories are relevant to it.

use std::{
    borrow::Cow,
    env,
    path::{Path, PathBuf},
};

use claude_mem_events::{Envelope, Event, PromptSubmitted, SessionStarted, StopScope, Submitter};

use claude_mem_privacy::redact_text;

use crate::{
    clients::{Client, HookCommand, evidence},
    incoming::{Answer, FileUse, Incoming, IncomingKind, LastMessages, Skip, Stop, ToolUse},
    input::Input,
    occasion::{Occasion, Subject},
    payload::{Malformed, Payload},
    recorder::{Access, Admitted, Captured, Problem, Recorder, Source},
    session_file::SessionFile,
    transcript::{self, Extent},
    unreadable::unreadable,
};

/// The result of a hook.
#[derive(Debug, Default)]
pub struct HookOutcome {
    /// The client that ran the hook, which may not be the one it was registered for. `None` if the
    /// payload could not be read.
    pub client: Option<&'static Client>,
    /// The event, if known.
    pub kind: Option<IncomingKind>,
    /// Set if a session was started or resumed. Also set with its first prompt, if the memory of
    /// the start is sent then.
    pub begun: Option<SessionBegun>,
    /// Set if memories can be relevant to the event.
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

/// Captures and appends the payload of a hook. Problems are written to the diagnostics.
pub fn record_hook(recorder: &Recorder, hook: HookCommand, input: &Input) -> HookOutcome {
    let mut outcome = HookOutcome { kind: hook.expected, ..HookOutcome::default() };
    let run = HookRun { recorder };
    let result = recorder.limited(hook.name, || run.record_input(hook, input, &mut outcome));
    if let Err(problem) = result {
        recorder.report(hook.name, &problem);
    }
    outcome
}

/// Turns the input of a hook into events. The recorder redacts and appends them.
struct HookRun<'r> {
    recorder: &'r Recorder,
}

impl HookRun<'_> {
    fn record_input(
        &self,
        hook: HookCommand,
        input: &Input,
        outcome: &mut HookOutcome,
    ) -> Result<(), Problem> {
        if input.bytes.trim_ascii().is_empty() {
            return Err(Problem::Empty);
        }
        // Nearly all input is UTF-8, and checking that is several times faster than repairing it.
        let text = str::from_utf8(&input.bytes)
            .map_or_else(|_| String::from_utf8_lossy(&input.bytes), Cow::Borrowed);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let (mut payload, malformed) = Payload::read(text);
        let client = evidence::judge(hook.client, &payload, &self.recorder.environment);
        outcome.client = Some(client);
        let home = self.recorder.paths.home.as_deref();
        let is_other = client.name != hook.client.name;
        if is_other
            && evidence::has_own_hooks(client, hook.client, &self.recorder.environment, home)
        {
            outcome.kind = None;
            return Ok(());
        }
        let expected = hook.expected.filter(|_| !is_other);
        let (has_session, source) = self.hook_source(client, &mut payload);
        let parsed = match malformed {
            Some(malformed) => Err(malformed),
            None if !has_session => Err(Malformed::new("no session id")),
            None => parse(client, &mut payload, expected),
        };
        let captured = match parsed {
            Ok(None) => {
                outcome.kind = None;
                return Ok(());
            }
            Ok(Some(Incoming::FileUse(used))) => {
                outcome.kind = Some(IncomingKind::FileUse);
                outcome.occasion = self.file_occasion(source, &used);
                return Ok(());
            }
            Ok(Some(Incoming::Answer(answer))) => {
                outcome.kind = Some(IncomingKind::Answer);
                self.keep_answer(source, &answer);
                return Ok(());
            }
            Ok(Some(mut incoming)) => {
                outcome.kind = Some(incoming.kind());
                if let Incoming::Stop(stop) = &mut incoming {
                    self.find_transcript(client, &source, stop);
                    self.find_answer(&source, stop);
                }
                if client.hides_failures {
                    self.record_hidden_failures(client, &source, &incoming, &payload)?;
                }
                self.recorder.capture(source, incoming, payload)?
            }
            Err(malformed) => self.capture_unreadable(source, hook.name, &malformed, input),
        };
        let Captured::Event { envelope, event } = captured else { return Ok(()) };
        let appended = self.recorder.append(&envelope, &event);
        outcome.needs_worker = matches!(appended, Ok(is_awake) if !is_awake);
        if let Event::InputUnreadable(unreadable) = event {
            return appended.and(Err(Problem::Unreadable(unreadable.error)));
        }
        // A session gets its memory even if it is not recorded.
        self.find_occasion(client, envelope, event, outcome);
        appended.map(|_| ())
    }

    /// Adds the occasion to the outcome, if memories can be relevant to the event.
    fn find_occasion(
        &self,
        client: &Client,
        envelope: Envelope,
        event: Event,
        outcome: &mut HookOutcome,
    ) {
        match event {
            Event::SessionStarted(SessionStarted { source, .. }) => {
                if client.starts_with_prompt() {
                    SessionFile::start(&self.recorder.paths.data, &envelope.session).keep(&source);
                }
                outcome.begun = Some(SessionBegun { envelope, source });
            }
            Event::PromptSubmitted(PromptSubmitted {
                prompt, submitter: Submitter::User, ..
            }) if !prompt.is_empty() => {
                if client.starts_with_prompt() {
                    let unused =
                        SessionFile::start(&self.recorder.paths.data, &envelope.session).take();
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
            _ => {}
        }
    }

    /// Finds the transcript of a session whose payloads do not name it.
    fn find_transcript(&self, client: &Client, source: &Source<'_>, stop: &mut Stop<'_>) {
        let (Some(place), StopScope::Turn) = (client.transcript_place, stop.scope) else { return };
        let dir =
            client.config.dir.find(&self.recorder.environment, self.recorder.paths.home.as_deref());
        let path = dir.map(|dir| dir.join(place(&source.session, &source.cwd)));
        let Some(path) = path.filter(|path| path.is_file()) else { return };
        let path = path.to_string_lossy().into_owned();
        stop.last_messages = LastMessages::InTranscript(Some(path.clone().into()));
        stop.transcript = Some(path.into());
    }

    /// Stores a message that may be the last one of a turn, under the same exclusions as its stop.
    fn keep_answer(&self, source: Source<'_>, answer: &Answer<'_>) {
        let file = SessionFile::answer(&self.recorder.paths.data, &source.session);
        let Ok(admitted) = self.recorder.admit(source) else { return };
        if !admitted.turn.is_on() {
            let text = redact_text(&answer.text, self.recorder.policy).text;
            file.keep(&format!("{}\n{text}", answer.prompt_id));
        }
    }

    /// Takes the stored message of this turn. The transcript may not contain it yet.
    fn find_answer(&self, source: &Source<'_>, stop: &mut Stop<'_>) {
        let is_given = !matches!(stop.last_messages, LastMessages::InTranscript(_));
        if is_given || stop.scope != StopScope::Turn {
            return;
        }
        let kept = SessionFile::answer(&self.recorder.paths.data, &source.session).take();
        let kept = kept.as_deref().and_then(|kept| kept.split_once('\n'));
        if let Some((_, text)) = kept.filter(|(prompt_id, _)| *prompt_id == stop.prompt_id) {
            let (user, assistant) = (Cow::Borrowed(""), text.to_owned().into());
            stop.last_messages = LastMessages::Given { user, assistant };
        }
    }

    /// Records failed tools that no hook reported, before this event, so that the log has the order
    /// of the turn. Some tools call no hook on success either, so the stop event reads the complete
    /// turn again. A file contains the ids of those already recorded.
    fn record_hidden_failures(
        &self,
        client: &Client,
        source: &Source<'_>,
        incoming: &Incoming<'_>,
        payload: &Payload<'_>,
    ) -> Result<(), Problem> {
        let (extent, prompt_id, agent_id, agent_type) = match incoming {
            Incoming::ToolUse(used) => {
                (Extent::End, &used.prompt_id, &used.agent_id, &used.agent_type)
            }
            Incoming::Stop(stop) => {
                (Extent::Turn, &stop.prompt_id, &stop.agent_id, &stop.agent_type)
            }
            _ => return Ok(()),
        };
        let field = match incoming {
            Incoming::Stop(Stop { scope: StopScope::Subagent, .. }) => "agent_transcript_path",
            _ => "transcript_path",
        };
        let (Some(path), Some(read_row)) = (payload.peek_text(field), client.turn_row) else {
            return Ok(());
        };
        let was_reported = |line: &[u8], tool_use_id: &str| {
            client.exit_code.is_some_and(|find| find(line, tool_use_id).is_some())
        };
        let failed = transcript::hidden_failures(Path::new(&*path), extent, read_row, was_reported);
        if failed.is_empty() {
            return Ok(());
        }
        let file = SessionFile::failures(&self.recorder.paths.data, &source.session);
        let mut known = file.read().unwrap_or_default();
        for used in failed {
            if known.lines().any(|id| id == used.tool_use_id) {
                continue;
            }
            let id = used.tool_use_id.clone();
            let used = ToolUse {
                prompt_id: prompt_id.clone(),
                agent_id: agent_id.clone(),
                agent_type: agent_type.clone(),
                ..used
            };
            let incoming = Incoming::ToolUse(used);
            let captured = self.recorder.capture(source.clone(), incoming, Payload::default())?;
            if let Captured::Event { envelope, event } = captured {
                self.recorder.append(&envelope, &event)?;
                known = format!("{known}{id}\n");
                file.keep(&known);
            }
        }
        Ok(())
    }

    /// The use of a file is not recorded. Excluded sessions get no memories either.
    fn file_occasion(&self, source: Source<'_>, used: &FileUse<'_>) -> Option<Occasion> {
        let Admitted { envelope, cwd, turn, .. } = self.recorder.admit(source).ok()?;
        let path = used.path.clone().into_owned();
        (!turn.is_on()).then_some(Occasion { envelope, subject: Subject::File { path, cwd } })
    }

    /// The origin of a hook's payload, and whether its session is known.
    fn hook_source<'a>(
        &self,
        client: &'static Client,
        payload: &mut Payload<'a>,
    ) -> (bool, Source<'a>) {
        let fields = (client.session)(payload);
        let of_environment =
            || self.recorder.environment.text(client.session_variable?).map(Cow::Owned);
        let session = fields.id.or_else(of_environment);
        let cwd = fields.cwd.unwrap_or_else(|| {
            let cwd = env::current_dir().unwrap_or_default();
            cwd.to_string_lossy().into_owned().into()
        });
        let project_dir =
            client.project_variable.and_then(|name| self.recorder.environment.get(name));
        let access = Access::Hook { client, project_dir: project_dir.map(PathBuf::from) };
        let has_session = session.is_some();
        let session = session.unwrap_or_default();
        (has_session, Source { client: client.name, session, cwd, access })
    }

    /// Stores a payload that could not be parsed, under the same exclusions.
    fn capture_unreadable(
        &self,
        source: Source<'_>,
        hook: &str,
        malformed: &Malformed,
        input: &Input,
    ) -> Captured {
        match self.recorder.admit(source) {
            Err(skip) => Captured::Skipped(skip),
            Ok(admitted) if admitted.turn.is_on() => Captured::Skipped(Skip::Private),
            Ok(Admitted { envelope, .. }) => {
                let event = unreadable(hook, malformed, input, self.recorder.policy).into();
                Captured::Event { envelope, event }
            }
        }
    }
}

/// The event in a payload; `None` if it is not recorded.
fn parse<'a>(
    client: &Client,
    payload: &mut Payload<'a>,
    expected: Option<IncomingKind>,
) -> Result<Option<Incoming<'a>>, Malformed> {
    match (client.parse)(payload, expected) {
        Ok(incoming) => Ok(Some(incoming)),
        Err(Skip::UnknownEvent(name)) if name.is_empty() => {
            Err(Malformed::new("it names no event"))
        }
        Err(Skip::UnknownEvent(name)) => {
            Err(Malformed::new(format!("`{name}` is not an event that is recorded")))
        }
        Err(_) => Ok(None),
    }
}
