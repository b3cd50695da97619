//! The titles of forgotten memories. Their rows are gone, so the titles come from the log.

use claude_mem_events::{Event, Forgotten, Id};
use claude_mem_projections::{
    Forgetting, KINDS, Store,
    text::{first_line, truncate},
    xml::read_reply,
};

use crate::{event_subject::subject, store};
use claude_mem_core::{app::App, failure::Failure, time_arg::local};

/// A longer title is cut.
const TITLE_CHARS_MAX: usize = 120;

/// The titles of forgotten memories, or the conditions of a forgetting; at most `max`. Empty if a
/// compaction erased them.
pub fn forgotten_titles(
    app: &App,
    store: &Store,
    forgetting: &Forgetting,
    max: usize,
) -> Result<Vec<String>, Failure> {
    let log = store::open_log_of(app, forgetting.seq)?;
    let recorded = store::event_at(&log, forgetting.seq)?;
    let Some(Event::Forgotten(forgotten)) = recorded.map(|recorded| recorded.event) else {
        return Ok(Vec::new());
    };
    let mut titles = conditions(&forgotten);
    let rows = forgotten.rows.iter().filter_map(|address| {
        let (event, number) = address.split_once('/').unwrap_or((address, ""));
        Some((Id::parse(event)?, number.parse().ok()))
    });
    let events = forgotten.events.iter().map(|event| (Id::from_bytes(*event), None));
    for (event, number) in rows.chain(events) {
        if titles.len() >= max {
            break;
        }
        titles.extend(title(app, store, event, number)?);
    }
    Ok(titles)
}

/// A forgetting by condition names no memories.
fn conditions(forgotten: &Forgotten) -> Vec<String> {
    let Forgotten { session, project, file, since_us, until_us, .. } = forgotten;
    let mut parts = Vec::new();
    for (name, value) in [("Session", session), ("Project", project), ("File", file)] {
        if !value.is_empty() {
            parts.push(format!("{name} {value}"));
        }
    }
    let day = |at_us: u64| local(at_us, "%Y-%m-%d %H:%M");
    parts.extend(since_us.map(|at_us| format!("since {}", day(at_us))));
    parts.extend(until_us.map(|at_us| format!("until {}", day(at_us))));
    if parts.is_empty() { Vec::new() } else { vec![parts.join(", ")] }
}

fn title(
    app: &App,
    store: &Store,
    event: Id,
    number: Option<usize>,
) -> Result<Option<String>, Failure> {
    let Some(seq) = store.event_place(event)? else { return Ok(None) };
    let log = store::open_log_of(app, seq)?;
    let Some(recorded) = store::event_at(&log, seq)? else { return Ok(None) };
    let title = match &recorded.event {
        Event::AgentReplied(replied) => {
            let reply = read_reply(&replied.reply, KINDS);
            let at = number.unwrap_or(1).wrapping_sub(1);
            let observation = reply.observations.into_iter().nth(at);
            observation
                .and_then(|observation| observation.title.or(observation.narrative))
                .or_else(|| reply.summary.and_then(|summary| summary.request))
                .unwrap_or_default()
        }
        Event::MemoryAdded(added) if !added.title.is_empty() => added.title.clone(),
        Event::Erased { .. } => return Ok(None),
        event => subject(event),
    };
    let title = truncate(first_line(&title).to_owned(), TITLE_CHARS_MAX);
    Ok(Some(title).filter(|title| !title.is_empty()))
}
