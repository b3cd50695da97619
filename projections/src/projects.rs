//! What was worked on, under one identity whatever it was called.

use crate::{
    error::Result,
    projection::{Projection, Rows, some},
};
use claude_mem_events::{Event, Project, ProjectMerged, Recorded};
use rusqlite::OptionalExtension;

/// Projects, and which of them are one. Rows keep the project they were recorded under; reading goes by
/// `owner`, so that merging and taking it back change no row of memory.
pub(crate) struct Projects;

impl Projection for Projects {
    fn name(&self) -> &'static str {
        "projects"
    }

    fn version(&self) -> u32 {
        1
    }

    fn apply(&self, rows: &Rows<'_>, event: &Recorded) -> Result<()> {
        match &event.event {
            Event::ProjectMerged(merged) => merge(rows, event, merged),
            _ => Ok(()),
        }
    }
}

/// The row of a project, made if it is new. The latest name and place count, unless the user gave one.
pub(crate) fn row_of(rows: &Rows<'_>, event: &Recorded, project: &Project) -> Result<i64> {
    let sql = "select id, label, root, is_label_given from projects where key = ?1";
    let found = rows
        .cached(sql)?
        .query_row([&project.key], |row| {
            let label: Option<String> = row.get(1)?;
            let root: Option<String> = row.get(2)?;
            Ok((row.get::<_, i64>(0)?, label, root, row.get::<_, bool>(3)?))
        })
        .optional()?;
    let Some((id, label, root, is_label_given)) = found else {
        return insert(rows, event, project);
    };
    let is_renamed = !is_label_given && label.as_deref().unwrap_or_default() != project.label;
    let is_moved = root.as_deref().unwrap_or_default() != project.root;
    if (is_renamed && !project.label.is_empty()) || (is_moved && !project.root.is_empty()) {
        let label = if is_renamed { some(&project.label) } else { label.as_deref() };
        let root = some(&project.root).or(root.as_deref());
        rows.run("update projects set label = ?2, root = ?3 where id = ?1", (id, label, root))?;
    }
    Ok(id)
}

fn insert(rows: &Rows<'_>, event: &Recorded, project: &Project) -> Result<i64> {
    let id = rows.numbers("projects", 1)?;
    let sql = "insert into projects (id, event, seq, key, label, root, owner)
               values (?1, ?2, ?3, ?4, ?5, ?6, ?1)";
    let (label, root) = (some(&project.label), some(&project.root));
    let seq = event.seq.raw() as i64;
    rows.run(sql, (id, event.id.as_bytes(), seq, &project.key, label, root))?;
    Ok(id)
}

fn merge(rows: &Rows<'_>, event: &Recorded, merged: &ProjectMerged) -> Result<()> {
    let named = |key: &str| Project { key: key.to_owned(), ..Project::default() };
    let from = row_of(rows, event, &named(&merged.from))?;
    let into = row_of(rows, event, &named(&merged.into))?;
    if !merged.label.is_empty() {
        let sql = "update projects set label = ?2, is_label_given = 1 where id = ?1";
        rows.run(sql, (into, &merged.label))?;
    }
    // Whoever is merged into stands for itself from here on: merging back and forth makes no circle.
    rows.run("update projects set merged_into = null where id in (?1, ?2)", (from, into))?;
    if from != into {
        rows.run("update projects set merged_into = ?2 where id = ?1", (from, into))?;
    }
    let sql = "with recursive chain (id, owner) as (
                   select id, id from projects where merged_into is null
                   union all
                   select projects.id, chain.owner from projects join chain on projects.merged_into = chain.id)
               update projects set owner = (select owner from chain where chain.id = projects.id)";
    rows.run(sql, ())?;
    Ok(())
}
