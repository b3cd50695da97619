//! The response to a prompt: the memories that it is about.

use claude_mem_capture::{IncomingKind, Prompted, Recorder, Response};
use claude_mem_core::{
    clock::Clock,
    diagnostics::{self, Level},
};
use claude_mem_events::{
    Event, InjectionMoment, MemoryInjected, ObservationRef, Recorded, Versioned as _,
};
use claude_mem_log::{Item, Log, Options};
use claude_mem_memory::context::{PromptContext, PromptRequest, for_prompt};
use claude_mem_projections::{Error, Store};

/// How much of the log is searched for what the session was given since the last indexing: about two
/// milliseconds.
const LOOK_BYTES_MAX: usize = 2 << 20;

/// The memories for a prompt. Nothing at all if none concerns it.
pub(super) fn response(
    recorder: &Recorder,
    prompted: &Prompted,
) -> (Response, Option<MemoryInjected>) {
    let found = memories_for(recorder, prompted).unwrap_or_else(|error| {
        // While another process creates or replaces the database there is no memory to give.
        if !matches!(error, Error::Rebuilding { .. }) {
            let message = format_args!("prompt: no memory was given: {error}");
            diagnostics::record(&recorder.paths.data, Level::Error, message);
        }
        None
    });
    let Some((context, observations)) = found else { return (Response::default(), None) };
    let tokens = u32::try_from(context.tokens).unwrap_or(u32::MAX);
    let injected = MemoryInjected { moment: InjectionMoment::Prompt, observations, tokens };
    let event = Some(IncomingKind::Prompt);
    (Response { context: Some(context.text), notice: None, event }, Some(injected))
}

fn memories_for(
    recorder: &Recorder,
    prompted: &Prompted,
) -> Result<Option<(PromptContext, Vec<ObservationRef>)>, Error> {
    let memory = recorder.paths.memory();
    // Opening a database that does not exist would still create its lock file.
    if !memory.exists() {
        return Ok(None);
    }
    let Some(store) = Store::open_snapshot(&memory)? else { return Ok(None) };
    let session = &prompted.envelope.session;
    let mut given = store.injected_in(session)?;
    given.extend(given_since(recorder, &store, session)?);
    let request = PromptRequest {
        project: &prompted.envelope.project.key,
        prompt: &prompted.text,
        now: Clock::new(&recorder.environment).now(),
        session,
        given: &given,
    };
    let context = for_prompt(&store, &recorder.settings, &request)?;
    let found = context.map(|context| {
        let refs = store.observation_refs(&context.observations)?;
        Ok::<_, Error>((context, refs))
    });
    let found = found.transpose();
    // The process exits after the response, which is faster than closing the database first.
    std::mem::forget(store);
    found
}

/// What the session was given according to events that are not indexed yet: without a worker,
/// indexing waits for the next session.
fn given_since(
    recorder: &Recorder,
    store: &Store,
    session: &str,
) -> Result<Vec<ObservationRef>, Error> {
    let log = Log::open(&recorder.paths.log(), Options::default())?;
    let mut reader = log.read_from(store.checkpoint()?.position);
    let (mut given, mut bytes) = (Vec::new(), 0);
    while let Some(item) = reader.next()?
        && bytes < LOOK_BYTES_MAX
    {
        let Item::Record(entry) = item else { continue };
        bytes += entry.payload.len();
        if entry.kind != MemoryInjected::KIND {
            continue;
        }
        let found = Recorded::from_entry(&entry);
        if let Event::MemoryInjected(injected) = found.event
            && found.envelope.session == session
        {
            given.extend(injected.observations);
        }
    }
    Ok(given)
}
