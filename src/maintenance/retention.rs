//! Retention: when to compact, and what is removed by age or size.

use std::time::Duration;

use claude_mem_log::{Log, Options as LogOptions, SegmentInfo};
use claude_mem_projections::Store;

use crate::compact::Options;
use claude_mem_core::{
    app::App,
    failure::Failure,
    settings::table::{COMPACT_MB, RETENTION_DAYS, RETENTION_MB, RETENTION_UNSHIPPED, SHIP_TO},
};
use claude_mem_sync::ship::local_state::State;

/// How long a forgetting can be undone before the worker erases it.
const UNDO: Duration = Duration::from_secs(24 * 3600);
const MB: u64 = 1 << 20;

/// The compaction that is due now; `None` if none is.
///
/// It is due if much of the log was never compacted, if something was forgotten a day ago, or if
/// the log exceeds the configured age or size. Nothing is done within a day after a forgetting,
/// because a compaction makes it permanent.
pub fn due_compaction(app: &App) -> Result<Option<Options>, Failure> {
    let limit = app.settings.get(&COMPACT_MB) * MB;
    let Some(store) = Store::open_read_only(&app.paths.memory())? else { return Ok(None) };
    if limit == 0 {
        return Ok(None);
    }
    let segments = Log::open(&app.paths.log(), LogOptions::default())?.segments()?;
    let now_us = app.clock.now().as_microsecond().cast_unsigned();
    let last = store.last_compaction()?;
    let since = last.as_ref().map(|last| last.seq).unwrap_or_default();
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
    let raw_before_us = raw_cutoff_of(app, &segments);
    let done_us = last.and_then(|last| last.raw_before_us).unwrap_or(0);
    let is_raw_due = raw_before_us.is_some_and(|before_us| {
        // Whole segments only: otherwise a compaction would be due every hour.
        let mut times = segments.iter().flat_map(|info| &info.seal).map(|seal| seal.time_max_us);
        times.any(|time_max_us| (done_us..before_us).contains(&time_max_us))
    });
    let fresh = segments.iter().filter(|info| info.generation == 0 && info.seal.is_some());
    let is_much = fresh.map(|info| info.bytes).sum::<u64>() >= limit;
    let is_worth_it = is_much || is_raw_due || !forgettings.is_empty();
    Ok(is_worth_it.then(|| Options { raw_before_us, ..Options::default() }))
}

/// The time before which only digests are kept, according to the settings; `None` keeps everything.
/// Records that are not uploaded yet are kept, unless the settings allow otherwise.
pub fn raw_cutoff(app: &App) -> Result<Option<u64>, Failure> {
    let segments = Log::open(&app.paths.log(), LogOptions::default())?.segments()?;
    Ok(raw_cutoff_of(app, &segments))
}

fn raw_cutoff_of(app: &App, segments: &[SegmentInfo]) -> Option<u64> {
    let now_us = app.clock.now().as_microsecond().cast_unsigned();
    let days = app.settings.get(&RETENTION_DAYS);
    let by_age = (days > 0).then(|| now_us.saturating_sub(days * 24 * 3600 * 1_000_000));
    let by_size = over_budget(segments, app.settings.get(&RETENTION_MB) * MB);
    let wanted = by_age.max(by_size)?;
    if app.settings.get(&RETENTION_UNSHIPPED) {
        return Some(wanted);
    }
    let before_us = shipped_before(app, segments)?;
    Some(wanted.min(before_us))
}

