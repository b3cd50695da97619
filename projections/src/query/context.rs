//! Candidates for the context of a new session.

use super::context_sessions::ContextSession;
use super::marks::Marks;
use super::search::{Kind, MemoryId};
use crate::{
    error::Result,
    store::{Store, sql_values::number},
};
use claude_mem_events::Id;
use rusqlite::{OptionalExtension, Row, named_params};

/// The session that the context is for.
#[derive(Debug, Clone)]
pub struct ContextQuery<'a> {
    /// The key of the project.
    pub project: &'a str,
    /// The folder of the project, for notes that apply to a folder tree.
    pub root: &'a str,
    /// Only memories before this time.
    pub until_us: u64,
    /// Only memories after this time, of other sessions than the one named.
    pub since: Option<(u64, &'a str)>,
    /// Only memories of sessions of this client.
    pub client: Option<&'a str>,
    /// Whether the client reads the files of Claude Code's auto memory itself.
    pub reads_auto_memory: bool,
    /// Only these types; empty for all.
    pub types: &'a [String],
    /// Only memories with one of these concepts; empty for all.
    pub concepts: &'a [String],
    /// Maximum number of observations; the latest are used.
    pub observations_max: u32,
    /// Maximum number of sessions.
    pub sessions_max: u32,
}

/// The candidates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextMaterial {
    /// The name of the project; empty if nothing is known of it.
    pub project_name: String,
    /// Observations that are pinned, latest first. They are in no other list.
    pub pinned: Vec<ContextNote>,
    /// Notes of the user, latest first.
    pub by_hand: Vec<ContextObservation>,
    /// Notes of Claude and of programs, and notes and rules of the user that they edited, latest
    /// first.
    pub noted: Vec<ContextNote>,
    /// Notes of other projects that apply here as well, latest first.
    pub wide: Vec<ContextNote>,
    /// Rules of the user that were observed, of any age, latest first.
    pub rules: Vec<ContextObservation>,
    /// Other observations, latest first.
    pub observations: Vec<ContextObservation>,
    /// The sessions with a summary, latest first. Without automated ones, if there are
    /// others.
    pub sessions: Vec<ContextSession>,
    /// Total number of observations, notes of other projects included.
    pub observations_total: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContextObservation {
    pub id: i64,
    /// Its time, in microseconds since 1970.
    pub at_us: u64,
    /// Row of the session; `None` for a note written outside of one.
    pub session: Option<i64>,
    /// `bugfix`, `decision` …
    pub kind: String,
    /// One line.
    pub title: String,
    /// Some lines; may be empty.
    pub narrative: String,
    /// Short statements.
    pub facts: Vec<String>,
    /// Relative to the project's root if inside it.
    pub files: Vec<String>,
    /// Whether a subagent did all of the work.
    pub is_of_subagent: bool,
    /// True if no user typed the prompts of its session.
    pub is_automated: bool,
    /// Whether its concepts mark it as a pattern: a way of working that applies again.
    pub is_pattern: bool,
    /// The name of the machine, if it is another one.
    pub host: String,
}

/// A note with its author.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContextNote {
    /// Its text.
    pub memory: ContextObservation,
    /// Who wrote it: `user`, `claude`, `program`; `agent` if it was distilled.
    pub origin: String,
    /// Who edited and pinned it.
    pub marks: Marks,
    /// The client's id of the session in which it was written.
    pub session: Option<String>,
}

/// SQL: the columns that [`memory`] reads.
const COLUMNS: &str =
    "id, at_us, session, type, title, subtitle, narrative, facts, concepts, files_read,
    files_modified, agent_type, (select name from hosts where log = host)";

/// SQL: the latest rows of one project.
pub(super) const RANGE: &str = "project = :project and at_us < :until and at_us > :since
    and (:but = '' or session is not (select id from sessions where session = :but and log = 0))
    and (:client is null or session in (select id from sessions where client = :client))
    and not (:reads_auto_memory and origin = 'auto-memory')
    order by at_us desc, id desc limit :limit";

/// SQL: notes that the user did not write or that others edited. Must match the condition of the
/// index `observations_noted`.
const NOTED: &str = "not is_pinned and (origin in ('claude', 'program')
    or edited_by is not null and (origin = 'user' or type = 'rule'))";
/// SQL: notes of the user.
const BY_HAND: &str = "not is_pinned and origin = 'user' and edited_by is null";
/// SQL: observations that are pinned. Must match the condition of the index `observations_pinned`.
const PINNED: &str = "is_pinned";
/// SQL: rules that were observed. Must match the condition of the index `observations_rules`.
const RULES: &str =
    "not is_pinned and type = 'rule' and origin not in ('user', 'claude', 'program')
    and edited_by is null";
