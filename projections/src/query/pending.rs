//! Pending and parked events, turn by turn.

use crate::{
    error::Result,
    fold::sessions::NOT_CANCELLED,
    hosts::FIRST_FOREIGN_SEQ,
    store::{
        Store,
        sql_values::{number, seq, some},
    },
};
use claude_mem_events::{Id, Project, Seq};
use rusqlite::{OptionalExtension as _, Row, ToSql, named_params};

/// An event that is not distilled yet. Its payload is in the log, at `seq`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingEvent {
    /// Its place in the log.
    pub seq: Seq,
    pub id: Id,
    pub what: PendingKind,
    /// Its time, in microseconds since 1970.
    pub at_us: u64,
    /// Size of its texts.
    pub bytes: u64,
    /// Number of attempts so far.
    pub attempts: u32,
    /// The subagent it belongs to; `None` in the main conversation.
    pub agent_id: Option<String>,
}

/// The kind of a pending event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingKind {
    ToolUse,
    /// The end of a turn: requests a summary, too.
    Stop,
    /// The end of a subagent.
    SubagentStop,
    /// Before a compaction by the client.
    CompactionStop,
}

/// A turn with its pending events, in the order of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingTurn {
    pub session: i64,
    /// The client's id of the session.
    pub content_session: String,
    /// The client.
    pub platform: String,
    /// The agent's id of its conversation about this session, if there is one.
    pub memory_session: Option<String>,
    pub project: Project,
    /// Number of the prompt that began it; 0 before the first one.
    pub turn: u32,
    /// The places of its prompts: the first, those typed while it ran, and unanswered ones before
    /// it.
    pub prompts: Vec<Seq>,
    pub pending: Vec<PendingEvent>,
}

/// Selects events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// From this time on.
    pub since_us: Option<u64>,
    /// Before this time.
    pub until_us: Option<u64>,
    /// Only this project, by key, with all that were merged into it.
    pub project: Option<String>,
    /// Only this session, by the client's id.
    pub session: Option<String>,
}

/// Which replies are reused in a reprocessing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reprocessing {
    pub generation: u32,
    /// Replies with this prompt version are reused, too; `None` to distill everything again.
    pub prompt_version: Option<String>,
    /// Of those, only the ones of this model. Replies may have a longer name: `claude-haiku-4-5`
    /// matches `claude-haiku-4-5-20251001`.
    pub model: Option<String>,
}

/// A longer sequence of prompts without an answer is not part of one request.
const UNANSWERED_MAX: usize = 5;

const OPEN: &str = "answered_by is null and not is_parked";
const PARKED: &str = "answered_by is null and is_parked";
const NOT_REPROCESSED: &str = "not is_settled and not exists (select 1 from answers join replies
    on replies.seq = answers.reply
    where answers.source = waiting.seq and replies.verdict not in ('unreadable', 'erased')
        and (replies.generation = :generation or replies.prompt_version is :version
            and (:model is null or substr(replies.model, 1, length(:model)) = :model)))";

/// SQL: whether a row matches the filter. Events of other hosts never do: they are distilled there.
pub(crate) fn in_range(row: &str) -> String {
    format!(
        "{row}.seq < {FIRST_FOREIGN_SEQ} and (:since is null or {row}.at_us >= :since)
         and (:until is null or {row}.at_us < :until)
         and (:project is null or {row}.project in (select id from projects
             where owner in (select owner from projects where key = :project)))
         and (:session is null or {row}.session in (select id from sessions
         where session = :session))"
    )
}

/// Binds the values of a filter, and others, for a statement that uses [`in_range`].
pub(crate) fn with_range<T>(
    range: &EventFilter,
    others: &[(&str, &dyn ToSql)],
    ask: impl FnOnce(&[(&str, &dyn ToSql)]) -> Result<T>,
) -> Result<T> {
    let (since, until) = (range.since_us.map(|us| us as i64), range.until_us.map(|us| us as i64));
    let own: &[(&str, &dyn ToSql)] = named_params! {
        ":since": since, ":until": until, ":project": range.project, ":session": range.session,
    };
    ask(&own.iter().chain(others).copied().collect::<Vec<_>>())
}

/// SQL: whether a pending event shares a reply with an event in range. If that reply is replaced,
/// all events that it answers must be answered again.
fn shares_reply() -> String {
    format!(
        "exists (select 1 from answers where source = waiting.seq and reply in
             (select reply from answers join replies on replies.seq = reply and is_current
              join events on events.seq = source where {}))",
        in_range("events")
    )
}

