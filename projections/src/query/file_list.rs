//! The files that recent memories are about.

use crate::{Store, error::Result, store::sql_values::number};
use rusqlite::named_params;

/// Maximum number of the newest observations that are counted, so that the time does not grow with
/// the database.
const OBSERVATIONS_MAX: u32 = 20_000;

/// A file and the memories about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCount {
    /// Its path, relative to the project if it is inside it.
    pub file: String,
    /// The name of the project.
    pub project: String,
    /// Number of visible observations that name it.
    pub observations: u64,
    /// How many of them changed it.
    pub changes: u64,
    /// The time of the last one, in microseconds since 1970.
    pub at_us: u64,
}

impl Store {
    /// The files that most of the newest observations name, of one project or all.
    pub fn file_counts(&self, project: Option<&str>, limit: u32) -> Result<Vec<FileCount>> {
        let within = match project {
            None => "",
            Some(_) => {
                "and project in (select id from projects where owner in
                     (select owner from projects where label = :project or key = :project))"
            }
        };
        let sql = format!(
            "with newest as (select project, at_us, files_read, files_modified
                 from visible_observations where not is_retired {within}
                 order by at_us desc limit {OBSERVATIONS_MAX}),
             named as (
                 select project, at_us, value, 1 as is_change
                     from newest, json_each(coalesce(files_modified, '[]'))
                 union all select project, at_us, value, 0
                     from newest, json_each(coalesce(files_read, '[]')) read
                     where not exists (select 1 from json_each(coalesce(files_modified,
                     '[]')) written
                         where written.value = read.value))
             select value, coalesce(owners.label, owners.key), count(*), sum(is_change), max(at_us)
             from named join projects on projects.id = named.project
                 join projects owners on owners.id = projects.owner
             where coalesce(:project, '') is not null
             group by value, owners.id order by count(*) desc, max(at_us) desc, value limit :limit"
        );
        self.rows(&sql, named_params! { ":project": project, ":limit": limit }, |row| {
            Ok(FileCount {
                file: row.get(0)?,
                project: row.get(1)?,
                observations: number(row, 2)?,
                changes: number(row, 3)?,
                at_us: number(row, 4)?,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::test_log::TestLog;

    #[test]
    fn files_are_counted_by_the_memories_that_name_them() {
        let mut scene = TestLog::new();
        let tool = scene.tool("Edit", r#"{"file_path":"/p/b.rs"}"#);
        let about = |read: &str, modified: &str| {
            format!(
                "<observation><type>bugfix</type><title>t</title><files_read><file>{read}</file>\
                 </files_read><files_modified><file>{modified}</file></files_modified>\
                 </observation>"
            )
        };
        scene.reply(&[tool], &(about("a.rs", "b.rs") + &about("b.rs", "b.rs")));
        let store = scene.fold();
        let counted = |project| {
            let found = store.file_counts(project, 10).unwrap();
            let row = |file: super::FileCount| (file.file, file.observations, file.changes);
            found.into_iter().map(row).collect::<Vec<_>>()
        };
        assert_eq!(counted(None), [("b.rs".into(), 2, 2), ("a.rs".into(), 1, 0)]);
        assert_eq!(counted(Some("p")).len(), 2);
        assert_eq!(counted(Some("unknown")), []);
    }
}
