//! Sessions: created by the first event that names one.

use crate::{
    error::Result,
    fold::{
        projection::{Projection, Rows},
        projects,
    },
    store::sql_values::some,
};
use claude_mem_events::{Envelope, Event, Id, Recorded, SessionEnded, SessionStarted, StopScope};
use rusqlite::{OptionalExtension, params};
use std::{borrow::Cow, collections::HashMap, rc::Rc};

/// After this long without an event, a session is over.
pub const SILENCE_US: u64 = 24 * 3600 * 1_000_000;

/// The status of a session at `:now`, as SQL over a row of `sessions`. The absence of events is not
/// an event, so the status is computed when reading: a stored status would depend on the time of
/// folding. An import contains no end, and does not make a session active.
pub(crate) const STATUS: &str = "case
    when end_reason = 'claude-mem:cancelled' then 'failed'
    when ended_at_us is not null and exists (select 1 from tool_uses where session = sessions.id
        and answered_by is null and is_parked) then 'failed'
    when ended_at_us is not null then 'completed'
    when at_us + 86400000000 <= :now or source = 'import'
        then iif(is_turn_open, 'interrupted', 'completed')
    when prompt_number = 0 and tool_uses = 0 and stops = 0 then 'initialized'
    else 'active' end";

/// SQL: whether the session of a row with pending events was not cancelled.
pub(crate) const NOT_CANCELLED: &str =
    "session not in (select id from sessions where end_reason = 'claude-mem:cancelled')";

pub(crate) struct Sessions;

