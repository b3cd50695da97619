//! What might be worth telling a session that begins: rows, not yet chosen from.

use crate::{error::Result, store::Store};
use rusqlite::{OptionalExtension, Row, named_params};

/// For whom.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// The project, by key.
    pub project: &'a str,
    /// Only what was remembered before this moment.
    pub until_us: u64,
    /// Only what was remembered after this moment, by other sessions than the one named.
    pub since: Option<(u64, &'a str)>,
    /// Only these types; empty for all.
    pub types: &'a [String],
    /// Only what has one of these concepts; empty for all.
    pub concepts: &'a [String],
    /// How many observations to look at, the latest ones.
    pub observations_max: u32,
    /// How many summaries.
    pub summaries_max: u32,
}

/// What there is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Material {
    /// Memories written by hand, the latest one first.
    pub by_hand: Vec<Memory>,
    /// What the agent observed, the latest one first.
    pub observations: Vec<Memory>,
    /// Summaries, the latest one first, one for each session.
    pub summaries: Vec<Summary>,
    /// How many observations there are in all.
    pub observations_total: u64,
    /// How many sessions.
    pub sessions_total: u64,
}

/// An observation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Memory {
    /// By which it can be fetched.
    pub id: i64,
    /// When.
    pub at_us: u64,
    /// Row of the session; none for what was written by hand outside of one.
    pub session: Option<i64>,
    /// `bugfix`, `decision` …
    pub kind: String,
    /// One line.
    pub title: String,
    /// Some lines; empty if there are none.
    pub narrative: String,
    /// Short statements.
    pub facts: Vec<String>,
    /// Relative to the project's root where inside it.
    pub files: Vec<String>,
    /// Whether a subagent did all of it.
    pub is_of_subagent: bool,
}

/// What was done in a session, up to its last stop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// By which it can be fetched, behind an `S`.
    pub id: i64,
    /// When.
    pub at_us: u64,
    /// Row of the session.
    pub session: Option<i64>,
    /// What was asked for.
    pub request: String,
    /// What was looked into.
    pub investigated: String,
    /// What was found out.
    pub learned: String,
    /// What was done.
    pub completed: String,
    /// What remains.
    pub next_steps: String,
}

/// The latest rows of one project.
const RANGE: &str = "project = :project and at_us < :until and at_us > :since
    and (:but = '' or session is not (select id from sessions where session = :but and log = 0))
    order by at_us desc, id desc limit :limit";

/// What is written by hand is told first, so there is a bound to it.
const BY_HAND_MAX: u32 = 50;

/// More summaries are read than wanted, because a session has one for each stop.
const STOPS_PER_SESSION: u32 = 8;

impl Store {
    /// What might be worth telling. Costs the same however much is remembered.
    pub fn material(&self, wanted: &Wanted<'_>) -> Result<Material> {
        let projects = self.merged_projects(wanted.project)?;
        let by_hand = self.memories(wanted, &projects, "origin = 'user'", BY_HAND_MAX)?;
        let limit = wanted.observations_max;
        Ok(Material {
            by_hand,
            observations: self.memories(wanted, &projects, "origin != 'user'", limit)?,
            summaries: self.last_summaries(wanted, &projects)?,
            observations_total: self.total(&projects, "observations where is_visible and")?,
            sessions_total: self.total(&projects, "sessions where forgotten_by is null and")?,
        })
    }

    /// The moment something was last recorded of a session, before `until_us`.
    pub fn last_seen_us(&self, content_session: &str, until_us: u64) -> Result<Option<u64>> {
        let sql =
            "select max(events.at_us) from events join sessions on events.session = sessions.id
             where sessions.session = ?1 and events.at_us < ?2";
        let found: Option<Option<i64>> = self
            .connection
            .prepare_cached(sql)?
            .query_row((content_session, until_us as i64), |row| row.get(0))
            .optional()?;
        Ok(found.flatten().map(|at_us| at_us as u64))
    }