/// The time of the newest record beyond this size, counted from the end.
fn over_budget(segments: &[SegmentInfo], bytes_max: u64) -> Option<u64> {
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

/// The time before which everything is uploaded; `None` if nothing is.
fn shipped_before(app: &App, segments: &[SegmentInfo]) -> Option<u64> {
    let state = State::load(&app.paths)?;
    if state.shipped_us == 0 || state.place != app.settings.get(&SHIP_TO) {
        return None;
    }
    let unshipped = segments.iter().filter(|info| info.number_last >= state.segment);
    let first = unshipped.filter_map(|info| info.seal.as_ref()).map(|seal| seal.time_min_us).min();
    Some(first.unwrap_or(state.shipped_us))
}

#[cfg(test)]
mod tests {
    use claude_mem_events::{Envelope, EventLog, Id, ToolUsed};
    use claude_mem_log::maintain;

    use super::*;
    use crate::compact::{Outcome, run};
    use claude_mem_core::{environment::Environment, paths::Paths};
    use claude_mem_memory::store;

    const DAY_US: u64 = 24 * 3600 * 1_000_000;
    /// 2026-03-01T00:00:00Z
    const START_US: u64 = 1_772_323_200_000_000;

    /// A log with one segment for each of ten days, on the last day.
    struct Days {
        outer: tempfile::TempDir,
    }

    impl Days {
        fn new() -> Self {
            let days = Self { outer: tempfile::tempdir().unwrap() };
            let app = days.app(10, &[]);
            app.paths.create_data().unwrap();
            for day in 0..10 {
                let mut log = EventLog::open(&app.paths.log(), LogOptions::default()).unwrap();
                for number in 0..4 {
                    let id = Id::new(START_US + day * DAY_US + number, day * 10 + number);
                    let (tool, output) = ("Bash".into(), format!("day {day} ").repeat(100));
                    let used = ToolUsed { tool, output, ..ToolUsed::default() };
                    let envelope = Envelope { session: "s".into(), ..Envelope::default() };
                    log.record(id, &envelope, &used.into()).unwrap();
                }
                claude_mem_log::roll(&app.paths.log(), &LogOptions::default()).unwrap();
            }
            maintain(&app.paths.log(), &LogOptions::default()).unwrap();
            let mut app = days.app(10, &[]);
            store::open_folded(&mut app).unwrap();
            days
        }

        /// The program after `day` days, with these settings.
        fn app(&self, day: u64, settings: &[(&str, &str)]) -> App {
            let now = jiff::Timestamp::from_microsecond((START_US + day * DAY_US) as i64).unwrap();
            let now = now.to_string();
            let mut variables = vec![("CLAUDE_MEM_NOW", now.as_str())];
            variables.extend(settings);
            let paths = Paths { home: None, data: self.outer.path().join("data") };
            App::new(Environment::fixed(&variables), paths)
        }

        fn place(&self) -> String {
            self.outer.path().join("remote").to_string_lossy().into_owned()
        }

        /// Records that everything before this segment, and a little of it, is uploaded.
        fn shipped(&self, segment: u64) {
            let state = serde_json::json!({"place": self.place(), "host": "", "number": 1, "segment": segment,
                "offset": 100, "log_bytes": 0, "shipped_us": START_US + 10 * DAY_US, "tried_us": 0, "error": null});
            std::fs::write(self.app(0, &[]).paths.ship_state(), state.to_string()).unwrap();
        }

        fn compact(app: &mut App) -> Option<Outcome> {
            let options = due_compaction(app).unwrap()?;
            Some(run(app, &options, |_, _| ()).unwrap())
        }

        /// The retention time, in days since the first.
        fn raw_cutoff(&self, settings: &[(&str, &str)]) -> Option<u64> {
            let before_us = super::raw_cutoff(&self.app(10, settings)).unwrap()?;
            Some((before_us - START_US) / DAY_US)
        }
    }

    #[test]
    fn the_worker_compacts_when_enough_was_never_compacted_and_then_not_again() {
        let days = Days::new();
        let fresh: u64 = {
            let log = Log::open(&days.app(10, &[]).paths.log(), LogOptions::default()).unwrap();
            log.segments().unwrap().iter().map(|info| info.bytes).sum()
        };
        assert!(fresh < MB, "{fresh}");
        assert!(due_compaction(&days.app(10, &[])).unwrap().is_none(), "it is little");
        let off = [("CLAUDE_MEM_COMPACT_MB", "0"), ("CLAUDE_MEM_RETENTION_DAYS", "1")];
        assert!(due_compaction(&days.app(10, &off)).unwrap().is_none(), "it is switched off");
        let paths = days.app(10, &[]).paths;
        let mut log = EventLog::open(&paths.log(), LogOptions::default()).unwrap();
        for number in 0..3 {
            let output: String =
                (0_u64..40_000).map(|n| format!("{:016x}", n * n * 7919)).collect();
            let used = ToolUsed { output, ..ToolUsed::default() };
            let id = Id::new(START_US + 10 * DAY_US, 900 + number);
            log.record(id, &Envelope::default(), &used.into()).unwrap();
        }
        claude_mem_log::roll(&paths.log(), &LogOptions::default()).unwrap();
        maintain(&paths.log(), &LogOptions::default()).unwrap();
        let one = [("CLAUDE_MEM_COMPACT_MB", "1")];
        let outcome = Days::compact(&mut days.app(10, &one)).expect("it is much now");
        assert!(outcome.log_bytes.1 < outcome.log_bytes.0, "{outcome:?}");
        assert!(Days::compact(&mut days.app(10, &one)).is_none(), "once is enough");
    }

    #[test]
    fn only_shipped_events_lose_their_raw_text_by_default() {
        let days = Days::new();
        let by_age = ("CLAUDE_MEM_RETENTION_DAYS", "3");
        let allowed = ("CLAUDE_MEM_RETENTION_UNSHIPPED", "true");
        let place = days.place();
        let to = ("CLAUDE_MEM_SHIP_TO", place.as_str());
        assert_eq!(days.raw_cutoff(&[to]), None, "all is kept");
        assert_eq!(days.raw_cutoff(&[by_age]), None, "nothing was ever shipped");
        assert_eq!(days.raw_cutoff(&[by_age, allowed]), Some(7));
        days.shipped(5);
        // Segments 1 to 4 are uploaded, which are the first four days.
        assert_eq!(days.raw_cutoff(&[by_age, to]), Some(4));
        assert_eq!(days.raw_cutoff(&[by_age, to, allowed]), Some(7));
        let elsewhere = ("CLAUDE_MEM_SHIP_TO", "/another/place");
        assert_eq!(days.raw_cutoff(&[by_age, elsewhere]), None, "it is not in that one");
        days.shipped(11);
        assert_eq!(days.raw_cutoff(&[by_age, to]), Some(7), "age is what counts then");
    }

    #[test]
    fn beyond_a_size_the_oldest_goes_first() {
        let days = Days::new();
        let log = Log::open(&days.app(10, &[]).paths.log(), LogOptions::default()).unwrap();
        let segments = log.segments().unwrap();
        let last: u64 = segments.iter().rev().take(4).map(|info| info.bytes).sum();
        assert_eq!(over_budget(&segments, 0), None);
        assert_eq!(over_budget(&segments, u64::MAX), None);
        // The last three days and the empty segment fit; the day before does not.
        let before_us = over_budget(&segments, last).unwrap();
        assert_eq!((before_us - START_US) / DAY_US, 6);
    }

    #[test]
    fn events_that_expire_after_a_compaction_are_removed_by_a_later_one() {
        let days = Days::new();
        let settings =
            [("CLAUDE_MEM_RETENTION_DAYS", "5"), ("CLAUDE_MEM_RETENTION_UNSHIPPED", "true")];
        assert!(Days::compact(&mut days.app(10, &settings)).is_some());
        assert!(due_compaction(&days.app(10, &settings)).unwrap().is_none(), "it was just done");
        assert!(
            due_compaction(&days.app(30, &settings)).unwrap().is_some(),
            "all of it is old by now"
        );
    }
}
