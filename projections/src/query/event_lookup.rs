//! Looks up folded events: by id, by session, and by their place in the order of the log.

use crate::{
    error::Result,
    hosts::FIRST_FOREIGN_SEQ,
    store::{
        Store,
        sql_values::{number, seq},
    },
};
use claude_mem_events::{Event, Id, ObservationRef, Seq};
use rusqlite::{OptionalExtension, named_params};

/// Selects events of our own log.
#[derive(Debug, Clone, Default)]
pub struct EventQuery {
    /// The name of a kind, such as `ToolUsed`.
    pub kind: Option<String>,
    /// The name or the key of a project.
    pub project: Option<String>,
    /// The client's id of a session, or the start of it.
    pub session: Option<String>,
    /// Only those before this place.
    pub before: Option<Seq>,
    /// Only those after this place.
    pub after: Option<Seq>,
    /// Maximum number.
    pub limit: u32,
}

/// An event in a list. Its content is in the log, at `seq`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    /// Its place in the log.
    pub seq: Seq,
    pub event: Id,
    /// The name of its kind.
    pub kind: &'static str,
    /// Its time, in microseconds since 1970.
    pub at_us: u64,
    /// The client's id of its session.
    pub session: Option<String>,
    /// The name of its project.
    pub project: Option<String>,
}

/// A note that was imported from Claude Code's auto memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutoMemoryNote {
    /// Folder and name of its file.
    pub file: String,
    pub text: String,
    /// Its position in the log.
    pub observation: ObservationRef,
}

impl Store {
    /// Events of our own log that are not forgotten, newest first.
    pub fn event_rows(&self, query: &EventQuery) -> Result<Vec<EventRow>> {
        // Kinds are numbers in the table.
        let kinds = (0..=u16::from(u8::MAX))
            .filter(|kind| query.kind.as_deref().is_some_and(|name| name == Event::name_of(*kind)));
        let kinds = kinds.map(|kind| kind.to_string()).collect::<Vec<_>>().join(",");
        let mut conditions = String::new();
        for (is_set, condition) in [
            (query.kind.is_some(), "and events.kind in (select value from json_each(:kinds))"),
            (
                query.project.is_some(),
                "and events.project in (select id from projects where owner in
                     (select owner from projects where label = :project or key = :project))",
            ),
            (
                query.session.is_some(),
                "and events.session in
                 (select id from sessions where substr(session, 1,
                 length(:session)) = :session)",
            ),
        ] {
            conditions += if is_set { condition } else { "" };
        }
        let sql = format!(
            "select seq, event, kind, at_us,
                 (select session from sessions where id = events.session),
                 (select coalesce(owners.label, owners.key) from projects
                      join projects owners on owners.id = projects.owner
                      where projects.id = events.project and owners.key != '')
             from events where host = 0 and forgotten_by is null and seq < :before and seq > :after
                 and coalesce(:kinds, :project, :session, '') is not null {conditions}
             order by seq desc limit :limit"
        );
        let place = |seq: Option<Seq>, other: i64| seq.map_or(other, |seq| seq.raw() as i64);
        let values = named_params! {
            ":kinds": format!("[{kinds}]"), ":project": query.project, ":session": query.session,
            ":before": place(query.before, FIRST_FOREIGN_SEQ), ":after": place(query.after, -1),
            ":limit": query.limit,
        };
        self.rows(&sql, values, |row| {
            Ok(EventRow {
                seq: seq(row, 0)?,
                event: Id::from_bytes(row.get(1)?),
                kind: Event::name_of(row.get(2)?),
                at_us: number(row, 3)?,
                session: row.get(4)?,
                project: row.get(5)?,
            })
        })
    }

    /// The place of an event, even if it was forgotten since.
    pub fn event_place(&self, event: Id) -> Result<Option<Seq>> {
        let sql = "select seq from events where event = ?1 order by seq limit 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.query_row([event.as_bytes()], |row| seq(row, 0)).optional()?)
    }

    /// Whether this event of our own log was folded, even if it was forgotten since.
    pub fn has_event(&self, event: Id) -> Result<bool> {
        let sql = "select 1 from events where event = ?1 and host = 0";
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.exists([event.as_bytes()])?)
    }

    /// Whether a prompt with this text was recorded within `margin_us` of a time.
    pub fn has_prompt_near(&self, text: &str, at_us: u64, margin_us: u64) -> Result<bool> {
        let sql = "select 1 from prompts where at_us between ?1 and ?2 and text = ?3";
        let (from_us, until_us) =
            (at_us.saturating_sub(margin_us), at_us.saturating_add(margin_us));
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.exists((from_us as i64, until_us as i64, text))?)
    }

    /// Current notes from Claude Code's auto memory, in all projects. Claude Code reads its own
    /// files.
    pub fn auto_memory_notes(&self) -> Result<Vec<AutoMemoryNote>> {
        let sql = "select coalesce(metadata ->> 'file', ''), coalesce(narrative, ''), event, number
                   from observations indexed by observations_auto_memory
                   where origin = 'auto-memory' and is_visible and not is_retired";
        self.rows(sql, (), |row| {
            let observation = ObservationRef { event: row.get(2)?, number: row.get(3)? };
            Ok(AutoMemoryNote { file: row.get(0)?, text: row.get(1)?, observation })
        })
    }

    /// Every event of a session with its kind, in order; empty if the session is unknown.
    pub fn events_of_session(&self, platform: &str, session: &str) -> Result<Vec<(Id, u16)>> {
        let sql = "select id from sessions where platform = ?1 and session = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let row: Option<i64> =
            statement.query_row((platform, session), |row| row.get(0)).optional()?;
        let Some(row) = row else { return Ok(Vec::new()) };
        let sql = "select event, kind from events where session = ?1 order by at_us, seq";
        self.rows(sql, [row], |row| {
            Ok((Id::from_bytes(row.get::<_, [u8; 16]>(0)?), row.get::<_, u16>(1)?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::EventQuery;
    use crate::test_log::TestLog;
    use claude_mem_events::{Forgotten, Id};

    #[test]
    fn events_are_listed_newest_first_without_forgotten_ones() {
        let mut scene = TestLog::new();
        let prompt = scene.prompt("hello");
        let tool = scene.tool("Bash", "{}");
        let secret = scene.tool("Bash", "{}");
        scene.add(Forgotten { events: vec![secret], ..Forgotten::default() });
        let store = scene.fold();
        let list = |query: &EventQuery| {
            let rows = store.event_rows(&EventQuery { limit: 9, ..query.clone() }).unwrap();
            rows.into_iter().map(|row| (row.kind, *row.event.as_bytes())).collect::<Vec<_>>()
        };
        let all = list(&EventQuery::default());
        assert_eq!(all[0].0, "Forgotten");
        assert_eq!(all[1..], [("ToolUsed", tool), ("PromptSubmitted", prompt)]);
        let kind = Some("ToolUsed".into());
        let project = Some("p".into());
        assert_eq!(list(&EventQuery { kind, project, ..EventQuery::default() }), all[1..2]);
        let before = store.event_place(Id::from_bytes(tool)).unwrap();
        assert_eq!(list(&EventQuery { before, ..EventQuery::default() }), all[2..]);
        assert_eq!(list(&EventQuery { after: before, ..EventQuery::default() }), all[..1]);
        let session = Some("unknown".into());
        assert_eq!(list(&EventQuery { session, ..EventQuery::default() }), []);
    }

    #[test]
    fn folded_events_are_found_by_id_and_session() {
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
