//! Forgetting: what a forgetting names leaves the tables at once, and nothing is made of it later.
//!
//! Events are marked, so that a reply which comes afterwards makes no memory of them. Taking a forgetting
//! back needs what only the log still has: folding stops there and all is drawn again, this time knowing
//! that the forgetting is void.

use crate::{
    error::Result,
    evidence,
    projection::{Projection, Rows, some},
};
use claude_mem_events::{Event, Forgotten, Id, Recorded, Versioned as _};
use claude_mem_events::{ProjectMerged, ReprocessFinished, ReprocessStarted};
use rusqlite::params;

/// Forgettings.
pub(crate) struct Forgettings;

impl Projection for Forgettings {
    fn name(&self) -> &'static str {
        "forgettings"
    }

    fn version(&self) -> u32 {
        1
    }

    fn apply(&self, rows: &Rows<'_>, event: &Recorded) -> Result<()> {
        match &event.event {
            Event::Forgotten(forgotten) => note(rows, event, forgotten),
            _ => Ok(()),
        }
    }
}

fn note(rows: &Rows<'_>, event: &Recorded, forgotten: &Forgotten) -> Result<()> {
    let sql = "select exists (select 1 from void_forgettings where event = ?1)";
    let is_void: bool = rows.cached(sql)?.query_row([event.id.as_bytes()], |row| row.get(0))?;
    let taken = match is_void || forgotten.undoes.is_some() {
        true => Taken::default(),
        false => forget(rows, event, forgotten)?,
    };
    let sql = "insert into forgettings values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let (seq, at_us) = (event.seq.raw() as i64, event.at_us() as i64);
    let reason = some(&forgotten.reason);
    let Taken { events, memories } = taken;
    let undoes = forgotten.undoes;
    rows.run(
        sql,
        params![seq, event.id.as_bytes(), at_us, undoes, is_void, reason, events, memories as i64],
    )?;
    Ok(())
}

#[derive(Default)]
struct Taken {
    events: i64,
    memories: usize,
}

fn forget(rows: &Rows<'_>, event: &Recorded, forgotten: &Forgotten) -> Result<Taken> {
    let by = event.seq.raw() as i64;
    let mut taken = Taken::default();
    for address in &forgotten.rows {
        taken.memories += forget_row(rows, address)?;
    }
    mark(rows, by, forgotten)?;
    let sql = "select count(*) from events where forgotten_by = ?1";
    taken.events = rows.cached(sql)?.query_row([by], |row| row.get(0))?;
    taken.memories += forget_memories(rows, by)?;
    if !forgotten.file.is_empty() {
        taken.memories += forget_file(rows, forgotten)?;
    }
    forget_marked(rows, by)?;
    forget_sessions(rows, by, forgotten)?;
    Ok(taken)
}

/// One memory, by the id of its event, a slash and its number there; without a number all of that event.
fn forget_row(rows: &Rows<'_>, address: &str) -> Result<usize> {
    let (event, number) = address.split_once('/').unwrap_or((address, ""));
    let Some(event) = Id::parse(event) else { return Ok(0) };
    let number: Option<i64> = number.parse().ok();
    let mut removed = 0;
    for table in ["observations", "summaries"] {
        let sql = format!(
            "delete from {table} where event = ?1 and (?2 is null or number = ?2)
                           and seq = (select seq from events where event = ?1)"
        );
        removed += rows.run(&sql, params![event.as_bytes(), number])?;
    }
    Ok(removed)
}

/// Marks the events that fit every condition given. Events that say how to read others are no memories.
fn mark(rows: &Rows<'_>, by: i64, forgotten: &Forgotten) -> Result<()> {
    let Forgotten { events, session, project, since_us, until_us, file, .. } = forgotten;
    let has_condition = !session.is_empty()
        || !project.is_empty()
        || since_us.is_some()
        || until_us.is_some()
        || !file.is_empty();
    if events.is_empty() && !(has_condition && forgotten.rows.is_empty()) {
        return Ok(());
    }
    let named: String =
        events.iter().map(|event| Id::from_bytes(*event).to_string() + " ").collect();
    let named = named.replace('-', "");
    let sql = "update events set forgotten_by = ?1
               where seq < ?1 and forgotten_by is null and kind not in (?2, ?3, ?4, ?5)
                   and (?6 = '' or instr(?6, lower(hex(event))))
                   and (?7 = '' or session in (select id from sessions where session = ?7))
                   and (?8 = '' or project in (select id from projects
                       where owner in (select owner from projects where key = ?8)))
                   and (?9 is null or at_us >= ?9) and (?10 is null or at_us < ?10)
                   and (?11 = '' or seq in (select seq from tool_uses where exists (
                       select 1 from json_each(coalesce(files_read, '[]')) where value = ?11
                           or substr(value, 1, length(?11) + 1) = ?11 || '/'
                       union all
                       select 1 from json_each(coalesce(files_written, '[]')) where value = ?11
                           or substr(value, 1, length(?11) + 1) = ?11 || '/')))";
    rows.run(
        sql,
        params![
            by,
            Forgotten::KIND,
            ProjectMerged::KIND,
            ReprocessStarted::KIND,
            ReprocessFinished::KIND,
            named,
            session,
            project,
            since_us.map(|us| us as i64),
            until_us.map(|us| us as i64),
            file_of(forgotten),
        ],
    )?;
    Ok(())
}

