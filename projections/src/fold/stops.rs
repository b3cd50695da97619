//! Stops of the assistant: each requests a summary.

use crate::{
    error::Result,
    fold::{
        projection::{Projection, Rows},
        prompts, sessions,
    },
    store::sql_values::some,
};
use claude_mem_events::{Event, Recorded, StopScope, SummaryRequested};
use rusqlite::params;

/// Stops of the main conversation, of subagents, and before a compaction by the client.
pub(crate) struct Stops;

impl Projection for Stops {
    fn name(&self) -> &'static str {
        "stops"
    }

    fn version(&self) -> u32 {
        1
    }

    fn apply(&self, rows: &Rows<'_>, event: &Recorded) -> Result<()> {
        match &event.event {
            Event::SummaryRequested(stop) => insert(rows, event, stop),
            _ => Ok(()),
        }
    }
}

/// Size of its texts.
pub(crate) fn text_bytes(stop: &SummaryRequested) -> usize {
    let remarks: usize = stop.remarks.iter().map(|remark| remark.text.len()).sum();
    stop.last_user_message.len() + stop.last_assistant_message.len() + remarks
}

fn insert(rows: &Rows<'_>, event: &Recorded, stop: &SummaryRequested) -> Result<()> {
    let place = sessions::place(rows, event)?;
    let Some(session) = place.session else { return Ok(()) };
    let (prompt_number, turn) = prompts::turn_of(rows, &place, &stop.prompt_id)?;
    let scope = match stop.scope {
        StopScope::Turn => "turn",
        StopScope::Subagent => "subagent",
        StopScope::Compaction => "compaction",
    };
    let sql = "insert into stops (seq, event, at_us, session, project, prompt_number, turn, scope,
                   agent_id, agent_type, background_tasks, bytes)
               values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    rows.run(
        sql,
        params![
            event.seq.raw() as i64,
            event.id.as_bytes(),
            event.at_us() as i64,
            session,
            place.project,
            prompt_number,
            turn,
            scope,
            some(&stop.agent_id),
            some(&stop.agent_type),
            stop.background_tasks,
            rows.bytes(text_bytes(stop)),
        ],
    )?;
    Ok(())
}