/// SQL: notes of other projects that apply to the folder `:root`.
pub(crate) const WIDE: &str = "not is_retired and tree is not null
    and (tree = '' or substr(:root || '/', 1, length(tree) + 1) = tree || '/')";
/// Maximum number of such notes.
const WIDE_MAX: u32 = 20;
/// SQL: everything else.
const OBSERVED: &str =
    "not is_pinned and type is not 'rule' and origin not in ('user', 'claude', 'program')";

/// Maximum number of notes of the user, which come first in the context.
const BY_HAND_MAX: u32 = 50;
/// Maximum number of observed rules.
const RULES_MAX: u32 = 50;

impl Store {
    /// Reads the candidates. The cost does not depend on the number of memories, except for the
    /// total, which is counted in an index at 20 rows per microsecond.
    pub fn context_material(&self, wanted: &ContextQuery<'_>) -> Result<ContextMaterial> {
        // One transaction: a consistent view, and one lock instead of one per query.
        let is_look = !self.connection.is_autocommit();
        let _moment = (!is_look).then(|| self.connection.unchecked_transaction()).transpose()?;
        let (projects, name) = self.named_projects(wanted.project)?;
        let automated = self.automated_sessions(&projects)?;
        let by_hand = self.memories(wanted, &projects, BY_HAND, BY_HAND_MAX)?;
        let mut rules = self.memories(wanted, &projects, RULES, RULES_MAX)?;
        let limit = wanted.observations_max;
        let mut observations = self.memories(wanted, &projects, OBSERVED, limit)?;
        for memory in rules.iter_mut().chain(&mut observations) {
            memory.is_automated = memory.session.is_some_and(|id| automated.contains(&id));
        }
        rules.retain(|rule| !rule.is_automated);
        let wide = self.notes(self.wide_notes(wanted, &projects)?)?;
        Ok(ContextMaterial {
            project_name: name,
            pinned: self.notes(self.memories(wanted, &projects, PINNED, BY_HAND_MAX)?)?,
            by_hand,
            noted: self.notes(self.memories(wanted, &projects, NOTED, BY_HAND_MAX)?)?,
            rules,
            observations,
            sessions: self.last_sessions(wanted, &projects, &automated)?,
            observations_total: self.total(&projects)? + wide.len() as u64,
            wide,
        })
    }

