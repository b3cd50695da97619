//! Admission control for requests: the provider's circuit breaker, the daily caps, and the maximum
//! wait of a run.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use claude_mem_events::FailureClass;

use crate::providers::{
    Refusal, Spent,
    policy::{Caps, Circuit, Millis, Permission, RetryPolicy},
};
use crate::spend::Today;

/// Polling interval while another request probes the provider or has reserved the rest of the cap.
const PROBE_PAUSE: Duration = Duration::from_millis(20);

/// Polling interval after a cap is reached: the user may raise it, and a new day starts at
/// midnight.
const CAP_PAUSE: Duration = Duration::from_secs(60);

/// Why a run ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    /// A daily cap is reached.
    Cap(String),
    /// The provider fails.
    Provider {
        class: FailureClass,
        /// One line for the user.
        message: String,
    },
    /// An internal failure: the log cannot be written, a prompt cannot be read.
    Broken(String),
    Cancelled,
}

impl Stopped {
    /// One line for the user.
    pub fn message(&self) -> String {
        match self {
            Self::Cap(message) | Self::Broken(message) => message.clone(),
            Self::Cancelled => "cancelled".into(),
            Self::Provider { class, message } => match class {
                FailureClass::Quota => format!("quota exhausted: {message}"),
                FailureClass::Auth => format!("authentication failed: {message}"),
                _ => message.clone(),
            },
        }
    }
}

/// Admits requests. Shared by all threads of a run.
#[derive(Debug)]
pub(crate) struct Admission {
    state: Mutex<State>,
    caps: Option<Caps>,
    wait_max: Duration,
}

#[derive(Debug)]
struct State {
    circuit: Circuit,
    today: Today,
    /// Maximum cost of the requests in flight.
    reserved: Spent,
    in_flight: usize,
    /// Maximum cost of the request that did not fit under the cap.
    over_cap: Option<Spent>,
    stopped: Option<Stopped>,
    last_refusal: Option<Stopped>,
    waiting_since: Option<Instant>,
}

/// Permission to send one request, with the cost reserved for it under the caps.
#[derive(Debug)]
#[must_use = "the reservation must be settled"]
pub(crate) struct Permit {
    reserved: Spent,
}

impl State {
    /// The maximum cost of the next request: at least that of the largest request of the day,
    /// because Claude Code as a provider sends more than we pass to it.
    fn next(&self, at_most: &Spent) -> Spent {
        let Some(largest) = self.today.largest else { return *at_most };
        let is_larger = largest.tokens() > at_most.tokens();
        Spent {
            cost_micros: at_most.cost_micros.max(largest.cost_micros),
            ..if is_larger { largest } else { *at_most }
        }
    }

    /// Replaces the reservation by the actual cost.
    fn settle(&mut self, permit: &Permit, spent: &Spent) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.reserved.remove(&permit.reserved);
        self.today.spent.add(spent);
        if spent.tokens() > 0 {
            let largest = self.today.largest.get_or_insert_default();
            *largest = Spent {
                cost_micros: largest.cost_micros.max(spent.cost_micros),
                ..if spent.tokens() > largest.tokens() { *spent } else { *largest }
            };
        }
    }
}

impl Admission {
    /// `today` is the spending so far. Without caps, spending is not limited. `wait_max` bounds the
    /// waiting between two responses.
    pub(crate) fn new(caps: Option<Caps>, today: Today, wait_max: Duration) -> Self {
        let circuit = Circuit::new(RetryPolicy::default(), u64::from(std::process::id()));
        let state = State {
            circuit,
            today,
            reserved: Spent::default(),
            in_flight: 0,
            over_cap: None,
            stopped: None,
            last_refusal: None,
            waiting_since: None,
        };
        Self { state: Mutex::new(state), caps, wait_max }
    }

    /// Blocks until a request that costs at most this may be sent. Returns `None` once the run has
    /// stopped.
    pub(crate) fn acquire(&self, at_most: &Spent) -> Option<Permit> {
        loop {
            let pause = {
                let mut state = self.state();
                if state.stopped.is_some() {
                    return None;
                }
                let next = state.next(at_most);
                match self.cap_wait(&mut state, &next).and_then(|pause| match pause {
                    None => self.circuit_wait(&mut state),
                    pause => Ok(pause),
                }) {
                    Ok(None) => {
                        state.in_flight += 1;
                        state.reserved.add(&next);
                        return Some(Permit { reserved: next });
                    }
                    Ok(Some(pause)) => pause,
                    Err(stopped) => {
                        state.stopped = Some(stopped);
                        return None;
                    }
                }
            };
            thread::sleep(pause);
        }
    }

