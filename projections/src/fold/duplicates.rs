//! Duplicate events: the same row, imported on two machines, is in both logs.
//!
//! Each log is folded separately, so such an event becomes rows in both. They are shown once: from
//! the log with the lowest id, which is the same on every machine.

use crate::{error::Result, fold::projection::Rows};
use std::ops::Range;

/// Finds duplicates among the events just folded and hides the rows that are shown from another
/// log. `own` is the identity of the log being folded.
pub(crate) fn find_duplicates(
    rows: &Rows<'_>,
    folded: &Range<i64>,
    own: Option<[u8; 16]>,
) -> Result<()> {
    let sql = "select here.seq, there.seq, there.host from events as here
                   join events as there on there.event = here.event and there.seq != here.seq
               where here.seq >= ?1 and here.seq < ?2";
    let mut statement = rows.cached(sql)?;
    let pairs: Vec<(i64, i64, i64)> = statement
        .query_map((folded.start, folded.end), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (here, there, host) in pairs {
        let is_ours = own.unwrap_or_default() < identity(rows, host)?;
        hide(rows, if is_ours { there } else { here })?;
    }
    Ok(())
}

fn identity(rows: &Rows<'_>, host: i64) -> Result<[u8; 16]> {
    let sql =
        "select coalesce((select id from hosts where log = ?1), (select log from checkpoint))";
    let id: Option<[u8; 16]> = rows.cached(sql)?.query_row([host], |row| row.get(0))?;
    Ok(id.unwrap_or_default())
}

fn hide(rows: &Rows<'_>, seq: i64) -> Result<()> {
    if rows.run("insert or ignore into copies (seq) values (?1)", [seq])? == 0 {
        return Ok(());
    }
    for table in ["observations", "summaries"] {
        let sql = format!("update {table} set is_visible = 0 where seq = ?1 and is_visible");
        rows.run(&sql, [seq])?;
    }
    // A prompt is visible if it has a text; no trigger updates its index entry.
    let sql = "insert into prompts_fts (prompts_fts, rowid, text, identifiers, grams, scope)
               select 'delete', id, text, identifiers, grams, 'inproject' || project
               from visible_prompts where seq = ?1";
    rows.run(sql, [seq])?;
    let sql = "update prompts set text = null, identifiers = null, grams = null where seq = ?1";
    rows.run(sql, [seq])?;
    Ok(())
}
