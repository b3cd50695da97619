//! `claude-mem context`: a session begins, or goes on, and is given what is remembered.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use claude_mem_events::{
    AgentReplied, Forgotten, Imported, MemoryAdded, ProjectMerged, ReprocessFinished, Seq,
    Versioned as _,
};
use claude_mem_log::{Item, Log, Options};
use claude_mem_projections::{Error, Store};
use serde_json::json;

use claude_mem_capture::project::ProjectId;
use claude_mem_capture::{Begun, World};
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

/// How long a session may be kept waiting for the tables to catch up.
const FOLD_TIME_MAX: Duration = Duration::from_millis(15);
/// How long the log may be looked through for something that is worth it.
const LOOK_TIME_MAX: Duration = Duration::from_millis(2);

/// What Claude is told at the beginning of a session, in the client's own form.
pub(super) fn answer(world: &World, begun: Option<&Begun>) -> String {
    let (page, notice) = begun.map_or((None, None), |begun| {
        tell(world, begun).unwrap_or_else(|error| {
            let message = format_args!("context: nothing was told: {error}");
            diagnostics::record(&world.paths.data, Level::Error, message);
            (None, None)
        })
    });
    let text = page.as_ref().map_or("", |page| &page.text);
    let output = json!({"hookEventName": "SessionStart", "additionalContext": text});
    let mut answer =
        json!({"continue": true, "suppressOutput": true, "hookSpecificOutput": output});
    let shown = page.filter(|_| world.settings.get(&CONTEXT_SHOW_TERMINAL_OUTPUT)).map(|page| {
        let Page { observations, observations_total, tokens, .. } = page;
        format!(
            "claude-mem: {observations} of {observations_total} observations, about {tokens} tokens"
        )
    });
    let problems = world.settings.problems().into_iter();
    let problems = problems.map(|problem| format!("claude-mem: {problem}"));
    let message: Vec<String> = problems.chain(shown).chain(notice).collect();
    if !message.is_empty() {
        answer["systemMessage"] = json!(clean(&message.join("\n")));
    }
    format!("{answer}\n")
}

/// The memory that fits this session, and what the user should know about who distils. After a resume the
/// old context is still in its history, so only what others have added since is told.
fn tell(world: &World, begun: &Begun) -> Result<(Option<Page>, Option<String>), Error> {
    let log = Log::open(&world.paths.log(), Options::default())?;
    let mut store = Store::open_snapshot(&world.paths.memory())?;
    let position = store
        .as_ref()
        .map_or(Ok(Seq::START), |store| Ok::<_, Error>(store.checkpoint()?.position))?;
    if is_behind(&log, position)? {
        // Whoever writes needs the database without anybody in this process who only looks.
        drop(store.take());
        store = match caught_up(world, &log) {
            None => Store::open_snapshot(&world.paths.memory())?,
            caught_up => caught_up,
        };
    }
    let Some(store) = store else { return Ok((None, None)) };
    let is_resumed = matches!(begun.source.as_str(), "resume" | "fork");
    let project = ProjectId::of(Path::new(&begun.project.root));
    let request = Request {
        project: &ProjectId { key: begun.project.key.clone(), ..project },
        now: Clock::new(&world.environment).now(),
        resumed: is_resumed.then_some(&begun.session),
        budget: None,
    };
    let page = compose(&store, &world.settings, &request);
    let setup =
        Setup { settings: &world.settings, paths: &world.paths, environment: &world.environment };
    let notice = status::notice(&store, &setup).ok().flatten();
    // The process ends with the answer, which is quicker than giving back what was opened piece by piece.
    std::mem::forget(store);
    Ok((page?, notice))
}

/// Folds what was recorded since, but not for long: the session waits. Somebody else may be at it, or may
/// have to draw all of it again; what is there serves meanwhile.
fn caught_up(world: &World, log: &Log) -> Option<Store> {
    let mode = Mode::load(&world.paths.data, &world.settings.get(&MODE));
    let mode = mode.unwrap_or_else(|_| Mode::code());
    let kinds = mode.kinds().into_iter().map(str::to_owned).collect();
    // What other machines did is folded by whoever fetches it.
    let options =
        claude_mem_projections::Options { kinds, batch_events: 200, ..Default::default() };
    let mut store = Store::open(&world.paths.memory(), options).ok()?;
    let began = Instant::now();
    store.fold(log, |_| began.elapsed() < FOLD_TIME_MAX).ok()?;
    Some(store)
}

/// Kinds of events that change what a session is told. What is merely recorded does not, until it is distilled.
const TELLING: [u16; 6] = [
    AgentReplied::KIND,
    ReprocessFinished::KIND,
    MemoryAdded::KIND,
    Forgotten::KIND,
    Imported::KIND,
    ProjectMerged::KIND,
];

/// Whether there is something in the log behind `position` that a session should be told of.
fn is_behind(log: &Log, position: Seq) -> Result<bool, Error> {
    let began = Instant::now();
    let mut reader = log.read_from(position);
    while let Some(item) = reader.next()? {
        let is_telling = matches!(item, Item::Record(entry) if TELLING.contains(&entry.kind));
        // So much behind that it is better to begin.
        if is_telling || began.elapsed() > LOOK_TIME_MAX {
            return Ok(true);
        }
    }
    Ok(false)
}
