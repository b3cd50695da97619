//! Whether to ask now: the provider's circuit, the day's caps, and how long a run is willing to wait.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use claude_mem_events::FailureClass;

use crate::agent::{
    Refusal, Spent,
    policy::{Caps, Circuit, Millis, Patience, Permission},
};

/// Between two looks at a circuit that tries one question at a time.
const PROBE_PAUSE: Duration = Duration::from_millis(20);

/// Between two looks whether there is again something to spend: the user may raise the cap, and a new day
/// begins at midnight.
const CAP_PAUSE: Duration = Duration::from_secs(60);

/// Why a run ended before everything was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stopped {
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
    pub(crate) fn message(&self) -> String {
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
pub(crate) struct Gate {
    state: Mutex<State>,
    caps: Option<Caps>,
    wait_max: Duration,
}

#[derive(Debug)]
struct State {
    circuit: Circuit,
    today: Spent,
    stopped: Option<Stopped>,
    last_refusal: Option<Stopped>,
    /// Since when nothing but waiting is done.
    waiting_since: Option<Instant>,
}

impl Gate {
    /// `today` is what was spent already; without caps spending is not limited. From one answer to the
    /// next no more than `wait_max` is spent on waiting.
    pub(crate) fn new(caps: Option<Caps>, today: Spent, wait_max: Duration) -> Self {
        let circuit = Circuit::new(Patience::default(), u64::from(std::process::id()));
        let (stopped, last_refusal, waiting_since) = (None, None, None);
        let state = State { circuit, today, stopped, last_refusal, waiting_since };
        Self { state: Mutex::new(state), caps, wait_max }
    }

    /// Waits until a question may be asked; says no once the run is over.
    pub(crate) fn pass(&self) -> bool {
        loop {
            let pause = {
                let mut state = self.state();
                if state.stopped.is_none() {
                    let reached = self.caps.and_then(|caps| caps.reached(&state.today));
                    state.stopped = reached.map(Stopped::Cap);
                }
                if state.stopped.is_some() {
                    return false;
                }
                match self.pause(&mut state) {
                    Ok(None) => return true,
                    Ok(Some(pause)) => pause,
                    Err(stopped) => {
                        state.stopped = Some(stopped);
                        return false;
                    }
                }
            };
            thread::sleep(pause);
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
    pub(crate) fn succeeded(&self, spent: &Spent) {
        let mut state = self.state();
        state.circuit.succeeded();
        state.waiting_since = None;
        state.today.add(spent);
    }

    /// A question was not answered.
    pub(crate) fn failed(&self, refusal: &Refusal) {
        let mut state = self.state();
        state.circuit.failed(now(), refusal);
        state.today.add(&refusal.spent);
        let (class, message) = (refusal.class, refusal.message.clone());
        state.last_refusal = Some(Stopped::Provider { class, message });
    }

    /// A question was cancelled by us.
    pub(crate) fn cancelled(&self, refusal: &Refusal) {
        self.state().today.add(&refusal.spent);
    }

    /// Lets a new run begin, with what was spent up to now. The circuit stays as it is.
    pub(crate) fn reopen(&self, today: Spent) {
        let mut state = self.state();
        state.stopped = None;
        state.waiting_since = None;
        state.today = today;
    }

    /// Why nothing can be asked at this moment, and how long that is so at least.
    pub(crate) fn closed(&self) -> Option<(Stopped, Duration)> {
        let state = self.state();
        if let Some(cap) = self.caps.and_then(|caps| caps.reached(&state.today)) {
            return Some((Stopped::Cap(cap), CAP_PAUSE));
        }
        let now = now();
        let pause = state.circuit.waits(now)?;
        let left = Duration::from_millis(pause.until.checked_sub(now).filter(|left| *left > 0)?);
        Some((Stopped::Provider { class: pause.class, message: pause.message }, left))
    }

    /// Nothing more is asked in this run.
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

/// The system's clock, even where events get another time: waiting is done in the real one.
fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(caps: Option<Caps>) -> Gate {
        Gate::new(caps, Spent::default(), Duration::ZERO)
    }

    #[test]
    fn the_cap_closes_the_gate_as_soon_as_it_is_reached() {
        let gate = gate(Some(Caps { tokens_max: 100, cost_micros_max: 0 }));
        let spent = Spent { tokens_in: 60, ..Spent::default() };
        assert!(gate.pass());
        gate.succeeded(&spent);
        assert!(gate.pass());
        gate.succeeded(&spent);
        assert!(!gate.pass());
        assert!(matches!(gate.stopped(), Some(Stopped::Cap(_))));
    }

    #[test]
    fn what_a_failure_cost_counts_too() {
        let gate = gate(Some(Caps { tokens_max: 0, cost_micros_max: 10 }));
        let mut refusal = Refusal::new(FailureClass::Unreadable, "prose");
        refusal.spent.cost_micros = Some(10);
        gate.failed(&refusal);
        assert!(!gate.pass());
    }

    #[test]
    fn a_wrong_key_ends_the_run_and_says_so() {
        let gate = gate(None);
        gate.failed(&Refusal::new(FailureClass::Auth, "invalid x-api-key"));
        assert!(!gate.pass());
        let message = gate.stopped().unwrap().message();
        assert_eq!(message, "the login was not accepted: invalid x-api-key");
    }

    #[test]
    fn a_pause_beyond_all_patience_ends_the_run_with_its_reason() {
        let gate = gate(None);
        gate.failed(&Refusal::new(FailureClass::RateLimit, "slow down"));
        assert!(!gate.pass());
        assert_eq!(gate.stopped().unwrap().message(), "slow down");
    }

    #[test]
    fn a_gate_that_closed_says_for_how_long_and_can_be_opened_again() {
        let patient = gate(None);
        assert!(patient.closed().is_none());
        patient.failed(&Refusal::new(FailureClass::RateLimit, "slow down"));
        assert!(!patient.pass());
        let (stopped, left) = patient.closed().unwrap();
        assert!(stopped.message() == "slow down" && left > Duration::ZERO, "{left:?}");
        patient.succeeded(&Spent::default());
        assert!(patient.closed().is_none());
        assert!(!patient.pass(), "the run is over all the same");
        patient.reopen(Spent::default());
        assert!(patient.pass());
        let capped = gate(Some(Caps { tokens_max: 100, cost_micros_max: 0 }));
        capped.succeeded(&Spent { tokens_in: 100, ..Spent::default() });
        assert!(matches!(capped.closed(), Some((Stopped::Cap(_), _))));
        capped.reopen(Spent::default());
        assert!(capped.closed().is_none());
    }

    #[test]
    fn an_unreadable_answer_is_no_reason_to_wait() {
        let gate = gate(None);
        gate.failed(&Refusal::new(FailureClass::Unreadable, "prose"));
        assert!(gate.pass());
    }
}
