//! Contestants take turns: each runs once per round, so that noise affects all of them.

use super::BenchResult;
use std::time::{Duration, Instant};

/// One contestant.
pub(crate) struct Contestant<'a> {
    pub(crate) name: String,
    /// Runs it once, and returns the time without preparation and cleanup.
    pub(crate) turn: Box<dyn FnMut() -> BenchResult<Duration> + 'a>,
}

impl<'a> Contestant<'a> {
    pub(crate) fn new(
        name: impl Into<String>,
        turn: impl FnMut() -> BenchResult<Duration> + 'a,
    ) -> Self {
        Self { name: name.into(), turn: Box::new(turn) }
    }
}

/// The times of one contestant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Samples {
    pub(crate) name: String,
    /// Sorted.
    times: Vec<Duration>,
}

impl Samples {
    pub(crate) fn new(name: String, mut times: Vec<Duration>) -> Self {
        assert!(!times.is_empty(), "there is at least one round");
        times.sort();
        Self { name, times }
    }

    /// The fastest turn, which has the least noise.
    pub(crate) fn min(&self) -> Duration {
        self.times[0]
    }

    pub(crate) fn median(&self) -> Duration {
        self.times[self.times.len() / 2]
    }

    /// The time that this share of the turns does not exceed.
    pub(crate) fn at(&self, share: f64) -> Duration {
        self.times[((self.times.len() - 1) as f64 * share) as usize]
    }

    /// The slowest turn.
    pub(crate) fn max(&self) -> Duration {
        self.times[self.times.len() - 1]
    }

    /// The ratio to `other`, by the fastest turns.
    pub(crate) fn times_min(&self, other: &Self) -> f64 {
        self.min().as_secs_f64() / other.min().as_secs_f64()
    }

    /// The same by the median turns.
    pub(crate) fn times_median(&self, other: &Self) -> f64 {
        self.median().as_secs_f64() / other.median().as_secs_f64()
    }
}

/// Runs `rounds` rounds, each starting with another contestant.
pub(crate) fn contest(
    rounds: u64,
    contestants: &mut [Contestant<'_>],
) -> BenchResult<Vec<Samples>> {
    // Prepared data is written back first, so that no turn pays for it.
    rustix::fs::sync();
    let count = contestants.len();
    let mut times = vec![Vec::new(); count];
    for round in 0..rounds as usize {
        for step in 0..count {
            let index = (round + step) % count;
            times[index].push((contestants[index].turn)()?);
        }
    }
    let names = contestants.iter().map(|contestant| contestant.name.clone());
    Ok(names.zip(times).map(|(name, times)| Samples::new(name, times)).collect())
}

/// How long something takes.
pub(crate) fn time<T>(work: impl FnOnce() -> BenchResult<T>) -> BenchResult<(Duration, T)> {
    let start = Instant::now();
    let done = work()?;
    Ok((start.elapsed(), done))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn each_round_runs_all_contestants_in_a_rotating_order() {
        let order = RefCell::new(String::new());
        let turn = |name: char| {
            let order = &order;
            Contestant::new(name, move || {
                order.borrow_mut().push(name);
                Ok(Duration::from_nanos(order.borrow().len() as u64))
            })
        };
        let samples = contest(3, &mut [turn('a'), turn('b')]).unwrap();
        assert_eq!(*order.borrow(), "abbaab");
        let nanos = |time: Duration| time.as_nanos();
        let found: Vec<_> =
            samples.iter().map(|one| (nanos(one.min()), nanos(one.median()))).collect();
        assert_eq!(found, [(1, 4), (2, 3)]);
    }
}
