//! When to ask again after a failure, and when to stop asking.
//!
//! Pure: the time comes in, a decision goes out, and the same seed gives the same pauses. Whatever is not
//! asked waits in the log; nothing is given up here but a single question nobody can answer.

use std::time::Duration;

use claude_mem_events::FailureClass;

use super::{Concern, RETRY_AFTER_MAX, Refusal, Spent};

/// A moment, in milliseconds since 1970.
pub type Millis = u64;

/// How patient to be.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// The pause after the first failure; it doubles with each further one.
    pub pause_min: Duration,
    /// No pause of our own choosing is longer.
    pub pause_max: Duration,
    /// This many failures in a row open the circuit: from then on one question at a time is tried.
    pub failures_max: u32,
    /// How long asking rests when nothing is left to spend.
    pub quota_rest: Duration,
    /// How long asking rests when the key, the path or the model is not accepted.
    pub settings_rest: Duration,
}

impl Default for Patience {
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
    patience: Patience,
    seed: u64,
    failures: u32,
    invalid: u32,
    not_before: Millis,
    /// What made us wait until then.
    failure: Option<(FailureClass, String)>,
    /// When a question was let through to see whether the provider is back.
    probed_at: Option<Millis>,
    pause: Option<Pause>,
}

/// Why nothing is asked, for `status` and `doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// What kind of failure.
    pub class: FailureClass,
    /// What the provider said.
    pub message: String,
    /// When one question is tried again, whatever happens until then.
    pub until: Millis,
}

/// Whether to ask now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    /// Ask, then tell the circuit how it went.
    Granted,
    /// Not before this moment. While a question is being tried, come back then to see how it went.
    NotBefore(Millis),
    /// Asking is paused and the user should know; one question is tried when the pause is over.
    Paused(Pause),
}

/// So many questions in a row that the provider calls invalid are the settings' fault, not theirs.
const INVALID_MAX: u32 = 3;

/// Whoever was let through to try and has not come back by then is not waited for any more.
const PROBE_MAX: Duration = Duration::from_secs(600);

impl Circuit {
    /// Nothing has failed yet.
    pub fn new(patience: Patience, seed: u64) -> Self {
        let (failures, invalid, not_before) = (0, 0, 0);
        let (failure, probed_at, pause) = (None, None, None);
        Self { patience, seed, failures, invalid, not_before, failure, probed_at, pause }
    }

    /// Asks for permission. After a run of failures only one question is let through at a time, so that
    /// a provider that is down is not met by all that has piled up.
    pub fn permit(&mut self, now: Millis) -> Permission {
        if let Some(pause) = self.pause.as_ref().filter(|pause| now < pause.until) {
            return Permission::Paused(pause.clone());
        }
        let is_open = self.pause.is_some() || self.failures >= self.patience.failures_max;
        let probe_ends = self.probed_at.map_or(0, |probed_at| probed_at + millis(PROBE_MAX));
        if now < self.not_before || (is_open && now < probe_ends) {
            let soon = now + millis(self.patience.pause_min);
            return Permission::NotBefore(if now < self.not_before {
                self.not_before
            } else {
                soon
            });
        }
        self.probed_at = is_open.then_some(now);
        Permission::Granted
    }

    /// A question was answered: all is forgiven.
    pub fn succeeded(&mut self) {
        *self = Self::new(self.patience, self.seed);
    }

    /// A question was not answered.
    pub fn failed(&mut self, now: Millis, refusal: &Refusal) {
        self.probed_at = None;
        let rest = match (refusal.class, refusal.concern) {
            // The provider works; what it said is another matter.
            (FailureClass::Unreadable, _) => return self.succeeded(),
            (FailureClass::Invalid, Concern::Question) => {
                self.invalid += 1;
                if self.invalid < INVALID_MAX {
                    return;
                }
                self.patience.settings_rest
            }
            (FailureClass::Invalid | FailureClass::Auth, _) => self.patience.settings_rest,
            (FailureClass::Quota, _) => self.patience.quota_rest,
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

    /// How many requests failed in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Why nothing is asked at this moment, and until when; `None` if nothing is in the way.
    pub fn waits(&self, now: Millis) -> Option<Pause> {
        if let Some(pause) = &self.pause {
            return Some(pause.clone());
        }
        let (class, message) = self.failure.clone()?;
        (now < self.not_before).then_some(Pause { class, message, until: self.not_before })
    }

    /// Twice as long each time, of which a random half: those who failed together come back apart.
    fn backoff(&self) -> Duration {
        let doublings = self.failures.saturating_sub(1).min(32);
        let whole = self.patience.pause_min.saturating_mul(1 << doublings.min(31));
        let whole = whole.min(self.patience.pause_max);
        let half = millis(whole) / 2;
        let share = mixed(self.seed.wrapping_add(u64::from(self.failures))) % (half + 1);
        Duration::from_millis(half + share)
    }
}

/// What may be spent in a day; 0 is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Tokens read and written.
    pub tokens_max: u64,
    /// Millionths of a dollar.
    pub cost_micros_max: u64,
}

impl Caps {
    /// What stops asking for today, in one line, or `None`.
    pub fn reached(&self, today: &Spent) -> Option<String> {
        self.reached_by(today, &Spent::default())
    }

