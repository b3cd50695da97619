//! Outages: providers that are unavailable, and events that the built-in rules distilled instead.

use crate::{
    error::Result,
    hosts::FIRST_FOREIGN_SEQ,
    store::{Store, sql_values::number},
};
use rusqlite::OptionalExtension as _;

/// A requested wait of at least this length is an outage.
const LONG_PAUSE_MS: u64 = 15 * 60 * 1000;

/// Failures within this time of each other are one attempt: several sessions send requests
/// concurrently.
const SAME_ATTEMPT_US: u64 = 5 * 60 * 1_000_000;

/// Maximum number of failures that are considered.
const FAILURES_MAX: u32 = 200;

/// A provider whose last requests failed in a way that a quick retry does not fix: missing
/// credentials, exhausted quota, a missing program or model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// Its name in settings and events.
    pub provider: String,
    /// `auth`, `quota`, `invalid` or `rate limit`.
    pub class: String,
    /// The error message.
    pub message: String,
    /// Time of the last failure, in microseconds since 1970.
    pub at_us: u64,
    /// Number of attempts since its last reply.
    pub attempts: u32,
    /// The delay that the provider requested; 0 if none.
    pub retry_after_ms: u64,
}

/// Events distilled by the built-in rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RulesUsage {
    pub events: u64,
    /// Time of the first one, in microseconds since 1970.
    pub since_us: u64,
}

impl Store {
    /// The providers that failed since this time and did not reply after that.
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
        // Latest first: the first failure of a provider describes the outage, the others are
        // counted as attempts.
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
            "select 1 from replies where seq > ?2 and seq < {FIRST_FOREIGN_SEQ} and provider = ?1 \
             limit 1"
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
                 join answers on answers.reply = replies.seq join events
                 on events.seq = answers.source
             where replies.provider = 'extract' and replies.is_current
             and replies.seq < {FIRST_FOREIGN_SEQ}"
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
    fn an_outage_of_a_provider_lasts_until_that_provider_replies() {
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
    fn temporary_failures_are_not_outages_and_one_incident_is_one_attempt() {
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
