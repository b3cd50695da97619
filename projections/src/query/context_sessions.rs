//! The last sessions of a project, turn by turn, for the context of a session.

use super::context::{ContextQuery, RANGE, text};
use crate::{
    error::Result,
    store::{
        Store,
        sql_values::{number, seq},
    },
};
use claude_mem_events::Seq;
use rusqlite::{OptionalExtension, Row};
use std::collections::{HashMap, HashSet};

/// A session and its summaries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContextSession {
    /// The summaries of its turns, oldest first: all of them for the last session, the last two for
    /// an earlier one.
    pub turns: Vec<ContextSummary>,
}

/// The summary of one turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContextSummary {
    /// Its id, without the `S`.
    pub id: i64,
    /// Its time, in microseconds since 1970.
    pub at_us: u64,
    pub request: String,
    /// The investigation.
    pub investigated: String,
    /// The findings.
    pub learned: String,
    /// The completed work.
    pub completed: String,
    /// The remaining work.
    pub next_steps: String,
    /// The name of the machine, if it is another one.
    pub host: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionState {
    /// The last prompt that the user typed.
    pub last_prompt: String,
    /// Its turns.
    pub session: ContextSession,
    /// Its last tool uses, latest first. Empty if none of them failed.
    pub tool_uses: Vec<Seq>,
}

/// The summaries of one session, latest first. They are scattered over the file, so only the chosen
/// ones are read.
struct Stops {
    session: Option<i64>,
    ids: Vec<i64>,
}

/// A session has one summary per turn, so more are read than needed.
const TURNS_PER_SESSION: u32 = 40;
/// Maximum number of turns of the last session.
const TURNS_MAX: u32 = 60;
/// Open work may be in the last turn but one: the last one often only commits.
const TURNS_OF_EARLIER: u32 = 2;
/// Maximum number of tool uses among which to look for a failure.
const TOOL_USES_MAX: u32 = 40;

/// Number of sessions that are compared to find automated ones.
const COMPARED_SESSIONS: u32 = 100;
/// This many sessions that begin with the same long prompt were started by a program.
const SAME_PROMPTS_MIN: usize = 3;
/// A user may type a shorter prompt more than once.
const SAME_PROMPT_CHARS_MIN: usize = 40;

