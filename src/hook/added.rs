//! The response to a prompt, a file use or a failed command: the relevant memories, or nothing.

use std::{
    cell::OnceCell,
    fs::{File, TryLockError},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use claude_mem_capture::{
    CLAUDE_CODE, ContextMax, IncomingKind, Occasion, Recorder, Response, Subject,
};
use claude_mem_core::{
    clock::Clock,
    diagnostics::{self, Level},
    os::open_lock,
};
use claude_mem_events::{
    Event, InjectionMoment, MemoryInjected, ObservationRef, Recorded, Seq, SessionStarted,
    Versioned as _,
};
use claude_mem_log::{Item, Log, Options};
use claude_mem_memory::context::{
    AddedContext, FileOfProject, Recipient, for_failure, for_file, for_prompt, rank,
};
use claude_mem_projections::{Error, Store};
use claude_mem_server::worker::recall;

use super::Injection;

/// The part of the log that is searched for memories given since the last indexing: takes about two
/// milliseconds.
const LOOK_BYTES_MAX: usize = 2 << 20;

/// Maximum wait for concurrent hooks that give memories. Each takes a few milliseconds.
const LOCK_WAIT_MAX: Duration = Duration::from_millis(50);
const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// The memories for an occasion, or nothing if none is relevant.
pub(super) fn response(
    recorder: &Recorder,
    occasion: &Occasion,
    size_max: ContextMax,
) -> (Response, Option<Injection>) {
    let (kind, moment, name) = match occasion.subject {
        Subject::Prompt { .. } => (IncomingKind::Prompt, InjectionMoment::Prompt, "prompt"),
        Subject::File { .. } => (IncomingKind::FileUse, InjectionMoment::File, "file"),
        Subject::Failure { .. } => (IncomingKind::ToolUse, InjectionMoment::Failure, "failure"),
    };
    let found = memories_for(recorder, occasion, size_max).unwrap_or_else(|error| {
        // While another process creates or replaces the database, no memory is available.
        if !matches!(error, Error::Rebuilding { .. }) {
            let message = format_args!("{name}: no memory was given: {error}");
            diagnostics::record(&recorder.paths.data, Level::Error, message);
        }
        None
    });
    let Some(Added { context, observations, lock }) = found else {
        return (Response::default(), None);
    };
    let tokens = u32::try_from(context.tokens).unwrap_or(u32::MAX);
    let event = MemoryInjected { moment, observations, tokens };
    let response = Response { context: Some(context.text), notice: None, event: Some(kind) };
    (response, Some(Injection { event, lock }))
}

struct Added {
    context: AddedContext,
    observations: Vec<ObservationRef>,
    lock: Option<File>,
}

/// Protects the steps of a hook that read which memories the session received and record new ones.
/// Clients run hooks of one session concurrently, and each would give the same memory.
///
/// One file serves all sessions: it is held for a few milliseconds, and only to give memories.
#[derive(Debug)]
enum InjectionLock {
    Held(File),
    /// Other hooks hold it for too long.
    Busy,
    /// The lock file cannot be created. Nothing can be recorded either.
    Impossible,
}

impl InjectionLock {
    fn take(data: &Path) -> Self {
        let Ok(file) = open_lock(&data.join("injection.lock")) else { return Self::Impossible };
        let since = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Self::Held(file),
                Err(TryLockError::Error(_)) => return Self::Impossible,
                Err(TryLockError::WouldBlock) if since.elapsed() > LOCK_WAIT_MAX => {
                    return Self::Busy;
                }
                Err(TryLockError::WouldBlock) => thread::sleep(LOCK_PAUSE),
            }
        }
    }
}

fn memories_for(
    recorder: &Recorder,
    occasion: &Occasion,
    size_max: ContextMax,
) -> Result<Option<Added>, Error> {
    let memory = recorder.paths.memory();
    // Opening a database that does not exist would still create its lock file.
    if !memory.exists() {
        return Ok(None);
    }
    let Some(store) = Store::open_snapshot(&memory)? else { return Ok(None) };
    let project = &occasion.envelope.project;
    let session = &occasion.envelope.session;
    let reads_auto_memory = occasion.envelope.platform == CLAUDE_CODE.name;
    let lock = OnceCell::new();
    let recipient = Recipient {
        project: &project.key,
        root: &project.root,
        session,
        now: Clock::new(&recorder.environment).now(),
        size_max,
        given: &|| {
            lock.get_or_init(|| InjectionLock::take(&recorder.paths.data));
            let mut known = given(recorder, &store, session)?;
            if reads_auto_memory {
                let notes = store.auto_memory_notes()?;
                known.extend(notes.into_iter().map(|note| note.observation));
            }
            Ok(known)
        },
    };
    let settings = &recorder.settings;
    let context = match &occasion.subject {
        Subject::Prompt { text } => for_prompt(&store, settings, &recipient, text, |wanted| {
            recall::ask(&recorder.paths.data, wanted).map_or_else(|| rank(&store, wanted), Ok)
        }),
        Subject::File { path, cwd } => {
            let file = FileOfProject { path, cwd, root: &project.root };
            for_file(&store, settings, &recipient, &file)
        }
        Subject::Failure { command, error } => {
            for_failure(&store, settings, &recipient, (command, error))
        }
    };
    let lock = match lock.into_inner() {
        Some(InjectionLock::Busy) => return Ok(None),
        Some(InjectionLock::Held(file)) => Some(file),
        Some(InjectionLock::Impossible) | None => None,
    };
    let found = context.and_then(|context| {
        context
            .map(|context| {
                let observations = store.observation_refs(&context.observations)?;
                Ok(Added { context, observations, lock })
            })
            .transpose()
    });
    // The process exits after the response, which is faster than closing the database first.
    std::mem::forget(store);
    found
}

/// More starts than this are not searched for a compaction.
const STARTS_MAX: u32 = 20;

/// The memories that the session received since its last compaction, which removed earlier ones
/// from its history. Includes events that are not indexed yet: without a worker, indexing waits for
/// the next session.
fn given(recorder: &Recorder, store: &Store, session: &str) -> Result<Vec<ObservationRef>, Error> {
    let log = Log::open(&recorder.paths.log(), Options::default())?;
    let mut given = store.injected_in(session, last_compaction(&log, store, session)?)?;
    let mut reader = log.read_from(store.checkpoint()?.position);
    let mut bytes = 0;
    while let Some(item) = reader.next()?
        && bytes < LOOK_BYTES_MAX
    {
        let Item::Record(entry) = item else { continue };
        bytes += entry.payload.len();
        if ![MemoryInjected::KIND, SessionStarted::KIND].contains(&entry.kind) {
            continue;
        }
        let found = Recorded::from_entry(&entry);
        match found.event {
            _ if found.envelope.session != session => {}
            Event::MemoryInjected(injected) => given.extend(injected.observations),
            Event::SessionStarted(started) if is_compaction(&started) => given.clear(),
            _ => {}
        }
    }
    Ok(given)
}

/// The position of the session's last indexed compaction.
fn last_compaction(log: &Log, store: &Store, session: &str) -> Result<Seq, Error> {
    for start in store.session_starts(session, STARTS_MAX)? {
        let mut reader = log.read_from(start);
        let Some(Item::Record(entry)) = reader.next()? else { continue };
        let found = Recorded::from_entry(&entry);
        if let Event::SessionStarted(started) = &found.event
            && found.seq == start
            && is_compaction(started)
        {
            return Ok(start);
        }
    }
    Ok(Seq::START)
}

fn is_compaction(started: &SessionStarted) -> bool {
    started.source == "compact"
}
