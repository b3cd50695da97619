//! Status of sessions and of the database.

use crate::{
    error::Result,
    fold::sessions::{NOT_CANCELLED, STATUS},
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
    pub tool_uses: u32,
}

/// Row counts, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// Sessions that are not forgotten.
    pub sessions: u64,
    pub prompts: u64,
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
        let oldest = |rows: &str| {
            format!(
                "select min(at_us) as at_us from {rows}
                 where answered_by is null and not is_parked and seq < {FIRST_FOREIGN_SEQ}
                     and {NOT_CANCELLED}"
            )
        };
        let sql = format!(
            "select pending, (select min(at_us) from ({} union all {} and scope = 'turn')), parked,
                 (select count(*) from gaps) from due_totals",
            oldest("tool_uses indexed by tool_uses_pending"),
            oldest("stops indexed by stops_pending"),
        );
        let lag = self.connection.prepare_cached(&sql)?.query_row((), |row| {
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
        let pending = self.pending_counts()?;
        let visible =
            |table: &str| count(&format!("{table} indexed by {table}_by_time where is_visible"));
        Ok(Counts {
            sessions: count("sessions where forgotten_by is null")?,
            prompts: count("visible_prompts")?,
            tool_uses: count("tool_uses")?,
            observations: visible("observations")?,
            summaries: visible("summaries")?,
            outstanding: pending.outstanding,
            parked: pending.parked,
            gaps: pending.gaps,
            unreadable: count("unreadable")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::test_log::{TestLog, steps};
    use claude_mem_events::{AgentFailed, FailureClass};

    #[test]
    fn pending_events_are_counted_without_reading_them() {
        let steps_of = |events: usize| {
            let mut scene = TestLog::new();
            scene.prompt("one");
            for _ in 0..events {
                scene.tool("Bash", "{}");
            }
            scene.stop();
            let mut store = scene.fold();
            let counts = store.pending_counts().unwrap();
            assert_eq!((counts.outstanding, counts.parked), (events as u64 + 1, 0));
            assert_eq!(counts.since_us, Some(scene.events[1].at_us()));
            let counting = steps(&mut store, |store| _ = store.pending_counts().unwrap());
            counting + steps(&mut store, |store| _ = store.status_line_counts("k").unwrap())
        };
        assert_eq!(steps_of(10), steps_of(1_000));
    }

    #[test]
    fn the_totals_of_pending_and_parked_events_are_those_of_the_rows() {
        let mut scene = TestLog::new();
        let mut totals = Vec::new();
        let mut add = |scene: &TestLog| {
            let store = scene.fold();
            let rows = "select sum(answered_by is null and not is_parked),
                            sum(answered_by is null and is_parked) from
                        (select answered_by, is_parked from tool_uses
                         union all select answered_by, is_parked from stops)";
            let counted = store.dump("select pending, parked from pending_totals").unwrap();
            assert_eq!(counted, store.dump(rows).unwrap());
            totals.push(counted.trim_end().to_owned());
        };
        scene.prompt("one");
        let used = scene.tool("Bash", "{}");
        let stop = scene.stop();
        add(&scene);
        let class = FailureClass::Invalid;
        let answers = vec![used, stop];
        scene.add(AgentFailed { answers, class, attempt: 3, ..AgentFailed::default() });
        add(&scene);
        scene.reply(&[stop], "<skip/>");
        add(&scene);
        scene.reply(&[used], "<skip/>");
        add(&scene);
        assert_eq!(totals, ["2|0", "0|2", "0|1", "0|0"]);
    }
}
