//! Generations: which reprocessings there were, and what each changed.

use crate::{
    error::Result,
    query::pending::{EventFilter, in_range, with_range},
    store::{Store, row::from_row, sql_values::items},
};
use claude_mem_events::Seq;
use rusqlite::{Row, ToSql};

/// A reprocessing and its state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are what was recorded of it")]
pub struct Generation {
    pub generation: u32,
    /// The place of its start in the log.
    pub seq: Seq,
    /// Its start, in microseconds since 1970.
    pub at_us: u64,
    /// The hash of the prompt texts.
    pub prompt_version: String,
    pub provider: String,
    pub model: String,
    /// Which events it covers.
    pub range: EventFilter,
    /// Whether all events were distilled again, ignoring recorded replies.
    pub is_fresh: bool,
    /// Whether it is only for comparison.
    pub is_shadow: bool,
    /// Whether it is complete.
    pub is_finished: bool,
    /// Whether its memories replaced the earlier ones.
    pub is_current: bool,
}

/// The parts of an observation that are compared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ComparedObservation {
    /// The client's id of the session.
    pub session: String,
    pub prompt_number: Option<u32>,
    /// The time of its events, in microseconds since 1970.
    pub at_us: u64,
    /// Its type.
    pub kind: String,
    /// One line.
    pub title: String,
    /// One line.
    pub subtitle: String,
    /// Prose.
    pub narrative: String,
    /// Single statements.
    pub facts: Vec<String>,
    /// Every file that it names.
    pub files: Vec<String>,
}

impl Store {
    /// Every reprocessing on this machine, latest first.
    pub fn generations(&self) -> Result<Vec<Generation>> {
        let sql = "select generation, at_us, prompt_version, coalesce(provider, '') as provider,
                       coalesce(model, '') as model, since_us, until_us, project, session, is_fresh,
                       is_shadow, finished_at_us is not null as is_finished, is_current, seq
                   from reprocesses where host = 0 order by generation desc";
        self.rows(sql, (), read_generation)
    }

    /// Whether memories with another prompt version are visible in the range: then folding alone is
    /// not enough.
    pub fn has_other_prompt_versions(
        &self,
        range: &EventFilter,
        prompt_version: &str,
    ) -> Result<bool> {
        let sql = format!(
            "select exists (select 1 from replies join answers on answers.reply = replies.seq
                 join events on events.seq = answers.source
                 where replies.is_current and replies.prompt_version != :version and {})",
            in_range("events")
        );
        let version: [(&str, &dyn ToSql); 1] = [(":version", &prompt_version)];
        with_range(range, &version, |values| {
            Ok(self.connection.prepare_cached(&sql)?.query_row(values, |row| row.get(0))?)
        })
    }

    /// Number of tool uses and stops in the range, answered or not.
    pub fn events_in(&self, range: &EventFilter) -> Result<u64> {
        let sql = format!(
            "select (select count(*) from tool_uses where {}) + (select count(*) from stops where \
             {})",
            in_range("tool_uses"),
            in_range("stops")
        );
        with_range(range, &[], |values| {
            let count: i64 =
                self.connection.prepare_cached(&sql)?.query_row(values, |row| row.get(0))?;
            Ok(count as u64)
        })
    }

    pub fn generation_observations(&self, generation: u32) -> Result<Vec<ComparedObservation>> {
        self.compared("replies.generation = ?1", generation, 0)
    }

    /// The observations that a generation replaced, or would replace: those of `before`, or the
    /// visible ones.
    pub fn replaced_observations(
        &self,
        generation: u32,
        before: Option<u32>,
    ) -> Result<Vec<ComparedObservation>> {
        let is_before = match before {
            Some(_) => "replies.generation = ?2",
            None => {
                "?2 = 0 and replies.generation != ?1 and (replies.superseded_by = ?1
                     or replies.is_current and not exists (select 1 from reprocesses
                         where generation = ?1 and is_current))"
            }
        };
        let condition = format!(
            "{is_before} and exists (select 1 from answers
                 join answers as other on other.source = answers.source
                 join replies as its on its.seq = other.reply and its.generation = ?1
                     and its.verdict not in ('unreadable', 'erased')
                 where answers.reply = replies.seq)"
        );
        self.compared(&condition, generation, before.unwrap_or(0))
    }

    fn compared(
        &self,
        condition: &str,
        generation: u32,
        before: u32,
    ) -> Result<Vec<ComparedObservation>> {
        let sql = format!(
            "select coalesce(sessions.session, '') as session, observations.prompt_number,
                 observations.at_us, coalesce(type, '') as kind,
                 coalesce(observations.title, '') as title, coalesce(subtitle, '') as subtitle,
                 coalesce(narrative, '') as narrative, facts, files_read, files_modified
             from observations join replies on replies.seq = observations.seq
                 left join sessions on sessions.id = observations.session
             where {condition} and ?2 is not null order by observations.at_us, observations.id"
        );
        self.rows(&sql, (generation, before), read_compared)
    }

    pub fn project_keys_named(&self, name: &str) -> Result<Vec<String>> {
        let sql = "select distinct owner.key from projects
                       join projects as owner on owner.id = projects.owner
                   where projects.key = ?1 or projects.label = ?1 order by 1";
        self.strings(sql, name)
    }

    /// The sessions whose id starts with this.
    pub fn session_ids_starting(&self, name: &str) -> Result<Vec<String>> {
        let sql = "select distinct session from sessions
                   where substr(session, 1, length(?1)) = ?1 order by session != ?1, 1";
        self.strings(sql, name)
    }

    fn strings(&self, sql: &str, value: &str) -> Result<Vec<String>> {
        self.rows(sql, [value], |row| row.get(0))
    }
}

