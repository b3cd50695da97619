//! Whether to ask now: the provider's circuit, the day's caps, and how long a run is willing to wait.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use claude_mem_events::FailureClass;

use crate::providers::{
    Refusal, Spent,
    policy::{Caps, Circuit, Millis, Patience, Permission},
};
use crate::spend::Today;

/// Between two looks at a circuit that tries one question at a time.
const PROBE_PAUSE: Duration = Duration::from_millis(20);

/// Between two looks whether there is again something to spend: the user may raise the cap, and a new day
/// begins at midnight.
const CAP_PAUSE: Duration = Duration::from_secs(60);

/// Why a run ended before everything was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    /// What may be spent in a day is spent.
    Cap(String),
    /// The provider does not answer, and somebody should know why.
    Provider {
        /// What kind of failure.
        class: FailureClass,
        /// One line for people.
        message: String,
    },
    /// Something of our own does not work: the log cannot be written, a prompt cannot be read.
    Broken(String),
    /// Whoever began it does not want it any more.
    Cancelled,
}

impl Stopped {
    /// One line for people.
    pub fn message(&self) -> String {
        match self {
            Self::Cap(message) | Self::Broken(message) => message.clone(),
            Self::Cancelled => "it was cancelled".into(),
            Self::Provider { class, message } => match class {
                FailureClass::Quota => format!("nothing is left to spend: {message}"),
                FailureClass::Auth => format!("the login was not accepted: {message}"),
                _ => message.clone(),
            },
        }
    }
}

/// The gate that every question passes, shared by all threads of a run.
#[derive(Debug)]
pub struct Gate {
    state: Mutex<State>,
    caps: Option<Caps>,
    wait_max: Duration,
}

#[derive(Debug)]
struct State {
    circuit: Circuit,
    today: Today,
    /// What the requests under way may take.
    reserved: Spent,
    /// How many requests are under way.
    underway: usize,
    /// What a request may take that the cap had no room for.
    refused: Option<Spent>,
    stopped: Option<Stopped>,
    last_refusal: Option<Stopped>,
    /// Since when nothing but waiting is done.
    waiting_since: Option<Instant>,
}

/// The right to put one request, with what is reserved for it under the caps.
#[derive(Debug)]
#[must_use = "what is reserved has to be settled"]
pub struct Pass {
    reserved: Spent,
}

impl State {
    /// What the next request is expected to take: no less than the largest one of the day.
    fn next(&self, expected: &Spent) -> Spent {
        let Some(largest) = self.today.largest else { return *expected };
        let is_larger = largest.tokens() > expected.tokens();
        Spent {
            cost_micros: expected.cost_micros.max(largest.cost_micros),
            ..if is_larger { largest } else { *expected }
        }
    }

