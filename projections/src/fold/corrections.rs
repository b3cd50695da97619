//! Corrections: an observation that a later reply of the same session replaces or withdraws.
//!
//! A reply names the earlier observation by its title, because observations made in the same run
//! have no number yet, and titles survive a rebuild. The newest earlier observation with that title
//! is retired: searches find it with a mark and a link to its replacement, but no session receives
//! it.
//!
//! The corrected rows are a function of the replies that are current now and of the remaining rows.
//! New replies only add to them. Everything else that changes rows (a reprocessing, a forgetting)
//! calls [`resolve_all`], so that incremental folding and a rebuild agree, even after erased rows
//! are gone from the log. Each log is resolved separately.

use crate::{
    error::Result,
    fold::{
        observations::is_current,
        projection::{Projection, Rows},
        replies::RecordedReply,
    },
};
use claude_mem_events::Recorded;
use rusqlite::{Params, params};
use std::collections::BTreeSet;

/// No reply needs more; a faulty model repeats itself.
const CORRECTIONS_MAX: usize = 100;

/// Corrections of earlier observations.
pub(crate) struct Corrections;

impl Projection for Corrections {
    fn name(&self) -> &'static str {
        "corrections"
    }

    fn version(&self) -> u32 {
        2
    }

    fn apply(&self, rows: &Rows<'_>, event: &Recorded) -> Result<()> {
        match RecordedReply::of(rows, event) {
            Some(recorded) => correct(rows, event, &recorded),
            None => Ok(()),
        }
    }
}

fn correct(rows: &Rows<'_>, event: &Recorded, recorded: &RecordedReply<'_>) -> Result<()> {
    let observations = recorded.reply.observations.iter().zip(1..);
    let replacing = observations
        .flat_map(|(row, number)| row.corrects.iter().map(move |title| (Some(number), title)));
    let withdrawing = recorded.reply.corrects.iter().map(|title| (None, title));
    let titles: Vec<(Option<i64>, &String)> =
        replacing.chain(withdrawing).take(CORRECTIONS_MAX).collect();
    if titles.is_empty() {
        return Ok(());
    }
    let sources = rows.sources(event)?;
    let (Some(session), false) = (sources.session, sources.is_forgotten) else { return Ok(()) };
    let seq = event.seq.raw() as i64;
    let sql = "insert into corrections (seq, number, at_us, session, title, observation)
               values (?1, ?2, ?3, ?4, ?5, (select id from observations where seq = ?1
               and number = ?6))";
    for ((observation, title), number) in titles.into_iter().zip(1_i64..) {
        rows.run(sql, params![seq, number, sources.at_us, session, title, observation])?;
    }
    if is_current(rows, event)? {
        resolve(rows, session, Some(seq))?;
    }
    Ok(())
}

