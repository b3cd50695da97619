//! The response to the start of a session: its context.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use claude_mem_events::{
    AgentReplied, Envelope, Forgotten, Imported, InjectionMoment, MemoryAdded, MemoryInjected,
    MemoryRevised, Project, ProjectMerged, Recorded, ReprocessFinished, Seq, Versioned as _,
};
use claude_mem_log::{Item, Log, Options};
use claude_mem_projections::{Error, Store};

use claude_mem_capture::project::ProjectId;
use claude_mem_capture::{
    CLAUDE_CODE, Client, ContextMax, IncomingKind, Recorder, Response, SessionBegun,
};
use claude_mem_core::{
    clock::Clock,
    diagnostics::{self, Level},
    format::count,
    safe_text::clean,
    settings::table::{CONTEXT_SHOW_TERMINAL_OUTPUT, CONTEXT_TOKENS_MAX, MODE},
};
use claude_mem_distill::{providers::Setup, status};
use claude_mem_memory::{
    context::{ContextMoment, Page, Request, compose},
    modes::Mode,
};

/// The longest time for which a session waits until new events are indexed.
const FOLD_TIME_MAX: Duration = Duration::from_millis(15);
/// The part of the log that is searched for events to index: takes about two milliseconds.
const LOOK_BYTES_MAX: usize = 2 << 20;

/// The memory for a session, and messages for the user.
pub(super) fn response(
    recorder: &Recorder,
    client: &Client,
    begun: Option<&SessionBegun>,
    size_max: ContextMax,
) -> (Response, Option<MemoryInjected>) {
    let given = begun.map_or_else(GivenContext::default, |begun| {
        memory_for(recorder, client, begun, size_max).unwrap_or_else(|error| {
            // While another process creates or replaces the database, no memory is available.
            if !matches!(error, Error::Rebuilding { .. }) {
                let message = format_args!("context: no memory was given: {error}");
                diagnostics::record(&recorder.paths.data, Level::Error, message);
            }
            GivenContext::default()
        })
    });
    let GivenContext { page, injected, loaded, notice } = given;
    let loaded = loaded.filter(|_| recorder.settings.get(&CONTEXT_SHOW_TERMINAL_OUTPUT));
    let problems = recorder.settings.problems().into_iter();
    let problems = problems.map(|problem| format!("claude-mem: {problem}"));
    let messages: Vec<String> = problems.chain(notice).chain(loaded).collect();
    let notice = (!messages.is_empty()).then(|| clean(&messages.join("\n")).to_string());
    let event = Some(IncomingKind::SessionStart);
    let context = page.map_or_else(String::new, |page| with_tool_names(&page.text, client));
    (Response { context: Some(context), notice, event }, injected)
}

/// Replaces our tool names by those of the client. Claude Code finds them without a prefix.
fn with_tool_names(text: &str, client: &Client) -> String {
    if client.name == CLAUDE_CODE.name {
        return text.to_owned();
    }
    let prefix = client.tool_prefix;
    text.replacen(
        "`search` and `get_observations`",
        &format!("`{prefix}search` and `{prefix}get_observations`"),
        1,
    )
}

/// The context of a session, and the message for the user.
#[derive(Default)]
struct GivenContext {
    page: Option<Page>,
    /// The event that names the memories given in full.
    injected: Option<MemoryInjected>,
    /// The message: the loaded memories, or why there are none.
    loaded: Option<String>,
    /// A problem of the provider.
    notice: Option<String>,
}

