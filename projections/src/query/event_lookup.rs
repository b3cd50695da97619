//! Looks up which events are folded already, for imports.

use crate::{error::Result, store::Store};
use claude_mem_events::Id;
use rusqlite::OptionalExtension;

impl Store {
    /// Whether this event of our own log was folded, even if it was forgotten since.
    pub fn has_event(&self, event: Id) -> Result<bool> {
        let sql = "select 1 from events where event = ?1 and host = 0";
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.exists([event.as_bytes()])?)
    }

    /// Every event of a session with its kind, in order; empty if the session is unknown.
    pub fn events_of_session(&self, platform: &str, session: &str) -> Result<Vec<(Id, u16)>> {
        let sql = "select id from sessions where platform = ?1 and session = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let row: Option<i64> =
            statement.query_row((platform, session), |row| row.get(0)).optional()?;
        let Some(row) = row else { return Ok(Vec::new()) };
        let sql = "select event, kind from events where session = ?1 order by at_us, seq";
        let mut statement = self.connection.prepare_cached(sql)?;
        let events = statement.query_map([row], |row| {
            Ok((Id::from_bytes(row.get::<_, [u8; 16]>(0)?), row.get::<_, u16>(1)?))
        })?;
        Ok(events.collect::<rusqlite::Result<_>>()?)
    }
}

#[cfg(test)]
mod tests {
    use crate::test_log::TestLog;
    use claude_mem_events::Id;

    #[test]
    fn what_was_folded_is_known_by_its_id_and_its_session() {
        let mut scene = TestLog::new();
        let prompt = scene.prompt("hello");
        let tool = scene.tool("Bash", "{}");
        let store = scene.fold();
        assert!(store.has_event(Id::from_bytes(prompt)).unwrap());
        assert!(!store.has_event(Id::from_bytes([9; 16])).unwrap());
        let events = store.events_of_session("claude-code", "s").unwrap();
        assert_eq!(events, [(Id::from_bytes(prompt), 2), (Id::from_bytes(tool), 3)]);
        assert_eq!(store.events_of_session("claude-code", "other").unwrap(), []);
    }
}