fn read_generation(row: &Row<'_>) -> rusqlite::Result<Generation> {
    let range = from_row!(row, EventFilter { since_us, until_us, project, session });
    Ok(from_row!(row, Generation {
        generation, seq, at_us, prompt_version, provider, model, is_fresh, is_shadow, is_finished,
        is_current
    } { range }))
}

fn read_compared(row: &Row<'_>) -> rusqlite::Result<ComparedObservation> {
    let list = |column| row.get::<_, Option<String>>(column).map(|list| items(list.as_deref()));
    let mut files = list("files_read")?;
    files.extend(list("files_modified")?);
    files.sort();
    files.dedup();
    Ok(from_row!(row, ComparedObservation {
        session, prompt_number, at_us, kind, title, subtitle, narrative, facts
    } { files }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::{TestLog, titled};

    fn titles(compared: &[ComparedObservation]) -> Vec<&str> {
        compared.iter().map(|observation| observation.title.as_str()).collect()
    }

    fn reprocessed(is_current: bool) -> Store {
        let mut scene = TestLog::new();
        let tools = ["x", "y"].map(|_| scene.tool("Bash", "{}"));
        scene.reply(&tools[..1], &titled("a0"));
        scene.reply(&tools[1..], &titled("b0"));
        scene.start(1, "v1");
        scene.reply_in(1, "v1", &tools[..1], &titled("a1"));
        scene.finish(1, is_current);
        scene.fold()
    }

    #[test]
    fn a_generation_is_compared_with_what_it_replaced() {
        for is_current in [false, true] {
            let store = reprocessed(is_current);
            assert_eq!(titles(&store.generation_observations(1).unwrap()), ["a1"]);
            assert_eq!(
                titles(&store.replaced_observations(1, None).unwrap()),
                ["a0"],
                "{is_current}"
            );
            assert_eq!(titles(&store.replaced_observations(1, Some(0)).unwrap()), ["a0"]);
            assert_eq!(titles(&store.replaced_observations(1, Some(7)).unwrap()), [""; 0]);
        }
    }

    #[test]
    fn a_generation_has_a_state() {
        let found = &reprocessed(false).generations().unwrap()[0];
        assert_eq!((found.generation, found.prompt_version.as_str()), (1, "v1"));
        assert_eq!((found.is_finished, found.is_current), (true, false));
    }

    #[test]
    fn memories_of_other_prompts_are_noticed_in_their_range() {
        let store = reprocessed(true);
        let shows = |version, session: Option<&str>| {
            let range =
                EventFilter { session: session.map(str::to_owned), ..EventFilter::default() };
            store.has_other_prompt_versions(&range, version).unwrap()
        };
        assert!(shows("v1", None) && shows("v0", None), "one of each is shown");
        assert!(!shows("v1", Some("other")));
        assert_eq!(store.events_in(&EventFilter::default()).unwrap(), 2);
    }

    #[test]
    fn projects_and_sessions_are_found_by_their_names() {
        let store = reprocessed(false);
        assert_eq!(store.project_keys_named("p").unwrap(), ["k"]);
        assert_eq!(store.project_keys_named("k").unwrap(), ["k"]);
        assert_eq!(store.project_keys_named("other").unwrap(), [""; 0]);
        assert_eq!(store.session_ids_starting("s").unwrap(), ["s"]);
    }
}
