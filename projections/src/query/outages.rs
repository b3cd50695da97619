//! Which providers refuse to answer at the moment, and what the built-in rules did in their place.

use crate::{
    error::Result,
    hosts::FIRST_FOREIGN_SEQ,
    store::{Store, sql_numbers::number},
};
use rusqlite::OptionalExtension as _;

/// A pause that a provider asks for is an outage from this length on.
const LONG_PAUSE_MS: u64 = 15 * 60 * 1000;

/// Failures within this time of each other are one attempt: several sessions ask side by side.
const SAME_ATTEMPT_US: u64 = 5 * 60 * 1_000_000;

/// The latest failures that are looked at.
const FAILURES_MAX: u32 = 200;

/// A provider whose last requests failed in a way that asking again soon does not mend: a login that is
/// missing, an account that is empty, a program or a model that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// As settings and events name it.
    pub provider: String,
    /// `auth`, `quota`, `invalid` or `rate limit`.
    pub class: String,
    /// The error message, for people.
    pub message: String,
    /// When the last request failed, in microseconds since 1970.
    pub at_us: u64,
    /// How often it was tried since it last answered.
    pub attempts: u32,
    /// How long the provider asked us to wait; 0 if it did not say.
    pub retry_after_ms: u64,
}

/// Events distilled by the built-in rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RulesUsage {
    /// How many events.
    pub events: u64,
    /// When the first of them happened, in microseconds since 1970.
    pub since_us: u64,
}

impl Store {
    /// The providers that failed since this moment and have not answered after that.
    pub fn outages(&self, since_us: u64) -> Result<Vec<Outage>> {
        let sql = format!(
            "select seq, provider, class, coalesce(message, ''), at_us, retry_after_ms from failures
             where seq < {FIRST_FOREIGN_SEQ} and at_us >= ?1 and (class in ('auth', 'quota')
                 or class = 'invalid' and sources = 0
                 or class = 'rate limit' and retry_after_ms >= {LONG_PAUSE_MS})
             order by seq desc limit {FAILURES_MAX}"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let since_us = i64::try_from(since_us).unwrap_or(i64::MAX);
        let failures = statement.query_map([since_us], |row| {
            let outage = Outage {
                provider: row.get(1)?,
                class: row.get(2)?,
                message: row.get(3)?,
                at_us: number(row, 4)?,
                attempts: 1,
                retry_after_ms: number(row, 5)?,
            };
            Ok((row.get::<_, i64>(0)?, outage))
        })?;
        // The latest first. Of each provider the latest is what counts, and the others are its attempts.
        let mut found: Vec<(Outage, u64)> = Vec::new();
        for failure in failures {
            let (seq, outage) = failure?;
            if self.has_answered(&outage.provider, seq)? {
                continue;
            }
            match found.iter_mut().find(|(known, _)| known.provider == outage.provider) {
                None => found.push((outage.clone(), outage.at_us)),
                Some((known, tried_us)) if outage.at_us + SAME_ATTEMPT_US < *tried_us => {
                    known.attempts += 1;
                    *tried_us = outage.at_us;
                }
                Some(_) => {}
            }
        }
        Ok(found.into_iter().map(|(outage, _)| outage).collect())
    }

    fn has_answered(&self, provider: &str, after: i64) -> Result<bool> {
        let sql = format!(
            "select 1 from replies where seq > ?2 and seq < {FIRST_FOREIGN_SEQ} and provider = ?1 limit 1"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        Ok(statement.query_row((provider, after), |_| Ok(())).optional()?.is_some())
    }

    /// The provider of the last response, if there is one.
    pub fn last_provider(&self) -> Result<Option<String>> {
        let sql = format!(
            "select provider from replies where seq < {FIRST_FOREIGN_SEQ} order by seq desc limit 1"
        );
        Ok(self.connection.prepare_cached(&sql)?.query_row((), |row| row.get(0)).optional()?)
    }

    /// Visible memories that the built-in rules distilled.
    pub fn distilled_by_rules(&self) -> Result<Option<RulesUsage>> {
        let sql = format!(
            "select count(*), coalesce(min(events.at_us), 0) from replies
                 join answers on answers.reply = replies.seq join events on events.seq = answers.source
             where replies.provider = 'extract' and replies.is_current and replies.seq < {FIRST_FOREIGN_SEQ}"
        );
        let read = |row: &rusqlite::Row<'_>| {
            Ok(RulesUsage { events: number(row, 0)?, since_us: number(row, 1)? })
        };
        let found = self.connection.prepare_cached(&sql)?.query_row((), read)?;
        Ok((found.events > 0).then_some(found))
    }
}

#[cfg(test)]
mod tests {
    use claude_mem_events::{AgentFailed, AgentReplied, FailureClass};

    use crate::test_log::TestLog;

    fn fail(scene: &mut TestLog, provider: &str, class: FailureClass) {
        let (provider, message) = (provider.into(), "no".into());
        scene.add(AgentFailed { provider, class, message, ..AgentFailed::default() });
    }

    fn answer(scene: &mut TestLog, provider: &str) {
        let (provider, reply) = (provider.into(), "<skip/>".into());
        scene.add(AgentReplied { provider, reply, ..AgentReplied::default() });
    }

    fn out(scene: &TestLog) -> Vec<String> {
        let outages = scene.fold().outages(0).unwrap();
        outages.into_iter().map(|outage| format!("{} {}", outage.provider, outage.class)).collect()
    }

    #[test]
    fn a_provider_is_out_until_it_answers_whoever_answers_meanwhile() {
        let mut scene = TestLog::new();
        fail(&mut scene, "claude", FailureClass::Auth);
        fail(&mut scene, "anthropic", FailureClass::Quota);
        answer(&mut scene, "extract");
        assert_eq!(out(&scene), ["anthropic quota", "claude auth"]);
        answer(&mut scene, "claude");
        assert_eq!(out(&scene), ["anthropic quota"]);
        assert_eq!(scene.fold().last_provider().unwrap().as_deref(), Some("claude"));
    }

    #[test]
    fn what_passes_by_itself_is_no_outage_and_one_incident_is_one_attempt() {
        let mut scene = TestLog::new();
        for class in [FailureClass::Transient, FailureClass::RateLimit, FailureClass::Unreadable] {
            fail(&mut scene, "openai", class);
        }
        assert_eq!(out(&scene), [""; 0]);
        for _ in 0..3 {
            fail(&mut scene, "openai", FailureClass::Auth);
        }
        let outage = scene.fold().outages(0).unwrap().remove(0);
        assert_eq!((outage.attempts, outage.message.as_str()), (1, "no"));
        assert_eq!(scene.fold().outages(outage.at_us + 1).unwrap(), []);
    }
}
