//! Revisions: changes of an observation by a user or program.
//!
//! The state of an observation is a function of all its revisions, in the order of their ids, and
//! of the existing rows. It does not matter whether the revision or the observation is folded
//! first. Everything else that changes rows (a reprocessing, a forgetting, a compaction) calls
//! [`resolve_all`], so that incremental folding and a rebuild agree.
//!
//! A reprocessing does not replace edited and pinned observations. An observation of another reply
//! to the same events with the same content as a revised one *repeats* it and is retired, too. So
//! an observation marked as wrong is not given again after a reprocessing.

use crate::{
    error::Result,
    fold::{
        corrections::normalized,
        observations::author,
        projection::{Projection, Rows},
    },
    fts_terms,
    store::sql_values::items,
};
use claude_mem_events::{Event, MemoryRevised, ObservationRef, Recorded, Revision};
use rusqlite::{OptionalExtension, params};
use std::collections::BTreeSet;

/// Corrections by hand.
pub(crate) struct Revisions;

impl Projection for Revisions {
    fn name(&self) -> &'static str {
        "revisions"
    }

    fn version(&self) -> u32 {
        3
    }

    fn apply(&self, rows: &Rows<'_>, event: &Recorded) -> Result<()> {
        match &event.event {
            Event::MemoryRevised(revised) => {
                insert(rows, event, revised)?;
                forget(rows)?;
                update_target(rows, &revised.target.event, i64::from(revised.target.number))
            }
            Event::AgentReplied(_)
            | Event::AgentFailed(_)
            | Event::MemoryAdded(_)
            | Event::Imported(_) => arrive(rows, event),
            _ => Ok(()),
        }
    }
}

fn insert(rows: &Rows<'_>, event: &Recorded, revised: &MemoryRevised) -> Result<()> {
    let none = (None, None, None);
    let mut because = None;
    let mut by: Option<&ObservationRef> = None;
    let (what, (kind, title, text)) = match &revised.revision {
        Revision::Restored => ("restored", none),
        Revision::Edited { title, text, kind } => {
            ("edited", (kind.as_deref(), title.as_deref(), text.as_deref()))
        }
        Revision::Pinned => ("pinned", none),
        Revision::Unpinned => ("unpinned", none),
        Revision::MarkedWrong { because: reason } => {
            because = Some(reason.as_str()).filter(|reason| !reason.is_empty());
            ("wrong", none)
        }
        Revision::SupersededBy(other) => {
            by = Some(other);
            ("superseded", none)
        }
    };
    let sql =
        "insert into revisions (seq, event, at_us, target, number, what, type, title, narrative,
                   because, by_event, by_number, author)
               values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
    rows.run(
        sql,
        params![
            event.seq.raw() as i64,
            event.id.as_bytes(),
            event.at_us() as i64,
            revised.target.event,
            revised.target.number,
            what,
            kind,
            title,
            text,
            because,
            by.map(|other| other.event),
            by.map(|other| other.number),
            author(event, &revised.via),
        ],
    )?;
    Ok(())
}

/// Applies existing revisions to new observations: revisions folded earlier from another log, and
/// those of observations that they repeat.
fn arrive(rows: &Rows<'_>, event: &Recorded) -> Result<()> {
    if !has_any(rows)? {
        return Ok(());
    }
    let sql = "select distinct number from revisions where target = ?1";
    let revised = numbers(rows, sql, [event.id.as_bytes()])?;
    if !revised.is_empty() {
        forget(rows)?;
    }
    for number in revised {
        update_target(rows, event.id.as_bytes(), number)?;
    }
    let sql = "select id from observations where seq = ?1";
    for id in numbers(rows, sql, [event.seq.raw() as i64])? {
        update_repeats(rows, id)?;
    }
    Ok(())
}

fn has_any(rows: &Rows<'_>) -> Result<bool> {
    let sql = "select exists (select 1 from revisions)";
    Ok(rows.cached(sql)?.query_row((), |row| row.get(0))?)
}

fn numbers(rows: &Rows<'_>, sql: &str, values: impl rusqlite::Params) -> Result<Vec<i64>> {
    let mut statement = rows.cached(sql)?;
    let found = statement.query_map(values, |row| row.get(0))?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

/// Forgets revisions that were forgotten themselves, or whose observation was.
pub(super) fn forget(rows: &Rows<'_>) -> Result<()> {
    let sql = "update events set forgotten_by = (
                   select forgetting from revisions
                       join forgotten_observations as gone
                           on gone.event = revisions.target and gone.number = revisions.number
                   where revisions.seq = events.seq)
               where forgotten_by is null and seq in (
                   select revisions.seq from revisions
                       join forgotten_observations as gone
                           on gone.event = revisions.target and gone.number = revisions.number)";
    rows.run(sql, ())?;
    let sql = "delete from revisions where exists (
                   select 1 from events where events.seq = revisions.seq
                   and forgotten_by is not null)";
    rows.run(sql, ())?;
    Ok(())
}

