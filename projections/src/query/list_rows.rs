//! Memories as rows of a list.

use crate::{
    Store,
    error::Result,
    hosts::ROWS_PER_HOST,
    query::{
        details::{MemoryBody, select},
        marks::Marks,
        search::{Kind, MemoryId},
    },
    store::sql_values::number,
};
use rusqlite::{OptionalExtension, Row};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListRow {
    /// Its id: `12`, `S3`, `P9`.
    pub name: MemoryId,
    /// Its time, in microseconds since 1970.
    pub at_us: u64,
    /// The name of its project.
    pub project: String,
    /// Row id and client's id of its session.
    pub session: Option<(i64, String)>,
    /// The client of its session, such as `codex`.
    pub client: Option<String>,
    /// The number of its prompt in the session.
    pub prompt_number: Option<u32>,
    /// Its content.
    pub body: MemoryBody,
    /// `agent`, `user`, `import`; `hook` for prompts.
    pub origin: String,
    /// The model, if an agent made it.
    pub model: Option<String>,
    /// 0 for the initial distillation; else the number of the reprocessing.
    pub generation: u32,
    /// The type of the subagent that did the work.
    pub agent_type: Option<String>,
    /// Its share of the tokens.
    pub tokens: u64,
    pub is_superseded: bool,
    /// Whether it is pinned, edited, wrong or superseded.
    pub marks: Marks,
}

impl ListRow {
    /// Whether another machine recorded it.
    pub fn is_of_other_host(&self) -> bool {
        self.name.id >= ROWS_PER_HOST
    }
}

impl Store {
    /// The memories with these ids, in this order, visible or not. Unknown ids are left out.
    pub fn list_rows(&self, names: &[MemoryId]) -> Result<Vec<ListRow>> {
        let mut listed = Vec::with_capacity(names.len());
        for name in names {
            let sql = select(name.kind, columns(name.kind));
            let mut statement = self.connection.prepare_cached(&sql)?;
            let found = statement.query_row([name.id], |row| read(row, *name)).optional()?;
            let Some(mut row) = found else { continue };
            row.marks = self.marks(*name)?;
            row.is_superseded |= row.marks.correction().is_some();
            listed.push(row);
        }
        Ok(listed)
    }

    /// Whether a memory belongs to one of these projects.
    pub fn is_memory_of(&self, name: MemoryId, projects: &[i64]) -> Result<bool> {
        let sql = format!("select project from {} where id = ?1", name.kind.table());
        let mut statement = self.connection.prepare_cached(&sql)?;
        let project: Option<i64> = statement.query_row([name.id], |row| row.get(0)).optional()?;
        Ok(project.is_some_and(|project| projects.contains(&project)))
    }

    /// The folder of a memory's project, if it is known.
    pub fn project_root_of(&self, name: MemoryId) -> Result<Option<String>> {
        let sql = format!(
            "select projects.root from {} row join projects on projects.id = row.project where \
             row.id = ?1",
            name.kind.table()
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let root: Option<Option<String>> =
            statement.query_row([name.id], |row| row.get(0)).optional()?;
        Ok(root.flatten().filter(|root| !root.is_empty()))
    }

    /// The key of the project with the latest event.
    pub fn latest_project(&self) -> Result<Option<String>> {
        let sql = "select owners.key from sessions join projects on projects.id = sessions.project
                       join projects owners on owners.id = projects.owner
                   where sessions.forgotten_by is null order by sessions.at_us desc limit 1";
        Ok(self.connection.prepare_cached(sql)?.query_row((), |row| row.get(0)).optional()?)
    }
}

/// The columns of a list row, in addition to those of every memory.
fn columns(kind: Kind) -> &'static str {
    match kind {
        Kind::Observation => {
            "row.session, row.model, row.generation, row.tokens, row.agent_type,
                 sessions.client"
        }
        Kind::Summary => {
            "row.session, row.model, row.generation, row.tokens, null, sessions.client"
        }
        Kind::Prompt => "row.session, null, 0, 0, null, sessions.client",
    }
}

fn read(row: &Row<'_>, name: MemoryId) -> rusqlite::Result<ListRow> {
    let session = row.get::<_, Option<i64>>(6)?;
    Ok(ListRow {
        name,
        at_us: number(row, 0)?,
        project: row.get(1)?,
        session: session.zip(row.get(2)?),
        prompt_number: row.get(3)?,
        client: row.get(11)?,
        body: MemoryBody::read(row, name.kind, 12)?,
        origin: row.get(4)?,
        model: row.get(7)?,
        generation: row.get(8)?,
        agent_type: row.get(10)?,
        tokens: number(row, 9)?,
        is_superseded: row.get(5)?,
        marks: Marks::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::TestLog;

    #[test]
    fn a_memory_is_listed_with_its_project_and_session() {
        let mut scene = TestLog::new();
        scene.prompt("fix it");
        let tool = scene.tool("Edit", "{}");
        let reply = "<observation><type>bugfix</type><title>fixed</title></observation>\
                     <summary><request>fix it</request></summary>";
        scene.reply(&[tool], reply);
        let names: Vec<MemoryId> = ["P1", "S1", "1", "9"].map(|name| name.parse().unwrap()).into();
        let found = scene.fold().list_rows(&names).unwrap();
        let [prompt, summary, observation] = &found[..] else { panic!("{found:?}") };
        assert_eq!(prompt.body, MemoryBody::Prompt { text: Some("fix it".into()) });
        assert!(
            matches!(&summary.body, MemoryBody::Summary(body) if body.request.as_deref() == Some("fix it"))
        );
        assert_eq!(observation.session, Some((1, "s".into())));
        assert_eq!(observation.client.as_deref(), Some("claude-code"));
        assert_eq!((observation.prompt_number, observation.project.as_str()), (Some(1), "p"));
        let made = (observation.origin.as_str(), observation.model.as_deref());
        assert_eq!(made, ("agent", Some("m")));
        assert!(!observation.is_superseded);
    }
}
