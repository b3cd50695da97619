//! Delay between attempts to reach a remote.

use std::time::Duration;

/// Doubles from one second to one minute.
#[derive(Debug, Clone, Copy, Default)]
pub struct Backoff {
    failures: u32,
}

const SECONDS_MAX: u64 = 60;

impl Backoff {
    /// A new back-off, before the first failure.
    pub const fn new() -> Self {
        Self { failures: 0 }
    }

    /// Whether there was no failure since the last success.
    pub fn is_first(self) -> bool {
        self.failures == 0
    }

    /// Records a failure. Returns the delay before the next attempt.
    pub fn failed(&mut self) -> Duration {
        let seconds = 1_u64.checked_shl(self.failures).unwrap_or(SECONDS_MAX).clamp(1, SECONDS_MAX);
        self.failures = self.failures.saturating_add(1);
        Duration::from_secs(seconds)
    }

    /// Records a success. Returns whether there were failures before.
    pub fn succeeded(&mut self) -> bool {
        std::mem::take(&mut self.failures) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_minute_and_reset_after_a_success() {
        let mut backoff = Backoff::default();
        let pauses: Vec<u64> = (0..70).map(|_| backoff.failed().as_secs()).collect();
        assert_eq!(pauses[..8], [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pauses[69], 60);
        assert!(backoff.succeeded() && backoff.is_first() && !backoff.succeeded());
        assert_eq!(backoff.failed().as_secs(), 1);
    }
}
