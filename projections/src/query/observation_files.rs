//! Observations that matter before a file is used.

use crate::{
    Store,
    error::Result,
    fold::files_touched::relative,
    query::search::{Kind, MemoryId},
};

/// A file, and the observations to search.
#[derive(Debug, Clone, Default)]
pub struct FileQuery<'a> {
    /// The path, as the client names it.
    pub path: &'a str,
    /// The folder that the path is relative to, if it is.
    pub cwd: &'a str,
    /// The key of the project.
    pub project: &'a str,
    /// The folder of the project.
    pub root: &'a str,
    /// Only observations before this time, in microseconds since 1970.
    pub until_us: u64,
    /// Excludes the observations of this session, which are in its history.
    pub session: &'a str,
    /// Maximum number of observations.
    pub limit: usize,
}

impl Store {
    /// The decisions, rules, notes, weaknesses and pitfalls that have this file among their files,
    /// latest first. If there are none, this is one lookup in an index.
    pub fn observations_of_file(&self, query: &FileQuery<'_>) -> Result<Vec<MemoryId>> {
        let file = relative(query.path, query.cwd, query.root);
        let sql = "select observations.id, observations.at_us
                   from observation_files join observations on observations.id = observation
                   where file = ?1 and observation_files.project = ?2 and is_visible
                   and not is_retired
                       and observations.at_us < ?3 and (session is null or session is not
                           (select id from sessions where session = ?4 and log = 0))
                   order by observation desc limit ?5";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut found: Vec<(i64, i64)> = Vec::new();
        for project in self.merged_projects(query.project)? {
            let until = i64::try_from(query.until_us).unwrap_or(i64::MAX);
            let parameters = (&file, project, until, query.session, query.limit as i64);
            let rows = statement.query_map(parameters, |row| Ok((row.get(1)?, row.get(0)?)))?;
            for row in rows {
                found.push(row?);
            }
        }
        found.sort_unstable_by_key(|row| std::cmp::Reverse(*row));
        let name = |(_, id)| MemoryId { kind: Kind::Observation, id };
        Ok(found.into_iter().map(name).take(query.limit).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::TestLog;

    fn observation(kind: &str, concept: &str, files: &str) -> String {
        format!(
            "<observation><type>{kind}</type><title>{kind} {concept}</title><concepts>\
             <concept>{concept}</concept></concepts><files_read><file>{files}</file></files_read>\
             </observation>"
        )
    }

    fn found(store: &Store, path: &str, session: &str) -> Vec<i64> {
        let query = FileQuery {
            path,
            cwd: "/p/src",
            project: "k",
            root: "/p",
            until_us: u64::MAX,
            session,
            limit: 9,
        };
        let names = store.observations_of_file(&query).unwrap();
        names.into_iter().map(|name| name.id).collect()
    }

    #[test]
    fn choices_wishes_and_traps_are_found_by_their_file() {
        let mut scene = TestLog::new();
        let tool = scene.tool("Bash", "{}");
        let reply = [
            observation("decision", "trade-off", "src/a.rs"),
            observation("discovery", "how-it-works", "src/a.rs"),
            observation("discovery", "gotcha", "/p/src/a.rs"),
            observation("rule", "pattern", "src/b.rs"),
        ];
        scene.reply(&[tool], &reply.concat());
        let edit = scene.tool("Edit", r#"{"file_path":"/p/src/c.rs"}"#);
        let forgotten = scene.reply(&[edit], &observation("bugfix", "gotcha", "src/c.rs"));
        let store = scene.fold();
        assert_eq!(found(&store, "/p/src/a.rs", "other"), [3, 1]);
        assert_eq!(found(&store, "a.rs", ""), [3, 1], "relative to the working directory");
        assert_eq!(found(&store, "/p/src/b.rs", "other"), [4]);
        assert_eq!(found(&store, "/p/src/c.rs", "other"), [5], "a file that was written");
        assert_eq!(found(&store, "/p/a.rs", "other"), [0; 0]);
        assert_eq!(found(&store, "/q/src/a.rs", "other"), [0; 0]);
        assert_eq!(found(&store, "/p/src/a.rs", "s"), [0; 0], "its own session");
        let rows = vec![format!("{}/1", claude_mem_events::Id::from_bytes(forgotten))];
        scene.add(claude_mem_events::Forgotten { rows, ..Default::default() });
        let store = scene.fold();
        assert_eq!(found(&store, "/p/src/c.rs", "other"), [0; 0]);
        let left = store.dump("select distinct file from observation_files").unwrap();
        assert_eq!(left, "src/a.rs\nsrc/b.rs\n");
    }
}
