//! The numbers of a status line: few queries, each on an index.

use crate::{Store, error::Result, store::sql_values::number};

/// The numbers of a status line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatusLineCounts {
    /// Visible observations of the project, including those of projects merged into it.
    pub memories: u64,
    /// Pending tool uses and stops of this machine, in all projects.
    pub pending: u64,
    /// Parked ones.
    pub parked: u64,
}

impl Store {
    /// Counts for the project with this key.
    pub fn status_line_counts(&self, project: &str) -> Result<StatusLineCounts> {
        let sql = "select (select count(*) from observations where is_visible and project in
                       (select id from projects where owner in
                           (select owner from projects where key = ?1))),
                   pending, parked from due_totals";
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.query_row([project], |row| {
            Ok(StatusLineCounts {
                memories: number(row, 0)?,
                pending: number(row, 1)?,
                parked: number(row, 2)?,
            })
        })?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::{TestLog, titled};

    #[test]
    fn memories_are_of_the_project_and_pending_events_of_the_machine() {
        let mut scene = TestLog::new();
        scene.prompt("one");
        let read = scene.tool("Read", "{}");
        scene.reply(&[read], &(titled("a") + &titled("b")));
        scene.stop();
        scene.envelope.project.key = "other".into();
        scene.envelope.session = "t".into();
        scene.tool("Bash", "{}");
        let store = scene.fold();
        let counts = |key| store.status_line_counts(key).unwrap();
        assert_eq!(counts("k"), StatusLineCounts { memories: 2, pending: 2, parked: 0 });
        assert_eq!(counts("other"), StatusLineCounts { memories: 0, pending: 2, parked: 0 });
        assert_eq!(counts("unknown").memories, 0);
    }
}
