//! Memories as lists show them: what each says, and whose it is.

use crate::{
    Store,
    details::Body,
    error::Result,
    projection::items,
    search::{Kind, Name},
};
use rusqlite::{OptionalExtension, Row};

/// A memory in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// How to name it: `12`, `S3`, `P9`.
    pub name: Name,
    /// When it happened, in microseconds since 1970.
    pub at_us: u64,
    /// The name of its project.
    pub project: String,
    /// Its session: its number, and the watched program's id of it.
    pub session: Option<(i64, String)>,
    /// The prompt that it belongs to, counted within the session.
    pub prompt_number: Option<u32>,
    /// What it says.
    pub body: Body,
    /// `agent`, `user`, `import`; `hook` for prompts.
    pub origin: String,
    /// Who made it, if an agent did.
    pub model: Option<String>,
    /// 0 as the work went on; above that, which reprocessing made it.
    pub generation: u32,
    /// The kind of subagent whose work it is about.
    pub agent_type: Option<String>,
    /// Its share of the tokens that were spent on it.
    pub tokens: u64,
    /// Whether others have taken its place.
    pub is_superseded: bool,
}

/// The columns before those of the body.
const HEAD: usize = 11;

impl Store {
    /// The memories of these names, in this order, shown or not. Names of nothing are left out.
    pub fn listed(&self, names: &[Name]) -> Result<Vec<Listed>> {
        let mut listed = Vec::with_capacity(names.len());
        for name in names {
            let mut statement = self.connection.prepare_cached(sql(name.kind))?;
            listed.extend(statement.query_row([name.id], |row| read(row, *name)).optional()?);
        }
        Ok(listed)
    }

    /// Whether a memory belongs to one of these projects.
    pub fn is_of(&self, name: Name, projects: &[i64]) -> Result<bool> {
        let sql = format!("select project from {} where id = ?1", name.kind.table());
        let mut statement = self.connection.prepare_cached(&sql)?;
        let project: Option<i64> = statement.query_row([name.id], |row| row.get(0)).optional()?;
        Ok(project.is_some_and(|project| projects.contains(&project)))
    }

    /// Where the project of a memory is, if that is known.
    pub fn root_of(&self, name: Name) -> Result<Option<String>> {
        let sql = format!(
            "select projects.root from {} row join projects on projects.id = row.project where row.id = ?1",
            name.kind.table()
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let root: Option<Option<String>> =
            statement.query_row([name.id], |row| row.get(0)).optional()?;
        Ok(root.flatten().filter(|root| !root.is_empty()))
    }

    /// The key of the project that was worked on last.
    pub fn latest_project(&self) -> Result<Option<String>> {
        let sql = "select owners.key from sessions join projects on projects.id = sessions.project
                       join projects owners on owners.id = projects.owner
                   where sessions.forgotten_by is null order by sessions.at_us desc limit 1";
        Ok(self.connection.prepare_cached(sql)?.query_row((), |row| row.get(0)).optional()?)
    }
}

macro_rules! select {
    ($table:literal, $number:literal, $head:literal, $columns:literal) => {
        concat!(
            "select row.at_us, coalesce(owners.label, owners.key), row.session, sessions.session, row.",
            $number,
            ", ",
            $head,
            ", ",
            $columns,
            " from ",
            $table,
            " row join projects on projects.id = row.project
                 join projects owners on owners.id = projects.owner
                 left join sessions on sessions.id = row.session
             where row.id = ?1"
        )
    };
}

fn sql(kind: Kind) -> &'static str {
    match kind {
        Kind::Observation => select!(
            "observations",
            "prompt_number",
            "row.origin, row.model, row.generation, row.agent_type, row.tokens, not row.is_visible",
            "row.type, row.title, row.subtitle, row.narrative, row.facts, row.concepts, row.files_read,
                 row.files_modified"
        ),
        Kind::Summary => select!(
            "summaries",
            "prompt_number",
            "row.origin, row.model, row.generation, null, row.tokens, not row.is_visible",
            "row.request, row.investigated, row.learned, row.completed, row.next_steps, row.notes,
                 row.files_read, row.files_edited"
        ),
        Kind::Prompt => {
            select!("prompts", "number", "'hook', null, 0, null, 0, 0", "row.text")
        }
    }
}

fn read(row: &Row<'_>, name: Name) -> rusqlite::Result<Listed> {
    let number = row.get::<_, Option<i64>>(2)?;
    let session = number.zip(row.get::<_, Option<String>>(3)?);
    Ok(Listed {
        name,
        at_us: row.get::<_, i64>(0)? as u64,
        project: row.get(1)?,
        session,
        prompt_number: row.get(4)?,
        body: body(row, name.kind)?,
        origin: row.get(5)?,
        model: row.get(6)?,
        generation: row.get(7)?,
        agent_type: row.get(8)?,
        tokens: row.get::<_, i64>(9)? as u64,
        is_superseded: row.get(10)?,
    })
}

fn body(row: &Row<'_>, kind: Kind) -> rusqlite::Result<Body> {
    let text = |at: usize| row.get::<_, Option<String>>(HEAD + at);
    let list = |at: usize| text(at).map(|list| items(list.as_deref()));
    Ok(match kind {
        Kind::Observation => Body::Observation {
            type_: text(0)?,
            title: text(1)?,
            subtitle: text(2)?,
            narrative: text(3)?,
            facts: list(4)?,
            concepts: list(5)?,
            files_read: list(6)?,
            files_modified: list(7)?,
        },
        Kind::Summary => Body::Summary {
            request: text(0)?,
            investigated: text(1)?,
            learned: text(2)?,
            completed: text(3)?,
            next_steps: text(4)?,
            notes: text(5)?,
            files_read: list(6)?,
            files_edited: list(7)?,
        },
        Kind::Prompt => Body::Prompt { text: text(0)? },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Scene;

    #[test]
    fn a_memory_is_listed_with_whose_it_is() {
        let mut scene = Scene::new();
        scene.prompt("fix it");
        let tool = scene.tool("Edit", "{}");
        let reply = "<observation><type>bugfix</type><title>fixed</title></observation>\
                     <summary><request>fix it</request></summary>";
        scene.reply(&[tool], reply);
        let names: Vec<Name> = ["P1", "S1", "1", "9"].map(|name| name.parse().unwrap()).into();
        let found = scene.fold().listed(&names).unwrap();
        let [prompt, summary, observation] = &found[..] else { panic!("{found:?}") };
        assert_eq!(prompt.body, Body::Prompt { text: Some("fix it".into()) });
        assert!(
            matches!(&summary.body, Body::Summary { request: Some(said), .. } if said == "fix it")
        );
        assert_eq!(observation.session, Some((1, "s".into())));
        assert_eq!((observation.prompt_number, observation.project.as_str()), (Some(1), "p"));
        let made = (observation.origin.as_str(), observation.model.as_deref());
        assert_eq!(made, ("agent", Some("m")));
        assert!(!observation.is_superseded);
    }
}