    /// Key, name and folder of the project that goes by this name or key; the one seen last, if several do.
    pub fn project_named(&self, name: &str) -> Result<Option<(String, String, String)>> {
        let sql = "select owners.key, coalesce(owners.label, ''), coalesce(owners.root, '')
             from projects join projects as owners on owners.id = projects.owner
             where projects.key = ?1 or projects.label = ?1
             order by (select max(at_us) from sessions where project = projects.id) desc limit 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = statement.query_row([name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        Ok(found.optional()?)
    }

    /// The project whose folder this is, or is in: key, label, root. The innermost, if several are.
    pub fn project_around(&self, folder: &str) -> Result<Option<(String, String, String)>> {
        let sql = "select owners.key, coalesce(owners.label, ''), projects.root
             from projects join projects as owners on owners.id = projects.owner
             where projects.root is not null and projects.root != ''
                 and substr(?1 || '/', 1, length(projects.root) + 1) = projects.root || '/'
             order by length(projects.root) desc, projects.id desc limit 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let folder = folder.trim_end_matches('/');
        let found =
            statement.query_row([folder], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        Ok(found.optional()?)
    }

    /// The project of a session, by the watched program's id of it: key, label, root.
    pub fn project_of(&self, session: &str) -> Result<Option<(String, String, String)>> {
        let sql = "select owners.key, coalesce(owners.label, ''), coalesce(projects.root, '')
             from sessions join projects on projects.id = sessions.project
                 join projects as owners on owners.id = projects.owner
             where sessions.session = ?1 order by sessions.at_us desc limit 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let found =
            statement.query_row([session], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        Ok(found.optional()?)
    }

    /// The project and all that were merged into it. Each is asked for alone, so that an index gives its
    /// latest rows without sorting all of them.
    fn merged_projects(&self, key: &str) -> Result<Vec<i64>> {
        let sql =
            "select id from projects where owner = (select owner from projects where key = ?1)";
        let mut statement = self.connection.prepare_cached(sql)?;
        let ids = statement.query_map([key], |row| row.get(0))?;
        Ok(ids.collect::<rusqlite::Result<_>>()?)
    }

    fn memories(
        &self,
        wanted: &Wanted<'_>,
        projects: &[i64],
        condition: &str,
        limit: u32,
    ) -> Result<Vec<Memory>> {
        let sql = format!(
            "select id, at_us, session, type, title, subtitle, narrative, facts, concepts, files_read,
                 files_modified, agent_type from observations
             where is_visible and {condition} and {RANGE}"
        );
        let mut memories = Vec::new();
        self.each(&sql, wanted, projects, limit, |row| {
            let concepts: Vec<String> = list(row, 8)?;
            let memory = memory(row)?;
            let is_of_type = wanted.types.is_empty() || wanted.types.contains(&memory.kind);
            let is_about = wanted.concepts.is_empty()
                || wanted.concepts.iter().any(|concept| concepts.contains(concept));
            if is_of_type && is_about {
                memories.push(memory);
            }
            Ok(())
        })?;
        memories.sort_by_key(|memory| std::cmp::Reverse((memory.at_us, memory.id)));
        memories.truncate(limit as usize);
        Ok(memories)
    }

    fn last_summaries(&self, wanted: &Wanted<'_>, projects: &[i64]) -> Result<Vec<Summary>> {
        let sql = format!(
            "select id, at_us, session, request, investigated, learned, completed, next_steps
             from summaries where is_visible and {RANGE}"
        );
        let mut all = Vec::new();
        let limit = wanted.summaries_max.saturating_mul(STOPS_PER_SESSION);
        self.each(&sql, wanted, projects, limit, |row| {
            all.push(summary(row)?);
            Ok(())
        })?;
        all.sort_by_key(|summary: &Summary| std::cmp::Reverse((summary.at_us, summary.id)));
        let mut latest: Vec<Summary> = Vec::new();
        for summary in all {
            let is_same =
                |other: &Summary| other.session.is_some() && other.session == summary.session;
            match latest.iter_mut().find(|other| is_same(other)) {
                // Of an earlier stop in a session already there: what was asked first is what it is about.
                Some(later) if !summary.request.is_empty() => later.request = summary.request,
                Some(_) => {}
                None => latest.push(summary),
            }
        }
        latest.truncate(wanted.summaries_max as usize);
        Ok(latest)
    }

    fn each(
        &self,
        sql: &str,
        wanted: &Wanted<'_>,
        projects: &[i64],
        limit: u32,
        mut take: impl FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let (since_us, but) = wanted.since.unwrap_or((0, ""));
        let mut statement = self.connection.prepare_cached(sql)?;
        for project in projects {
            let mut rows = statement.query(named_params! {
                ":project": project,
                ":until": i64::try_from(wanted.until_us).unwrap_or(i64::MAX),
                ":since": i64::try_from(since_us).unwrap_or(i64::MAX),
                ":but": but,
                ":limit": limit,
            })?;
            while let Some(row) = rows.next()? {
                take(row)?;
            }
        }
        Ok(())
    }

    fn total(&self, projects: &[i64], rows: &str) -> Result<u64> {
        let sql = format!("select count(*) from {rows} project = ?1");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut total = 0;
        for project in projects {
            total += statement.query_row([project], |row| row.get::<_, i64>(0))? as u64;
        }
        Ok(total)
    }
}

fn memory(row: &Row<'_>) -> Result<Memory> {
    let narrative = text(row, 6)?;
    let subtitle = text(row, 5)?;
    let mut files = list(row, 10)?;
    for file in list(row, 9)? {
        if !files.contains(&file) {
            files.push(file);
        }
    }
    Ok(Memory {
        id: row.get(0)?,
        at_us: row.get::<_, i64>(1)? as u64,
        session: row.get(2)?,
        kind: text(row, 3)?,
        title: text(row, 4)?,
        narrative: if narrative.is_empty() { subtitle } else { narrative },
        facts: list(row, 7)?,
        files,
        is_of_subagent: row.get::<_, Option<String>>(11)?.is_some(),
    })
}

fn summary(row: &Row<'_>) -> Result<Summary> {
    Ok(Summary {
        id: row.get(0)?,
        at_us: row.get::<_, i64>(1)? as u64,
        session: row.get(2)?,
        request: text(row, 3)?,
        investigated: text(row, 4)?,
        learned: text(row, 5)?,
        completed: text(row, 6)?,
        next_steps: text(row, 7)?,
    })
}

fn text(row: &Row<'_>, column: usize) -> Result<String> {
    Ok(row.get::<_, Option<String>>(column)?.unwrap_or_default())
}

fn list(row: &Row<'_>, column: usize) -> Result<Vec<String>> {
    let json: Option<String> = row.get(column)?;
    Ok(json.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default())
}
