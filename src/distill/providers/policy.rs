//! Retries after failures: back-off, circuit breaker and daily caps.
//!
//! Pure: the time in, a decision out; the same seed gives the same pauses. Events of a failed
//! request stay pending in the log.

use std::time::Duration;

use claude_mem_events::FailureClass;

use super::{Concern, RETRY_AFTER_MAX, Refusal, Spent};

/// Milliseconds since 1970.
pub type Millis = u64;

/// Pauses and limits of the circuit breaker.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    /// Pause after the first failure; doubles with each further one.
    pub pause_min: Duration,
    /// Longest pause, unless the provider asks for a longer one.
    pub pause_max: Duration,
    /// Consecutive failures that open the circuit: from then on one request at a time is tried.
    pub failures_max: u32,
    /// Pause after an exhausted quota.
    pub quota_rest: Duration,
    /// Pause after a rejected key, path or model.
    pub settings_rest: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            pause_min: Duration::from_secs(2),
            pause_max: Duration::from_secs(300),
            failures_max: 5,
            quota_rest: Duration::from_secs(3600),
            settings_rest: Duration::from_secs(900),
        }
    }
}

/// The circuit breaker of one provider.
#[derive(Debug, Clone)]
pub struct Circuit {
    policy: RetryPolicy,
    seed: u64,
    failures: u32,
    invalid: u32,
    not_before: Millis,
    /// The failure that set `not_before`.
    failure: Option<(FailureClass, String)>,
    /// Time at which a request was admitted to probe the provider.
    probed_at: Option<Millis>,
    pause: Option<Pause>,
}

/// Why no request is sent, for `status` and `doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    pub class: FailureClass,
    /// The provider's message.
    pub message: String,
    /// Time of the next attempt.
    pub until: Millis,
}

/// Whether a request may be sent now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    /// Send, then report the result to the circuit.
    Granted,
    /// Not before this time. Also returned while another request probes the provider.
    NotBefore(Millis),
    /// Requests are paused, and the user should know why. One request is tried when the pause ends.
    Paused(Pause),
}

/// Consecutive invalid requests that point to wrong settings.
const INVALID_MAX: u32 = 3;

/// A probe without a result after this time no longer blocks others.
const PROBE_MAX: Duration = Duration::from_secs(600);

impl Circuit {
    pub fn new(policy: RetryPolicy, seed: u64) -> Self {
        let (failures, invalid, not_before) = (0, 0, 0);
        let (failure, probed_at, pause) = (None, None, None);
        Self { policy, seed, failures, invalid, not_before, failure, probed_at, pause }
    }

    /// Asks for permission. After consecutive failures only one request at a time is admitted, so
    /// that the backlog does not hit a failing provider.
    pub(crate) fn permit(&mut self, now: Millis) -> Permission {
        if let Some(pause) = self.pause.as_ref().filter(|pause| now < pause.until) {
            return Permission::Paused(pause.clone());
        }
        let is_open = self.pause.is_some() || self.failures >= self.policy.failures_max;
        let probe_ends = self.probed_at.map_or(0, |probed_at| probed_at + millis(PROBE_MAX));
        if now < self.not_before || (is_open && now < probe_ends) {
            let soon = now + millis(self.policy.pause_min);
            return Permission::NotBefore(if now < self.not_before {
                self.not_before
            } else {
                soon
            });
        }
        self.probed_at = is_open.then_some(now);
        Permission::Granted
    }

    /// A request succeeded: resets all failures.
    pub fn succeeded(&mut self) {
        *self = Self::new(self.policy, self.seed);
    }

    /// A request failed.
    pub fn failed(&mut self, now: Millis, refusal: &Refusal) {
        self.probed_at = None;
        let rest = match (refusal.class, refusal.concern) {
            // The provider works, even if its response is unreadable.
            (FailureClass::Unreadable, _) => return self.succeeded(),
            (FailureClass::Invalid, Concern::Request) => {
                self.invalid += 1;
                if self.invalid < INVALID_MAX {
                    return;
                }
                self.policy.settings_rest
            }
            (FailureClass::Invalid | FailureClass::Auth, _) => self.policy.settings_rest,
            (FailureClass::Quota, _) => self.policy.quota_rest,
            (FailureClass::Transient | FailureClass::RateLimit, _) => {
                self.failures = self.failures.saturating_add(1);
                let wanted = refusal.retry_after.unwrap_or_default();
                self.not_before = now + millis(self.backoff().max(wanted));
                self.failure = Some((refusal.class, refusal.message.clone()));
                return;
            }
        };
        let rest = refusal.retry_after.map_or(rest, |wanted| wanted.clamp(rest, RETRY_AFTER_MAX));
        let (class, message) = (refusal.class, refusal.message.clone());
        self.pause = Some(Pause { class, message, until: now + millis(rest) });
    }

