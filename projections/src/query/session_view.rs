//! Sessions for display: in a list, by number or id, and with their memories.

use crate::{
    Store,
    error::Result,
    fold::sessions::STATUS,
    query::search::{Kind, MemoryId},
    store::{row::from_row, sql_values::number},
};
use rusqlite::{Row, named_params};

/// A session for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionView {
    pub id: i64,
    /// The client's id.
    pub session: String,
    pub client: String,
    /// The agent's id of its conversation; `None` until it is known.
    pub memory_session: Option<String>,
    /// The name of its project.
    pub project: String,
    /// Its working directory.
    pub cwd: Option<String>,
    /// The branch at its last event; `None` if it is unknown.
    pub branch: Option<String>,
    /// HEAD at its first event.
    pub first_commit: Option<String>,
    /// HEAD at its last event.
    pub last_commit: Option<String>,
    /// `initialized`, `active`, `completed`, `failed`, `interrupted`.
    pub status: String,
    /// The title given by the user, else the first prompt.
    pub title: Option<String>,
    /// Its start, in microseconds since 1970.
    pub started_at_us: u64,
    /// The time of its last event.
    pub at_us: u64,
    pub ended_at_us: Option<u64>,
    /// Number of prompts of the user.
    pub prompts: u32,
    pub tool_uses: u32,
    /// Number of visible observations.
    pub observations: u32,
    /// Number of visible summaries.
    pub summaries: u32,
    /// Number of pending tool uses and stops.
    pub outstanding: u32,
    /// The completed or learned part of its last summary.
    pub outcome: Option<String>,
    /// The next steps of its last summary.
    pub next_steps: Option<String>,
}

/// The use of a tool under one prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUseCount {
    /// The number of the prompt in the session.
    pub prompt_number: u32,
    pub tool: String,
    /// Number of uses.
    pub count: u32,
}

/// Selects sessions.
#[derive(Debug, Clone, Copy)]
pub enum SessionQuery<'a> {
    /// Latest first, of one project or all.
    Latest {
        /// Name or key of a project.
        project: Option<&'a str>,
        /// Skip this many.
        offset: u32,
        /// Maximum number.
        limit: u32,
    },
    /// By row id.
    Number(i64),
    /// By the client's id.
    Id(&'a str),
}

