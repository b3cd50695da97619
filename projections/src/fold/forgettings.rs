//! Forgetting: rows of forgotten events are deleted immediately, and none are made from them later.
//!
//! Events are marked, so that a later reply about them makes no memory. Undoing a forgetting needs
//! content that only the log still has: folding stops there and the database is rebuilt, knowing
//! that the forgetting is void.
//!
//! A forgetting also applies to events of other machines. In its own log it covers all earlier
//! events. In other logs it covers the events that it names, and otherwise those with a lower id.
//! The order in which logs are folded does not matter ([`reach`]).

use crate::{
    error::Result,
    fold::{
        corrections, files_touched,
        projection::{Projection, Rows},
        projects, revisions,
    },
    hosts::FIRST_FOREIGN_SEQ,
    store::sql_values::some,
};
use claude_mem_events::{Event, Forgotten, Id, Recorded, Versioned as _};
use claude_mem_events::{LogCompacted, ProjectMerged, ReprocessFinished, ReprocessStarted};
use rusqlite::{ToSql, params};
use std::ops::Range;

pub(crate) struct Forgettings;

impl Projection for Forgettings {
    fn name(&self) -> &'static str {
        "forgettings"
    }

    fn version(&self) -> u32 {
        4
    }

    fn apply(&self, rows: &Rows<'_>, event: &Recorded) -> Result<()> {
        match &event.event {
            Event::Forgotten(forgotten) => note(rows, event, forgotten),
            _ => Ok(()),
        }
    }
}

fn note(rows: &Rows<'_>, event: &Recorded, forgotten: &Forgotten) -> Result<()> {
    let forgetting = Forgetting { seq: event.seq.raw() as i64, event: event.id, forgotten };
    let is_void = is_void(rows, event.id)?;
    let sql = "insert into forgettings
                   (seq, event, at_us, undoes, is_void, reason, events, memories, what, is_open)
               values (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, ?7, ?8)";
    let what = serde_json::to_string(forgotten).expect("a forgetting can be written");
    let (reason, undoes) = (some(&forgotten.reason), forgotten.undoes);
    let values = params![
        forgetting.seq,
        event.id.as_bytes(),
        event.at_us() as i64,
        undoes,
        is_void,
        reason,
        what,
        forgetting.is_open(),
    ];
    rows.run(sql, values)?;
    if is_void || undoes.is_some() {
        return Ok(());
    }
    forgetting.note_events(rows)?;
    forgetting.carry_out(rows, &(0..i64::MAX))
}

/// Whether a forgetting was undone: later in the logs, or in one that was folded before.
fn is_void(rows: &Rows<'_>, event: Id) -> Result<bool> {
    let sql = "select exists (select 1 from void_forgettings where event = ?1)
                   or exists (select 1 from forgettings where undoes = ?1 and not is_void)";
    Ok(rows.cached(sql)?.query_row([event.as_bytes()], |row| row.get(0))?)
}

/// Applies the forgettings of other logs to the earlier ones among the events just folded.
pub(crate) fn reach(rows: &Rows<'_>, folded: &Range<i64>) -> Result<()> {
    let sql = "select seq, event, what from forgettings
               where host != ?3 and not is_void and undoes is null and (is_open or seq in (
                   select forgetting from forgotten_events where event in (
                       select event from events where seq >= ?1 and seq < ?2)))
               order by event";
    let mut statement = rows.cached(sql)?;
    let found: Vec<(i64, [u8; 16], String)> = statement
        .query_map((folded.start, folded.end, rows.host), |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?
        .collect::<rusqlite::Result<_>>()?;
    for (seq, event, what) in found {
        let forgotten = serde_json::from_str(&what).unwrap_or_default();
        let event = Id::from_bytes(event);
        Forgetting { seq, event, forgotten: &forgotten }.carry_out(rows, folded)?;
    }
    Ok(())
}

/// An active forgetting.
struct Forgetting<'a> {
    seq: i64,
    event: Id,
    forgotten: &'a Forgotten,
}

/// The host of the forgetting at `?1`.
const HOST: &str = "(select host from forgettings where seq = ?1)";

/// SQL condition: the row is older than the forgetting at `?1` with the id `?2`. Rows of the same
/// log compare by position; those of other logs by id, which starts with the time.
fn is_before() -> String {
    format!("iif(host = {HOST}, seq < ?1, event < ?2)")
}

