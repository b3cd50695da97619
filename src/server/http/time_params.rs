//! Moments as they are asked for and told.

use jiff::Timestamp;

use super::error::Refusal;
use claude_mem_core::{app::App, time_arg::When};

/// Which end of a stretch of time a moment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Start,
    End,
}

/// A moment that was given as people write it (`2026-03-01`, `3d`), or in seconds or milliseconds since 1970.
pub(super) fn moment(
    app: &App,
    name: &str,
    text: Option<&str>,
    end: End,
) -> Result<Option<u64>, Refusal> {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
    if let Ok(number) = text.parse::<u64>() {
        // Nobody means the year 5000: what is that large counts milliseconds.
        let is_seconds = number < 100_000_000_000;
        let us = number.saturating_mul(if is_seconds { 1_000_000 } else { 1000 });
        return Ok(Some(us.min(i64::MAX.cast_unsigned())));
    }
    let when: When =
        text.parse().map_err(|error| Refusal::bad(format!("`{name}` is no moment: {error}")))?;
    let now = app.clock.now();
    let moment = if end == End::Start { when.start(now) } else { when.end(now) };
    Ok(Some(u64::try_from(moment.as_microsecond()).unwrap_or(0)))
}

/// A moment for people and programs: `2026-03-01T12:00:00Z`.
pub(super) fn text(at_us: u64) -> String {
    Timestamp::from_microsecond(at_us.cast_signed()).unwrap_or_default().to_string()
}

/// A moment in milliseconds since 1970.
pub(super) fn epoch(at_us: u64) -> u64 {
    at_us / 1000
}
