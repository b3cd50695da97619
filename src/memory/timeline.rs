//! The events around a memory, a time, or the best match of a query.

use claude_mem_core::{app::App, failure::Failure, time_arg::When};
use claude_mem_projections::{
    Store,
    timeline::{Anchor, TimelineQuery, TimelineWindow},
};

use crate::{resolve, search::kinds_and_types};

/// Default number of memories on either side.
pub const DEPTH: usize = 10;

/// The center of the timeline.
#[derive(Debug, Clone, Default)]
pub enum TimelineAnchor {
    /// The present.
    #[default]
    Now,
    /// A memory (`12`, `S3`, `P9`) or a time.
    IdOrTime(String),
    /// The best match of these words.
    Query(String),
    /// A memory, or else a time, or else the best match, for interactive input.
    Any(String),
}

/// Which projects a timeline covers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TimelineScope {
    /// The project of the anchor, if the anchor is a memory; otherwise all projects.
    #[default]
    OfAnchor,
    /// The project of the anchor, if the anchor is a memory; otherwise the current one, and all if
    /// it has no match.
    CurrentFirst,
    All,
    /// The one of this key or label.
    Named(String),
}

/// What to show.
#[derive(Debug, Clone, Default)]
pub struct TimelineRequest {
    pub anchor: TimelineAnchor,
    pub before: usize,
    pub after: usize,
    pub scope: TimelineScope,
    /// Kinds of memories and types of observations, as in a search; all if empty.
    pub types: Vec<String>,
}

/// Memories around the anchor, ordered by time.
pub fn timeline(
    app: &App,
    store: &Store,
    request: &TimelineRequest,
) -> Result<TimelineWindow, Failure> {
    let anchor = anchor(app, &request.anchor)?;
    let is_current =
        request.scope == TimelineScope::CurrentFirst && !matches!(anchor, Anchor::Memory(_));
    let (kinds, types) = kinds_and_types(request.types.clone(), Vec::new());
    let mut query = TimelineQuery {
        kinds,
        types,
        anchor,
        before: request.before,
        after: request.after,
        project: match &request.scope {
            TimelineScope::Named(name) => Some(name.clone()),
            _ if is_current => Some(resolve::current_project(app).key),
            _ => None,
        },
        is_everywhere: request.scope == TimelineScope::All,
    };
    let window = store.timeline(&query)?;
    if is_current && window.hint.is_some() {
        query.project = None;
        return Ok(store.timeline(&query)?);
    }
    Ok(window)
}

fn anchor(app: &App, given: &TimelineAnchor) -> Result<Anchor, Failure> {
    let now = app.clock.now();
    let time = |text: &str| When::from_api(text).map(|when| Anchor::Time(when.start_us(now)));
    match given {
        TimelineAnchor::Now => Ok(Anchor::Time(claude_mem_core::time_arg::micros(now))),
        TimelineAnchor::Query(query) => Ok(Anchor::Query(query.clone())),
        TimelineAnchor::Any(text) => match (text.parse(), text.parse::<When>()) {
            (Ok(id), _) => Ok(Anchor::Memory(id)),
            (_, Ok(when)) => Ok(Anchor::Time(when.start_us(now))),
            (_, Err(error)) if looks_like_time(text) => {
                Err(Failure::usage(format!("`{text}` is not a time")).remedy(error.to_string()))
            }
            _ => Ok(Anchor::Query(text.clone())),
        },
        TimelineAnchor::IdOrTime(text) => match text.parse() {
            Ok(id) => Ok(Anchor::Memory(id)),
            Err(_) => time(text).map_err(|_| {
                let shown: String = text.chars().take(60).collect();
                Failure::usage(format!("`{shown}` is neither an ID nor a time"))
                    .remedy("give `12`, `S3`, `P9` or `2026-03-01T14:30`; words go into `query`")
            }),
        },
    }
}

/// A date that does not exist, such as `2026-13-40`, is no word to search for.
fn looks_like_time(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_digit() || "-:.+ TZ".contains(c);
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.contains(['-', ':'])
        && text.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use claude_mem_core::{environment::Environment, paths::Paths};

    use super::*;

    #[test]
    fn an_anchor_is_a_memory_else_a_time_else_words() {
        let fixed = Environment::fixed(&[("CLAUDE_MEM_NOW", "2026-03-01T12:00:00Z")]);
        let dir = tempfile::tempdir().unwrap();
        let app = App::new(fixed, Paths { home: None, data: dir.path().into() });
        let any = |text: &str| anchor(&app, &TimelineAnchor::Any(text.into())).unwrap();
        assert_eq!(any("S3"), Anchor::Memory("S3".parse().unwrap()));
        assert_eq!(any("12"), Anchor::Memory("12".parse().unwrap()));
        let time = "2026-02-28T12:00:00Z".parse::<When>().unwrap().start_us(app.clock.now());
        assert_eq!(any("2026-02-28T12:00:00Z"), Anchor::Time(time));
        assert_eq!(any("torn log"), Anchor::Query("torn log".into()));
        assert_eq!(any("3-way merge"), Anchor::Query("3-way merge".into()));
        for invalid in ["2026-13-40", "2026-03-01 25:00"] {
            assert!(anchor(&app, &TimelineAnchor::Any(invalid.into())).is_err(), "{invalid}");
        }
        assert!(anchor(&app, &TimelineAnchor::IdOrTime("torn log".into())).is_err());
    }
}
