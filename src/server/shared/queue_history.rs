//! Queue length over time: one sample per minute, and an alert when it only grows.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::Serialize;
use utoipa::ToSchema;

/// Sampling interval.
pub(crate) const EVERY: Duration = Duration::from_secs(60);
/// Samples kept: four hours.
const SAMPLES_MAX: usize = 240;
/// Minutes without any decrease after which growth is an alert. An open turn is distilled after 15
/// minutes at the latest, so that a queue which is worked on has shrunk by then.
const GROWTH_MINUTES: usize = 20;

/// Number of pending events at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct Sample {
    /// Milliseconds since 1970.
    pub timestamp: i64,
    /// Pending events.
    pub events: u64,
}

/// The latest samples, the oldest first.
#[derive(Debug, Default)]
pub struct QueueHistory(Mutex<VecDeque<Sample>>);

impl QueueHistory {
    /// Adds a sample, unless there is one of the last minute.
    pub(crate) fn add(&self, sample: Sample) {
        let mut samples = self.lock();
        let every = EVERY.as_millis() as i64;
        // A clock that was set back must not end the history.
        let is_due = samples.back().is_none_or(|last| {
            sample.timestamp < last.timestamp || sample.timestamp - last.timestamp >= every
        });
        if is_due {
            if samples.len() == SAMPLES_MAX {
                samples.pop_front();
            }
            samples.push_back(sample);
        }
    }

    pub fn samples(&self) -> Vec<Sample> {
        self.lock().iter().copied().collect()
    }

    /// A message if the queue has only grown.
    pub(crate) fn alert(&self) -> Option<String> {
        let samples = self.samples();
        let recent = &samples[samples.len().checked_sub(GROWTH_MINUTES + 1)?..];
        let (first, last) = (recent.first()?.events, recent.last()?.events);
        let is_growing = last > first && recent.is_sorted_by_key(|sample| sample.events);
        is_growing.then(|| {
            format!(
                "the queue has only grown for {GROWTH_MINUTES} minutes: {first} to {last} events"
            )
        })
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Sample>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;

    fn history(lengths: impl IntoIterator<Item = u64>) -> QueueHistory {
        let history = QueueHistory::default();
        for (minute, events) in lengths.into_iter().enumerate() {
            history.add(Sample { timestamp: minute as i64 * MINUTE, events });
        }
        history
    }

    #[test]
    fn a_queue_that_only_grows_is_an_alert() {
        let alert = history(0..=20).alert().unwrap();
        assert_eq!(alert, "the queue has only grown for 20 minutes: 0 to 20 events");
        assert!(history((0..=20).map(|minute| 5 + minute / 10)).alert().is_some(), "in steps");
        assert!(history([9; 10].into_iter().chain(0..=20)).alert().is_some(), "of late");
    }

    #[test]
    fn a_queue_that_is_constant_or_shrinks_once_is_not_an_alert() {
        assert_eq!(history(0..20).alert(), None, "too early to tell");
        assert_eq!(history([7; 60]).alert(), None);
        assert_eq!(
            history((0..=20).map(|minute| if minute == 10 { 0 } else { minute })).alert(),
            None
        );
        assert_eq!(history((0..=20).rev()).alert(), None);
    }

    #[test]
    fn there_is_one_sample_per_minute_up_to_a_maximum() {
        let all = history(0..1000).samples();
        assert_eq!((all.len(), all[0].events), (SAMPLES_MAX, 1000 - SAMPLES_MAX as u64));
        let history = history([1]);
        history.add(Sample { timestamp: MINUTE - 1, events: 2 });
        assert_eq!(history.samples().len(), 1);
        history.add(Sample { timestamp: -MINUTE, events: 3 });
        assert_eq!(history.samples().len(), 2, "the clock was set back");
    }
}