impl Projection for Sessions {
    fn name(&self) -> &'static str {
        "sessions"
    }

    fn version(&self) -> u32 {
        2
    }

    fn apply(&self, rows: &Rows<'_>, event: &Recorded) -> Result<()> {
        if matches!(event.event, Event::Erased { .. } | Event::LogCompacted(_)) {
            return Ok(());
        }
        let Some(session) = place(rows, event)?.session else { return Ok(()) };
        match &event.event {
            Event::SessionStarted(started) => start(rows, event, session, started),
            Event::PromptSubmitted(_) => {
                note_event(rows, event, session, Some(true));
                Ok(())
            }
            Event::ToolUsed(used) => {
                note_event(rows, event, session, used.agent_id.is_empty().then_some(true));
                Ok(())
            }
            Event::SummaryRequested(stop) => {
                note_event(rows, event, session, (stop.scope == StopScope::Turn).then_some(false));
                Ok(())
            }
            Event::SessionEnded(ended) => end(rows, event, session, ended),
            Event::AgentReplied(replied) => {
                let sql = "update sessions set memory_session = ?2 where id = ?1";
                if replied.generation == 0 && !replied.memory_session_id.is_empty() {
                    rows.run(sql, (session, &replied.memory_session_id))?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// The session, project and turn of an event.
#[derive(Debug, Default)]
pub(crate) struct EventPlace {
    /// Row of the session; `None` outside of any.
    pub(crate) session: Option<i64>,
    pub(crate) project: i64,
    /// Number of the current prompt.
    pub(crate) prompt_number: i64,
    /// Number of the prompt that began the turn.
    pub(crate) turn: i64,
    /// The client's id of the turn; empty if it gives none.
    pub(crate) prompt_id: String,
}

/// Cache of places.
#[derive(Debug, Default)]
pub(crate) struct Places {
    by_envelope: HashMap<String, Rc<EventPlace>>,
    /// Several projections look up the same event.
    last: Option<(Id, Rc<EventPlace>)>,
}

impl Places {
    /// Empties the cache after a change of sessions or projects.
    pub(crate) fn clear(&mut self) {
        self.by_envelope.clear();
        self.last = None;
    }
}

/// Finds the place of an event; creates the session and the project if they are new.
pub(crate) fn place(rows: &Rows<'_>, event: &Recorded) -> Result<Rc<EventPlace>> {
    if let Some((of, place)) = &rows.places.borrow().last
        && *of == event.id
    {
        return Ok(Rc::clone(place));
    }
    let place = look_up(rows, event)?;
    rows.places.borrow_mut().last = Some((event.id, Rc::clone(&place)));
    Ok(place)
}

fn look_up(rows: &Rows<'_>, event: &Recorded) -> Result<Rc<EventPlace>> {
    let envelope = &event.envelope;
    let project = &envelope.project;
    let key = [&envelope.platform, &envelope.session, &project.key, &project.label, &project.root]
        .map(String::as_str)
        .join("\0");
    if let Some(place) = rows.places.borrow().by_envelope.get(&key) {
        return Ok(Rc::clone(place));
    }
    let mut place =
        EventPlace { project: projects::row_of(rows, event, project)?, ..EventPlace::default() };
    if !envelope.session.is_empty() {
        find_session(rows, event, &mut place)?;
    }
    let place = Rc::new(place);
    rows.places.borrow_mut().by_envelope.insert(key, Rc::clone(&place));
    Ok(place)
}

fn find_session(rows: &Rows<'_>, event: &Recorded, place: &mut EventPlace) -> Result<()> {
    let sql = "select id, prompt_number, turn, prompt_id, project from sessions
               where platform = ?1 and session = ?2";
    let envelope = &event.envelope;
    let found = rows
        .cached(sql)?
        .query_row((platform(rows, event), &envelope.session), |row| {
            place.session = Some(row.get(0)?);
            place.prompt_number = row.get(1)?;
            place.turn = row.get(2)?;
            place.prompt_id = row.get::<_, Option<String>>(3)?.unwrap_or_default();
            row.get::<_, i64>(4)
        })
        .optional()?;
    match found {
        None => place.session = Some(insert(rows, event, place.project)?),
        // An event without a project belongs to the session's.
        Some(project) if envelope.project.key.is_empty() => place.project = project,
        Some(_) => {}
    }
    Ok(())
}

fn insert(rows: &Rows<'_>, event: &Recorded, project: i64) -> Result<i64> {
    let id = rows.numbers("sessions", 1)?;
    let sql = "insert into sessions
                   (id, event, seq, platform, session, host, project, started_at_us, at_us, log)
               values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9)";
    let envelope = &event.envelope;
    let (seq, at_us) = (event.seq.raw() as i64, event.at_us() as i64);
    let (platform, session, host) =
        (platform(rows, event), &envelope.session, some(&envelope.host));
    let event = event.id.as_bytes();
    rows.run(sql, params![id, event, seq, platform, session, host, project, at_us, rows.host])?;
    Ok(id)
}

/// The client; for other hosts with the number of the host, so that each log has its own sessions.
fn platform<'e>(rows: &Rows<'_>, event: &'e Recorded) -> Cow<'e, str> {
    match rows.host {
        0 => event.envelope.platform.as_str().into(),
        log => format!("{}@{log}", event.envelope.platform).into(),
    }
}

fn start(rows: &Rows<'_>, event: &Recorded, session: i64, started: &SessionStarted) -> Result<()> {
    let sql =
        "update sessions set source = ?2, cwd = coalesce(?3, cwd), model = coalesce(?4, model),
                   transcript_path = coalesce(?5, transcript_path), at_us = max(at_us, ?6),
                   ended_at_us = null, end_reason = null, forgotten_by = null
               where id = ?1";
    let SessionStarted { source, cwd, model, transcript_path, .. } = started;
    let at_us = event.at_us() as i64;
    rows.run(sql, (session, some(source), some(cwd), some(model), some(transcript_path), at_us))?;
    write_git_state(rows, session, &GitChanges::of(event))
}

/// The git state that events of a session carry.
#[derive(Debug, Default)]
struct GitChanges {
    branch: String,
    first_commit: String,
    last_commit: String,
}

impl GitChanges {
    fn of(event: &Recorded) -> Self {
        let mut changes = Self::default();
        changes.note(event);
        changes
    }

    /// An unknown state changes nothing. A detached HEAD has a commit and no branch.
    fn note(&mut self, event: &Recorded) {
        let Envelope { branch, commit, .. } = &event.envelope;
        if !branch.is_empty() {
            self.branch.clone_from(branch);
        }
        if !commit.is_empty() {
            if self.first_commit.is_empty() {
                self.first_commit.clone_from(commit);
            }
            self.last_commit.clone_from(commit);
        }
    }
}

fn write_git_state(rows: &Rows<'_>, session: i64, changes: &GitChanges) -> Result<()> {
    let GitChanges { branch, first_commit, last_commit } = changes;
    if branch.is_empty() && last_commit.is_empty() {
        return Ok(());
    }
    let sql = "update sessions set branch = coalesce(?2, branch),
                   first_commit = coalesce(first_commit, ?3),
                   last_commit = coalesce(?4, last_commit)
               where id = ?1";
    rows.run(sql, (session, some(branch), some(first_commit), some(last_commit)))?;
    Ok(())
}

/// Changes of a session that are not in its row yet. Most events change the same few numbers, so
/// the changes are collected, and written before anything reads or sets them and at the end of the
/// batch.
#[derive(Debug, Default)]
pub(crate) struct SessionChanges {
    at_us: i64,
    tool_uses: i64,
    stops: i64,
    is_turn_open: Option<bool>,
    git: GitChanges,
}

/// Notes an event of the session. Events of subagents leave `is_turn_open` as it is.
fn note_event(rows: &Rows<'_>, event: &Recorded, session: i64, is_turn_open: Option<bool>) {
    let mut session_changes = rows.session_changes.borrow_mut();
    let session_changes = session_changes.entry(session).or_default();
    session_changes.at_us = session_changes.at_us.max(event.at_us() as i64);
    session_changes.tool_uses += i64::from(matches!(event.event, Event::ToolUsed(_)));
    session_changes.stops += i64::from(matches!(event.event, Event::SummaryRequested(_)));
    session_changes.is_turn_open = is_turn_open.or(session_changes.is_turn_open);
    session_changes.git.note(event);
}

/// Whether an event only adds to [`SessionChanges`].
pub(crate) fn only_adds_to_session(event: &Event) -> bool {
    matches!(
        event,
        Event::PromptSubmitted(_)
            | Event::ToolUsed(_)
            | Event::SummaryRequested(_)
            | Event::AgentReplied(_)
    )
}

/// Writes the collected changes. After the end of a session only a later event opens it again: its
/// last hooks may be recorded after the end.
pub(crate) fn write_session_changes(rows: &Rows<'_>) -> Result<()> {
    let sql = "update sessions set
                   end_reason = iif(ended_at_us >= ?2, end_reason, null),
                   ended_at_us = iif(ended_at_us >= ?2, ended_at_us, null),
                   at_us = max(at_us, ?2), tool_uses = tool_uses + ?3, stops = stops + ?4,
                   is_turn_open = coalesce(?5, is_turn_open), forgotten_by = null
               where id = ?1";
    for (session, session_changes) in rows.session_changes.take() {
        let SessionChanges { at_us, tool_uses, stops, is_turn_open, git } = session_changes;
        rows.run(sql, (session, at_us, tool_uses, stops, is_turn_open))?;
        write_git_state(rows, session, &git)?;
    }
    Ok(())
}

fn end(rows: &Rows<'_>, event: &Recorded, session: i64, ended: &SessionEnded) -> Result<()> {
    let sql = "update sessions set at_us = max(at_us, ?2), ended_at_us = ?2, end_reason = ?3
               where id = ?1";
    rows.run(sql, (session, event.at_us() as i64, some(&ended.reason)))?;
    write_git_state(rows, session, &GitChanges::of(event))
}
