//! Reprocessing: generations of replies, and which one is visible.

use crate::{
    error::Result,
    fold::{
        corrections,
        projection::{Projection, Rows},
        projects, replies, revisions,
    },
    store::sql_values::some,
};
use claude_mem_events::{Event, Recorded, ReprocessFinished, ReprocessStarted};
use rusqlite::{OptionalExtension, Row, params};
use std::collections::{HashMap, HashSet};

/// Reprocessings. While one runs, its replies are stored but not visible. When it is made current,
/// they replace the earlier ones at once.
pub(crate) struct Reprocesses;

impl Projection for Reprocesses {
    fn name(&self) -> &'static str {
        "reprocesses"
    }

    fn version(&self) -> u32 {
        1
    }

    fn apply(&self, rows: &Rows<'_>, event: &Recorded) -> Result<()> {
        match &event.event {
            Event::ReprocessStarted(started) => start(rows, event, started),
            Event::ReprocessFinished(finished) => finish(rows, event, finished),
            _ => Ok(()),
        }
    }
}

fn start(rows: &Rows<'_>, event: &Recorded, started: &ReprocessStarted) -> Result<()> {
    // A second start of the same generation continues it.
    let sql = "insert or ignore into reprocesses (generation, event, seq, at_us, prompt_version,
               provider,
                   model, since_us, until_us, project, session, is_fresh, is_shadow)
               values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
    rows.run(
        sql,
        params![
            started.generation,
            event.id.as_bytes(),
            event.seq.raw() as i64,
            event.at_us() as i64,
            started.prompt_version,
            some(&started.provider),
            some(&started.model),
            started.since_us.map(|us| us as i64),
            started.until_us.map(|us| us as i64),
            some(&started.project),
            some(&started.session),
            started.is_fresh,
            started.is_shadow,
        ],
    )?;
    Ok(())
}

fn finish(rows: &Rows<'_>, event: &Recorded, finished: &ReprocessFinished) -> Result<()> {
    let sql = "update reprocesses set finished_at_us = ?2, is_current = ?3 where generation = ?1";
    rows.run(sql, (finished.generation, event.at_us() as i64, finished.is_current))?;
    if finished.is_current {
        make_current(rows, event, finished.generation)?;
    }
    Ok(())
}

/// The replies of a generation: its own, and those already recorded with the same prompt version,
/// which were not requested again. Generation 0 has no start event and covers the whole log, so
/// that making it current undoes all reprocessing.
#[derive(Default)]
struct Scope {
    prompt_version: Option<String>,
    since_us: Option<i64>,
    until_us: Option<i64>,
    project: Option<String>,
    session: Option<String>,
}

impl Scope {
    fn of(rows: &Rows<'_>, generation: u32) -> Result<Self> {
        let sql = "select iif(is_fresh, null, prompt_version), since_us, until_us, project, session
                   from reprocesses where generation = ?1";
        let read = |row: &Row<'_>| {
            Ok(Self {
                prompt_version: row.get(0)?,
                since_us: row.get(1)?,
                until_us: row.get(2)?,
                project: row.get(3)?,
                session: row.get(4)?,
            })
        };
        Ok(rows.cached(sql)?.query_row([generation], read).optional()?.unwrap_or_default())
    }
}

/// A reply that may become visible, with the events in range that it answers.
struct Candidate {
    reply: i64,
    generation: u32,
    is_current: bool,
    is_member: bool,
    sources: Vec<i64>,
}

fn make_current(rows: &Rows<'_>, event: &Recorded, generation: u32) -> Result<()> {
    let mut candidates = candidates(rows, event, generation)?;
    // The newest generation first; within one, the first reply.
    candidates.sort_by_key(|candidate| (std::cmp::Reverse(candidate.generation), candidate.reply));
    let mut claimed: HashMap<i64, u32> = HashMap::new();
    let mut chosen = HashSet::new();
    for candidate in candidates.iter().filter(|candidate| candidate.is_member) {
        let claim = |source| claimed.get(source);
        let is_newer = |source| claim(source).is_some_and(|by| *by > candidate.generation);
        let is_lost = candidate.sources.iter().any(is_newer)
            || candidate.sources.iter().all(|source| claim(source).is_some());
        if !is_lost {
            claimed.extend(candidate.sources.iter().map(|source| (*source, candidate.generation)));
            chosen.insert(candidate.reply);
        }
    }
    for candidate in &candidates {
        let is_chosen = chosen.contains(&candidate.reply);
        let is_replaced = candidate.sources.iter().any(|source| claimed.contains_key(source));
        if is_chosen && !candidate.is_current {
            show(rows, candidate.reply)?;
        } else if !is_chosen && candidate.is_current && is_replaced {
            hide(rows, candidate.reply, generation)?;
        }
    }
    revisions::resolve_all(rows)?;
    corrections::resolve_all(rows)
}

