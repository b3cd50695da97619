//! All visible memories for an export: project by project, in order of time.

use crate::{
    error::Result,
    store::{Store, sql_values::number},
};
use rusqlite::Row;

/// Which memories to export.
#[derive(Debug, Clone, Default)]
pub struct ExportQuery {
    /// From this time on.
    pub since_us: u64,
    /// Before this time; 0 for no end.
    pub until_us: u64,
    /// The key of a project; empty for all.
    pub project: String,
    /// A session; empty for all.
    pub session: String,
}

/// One memory in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportEntry {
    /// Its id; that of a summary starts with `S`.
    pub name: String,
    /// Its time, in microseconds since 1970.
    pub at_us: u64,
    /// The name of the project.
    pub project: String,
    /// The client's id of the session; empty for a note written outside of one.
    pub session: String,
    /// Its content.
    pub body: ExportBody,
}

/// The content of a memory; missing parts are empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportBody {
    Observation {
        /// `bugfix`, `decision` …
        kind: String,
        /// One line.
        title: String,
        /// Another line.
        subtitle: String,
        /// Some lines.
        narrative: String,
        /// Short statements.
        facts: Vec<String>,
        /// Files that were read or modified.
        files: Vec<String>,
    },
    /// A summary: headings, and the text below each.
    Summary(Vec<(&'static str, String)>),
}

impl Store {
    /// The number of memories that [`export`](Self::export) yields.
    pub fn export_count(&self, wanted: &ExportQuery) -> Result<u64> {
        let sql = format!("select count(*) from ({SQL})");
        Ok(self.connection.query_row(&sql, values(wanted), |row| number(row, 0))?)
    }

    /// Calls `each` with every visible memory.
    pub fn export<E: From<crate::Error>>(
        &self,
        wanted: &ExportQuery,
        mut each: impl FnMut(ExportEntry) -> Result<(), E>,
    ) -> Result<(), E> {
        let refused = |error| E::from(crate::Error::Sqlite(error));
        let mut statement = self.connection.prepare(SQL).map_err(refused)?;
        let mut rows = statement.query(values(wanted)).map_err(refused)?;
        while let Some(row) = rows.next().map_err(refused)? {
            each(entry(row).map_err(refused)?)?;
        }
        Ok(())
    }
}

/// The parameters of [`SQL`].
fn values(wanted: &ExportQuery) -> (i64, i64, &str, &str) {
    let time = |us: u64| i64::try_from(us).unwrap_or(i64::MAX);
    let until_us = if wanted.until_us == 0 { u64::MAX } else { wanted.until_us };
    (time(wanted.since_us), time(until_us), &wanted.project, &wanted.session)
}

const SQL: &str = "select memories.*, coalesce(owners.label, owners.key),
        coalesce(sessions.session, '')
    from (
        select 0 as is_summary, id, at_us, session, project, type, title, subtitle, narrative,
        facts,
            files_read, files_modified from visible_observations
        union all
        select 1, id, at_us, session, project, request, investigated, learned, completed,
        next_steps,
            notes, null from visible_summaries
    ) as memories
    join projects on projects.id = memories.project
    join projects as owners on owners.id = projects.owner
    left join sessions on sessions.id = memories.session
    where memories.at_us >= ?1 and memories.at_us < ?2
        and (?3 = '' or owners.key = ?3)
        and (?4 = '' or sessions.session = ?4)
    order by owners.key, memories.at_us, is_summary, memories.id";

fn entry(row: &Row<'_>) -> rusqlite::Result<ExportEntry> {
    let text = |column: usize| row.get::<_, Option<String>>(column).map(Option::unwrap_or_default);
    let id: i64 = row.get(1)?;
    let is_summary = row.get(0)?;
    let (name, body) = match is_summary {
        true => (format!("S{id}"), summary(text)?),
        false => (id.to_string(), observation(text)?),
    };
    let (project, session) = (text(12)?, text(13)?);
    Ok(ExportEntry { name, at_us: number(row, 2)?, project, session, body })
}

fn observation(text: impl Fn(usize) -> rusqlite::Result<String>) -> rusqlite::Result<ExportBody> {
    let list = |column| -> rusqlite::Result<Vec<String>> {
        Ok(serde_json::from_str(&text(column)?).unwrap_or_default())
    };
    let mut files = list(11)?;
    files.extend(list(10)?);
    let mut seen = std::collections::HashSet::new();
    files.retain(|file| seen.insert(file.clone()));
    Ok(ExportBody::Observation {
        kind: text(5)?,
        title: text(6)?,
        subtitle: text(7)?,
        narrative: text(8)?,
        facts: list(9)?,
        files,
    })
}

fn summary(text: impl Fn(usize) -> rusqlite::Result<String>) -> rusqlite::Result<ExportBody> {
    let headings = ["Request", "Investigated", "Learned", "Completed", "Next steps", "Notes"];
    let mut parts = Vec::new();
    for (column, heading) in (5..).zip(headings) {
        parts.push((heading, text(column)?));
    }
    parts.retain(|(_, text)| !text.is_empty());
    Ok(ExportBody::Summary(parts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::TestLog;

    fn names(store: &Store, wanted: &ExportQuery) -> Vec<String> {
        let mut names = Vec::new();
        let read: Result<()> = store.export(wanted, |entry| {
            names.push(entry.name);
            Ok(())
        });
        read.unwrap();
        names
    }

    #[test]
    fn memories_come_in_order_and_can_be_narrowed_down() {
        let mut scene = TestLog::new();
        let tool = scene.tool("Bash", "{}");
        let stop = scene.stop();
        let at_us = scene.at_us;
        scene.reply(
            &[tool, stop],
            "<observation><type>bugfix</type><title>a</title><narrative>n</narrative></observation>
             <summary><request>r</request></summary>",
        );
        let store = scene.fold();
        assert_eq!(names(&store, &ExportQuery::default()), ["1", "S1"]);
        let session = ExportQuery { session: "s".into(), ..ExportQuery::default() };
        assert_eq!(names(&store, &session).len(), 2);
        let other = ExportQuery { project: "other".into(), ..ExportQuery::default() };
        assert_eq!(names(&store, &other), [""; 0]);
        let later = ExportQuery { since_us: at_us + 1, ..ExportQuery::default() };
        assert_eq!(names(&store, &later), [""; 0]);
    }
}