impl Forgetting<'_> {
    /// Whether it is defined by conditions rather than by a list of events.
    fn is_open(&self) -> bool {
        let Forgotten { session, project, since_us, until_us, file, events, rows, .. } =
            self.forgotten;
        let has_condition = !session.is_empty()
            || !project.is_empty()
            || since_us.is_some()
            || until_us.is_some()
            || !file.is_empty();
        has_condition && (events.is_empty() && rows.is_empty() || !file.is_empty())
    }

    fn note_events(&self, rows: &Rows<'_>) -> Result<()> {
        let addressed = self.forgotten.rows.iter().filter_map(|address| Some(parse(address)?.0));
        let sql = "insert or ignore into forgotten_events (event, forgetting) values (?1, ?2)";
        for event in self.forgotten.events.iter().copied().chain(addressed) {
            rows.run(sql, (event, self.seq))?;
        }
        Ok(())
    }

    /// Row ids of the projects that it covers, as a JSON list; empty if it is not limited to a
    /// project.
    fn projects(&self, rows: &Rows<'_>) -> Result<String> {
        match self.forgotten.project.as_str() {
            "" => Ok(String::new()),
            key => projects::one_with(rows, key, self.event),
        }
    }

    /// Forgets the matching events in the range `within`.
    fn carry_out(&self, rows: &Rows<'_>, within: &Range<i64>) -> Result<()> {
        let mut memories = 0;
        for address in &self.forgotten.rows {
            memories += forget_row(rows, self.seq, address, within)?;
        }
        let events = self.mark(rows, within)?;
        if events > 0 {
            memories += forget_memories(rows, self.seq)?;
            forget_marked(rows, self.seq)?;
        }
        if !self.forgotten.file.is_empty() {
            memories += self.forget_file(rows, within)?;
        }
        if events > 0 || memories > 0 {
            revisions::forget(rows)?;
            revisions::resolve_all(rows)?;
            corrections::resolve_all(rows)?;
        }
        self.forget_sessions(rows, within)?;
        let sql =
            "update forgettings set events = events + ?2, memories = memories + ?3 where seq = ?1";
        rows.run(sql, (self.seq, events as i64, memories as i64))?;
        Ok(())
    }

    /// Marks the events that match every condition. Events that control how others are read are
    /// excluded. Our own forgetting takes precedence over that of another machine, whichever was
    /// folded first: only ours may erase bytes without a confirmation.
    fn mark(&self, rows: &Rows<'_>, within: &Range<i64>) -> Result<usize> {
        let Forgotten { events, session, since_us, until_us, .. } = self.forgotten;
        let project = self.projects(rows)?;
        let is_named = !events.is_empty();
        let is_fit = self.is_open() && self.forgotten.rows.is_empty();
        if !is_named && !is_fit {
            return Ok(0);
        }
        let which = match is_named {
            true => {
                // An event named here is known to the forgetting, so it matches regardless of the
                // clocks. `forgotten_events` also contains replies of which only single memories
                // are named: these replies stay.
                format!(
                    "(host != {HOST} or seq < ?1)
                     and event in (select event from forgotten_events where forgetting = ?1)
                     and lower(hex(event)) in (select value from json_each(?14))"
                )
            }
            false => is_before(),
        };
        let hex = |event: &[u8; 16]| Id::from_bytes(*event).to_string().replace('-', "");
        let named = serde_json::to_string(&events.iter().map(hex).collect::<Vec<_>>())
            .expect("a list of words can be written");
        let sql = format!(
            "update events set forgotten_by = ?1
             where seq >= ?3 and seq < ?4 and {which}
                 and (forgotten_by is null or ?1 < {FIRST_FOREIGN_SEQ} and forgotten_by >= {FIRST_FOREIGN_SEQ})
                 and kind not in (?5, ?6, ?7, ?8, {})
                 and (?9 = '' or session in (select id from sessions where session = ?9))
                 and (?10 = '' or project in (select value from json_each(?10)))
                 and (?11 is null or at_us >= ?11) and (?12 is null or at_us < ?12)
                 and (?13 = '' or seq in (select seq from tool_uses where {}))
                 and ?14 is not null",
            LogCompacted::KIND,
            names_file("files_written", "?13")
        );
        rows.run(
            &sql,
            params![
                self.seq,
                self.event.as_bytes(),
                within.start,
                within.end,
                Forgotten::KIND,
                ProjectMerged::KIND,
                ReprocessStarted::KIND,
                ReprocessFinished::KIND,
                session,
                project,
                since_us.map(|us| us as i64),
                until_us.map(|us| us as i64),
                file_of(self.forgotten),
                named,
            ],
        )
    }

    /// Deletes memories that name the file, independent of their source events.
    fn forget_file(&self, rows: &Rows<'_>, within: &Range<i64>) -> Result<usize> {
        let Forgotten { session, since_us, until_us, .. } = self.forgotten;
        let project = self.projects(rows)?;
        let mut removed = 0;
        for (table, written) in [("observations", "files_modified"), ("summaries", "files_edited")]
        {
            let which = format!(
                "seq >= ?3 and seq < ?4 and {}
                     and (?5 = '' or session in (select id from sessions where session = ?5))
                     and (?6 = '' or project in (select value from json_each(?6)))
                     and (?7 is null or at_us >= ?7) and (?8 is null or at_us < ?8)
                     and {}",
                is_before(),
                names_file(written, "?9")
            );
            let values = params![
                self.seq,
                self.event.as_bytes(),
                within.start,
                within.end,
                session,
                project,
                since_us.map(|us| us as i64),
                until_us.map(|us| us as i64),
                file_of(self.forgotten),
            ];
            removed += delete(rows, table, self.seq, &which, values)?;
        }
        Ok(removed)
    }

    /// Of a session or project that was forgotten completely, only its existence remains. If it
    /// continued later on another machine, it stays visible, without the earlier details.
    fn forget_sessions(&self, rows: &Rows<'_>, within: &Range<i64>) -> Result<()> {
        let Forgotten {
            events, rows: addresses, session, project, since_us, until_us, file, ..
        } = self.forgotten;
        let is_part = !events.is_empty()
            || !addresses.is_empty()
            || since_us.is_some()
            || until_us.is_some()
            || !file.is_empty();
        if is_part || (session.is_empty() && project.is_empty()) {
            return Ok(());
        }
        let sql = format!(
            "update sessions set forgotten_by = iif(log = {HOST} or at_us <= ?5, ?1, forgotten_by),
                 cwd = null, transcript_path = null, title = null, memory_session = null,
                 branch = null, first_commit = null, last_commit = null
             where iif(log = {HOST}, seq < ?1, event < ?2) and (?6 or log = ?7)
                 and (?3 = '' or session = ?3)
                 and (?4 = '' or project in (select value from json_each(?4)))"
        );
        let (event, at_us) = (self.event.as_bytes(), self.event.time_us() as i64);
        let (is_all, project) = (*within == (0..i64::MAX), self.projects(rows)?);
        rows.run(&sql, params![self.seq, event, session, project, at_us, is_all, rows.host])?;
        rows.places.borrow_mut().clear();
        Ok(())
    }
}

