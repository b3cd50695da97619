//! The events that a memory was made of: time, session, and the files they changed.

use crate::{
    error::Result,
    fold::{files_touched, projection::Rows, sessions},
    store::sql_values::items,
};
use claude_mem_events::Recorded;

/// The common properties of the events that one reply answers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources {
    /// The time of the last one.
    pub(crate) at_us: i64,
    pub(crate) session: Option<i64>,
    pub(crate) project: i64,
    /// The prompt of the last one.
    pub(crate) prompt_number: Option<i64>,
    turn: Option<i64>,
    /// Set if one of the events ends a turn.
    pub(crate) ends_turn: bool,
    /// The subagent type, if all of them have the same.
    pub(crate) agent_type: Option<String>,
    /// Files written according to tool inputs, each once, in order.
    pub(crate) written: Vec<String>,
    /// True if one of them was forgotten. The reply may contain its content, so that no memory is
    /// made from it.
    pub(crate) is_forgotten: bool,
    root: String,
}

impl Sources {
    /// Looks up the events that the reply in `event` answers.
    pub(crate) fn of(rows: &Rows<'_>, event: &Recorded) -> Result<Self> {
        let place = sessions::place(rows, event)?;
        let mut sources = Self {
            at_us: 0,
            session: place.session,
            project: place.project,
            root: event.envelope.project.root.clone(),
            ..Self::default()
        };
        sources.look_up(rows, event.seq.raw() as i64)?;
        if sources.at_us == 0 {
            sources.at_us = event.at_us() as i64;
        }
        Ok(sources)
    }

    fn look_up(&mut self, rows: &Rows<'_>, reply: i64) -> Result<()> {
        let sql =
            "select events.at_us, events.session, events.project, events.forgotten_by is not null,
                       coalesce(tool_uses.prompt_number, stops.prompt_number),
                       coalesce(tool_uses.turn, stops.turn),
                       coalesce(tool_uses.agent_type, stops.agent_type), tool_uses.files_written,
                       coalesce(stops.scope = 'turn', false)
                   from answers join events on events.seq = answers.source
                       left join tool_uses on tool_uses.seq = answers.source
                       left join stops on stops.seq = answers.source
                   where answers.reply = ?1 order by answers.source";
        let mut agents = Vec::new();
        let mut statement = rows.cached(sql)?;
        let mut found = statement.query([reply])?;
        while let Some(row) = found.next()? {
            self.at_us = self.at_us.max(row.get(0)?);
            self.session = row.get::<_, Option<i64>>(1)?.or(self.session);
            self.project = row.get::<_, Option<i64>>(2)?.unwrap_or(self.project);
            self.is_forgotten |= row.get::<_, bool>(3)?;
            self.prompt_number = row.get::<_, Option<i64>>(4)?.or(self.prompt_number);
            self.turn = row.get::<_, Option<i64>>(5)?.or(self.turn);
            agents.push(row.get::<_, Option<String>>(6)?);
            add(&mut self.written, items(row.get::<_, Option<String>>(7)?.as_deref()));
            self.ends_turn |= row.get::<_, bool>(8)?;
        }
        agents.dedup();
        if let [agent] = &mut agents[..] {
            self.agent_type = agent.take();
        }
        Ok(())
    }

    /// Files written in the whole turn: its summary covers them, even if parts of the turn were
    /// distilled earlier.
    pub(crate) fn written_in_turn(&self, rows: &Rows<'_>) -> Result<Vec<String>> {
        let (Some(session), Some(turn)) = (self.session, self.turn) else {
            return Ok(self.written.clone());
        };
        let sql = "select files_written from tool_uses
                   where session = ?1 and turn = ?2 and files_written is not null and at_us <= ?3
                   order by seq";
        let mut written = Vec::new();
        let mut statement = rows.cached(sql)?;
        let mut found = statement.query((session, turn, self.at_us))?;
        while let Some(row) = found.next()? {
            add(&mut written, items(row.get::<_, Option<String>>(0)?.as_deref()));
        }
        add(&mut written, self.written.iter().cloned());
        Ok(written)
    }

    /// The stored form of paths that a model wrote.
    pub(crate) fn kept<'a>(&self, paths: impl IntoIterator<Item = &'a String>) -> Vec<String> {
        let mut kept = Vec::new();
        add(&mut kept, paths.into_iter().map(|path| files_touched::relative(path, "", &self.root)));
        kept
    }
}

/// Adds items that are not in the list yet.
pub(crate) fn add(to: &mut Vec<String>, items: impl IntoIterator<Item = String>) {
    for item in items {
        if !item.is_empty() && !to.contains(&item) {
            to.push(item);
        }
    }
}
