//! Costs and failures of requests to the agent.

use crate::{
    error::Result,
    hosts::FIRST_FOREIGN_SEQ,
    store::{Store, sql_values::number},
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
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// Number of replies.
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
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// `transient`, `rate limit`, `quota`, `auth`, `invalid`, `unreadable`.
    pub class: String,
    /// The error message.
    pub message: Option<String>,
    /// The number of the attempt.
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
             select date(at_us / 1000000 + ?2, 'unixepoch') as day, owner.key, coalesce(owner.label,
             ''),
                 provider, model, sum(replies), sum(failures), sum(observations), sum(tokens_in),
                 sum(tokens_cached), sum(tokens_out), sum(cost_micros)
             from spent join projects on projects.id = spent.project
                 join projects as owner on owner.id = projects.owner
             where at_us >= ?1 group by 1, 2, 4, 5 order by 1, 2, 4, 5"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let costs = statement.query_map((since_us as i64, offset_seconds), read_cost)?;
        Ok(costs.collect::<rusqlite::Result<_>>()?)
    }

    /// Total spending from `since_us` on, including failures.
    pub fn spent(&self, since_us: u64) -> Result<Spending> {
        let sql = format!(
            "select coalesce(sum(tokens), 0), coalesce(sum(cost_micros), 0),
                coalesce(max(tokens), 0), coalesce(max(cost_micros), 0) from (
                select tokens_in + tokens_out as tokens, cost_micros from replies
                where at_us >= ?1 and seq < {FIRST_FOREIGN_SEQ}
                union all
                select tokens_in + tokens_out, cost_micros from failures
                where at_us >= ?1 and seq < {FIRST_FOREIGN_SEQ})"
        );
        let spent = self.connection.prepare_cached(&sql)?.query_row([since_us as i64], |row| {
            Ok(Spending {
                tokens: number(row, 0)?,
                cost_micros: number(row, 1)?,
                tokens_largest: number(row, 2)?,
                cost_micros_largest: number(row, 3)?,
            })
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
        let mut statement = self.connection.prepare_cached(&sql)?;
        let failures = statement.query_map([limit], |row| {
            Ok(RequestFailure {
                at_us: number(row, 0)?,
                provider: row.get(1)?,
                model: row.get(2)?,
                class: row.get(3)?,
                message: row.get(4)?,
                attempt: row.get(5)?,
                retry_after_ms: number(row, 6)?,
                sources: number(row, 7)?,
            })
        })?;
        Ok(failures.collect::<rusqlite::Result<_>>()?)
    }
}

fn read_cost(row: &Row<'_>) -> rusqlite::Result<Cost> {
    Ok(Cost {
        day: row.get(0)?,
        project: row.get(1)?,
        label: row.get(2)?,
        provider: row.get(3)?,
        model: row.get(4)?,
        replies: number(row, 5)?,
        failures: number(row, 6)?,
        observations: number(row, 7)?,
        tokens_in: number(row, 8)?,
        tokens_cached: number(row, 9)?,
        tokens_out: number(row, 10)?,
        cost_micros: number(row, 11)?,
    })
}
