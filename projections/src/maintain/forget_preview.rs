//! Preview of a forgetting, and the search for what it should name.

use crate::{
    error::Result,
    fold::{
        files_touched,
        forgettings::Forgettings,
        projection::{Projection as _, ReadAhead, Rows},
    },
    query::search::{Kind, MemoryId},
    store::Store,
};
use claude_mem_events::{Envelope, Forgotten, Id, Recorded, Seq};
use std::collections::HashSet;

/// What a forgetting would remove.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ForgetPreview {
    pub events: u64,
    /// Visible memories.
    pub memories: Vec<MemoryId>,
}

/// Events, and memories that an agent made, by their addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ForgetTargets {
    pub events: Vec<Id>,
    /// Memories: the id of the reply, a slash, and the number in it.
    pub rows: Vec<String>,
}

impl Store {
    /// Applies a forgetting in a transaction, compares, and rolls back.
    pub fn forget_preview(&self, forgotten: &Forgotten) -> Result<ForgetPreview> {
        let before = self.visible()?;
        let trial = self.connection.unchecked_transaction()?;
        let (kinds, ahead) = ([], ReadAhead::default());
        let rows = Rows::new(&trial, &kinds, &ahead, 0);
        // After every event of our own log, and later than all events of other logs.
        let seq = Seq::from_raw((1 << 55) - 1);
        let id = Id::from_bytes([0xFF; 16]);
        let (envelope, event) = (Envelope::default(), forgotten.clone().into());
        Forgettings.apply(&rows, &Recorded { seq, id, envelope, event })?;
        let sql = "select events from forgettings where seq = ?1";
        let events: i64 = trial.query_row(sql, [seq.raw() as i64], |row| row.get(0))?;
        let after: HashSet<MemoryId> = self.visible()?.into_iter().collect();
        trial.rollback()?;
        let memories = before.into_iter().filter(|name| !after.contains(name)).collect();
        Ok(ForgetPreview { events: events as u64, memories })
    }

    fn visible(&self) -> Result<Vec<MemoryId>> {
        let mut names = Vec::new();
        for kind in Kind::ALL {
            let sql = format!("select id from visible_{} order by id", kind.table());
            let mut statement = self.connection.prepare_cached(&sql)?;
            let mut found = statement.query(())?;
            while let Some(row) = found.next()? {
                names.push(MemoryId { kind, id: row.get(0)? });
            }
        }
        Ok(names)
    }

    /// Tool uses and memories that name a file or a file in a folder.
    pub fn forget_targets_by_file(&self, file: &str) -> Result<ForgetTargets> {
        let file = files_touched::relative(file, "", "");
        let names = |list: &str| {
            format!(
                "exists (select 1 from json_each(coalesce({list}, '[]')) where value = ?1
                     or substr(value, 1, length(?1) + 1) = ?1 || '/'
                     or substr(value, -length(?1) - 1) = '/' || ?1)"
            )
        };
        let mut touching = ForgetTargets::default();
        let (read, written) = (names("files_read"), names("files_written"));
        let sql = format!("select event from tool_uses where {read} or {written}");
        self.events_of_rows(&sql, &file, &mut touching.events)?;
        for (table, written) in [("observations", "files_modified"), ("summaries", "files_edited")]
        {
            let condition = format!("{} or {}", names("files_read"), names(written));
            self.memories_where(table, &condition, &file, &mut touching)?;
        }
        Ok(touching)
    }

    /// Memories that contain this text, ignoring case.
    pub fn forget_targets_by_text(&self, text: &str) -> Result<ForgetTargets> {
        let mut touching = ForgetTargets::default();
        let (observation, summary) = (
            "concat_ws(char(10), title, subtitle, narrative, facts, concepts, files_read,
                 files_modified, metadata)",
            "concat_ws(char(10), request, investigated, learned, completed, next_steps, notes,
                 files_read, files_edited)",
        );
        for (table, columns) in [("observations", observation), ("summaries", summary)] {
            let condition = format!("instr(lower({columns}), lower(?1))");
            self.memories_where(table, &condition, text, &mut touching)?;
        }
        // The text of an observation before it was edited is still in the log.
        let edited =
            "id in (select observation from originals where instr(lower(concat_ws(char(10),
             originals.title, originals.subtitle, originals.narrative, originals.facts)),
             lower(?1)))";
        self.memories_where("observations", edited, text, &mut touching)?;
        let sql = "select event from prompts where instr(lower(text), lower(?1))";
        self.events_of_rows(sql, text, &mut touching.events)?;
        Ok(touching)
    }

    fn memories_where(
        &self,
        table: &str,
        condition: &str,
        value: &str,
        touching: &mut ForgetTargets,
    ) -> Result<()> {
        let sql = format!("select event, number, origin = 'agent' from {table} where {condition}");
        let mut statement = self.connection.prepare(&sql)?;
        let mut found = statement.query([value])?;
        while let Some(row) = found.next()? {
            let event = Id::from_bytes(row.get(0)?);
            match row.get(2)? {
                true => touching.rows.push(format!("{event}/{}", row.get::<_, i64>(1)?)),
                false => touching.events.push(event),
            }
        }
        Ok(())
    }

    fn events_of_rows(&self, sql: &str, value: &str, events: &mut Vec<Id>) -> Result<()> {
        let mut statement = self.connection.prepare(sql)?;
        let mut found = statement.query([value])?;
        while let Some(row) = found.next()? {
            events.push(Id::from_bytes(row.get(0)?));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::{TestLog, titled};

    #[test]
    fn a_preview_shows_matches_and_forgets_nothing() {
        let mut scene = TestLog::new();
        scene.prompt("go");
        let tool = scene.tool("Edit", r#"{"file_path":"/p/src/a.rs"}"#);
        let other = scene.tool("Bash", "{}");
        let reply = scene.reply(&[tool], &titled("a"));
        scene.reply(&[other], &titled("b"));
        let store = scene.fold();
        let forgotten = Forgotten { session: "s".into(), ..Forgotten::default() };
        let would = store.forget_preview(&forgotten).unwrap();
        assert_eq!((would.events, would.memories.len()), (5, 3));
        assert_eq!(store.dump("select count(*) from observations").unwrap(), "2\n");
        let touching = store.forget_targets_by_file("src/a.rs").unwrap();
        assert_eq!(touching.events, [Id::from_bytes(tool)]);
        assert_eq!(touching.rows, [format!("{}/1", Id::from_bytes(reply))]);
        assert_eq!(store.forget_targets_by_file("src/ab.rs").unwrap(), ForgetTargets::default());
        let rows = store.forget_targets_by_text("B").unwrap().rows;
        assert_eq!(rows.len(), 1, "{rows:?}");
    }

    #[test]
    fn events_and_memories_can_be_forgotten_together_and_a_reply_keeps_its_other_memories() {
        let mut scene = TestLog::new();
        let prompt = scene.prompt("go");
        let tool = scene.tool("Bash", "{}");
        let reply = scene.reply(&[tool], &(titled("a") + &titled("b")));
        let rows = vec![format!("{}/2", Id::from_bytes(reply))];
        scene.add(Forgotten { events: vec![prompt], rows, ..Forgotten::default() });
        let store = scene.fold();
        assert_eq!(store.dump("select title from observations").unwrap(), "a\n");
        assert_eq!(store.dump("select count(*) from prompts").unwrap(), "0\n");
    }
}