    /// Consecutive failures.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Why no request is sent now, and until when; `None` if requests are allowed.
    pub(crate) fn current_pause(&self, now: Millis) -> Option<Pause> {
        if let Some(pause) = &self.pause {
            return Some(pause.clone());
        }
        let (class, message) = self.failure.clone()?;
        (now < self.not_before).then_some(Pause { class, message, until: self.not_before })
    }

    /// Doubles with each failure. A random half of it spreads concurrent retries.
    fn backoff(&self) -> Duration {
        let doublings = self.failures.saturating_sub(1).min(32);
        let whole = self.policy.pause_min.saturating_mul(1 << doublings.min(31));
        let whole = whole.min(self.policy.pause_max);
        let half = millis(whole) / 2;
        let share = mixed(self.seed.wrapping_add(u64::from(self.failures))) % (half + 1);
        Duration::from_millis(half + share)
    }
}

/// Daily caps; 0 disables one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Input and output tokens.
    pub tokens_max: u64,
    /// Millionths of a dollar.
    pub cost_micros_max: u64,
}

impl Caps {
    /// The cap that is reached, in one line.
    pub fn reached(&self, today: &Spent) -> Option<String> {
        self.reached_by(today, &Spent::default())
    }

    /// The cap that blocks a request of this cost, in one line.
    pub(crate) fn reached_by(&self, today: &Spent, next: &Spent) -> Option<String> {
        let is_over =
            |spent: u64, next: u64, max: u64| max > 0 && (spent >= max || next > max - spent);
        let (tokens, more) = (today.tokens(), next.tokens());
        if is_over(tokens, more, self.tokens_max) {
            let text = format!("{tokens} of {} tokens a day are spent", self.tokens_max);
            let is_spent = tokens >= self.tokens_max;
            return Some(if is_spent {
                text
            } else {
                format!("{text}; a request may take {more}")
            });
        }
        let (cost, more) = (today.cost_micros.unwrap_or(0), next.cost_micros.unwrap_or(0));
        is_over(cost, more, self.cost_micros_max).then(|| {
            let dollars = |micros: u64| format!("${:.2}", micros as f64 / 1e6);
            let max = dollars(self.cost_micros_max);
            let text = format!("{} of {max} a day are spent", dollars(cost));
            let is_spent = cost >= self.cost_micros_max;
            let more = dollars(more.max(10_000));
            if is_spent { text } else { format!("{text}; a request may take {more}") }
        })
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX / 4)
}