impl Store {
    /// The automated sessions: only the client or another agent submitted prompts, or the
    /// only prompt is long and begins like those of other sessions.
    pub(super) fn automated_sessions(&self, projects: &[i64]) -> Result<HashSet<i64>> {
        let sql = "select id, prompt_number, exists (select 1 from prompts
                           where prompts.session = sessions.id),
                       iif(prompt_number = 1, (select substr(text, 1, 100) from prompts
                           where prompts.session = sessions.id and submitter = 'user'
                           order by number limit 1), null)
                   from sessions where project = ?1 order by at_us desc limit ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut automated = HashSet::new();
        let mut by_prompt: HashMap<String, Vec<i64>> = HashMap::new();
        for project in projects {
            let mut rows = statement.query((project, COMPARED_SESSIONS))?;
            while let Some(row) = rows.next()? {
                let id: i64 = row.get(0)?;
                // The number counts prompts of the user.
                if row.get::<_, u32>(1)? == 0 && row.get::<_, bool>(2)? {
                    automated.insert(id);
                }
                let prompt = text(row, 3)?;
                if prompt.chars().count() >= SAME_PROMPT_CHARS_MIN {
                    by_prompt.entry(prompt).or_default().push(id);
                }
            }
        }
        let same = by_prompt.into_values().filter(|ids| ids.len() >= SAME_PROMPTS_MIN);
        automated.extend(same.flatten());
        Ok(automated)
    }

    pub(super) fn last_sessions(
        &self,
        wanted: &ContextQuery<'_>,
        projects: &[i64],
        automated: &HashSet<i64>,
    ) -> Result<Vec<ContextSession>> {
        let sql = format!("select id, at_us, session from summaries where is_visible and {RANGE}");
        let mut found = Vec::new();
        let limit = wanted.sessions_max.saturating_mul(TURNS_PER_SESSION);
        self.each(&sql, wanted, projects, limit, |row| {
            let place: (i64, i64) = (row.get(1)?, row.get(0)?);
            found.push((place, row.get::<_, Option<i64>>(2)?));
            Ok(())
        })?;
        found.sort_by_key(|(place, _)| std::cmp::Reverse(*place));
        let is_typed = |session: &Option<i64>| session.is_none_or(|id| !automated.contains(&id));
        if found.iter().any(|(_, session)| is_typed(session)) {
            found.retain(|(_, session)| is_typed(session));
        }
        let mut sessions: Vec<Stops> = Vec::new();
        for ((_, id), session) in found {
            let is_same = |other: &&mut Stops| session.is_some() && other.session == session;
            match sessions.iter_mut().find(is_same) {
                Some(stops) => stops.ids.push(id),
                None => sessions.push(Stops { session, ids: vec![id] }),
            }
        }
        sessions.truncate(wanted.sessions_max as usize);
        let read = |(at, stops): (usize, &Stops)| {
            let turns_max = if at == 0 { TURNS_MAX } else { TURNS_OF_EARLIER };
            self.session_of_summaries(stops.ids.iter().take(turns_max as usize))
        };
        sessions.iter().enumerate().map(read).collect()
    }

    /// The state of a session of this machine; `None` if it is unknown.
    pub fn session_state(&self, session: &str, until_us: u64) -> Result<Option<SessionState>> {
        let until_us = i64::try_from(until_us).unwrap_or(i64::MAX);
        let sql = "select id from sessions where session = ?1 and log = 0 and forgotten_by is null";
        let mut statement = self.connection.prepare_cached(sql)?;
        let id: Option<i64> = statement.query_row([session], |row| row.get(0)).optional()?;
        let Some(id) = id else { return Ok(None) };
        let sql = "select text from visible_prompts where session = ?1 and submitter = 'user'
                       and at_us < ?2 order by number desc limit 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let last_prompt = statement.query_row((id, until_us), |row| row.get(0)).optional()?;
        let sql = "select id from summaries where session = ?1 and is_visible and at_us < ?2
                   order by at_us desc, id desc limit ?3";
        let ids: Vec<i64> = self.rows(sql, (id, until_us, TURNS_MAX), |row| row.get(0))?;
        // The plus keeps the planner from reading the table backwards instead of the session's
        // index.
        let sql = "select seq, has_failed and not is_interrupt from tool_uses
                   where session = ?1 and tool_use_id is not null and at_us < ?2
                   order by +seq desc limit ?3";
        let mut statement = self.connection.prepare_cached(sql)?;
        let uses = statement.query_map((id, until_us, TOOL_USES_MAX), |row| {
            Ok((seq(row, 0)?, row.get::<_, bool>(1)?))
        })?;
        let uses: Vec<(Seq, bool)> = uses.collect::<rusqlite::Result<_>>()?;
        let has_failure = uses.iter().any(|(_, has_failed)| *has_failed);
        let tool_uses = uses.into_iter().map(|(seq, _)| seq).filter(|_| has_failure).collect();
        let session = self.session_of_summaries(ids.iter())?;
        Ok(Some(SessionState { last_prompt: last_prompt.unwrap_or_default(), session, tool_uses }))
    }

    /// The summaries with these ids, latest first, as a session.
    fn session_of_summaries<'a>(
        &self,
        ids: impl DoubleEndedIterator<Item = &'a i64>,
    ) -> Result<ContextSession> {
        let sql = "select id, at_us, request, investigated, learned, completed, next_steps,
                 (select name from hosts where log = host)
             from summaries where id = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut turns = Vec::new();
        for id in ids.rev() {
            let mut rows = statement.query([id])?;
            turns.extend(rows.next()?.map(summary).transpose()?);
        }
        Ok(ContextSession { turns })
    }
}