/// The memory for this session, and a notice about the provider. After a resume, the old context is
/// still in the session's history, so only memories that other sessions added since are given.
/// After a compaction, the session gets its own state.
fn memory_for(
    recorder: &Recorder,
    client: &Client,
    begun: &SessionBegun,
    size_max: ContextMax,
) -> Result<GivenContext, Error> {
    let log = Log::open(&recorder.paths.log(), Options::default())?;
    let mut store = Store::open_snapshot(&recorder.paths.memory())?;
    let position = store
        .as_ref()
        .map_or(Ok(Seq::START), |store| Ok::<_, Error>(store.checkpoint()?.position))?;
    let is_compacted = begun.source == "compact";
    if is_behind(&log, position, is_compacted)? {
        // A writer needs exclusive access, without a reader in the same process.
        drop(store.take());
        store = match caught_up(recorder, &log) {
            None => Store::open_snapshot(&recorder.paths.memory())?,
            caught_up => caught_up,
        };
    }
    let Envelope { session, project: Project { key, root, .. }, .. } = &begun.envelope;
    let moment = match begun.source.as_str() {
        "resume" | "fork" => ContextMoment::Resumed(session),
        "compact" => ContextMoment::Compacted { session, log: &log },
        _ => ContextMoment::Start,
    };
    let is_reason_wanted =
        matches!(moment, ContextMoment::Start) && recorder.settings.get(&CONTEXT_TOKENS_MAX) > 0;
    let Some(store) = store else {
        if !is_reason_wanted {
            return Ok(GivenContext::default());
        }
        let is_known = is_known(&log, Seq::START, &begun.envelope)?;
        let loaded = Some(if is_known { NOTHING } else { FIRST }.to_owned());
        return Ok(GivenContext { loaded, ..GivenContext::default() });
    };
    let project = ProjectId::of(Path::new(root));
    let request = Request {
        project: &ProjectId { key: key.clone(), ..project },
        now: Clock::new(&recorder.environment).now(),
        moment,
        client: None,
        reads_auto_memory: client.name == CLAUDE_CODE.name,
        budget: None,
        size_max,
    };
    let setup = Setup {
        settings: &recorder.settings,
        paths: &recorder.paths,
        environment: &recorder.environment,
    };
    let notice = status::notice(&store, &setup).ok().flatten();
    let mut page = compose(&store, &recorder.settings, &request)?;
    let fits = |page: &Page| size_max.holds(&with_tool_names(&page.text, client));
    if page.as_ref().is_some_and(|page| !fits(page)) {
        // Characters with more bytes than usual take at most twice the space.
        let request = Request { budget: Some(size_max.tokens() / 2), ..request };
        page = compose(&store, &recorder.settings, &request)?.filter(fits);
    }
    let loaded = match &page {
        Some(page) => Some(format!(
            "claude-mem: {} (about {} tokens)",
            count(page.observations as u64, "memory"),
            page.tokens
        )),
        None if is_reason_wanted => {
            let is_known = store.has_sessions(key, session)?
                || is_known(&log, store.checkpoint()?.position, &begun.envelope)?;
            let pending = store.pending_counts()?.outstanding;
            Some(match (is_known, pending) {
                (false, _) => FIRST.into(),
                (true, 0) => NOTHING.into(),
                (true, pending) => format!(
                    "{NOTHING}: {} not distilled; run `claude-mem status`",
                    count(pending, "event")
                ),
            })
        }
        None => None,
    };
    let injected = page.as_ref().map(|page| {
        let observations = store.observation_refs(&page.given)?;
        let tokens = u32::try_from(page.tokens).unwrap_or(u32::MAX);
        Ok::<_, Error>(MemoryInjected {
            moment: InjectionMoment::SessionStart,
            observations,
            tokens,
        })
    });
    let injected = injected.transpose()?.filter(|injected| !injected.observations.is_empty());
    // The process exits after the response, which is faster than closing the database first.
    std::mem::forget(store);
    Ok(GivenContext { page, injected, loaded, notice })
}

const FIRST: &str =
    "claude-mem: recording the first session of this project; the next one gets its memories";
const NOTHING: &str = "claude-mem: no memories of this project yet";

/// Whether the log after `position` has an event of another session of the same project.
fn is_known(log: &Log, position: Seq, begun: &Envelope) -> Result<bool, Error> {
    let mut reader = log.read_from(position);
    let mut bytes = 0;
    while let Some(item) = reader.next()?
        && bytes < LOOK_BYTES_MAX
    {
        let Item::Record(entry) = item else { continue };
        bytes += entry.payload.len();
        let envelope = Recorded::from_entry(&entry).envelope;
        if envelope.project.key == begun.project.key && envelope.session != begun.session {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Indexes new events for a short time, because the session waits. If another process is indexing,
/// or the database must be rebuilt, the existing rows are used.
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

/// Kinds of events that change the memory of a session. Captured events do not, until they are
/// distilled.
const MEMORY_KINDS: [u16; 7] = [
    AgentReplied::KIND,
    ReprocessFinished::KIND,
    MemoryAdded::KIND,
    MemoryRevised::KIND,
    Forgotten::KIND,
    Imported::KIND,
    ProjectMerged::KIND,
];

/// Whether the log has an event after `position` that changes memory, or any event.
fn is_behind(log: &Log, position: Seq, is_any: bool) -> Result<bool, Error> {
    let mut reader = log.read_from(position);
    let mut bytes = 0;
    while let Some(item) = reader.next()? {
        let Item::Record(entry) = item else { continue };
        bytes += entry.payload.len();
        // So many events are pending that indexing should start.
        if is_any || MEMORY_KINDS.contains(&entry.kind) || bytes > LOOK_BYTES_MAX {
            return Ok(true);
        }
    }
    Ok(false)
}
