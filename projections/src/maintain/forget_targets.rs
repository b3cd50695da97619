//! Memories and forgettings as targets of `forget` and its undo.

use crate::{
    error::Result,
    hosts::ROWS_PER_HOST,
    query::search::{Kind, MemoryId},
    store::{
        Store,
        sql_values::{number, seq},
    },
    text::first_line,
};
use claude_mem_events::{Id, Seq};
use rusqlite::{OptionalExtension, Row};

/// A memory and the event that contains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemorySource {
    pub name: MemoryId,
    /// The reply, the prompt, the note or the import.
    pub event: Id,
    /// Its number in the event; `None` if it is all that the event contains.
    pub number: Option<i64>,
    /// Its time, in microseconds since 1970.
    pub at_us: u64,
    /// The name of its project.
    pub project: String,
    /// `bugfix`, `summary`, `prompt` …
    pub type_: String,
    /// Its title line.
    pub title: String,
    /// Its whole text.
    pub text: String,
}

/// A forgetting, as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forgetting {
    pub event: Id,
    /// Its place in the log.
    pub seq: Seq,
    /// Whether a compaction follows it, so that it cannot be undone.
    pub is_final: bool,
    /// Its time, in microseconds since 1970.
    pub at_us: u64,
    /// Number of memories it removed.
    pub memories: u64,
    /// Whether it was undone.
    pub is_void: bool,
    /// Whether it undoes another one.
    pub is_undoing: bool,
}

