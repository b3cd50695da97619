//! What was folded since a place in the log, for whoever looks on.

use crate::{
    Store,
    columns::number,
    error::Result,
    search::{Kind, Name},
};
use claude_mem_events::{Event, Id, Seq};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// Where it is in the log.
    pub seq: Seq,
    /// When, in microseconds since 1970.
    pub at_us: u64,
    /// What.
    pub what: Happened,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// A session began, or went on. Its number.
    SessionStarted(i64),
    /// The user said something.
    Prompt(Name),
    /// A tool was used, of which something may be remembered.
    ToolUsed {
        /// The number of the session.
        session: i64,
        /// The tool.
        tool: String,
        /// The prompt, counted within the session.
        prompt_number: u32,
    },
    /// Memories were made: observations, then the summary.
    Memories(Vec<Name>),
    /// A session ended. Its number.
    SessionEnded(i64),
    /// Something was forgotten, or a forgetting was taken back.
    Forgotten(Id),
    /// Other memories are shown than before: a reprocessing is complete, or projects are one.
    Redrawn,
}

impl Store {
    /// What happened behind `after`, at most `limit` events of it, and the place up to which that is. What
    /// was forgotten since is left out.
    pub fn news(&self, after: Seq, limit: u32) -> Result<(Vec<News>, Seq)> {
        let sql = "select seq, kind, at_us, session, event from events
                   where seq > ?1 and seq >> 55 = 0 and forgotten_by is null order by seq limit ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query((after.raw() as i64, limit))?;
        let (mut news, mut until) = (Vec::new(), after);
        while let Some(row) = rows.next()? {
            let seq: i64 = row.get(0)?;
            until = Seq::from_raw(seq as u64);
            let session: Option<i64> = row.get(3)?;
            if let Some(what) = self.happened(seq, row.get(1)?, session, row.get(4)?)? {
                news.push(News { seq: until, at_us: number(row, 2)?, what });
            }
        }
        Ok((news, until))
    }

    /// How many events were folded behind `after`.
    pub fn news_count(&self, after: Seq) -> Result<u64> {
        let sql = "select count(*) from events where seq > ?1 and seq >> 55 = 0";
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.query_row([after.raw() as i64], |row| number(row, 0))?)
    }

    /// The place of the last event that was folded.
    pub fn newest(&self) -> Result<Seq> {
        let sql = "select coalesce(max(seq), 0) from events where seq < 1 << 55";
        let seq: i64 = self.connection.prepare_cached(sql)?.query_row((), |row| row.get(0))?;
        Ok(Seq::from_raw(seq as u64))
    }

    fn happened(
        &self,
        seq: i64,
        kind: u16,
        session: Option<i64>,
        event: [u8; 16],
    ) -> Result<Option<Happened>> {
        Ok(match Event::name_of(kind) {
            "SessionStarted" => session.map(Happened::SessionStarted),
            "SessionEnded" => session.map(Happened::SessionEnded),
            "PromptSubmitted" => self.said_at(seq)?.map(Happened::Prompt),
            "ToolUsed" => self.used_at(seq, session)?,
            "AgentReplied" | "MemoryAdded" | "Imported" => {
                let names = self.said_in(seq)?;
                (!names.is_empty()).then_some(Happened::Memories(names))
            }
            "ReprocessFinished" | "ProjectMerged" => Some(Happened::Redrawn),
            "Forgotten" => Some(Happened::Forgotten(Id::from_bytes(event))),
            _ => None,
        })
    }

    fn said_at(&self, seq: i64) -> Result<Option<Name>> {
        let sql = "select id from visible_prompts where seq = ?1";
        let mut rows = self.connection.prepare_cached(sql)?;
        let mut rows = rows.query([seq])?;
        Ok(match rows.next()? {
            Some(row) => Some(Name { kind: Kind::Prompt, id: row.get(0)? }),
            None => None,
        })
    }

    fn used_at(&self, seq: i64, session: Option<i64>) -> Result<Option<Happened>> {
        let sql = "select coalesce(tool, ''), prompt_number from tool_uses where seq = ?1";
        let mut rows = self.connection.prepare_cached(sql)?;
        let mut rows = rows.query([seq])?;
        let (Some(row), Some(session)) = (rows.next()?, session) else { return Ok(None) };
        Ok(Some(Happened::ToolUsed { session, tool: row.get(0)?, prompt_number: row.get(1)? }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Scene, titled};
    use claude_mem_events::{Forgotten, SessionEnded, SessionStarted};

    fn told(news: &[News]) -> Vec<String> {
        let one = |news: &News| match &news.what {
            Happened::SessionStarted(id) => format!("started {id}"),
            Happened::SessionEnded(id) => format!("ended {id}"),
            Happened::Prompt(name) => name.to_string(),
            Happened::ToolUsed { tool, .. } => tool.clone(),
            Happened::Memories(names) => {
                names.iter().map(ToString::to_string).collect::<Vec<_>>().join("+")
            }
            Happened::Forgotten(_) => "forgotten".into(),
            Happened::Redrawn => "redrawn".into(),
        };
        news.iter().map(one).collect()
    }

    #[test]
    fn everything_since_a_place_is_told_in_order_and_once() {
        let mut scene = Scene::new();
        scene.add(SessionStarted::default());
        scene.prompt("go");
        let tool = scene.tool("Bash", "{}");
        scene.stop();
        scene.reply(&[tool], &(titled("a") + "<summary><request>go</request></summary>"));
        scene.add(SessionEnded::default());
        let store = scene.fold();
        let (all, until) = store.news(Seq::START, 100).unwrap();
        let expected = ["started 1", "P1", "Bash", "1+S1", "ended 1"];
        assert_eq!(told(&all), expected);
        assert_eq!((until, store.newest().unwrap()), (scene.events[5].seq, scene.events[5].seq));
        let (mut read, mut place) = (Vec::new(), Seq::START);
        while store.news_count(place).unwrap() > 0 {
            let (news, until) = store.news(place, 1).unwrap();
            read.extend(news);
            place = until;
        }
        assert_eq!(read, all);
    }

    #[test]
    fn what_was_forgotten_is_not_told_again() {
        let mut scene = Scene::new();
        let tool = scene.tool("Bash", "{}");
        scene.reply(&[tool], &titled("a"));
        scene.add(Forgotten { events: vec![tool], ..Forgotten::default() });
        let (news, _) = scene.fold().news(Seq::START, 100).unwrap();
        assert_eq!(told(&news), ["forgotten"]);
    }
}