/// Every readable reply that is visible now or belongs to the generation, and answers an event in
/// its range.
fn candidates(rows: &Rows<'_>, event: &Recorded, generation: u32) -> Result<Vec<Candidate>> {
    let scope = Scope::of(rows, generation)?;
    let sql = "select replies.seq, replies.generation, replies.is_current,
                   replies.generation = ?1 or replies.prompt_version is ?2, answers.source
               from replies join answers on answers.reply = replies.seq
                   join events on events.seq = answers.source
               where replies.verdict not in ('unreadable', 'erased') and replies.host = ?7
                   and (replies.is_current or replies.generation = ?1
                   or replies.prompt_version is ?2)
                   and (?3 is null or events.at_us >= ?3) and (?4 is null or events.at_us < ?4)
                   and (?5 is null or events.project in (select value from json_each(?5)))
                   and (?6 is null or events.session in (select id from sessions
                   where session = ?6))
               order by replies.seq, answers.source";
    let Scope { prompt_version, since_us, until_us, project, session } = scope;
    let project = project.map(|key| projects::one_with(rows, &key, event.id)).transpose()?;
    let mut statement = rows.cached(sql)?;
    let mut found = statement.query(params![
        generation,
        prompt_version,
        since_us,
        until_us,
        project,
        session,
        rows.host
    ])?;
    let mut candidates: Vec<Candidate> = Vec::new();
    while let Some(row) = found.next()? {
        let reply = row.get(0)?;
        if candidates.last().is_none_or(|last| last.reply != reply) {
            candidates.push(Candidate {
                reply,
                generation: row.get(1)?,
                is_current: row.get(2)?,
                is_member: row.get(3)?,
                sources: Vec::new(),
            });
        }
        candidates.last_mut().expect("just pushed").sources.push(row.get(4)?);
    }
    Ok(candidates)
}

fn show(rows: &Rows<'_>, reply: i64) -> Result<()> {
    rows.run("update replies set is_current = 1, superseded_by = null where seq = ?1", [reply])?;
    for table in ["observations", "summaries"] {
        let sql = format!(
            "update {table} set is_visible = 1, superseded_by = null
             where seq = ?1 and seq not in (select seq from copies)"
        );
        rows.run(&sql, [reply])?;
    }
    // Events answered only by a reprocessing are not pending any more.
    replies::cover(rows, reply)
}

