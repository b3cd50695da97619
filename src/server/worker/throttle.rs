//! Throttle: indexing and distilling pause while programs send many events.
//!
//! A program waits only until its event is on disk. Indexing can come later, and is cheaper in
//! batches. So the main loop may work for a short time at once, and then pauses for a multiple of
//! that time. A single turn of a session never reaches the limit.

use std::time::Duration;

/// Seconds of pause per second of work.
const REST: u32 = 3;
/// Pause that may accumulate before any is taken: about ten milliseconds of work.
const OWED_FREE: Duration = Duration::from_millis(30);
/// Maximum pause, so that requests are not delayed much.
const REST_MAX: Duration = Duration::from_millis(25);

/// Accumulated pause.
#[derive(Debug, Default)]
pub(super) struct Throttle {
    owed: Duration,
}

impl Throttle {
    /// Adds work.
    pub(super) fn worked(&mut self, time: Duration) {
        // Limited, so that the pause stays short after long work.
        self.owed = (self.owed + time * REST).min(OWED_FREE + REST_MAX);
    }

    /// Subtracts a pause.
    pub(super) fn rested(&mut self, time: Duration) {
        self.owed = self.owed.saturating_sub(time);
    }

    /// Pause before the next work.
    pub(super) fn rest(&self) -> Duration {
        self.owed.saturating_sub(OWED_FREE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_single_turn_is_not_delayed() {
        let mut pace = Throttle::default();
        for _ in 0..8 {
            assert_eq!(pace.rest(), Duration::ZERO);
            pace.worked(MS);
        }
    }

    #[test]
    fn under_load_pauses_take_three_times_the_work() {
        let mut pace = Throttle::default();
        let (mut worked, mut rested) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..1000 {
            let rest = pace.rest();
            pace.rested(rest);
            pace.worked(4 * MS);
            (worked, rested) = (worked + 4 * MS, rested + rest);
        }
        assert!(rested > worked * 29 / 10 && rested <= worked * 3, "{worked:?} {rested:?}");
    }

    #[test]
    fn every_pause_is_short_and_ends() {
        let mut pace = Throttle::default();
        pace.worked(Duration::from_secs(60));
        assert_eq!(pace.rest(), REST_MAX);
        pace.rested(Duration::from_secs(1));
        assert_eq!(pace.rest(), Duration::ZERO);
    }
}