/// The event and the number in an address; without a number, it means all memories of that event.
fn parse(address: &str) -> Option<([u8; 16], Option<i64>)> {
    let (event, number) = address.split_once('/').unwrap_or((address, ""));
    Some((*Id::parse(event)?.as_bytes(), number.parse().ok()))
}

/// Deletes one memory, addressed by the id of its event, a slash and its number.
fn forget_row(rows: &Rows<'_>, by: i64, address: &str, within: &Range<i64>) -> Result<usize> {
    let Some((event, number)) = parse(address) else { return Ok(0) };
    let mut removed = 0;
    for table in ["observations", "summaries"] {
        let which = "(?2 is null or number = ?2) and seq in (
            select seq from events where event = ?1 and seq >= ?3 and seq < ?4)";
        let values = params![event, number, within.start, within.end];
        removed += delete(rows, table, by, which, values)?;
    }
    Ok(removed)
}

/// Deletes memories. Records which observations are forgotten, so that their later revisions are,
/// too.
fn delete(
    rows: &Rows<'_>,
    table: &str,
    by: i64,
    which: &str,
    values: &[&dyn ToSql],
) -> Result<usize> {
    if table == "observations" {
        let sql = format!(
            "insert or ignore into forgotten_observations (event, number, forgetting)
             select event, number, {by} from observations where {which}"
        );
        rows.run(&sql, values)?;
    }
    rows.run(&format!("delete from {table} where {which}"), values)
}

/// SQL: whether a row names the file, or a file in that folder, as read or written.
fn names_file(written: &str, file: &str) -> String {
    let names = |list: &str| {
        format!(
            "select 1 from json_each(coalesce({list}, '[]')) where value = {file}
                 or substr(value, 1, length({file}) + 1) = {file} || '/'"
        )
    };
    format!("exists ({} union all {})", names("files_read"), names(written))
}

fn file_of(forgotten: &Forgotten) -> String {
    match forgotten.file.is_empty() {
        true => String::new(),
        false => files_touched::relative(&forgotten.file, "", ""),
    }
}

/// Deletes memories made of marked events: by replies that answer one of them, by hand, or by
/// import.
fn forget_memories(rows: &Rows<'_>, by: i64) -> Result<usize> {
    let mut removed = 0;
    for table in ["observations", "summaries"] {
        let which = "seq in (select seq from events where forgotten_by = ?1
            union select reply from answers join events on events.seq = answers.source
            where events.forgotten_by = ?1)";
        removed += delete(rows, table, by, which, params![by])?;
    }
    Ok(removed)
}

