//! What asking has cost, and where it failed.

use crate::{
    error::Result,
    hosts::FIRST_FOREIGN_SEQ,
    store::{Store, sql_numbers::number},
};
use rusqlite::Row;
use std::ops::AddAssign;

/// What one model cost on one day for one project.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cost {
    /// `2026-11-16`, in the time zone asked for.
    pub day: String,
    /// Key of the project, merges applied.
    pub project: String,
    /// What people call it.
    pub label: String,
    /// Who was asked.
    pub provider: String,
    /// Which model.
    pub model: String,
    /// Replies that came.
    pub replies: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Observations that the replies held.
    pub observations: u64,
    /// Tokens read, cached ones included.
    pub tokens_in: u64,
    /// Of those, how many came from a cache.
    pub tokens_cached: u64,
    /// Tokens written.
    pub tokens_out: u64,
    /// Millionths of a dollar.
    pub cost_micros: u64,
}

impl AddAssign<&Self> for Cost {
    /// Adds what can be added. Day, project and model stay.
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

/// What was spent in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spending {
    /// Tokens read and written.
    pub tokens: u64,
    /// Millionths of a dollar.
    pub cost_micros: u64,
    /// The most tokens that one request took.
    pub tokens_largest: u64,
    /// The most that one request cost.
    pub cost_micros_largest: u64,
}

/// An attempt that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFailure {
    /// When, in microseconds since 1970.
    pub at_us: u64,
    /// Who was asked.
    pub provider: String,
    /// Which model.
    pub model: String,
    /// `transient`, `rate limit`, `quota`, `auth`, `invalid`, `unreadable`.
    pub class: String,
    /// What was said.
    pub message: Option<String>,
    /// Which try it was.
    pub attempt: u32,
    /// How long we were asked to wait.
    pub retry_after_ms: u64,
    /// How many events the question held.
    pub sources: u64,
}

impl Store {
    /// What was spent, by day, project and model, from `since_us` on. Days begin at midnight
    /// `offset_seconds` east of Greenwich.
    pub fn costs(&self, since_us: u64, offset_seconds: i64) -> Result<Vec<Cost>> {
        let sql = format!("with spent as (
                select at_us, project, provider, model, 1 as replies, 0 as failures, observations,
                    tokens_in, tokens_cached, tokens_out, cost_micros from replies where seq < {FIRST_FOREIGN_SEQ}
                union all
                select at_us, project, provider, model, 0, 1, 0, tokens_in, 0, tokens_out, cost_micros
                from failures where seq < {FIRST_FOREIGN_SEQ})
            select date(at_us / 1000000 + ?2, 'unixepoch') as day, owner.key, coalesce(owner.label, ''),
                provider, model, sum(replies), sum(failures), sum(observations), sum(tokens_in),
                sum(tokens_cached), sum(tokens_out), sum(cost_micros)
            from spent join projects on projects.id = spent.project
                join projects as owner on owner.id = projects.owner
            where at_us >= ?1 group by 1, 2, 4, 5 order by 1, 2, 4, 5");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let costs = statement.query_map((since_us as i64, offset_seconds), read_cost)?;
        Ok(costs.collect::<rusqlite::Result<_>>()?)
    }

    /// What was spent from `since_us` on, failures included.
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

    /// The latest failure, if nobody was answered since: what stands in the way.
    pub fn last_failure(&self) -> Result<Option<RequestFailure>> {
        let sql = format!(
            "select exists (select 1 from failures where seq < {FIRST_FOREIGN_SEQ}
                 and seq > coalesce((select max(seq) from replies where seq < {FIRST_FOREIGN_SEQ}), 0))"
        );
        let is_trouble: bool =
            self.connection.prepare_cached(&sql)?.query_row((), |row| row.get(0))?;
        Ok(if is_trouble { self.failures(1)?.pop() } else { None })
    }

    /// Attempts that failed, the latest first.
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
