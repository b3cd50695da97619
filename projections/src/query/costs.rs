//! Costs and failures of requests to the agent.

use crate::{
    error::Result,
    hosts::FIRST_FOREIGN_SEQ,
    store::{Store, row::from_row},
};
use rusqlite::Row;
use std::ops::AddAssign;

/// The costs of one model on one day for one project.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cost {
    /// `2026-11-16`, in the requested time zone.
    pub day: String,
    /// Key of the project, merges applied.
    pub project: String,
    /// The name of the project.
    pub label: String,
    pub provider: String,
    pub model: String,
    pub replies: u64,
    /// Number of failed attempts.
    pub failures: u64,
    /// Number of observations in the replies.
    pub observations: u64,
    /// Input tokens, including cached ones.
    pub tokens_in: u64,
    /// Input tokens read from a cache.
    pub tokens_cached: u64,
    /// Output tokens.
    pub tokens_out: u64,
    /// Millionths of a dollar.
    pub cost_micros: u64,
}

impl AddAssign<&Self> for Cost {
    /// Adds the amounts; day, project and model stay.
    fn add_assign(&mut self, other: &Self) {
        self.replies += other.replies;
        self.failures += other.failures;
        self.observations += other.observations;
        self.tokens_in += other.tokens_in;
        self.tokens_cached += other.tokens_cached;
        self.tokens_out += other.tokens_out;
        self.cost_micros += other.cost_micros;
    }
}

/// Total spending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spending {
    /// Input and output tokens.
    pub tokens: u64,
    /// Millionths of a dollar.
    pub cost_micros: u64,
    /// The tokens of the largest request.
    pub tokens_largest: u64,
    /// The cost of the most expensive request.
    pub cost_micros_largest: u64,
}

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFailure {
    /// Its time, in microseconds since 1970.
    pub at_us: u64,
    pub provider: String,
    pub model: String,
    /// `transient`, `rate limit`, `quota`, `auth`, `invalid`, `unreadable`.
    pub class: String,
    /// The error message.
    pub message: Option<String>,
    pub attempt: u32,
    /// The delay that the provider requested.
    pub retry_after_ms: u64,
    /// Number of events in the request.
    pub sources: u64,
}

impl Store {
    /// Costs by day, project and model from `since_us` on. Days begin at midnight, `offset_seconds`
    /// east of Greenwich.
    pub fn costs(&self, since_us: u64, offset_seconds: i64) -> Result<Vec<Cost>> {
        let sql = format!(
            "with spent as (
                 select at_us, project, provider, model, 1 as replies, 0 as failures, observations,
                     tokens_in, tokens_cached, tokens_out, cost_micros from replies
                     where seq < {FIRST_FOREIGN_SEQ}
                 union all
                 select at_us, project, provider, model, 0, 1, 0, tokens_in, 0, tokens_out,
                 cost_micros
                 from failures where seq < {FIRST_FOREIGN_SEQ})
             select date(at_us / 1000000 + ?2, 'unixepoch') as day, owner.key as project,
                 coalesce(owner.label, '') as label, provider, model, sum(replies) as replies,
                 sum(failures) as failures, sum(observations) as observations,
                 sum(tokens_in) as tokens_in, sum(tokens_cached) as tokens_cached,
                 sum(tokens_out) as tokens_out, sum(cost_micros) as cost_micros
             from spent join projects on projects.id = spent.project
                 join projects as owner on owner.id = projects.owner
             where at_us >= ?1 group by 1, 2, 4, 5 order by 1, 2, 4, 5"
        );
        self.rows(&sql, (since_us as i64, offset_seconds), read_cost)
    }

    /// Total spending from `since_us` on, including failures.
    pub fn spent(&self, since_us: u64) -> Result<Spending> {
        let sql = format!(
            "select coalesce(sum(tokens), 0) as tokens, coalesce(sum(cost_micros), 0) as cost_micros,
                coalesce(max(tokens), 0) as tokens_largest,
                coalesce(max(cost_micros), 0) as cost_micros_largest from (
                select tokens_in + tokens_out as tokens, cost_micros from replies
                where at_us >= ?1 and seq < {FIRST_FOREIGN_SEQ}
                union all
                select tokens_in + tokens_out, cost_micros from failures
                where at_us >= ?1 and seq < {FIRST_FOREIGN_SEQ})"
        );
        let spent = self.connection.prepare_cached(&sql)?.query_row([since_us as i64], |row| {
            Ok(from_row!(
                row,
                Spending { tokens, cost_micros, tokens_largest, cost_micros_largest }
            ))
        })?;
        Ok(spent)
    }

    /// The latest failure, if there was no reply since.
    pub fn last_failure(&self) -> Result<Option<RequestFailure>> {
        let sql = format!(
            "select exists (select 1 from failures where seq < {FIRST_FOREIGN_SEQ}
             and seq > coalesce((select max(seq) from replies where seq < {FIRST_FOREIGN_SEQ}),
             0))"
        );
        let is_trouble: bool =
            self.connection.prepare_cached(&sql)?.query_row((), |row| row.get(0))?;
        Ok(if is_trouble { self.failures(1)?.pop() } else { None })
    }

    /// Failed attempts, latest first.
    pub fn failures(&self, limit: u32) -> Result<Vec<RequestFailure>> {
        let sql = format!(
            "select at_us, provider, model, class, message, attempt, retry_after_ms, sources
             from failures where seq < {FIRST_FOREIGN_SEQ} order by seq desc limit ?1"
        );
        self.rows(&sql, [limit], |row| {
            Ok(from_row!(
                row,
                RequestFailure {
                    at_us,
                    provider,
                    model,
                    class,
                    message,
                    attempt,
                    retry_after_ms,
                    sources
                }
            ))
        })
    }
}

fn read_cost(row: &Row<'_>) -> rusqlite::Result<Cost> {
    Ok(from_row!(
        row,
        Cost {
            day,
            project,
            label,
            provider,
            model,
            replies,
            failures,
            observations,
            tokens_in,
            tokens_cached,
            tokens_out,
            cost_micros
        }
    ))
}
