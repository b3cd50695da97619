//! The response to the start of a session: the memory that is injected.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use claude_mem_events::{
    AgentReplied, Envelope, Forgotten, Imported, InjectionMoment, MemoryAdded, MemoryInjected,
    MemoryRevised, Project, ProjectMerged, ReprocessFinished, Seq, Versioned as _,
};
use claude_mem_log::{Item, Log, Options};
use claude_mem_projections::{Error, Store};

use claude_mem_capture::project::ProjectId;
use claude_mem_capture::{IncomingKind, Recorder, Response, SessionBegun};
use claude_mem_core::{
    clock::Clock,
    diagnostics::{self, Level},
    safe_text::clean,
    settings::table::{CONTEXT_SHOW_TERMINAL_OUTPUT, MODE},
};
use claude_mem_distill::{providers::Setup, status};
use claude_mem_memory::{
    context::{Page, Request, compose},
    modes::Mode,
};

/// The longest time for which a session waits until new events are indexed.
const FOLD_TIME_MAX: Duration = Duration::from_millis(15);
/// How much of the log is searched for events that make indexing worth it: about two milliseconds.
const LOOK_BYTES_MAX: usize = 2 << 20;

/// The memory for a session, and messages for the user.
pub(super) fn response(
    recorder: &Recorder,
    begun: Option<&SessionBegun>,
) -> (Response, Option<MemoryInjected>) {
    let (mut page, notice) = begun.map_or((None, None), |begun| {
        memory_for(recorder, begun).unwrap_or_else(|error| {
            // While another process creates or replaces the database there is no memory to give.
            if !matches!(error, Error::Rebuilding { .. }) {
                let message = format_args!("context: no memory was given: {error}");
                diagnostics::record(&recorder.paths.data, Level::Error, message);
            }
            (None, None)
        })
    });
    let injected = page.as_mut().and_then(|(_, injected)| injected.take());
    let page = page.map(|(page, _)| page);
    let context = page.as_ref().map_or_else(String::new, |page| page.text.clone());
    let shown = page.filter(|_| recorder.settings.get(&CONTEXT_SHOW_TERMINAL_OUTPUT)).map(|page| {
        let Page { observations, observations_total, tokens, .. } = page;
        format!(
            "claude-mem: {observations} of {observations_total} observations, about {tokens} tokens"
        )
    });
    let problems = recorder.settings.problems().into_iter();
    let problems = problems.map(|problem| format!("claude-mem: {problem}"));
    let messages: Vec<String> = problems.chain(shown).chain(notice).collect();
    let notice = (!messages.is_empty()).then(|| clean(&messages.join("\n")).to_string());
    let event = Some(IncomingKind::SessionStart);
    (Response { context: Some(context), notice, event }, injected)
}

/// A page, and the event that names what it gives in full.
type Given = (Page, Option<MemoryInjected>);

/// The memory that fits this session, and a notice about the provider. After a resume the old context is
/// still in the session's history, so only what other sessions added since is given.
fn memory_for(
    recorder: &Recorder,
    begun: &SessionBegun,
) -> Result<(Option<Given>, Option<String>), Error> {
    let log = Log::open(&recorder.paths.log(), Options::default())?;
    let mut store = Store::open_snapshot(&recorder.paths.memory())?;
    let position = store
        .as_ref()
        .map_or(Ok(Seq::START), |store| Ok::<_, Error>(store.checkpoint()?.position))?;
    if is_behind(&log, position)? {
        // A writer needs the database without a reader in the same process.
        drop(store.take());
        store = match caught_up(recorder, &log) {
            None => Store::open_snapshot(&recorder.paths.memory())?,
            caught_up => caught_up,
        };
    }
    let Some(store) = store else { return Ok((None, None)) };
    let is_resumed = matches!(begun.source.as_str(), "resume" | "fork");
    let Envelope { session, project: Project { key, root, .. }, .. } = &begun.envelope;
    let project = ProjectId::of(Path::new(root));
    let request = Request {
        project: &ProjectId { key: key.clone(), ..project },
        now: Clock::new(&recorder.environment).now(),
        resumed: is_resumed.then_some(session.as_str()),
        budget: None,
    };
    let page = compose(&store, &recorder.settings, &request).and_then(|page| {
        page.map(|page| {
            let observations = store.observation_refs(&page.given)?;
            let tokens = u32::try_from(page.tokens).unwrap_or(u32::MAX);
            let moment = InjectionMoment::SessionStart;
            let injected = MemoryInjected { moment, observations, tokens };
            Ok((page, Some(injected).filter(|injected| !injected.observations.is_empty())))
        })
        .transpose()
    });
    let setup = Setup {
        settings: &recorder.settings,
        paths: &recorder.paths,
        environment: &recorder.environment,
    };
    let notice = status::notice(&store, &setup).ok().flatten();
    // The process exits after the response, which is faster than closing the database first.
    std::mem::forget(store);
    Ok((page?, notice))
}

/// Indexes new events, but not for long: the session waits. If another process is at it, or everything
/// must be rebuilt, the rows that exist serve meanwhile.
fn caught_up(recorder: &Recorder, log: &Log) -> Option<Store> {
    let mode = Mode::load(&recorder.paths.data, &recorder.settings.get(&MODE));
    let mode = mode.unwrap_or_else(|_| Mode::code());
    let kinds = mode.kinds().into_iter().map(str::to_owned).collect();
    // Other hosts' logs are indexed by the process that pulls them.
    let options =
        claude_mem_projections::Options { kinds, batch_events: 200, ..Default::default() };
    let mut store = Store::open(&recorder.paths.memory(), options).ok()?;
    let began = Instant::now();
    store.fold(log, |_| began.elapsed() < FOLD_TIME_MAX).ok()?;
    Some(store)
}

/// Kinds of events that change the memory of a session. Captured events do not, until they are distilled.
const MEMORY_KINDS: [u16; 7] = [
    AgentReplied::KIND,
    ReprocessFinished::KIND,
    MemoryAdded::KIND,
    MemoryRevised::KIND,
    Forgotten::KIND,
    Imported::KIND,
    ProjectMerged::KIND,
];

/// Whether the log has an event behind `position` that changes memory.
fn is_behind(log: &Log, position: Seq) -> Result<bool, Error> {
    let mut reader = log.read_from(position);
    let mut bytes = 0;
    while let Some(item) = reader.next()? {
        let Item::Record(entry) = item else { continue };
        bytes += entry.payload.len();
        // There is so much that indexing should start.
        if MEMORY_KINDS.contains(&entry.kind) || bytes > LOOK_BYTES_MAX {
            return Ok(true);
        }
    }
    Ok(false)
}
