//! Stops of the assistant: each requests a summary.

use crate::{
    error::Result,
    fold::{
        projection::{Projection, Rows},
        prompts, sessions,
    },
    store::sql_values::some,
};
use claude_mem_events::{Event, Recorded, SessionEnded, StopScope, SummaryRequested};
use rusqlite::params;

/// Stops of the main conversation, of subagents, and before a compaction by the client.
pub(crate) struct Stops;

impl Projection for Stops {
    fn name(&self) -> &'static str {
        "stops"
    }

    fn version(&self) -> u32 {
        2
    }

    fn apply(&self, rows: &Rows<'_>, event: &Recorded) -> Result<()> {
        match &event.event {
            Event::SummaryRequested(stop) => insert(rows, event, stop),
            Event::SessionEnded(ended)
                if ended.reason != SessionEnded::CANCELLED && is_unanswered(rows, event)? =>
            {
                insert(rows, event, &SummaryRequested::default())
            }
            _ => Ok(()),
        }
    }
}

/// Size of its texts.
pub(crate) fn text_bytes(stop: &SummaryRequested) -> usize {
    let remarks: usize = stop.remarks.iter().map(|remark| remark.text.len()).sum();
    stop.last_user_message.len() + stop.last_assistant_message.len() + remarks
}

/// Returns true if no event followed the last prompt of a session. The end of the session then ends
/// the turn, so that the request is distilled.
fn is_unanswered(rows: &Rows<'_>, event: &Recorded) -> Result<bool> {
    let place = sessions::place(rows, event)?;
    let begun = "select min(seq) from prompts where session = ?1 and number >= ?2 and turn = ?2
                     and submitter != 'task' and not is_private";
    let begun: Option<i64> =
        rows.cached(begun)?.query_row((place.session, place.turn), |row| row.get(0))?;
    let Some(begun) = begun else { return Ok(false) };
    let sql = "select not exists (select 1 from tool_uses where session = ?1 and seq > ?2
                   and seq < ?3)
                   and not exists (select 1 from stops where session = ?1 and seq > ?2
                   and seq < ?3)";
    let ended = event.seq.raw() as i64;
    Ok(rows.cached(sql)?.query_row((place.session, begun, ended), |row| row.get(0))?)
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

#[cfg(test)]
mod tests {
    use crate::test_log::TestLog;
    use claude_mem_events::{PromptSubmitted, SessionEnded};

    #[test]
    fn a_prompt_without_an_answer_ends_with_its_session() {
        let ended = |is_private: bool, answers: fn(&mut TestLog)| {
            let mut scene = TestLog::new();
            scene.prompt("one");
            scene.stop();
            let prompt = "Never on Sundays.".into();
            scene.add(PromptSubmitted { prompt, is_private, ..PromptSubmitted::default() });
            answers(&mut scene);
            scene.add(SessionEnded::default());
            scene.fold().dump("select turn, scope from stops").unwrap()
        };
        assert_eq!(ended(false, |_| {}), "1|turn\n2|turn\n");
        assert_eq!(ended(true, |_| {}), "1|turn\n", "a private prompt is not distilled");
        assert_eq!(ended(false, |scene| _ = scene.tool("Bash", "{}")), "1|turn\n");
        assert_eq!(ended(false, |scene| _ = scene.stop()), "1|turn\n2|turn\n", "one stop");
    }
}
