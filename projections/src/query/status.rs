//! How sessions and the tables stand.

use crate::{
    error::Result,
    fold::sessions::STATUS,
    hosts::FIRST_FOREIGN_SEQ,
    store::{
        Store,
        sql_numbers::{number, number_if_any},
    },
};
use rusqlite::named_params;

/// A session, and how it stands at a given moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionStatus {
    /// Its row.
    pub id: i64,
    /// The watched program's own id.
    pub content_session: String,
    /// The agent's id of its conversation; `None` until it is known.
    pub memory_session: Option<String>,
    /// Row of the project it was recorded under.
    pub project: i64,
    /// `initialized`, `active`, `completed`, `failed`, `interrupted`.
    pub status: String,
    /// When it began, in microseconds since 1970.
    pub started_at_us: u64,
    /// When something happened in it last.
    pub at_us: u64,
    /// How many prompts the user submitted.
    pub prompts: u32,
    /// How many tools were used.
    pub tool_uses: u32,
}

/// What is in the tables, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// Sessions that are not forgotten.
    pub sessions: u64,
    /// Prompts.
    pub prompts: u64,
    /// Tool uses.
    pub tool_uses: u64,
    /// Observations that are shown.
    pub observations: u64,
    /// Summaries that are shown.
    pub summaries: u64,
    /// Tool uses and stops that wait for an answer.
    pub outstanding: u64,
    /// Those that the agent failed at for good.
    pub parked: u64,
    /// Places in the log that are damaged.
    pub gaps: u64,
    /// Events that nobody understood.
    pub unreadable: u64,
}

/// What waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PendingCounts {
    /// Tool uses and stops that wait.
    pub outstanding: u64,
    /// When the first of them happened, in microseconds since 1970.
    pub since_us: Option<u64>,
    /// Those that the agent failed at for good.
    pub parked: u64,
    /// Places in the log that are damaged.
    pub gaps: u64,
}

impl Store {
    /// What waits for an answer, without counting anything else.
    pub fn pending_counts(&self) -> Result<PendingCounts> {
        // Nobody is asked about the end of a subagent alone.
        let sql =
            "select count(*) filter (where not is_parked), min(at_us) filter (where not is_parked),
                       count(*) filter (where is_parked), (select count(*) from gaps)
                   from (select at_us, is_parked from tool_uses where answered_by is null
                       union all select at_us, is_parked from stops
                       where answered_by is null and scope = 'turn')";
        let lag = self.connection.prepare_cached(sql)?.query_row((), |row| {
            Ok(PendingCounts {
                outstanding: number(row, 0)?,
                since_us: number_if_any(row, 1)?,
                parked: number(row, 2)?,
                gaps: number(row, 3)?,
            })
        })?;
        Ok(lag)
    }

    /// The latest `limit` sessions as they stand at `now_us`, the last one first. A session in the middle of
    /// a turn that was silent for a day is interrupted; whatever happens in it later opens it again.
    pub fn sessions(&self, now_us: u64, limit: u32) -> Result<Vec<SessionStatus>> {
        let sql = format!(
            "select id, session, memory_session, project, {STATUS}, started_at_us, at_us, prompt_number,
                 tool_uses from sessions where forgotten_by is null
             order by at_us desc, id desc limit :limit"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let values = named_params! { ":now": now_us as i64, ":limit": limit };
        let sessions = statement.query_map(values, |row| {
            Ok(SessionStatus {
                id: row.get(0)?,
                content_session: row.get(1)?,
                memory_session: row.get(2)?,
                project: row.get(3)?,
                status: row.get(4)?,
                started_at_us: number(row, 5)?,
                at_us: number(row, 6)?,
                prompts: row.get(7)?,
                tool_uses: row.get(8)?,
            })
        })?;
        Ok(sessions.collect::<rusqlite::Result<_>>()?)
    }

    /// How many sessions are going on at `now_us`.
    pub fn active_sessions(&self, now_us: u64) -> Result<u64> {
        let sql = format!(
            "select count(*) from (select {STATUS} as status from sessions where forgotten_by is null)
             where status in ('active', 'initialized')"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        Ok(statement.query_row(named_params! { ":now": now_us as i64 }, |row| number(row, 0))?)
    }

    /// What is in the tables.
    pub fn counts(&self) -> Result<Counts> {
        let count = |rows: &str| -> Result<u64> {
            let sql = format!("select count(*) from {rows}");
            Ok(self.connection.query_row(&sql, (), |row| number(row, 0))?)
        };
        let waiting = |condition: &str| -> Result<u64> {
            let condition =
                format!("where answered_by is null and {condition} and seq < {FIRST_FOREIGN_SEQ}");
            // Nobody is asked about the end of a subagent alone.
            let stops = count(&format!("stops {condition} and scope = 'turn'"))?;
            Ok(count(&format!("tool_uses {condition}"))? + stops)
        };
        Ok(Counts {
            sessions: count("sessions where forgotten_by is null")?,
            prompts: count("visible_prompts")?,
            tool_uses: count("tool_uses")?,
            observations: count("visible_observations")?,
            summaries: count("visible_summaries")?,
            outstanding: waiting("not is_parked")?,
            parked: waiting("is_parked")?,
            gaps: count("gaps")?,
            unreadable: count("unreadable")?,
        })
    }
}
