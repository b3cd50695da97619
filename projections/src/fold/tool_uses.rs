//! Tool uses: small rows with time, size, files and the place in the log.

use crate::{
    error::Result,
    fold::{
        files_touched,
        projection::{Projection, Rows},
        prompts, sessions,
    },
    store::sql_values::{list, some},
};
use claude_mem_events::{Event, Recorded, ToolUsed};
use rusqlite::params;

/// Tool uses, each once: identified by the client's id within its session.
pub(crate) struct ToolUses;

impl Projection for ToolUses {
    fn name(&self) -> &'static str {
        "tool_uses"
    }

    fn version(&self) -> u32 {
        3
    }

    fn apply(&self, rows: &Rows<'_>, event: &Recorded) -> Result<()> {
        match &event.event {
            Event::ToolUsed(used) => insert(rows, event, used, None),
            _ => Ok(()),
        }
    }
}

/// Adds a row, unless the tool use is known. A failure that is reported later replaces a success.
pub(crate) fn insert(
    rows: &Rows<'_>,
    event: &Recorded,
    used: &ToolUsed,
    upstream_id: Option<&str>,
) -> Result<()> {
    let place = sessions::place(rows, event)?;
    let Some(session) = place.session else { return Ok(()) };
    let (prompt_number, turn) = prompts::turn_of(rows, &place, &used.prompt_id)?;
    let named =
        rows.files_of_tombstone().unwrap_or_else(|| files_touched::named(&used.tool, &used.input));
    let root = &event.envelope.project.root;
    let kept = |paths: &[String]| {
        let mut kept: Vec<_> =
            paths.iter().map(|path| files_touched::relative(path, &used.cwd, root)).collect();
        kept.dedup();
        list(&kept)
    };
    // A write that failed wrote nothing.
    let written = if used.has_failed { None } else { kept(&named.written) };
    let sql = "insert into tool_uses (seq, event, at_us, session, project, prompt_number, turn,
               tool,
                   tool_use_id, has_failed, is_interrupt, files_read, files_written, cwd, agent_id,
                   agent_type, duration_ms, bytes, upstream_id)
               values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
               ?18, ?19)
               on conflict (session, tool_use_id) where tool_use_id is not null do nothing";
    let changed = rows.run(
        sql,
        params![
            event.seq.raw() as i64,
            event.id.as_bytes(),
            event.at_us() as i64,
            session,
            place.project,
            prompt_number,
            turn,
            some(&used.tool),
            some(&used.tool_use_id),
            used.has_failed,
            used.is_interrupt,
            kept(&named.read),
            written,
            some(&used.cwd),
            some(&used.agent_id),
            some(&used.agent_type),
            used.duration_ms.map(|ms| ms as i64),
            rows.bytes(used.input.len() + used.output.len() + used.error.len()),
            upstream_id,
        ],
    )?;
    if changed == 0 {
        rows.run("update sessions set tool_uses = tool_uses - 1 where id = ?1", [session])?;
        if used.has_failed {
            correct(rows, event, used, session)?;
        }
    }
    Ok(())
}

/// Some clients report a command before its exit code is known. The event with the code replaces
/// the first one, unless that is already distilled.
fn correct(rows: &Rows<'_>, event: &Recorded, used: &ToolUsed, session: i64) -> Result<()> {
    let sql = "update tool_uses set seq = ?1, event = ?2, at_us = ?3, has_failed = 1,
                   is_interrupt = ?4, files_written = null, bytes = ?5
               where session = ?6 and tool_use_id = ?7 and not has_failed and answered_by is null";
    let bytes = rows.bytes(used.input.len() + used.output.len() + used.error.len());
    let (seq, at_us) = (event.seq.raw() as i64, event.at_us() as i64);
    let values = params![
        seq,
        event.id.as_bytes(),
        at_us,
        used.is_interrupt,
        bytes,
        session,
        used.tool_use_id
    ];
    rows.run(sql, values)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::{TestLog, titled};

    #[test]
    fn a_failure_reported_later_replaces_a_success_until_that_is_distilled() {
        let used = |id: &str, has_failed| ToolUsed {
            tool: "Bash".into(),
            tool_use_id: id.into(),
            has_failed,
            ..ToolUsed::default()
        };
        let mut scene = TestLog::new();
        scene.prompt("one");
        scene.add(used("corrected", false));
        scene.add(used("corrected", true));
        scene.add(used("failed", true));
        scene.add(used("failed", false));
        let distilled = scene.add(used("distilled", false));
        scene.reply(&[distilled], &titled("One"));
        scene.add(used("distilled", true));
        let store = scene.fold();
        // The places of the events in the log: the row points to the one that counts.
        let rows = "select tool_use_id, has_failed, seq & 15 from tool_uses order by seq";
        assert_eq!(store.dump(rows).unwrap(), "corrected|1|3\nfailed|1|4\ndistilled|0|6\n");
        assert_eq!(store.dump("select tool_uses from sessions").unwrap(), "3\n");
    }
}