/// Applies all revisions anew, after rows were deleted or other replies became current.
pub(super) fn resolve_all(rows: &Rows<'_>) -> Result<()> {
    let sql = "delete from originals where observation not in (select id from observations)";
    rows.run(sql, ())?;
    // Rows whose revisions are gone are among those that differ from their original.
    let sql = "select id from observations
               where is_pinned or is_edited or verdict is not null or repeats is not null
               union select observations.id from revisions
                   join events on events.event = revisions.target
                   join observations on observations.seq = events.seq
                       and observations.number = revisions.number
               order by 1";
    let ids = numbers(rows, sql, ())?;
    let mut changed = BTreeSet::new();
    for id in ids {
        update_row(rows, id)?;
        changed.insert(id);
        changed.extend(others_about_same_events(rows, id)?);
    }
    for id in changed {
        update_repeats(rows, id)?;
    }
    Ok(())
}

/// Applies all revisions of one observation. Copies of its event are in several logs.
fn update_target(rows: &Rows<'_>, event: &[u8; 16], number: i64) -> Result<()> {
    let sql = "select id from observations where number = ?2 and seq in (
                   select seq from events where event = ?1) order by id";
    for id in numbers(rows, sql, (event, number))? {
        update_row(rows, id)?;
        update_repeats(rows, id)?;
        for other in others_about_same_events(rows, id)? {
            update_repeats(rows, other)?;
        }
    }
    Ok(())
}

/// The result of all revisions of an observation.
#[derive(Default)]
struct State {
    is_pinned: bool,
    verdict: Option<String>,
    kind: Option<String>,
    title: Option<String>,
    text: Option<String>,
    /// Authors of the pin, and of the current type, title and text, if they are not the user.
    pinned_by: Option<String>,
    edited_by: [Option<String>; 3],
}

impl State {
    fn of(rows: &Rows<'_>, id: i64) -> Result<Self> {
        let sql = "select what, revisions.type, revisions.title, revisions.narrative,
                       iif(author in ('claude', 'program'), author, null)
                   from observations join revisions on revisions.target = observations.event
                       and revisions.number = observations.number
                   where observations.id = ?1 order by revisions.event, revisions.seq";
        let mut statement = rows.cached(sql)?;
        let mut found = statement.query([id])?;
        let mut state = Self::default();
        while let Some(row) = found.next()? {
            let what: String = row.get(0)?;
            let author: Option<String> = row.get(4)?;
            match what.as_str() {
                "pinned" | "unpinned" => {
                    state.is_pinned = what == "pinned";
                    state.pinned_by = author.filter(|_| state.is_pinned);
                }
                "edited" => {
                    let parts = [&mut state.kind, &mut state.title, &mut state.text];
                    for (column, part) in parts.into_iter().enumerate() {
                        if let Some(new) = row.get(column + 1)? {
                            *part = Some(new);
                            state.edited_by[column].clone_from(&author);
                        }
                    }
                }
                _ => state.verdict = Some(what),
            }
        }
        Ok(state)
    }

    fn is_edited(&self) -> bool {
        self.kind.is_some() || self.title.is_some() || self.text.is_some()
    }
}

fn update_row(rows: &Rows<'_>, id: i64) -> Result<()> {
    let state = State::of(rows, id)?;
    update_text(rows, id, &state)?;
    let sql = "update observations set is_pinned = ?2, is_edited = ?3, verdict = ?4,
                   edited_by = ?5, pinned_by = ?6,
                   superseded_by = iif(?2 or ?3, null,
                       (select superseded_by from replies where replies.seq = observations.seq)),
                   is_visible = seq not in (select seq from copies) and (?2 or ?3 or coalesce(
                       (select is_current from replies where replies.seq = observations.seq), 1))
               where id = ?1";
    let edited_by = state.edited_by.iter().flatten().next();
    let is_edited = state.is_edited();
    rows.run(
        sql,
        params![id, state.is_pinned, is_edited, state.verdict, edited_by, state.pinned_by],
    )?;
    Ok(())
}

