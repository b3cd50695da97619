//! Status of sessions and of the database.

use crate::{
    error::Result,
    fold::sessions::STATUS,
    hosts::FIRST_FOREIGN_SEQ,
    store::{
        Store,
        sql_values::{number, number_if_any},
    },
};
use rusqlite::named_params;

/// A session and its status at a given time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionStatus {
    /// Its row id.
    pub id: i64,
    /// The client's id.
    pub content_session: String,
    /// The agent's id of its conversation; `None` until it is known.
    pub memory_session: Option<String>,
    /// Row of the project it was recorded under.
    pub project: i64,
    /// `initialized`, `active`, `completed`, `failed`, `interrupted`.
    pub status: String,
    /// Its start, in microseconds since 1970.
    pub started_at_us: u64,
    /// The time of its last event.
    pub at_us: u64,
    /// Number of prompts of the user.
    pub prompts: u32,
    /// Number of tool uses.
    pub tool_uses: u32,
}

/// Row counts, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// Sessions that are not forgotten.
    pub sessions: u64,
    /// Prompts.
    pub prompts: u64,
    /// Tool uses.
    pub tool_uses: u64,
    /// Visible observations.
    pub observations: u64,
    /// Visible summaries.
    pub summaries: u64,
    /// Pending tool uses and stops.
    pub outstanding: u64,
    /// Parked tool uses and stops.
    pub parked: u64,
    /// Damaged ranges of the log.
    pub gaps: u64,
    /// Events that could not be decoded.
    pub unreadable: u64,
}

/// Counts of pending events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PendingCounts {
    /// Pending tool uses and stops.
    pub outstanding: u64,
    /// The time of the first one, in microseconds since 1970.
    pub since_us: Option<u64>,
    /// Parked tool uses and stops.
    pub parked: u64,
    /// Damaged ranges of the log.
    pub gaps: u64,
}

impl Store {
    /// Counts pending events, and nothing else.
    pub fn pending_counts(&self) -> Result<PendingCounts> {
        // The end of a subagent alone causes no request.
        let sql =
            "select count(*) filter (where not is_parked), min(at_us) filter (where not is_parked),
                 count(*) filter (where is_parked), (select count(*) from gaps)
             from (select at_us, is_parked from tool_uses where answered_by is null
             and host = 0
                 union all select at_us, is_parked from stops
                 where answered_by is null and scope = 'turn' and host = 0)";
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

    /// The latest `limit` sessions with their status at `now_us`, latest first. A session without
    /// an event for a day in the middle of a turn is interrupted; a later event opens it again.
    pub fn sessions(&self, now_us: u64, limit: u32) -> Result<Vec<SessionStatus>> {
        let sql = format!(
            "select id, session, memory_session, project, {STATUS}, started_at_us, at_us,
             prompt_number,
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

    /// Number of active sessions at `now_us`.
    pub fn active_sessions(&self, now_us: u64) -> Result<u64> {
        let sql = format!(
            "select count(*) from (select {STATUS} as status from sessions
             where forgotten_by is null)
             where status in ('active', 'initialized')"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        Ok(statement.query_row(named_params! { ":now": now_us as i64 }, |row| number(row, 0))?)
    }

    /// Counts the rows, in indexes where there is one: a tenth of the time of reading all rows.
    pub fn counts(&self) -> Result<Counts> {
        let count = |rows: &str| -> Result<u64> {
            let sql = format!("select count(*) from {rows}");
            Ok(self.connection.query_row(&sql, (), |row| number(row, 0))?)
        };
        let waiting = |condition: &str| -> Result<u64> {
            let condition =
                format!("where answered_by is null and {condition} and seq < {FIRST_FOREIGN_SEQ}");
            // The end of a subagent alone causes no request.
            let stops =
                count(&format!("stops indexed by stops_open {condition} and scope = 'turn'"))?;
            Ok(count(&format!("tool_uses indexed by tool_uses_open {condition}"))? + stops)
        };
        let visible =
            |table: &str| count(&format!("{table} indexed by {table}_by_time where is_visible"));
        Ok(Counts {
            sessions: count("sessions where forgotten_by is null")?,
            prompts: count("visible_prompts")?,
            tool_uses: count("tool_uses")?,
            observations: visible("observations")?,
            summaries: visible("summaries")?,
            outstanding: waiting("not is_parked")?,
            parked: waiting("is_parked")?,
            gaps: count("gaps")?,
            unreadable: count("unreadable")?,
        })
    }
}