    /// Time to wait until requests in flight free a part of the cap. Until the first response of
    /// the day shows the cost of a request, requests are sent one at a time.
    fn cap_wait(&self, state: &mut State, next: &Spent) -> Result<Option<Duration>, Stopped> {
        let Some(caps) = self.caps else { return Ok(None) };
        let mut claimed = state.today.spent;
        claimed.add(&state.reserved);
        let is_first = state.today.largest.is_none();
        match caps.reached_by(&claimed, next) {
            _ if state.in_flight > 0 && is_first => Ok(Some(PROBE_PAUSE)),
            None => Ok(None),
            Some(_) if state.in_flight > 0 => Ok(Some(PROBE_PAUSE)),
            Some(reached) => {
                state.over_cap = Some(*next);
                Err(Stopped::Cap(reached))
            }
        }
    }

    /// Time to wait for the circuit breaker, unless it exceeds `wait_max`.
    fn circuit_wait(&self, state: &mut State) -> Result<Option<Duration>, Stopped> {
        let now = now();
        match state.circuit.permit(now) {
            Permission::Granted => Ok(None),
            Permission::Paused(pause) => {
                Err(Stopped::Provider { class: pause.class, message: pause.message })
            }
            Permission::NotBefore(moment) => {
                let pause = Duration::from_millis(moment - now).max(PROBE_PAUSE);
                let since = *state.waiting_since.get_or_insert_with(Instant::now);
                match &state.last_refusal {
                    Some(refusal) if since.elapsed() + pause > self.wait_max => {
                        Err(refusal.clone())
                    }
                    _ => Ok(Some(pause)),
                }
            }
        }
    }

    pub(crate) fn succeeded(&self, permit: &Permit, spent: &Spent) {
        let mut state = self.state();
        state.circuit.succeeded();
        state.waiting_since = None;
        state.settle(permit, spent);
        // Some providers report no tokens. Do not wait for a first cost from them.
        state.today.largest.get_or_insert_default();
    }

    pub(crate) fn failed(&self, permit: &Permit, refusal: &Refusal) {
        let mut state = self.state();
        state.circuit.failed(now(), refusal);
        state.settle(permit, &refusal.spent);
        let (class, message) = (refusal.class, refusal.message.clone());
        state.last_refusal = Some(Stopped::Provider { class, message });
    }

    /// Settles a request that we cancelled. It is not a failure of the provider.
    pub(crate) fn cancelled(&self, permit: &Permit, refusal: &Refusal) {
        self.state().settle(permit, &refusal.spent);
    }

    /// Prepares a new run with today's spending. The circuit breaker keeps its state.
    pub(crate) fn reset(&self, today: Today) {
        let mut state = self.state();
        state.stopped = None;
        state.waiting_since = None;
        state.today = today;
    }

    /// Why no request can be sent now, and for how long at least.
    pub(crate) fn blocked(&self) -> Option<(Stopped, Duration)> {
        let state = self.state();
        let next = state.over_cap.unwrap_or_default();
        if let Some(cap) = self.caps.and_then(|caps| caps.reached_by(&state.today.spent, &next)) {
            return Some((Stopped::Cap(cap), CAP_PAUSE));
        }
        let now = now();
        let pause = state.circuit.current_pause(now)?;
        let left = Duration::from_millis(pause.until.checked_sub(now).filter(|left| *left > 0)?);
        Some((Stopped::Provider { class: pause.class, message: pause.message }, left))
    }

    /// Progress message for a user who waits.
    pub(crate) fn wait_message(&self, who: &str) -> String {
        let state = self.state();
        let limit = self.wait_max.as_secs();
        let attempt = state.circuit.failures() + 1;
        match (attempt, &state.last_refusal) {
            (2.., Some(refusal)) => format!(
                "{who} failed: {}; attempt {attempt} follows, retries stop after {limit} s",
                refusal.message()
            ),
            _ => format!("waiting for {who}: attempt 1; retries stop after {limit} s"),
        }
    }

    /// Whether requests are paused until the user fixes a login or an account.
    pub(crate) fn needs_user(&self) -> bool {
        let pause = self.state().circuit.current_pause(now());
        pause.is_some_and(|pause| matches!(pause.class, FailureClass::Auth | FailureClass::Quota))
    }

    /// Resets the circuit breaker.
    pub(crate) fn clear_failures(&self) {
        self.state().circuit.succeeded();
    }

    /// Stops the run.
    pub(crate) fn stop(&self, why: Stopped) {
        self.state().stopped.get_or_insert(why);
    }

