//! Prompts, numbered per session.

use crate::{
    error::Result,
    fold::{
        projection::{Projection, Rows},
        sessions::{self, EventPlace},
    },
    fts_terms,
    store::sql_values::some,
};
use claude_mem_events::{Event, PromptSubmitted, Recorded, Submitter};
use claude_mem_privacy::{Author, typed};
use rusqlite::{OptionalExtension, params};

/// Prompts. Only the user's own are counted; a private one is counted and has no text.
pub(crate) struct Prompts;

impl Projection for Prompts {
    fn name(&self) -> &'static str {
        "prompts"
    }

    fn version(&self) -> u32 {
        4
    }

    fn apply(&self, rows: &Rows<'_>, event: &Recorded) -> Result<()> {
        match &event.event {
            Event::PromptSubmitted(prompt) => submit(rows, event, prompt),
            _ => Ok(()),
        }
    }
}

fn submit(rows: &Rows<'_>, event: &Recorded, prompt: &PromptSubmitted) -> Result<()> {
    let place = sessions::place(rows, event)?;
    let Some(session) = place.session else { return Ok(()) };
    let typed = typed(&prompt.prompt);
    let submitter = submitter(prompt);
    let is_users = matches!(submitter, Submitter::User | Submitter::UserMedia);
    let number = place.prompt_number + i64::from(is_users);
    // A prompt typed into a running turn shares that turn's id, and its Stop.
    let is_queued = !prompt.prompt_id.is_empty() && prompt.prompt_id == place.prompt_id;
    let turn = if is_queued || !is_users { place.turn } else { number };
    let text = if is_users { typed.text } else { prompt.prompt.as_str().into() };
    let text = some(&text).filter(|_| !prompt.is_private);
    let submitter = match submitter {
        Submitter::User => "user",
        Submitter::UserMedia => "media",
        // It was not typed, so it is neither counted nor found.
        Submitter::TaskNotification | Submitter::Teammate => "task",
    };
    let words = fts_terms::of(text.filter(|_| is_users));
    let sql = "insert into prompts (id, event, seq, at_us, session, project, number, turn, text,
                   is_private, submitter, prompt_id, cwd, identifiers, grams)
               values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
    rows.run(
        sql,
        params![
            rows.numbers("prompts", 1)?,
            event.id.as_bytes(),
            event.seq.raw() as i64,
            event.at_us() as i64,
            session,
            place.project,
            number,
            turn,
            text,
            prompt.is_private,
            submitter,
            some(&prompt.prompt_id),
            some(&prompt.cwd),
            words.identifiers,
            words.grams,
        ],
    )?;
    rows.places.borrow_mut().clear();
    let sql =
        "update sessions set prompt_number = ?2, turn = ?3, prompt_id = coalesce(?4, prompt_id)
               where id = ?1";
    rows.run(sql, (session, number, turn, some(&prompt.prompt_id).filter(|_| is_users)))?;
    Ok(())
}

/// The submitter of a prompt. Older versions recorded some client text as the user's.
pub(crate) fn submitter(prompt: &PromptSubmitted) -> Submitter {
    match (prompt.submitter, typed(&prompt.prompt).author) {
        (Submitter::User, Author::Client) => Submitter::TaskNotification,
        (Submitter::User, Author::Teammate) => Submitter::Teammate,
        (recorded, _) => recorded,
    }
}

/// The prompt and the turn that `prompt_id` belongs to. A late event still belongs to its own turn;
/// one without an id belongs to the latest.
pub(crate) fn turn_of(rows: &Rows<'_>, place: &EventPlace, prompt_id: &str) -> Result<(i64, i64)> {
    let latest = (place.prompt_number, place.turn);
    if prompt_id.is_empty() || prompt_id == place.prompt_id {
        return Ok(latest);
    }
    let sql = "select number, turn from prompts where session = ?1 and prompt_id = ?2
               order by number desc limit 1";
    let found = rows
        .cached(sql)?
        .query_row((place.session, prompt_id), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(found.unwrap_or(latest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::TestLog;
    use claude_mem_events::ToolUsed;

    #[test]
    fn a_private_prompt_is_a_turn_without_text() {
        let mut scene = TestLog::new();
        scene.prompt("first");
        scene.add(PromptSubmitted {
            prompt: "never shown".into(),
            is_private: true,
            ..PromptSubmitted::default()
        });
        scene.prompt("third");
        let rows = "select number, turn, text, is_private from prompts";
        assert_eq!(scene.fold().dump(rows).unwrap(), "1|1|first|0\n2|2||1\n3|3|third|0\n");
    }

    #[test]
    fn the_clients_own_prompts_are_not_counted_and_not_found() {
        let mut scene = TestLog::new();
        scene.prompt("first");
        scene.add(PromptSubmitted {
            prompt: "<task-notification>".into(),
            submitter: Submitter::TaskNotification,
            ..PromptSubmitted::default()
        });
        let store = scene.fold();
        assert_eq!(
            store.dump("select number, submitter from prompts").unwrap(),
            "1|user\n1|task\n"
        );
        assert_eq!(store.dump("select count(*) from prompts_fts ('task')").unwrap(), "0\n");
    }

    /// Recorded as the user's by an older version.
    #[test]
    fn client_text_in_old_events_is_neither_a_turn_nor_found() {
        let mut scene = TestLog::new();
        scene.prompt("<ide_opened_file>Opened secret.rs</ide_opened_file>\nfirst");
        scene.prompt("<teammate-message teammate_id=\"lead\">review</teammate-message>");
        scene.prompt(
            "<task-notification>done</task-notification>\nFull transcript available at: /x",
        );
        let store = scene.fold();
        assert_eq!(
            store.dump("select number, turn, submitter from prompts").unwrap(),
            "1|1|user\n1|1|task\n1|1|task\n"
        );
        assert_eq!(store.dump("select text from visible_prompts").unwrap(), "first\n");
        for word in ["secret", "review", "transcript"] {
            let sql = format!("select count(*) from prompts_fts ('{word}')");
            assert_eq!(store.dump(&sql).unwrap(), "0\n", "{word}");
        }
    }

    #[test]
    fn a_queued_prompt_belongs_to_the_running_turn_and_a_late_tool_use_to_its_own() {
        let mut scene = TestLog::new();
        scene.prompt_id = "a".into();
        scene.prompt("one");
        scene.prompt("queued");
        scene.tool("Bash", "{}");
        scene.stop();
        scene.prompt_id = "b".into();
        scene.prompt("two");
        let (tool_use_id, prompt_id) = ("late".into(), "a".into());
        scene.add(ToolUsed { tool_use_id, prompt_id, ..ToolUsed::default() });
        let store = scene.fold();
        assert_eq!(store.dump("select number, turn from prompts").unwrap(), "1|1\n2|1\n3|3\n");
        let rows = "select prompt_number, turn from tool_uses";
        assert_eq!(store.dump(rows).unwrap(), "2|1\n2|1\n");
    }
}
