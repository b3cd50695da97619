//! Session context included with each request to the agent.

use crate::{
    error::Result,
    query::pending::Reprocessing,
    store::{
        Store,
        sql_values::{items, number, seq},
    },
};
use claude_mem_events::Seq;
use rusqlite::named_params;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionProgress {
    /// Its latest turn.
    pub turn_last: u32,
    pub is_ended: bool,
    /// The turns in which the assistant stopped, in order, with the last stop of each.
    pub stops: Vec<(u32, Seq)>,
}

/// A memory of a session, in short.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecapEntry {
    /// The time of its events, in microseconds since 1970.
    pub at_us: u64,
    /// The type of an observation; `summary` for a summary.
    pub kind: String,
    /// Its title, or the completed work.
    pub title: String,
    /// Prose, if there is a title as well.
    pub narrative: String,
    /// Single statements.
    pub facts: Vec<String>,
}

impl Store {
    pub fn session_progress(&self, session: i64) -> Result<SessionProgress> {
        let sql = "select turn, ended_at_us is not null from sessions where id = ?1";
        let (turn_last, is_ended) = self
            .connection
            .prepare_cached(sql)?
            .query_row([session], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let sql = "select turn, max(seq) from stops where session = ?1 and scope = 'turn'
                   group by turn order by turn";
        let stops = self.rows(sql, [session], |row| Ok((row.get(0)?, seq(row, 1)?)))?;
        Ok(SessionProgress { turn_last, is_ended, stops })
    }

    /// True if a part of this turn, from its first prompt on, is distilled before `until`.
    pub fn is_turn_begun(&self, session: i64, turn: u32, from: Seq, until: Seq) -> Result<bool> {
        let sql = "select exists (select 1 from tool_uses where seq > ?3 and seq < ?4
                   and session = ?1 and turn = ?2 and answered_by is not null)";
        let mut statement = self.connection.prepare_cached(sql)?;
        let values = (session, turn, from.raw() as i64, until.raw() as i64);
        Ok(statement.query_row(values, |row| row.get(0))?)
    }

    /// The latest `limit` memories of a session, oldest first: the visible ones, or those that a
    /// reprocessing made or reused.
    pub fn session_recap(
        &self,
        session: i64,
        by: Option<&Reprocessing>,
        limit: u32,
    ) -> Result<Vec<RecapEntry>> {
        let belongs = match by {
            None => "is_visible",
            Some(_) => "(generation = :generation or prompt_version is :version)",
        };
        let sql = format!(
            "select at_us, coalesce(type, 'change'), coalesce(title, narrative), seq,
                 iif(title is null, null, narrative), facts, number from observations
                 where session = :session and origin = 'agent' and {belongs} and not is_retired
             union all
             select at_us, 'summary', coalesce(completed, learned, notes), seq, null, null, 1 << 32
                 from summaries where session = :session and origin = 'agent' and {belongs}
             order by 1 desc, 4 desc, 7 desc limit :limit"
        );
        let generation = by.map(|by| by.generation);
        let version = by.and_then(|by| by.prompt_version.as_deref());
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut found = match by {
            None => statement.query(named_params! {":session": session, ":limit": limit})?,
            Some(_) => statement.query(named_params! {
                ":session": session, ":limit": limit, ":generation": generation, ":version": version,
            })?,
        };
        let mut remembered = Vec::new();
        while let Some(row) = found.next()? {
            if let Some(title) = row.get(2)? {
                remembered.push(RecapEntry {
                    at_us: number(row, 0)?,
                    kind: row.get(1)?,
                    title,
                    narrative: row.get::<_, Option<String>>(4)?.unwrap_or_default(),
                    facts: items(row.get::<_, Option<String>>(5)?.as_deref()),
                });
            }
        }
        remembered.reverse();
        Ok(remembered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::{TestLog, titled};

    fn texts(remembered: &[RecapEntry]) -> Vec<&str> {
        remembered.iter().map(|memory| memory.title.as_str()).collect()
    }

    #[test]
    fn a_recap_has_the_turns_and_memories_of_a_session() {
        let mut scene = TestLog::new();
        scene.prompt("one");
        let used = scene.tool("Bash", "{}");
        let stop = scene.stop();
        scene.prompt("two");
        scene.tool("Bash", "{}");
        let summed_up = format!("{}<summary><completed>b</completed></summary>", titled("a"));
        scene.reply(&[used, stop], &summed_up);
        scene.start(1, "v1");
        scene.reply_in(1, "v1", &[used, stop], &titled("c"));
        let store = scene.fold();
        let stops = vec![(1, Seq::new(1, 3))];
        let expected = SessionProgress { turn_last: 2, is_ended: false, stops };
        assert_eq!(store.session_progress(1).unwrap(), expected);
        assert_eq!(texts(&store.session_recap(1, None, 10).unwrap()), ["a", "b"]);
        assert_eq!(texts(&store.session_recap(1, None, 1).unwrap()), ["b"]);
        let by = Reprocessing { generation: 1, prompt_version: None, model: None };
        assert_eq!(texts(&store.session_recap(1, Some(&by), 10).unwrap()), ["c"]);
    }
}