/// Resolves the corrections of all sessions again, after rows were deleted or other replies became
/// current.
pub(super) fn resolve_all(rows: &Rows<'_>) -> Result<()> {
    // A row that was forgotten corrects nothing.
    let is_gone = "observation is not null and observation not in (select id from observations)";
    delete(rows, is_gone, ())?;
    let mut statement = rows.cached("select distinct session from corrections order by 1")?;
    let sessions: Vec<i64> =
        statement.query_map((), |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for session in sessions {
        resolve(rows, session, None)?;
    }
    Ok(())
}

/// Deletes corrections. Their targets are no longer retired.
pub(super) fn delete(rows: &Rows<'_>, which: &str, values: impl Params + Clone) -> Result<()> {
    let sql = format!(
        "update observations set is_corrected = 0
         where id in (select target from corrections where {which})"
    );
    rows.run(&sql, values.clone())?;
    rows.run(&format!("delete from corrections where {which}"), values)?;
    Ok(())
}

/// An observation that a correction may refer to.
struct Candidate {
    id: i64,
    seq: i64,
    at_us: i64,
    kind: String,
    title: String,
}

/// Finds the rows that the corrections of a session refer to: those of one reply (the last one), or
/// all of them. Updates which rows are corrected.
fn resolve(rows: &Rows<'_>, session: i64, of_reply: Option<i64>) -> Result<()> {
    let mut corrected: BTreeSet<i64> = targets(rows, session)?;
    let mut changed = corrected.clone();
    if of_reply.is_none() {
        corrected.clear();
        let sql = "update corrections set target = null where session = ?1";
        rows.run(sql, [session])?;
    }
    let candidates = candidates(rows, session)?;
    for (seq, number, at_us, title) in current_corrections(rows, session, of_reply)? {
        let meant = candidates.iter().find(|candidate| {
            candidate.seq < seq
                && candidate.at_us <= at_us
                && !corrected.contains(&candidate.id)
                && names_observation(&title, &candidate.kind, &candidate.title)
        });
        if let Some(meant) = meant {
            corrected.insert(meant.id);
            let sql = "update corrections set target = ?3 where seq = ?1 and number = ?2";
            rows.run(sql, (seq, number, meant.id))?;
        }
    }
    changed.extend(&corrected);
    let sql = "update observations set is_corrected = ?2 where id = ?1 and is_corrected != ?2";
    for id in changed {
        rows.run(sql, (id, corrected.contains(&id)))?;
    }
    Ok(())
}

fn targets(rows: &Rows<'_>, session: i64) -> Result<BTreeSet<i64>> {
    let sql = "select target from corrections where session = ?1 and target is not null";
    let mut statement = rows.cached(sql)?;
    let found = statement.query_map([session], |row| row.get(0))?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

/// Observations of the session in current replies, newest first, with the title from the reply.
/// Excludes notes of the user and imported rows.
fn candidates(rows: &Rows<'_>, session: i64) -> Result<Vec<Candidate>> {
    let sql = "select observations.id, observations.seq, observations.at_us,
                   coalesce(iif(observation is null, observations.type, originals.type), ''),
                   coalesce(iif(observation is null, coalesce(observations.title,
                   observations.narrative),
                       coalesce(originals.title, originals.narrative)), '')
               from observations join replies on replies.seq = observations.seq
                   left join originals on originals.observation = observations.id
               where observations.session = ?1 and origin = 'agent' and replies.is_current
               order by observations.at_us desc, observations.id desc";
    let mut statement = rows.cached(sql)?;
    let found = statement.query_map([session], |row| {
        Ok(Candidate {
            id: row.get(0)?,
            seq: row.get(1)?,
            at_us: row.get(2)?,
            kind: row.get(3)?,
            title: row.get(4)?,
        })
    })?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

/// Place, number, time and title of the corrections in current replies, oldest first.
fn current_corrections(
    rows: &Rows<'_>,
    session: i64,
    of_reply: Option<i64>,
) -> Result<Vec<(i64, i64, i64, String)>> {
    let sql = "select corrections.seq, number, corrections.at_us, title
               from corrections join replies on replies.seq = corrections.seq
               where corrections.session = ?1 and replies.is_current
                   and (?2 is null or corrections.seq = ?2)
               order by corrections.seq, number";
    let mut statement = rows.cached(sql)?;
    let found = statement.query_map((session, of_reply), |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
    })?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

/// Matches the text of a `<corrects>` against the type and title of an observation. Ignores case
/// and white space. The type may precede the title, as in the recap that models see. A title that
/// ends in `…` matches by prefix.
pub fn names_observation(corrects: &str, kind: &str, title: &str) -> bool {
    let (sought, title) = (normalized(corrects), normalized(title));
    let behind_kind = sought
        .strip_prefix(kind.to_lowercase().as_str())
        .and_then(|rest| rest.strip_prefix(':'))
        .map(bare);
    let is_meant = |sought: &str| match sought.strip_suffix('…').or(sought.strip_suffix("...")) {
        Some(start) => !bare(start).is_empty() && title.starts_with(bare(start)),
        None => !sought.is_empty() && title == sought,
    };
    is_meant(&sought) || behind_kind.is_some_and(is_meant)
}

/// In lower case, with single spaces, without quotation marks around it.
pub(super) fn normalized(text: &str) -> String {
    let words: Vec<String> = bare(text).split_whitespace().map(str::to_lowercase).collect();
    words.join(" ")
}

fn bare(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '“' | '”'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Store,
        search::{Kind, MemoryId},
        test_log::{TestLog, titled},
    };
    use claude_mem_events::{Forgotten, Id};

    fn correcting(title: &str, earlier: &str) -> String {
        format!("<observation><title>{title}</title><corrects>{earlier}</corrects></observation>")
    }

    /// Titles of the visible rows, and `corrected>corrector` for the others.
    fn state(store: &Store) -> String {
        let visible = "select title from visible_observations where not is_retired order by id";
        let corrected = "select target.title || '>' || coalesce(observations.title, '')
                         from corrections join observations as target on target.id = target
                             left join observations on observations.id = corrections.observation
                         order by target.id";
        let list = |sql| store.dump(sql).unwrap().trim().replace('\n', " ");
        format!("{} | {}", list(visible), list(corrected))
    }

    /// A session of `count` turns with one tool use each.
    fn turns(count: usize) -> (TestLog, Vec<[u8; 16]>) {
        let mut scene = TestLog::new();
        let tools = (0..count)
            .map(|_| {
                scene.prompt("go");
                scene.tool("Bash", "{}")
            })
            .collect();
        (scene, tools)
    }

    #[test]
    fn a_corrected_row_is_found_and_names_its_replacement() {
        let (mut scene, tools) = turns(3);
        scene.reply(&tools[..1], &(titled("nginx block missing") + &titled("other")));
        scene.reply(&tools[1..2], &correcting("wrong port", " Nginx  block\nmissing "));
        scene.reply(
            &tools[2..],
            "<corrects>other</corrects><summary><completed>x</completed></summary>",
        );
        let store = scene.fold();
        assert_eq!(state(&store), "wrong port | nginx block missing>wrong port other>");
        let found = "select rowid from observations_fts ('nginx OR other')";
        assert_eq!(store.dump(found).unwrap(), "1\n2\n");
        let shown = store.details(&["1", "2", "3"].map(|name| name.parse().unwrap())).unwrap();
        let by = |row: usize| shown[row].marks.correction().map(|correction| correction.by.clone());
        let third = MemoryId { kind: Kind::Observation, id: 3 };
        assert_eq!(by(0), Some(Some((third, Some("wrong port".into())))));
        assert_eq!((by(1), by(2)), (Some(None), None));
        assert!(shown[0].is_superseded && shown[1].is_superseded && !shown[2].is_superseded);
    }

    #[test]
    fn a_correction_matches_the_newest_earlier_row_of_the_session() {
        let (mut scene, tools) = turns(4);
        scene.reply(&tools[..1], &titled("tests fail"));
        scene.reply(&tools[1..2], &titled("tests fail"));
        scene.reply(&tools[2..3], &correcting("tests fail", "tests fail"));
        assert_eq!(state(&scene.fold()), "tests fail tests fail | tests fail>tests fail");
        scene.envelope.session = "another".into();
        let tool = scene.tool("Bash", "{}");
        scene.reply(&[tool], "<corrects>tests fail</corrects>");
        scene.envelope.session = "s".into();
        assert_eq!(state(&scene.fold()), "tests fail tests fail | tests fail>tests fail");
        // One row per name; a corrected row is not matched again.
        let twice = "\
            <corrects>tests fail</corrects><summary><corrects>feature: \
            Tests…</corrects></summary>";
        scene.reply(&tools[3..], twice);
        let two = " | tests fail> tests fail>tests fail tests fail>";
        assert_eq!(state(&scene.fold()), two);
    }

    #[test]
    fn a_chain_of_corrections_leaves_the_last_one() {
        let (mut scene, tools) = turns(3);
        scene.reply(&tools[..1], &titled("a"));
        scene.reply(&tools[1..2], &correcting("b", "a"));
        scene.reply(&tools[2..], &correcting("c", "b"));
        assert_eq!(state(&scene.fold()), "c | a>b b>c");
    }

    #[test]
    fn only_the_visible_generation_corrects_and_is_corrected() {
        let (mut scene, tools) = turns(2);
        scene.reply(&tools[..1], &titled("a0"));
        scene.reply(&tools[1..], &correcting("b0", "a0"));
        scene.start(1, "v1");
        scene.reply_in(1, "v1", &tools[..1], &titled("a1"));
        scene.reply_in(1, "v1", &tools[1..], &correcting("b1", "a1"));
        assert_eq!(state(&scene.fold()), "b0 | a0>b0", "nothing changes before it is finished");
        scene.finish(1, true);
        assert_eq!(state(&scene.fold()), "b1 | a1>b1");
        // Only the second turn is distilled again: the row that it corrected is visible again.
        scene.start(2, "v2");
        scene.reply_in(2, "v2", &tools[1..], &titled("b2"));
        scene.finish(2, true);
        assert_eq!(state(&scene.fold()), "a1 b2 | ");
        scene.finish(0, true);
        assert_eq!(state(&scene.fold()), "b0 | a0>b0", "undone");
    }

    #[test]
    fn a_forgotten_correction_corrects_nothing() {
        let forgotten = |forget: fn([u8; 16], [u8; 16]) -> Forgotten| {
            let (mut scene, tools) = turns(2);
            scene.reply(&tools[..1], &(titled("a") + &titled("b")));
            let text = correcting("c", "a") + "<corrects>b</corrects>";
            let reply = scene.reply(&tools[1..], &text);
            assert_eq!(state(&scene.fold()), "c | a>c b>");
            scene.add(forget(tools[1], reply));
            scene.fold()
        };
        let row = forgotten(|_, reply| Forgotten {
            rows: vec![format!("{}/1", Id::from_bytes(reply))],
            ..Forgotten::default()
        });
        assert_eq!(state(&row), "a | b>", "the rest of the reply still holds");
        let turn = forgotten(|tool, _| Forgotten { events: vec![tool], ..Forgotten::default() });
        assert_eq!(state(&turn), "a b | ");
        assert_eq!(turn.dump("select count(*) from corrections").unwrap(), "0\n");
    }

    #[test]
    fn a_forgotten_row_leaves_its_correction_to_the_one_before() {
        let (mut scene, tools) = turns(3);
        scene.reply(&tools[..1], &titled("a"));
        let newest = scene.reply(&tools[1..2], &titled("a"));
        scene.reply(&tools[2..], "<corrects>a</corrects>");
        assert_eq!(state(&scene.fold()), "a | a>");
        let row = format!("{}/1", Id::from_bytes(newest));
        scene.add(Forgotten { rows: vec![row], ..Forgotten::default() });
        assert_eq!(state(&scene.fold()), " | a>");
    }

    #[test]
    fn titles_are_compared_without_case_space_type_and_quotes() {
        for (named, is_meant) in [
            ("`cargo test` fails: 2 failed", true),
            ("`Cargo  Test` FAILS: 2 failed", true),
            ("bugfix: `cargo test` fails: 2 failed", true),
            ("\"cargo test` fails: 2 failed\"", true),
            ("`cargo test` fails…", true),
            ("bugfix: `cargo test`...", true),
            ("`cargo test` fails", false),
            ("decision: `cargo test` fails: 2 failed", false),
            ("…", false),
            ("bugfix: …", false),
            ("", false),
        ] {
            let title = "`cargo test` fails: 2 failed";
            assert_eq!(names_observation(named, "bugfix", title), is_meant, "{named}");
        }
        assert!(!names_observation("", "bugfix", ""));
    }
}
