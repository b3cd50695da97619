//! Finds the turns that edited a file, with their prompts and memories.

use crate::{
    Store,
    error::Result,
    query::search::{Kind, MemoryId},
    store::sql_values::{number, seq},
};
use claude_mem_events::Seq;
use rusqlite::{OptionalExtension, named_params};

/// The names under which edits of a file are recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileNames {
    /// Key of the project that the file is in.
    pub project: String,
    /// Relative to the top folder of that project.
    pub relative: Vec<String>,
    /// Whole paths.
    pub absolute: Vec<String>,
}

/// A tool use within a turn. Its content is in the log, at `seq`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnToolUse {
    /// Its place in the log.
    pub seq: Seq,
    /// Its time, in microseconds since 1970.
    pub at_us: u64,
    pub session: i64,
    /// Number of the prompt that began the turn; 0 before the first one.
    pub turn: u32,
}

/// A turn and its memories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnView {
    /// The client's id of the session.
    pub session: String,
    /// The name of the project.
    pub project: String,
    /// The branch at the last event of the session; `None` if it is unknown.
    pub branch: Option<String>,
    /// The prompt that began it, with its text unless it is private.
    pub prompt: Option<(MemoryId, Option<String>)>,
    /// Memories distilled from the given tool uses.
    pub memories: Vec<TurnMemory>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnMemory {
    /// `12`, `S3`.
    pub name: MemoryId,
    /// The type of an observation, such as `bugfix`.
    pub type_: Option<String>,
    /// Its title with its marks, or the completed work of the summary.
    pub title: String,
}

impl Store {
    /// Tool uses that wrote a file, newest first.
    pub fn file_edits(&self, file: &FileNames) -> Result<Vec<TurnToolUse>> {
        let sql = "select row.seq, row.at_us, row.session, row.turn
            from tool_uses as row join projects on projects.id = row.project
            where row.files_written is not null and exists (
                select 1 from json_each(row.files_written) as written
                where written.value in (select value from json_each(:absolute))
                    or projects.root || '/' || written.value in (select value
                    from json_each(:absolute))
                    or written.value in (select value from json_each(:relative))
                        and projects.owner in (select owner from projects where key = :project))
            order by row.at_us desc, row.seq desc";
        let list = |names: &[String]| serde_json::to_string(names).unwrap_or_default();
        let values = named_params! {
            ":absolute": list(&file.absolute), ":relative": list(&file.relative),
            ":project": file.project,
        };
        self.rows(sql, values, read_use)
    }

    /// The first tool uses in a project from `since_us` until before `until_us`, at most `limit`.
    pub fn tool_uses_between(
        &self,
        project: &str,
        since_us: u64,
        until_us: u64,
        limit: u32,
    ) -> Result<Vec<TurnToolUse>> {
        let sql = "select seq, at_us, session, turn from tool_uses
            where at_us >= ?2 and at_us < ?3 and project in (select id from projects
                where owner in (select owner from projects where key = ?1))
            order by at_us, seq limit ?4";
        let mut statement = self.connection.prepare_cached(sql)?;
        let values = (project, since_us as i64, until_us as i64, limit);
        let uses = statement.query_map(values, read_use)?;
        Ok(uses.collect::<rusqlite::Result<_>>()?)
    }

    /// The turn of these tool uses, which are all of the same turn; `None` if there are none.
    pub fn turn_view(&self, uses: &[TurnToolUse]) -> Result<Option<TurnView>> {
        let Some(first) = uses.first() else { return Ok(None) };
        let sql = "select sessions.session, coalesce(owners.label, owners.key), branch
            from sessions join projects on projects.id = sessions.project
                join projects as owners on owners.id = projects.owner where sessions.id = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut view = statement.query_row([first.session], |row| {
            Ok(TurnView {
                session: row.get(0)?,
                project: row.get(1)?,
                branch: row.get(2)?,
                prompt: None,
                memories: Vec::new(),
            })
        })?;
        let sql = "select id, text from prompts where session = ?1 and turn = ?2
            order by number, seq limit 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let prompt = statement.query_row((first.session, first.turn), |row| {
            Ok((MemoryId { kind: Kind::Prompt, id: row.get(0)? }, row.get(1)?))
        });
        view.prompt = prompt.optional()?;
        for used in uses {
            for memory in self.memories_of(used.seq)? {
                if !view.memories.contains(&memory) {
                    view.memories.push(memory);
                }
            }
        }
        Ok(Some(view))
    }