impl Store {
    /// The selected sessions with their status at `now_us`.
    pub fn session_views(&self, which: SessionQuery<'_>, now_us: u64) -> Result<Vec<SessionView>> {
        let (condition, order) = match which {
            SessionQuery::Latest { project: None, .. } => ("true", "at_us desc, id desc"),
            SessionQuery::Latest { .. } => (
                "project in (select id from projects where owner in
                     (select owner from projects where label = :name or key = :name))",
                "at_us desc, id desc",
            ),
            SessionQuery::Number(_) => ("id = :number", "id"),
            SessionQuery::Id(_) => ("session = :name", "at_us desc"),
        };
        let (name, number, offset, limit) = match which {
            SessionQuery::Latest { project, offset, limit } => (project, 0, offset, limit),
            SessionQuery::Number(number) => (None, number, 0, 1),
            SessionQuery::Id(id) => (Some(id), 0, 0, 1),
        };
        let last =
            "summaries.session = sessions.id and is_visible order by at_us desc, id desc limit 1";
        let sql = format!(
            "select sessions.id, session, client, memory_session,
                 coalesce((select coalesce(owners.label, owners.key) from projects
                      join projects owners on owners.id = projects.owner
                      where projects.id = sessions.project), '') as project,
                 cwd, {STATUS} as status,
                 coalesce(title, (select text from prompts where prompts.session = sessions.id
                      and text is not null and submitter != 'task' order by number limit 1))
                      as title,
                 started_at_us, at_us, ended_at_us, prompt_number as prompts, tool_uses,
                 (select count(*) from observations where observations.session = sessions.id
                      and is_visible) as observations,
                 (select count(*) from summaries where summaries.session = sessions.id
                      and is_visible) as summaries,
                 (select count(*) from tool_uses where tool_uses.session = sessions.id
                      and answered_by is null and not is_parked)
                 + (select count(*) from stops where stops.session = sessions.id and scope = 'turn'
                      and answered_by is null and not is_parked) as outstanding,
                 branch, first_commit, last_commit,
                 (select coalesce(completed, learned, request) from summaries where {last})
                      as outcome,
                 (select next_steps from summaries where {last}) as next_steps
             from (select * from sessions where forgotten_by is null and {condition}
                   order by {order} limit :limit offset :offset) sessions
             where coalesce(:name, '') is not null and :number is not null"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let values = named_params! {
            ":now": now_us as i64, ":name": name, ":number": number, ":limit": limit, ":offset": offset,
        };
        let views = statement.query_map(values, read)?;
        Ok(views.collect::<rusqlite::Result<_>>()?)
    }

    /// The memories of a session in order of time, at most `limit`.
    pub fn session_memories(&self, session: i64, limit: u32) -> Result<Vec<MemoryId>> {
        let sql = "select 0, id, at_us from visible_prompts where session = ?1
                   union all select 1, id, at_us from visible_observations where session = ?1
                   union all select 2, id, at_us from visible_summaries where session = ?1
                   order by 3, 1, 2 limit ?2";
        self.rows(sql, (session, limit), |row| {
            let kinds = [Kind::Prompt, Kind::Observation, Kind::Summary];
            Ok(MemoryId { kind: kinds[usize::from(row.get::<_, u8>(0)?)], id: row.get(1)? })
        })
    }

    /// The tools used under each prompt of a session, most used first.
    pub fn session_tool_counts(&self, session: i64) -> Result<Vec<ToolUseCount>> {
        let sql = "select prompt_number, coalesce(tool, '') as tool, count(*) as count
                   from tool_uses where session = ?1 group by 1, 2 order by 1, 3 desc, 2";
        self.rows(sql, [session], |row| {
            Ok(from_row!(row, ToolUseCount { prompt_number, tool, count }))
        })
    }

    /// Cost of distilling a session, in millionths of a dollar. Responses are newer than the start
    /// of their session.
    pub fn session_cost_micros(&self, session: &SessionView) -> Result<u64> {
        let sql = "select coalesce(sum(cost_micros), 0) from replies
                   where at_us >= ?1 and session = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let values = (session.started_at_us as i64, session.id);
        Ok(statement.query_row(values, |row| number(row, 0))?)
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<SessionView> {
    let title: Option<String> = row.get("title")?;
    let title = title.and_then(|title| headline(&title).map(str::to_owned));
    Ok(from_row!(row, SessionView {
        id, session, client, memory_session, project, cwd, status, started_at_us, at_us,
        ended_at_us, prompts, tool_uses, observations, summaries, outstanding, branch,
        first_commit, last_commit, outcome, next_steps
    } { title }))
}

/// The first line of a title or prompt. If it only announces what follows, as in "Implement the
/// following plan:", the heading below it.
fn headline(text: &str) -> Option<&str> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next()?;
    let heading =
        lines.next().and_then(|line| Some(line.strip_prefix('#')?.trim_start_matches('#')));
    match heading {
        Some(heading) if first.ends_with(':') => Some(heading.trim()),
        _ => Some(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        EventFilter,
        test_log::{BEGIN_US, TestLog, titled},
    };
    use claude_mem_events::{SessionEnded, SessionStarted};

    fn store() -> Store {
        let mut scene = TestLog::new();
        scene.prompt("fix it\nplease");
        let read = scene.tool("Read", "{}");
        scene.tool("Read", "{}");
        scene.tool("Bash", "{}");
        scene.reply(
            &[read],
            &(titled("a") + "<summary><request>r</request><next_steps>n</next_steps></summary>"),
        );
        scene.envelope.branch = "main".into();
        scene.envelope.commit = "a1".into();
        scene.prompt("and now?");
        scene.envelope.branch.clear();
        scene.envelope.commit = "b2".into();
        scene.tool("Bash", "{}");
        scene.envelope.commit.clear();
        scene.envelope.session = "t".into();
        scene.envelope.project.key = "other".into();
        scene.prompt("elsewhere");
        scene.fold()
    }

    #[test]
    fn a_session_is_found_by_number_by_id_and_among_the_latest() {
        let store = store();
        let views = |which| store.session_views(which, BEGIN_US + 60_000_000).unwrap();
        let session = &views(SessionQuery::Number(1))[0];
        assert_eq!(*session, views(SessionQuery::Id("s"))[0]);
        assert_eq!(session.title.as_deref(), Some("fix it"));
        assert_eq!((session.prompts, session.tool_uses, session.observations), (2, 4, 1));
        assert_eq!((session.outstanding, session.status.as_str()), (3, "active"));
        let end = (session.outcome.as_deref(), session.next_steps.as_deref());
        assert_eq!(end, (Some("r"), Some("n")));
        let git = [&session.branch, &session.first_commit, &session.last_commit];
        assert_eq!(git.map(Option::as_deref), [Some("main"), Some("a1"), Some("b2")]);
        let other = &views(SessionQuery::Id("t"))[0];
        assert_eq!(other.last_commit, None);
        let cost = |view| store.session_cost_micros(view).unwrap();
        assert!(cost(session) > 0 && cost(other) == 0);
        let latest = |project, offset| {
            let views = views(SessionQuery::Latest { project, offset, limit: 10 });
            views.into_iter().map(|views| views.session).collect::<Vec<_>>()
        };
        assert_eq!(latest(None, 0), ["t", "s"]);
        assert_eq!(latest(None, 1), ["s"]);
        assert_eq!(latest(Some("other"), 0), ["t"]);
        assert_eq!(views(SessionQuery::Id("unknown")), []);
    }

    #[test]
    fn a_plan_is_named_by_its_heading() {
        let plan = "Implement the following plan:\n\n## Count per IP\n\nFirst …";
        assert_eq!(headline(plan), Some("Count per IP"));
        assert_eq!(headline("\nWhy:\nno reason\n# A"), Some("Why:"));
        assert_eq!(headline(""), None);
    }

    /// The status of `s` in rows and in the view for SQL, and what is pending of all sessions.
    fn status(scene: &TestLog) -> (String, usize) {
        let store = scene.fold();
        let now_us = scene.at_us + 60_000_000;
        let view = store.session_views(SessionQuery::Id("s"), now_us).unwrap().remove(0);
        let sql = "select status from sdk_sessions where content_session_id = 's'";
        // The view asks the clock, and the test is of an earlier year.
        let shown = store.dump(sql).unwrap().replace("interrupted", "active");
        assert_eq!(shown.trim_end(), view.status);
        let turns = store.pending_turns(&EventFilter::default(), 9).unwrap();
        let pending = turns.iter().map(|turn| turn.pending.len()).sum::<usize>();
        let counts = store.counts().unwrap().outstanding;
        assert_eq!(counts, store.pending_counts().unwrap().outstanding);
        assert_eq!(counts, store.status_line_counts("k").unwrap().pending);
        assert_eq!(counts, pending as u64);
        (view.status, pending)
    }

    #[test]
    fn nothing_of_a_cancelled_session_is_pending_until_it_continues() {
        let mut scene = TestLog::new();
        scene.prompt("go");
        scene.tool("Bash", "{}");
        assert_eq!(status(&scene), ("active".into(), 1));
        scene.add(SessionEnded { reason: SessionEnded::CANCELLED.into(), ..Default::default() });
        assert_eq!(status(&scene), ("failed".into(), 0));
        scene.prompt("go on");
        assert_eq!(status(&scene), ("active".into(), 1));
    }

    #[test]
    fn an_imported_session_is_not_active() {
        let mut scene = TestLog::new();
        scene.add(SessionStarted { source: "import".into(), ..Default::default() });
        scene.prompt("go");
        let store = scene.fold();
        let view = store.session_views(SessionQuery::Id("s"), scene.at_us).unwrap().remove(0);
        assert_eq!(view.status, "interrupted");
        assert_eq!(store.active_sessions(scene.at_us).unwrap(), 0);
        scene.stop();
        let view = scene.fold().session_views(SessionQuery::Id("s"), scene.at_us).unwrap();
        assert_eq!(view[0].status, "completed");
        scene.add(SessionStarted { source: "resume".into(), ..Default::default() });
        assert_eq!(scene.fold().active_sessions(scene.at_us).unwrap(), 1);
    }

    #[test]
    fn a_session_view_has_prompts_results_and_findings() {
        let store = store();
        let names: Vec<_> =
            store.session_memories(1, 100).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["P1", "1", "S1", "P2"]);
        let uses = store.session_tool_counts(1).unwrap();
        let uses: Vec<_> = uses.iter().map(|uses| (uses.tool.as_str(), uses.count)).collect();
        assert_eq!(uses, [("Read", 2), ("Bash", 1), ("Bash", 1)]);
    }
}