fn hide(rows: &Rows<'_>, reply: i64, by: u32) -> Result<()> {
    rows.run("update replies set is_current = 0, superseded_by = ?2 where seq = ?1", (reply, by))?;
    for table in ["observations", "summaries"] {
        let sql = format!("update {table} set is_visible = 0, superseded_by = ?2 where seq = ?1");
        rows.run(&sql, (reply, by))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{
        EventFilter, Reprocessing, Store,
        test_log::{TestLog, titled},
    };
    use claude_mem_events::ReprocessStarted;

    fn visible(store: &Store) -> String {
        store.check_index().unwrap();
        store.dump("select title from visible_observations order by id").unwrap().replace('\n', " ")
    }

    /// Two tool uses, each answered under the first prompt version.
    fn answered() -> (TestLog, [[u8; 16]; 2]) {
        let mut scene = TestLog::new();
        let tools = [scene.tool("Bash", "{}"), scene.tool("Bash", "{}")];
        scene.reply(&tools[..1], &titled("a0"));
        scene.reply(&tools[1..], &titled("b0"));
        (scene, tools)
    }

    #[test]
    fn a_generation_becomes_visible_at_once_when_it_is_complete() {
        let (mut scene, tools) = answered();
        scene.start(1, "v1");
        scene.reply_in(1, "v1", &tools, &titled("ab1"));
        assert_eq!(visible(&scene.fold()), "a0 b0 ");
        scene.finish(1, true);
        let store = scene.fold();
        assert_eq!(visible(&store), "ab1 ");
        let rows = "select title, superseded_by from observations order by id";
        assert_eq!(store.dump(rows).unwrap(), "a0|1\nb0|1\nab1|\n");
    }

    #[test]
    fn a_shadow_is_stored_and_not_shown_until_it_is_made_current() {
        let (mut scene, tools) = answered();
        scene.start(1, "v1");
        scene.reply_in(1, "v1", &tools, "<skip/>");
        scene.finish(1, false);
        assert_eq!(visible(&scene.fold()), "a0 b0 ");
        scene.finish(1, true);
        assert_eq!(visible(&scene.fold()), "");
    }

    #[test]
    fn only_events_in_the_range_are_superseded() {
        let (mut scene, tools) = answered();
        let until_us = Some(claude_mem_events::Id::from_bytes(tools[1]).time_us());
        scene.add(ReprocessStarted { generation: 1, until_us, ..ReprocessStarted::default() });
        scene.reply_in(1, "v1", &tools[..1], &titled("a1"));
        scene.finish(1, true);
        assert_eq!(visible(&scene.fold()), "b0 a1 ");
    }

    #[test]
    fn a_reply_that_exceeds_the_range_is_replaced_completely() {
        let (mut scene, tools) = (TestLog::new(), ["a", "b"]);
        let tools = tools.map(|_| scene.tool("Bash", "{}"));
        scene.reply(&tools, &titled("ab"));
        let since_us = Some(claude_mem_events::Id::from_bytes(tools[1]).time_us());
        let by = Reprocessing { generation: 1, prompt_version: None, model: None };
        let range = EventFilter { since_us, ..EventFilter::default() };
        let turns = scene.fold().to_reprocess(&range, &by, 9).unwrap();
        assert_eq!(turns[0].pending.len(), 2);
    }

    #[test]
    fn replies_of_other_models_are_not_reused_if_a_model_is_given() {
        let (scene, _) = answered();
        let store = scene.fold();
        let turns = |model: &str| {
            let (prompt_version, model) = (Some("v0".into()), Some(model.into()));
            let by = Reprocessing { generation: 1, prompt_version, model };
            store.to_reprocess(&EventFilter::default(), &by, 9).unwrap().len()
        };
        assert_eq!(turns("m"), 0);
        assert_eq!(turns("other"), 1);
    }

    #[test]
    fn returning_to_earlier_prompts_reuses_their_replies() {
        let (mut scene, tools) = answered();
        scene.start(1, "v1");
        scene.reply_in(1, "v1", &tools[..1], &titled("a1"));
        scene.reply_in(1, "v1", &tools[1..], &titled("b1"));
        scene.finish(1, true);
        let back = Reprocessing { generation: 2, prompt_version: Some("v0".into()), model: None };
        let store = scene.fold();
        assert_eq!(store.to_reprocess(&EventFilter::default(), &back, 9).unwrap(), []);
        let fresh = Reprocessing { generation: 2, prompt_version: None, model: None };
        let turns = store.to_reprocess(&EventFilter::default(), &fresh, 9).unwrap();
        assert_eq!(turns[0].pending.len(), 2);
        scene.start(2, "v0");
        scene.finish(2, true);
        assert_eq!(visible(&scene.fold()), "a0 b0 ");
    }

    #[test]
    fn events_answered_by_a_reprocessing_are_not_pending() {
        let mut scene = TestLog::new();
        let tool = scene.tool("Bash", "{}");
        scene.start(1, "v1");
        scene.reply_in(1, "v1", &[tool], &titled("a1"));
        assert_eq!(scene.fold().counts().unwrap().outstanding, 1);
        scene.finish(1, true);
        assert_eq!(scene.fold().counts().unwrap().outstanding, 0);
        scene.reply(&[tool], &titled("late"));
        assert_eq!(visible(&scene.fold()), "a1 ");
    }
}