    /// The visible memories in the replies to an event.
    fn memories_of(&self, source: Seq) -> Result<Vec<TurnMemory>> {
        let sql = "select 0, id, type, coalesce(title, subtitle, narrative, '')
            from visible_observations
                where seq in (select reply from answers where source = ?1)
            union all
            select 1, id, null, coalesce(completed, request, learned, notes, '')
            from visible_summaries
                where seq in (select reply from answers where source = ?1)
            order by 1, 2";
        let mut memories = self.rows(sql, [source.raw() as i64], |row| {
            let kind = if row.get(0)? { Kind::Summary } else { Kind::Observation };
            let name = MemoryId { kind, id: row.get(1)? };
            Ok(TurnMemory { name, type_: row.get(2)?, title: row.get(3)? })
        })?;
        for memory in &mut memories {
            memory.title = self.marks(memory.name)?.before(&memory.title);
        }
        Ok(memories)
    }
}

fn read_use(row: &rusqlite::Row<'_>) -> rusqlite::Result<TurnToolUse> {
    Ok(TurnToolUse {
        seq: seq(row, 0)?,
        at_us: number(row, 1)?,
        session: row.get(2)?,
        turn: row.get(3)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::{BEGIN_US, TestLog, titled};

    fn names(project: &str, relative: &str, absolute: &str) -> FileNames {
        FileNames {
            project: project.into(),
            relative: vec![relative.into()],
            absolute: vec![absolute.into()],
        }
    }

    #[test]
    fn edits_are_found_by_every_name_of_the_file_and_lead_to_their_turn() {
        let mut scene = TestLog::new();
        scene.prompt("fix a");
        let edit = scene.tool("Edit", r#"{"file_path":"/p/src/a.rs"}"#);
        scene.tool("Edit", r#"{"file_path":"/p/b.rs"}"#);
        scene.reply(&[edit], &(titled("fixed a") + "<summary><completed>c</completed></summary>"));
        let later = scene.tool("Read", "{}");
        scene.reply(&[later], "<corrects>fixed a</corrects>");
        scene.prompt("again");
        scene.tool("Write", r#"{"file_path":"/p/src/a.rs"}"#);
        scene.envelope.project.key = "other".into();
        scene.envelope.project.root = "/q".into();
        scene.envelope.session = "t".into();
        scene.tool("Write", r#"{"file_path":"/q/src/a.rs"}"#);
        let store = scene.fold();
        let turns = |file: &FileNames| {
            let edits = store.file_edits(file).unwrap();
            edits.iter().map(|edit| (edit.session, edit.turn)).collect::<Vec<_>>()
        };
        // Another checkout of the same project has another top folder.
        assert_eq!(turns(&names("k", "src/a.rs", "/checkout/src/a.rs")), [(1, 2), (1, 1)]);
        assert_eq!(turns(&names("/p/src", "a.rs", "/p/src/a.rs")), [(1, 2), (1, 1)]);
        assert_eq!(turns(&names("other", "src/a.rs", "/q/src/a.rs")), [(2, 0)]);
        assert_eq!(turns(&names("k", "c.rs", "/p/c.rs")), []);
        let edits = store.file_edits(&names("k", "src/a.rs", "")).unwrap();
        let turn = store.turn_view(&edits[1..]).unwrap().unwrap();
        let prompt = turn.prompt.unwrap();
        assert_eq!((prompt.0.to_string(), prompt.1.as_deref()), ("P1".into(), Some("fix a")));
        let titles: Vec<&str> = turn.memories.iter().map(|memory| &memory.title[..]).collect();
        assert_eq!(titles, ["[withdrawn] fixed a", "c"]);
        assert_eq!(store.turn_view(&[]).unwrap(), None);
        let first = store.tool_uses_between("k", BEGIN_US, BEGIN_US + 60_000_000, 1).unwrap();
        assert_eq!(first[0].at_us, BEGIN_US + 2_000_000);
    }
}