/// Spreads a number over all 64 bits (the finalizer of `SplitMix64`).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use FailureClass::{Auth, Invalid, Quota, RateLimit, Transient, Unreadable};
    use Permission::{Granted, NotBefore, Paused};

    fn circuit() -> Circuit {
        Circuit::new(RetryPolicy::default(), 7)
    }

    fn wait_of(circuit: &mut Circuit, now: Millis) -> u64 {
        match circuit.permit(now) {
            Granted => 0,
            NotBefore(then) => then - now,
            Paused(pause) => pause.until - now,
        }
    }

    #[test]
    fn pauses_double_up_to_a_limit_and_are_between_half_and_whole() {
        let mut circuit = circuit();
        let mut now = 0;
        for whole in [2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000, 300_000]
        {
            circuit.failed(now, &Refusal::new(Transient, "down"));
            let wait = wait_of(&mut circuit, now);
            assert!((whole / 2..=whole).contains(&wait), "{wait} of {whole}");
            now += wait;
            assert_eq!(circuit.permit(now), Granted);
        }
        circuit.succeeded();
        assert_eq!(circuit.permit(now), Granted);
    }

    #[test]
    fn the_same_seed_gives_the_same_pauses_and_another_seed_others() {
        let waits = |seed| {
            let mut circuit = Circuit::new(RetryPolicy::default(), seed);
            (0..8)
                .map(|_| {
                    circuit.failed(0, &Refusal::new(Transient, "down"));
                    wait_of(&mut circuit, 0)
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(waits(1), waits(1));
        assert_ne!(waits(1), waits(2));
    }

    #[test]
    fn a_rate_limit_is_respected_up_to_a_maximum() {
        let wait = |seconds| {
            let refusal = Refusal::new(RateLimit, "slow down");
            let mut circuit = circuit();
            circuit.failed(1000, &refusal.after(Some(Duration::from_secs(seconds))));
            wait_of(&mut circuit, 1000)
        };
        assert_eq!(wait(90), 90_000);
        assert!((1000..=2000).contains(&wait(0)), "never sooner than our own pause");
        assert_eq!(wait(u64::MAX), 24 * 3_600_000);
    }

    #[test]
    fn the_current_pause_has_a_reason_and_an_end() {
        let mut circuit = circuit();
        let refusal = Refusal::new(RateLimit, "slow down").after(Some(Duration::from_secs(90)));
        circuit.failed(1000, &refusal);
        let pause = Pause { class: RateLimit, message: "slow down".into(), until: 91_000 };
        assert_eq!(circuit.current_pause(90_999), Some(pause));
        assert_eq!(circuit.current_pause(91_000), None);
    }

    #[test]
    fn after_consecutive_failures_one_request_is_tried_at_a_time() {
        let mut circuit = circuit();
        let mut now = 0;
        for _ in 0..5 {
            assert_eq!(circuit.permit(now), Granted);
            circuit.failed(now, &Refusal::new(Transient, "down"));
            now += 300_000;
        }
        assert_eq!(circuit.permit(now), Granted);
        assert!(
            matches!(circuit.permit(now), NotBefore(_)),
            "the second has to wait for the first"
        );
        circuit.succeeded();
        assert_eq!((circuit.permit(now), circuit.permit(now)), (Granted, Granted));
    }

    #[test]
    fn rejected_keys_quotas_and_settings_pause_requests() {
        let settings = Refusal::of_settings("no such model");
        let cases = [
            (Refusal::new(Auth, "bad key"), 900_000),
            (Refusal::new(Quota, "no money"), 3_600_000),
            (settings, 900_000),
        ];
        for (refusal, rest) in cases {
            let mut circuit = circuit();
            circuit.failed(5, &refusal);
            let pause =
                Pause { class: refusal.class, message: refusal.message.clone(), until: 5 + rest };
            assert_eq!(circuit.permit(4 + rest), Paused(pause.clone()));
            assert_eq!(circuit.current_pause(0), Some(pause));
            assert_eq!(circuit.permit(5 + rest), Granted);
            assert!(matches!(circuit.permit(5 + rest), NotBefore(_)), "one at a time");
            circuit.failed(5 + rest, &refusal);
            assert!(matches!(circuit.permit(6 + rest), Paused(_)));
            circuit.succeeded();
            assert_eq!(circuit.permit(6 + rest), Granted);
            assert_eq!(circuit.current_pause(0), None);
        }
    }

    #[test]
    fn consecutive_invalid_requests_pause_the_provider() {
        let mut circuit = circuit();
        let refusal = Refusal::new(Invalid, "field required");
        for _ in 0..2 {
            circuit.failed(0, &refusal);
            assert_eq!(circuit.permit(0), Granted);
        }
        circuit.failed(0, &refusal);
        assert!(matches!(circuit.permit(0), Paused(_)));
    }

    #[test]
    fn an_unreadable_response_shows_that_the_provider_works() {
        let mut circuit = circuit();
        circuit.failed(0, &Refusal::new(Transient, "down"));
        circuit.failed(10, &Refusal::new(Unreadable, "prose"));
        assert_eq!(circuit.permit(10), Granted);
    }

    #[test]
    fn either_cap_stops_requests_and_zero_disables_it() {
        let spent = |tokens_in, tokens_out, cost_micros| Spent {
            tokens_in,
            tokens_cached: 0,
            tokens_out,
            cost_micros,
        };
        let caps = Caps { tokens_max: 100, cost_micros_max: 2_000_000 };
        assert_eq!(caps.reached(&spent(60, 39, Some(1_999_999))), None);
        assert_eq!(
            caps.reached(&spent(60, 40, None)).as_deref(),
            Some("100 of 100 tokens a day are spent")
        );
        assert_eq!(
            caps.reached(&spent(0, 0, Some(2_000_000))).as_deref(),
            Some("$2.00 of $2.00 a day are spent")
        );
        let none = Caps { tokens_max: 0, cost_micros_max: 0 };
        assert_eq!(none.reached(&spent(u64::MAX, u64::MAX, Some(u64::MAX))), None);
    }
}