    /// Notes of other projects that apply to this one.
    fn wide_notes(
        &self,
        wanted: &ContextQuery<'_>,
        projects: &[i64],
    ) -> Result<Vec<ContextObservation>> {
        let sql = format!(
            "select {COLUMNS}, project from observations
             where is_visible and {WIDE} and at_us < :until and at_us > :since
                 and (:client is null or session in (select id from sessions
                 where client = :client))
             order by at_us desc, id desc"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(named_params! {
            ":root": wanted.root.trim_end_matches('/'),
            ":until": i64::try_from(wanted.until_us).unwrap_or(i64::MAX),
            ":client": wanted.client,
            ":since": wanted.since.map_or(0, |(since_us, _)| i64::try_from(since_us).unwrap_or(i64::MAX)),
        })?;
        let mut notes = Vec::new();
        while let Some(row) = rows.next()?
            && notes.len() < WIDE_MAX as usize
        {
            let is_elsewhere = !projects.contains(&row.get(13)?);
            let memory = memory(row)?;
            let is_of_type = wanted.types.is_empty() || wanted.types.contains(&memory.kind);
            if is_elsewhere && is_of_type && is_about(row, wanted.concepts)? {
                notes.push(memory);
            }
        }
        Ok(notes)
    }

    fn notes(&self, memories: Vec<ContextObservation>) -> Result<Vec<ContextNote>> {
        let sql = "select origin, sessions.session from observations
             left join sessions on sessions.id = observations.session where observations.id = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let note = |memory: ContextObservation| {
            let (origin, session) =
                statement.query_row([memory.id], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let name = MemoryId { kind: Kind::Observation, id: memory.id };
            Ok(ContextNote { marks: self.marks(name)?, memory, origin, session })
        };
        memories.into_iter().map(note).collect()
    }

    /// Whether a project has another session than the one named by the client's id.
    pub fn has_sessions(&self, project: &str, but: &str) -> Result<bool> {
        let sql = "select exists (select 1 from sessions where project = ?1 and session != ?2
                       and forgotten_by is null)";
        let mut statement = self.connection.prepare_cached(sql)?;
        for project in self.merged_projects(project)? {
            if statement.query_row((project, but), |row| row.get(0))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The time of the last event of a session before `until_us`.
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

    /// Key, name and folder of the project with this name or key; of several, the one seen last.
    pub fn project_named(&self, name: &str) -> Result<Option<(String, String, String)>> {
        let sql = "select owners.key, coalesce(owners.label, ''), coalesce(owners.root, '')
             from projects join projects as owners on owners.id = projects.owner
             where projects.key = ?1 or projects.label = ?1
             order by (select max(at_us) from sessions where project = projects.id) desc limit 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = statement.query_row([name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        Ok(found.optional()?)
    }

    /// Key, name and folder of the innermost project that contains this folder.
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

    /// Key, name and folder of the project of a session, by the client's id.
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

    /// Key, name and folder of the project of an event.
    pub fn project_of_event(&self, event: Id) -> Result<Option<(String, String, String)>> {
        let sql = "select owners.key, coalesce(owners.label, ''), coalesce(projects.root, '')
             from events join projects on projects.id = events.project
                 join projects as owners on owners.id = projects.owner
             where events.event = ?1 order by events.seq limit 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        Ok(statement.query_row([event.as_bytes()], read).optional()?)
    }

    /// The project and all that were merged into it. Each is queried separately, so that an index
    /// gives its latest rows without sorting.
    pub(super) fn merged_projects(&self, key: &str) -> Result<Vec<i64>> {
        Ok(self.named_projects(key)?.0)
    }

    /// The same, and the name of the project, which may be set by the user.
    fn named_projects(&self, key: &str) -> Result<(Vec<i64>, String)> {
        let sql = "select id, iif(id = owner, label, null) from projects
                   where owner = (select owner from projects where key = ?1)";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([key])?;
        let (mut ids, mut name) = (Vec::new(), String::new());
        while let Some(row) = rows.next()? {
            ids.push(row.get(0)?);
            name.push_str(&text(row, 1)?);
        }
        Ok((ids, name))
    }

    fn memories(
        &self,
        wanted: &ContextQuery<'_>,
        projects: &[i64],
        condition: &str,
        limit: u32,
    ) -> Result<Vec<ContextObservation>> {
        // Few rows are pinned or rules, which the planner does not know.
        let index = match condition {
            PINNED => "indexed by observations_pinned",
            RULES => "indexed by observations_rules",
            NOTED => "indexed by observations_noted",
            _ => "",
        };
        let sql = format!(
            "select {COLUMNS} from observations {index}
             where is_visible and not is_retired and {condition} and {RANGE}"
        );
        let mut memories = Vec::new();
        self.each(&sql, wanted, projects, limit, |row| {
            let memory = memory(row)?;
            let is_of_type = wanted.types.is_empty() || wanted.types.contains(&memory.kind);
            if is_of_type && is_about(row, wanted.concepts)? {
                memories.push(memory);
            }
            Ok(())
        })?;
        memories.sort_by_key(|memory| std::cmp::Reverse((memory.at_us, memory.id)));
        memories.truncate(limit as usize);
        Ok(memories)
    }

    pub(super) fn each(
        &self,
        sql: &str,
        wanted: &ContextQuery<'_>,
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
                ":client": wanted.client,
                ":reads_auto_memory": wanted.reads_auto_memory,
                ":limit": limit,
            })?;
            while let Some(row) = rows.next()? {
                take(row)?;
            }
        }
        Ok(())
    }

    fn total(&self, projects: &[i64]) -> Result<u64> {
        let sql = "select count(*) from observations where is_visible and project = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut total = 0;
        for project in projects {
            total += statement.query_row([project], |row| number(row, 0))?;
        }
        Ok(total)
    }
}

/// Whether the row has one of these concepts; true if none are given.
fn is_about(row: &Row<'_>, wanted: &[String]) -> Result<bool> {
    Ok(wanted.is_empty() || list(row, 8)?.iter().any(|concept| wanted.contains(concept)))
}

fn memory(row: &Row<'_>) -> Result<ContextObservation> {
    let narrative = text(row, 6)?;
    let mut files = list(row, 10)?;
    for file in list(row, 9)? {
        if !files.contains(&file) {
            files.push(file);
        }
    }
    let title = text(row, 4)?;
    let narrative = if narrative.is_empty() { text(row, 5)? } else { narrative };
    Ok(ContextObservation {
        id: row.get(0)?,
        at_us: number(row, 1)?,
        session: row.get(2)?,
        kind: text(row, 3)?,
        title,
        narrative,
        facts: list(row, 7)?,
        files,
        is_of_subagent: row.get::<_, Option<String>>(11)?.is_some(),
        is_automated: false,
        is_pattern: json(row, 8)?.contains("\"pattern\""),
        host: text(row, 12)?,
    })
}

pub(super) fn text(row: &Row<'_>, column: usize) -> Result<String> {
    Ok(row.get::<_, Option<String>>(column)?.unwrap_or_default())
}

fn list(row: &Row<'_>, column: usize) -> Result<Vec<String>> {
    Ok(serde_json::from_str(json(row, column)?).unwrap_or_default())
}

fn json<'row>(row: &'row Row<'_>, column: usize) -> Result<&'row str> {
    Ok(row.get_ref(column)?.as_str_or_null().ok().flatten().unwrap_or_default())
}