    /// The limit that stops a request of this estimated cost, in one line.
    pub fn reached_by(&self, today: &Spent, next: &Spent) -> Option<String> {
        let is_over =
            |spent: u64, next: u64, max: u64| max > 0 && (spent >= max || next > max - spent);
        let (tokens, more) = (today.tokens(), next.tokens());
        if is_over(tokens, more, self.tokens_max) {
            let text = format!("{tokens} of {} tokens a day are spent", self.tokens_max);
            let is_spent = tokens >= self.tokens_max;
            return Some(if is_spent { text } else { format!("{text}; a request takes {more}") });
        }
        let (cost, more) = (today.cost_micros.unwrap_or(0), next.cost_micros.unwrap_or(0));
        is_over(cost, more, self.cost_micros_max).then(|| {
            let dollars = |micros: u64| format!("${:.2}", micros as f64 / 1e6);
            let max = dollars(self.cost_micros_max);
            let text = format!("{} of {max} a day are spent", dollars(cost));
            let is_spent = cost >= self.cost_micros_max;
            let more = dollars(more.max(10_000));
            if is_spent { text } else { format!("{text}; a request takes about {more}") }
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
        Circuit::new(Patience::default(), 7)
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
            let mut circuit = Circuit::new(Patience::default(), seed);
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
    fn a_rate_limit_is_waited_for_as_told_but_not_for_ever() {
        let told = |seconds| {
            let refusal = Refusal::new(RateLimit, "slow down");
            let mut circuit = circuit();
            circuit.failed(1000, &refusal.after(Some(Duration::from_secs(seconds))));
            wait_of(&mut circuit, 1000)
        };
        assert_eq!(told(90), 90_000);
        assert!((1000..=2000).contains(&told(0)), "never sooner than our own pause");
        assert_eq!(told(u64::MAX), 24 * 3_600_000);
    }

    #[test]
    fn whoever_waits_can_be_told_why_and_until_when() {
        let mut circuit = circuit();
        let refusal = Refusal::new(RateLimit, "slow down").after(Some(Duration::from_secs(90)));
        circuit.failed(1000, &refusal);
        let pause = Pause { class: RateLimit, message: "slow down".into(), until: 91_000 };
        assert_eq!(circuit.waits(90_999), Some(pause));
        assert_eq!(circuit.waits(91_000), None);
    }

    #[test]
    fn after_a_run_of_failures_one_question_is_tried_at_a_time() {
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
    fn keys_quotas_and_settings_pause_asking_until_it_is_worth_a_try() {
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
            assert_eq!(circuit.waits(0), Some(pause));
            assert_eq!(circuit.permit(5 + rest), Granted);
            assert!(matches!(circuit.permit(5 + rest), NotBefore(_)), "one at a time");
            circuit.failed(5 + rest, &refusal);
            assert!(matches!(circuit.permit(6 + rest), Paused(_)));
            circuit.succeeded();
            assert_eq!(circuit.permit(6 + rest), Granted);
            assert_eq!(circuit.waits(0), None);
        }
    }

    #[test]
    fn questions_that_are_all_invalid_are_the_providers_fault() {
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
    fn an_unreadable_answer_shows_that_the_provider_works() {
        let mut circuit = circuit();
        circuit.failed(0, &Refusal::new(Transient, "down"));
        circuit.failed(10, &Refusal::new(Unreadable, "prose"));
        assert_eq!(circuit.permit(10), Granted);
    }

    #[test]
    fn a_day_ends_at_either_cap_and_nought_is_no_cap() {
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