fn summary(row: &Row<'_>) -> Result<ContextSummary> {
    Ok(ContextSummary {
        id: row.get(0)?,
        at_us: number(row, 1)?,
        request: text(row, 2)?,
        investigated: text(row, 3)?,
        learned: text(row, 4)?,
        completed: text(row, 5)?,
        next_steps: text(row, 6)?,
        host: text(row, 7)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::TestLog;
    use claude_mem_events::{PromptSubmitted, Submitter, ToolUsed};

    fn summary_of(completed: &str) -> String {
        format!("<summary><request>r</request><completed>{completed}</completed></summary>")
    }

    fn completed(store: &Store) -> Vec<Vec<String>> {
        let wanted = ContextQuery {
            root: "",
            project: "k",
            until_us: u64::MAX,
            since: None,
            client: None,
            reads_auto_memory: false,
            types: &[],
            concepts: &[],
            observations_max: 10,
            sessions_max: 3,
        };
        let sessions = store.context_material(&wanted).unwrap().sessions;
        let turns = |session: ContextSession| {
            session.turns.into_iter().map(|turn| turn.completed).collect::<Vec<_>>()
        };
        sessions.into_iter().map(turns).collect()
    }

    #[test]
    fn the_last_session_has_all_turns_and_an_earlier_one_its_last_two() {
        let mut scene = TestLog::new();
        for session in ["one", "two"] {
            scene.envelope.session = session.into();
            for turn in ["a", "b", "c"] {
                scene.prompt(turn);
                let stop = scene.stop();
                scene.reply(&[stop], &summary_of(&format!("{session} {turn}")));
            }
        }
        let sessions = completed(&scene.fold());
        assert_eq!(sessions, [vec!["two a", "two b", "two c"], vec!["one b", "one c"]]);
    }

    #[test]
    fn automated_sessions_are_omitted_if_there_are_others() {
        let mut scene = TestLog::new();
        let mut session = |name: &str, prompt: &str, submitter: Submitter| {
            scene.envelope.session = name.into();
            let prompt = prompt.into();
            scene.add(PromptSubmitted { prompt, submitter, ..PromptSubmitted::default() });
            let stop = scene.stop();
            scene.reply(&[stop], &summary_of(name));
            completed(&scene.fold())
        };
        let review = "Review this change for security vulnerabilities. Changed files: ";
        for (name, expected) in [("r1", 1), ("r2", 2), ("r3", 3)] {
            assert_eq!(session(name, review, Submitter::User).len(), expected, "{name}");
        }
        session("typed", "fix the total", Submitter::User);
        session("r4", review, Submitter::User);
        let sessions = session("task", "a task has finished", Submitter::TaskNotification);
        assert_eq!(sessions, [["typed"]]);
    }

    #[test]
    fn the_state_of_a_session_names_its_last_prompt_and_tool_uses_if_one_failed() {
        let mut scene = TestLog::new();
        scene.prompt("first");
        scene.prompt("second");
        scene.tool("Bash", "{}");
        let stop = scene.stop();
        scene.reply(&[stop], &summary_of("half of it"));
        let state = scene.fold().session_state("s", u64::MAX).unwrap().unwrap();
        assert_eq!((state.last_prompt.as_str(), state.tool_uses.len()), ("second", 0));
        assert_eq!(state.session.turns[0].completed, "half of it");
        let tool_use_id = "failed".into();
        scene.add(ToolUsed { has_failed: true, tool_use_id, ..ToolUsed::default() });
        let store = scene.fold();
        assert_eq!(store.session_state("s", u64::MAX).unwrap().unwrap().tool_uses.len(), 2);
        assert_eq!(store.session_state("other", u64::MAX).unwrap(), None);
    }
}