impl Store {
    /// Pending events that are not parked, by session and turn; at most `turns_max` turns. Like all
    /// events to distill, not of a cancelled session: nothing of it is sent until it continues.
    pub fn pending_turns(&self, range: &EventFilter, turns_max: usize) -> Result<Vec<PendingTurn>> {
        self.waiting(OPEN, &in_range("waiting"), range, turns_max, &[])
    }

    /// Parked events, by session and turn.
    pub fn parked_turns(&self, range: &EventFilter) -> Result<Vec<PendingTurn>> {
        self.waiting(PARKED, &in_range("waiting"), range, usize::MAX, &[])
    }

    /// Events that a reprocessing still has to distill.
    pub fn to_reprocess(
        &self,
        range: &EventFilter,
        by: &Reprocessing,
        turns_max: usize,
    ) -> Result<Vec<PendingTurn>> {
        let values: [(&str, &dyn ToSql); 3] = [
            (":generation", &by.generation),
            (":version", &by.prompt_version),
            (":model", &by.model),
        ];
        let has_ends = range.since_us.is_some() || range.until_us.is_some();
        let within = match has_ends {
            true => format!("({} or {})", in_range("waiting"), shares_reply()),
            false => in_range("waiting"),
        };
        self.waiting(NOT_REPROCESSED, &within, range, turns_max, &values)
    }

    fn waiting(
        &self,
        condition: &str,
        within: &str,
        range: &EventFilter,
        turns_max: usize,
        values: &[(&str, &dyn ToSql)],
    ) -> Result<Vec<PendingTurn>> {
        let rows = |table: &str, what: &str| {
            format!(
                "select seq, event, at_us, session, project, turn, bytes, attempts, agent_id,
                 {what} as what
                 from {table} as waiting where {condition} and {NOT_CANCELLED} and {within}"
            )
        };
        let sql = format!(
            "select waiting.seq, waiting.event, waiting.at_us, waiting.session, waiting.turn,
                 waiting.bytes, waiting.attempts, waiting.agent_id, waiting.what,
                 sessions.session as content, sessions.platform, sessions.memory_session,
                 projects.key, projects.label, projects.root
             from ({} union all {}) as waiting
                 join sessions on sessions.id = waiting.session
                 join projects on projects.id = waiting.project
             order by waiting.session, waiting.turn, waiting.seq",
            rows("tool_uses", "'tool use'"),
            rows("stops", "scope")
        );
        let mut turns = with_range(range, values, |values| self.turns(&sql, values, turns_max))?;
        for turn in &mut turns {
            turn.prompts = self.prompts_of(turn)?;
        }
        Ok(turns)
    }

    fn turns(
        &self,
        sql: &str,
        values: &[(&str, &dyn ToSql)],
        turns_max: usize,
    ) -> Result<Vec<PendingTurn>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut found = statement.query(values)?;
        let mut turns: Vec<PendingTurn> = Vec::new();
        while let Some(row) = found.next()? {
            let (session, turn) = (row.get("session")?, row.get("turn")?);
            if turns.last().is_none_or(|last| (last.session, last.turn) != (session, turn)) {
                if turns.len() == turns_max {
                    break;
                }
                turns.push(read_turn(row)?);
            }
            turns.last_mut().expect("just pushed").pending.push(read_pending(row)?);
        }
        Ok(turns)
    }

    /// Prompts of a turn, and unanswered ones directly before it: withdrawn for editing, or
    /// followed by another one before any work. They apply to this turn.
    fn prompts_of(&self, turn: &PendingTurn) -> Result<Vec<Seq>> {
        // In the order of `number`, the prompts of a turn are next to each other.
        let from = "select turn, seq from prompts where session = ?1 and number >= ?2
                    order by number";
        let mut from = self.connection.prepare_cached(from)?;
        let before = "select turn from prompts where session = ?1 and number < ?2
                      order by number desc limit 1";
        let mut before = self.connection.prepare_cached(before)?;
        let is_answered = "select exists (select 1 from tool_uses where session = ?1 and seq > ?2
                               and seq < ?3)
                               or exists (select 1 from stops where session = ?1 and seq > ?2
                               and seq < ?3)";
        let mut is_answered = self.connection.prepare_cached(is_answered)?;
        let mut seqs = |turn_number: u32| -> Result<Vec<Seq>> {
            let mut found = from.query((turn.session, turn_number))?;
            let mut seqs = Vec::new();
            while let Some(row) = found.next()?
                && row.get::<_, u32>(0)? == turn_number
            {
                seqs.push(seq(row, 1)?);
            }
            seqs.sort_unstable();
            Ok(seqs)
        };
        let (mut prompts, mut first_turn) = (seqs(turn.turn)?, turn.turn);
        for _ in 0..UNANSWERED_MAX {
            let earlier: Option<u32> =
                before.query_row((turn.session, first_turn), |row| row.get(0)).optional()?;
            let Some(earlier) = earlier else { break };
            let mut found = seqs(earlier)?;
            let (Some(from), Some(until)) = (found.first(), prompts.first()) else { break };
            let (from, until) = (from.raw() as i64, until.raw() as i64);
            if is_answered.query_row((turn.session, from, until), |row| row.get(0))? {
                break;
            }
            found.append(&mut prompts);
            (prompts, first_turn) = (found, earlier);
        }
        Ok(prompts)
    }
}

