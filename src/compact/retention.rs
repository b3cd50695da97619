//! When compaction is worth it, and what may go by age or size.

use std::time::Duration;

use claude_mem_log::{Log, Options as LogOptions, SegmentInfo};
use claude_mem_projections::Store;

use super::Options;
use crate::{
    app::App,
    failure::Failure,
    settings::table::{
        COMPACT_MB, RETENTION_DAYS, RETENTION_MB, RETENTION_UNSHIPPED, SHIP_TO, Setting,
    },
    ship::state::State,
};

/// How long a forgetting can be taken back before the worker removes it for good.
const UNDO: Duration = Duration::from_secs(24 * 3600);
const MB: u64 = 1 << 20;

/// What the worker should compact now; `None` if it is not worth it.
///
/// It is if much of the log was never compacted, if something was forgotten a day ago, or if something is older
/// or more than the user wants to keep. While a forgetting is younger than a day, nothing is done: a compaction
/// would make it final.
pub(crate) fn worth_it(app: &App) -> Result<Option<Options>, Failure> {
    let limit = number(app, &COMPACT_MB) * MB;
    let Some(store) = Store::open_read_only(&app.paths.memory())? else { return Ok(None) };
    if limit == 0 {
        return Ok(None);
    }
    let segments = Log::open(&app.paths.log(), LogOptions::default())?.segments()?;
    let now_us = app.clock.now().as_microsecond().cast_unsigned();
    let since = store.last_compaction()?.map(|compacted| compacted.seq).unwrap_or_default();
    let forgettings: Vec<_> = store
        .forgettings("")?
        .into_iter()
        .filter(|forgetting| {
            forgetting.seq > since && !forgetting.is_undoing && !forgetting.is_void
        })
        .collect();
    let is_young = |at_us: u64| now_us.saturating_sub(at_us) < UNDO.as_micros() as u64;
    if forgettings.iter().any(|forgetting| is_young(forgetting.at_us)) {
        return Ok(None);
    }
    let raw_before_us = raw_before_of(app, &segments);
    let is_raw_due = raw_before_us.is_some_and(|before_us| {
        let is_old = |info: &SegmentInfo| {
            info.generation == 0
                && info.seal.as_ref().is_some_and(|seal| seal.time_max_us < before_us)
        };
        segments.iter().any(is_old)
    });
    let fresh = segments.iter().filter(|info| info.generation == 0 && info.seal.is_some());
    let is_much = fresh.map(|info| info.bytes).sum::<u64>() >= limit;
    let is_worth_it = is_much || is_raw_due || !forgettings.is_empty();
    Ok(is_worth_it.then(|| Options { raw_before_us, ..Options::default() }))
}

/// Before which moment only digests are kept, by the settings; `None` if all is kept. What is not shipped yet
/// stays, unless that was allowed.
pub(crate) fn raw_before(app: &App) -> Result<Option<u64>, Failure> {
    let segments = Log::open(&app.paths.log(), LogOptions::default())?.segments()?;
    Ok(raw_before_of(app, &segments))
}

fn raw_before_of(app: &App, segments: &[SegmentInfo]) -> Option<u64> {
    let now_us = app.clock.now().as_microsecond().cast_unsigned();
    let days = number(app, &RETENTION_DAYS);
    let by_age = (days > 0).then(|| now_us.saturating_sub(days * 24 * 3600 * 1_000_000));
    let by_size = too_much(segments, number(app, &RETENTION_MB) * MB);
    let wanted = by_age.max(by_size)?;
    if app.settings.flag(&RETENTION_UNSHIPPED) {
        return Some(wanted);
    }
    let before_us = shipped_before(app, segments)?;
    Some(wanted.min(before_us))
}

fn number(app: &App, setting: &Setting) -> u64 {
    app.settings.text(setting).parse().unwrap_or(0)
}

/// The moment before which everything lies that is beyond this size, counted from the end.
fn too_much(segments: &[SegmentInfo], bytes_max: u64) -> Option<u64> {
    if bytes_max == 0 {
        return None;
    }
    let mut bytes = 0;
    for info in segments.iter().rev() {
        bytes += info.bytes;
        if bytes > bytes_max {
            return info.seal.as_ref().map(|seal| seal.time_max_us + 1);
        }
    }
    None
}

/// Everything before this moment is in the remote; `None` if nothing is.
fn shipped_before(app: &App, segments: &[SegmentInfo]) -> Option<u64> {
    let state = State::load(&app.paths)?;
    if state.shipped_us == 0 || state.place != app.settings.text(&SHIP_TO) {
        return None;
    }
    let unshipped = segments.iter().filter(|info| info.number_last >= state.segment);
    let first = unshipped.filter_map(|info| info.seal.as_ref()).map(|seal| seal.time_min_us).min();
    Some(first.unwrap_or(state.shipped_us))
}
