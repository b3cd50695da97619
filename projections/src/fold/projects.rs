//! Projects, each with one identity that does not depend on its name.

use crate::{
    error::Result,
    fold::projection::{Projection, Rows},
    store::sql_values::some,
};
use claude_mem_events::{Event, Id, Project, ProjectMerged, Recorded};
use rusqlite::OptionalExtension;
use std::collections::HashMap;

/// Projects and their merges. Rows keep the project they were recorded under; queries use `owner`,
/// so that merging and undoing a merge change no memory.
pub(crate) struct Projects;

impl Projection for Projects {
    fn name(&self) -> &'static str {
        "projects"
    }

    fn version(&self) -> u32 {
        2
    }

    fn apply(&self, rows: &Rows<'_>, event: &Recorded) -> Result<()> {
        match &event.event {
            Event::ProjectMerged(merged) => merge(rows, event, merged),
            _ => Ok(()),
        }
    }
}

/// The row of a project, created if it is new. Its folder on this machine takes precedence, then
/// the latest folder on another machine.
pub(crate) fn row_of(rows: &Rows<'_>, event: &Recorded, project: &Project) -> Result<i64> {
    let sql = "select id, root from projects where key = ?1";
    let found: Option<(i64, Option<String>)> = rows
        .cached(sql)?
        .query_row([&project.key], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((id, root)) = found else { return insert(rows, event, project) };
    let is_moved = root.as_deref().unwrap_or_default() != project.root;
    if is_moved && !project.root.is_empty() && (rows.host == 0 || root.is_none()) {
        rows.run("update projects set root = ?2 where id = ?1", (id, &project.root))?;
        // Cached sessions may refer to the old folder.
        rows.places.borrow_mut().clear();
    }
    Ok(id)
}

fn insert(rows: &Rows<'_>, event: &Recorded, project: &Project) -> Result<i64> {
    let id = rows.numbers_for_all("projects", 1)?;
    let sql = "insert into projects (id, event, seq, key, label, root, owner)
               values (?1, ?2, ?3, ?4, ?5, ?6, ?1)";
    let (label, root) = (some(&project.label), some(&project.root));
    let seq = event.seq.raw() as i64;
    rows.run(sql, (id, event.id.as_bytes(), seq, &project.key, label, root))?;
    Ok(id)
}

/// Notes the name that an event gives its project. [`write_labels`] stores it with the batch.
pub(crate) fn note_label(rows: &Rows<'_>, event: &Recorded, project: i64) {
    let Project { key, label, .. } = &event.envelope.project;
    if label.is_empty() || key.is_empty() {
        return;
    }
    let (mut labels, id) = (rows.labels.borrow_mut(), *event.id.as_bytes());
    match labels.iter_mut().find(|(of, known, _)| *of == project && known == label) {
        Some((_, _, last)) => *last = id.max(*last),
        None => labels.push((project, label.clone(), id)),
    }
}

/// The name of a project is the one in its latest event, unless the user named it. Latest by event
/// id: logs of several machines arrive in any order.
pub(crate) fn write_labels(rows: &Rows<'_>) -> Result<()> {
    for (project, label, event) in rows.labels.take() {
        let sql = "insert into project_names (project, label, event) values (?1, ?2, ?3)
                   on conflict do update set event = excluded.event where excluded.event > event";
        if rows.run(sql, (project, &label, event))? > 0 {
            rows.run(&format!("{RELABEL} and id = ?1"), [project])?;
        }
    }
    Ok(())
}

const RELABEL: &str = "update projects set label = coalesce(
        (select label from project_names where project = id order by event desc, label limit 1),
        label)
    where not is_label_given";