fn read_turn(row: &Row<'_>) -> rusqlite::Result<PendingTurn> {
    let text = |name| row.get::<_, Option<String>>(name).map(Option::unwrap_or_default);
    Ok(PendingTurn {
        session: row.get("session")?,
        content_session: row.get("content")?,
        platform: row.get("platform")?,
        memory_session: row
            .get::<_, Option<String>>("memory_session")?
            .filter(|id| some(id).is_some()),
        project: Project { key: row.get("key")?, label: text("label")?, root: text("root")? },
        turn: row.get("turn")?,
        prompts: Vec::new(),
        pending: Vec::new(),
    })
}

fn read_pending(row: &Row<'_>) -> rusqlite::Result<PendingEvent> {
    let what = match row.get::<_, String>("what")?.as_str() {
        "turn" => PendingKind::Stop,
        "subagent" => PendingKind::SubagentStop,
        "compaction" => PendingKind::CompactionStop,
        _ => PendingKind::ToolUse,
    };
    Ok(PendingEvent {
        seq: seq(row, "seq")?,
        id: Id::from_bytes(row.get("event")?),
        what,
        at_us: number(row, "at_us")?,
        bytes: number(row, "bytes")?,
        attempts: row.get("attempts")?,
        agent_id: row.get("agent_id")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::{TestLog, steps};

    #[test]
    fn an_unanswered_prompt_belongs_to_the_next_turn() {
        let mut scene = TestLog::new();
        for answered in [true, false, false, true, true] {
            scene.prompt("go");
            if answered {
                scene.stop();
            }
        }
        let turns = scene.fold().pending_turns(&EventFilter::default(), 9).unwrap();
        let prompts: Vec<(u32, usize)> =
            turns.iter().map(|turn| (turn.turn, turn.prompts.len())).collect();
        assert_eq!(prompts, [(1, 1), (4, 3), (5, 1)]);
    }

    /// A quadratic plan of a long session takes minutes.
    #[test]
    fn planning_is_linear_in_the_turns_of_a_session() {
        let steps_of = |turns: u32| {
            let mut scene = TestLog::new();
            for _ in 0..turns {
                scene.prompt("go");
                scene.tool("Bash", "{}");
                scene.stop();
            }
            let mut store = scene.fold();
            let by = Reprocessing { generation: 1, prompt_version: None, model: None };
            let since_us = Some(scene.events[2].at_us());
            let part = EventFilter { since_us, ..EventFilter::default() };
            steps(&mut store, |store| {
                let pending = store.pending_turns(&EventFilter::default(), usize::MAX).unwrap();
                assert_eq!(pending.len(), turns as usize);
                for turn in &pending {
                    let (from, until) = (turn.prompts[0], turn.pending[0].seq);
                    store.is_turn_begun(turn.session, turn.turn, from, until).unwrap();
                }
                store.session_progress(1).unwrap();
                store.to_reprocess(&part, &by, usize::MAX).unwrap();
            })
        };
        let (some, twice) = (steps_of(200), steps_of(400));
        assert!(twice * 10 <= some * 22, "{some} and {twice} steps");
    }

    #[test]
    fn the_progress_of_a_session_does_not_read_other_sessions() {
        let steps_of = |sessions: u32| {
            let mut scene = TestLog::new();
            for session in 0..sessions {
                scene.envelope.session = session.to_string();
                scene.prompt("go");
                scene.stop();
            }
            let mut store = scene.fold();
            steps(&mut store, |store| _ = store.session_progress(1).unwrap())
        };
        assert_eq!(steps_of(3), steps_of(300));
    }
}
