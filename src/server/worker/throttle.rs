//! Taking turns: folding and asking rest while programs tell one thing after the other.
//!
//! Whoever tells something waits until it is on disk, and for nothing else. What is made of it can come a moment
//! later, and to make it of many things at once takes less than of each by itself. So the thread that follows the
//! log may work for a moment at once, and then rests for as long as it worked, several times over. A
//! single turn of a session never comes to that.

use std::time::Duration;

/// For a second of work so many seconds of rest.
const REST: u32 = 3;
/// As much rest may be owed before any is taken: work of ten milliseconds or so.
const OWED_FREE: Duration = Duration::from_millis(30);
/// The longest rest. A question must not come much later for it.
const REST_MAX: Duration = Duration::from_millis(25);

/// How much rest is owed.
#[derive(Debug, Default)]
pub(super) struct Pace {
    owed: Duration,
}

impl Pace {
    /// Something was done.
    pub(super) fn worked(&mut self, time: Duration) {
        // However long that was: nobody waits for a longer rest.
        self.owed = (self.owed + time * REST).min(OWED_FREE + REST_MAX);
    }

    /// Nothing was done.
    pub(super) fn rested(&mut self, time: Duration) {
        self.owed = self.owed.saturating_sub(time);
    }

    /// How long to rest before the next work.
    pub(super) fn rest(&self) -> Duration {
        self.owed.saturating_sub(OWED_FREE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_turn_of_a_session_is_not_held_up() {
        let mut pace = Pace::default();
        for _ in 0..8 {
            assert_eq!(pace.rest(), Duration::ZERO);
            pace.worked(MS);
        }
    }

    #[test]
    fn in_a_rush_it_rests_three_times_as_long_as_it_works() {
        let mut pace = Pace::default();
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
    fn no_rest_is_long_and_all_of_it_is_over_some_time() {
        let mut pace = Pace::default();
        pace.worked(Duration::from_secs(60));
        assert_eq!(pace.rest(), REST_MAX);
        pace.rested(Duration::from_secs(1));
        assert_eq!(pace.rest(), Duration::ZERO);
    }
}