/// Deletes all other rows of marked events. Keeps the costs of replies and failures, without their
/// texts.
fn forget_marked(rows: &Rows<'_>, by: i64) -> Result<()> {
    let is_of_marked = "seq in (select seq from events where forgotten_by = ?1
        union select reply from answers join events on events.seq = answers.source
        where events.forgotten_by = ?1)";
    corrections::delete(rows, is_of_marked, [by])?;
    for table in ["prompts", "tool_uses", "stops", "unreadable", "imports", "injections"] {
        let sql = format!(
            "delete from {table} where seq in (select seq from events where forgotten_by = ?1)"
        );
        rows.run(&sql, [by])?;
    }
    let sql = "update failures set message = null where seq in (
                   select seq from events where forgotten_by = ?1)";
    rows.run(sql, [by])?;
    let sql = "update replies set skip_reason = null, is_current = 0 where seq in (
                   select seq from events where forgotten_by = ?1
                   union select reply from answers join events on events.seq = answers.source
                   where events.forgotten_by = ?1)";
    rows.run(sql, [by])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        FoldState, RebuildReason, Store,
        test_log::{TestLog, titled},
    };

    fn titles(store: &Store) -> String {
        store.check_index().unwrap();
        store.dump("select id, title from observations order by id").unwrap().replace('\n', " ")
    }

    #[test]
    fn a_forgotten_event_removes_everything_made_from_it() {
        let mut scene = TestLog::new();
        scene.prompt("go");
        let (one, two) = (scene.tool("Bash", "{}"), scene.tool("Bash", "{}"));
        let other = scene.tool("Bash", "{}");
        scene.reply(&[one, two], &(titled("a") + &titled("b")));
        scene.reply(&[other], &titled("c"));
        scene.add(Forgotten { events: vec![one], ..Forgotten::default() });
        let store = scene.fold();
        assert_eq!(titles(&store), "3|c ");
        assert_eq!(store.dump("select count(*) from tool_uses").unwrap(), "2\n");
        assert_eq!(store.dump("select events, memories from forgettings").unwrap(), "1|2\n");
    }

    #[test]
    fn a_reply_about_forgotten_events_makes_no_memory_and_uses_its_number() {
        let mut scene = TestLog::new();
        let tool = scene.tool("Bash", "{}");
        scene.add(Forgotten { session: "s".into(), ..Forgotten::default() });
        scene.reply(&[tool], &titled("late"));
        let next = scene.tool("Bash", "{}");
        scene.reply(&[next], &titled("next"));
        assert_eq!(titles(&scene.fold()), "2|next ");
    }

    #[test]
    fn one_memory_is_forgotten_by_its_address() {
        let mut scene = TestLog::new();
        let tool = scene.tool("Bash", "{}");
        let reply = scene.reply(&[tool], &(titled("a") + &titled("b")));
        let address = format!("{}/2", Id::from_bytes(reply));
        scene.add(Forgotten { rows: vec![address], ..Forgotten::default() });
        assert_eq!(titles(&scene.fold()), "1|a ");
    }

    #[test]
    fn everything_about_a_file_is_forgotten_only_in_its_project() {
        let mut scene = TestLog::new();
        let edit = scene.tool("Edit", r#"{"file_path":"/p/src/a.rs"}"#);
        let other = scene.tool("Edit", r#"{"file_path":"/p/src/ab.rs"}"#);
        scene.reply(&[edit], &titled("a"));
        scene.reply(&[other], &titled("ab"));
        let forget = |project: &str| {
            let (file, project) = ("src/a.rs".into(), project.into());
            Forgotten { file, project, ..Forgotten::default() }
        };
        scene.add(forget("elsewhere"));
        assert_eq!(titles(&scene.fold()), "1|a 2|ab ");
        scene.add(forget("k"));
        assert_eq!(titles(&scene.fold()), "2|ab ");
    }

    #[test]
    fn undoing_a_forgetting_needs_the_log() {
        let mut scene = TestLog::new();
        let tool = scene.tool("Bash", "{}");
        scene.reply(&[tool], &titled("a"));
        let forgetting = scene.add(Forgotten { events: vec![tool], ..Forgotten::default() });
        let mut store = scene.fold();
        let undone = scene.events.len();
        scene.add(Forgotten { undoes: Some(forgetting), ..Forgotten::default() });
        let folded = store.fold_events(&scene.events[undone..]).unwrap();
        assert_eq!(
            (folded.events, folded.state),
            (0, FoldState::NeedsRebuild(RebuildReason::EarlierEventsAffected))
        );
        assert_eq!(titles(&store), "");
    }
}