/// Merges are rare, so all of them are applied again in the order of their ids: the result does not
/// depend on the order of the logs.
fn merge(rows: &Rows<'_>, event: &Recorded, merged: &ProjectMerged) -> Result<()> {
    let sql = "insert or ignore into project_merges (event, source, target, label)
               values (?1, ?2, ?3, ?4)";
    rows.run(sql, (event.id.as_bytes(), &merged.from, &merged.into, &merged.label))?;
    for key in [&merged.from, &merged.into] {
        row_of(rows, event, &Project { key: key.clone(), ..Project::default() })?;
    }
    rows.run("update projects set merged_into = null, is_label_given = 0", ())?;
    let sql = "select source.id, target.id, project_merges.label from project_merges
                   join projects as source on source.key = source
                   join projects as target on target.key = target
               order by project_merges.event";
    let mut statement = rows.cached(sql)?;
    let all: Vec<(i64, i64, String)> = statement
        .query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (from, into, label) in all {
        merge_one(rows, from, into, &label)?;
    }
    rows.run(RELABEL, ())?;
    let sql = "with recursive chain (id, owner) as (
                   select id, id from projects where merged_into is null
                   union all
                   select projects.id, chain.owner from projects join chain
                   on projects.merged_into = chain.id)
               update projects set owner = (select owner from chain where chain.id = projects.id)";
    rows.run(sql, ())?;
    Ok(())
}

/// The projects that were merged with `key` when the event `at` was recorded, as a JSON list of row
/// ids. Later merges do not widen an earlier event.
pub(crate) fn one_with(rows: &Rows<'_>, key: &str, at: Id) -> Result<String> {
    let sql = "select source, target from project_merges where event < ?1 order by event";
    let mut statement = rows.cached(sql)?;
    let merges: Vec<(String, String)> = statement
        .query_map([at.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut merged_into: HashMap<&str, &str> = HashMap::new();
    for (from, into) in &merges {
        merged_into.remove(into.as_str());
        merged_into.remove(from.as_str());
        if from != into {
            merged_into.insert(from, into);
        }
    }
    let mut all = vec![key];
    all.extend(merges.iter().flat_map(|(from, into)| [from.as_str(), into]));
    all.retain(|other| owner_of(&merged_into, other) == owner_of(&merged_into, key));
    let keys = serde_json::to_string(&all).expect("strings can be written");
    let sql =
        "select json_group_array(id) from projects where key in (select value from json_each(?1))";
    Ok(rows.cached(sql)?.query_row([keys], |row| row.get(0))?)
}

fn owner_of<'a>(merged_into: &HashMap<&'a str, &'a str>, mut key: &'a str) -> &'a str {
    while let Some(into) = merged_into.get(key) {
        key = into;
    }
    key
}

/// Whether a merge arrives after an event that depends on it: then the database is rebuilt, knowing
/// the merge in advance.
pub(crate) fn is_late(rows: &Rows<'_>, event: &Recorded) -> Result<bool> {
    let sql = "select not exists (select 1 from project_merges where event = ?1) and (
                   exists (select 1 from forgettings where event > ?1 and is_open
                       and json_extract(what, '$.project') != '')
                   or exists (select 1 from reprocesses where event > ?1 and project is not null))";
    Ok(rows.cached(sql)?.query_row([event.id.as_bytes()], |row| row.get(0))?)
}

fn merge_one(rows: &Rows<'_>, from: i64, into: i64, label: &str) -> Result<()> {
    if !label.is_empty() {
        let sql = "update projects set label = ?2, is_label_given = 1 where id = ?1";
        rows.run(sql, (into, label))?;
    }
    // The target of a merge becomes its own owner, so that merging back and forth makes no cycle.
    rows.run("update projects set merged_into = null where id in (?1, ?2)", (from, into))?;
    if from != into {
        rows.run("update projects set merged_into = ?2 where id = ?1", (from, into))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::test_log::TestLog;

    #[test]
    fn the_latest_place_counts_when_two_sessions_take_turns() {
        let mut scene = TestLog::new();
        for (session, root) in [("a", "/a"), ("b", "/b"), ("a", "/a")] {
            scene.envelope.session = session.into();
            scene.envelope.project.root = root.into();
            scene.tool("Bash", "{}");
        }
        assert_eq!(scene.fold().dump("select root from projects").unwrap(), "/a\n");
    }
}