/// Replaces the text of an edited row, or restores it if the edit is gone.
fn update_text(rows: &Rows<'_>, id: i64, state: &State) -> Result<()> {
    let sql = "select exists (select 1 from originals where observation = ?1)";
    let was_edited: bool = rows.cached(sql)?.query_row([id], |row| row.get(0))?;
    if !was_edited && !state.is_edited() {
        return Ok(());
    }
    let sql =
        "insert or ignore into originals (observation, type, title, subtitle, narrative, facts)
               select id, type, title, subtitle, narrative, facts from observations where id = ?1";
    rows.run(sql, [id])?;
    // The full-text index follows visibility, and needs the old text to remove it.
    rows.run("update observations set is_visible = 0 where id = ?1 and is_visible", [id])?;
    let sql = "update observations set
                   type = coalesce(?2, originals.type), title = coalesce(?3, originals.title),
                   subtitle = iif(?4 is null, originals.subtitle, null),
                   narrative = coalesce(?4, originals.narrative),
                   facts = iif(?4 is null, originals.facts, null)
               from originals where originals.observation = observations.id and id = ?1";
    rows.run(sql, params![id, state.kind, state.title, state.text])?;
    let sql = "select title, subtitle, narrative, facts, concepts, files_read, files_modified
               from observations where id = ?1";
    let mut texts: Vec<String> = Vec::new();
    rows.cached(sql)?.query_row([id], |row| {
        for column in 0..3 {
            texts.extend(row.get::<_, Option<String>>(column)?);
        }
        for column in 3..7 {
            texts.extend(items(row.get::<_, Option<String>>(column)?.as_deref()));
        }
        Ok(())
    })?;
    let words = fts_terms::of(texts.iter().map(String::as_str));
    let sql = "update observations set identifiers = ?2, grams = ?3 where id = ?1";
    rows.run(sql, params![id, words.identifiers, words.grams])?;
    if !state.is_edited() {
        rows.run("delete from originals where observation = ?1", [id])?;
    }
    Ok(())
}

/// Observations of other replies to events that the reply of this one answers.
fn others_about_same_events(rows: &Rows<'_>, id: i64) -> Result<Vec<i64>> {
    let sql = "select observations.id from observations where seq in (
                   select others.reply from observations as this
                       join answers on answers.reply = this.seq
                       join answers as others on others.source = answers.source
                   where this.id = ?1 and others.reply != this.seq)
               order by observations.id";
    numbers(rows, sql, [id])
}

/// Finds the revised observation that this one repeats.
fn update_repeats(rows: &Rows<'_>, id: i64) -> Result<()> {
    let sql =
        "select is_pinned or is_edited or verdict is not null from observations where id = ?1";
    let is_revised = rows.cached(sql)?.query_row([id], |row| row.get(0)).optional()?;
    let mut repeated = None;
    if is_revised == Some(false) {
        let sql = "select is_pinned or is_edited or coalesce(verdict != 'restored', 0)
                   from observations where id = ?1";
        for other in others_about_same_events(rows, id)? {
            if rows.cached(sql)?.query_row([other], |row| row.get(0))?
                && OriginalTexts::of(rows, id)?.is_same(&OriginalTexts::of(rows, other)?)
            {
                repeated = Some(other);
                break;
            }
        }
    }
    let sql = "update observations set repeats = ?2 where id = ?1 and repeats is not ?2";
    rows.run(sql, (id, repeated))?;
    Ok(())
}

/// Shorter texts are equal only if their titles are.
const WORDS_MIN: usize = 8;

/// The texts of an observation before any edit.
struct OriginalTexts {
    title: String,
    words: BTreeSet<String>,
}

impl OriginalTexts {
    fn of(rows: &Rows<'_>, id: i64) -> Result<Self> {
        let sql = "select title, subtitle, narrative, facts from originals where observation = ?1
                   union all
                   select title, subtitle, narrative, facts from observations where id = ?1
                   limit 1";
        let texts: [Option<String>; 4] = rows
            .cached(sql)?
            .query_row([id], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]))?;
        let title = texts.iter().flatten().next().map(|text| normalized(text)).unwrap_or_default();
        let words = texts.iter().flatten().flat_map(|text| {
            text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
        });
        Ok(Self { title, words: words.map(str::to_lowercase).collect() })
    }

    /// Whether both have the same title, or share four fifths of their words.
    fn is_same(&self, other: &Self) -> bool {
        let both = self.words.intersection(&other.words).count();
        let any = self.words.union(&other.words).count();
        !self.title.is_empty() && self.title == other.title
            || any >= WORDS_MIN && both * 5 >= any * 4
    }
}

#[cfg(test)]
mod tests;