    /// Replaces what was reserved by what was spent.
    fn settle(&mut self, pass: &Pass, spent: &Spent) {
        self.underway = self.underway.saturating_sub(1);
        self.reserved.remove(&pass.reserved);
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

impl Gate {
    /// `today` is what was spent already; without caps spending is not limited. From one answer to the
    /// next no more than `wait_max` is spent on waiting.
    pub fn new(caps: Option<Caps>, today: Today, wait_max: Duration) -> Self {
        let circuit = Circuit::new(Patience::default(), u64::from(std::process::id()));
        let state = State {
            circuit,
            today,
            reserved: Spent::default(),
            underway: 0,
            refused: None,
            stopped: None,
            last_refusal: None,
            waiting_since: None,
        };
        Self { state: Mutex::new(state), caps, wait_max }
    }

    /// Waits until a question may be asked that is expected to take this much; says no once the run is over.
    pub fn pass(&self, expected: &Spent) -> Option<Pass> {
        loop {
            let pause = {
                let mut state = self.state();
                if state.stopped.is_some() {
                    return None;
                }
                let next = state.next(expected);
                match self.room(&mut state, &next).and_then(|pause| match pause {
                    None => self.pause(&mut state),
                    pause => Ok(pause),
                }) {
                    Ok(None) => {
                        state.underway += 1;
                        state.reserved.add(&next);
                        return Some(Pass { reserved: next });
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

    /// Whether the caps leave room for one more request, or may when those under way are settled. Until one
    /// has told what a request takes, they are put one at a time.
    fn room(&self, state: &mut State, next: &Spent) -> Result<Option<Duration>, Stopped> {
        let Some(caps) = self.caps else { return Ok(None) };
        let mut claimed = state.today.spent;
        claimed.add(&state.reserved);
        let is_first = state.today.largest.is_none();
        match caps.reached_by(&claimed, next) {
            _ if state.underway > 0 && is_first => Ok(Some(PROBE_PAUSE)),
            None => Ok(None),
            Some(_) if state.underway > 0 => Ok(Some(PROBE_PAUSE)),
            Some(reached) => {
                state.refused = Some(*next);
                Err(Stopped::Cap(reached))
            }
        }
    }

    /// How long to wait, if that is worth it.
    fn pause(&self, state: &mut State) -> Result<Option<Duration>, Stopped> {
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

    /// A question was answered.
    pub fn succeeded(&self, pass: &Pass, spent: &Spent) {
        let mut state = self.state();
        state.circuit.succeeded();
        state.waiting_since = None;
        state.settle(pass, spent);
        // A provider that reports no tokens is known as well as it ever will be.
        state.today.largest.get_or_insert_default();
    }

    /// A question was not answered.
    pub fn failed(&self, pass: &Pass, refusal: &Refusal) {
        let mut state = self.state();
        state.circuit.failed(now(), refusal);
        state.settle(pass, &refusal.spent);
        let (class, message) = (refusal.class, refusal.message.clone());
        state.last_refusal = Some(Stopped::Provider { class, message });
    }

    /// A question was cancelled by us.
    pub fn cancelled(&self, pass: &Pass, refusal: &Refusal) {
        self.state().settle(pass, &refusal.spent);
    }

    /// Lets a new run begin, with what was spent up to now. The circuit stays as it is.
    pub fn reopen(&self, today: Today) {
        let mut state = self.state();
        state.stopped = None;
        state.waiting_since = None;
        state.today = today;
    }

    /// Why nothing can be asked at this moment, and how long that is so at least.
    pub fn closed(&self) -> Option<(Stopped, Duration)> {
        let state = self.state();
        let next = state.refused.unwrap_or_default();
        if let Some(cap) = self.caps.and_then(|caps| caps.reached_by(&state.today.spent, &next)) {
            return Some((Stopped::Cap(cap), CAP_PAUSE));
        }
        let now = now();
        let pause = state.circuit.waits(now)?;
        let left = Duration::from_millis(pause.until.checked_sub(now).filter(|left| *left > 0)?);
        Some((Stopped::Provider { class: pause.class, message: pause.message }, left))
    }

    /// What is waited for, for a person who waits, too.
    pub fn waiting(&self, who: &str) -> String {
        let state = self.state();
        let limit = self.wait_max.as_secs();
        let attempt = state.circuit.failures() + 1;
        match (attempt, &state.last_refusal) {
            (2.., Some(refusal)) => format!(
                "{who} does not answer: {}; attempt {attempt} follows, giving up after {limit} s",
                refusal.message()
            ),
            _ => format!(
                "waiting for {who}: attempt 1; if it fails, giving up after {limit} s of trying"
            ),
        }
    }

    /// Whether nothing is asked until the user has seen to a login or an account.
    pub fn waits_for_user(&self) -> bool {
        let waits = self.state().circuit.waits(now());
        waits.is_some_and(|pause| matches!(pause.class, FailureClass::Auth | FailureClass::Quota))
    }

    /// Forgets what failed.
    pub fn forgive(&self) {
        self.state().circuit.succeeded();
    }

    /// Nothing more is asked in this run.
    pub fn stop(&self, why: Stopped) {
        self.state().stopped.get_or_insert(why);
    }

    /// Why the run ended early, if it did.
    pub fn stopped(&self) -> Option<Stopped> {
        self.state().stopped.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The system's clock, even where events get another time: waiting is done in the real one.
fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(caps: Option<Caps>) -> Gate {
        Gate::new(caps, Today::default(), Duration::ZERO)
    }

    fn tokens(tokens_in: u64) -> Spent {
        Spent { tokens_in, ..Spent::default() }
    }

    fn pass(gate: &Gate) -> Option<Pass> {
        gate.pass(&Spent::default())
    }

    fn fail(gate: &Gate, refusal: &Refusal) {
        gate.failed(&pass(gate).unwrap(), refusal);
    }

    fn succeed(gate: &Gate, spent: &Spent) {
        gate.succeeded(&pass(gate).unwrap(), spent);
    }

    #[test]
    fn a_request_that_the_cap_has_no_room_for_is_not_put() {
        let gate = gate(Some(Caps { tokens_max: 130, cost_micros_max: 0 }));
        succeed(&gate, &tokens(60));
        succeed(&gate, &tokens(60));
        assert!(pass(&gate).is_none(), "the next one may take 60, too");
        let message = gate.stopped().unwrap().message();
        assert_eq!(message, "120 of 130 tokens a day are spent; a request takes 60");
        gate.reopen(Today { spent: tokens(120), largest: Some(tokens(60)) });
        assert!(matches!(gate.closed(), Some((Stopped::Cap(_), _))));
        gate.reopen(Today::default());
        assert!(gate.closed().is_none());
    }

    #[test]
    fn the_cap_holds_however_many_ask_at_once() {
        for each in [1_u64, 7, 40, 250, 999] {
            let gate = gate(Some(Caps { tokens_max: 1000, cost_micros_max: 0 }));
            let spent = std::sync::atomic::AtomicU64::new(0);
            thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        while let Some(pass) = gate.pass(&tokens(1)) {
                            thread::yield_now();
                            spent.fetch_add(each, std::sync::atomic::Ordering::SeqCst);
                            gate.succeeded(&pass, &tokens(each));
                        }
                    });
                }
            });
            let spent = spent.into_inner();
            assert!(spent <= 1000 && spent + each > 1000, "{spent} of {each} each");
        }
    }

    #[test]
    fn after_the_first_answer_several_ask_at_once_even_if_no_tokens_are_reported() {
        let gate = gate(Some(Caps { tokens_max: 1000, cost_micros_max: 0 }));
        succeed(&gate, &Spent::default());
        let (first, second) = (pass(&gate), pass(&gate));
        assert!(first.is_some() && second.is_some());
    }

    #[test]
    fn what_a_failure_cost_counts_too() {
        let gate = gate(Some(Caps { tokens_max: 0, cost_micros_max: 10 }));
        let mut refusal = Refusal::new(FailureClass::Unreadable, "prose");
        refusal.spent.cost_micros = Some(10);
        fail(&gate, &refusal);
        assert!(pass(&gate).is_none());
    }

    #[test]
    fn a_wrong_key_ends_the_run_and_says_so() {
        let gate = gate(None);
        fail(&gate, &Refusal::new(FailureClass::Auth, "invalid x-api-key"));
        assert!(pass(&gate).is_none());
        let message = gate.stopped().unwrap().message();
        assert_eq!(message, "the login was not accepted: invalid x-api-key");
    }

    #[test]
    fn a_pause_beyond_all_patience_ends_the_run_with_its_reason() {
        let gate = gate(None);
        fail(&gate, &Refusal::new(FailureClass::RateLimit, "slow down"));
        assert!(pass(&gate).is_none());
        assert_eq!(gate.stopped().unwrap().message(), "slow down");
    }

    #[test]
    fn a_gate_that_closed_says_for_how_long_and_can_be_opened_again() {
        let patient = gate(None);
        assert!(patient.closed().is_none());
        let (first, second) = (pass(&patient).unwrap(), pass(&patient).unwrap());
        patient.failed(&first, &Refusal::new(FailureClass::RateLimit, "slow down"));
        assert!(pass(&patient).is_none());
        let (stopped, left) = patient.closed().unwrap();
        assert!(stopped.message() == "slow down" && left > Duration::ZERO, "{left:?}");
        patient.succeeded(&second, &Spent::default());
        assert!(patient.closed().is_none());
        assert!(pass(&patient).is_none(), "the run is over all the same");
        patient.reopen(Today::default());
        assert!(pass(&patient).is_some());
        let capped = gate(Some(Caps { tokens_max: 100, cost_micros_max: 0 }));
        succeed(&capped, &tokens(100));
        assert!(matches!(capped.closed(), Some((Stopped::Cap(_), _))));
        capped.reopen(Today::default());
        assert!(capped.closed().is_none());
    }

    #[test]
    fn an_unreadable_answer_is_no_reason_to_wait() {
        let gate = gate(None);
        fail(&gate, &Refusal::new(FailureClass::Unreadable, "prose"));
        assert!(pass(&gate).is_some());
    }
}