fn file_of(forgotten: &Forgotten) -> String {
    match forgotten.file.is_empty() {
        true => String::new(),
        false => evidence::relative(&forgotten.file, "", ""),
    }
}

/// Memories made of marked events: by replies that answer one of them, by hand, or by import.
fn forget_memories(rows: &Rows<'_>, by: i64) -> Result<usize> {
    let mut removed = 0;
    for table in ["observations", "summaries"] {
        let sql = format!(
            "delete from {table} where seq in (
                 select seq from events where forgotten_by = ?1
                 union select reply from answers join events on events.seq = answers.source
                 where events.forgotten_by = ?1)"
        );
        removed += rows.run(&sql, [by])?;
    }
    Ok(removed)
}

/// Memories that name a file, whatever they were made of.
fn forget_file(rows: &Rows<'_>, forgotten: &Forgotten) -> Result<usize> {
    let Forgotten { session, project, since_us, until_us, .. } = forgotten;
    let mut removed = 0;
    for (table, written) in [("observations", "files_modified"), ("summaries", "files_edited")] {
        let sql = format!(
            "delete from {table} where (?1 = '' or session in (select id from sessions where session = ?1))
                 and (?2 = '' or project in (select id from projects
                     where owner in (select owner from projects where key = ?2)))
                 and (?3 is null or at_us >= ?3) and (?4 is null or at_us < ?4)
                 and exists (select 1 from json_each(coalesce(files_read, '[]')) where value = ?5
                         or substr(value, 1, length(?5) + 1) = ?5 || '/'
                     union all
                     select 1 from json_each(coalesce({written}, '[]')) where value = ?5
                         or substr(value, 1, length(?5) + 1) = ?5 || '/')"
        );
        let (since_us, until_us) = (since_us.map(|us| us as i64), until_us.map(|us| us as i64));
        removed +=
            rows.run(&sql, params![session, project, since_us, until_us, file_of(forgotten)])?;
    }
    Ok(removed)
}

/// Everything else that was made of marked events. What a reply cost stays known; what it said does not.
fn forget_marked(rows: &Rows<'_>, by: i64) -> Result<()> {
    for table in ["prompts", "tool_uses", "stops", "unreadable", "imports"] {
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

/// A session or project forgotten as a whole leaves only the fact that there was one.
fn forget_sessions(rows: &Rows<'_>, by: i64, forgotten: &Forgotten) -> Result<()> {
    let Forgotten { events, rows: addresses, session, project, since_us, until_us, file, .. } =
        forgotten;
    let is_part = !events.is_empty()
        || !addresses.is_empty()
        || since_us.is_some()
        || until_us.is_some()
        || !file.is_empty();
    if is_part || (session.is_empty() && project.is_empty()) {
        return Ok(());
    }
    let sql =
        "update sessions set forgotten_by = ?1, cwd = null, transcript_path = null, title = null,
                   memory_session = null
               where (?2 = '' or session = ?2) and (?3 = '' or project in (select id from projects
                   where owner in (select owner from projects where key = ?3)))";
    rows.run(sql, (by, session, project))?;
    rows.places.borrow_mut().clear();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Redraw, State, Store,
        scene::{Scene, titled},
    };

    fn titles(store: &Store) -> String {
        store.check_index().unwrap();
        store.dump("select id, title from observations order by id").unwrap().replace('\n', " ")
    }

    #[test]
    fn a_forgotten_event_takes_with_it_all_that_was_made_of_it() {
        let mut scene = Scene::new();
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
    fn a_reply_about_what_is_forgotten_makes_no_memory_and_uses_up_its_number() {
        let mut scene = Scene::new();
        let tool = scene.tool("Bash", "{}");
        scene.add(Forgotten { session: "s".into(), ..Forgotten::default() });
        scene.reply(&[tool], &titled("late"));
        let next = scene.tool("Bash", "{}");
        scene.reply(&[next], &titled("next"));
        assert_eq!(titles(&scene.fold()), "2|next ");
    }

    #[test]
    fn one_memory_is_forgotten_by_its_address() {
        let mut scene = Scene::new();
        let tool = scene.tool("Bash", "{}");
        let reply = scene.reply(&[tool], &(titled("a") + &titled("b")));
        let address = format!("{}/2", Id::from_bytes(reply));
        scene.add(Forgotten { rows: vec![address], ..Forgotten::default() });
        assert_eq!(titles(&scene.fold()), "1|a ");
    }

    #[test]
    fn whatever_touches_a_file_is_forgotten_in_its_project_alone() {
        let mut scene = Scene::new();
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
    fn taking_a_forgetting_back_asks_for_the_log() {
        let mut scene = Scene::new();
        let tool = scene.tool("Bash", "{}");
        scene.reply(&[tool], &titled("a"));
        let forgetting = scene.add(Forgotten { events: vec![tool], ..Forgotten::default() });
        let mut store = scene.fold();
        let undone = scene.events.len();
        scene.add(Forgotten { undoes: Some(forgetting), ..Forgotten::default() });
        let folded = store.fold_events(&scene.events[undone..]).unwrap();
        assert_eq!((folded.events, folded.state), (0, State::Redraw(Redraw::Restored)));
        assert_eq!(titles(&store), "");
    }
}
