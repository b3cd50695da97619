//! Marks of observations: pinned, edited, wrong, superseded.

use crate::{
    Store,
    error::Result,
    query::search::{Kind, MemoryId},
    store::sql_values::number,
    text::one_line,
};
use rusqlite::{OptionalExtension, Row};
use std::fmt;

/// Longer reasons are cut in lists.
const REASON_CHARS_MAX: usize = 60;

/// The marks of a memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Marks {
    /// First in the context, at any age.
    pub is_pinned: bool,
    /// Its text was changed by hand.
    pub is_edited: bool,
    /// Who pinned it, if it was not the user: `claude`, `program`.
    pub pinned_by: Option<String>,
    /// Who edited it, if it was not the user.
    pub edited_by: Option<String>,
    /// Why sessions no longer receive it.
    pub retired: Option<Retired>,
}

/// Why an observation is found, but not given to sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Retired {
    /// It was marked as wrong, or repeats one that was.
    Wrong {
        /// When, in microseconds since 1970.
        at_us: u64,
        /// The reason, if one was given.
        because: Option<String>,
    },
    /// Another observation replaces it, or it was withdrawn.
    Superseded(Correction),
}

/// The end of an observation that is superseded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    /// When, in microseconds since 1970.
    pub at_us: u64,
    /// The observation that replaces it, with its title; none if it was only withdrawn.
    pub by: Option<(MemoryId, Option<String>)>,
}

impl Marks {
    /// The observation that replaces it, if it is superseded.
    pub fn correction(&self) -> Option<&Correction> {
        match &self.retired {
            Some(Retired::Superseded(correction)) => Some(correction),
            _ => None,
        }
    }

    /// Who wrote, edited and pinned it, if it was not the user: `, Claude, pinned by Claude`.
    pub fn authors(&self, origin: &str) -> String {
        let name = |author: &str| if author == "claude" { "Claude" } else { "a program over HTTP" };
        let mut text = String::new();
        if matches!(origin, "claude" | "program") {
            text = format!(", {}", name(origin));
        }
        for (what, by) in [("edited", &self.edited_by), ("pinned", &self.pinned_by)] {
            if let Some(by) = by {
                text = format!("{text}, {what} by {}", name(by));
            }
        }
        text
    }

    /// A title with its marks: `[wrong: the port is 8080] Uses port 80`.
    pub fn before(&self, title: &str) -> String {
        let mut text = String::new();
        if self.is_pinned {
            text += "[pinned] ";
        }
        if let Some(retired) = &self.retired {
            let retired = one_line(&retired.to_string());
            let mut mark: String = retired.chars().take(REASON_CHARS_MAX).collect();
            if mark.len() < retired.len() {
                mark.push('…');
            }
            text = format!("{text}[{mark}] ");
        }
        text + title
    }
}

impl fmt::Display for Retired {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong { because: Some(because), .. } => write!(out, "wrong: {because}"),
            Self::Wrong { because: None, .. } => out.write_str("wrong"),
            Self::Superseded(Correction { by: Some((name, _)), .. }) => {
                write!(out, "superseded by #{name}")
            }
            Self::Superseded(Correction { by: None, .. }) => out.write_str("withdrawn"),
        }
    }
}

impl Store {
    /// The marks of a memory. Only observations have any.
    pub fn marks(&self, name: MemoryId) -> Result<Marks> {
        if name.kind != Kind::Observation {
            return Ok(Marks::default());
        }
        let sql = "select is_pinned, is_edited, is_retired, verdict, repeats, pinned_by, edited_by
                   from observations where id = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = statement.query_row([name.id], |row| {
            let marks = Marks {
                is_pinned: row.get(0)?,
                is_edited: row.get(1)?,
                pinned_by: row.get(5)?,
                edited_by: row.get(6)?,
                retired: None,
            };
            let verdict: Option<String> = row.get(3)?;
            Ok((marks, row.get::<_, bool>(2)?, verdict, row.get(4)?))
        });
        let Some((mut marks, is_retired, verdict, repeats)) = found.optional()? else {
            return Ok(Marks::default());
        };
        if is_retired {
            marks.retired = self.retired(name.id, verdict.as_deref(), repeats)?;
        }
        Ok(marks)
    }

    fn retired(
        &self,
        id: i64,
        verdict: Option<&str>,
        repeats: Option<i64>,
    ) -> Result<Option<Retired>> {
        match (verdict, repeats) {
            (Some("wrong"), _) => self.marked_wrong(id),
            (Some(_), _) => Ok(self.superseded_by_hand(id)?.map(Retired::Superseded)),
            (None, Some(other)) => match self.marked_wrong(other)? {
                Some(wrong) => Ok(Some(wrong)),
                None => Ok(Some(Retired::Superseded(self.superseded_by(other)?))),
            },
            (None, None) => {
                let correction = match self.corrected(id)? {
                    None => self.replaced(id)?,
                    corrected => corrected,
                };
                Ok(correction.map(Retired::Superseded))
            }
        }
    }

    /// The mark of an observation whose last verdict is that it is wrong.
    fn marked_wrong(&self, id: i64) -> Result<Option<Retired>> {
        let sql = "select revisions.at_us, because from observations
                       join revisions on target = observations.event
                           and revisions.number = observations.number
                   where observations.id = ?1 and verdict = 'wrong' and what = 'wrong'
                   order by revisions.event desc limit 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let wrong =
            |row: &Row<'_>| Ok(Retired::Wrong { at_us: number(row, 0)?, because: row.get(1)? });
        Ok(statement.query_row([id], wrong).optional()?)
    }

    fn superseded_by_hand(&self, id: i64) -> Result<Option<Correction>> {
        let sql = "select revisions.at_us, other.id, other.title from observations as this
                       join revisions on target = this.event and revisions.number = this.number
                       left join events on events.event = by_event
                       left join observations as other
                           on other.seq = events.seq and other.number = by_number
                   where this.id = ?1 and what = 'superseded'
                   order by revisions.event desc, other.is_visible desc, other.id limit 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.query_row([id], correction).optional()?)
    }

    /// The correction in a later reply of the same session.
    fn corrected(&self, id: i64) -> Result<Option<Correction>> {
        let sql = "select corrections.at_us, observation, observations.title from corrections
                       left join observations on observations.id = corrections.observation
                   where target = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.query_row([id], correction).optional()?)
    }

    /// The last observation that replaces this one by rule.
    fn replaced(&self, id: i64) -> Result<Option<Correction>> {
        let sql = "select at_us, observation, title from current_replacements where target = ?1
                   order by at_us desc, observation desc limit 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.query_row([id], correction).optional()?)
    }

    fn superseded_by(&self, id: i64) -> Result<Correction> {
        let sql = "select at_us, id, title from observations where id = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.query_row([id], correction)?)
    }
}

fn correction(row: &Row<'_>) -> rusqlite::Result<Correction> {
    let (id, title): (Option<i64>, Option<String>) = (row.get(1)?, row.get(2)?);
    let by = id.map(|id| (MemoryId { kind: Kind::Observation, id }, title));
    Ok(Correction { at_us: number(row, 0)?, by })
}