impl Store {
    /// The memory with this id and its event; `None` if it is not visible.
    pub fn memory_source(&self, name: MemoryId) -> Result<Option<MemorySource>> {
        let sql = match name.kind {
            Kind::Observation => {
                "select memory.event, iif(origin = 'agent', number, null), at_us, projects.label,
                     coalesce(type, 'observation'), coalesce(title, narrative, subtitle, facts, ''),
                     concat_ws(char(10), title, subtitle, narrative, facts, concepts, files_read,
                         files_modified)
                 from visible_observations memory join projects on projects.id = memory.project
                 where memory.id = ?1"
            }
            Kind::Summary => {
                "select memory.event, iif(origin = 'agent', number, null), at_us, projects.label,
                     'summary', coalesce(request, completed, learned, investigated, notes, ''),
                     concat_ws(char(10), request, investigated, learned, completed, next_steps,
                     notes,
                         files_read, files_edited)
                 from visible_summaries memory join projects on projects.id = memory.project
                 where memory.id = ?1"
            }
            Kind::Prompt => {
                "select memory.event, null, at_us, projects.label, 'prompt', text, text
                 from visible_prompts memory join projects on projects.id = memory.project
                 where memory.id = ?1"
            }
        };
        let found = |row: &Row<'_>| {
            Ok(MemorySource {
                name,
                event: Id::from_bytes(row.get(0)?),
                number: row.get(1)?,
                at_us: number(row, 2)?,
                project: row.get::<_, Option<String>>(3)?.unwrap_or_default(),
                type_: row.get(4)?,
                title: first_line(&row.get::<_, String>(5)?).to_owned(),
                text: row.get(6)?,
            })
        };
        Ok(self.connection.prepare_cached(sql)?.query_row([name.id], found).optional()?)
    }

    /// The memories that disappear when this event is forgotten: those it contains, and those made
    /// from it.
    pub fn memories_of_event(&self, event: Id) -> Result<Vec<MemoryId>> {
        let mut names = Vec::new();
        for kind in Kind::ALL {
            let sql = format!(
                "select id from visible_{} where seq in (
                     select seq from events where event = ?1
                     union select reply from answers join events on events.seq = answers.source
                     where events.event = ?1) order by id",
                kind.table()
            );
            let mut statement = self.connection.prepare_cached(&sql)?;
            let mut rows = statement.query([event.as_bytes()])?;
            while let Some(row) = rows.next()? {
                names.push(MemoryId { kind, id: row.get(0)? });
            }
        }
        Ok(names)
    }

    /// Returns whether a memory with this id was deleted, and the forget operation that deleted it
    /// if that is known.
    ///
    /// Ids are assigned in the order of the log, so a forgotten observation is between its
    /// neighbors. Of other kinds only the last id is known.
    pub fn forgotten_memory(&self, name: MemoryId) -> Result<Option<Option<Id>>> {
        let host = name.id / ROWS_PER_HOST;
        let table = name.kind.table();
        let sql = format!(
            "select not exists (select 1 from {table} where id = ?1) and ?1 > 0
                 and exists (select 1 from {table} where id > ?1 and host = ?2
                     union all select 1 from counters where name = ?3 and last >= ?1)"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let is_gone: bool = statement.query_row((name.id, host, table), |row| row.get(0))?;
        if !is_gone {
            return Ok(None);
        }
        if name.kind != Kind::Observation {
            return Ok(Some(None));
        }
        let sql = "select distinct forgettings.event from forgotten_observations as gone
                       join events on events.event = gone.event and events.host = ?2
                       join forgettings on forgettings.seq = gone.forgetting
                   where not forgettings.is_void
                       and events.seq >= coalesce((select seq from observations
                           where id < ?1 and host = ?2 order by id desc limit 1), 0)
                       and events.seq <= coalesce((select seq from observations
                           where id > ?1 and host = ?2 order by id limit 1), events.seq)
                   limit 2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = statement.query_map((name.id, host), |row| Ok(Id::from_bytes(row.get(0)?)))?;
        let found = found.collect::<rusqlite::Result<Vec<Id>>>()?;
        Ok(Some(match &found[..] {
            [one] => Some(*one),
            _ => None,
        }))
    }

    /// The forgettings whose id starts with this, latest first.
    pub fn forgettings(&self, beginning: &str) -> Result<Vec<Forgetting>> {
        let sql = "select event, at_us, memories, is_void, undoes is not null, seq,
                       exists (select 1 from compactions
                           where compactions.host = 0 and compactions.event > forgettings.event)
                   from forgettings where instr(lower(hex(event)), ?1) = 1 order by seq desc";
        let found = |row: &Row<'_>| {
            Ok(Forgetting {
                event: Id::from_bytes(row.get(0)?),
                at_us: number(row, 1)?,
                memories: number(row, 2)?,
                is_void: row.get(3)?,
                is_undoing: row.get(4)?,
                seq: seq(row, 5)?,
                is_final: row.get(6)?,
            })
        };
        let beginning = beginning.replace('-', "").to_lowercase();
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.query_map([beginning], found)?.collect::<rusqlite::Result<_>>()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::{TestLog, titled};
    use claude_mem_events::{Forgotten, MemoryAdded};

    fn name(text: &str) -> MemoryId {
        text.parse().unwrap()
    }

    #[test]
    fn a_memory_is_addressed_by_its_event() {
        let mut scene = TestLog::new();
        scene.prompt("go on");
        let tool = scene.tool("Bash", "{}");
        let reply = scene.reply(&[tool], &(titled("a") + &titled("b")));
        let text = "use tabs\neverywhere".into();
        let by_hand = scene.add(MemoryAdded { text, ..MemoryAdded::default() });
        let store = scene.fold();
        let found = |text| {
            let found = store.memory_source(name(text)).unwrap().unwrap();
            (*found.event.as_bytes(), found.number, found.type_, found.title)
        };
        assert_eq!(found("2"), (reply, Some(2), "feature".into(), "b".into()));
        assert_eq!(found("3"), (by_hand, None, "note".into(), "use tabs".into()));
        assert_eq!(found("P1").2, "prompt");
        for missing in ["4", "S1", "P2"] {
            assert_eq!(store.memory_source(name(missing)).unwrap(), None);
        }
        let made = store.memories_of_event(Id::from_bytes(tool)).unwrap();
        assert_eq!(made, [name("1"), name("2")]);
    }

    #[test]
    fn a_forgetting_is_found_by_the_beginning_of_its_id() {
        let mut scene = TestLog::new();
        let tool = scene.tool("Bash", "{}");
        scene.reply(&[tool], &titled("a"));
        let id =
            Id::from_bytes(scene.add(Forgotten { events: vec![tool], ..Forgotten::default() }));
        let store = scene.fold();
        let found = store.forgettings(&id.to_string()[..20]).unwrap();
        assert_eq!((found[0].event, found[0].memories, found[0].is_void), (id, 1, false));
        assert_eq!(store.forgettings("ffff").unwrap(), []);
        assert_eq!(store.forgotten_memory(name("1")).unwrap(), Some(Some(id)));
        assert_eq!(store.forgotten_memory(name("2")).unwrap(), None, "there never was one");
    }
}