    /// Why the run ended early, if it did.
    pub(crate) fn stopped(&self) -> Option<Stopped> {
        self.state().stopped.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The system's clock, even if events get a simulated time: waiting happens in real time.
fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(caps: Option<Caps>) -> Admission {
        Admission::new(caps, Today::default(), Duration::ZERO)
    }

    fn tokens(tokens_in: u64) -> Spent {
        Spent { tokens_in, ..Spent::default() }
    }

    fn permit(admission: &Admission) -> Option<Permit> {
        admission.acquire(&Spent::default())
    }

    fn fail(admission: &Admission, refusal: &Refusal) {
        admission.failed(&permit(admission).unwrap(), refusal);
    }

    fn succeed(admission: &Admission, spent: &Spent) {
        admission.succeeded(&permit(admission).unwrap(), spent);
    }

    #[test]
    fn a_request_that_does_not_fit_under_the_cap_is_not_sent() {
        let admission = admission(Some(Caps { tokens_max: 130, cost_micros_max: 0 }));
        succeed(&admission, &tokens(60));
        succeed(&admission, &tokens(60));
        assert!(permit(&admission).is_none(), "the next one may take 60, too");
        let message = admission.stopped().unwrap().message();
        assert_eq!(message, "120 of 130 tokens a day are spent; a request may take 60");
        admission.reset(Today { spent: tokens(120), largest: Some(tokens(60)) });
        assert!(matches!(admission.blocked(), Some((Stopped::Cap(_), _))));
        admission.reset(Today::default());
        assert!(admission.blocked().is_none());
    }

    #[test]
    fn the_cap_holds_for_concurrent_requests() {
        for each in [1_u64, 7, 40, 250, 999] {
            let admission = admission(Some(Caps { tokens_max: 1000, cost_micros_max: 0 }));
            let spent = std::sync::atomic::AtomicU64::new(0);
            thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        while let Some(permit) = admission.acquire(&tokens(1)) {
                            thread::yield_now();
                            spent.fetch_add(each, std::sync::atomic::Ordering::SeqCst);
                            admission.succeeded(&permit, &tokens(each));
                        }
                    });
                }
            });
            let spent = spent.into_inner();
            assert!(spent <= 1000 && spent + each > 1000, "{spent} of {each} each");
        }
    }

    #[test]
    fn requests_run_concurrently_after_the_first_response_even_without_reported_tokens() {
        let admission = admission(Some(Caps { tokens_max: 1000, cost_micros_max: 0 }));
        succeed(&admission, &Spent::default());
        let (first, second) = (permit(&admission), permit(&admission));
        assert!(first.is_some() && second.is_some());
    }

    #[test]
    fn the_cost_of_a_failure_counts() {
        let admission = admission(Some(Caps { tokens_max: 0, cost_micros_max: 10 }));
        let mut refusal = Refusal::new(FailureClass::Unreadable, "prose");
        refusal.spent.cost_micros = Some(10);
        fail(&admission, &refusal);
        assert!(permit(&admission).is_none());
    }

    #[test]
    fn a_wrong_key_ends_the_run_with_a_message() {
        let admission = admission(None);
        fail(&admission, &Refusal::new(FailureClass::Auth, "invalid x-api-key"));
        assert!(permit(&admission).is_none());
        let message = admission.stopped().unwrap().message();
        assert_eq!(message, "authentication failed: invalid x-api-key");
    }

    #[test]
    fn a_pause_longer_than_the_wait_limit_ends_the_run_with_its_reason() {
        let admission = admission(None);
        fail(&admission, &Refusal::new(FailureClass::RateLimit, "slow down"));
        assert!(permit(&admission).is_none());
        assert_eq!(admission.stopped().unwrap().message(), "slow down");
    }

    #[test]
    fn a_blocked_admission_reports_the_remaining_time_and_can_be_reset() {
        let first_run = admission(None);
        assert!(first_run.blocked().is_none());
        let (first, second) = (permit(&first_run).unwrap(), permit(&first_run).unwrap());
        first_run.failed(&first, &Refusal::new(FailureClass::RateLimit, "slow down"));
        assert!(permit(&first_run).is_none());
        let (stopped, left) = first_run.blocked().unwrap();
        assert!(stopped.message() == "slow down" && left > Duration::ZERO, "{left:?}");
        first_run.succeeded(&second, &Spent::default());
        assert!(first_run.blocked().is_none());
        assert!(permit(&first_run).is_none(), "the run stays stopped");
        first_run.reset(Today::default());
        assert!(permit(&first_run).is_some());
        let capped = admission(Some(Caps { tokens_max: 100, cost_micros_max: 0 }));
        succeed(&capped, &tokens(100));
        assert!(matches!(capped.blocked(), Some((Stopped::Cap(_), _))));
        capped.reset(Today::default());
        assert!(capped.blocked().is_none());
    }

    #[test]
    fn an_unreadable_response_causes_no_wait() {
        let admission = admission(None);
        fail(&admission, &Refusal::new(FailureClass::Unreadable, "prose"));
        assert!(permit(&admission).is_some());
    }
}
