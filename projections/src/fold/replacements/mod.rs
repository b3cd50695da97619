//! Replacements: an earlier observation that a later one of the same project makes obsolete.
//!
//! A decision is replaced by a later one that withdraws its choice, if both share files;
//! [`DecisionText`] compares their words. A lesson about a command is replaced when it is learned
//! again. The rows are compared as the replies contained them. The result does not depend on the
//! order of folding, on other rows or on edits. Triggers keep `is_replaced` up to date: it is set
//! as long as the later one is valid. A mark by the user takes precedence.

use crate::{
    error::Result,
    fold::{
        decision_text::DecisionText,
        projection::{Projection, Rows},
    },
    store::sql_values::items,
};
use claude_mem_events::{Event, Recorded};
use rusqlite::{Row, params};
use std::collections::BTreeSet;

/// Observations that are no longer valid.
pub(crate) struct Replacements;

impl Projection for Replacements {
    fn name(&self) -> &'static str {
        "replacements"
    }

    fn version(&self) -> u32 {
        2
    }

    fn apply(&self, rows: &Rows<'_>, event: &Recorded) -> Result<()> {
        if !matches!(event.event, Event::AgentReplied(_) | Event::AgentFailed(_)) {
            return Ok(());
        }
        let sql = format!("{OBSERVATION} where observations.seq = ?1 and origin = 'agent'");
        let found = Replaceable::list(rows, &sql, [event.seq.raw() as i64])?;
        for one in &found {
            one.compare(rows)?;
        }
        for one in &found {
            one.index(rows)?;
        }
        Ok(())
    }
}

/// The part of an observation that a later one can replace.
enum Content {
    Decision(DecisionText),
    /// `Use B, not A`.
    Lesson,
}

/// An observation that can be replaced, as the reply contained it.
struct Replaceable {
    id: i64,
    at_us: i64,
    project: i64,
    content: Content,
    subjects: BTreeSet<String>,
}

const OBSERVATION: &str =
    "select observations.id, observations.at_us, project, files_read, files_modified,
        iif(originals.observation is null, observations.type, originals.type),
        iif(originals.observation is null, observations.title, originals.title),
        iif(originals.observation is null, observations.narrative, originals.narrative)
    from observations left join originals on originals.observation = observations.id";

impl Replaceable {
    fn list(rows: &Rows<'_>, sql: &str, values: impl rusqlite::Params) -> Result<Vec<Self>> {
        let mut statement = rows.cached(sql)?;
        let mut found = statement.query(values)?;
        let mut list = Vec::new();
        while let Some(row) = found.next()? {
            list.extend(Self::read(row)?);
        }
        Ok(list)
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Option<Self>> {
        let text = |column| row.get(column).map(Option::<String>::unwrap_or_default);
        let (kind, title) = (text(5)?, text(6)?);
        let (content, subjects) = if kind == "decision" {
            let list = |column| text(column).map(|list| items(Some(&list)));
            let files = list(3)?.into_iter().chain(list(4)?).collect();
            (Content::Decision(DecisionText::of(&title, &text(7)?)), files)
        } else if let Some(commands) = lesson(&title) {
            (Content::Lesson, BTreeSet::from([commands.to_owned()]))
        } else {
            return Ok(None);
        };
        let (id, at_us, project) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(Some(Self { id, at_us, project, content, subjects }))
    }

    /// Compares it with those that are indexed, earlier and later ones.
    fn compare(&self, rows: &Rows<'_>) -> Result<()> {
        let can_replace = match &self.content {
            Content::Decision(text) => text.gives_something_up(),
            Content::Lesson => true,
        };
        if can_replace {
            for earlier in self.with_common_subject(rows, "<")? {
                if self.replaces(&earlier) {
                    insert(rows, earlier.id, self.id)?;
                }
            }
        }
        for later in self.with_common_subject(rows, ">")? {
            if later.replaces(self) {
                insert(rows, self.id, later.id)?;
            }
        }
        Ok(())
    }

    fn with_common_subject(&self, rows: &Rows<'_>, order: &str) -> Result<Vec<Self>> {
        let sql = format!(
            "{OBSERVATION} where observations.id in (select observation from replacement_subjects
                 where project = ?1 and subject = ?2 and at_us {order} ?3)"
        );
        let mut found = Vec::new();
        for subject in &self.subjects {
            found.extend(Self::list(rows, &sql, params![self.project, subject, self.at_us])?);
        }
        found.sort_by_key(|other| other.id);
        found.dedup_by_key(|other| other.id);
        Ok(found)
    }

    /// True if it replaces an earlier one with a common subject.
    fn replaces(&self, earlier: &Self) -> bool {
        match (&self.content, &earlier.content) {
            (Content::Decision(text), Content::Decision(earlier_text)) => {
                // Half of the files of one of them.
                let common = self.subjects.intersection(&earlier.subjects).count();
                let fewer = self.subjects.len().min(earlier.subjects.len());
                common * 2 >= fewer && text.replaces(earlier_text)
            }
            (Content::Lesson, Content::Lesson) => true,
            _ => false,
        }
    }

    fn index(&self, rows: &Rows<'_>) -> Result<()> {
        let sql = "insert into replacement_subjects (project, subject, at_us, observation)
                   values (?1, ?2, ?3, ?4)";
        for subject in &self.subjects {
            rows.run(sql, params![self.project, subject, self.at_us, self.id])?;
        }
        Ok(())
    }
}

/// The part of the title of a lesson that names both commands: ``Use `b`, not `a`: why``. A command
/// that fails for the same reason again is learned again, too: `` `a` fails: why``.
fn lesson(title: &str) -> Option<&str> {
    if title.starts_with('`') && title.contains("` fails: ") {
        return Some(title);
    }
    let (_, wrong) = title.strip_prefix("Use `")?.split_once("`, not `")?;
    let (_, why) = wrong.split_once('`')?;
    title.strip_suffix(why)
}

fn insert(rows: &Rows<'_>, target: i64, by: i64) -> Result<()> {
    let sql = "insert or ignore into replacements (target, observation) values (?1, ?2)";
    rows.run(sql, (target, by))?;
    Ok(())
}

#[cfg(test)]
mod tests;
