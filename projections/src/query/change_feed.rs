//! The change feed: events folded since a position.

use crate::{
    Store,
    error::Result,
    hosts::{FIRST_FOREIGN_SEQ, HOST_SHIFT, host_of},
    query::search::{Kind, MemoryId},
    store::sql_values::number,
};
use claude_mem_events::{Event, Id, Seq};
use std::{collections::BTreeMap, fmt, str::FromStr};

/// A position in the feed: the last place read in each log. As text, the places one after the
/// other; each contains the number of its host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FeedPosition(BTreeMap<u8, Seq>);

impl FeedPosition {
    /// The last place read of this host's log, or its beginning.
    fn of(&self, log: u8) -> i64 {
        self.0.get(&log).map_or(start(log), |seq| seq.raw() as i64)
    }

    /// Moves the position to this place, if it is later.
    pub fn reach(&mut self, seq: Seq) {
        self.0.insert(host_of(seq), seq);
    }
}

impl fmt::Display for FeedPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places: Vec<String> = self.0.values().map(|seq| seq.raw().to_string()).collect();
        f.write_str(&places.join(","))
    }
}

/// A text that is not a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidFeedPosition;

impl FromStr for FeedPosition {
    type Err = InvalidFeedPosition;

    fn from_str(text: &str) -> std::result::Result<Self, InvalidFeedPosition> {
        let mut position = Self::default();
        for place in text.split(',') {
            let place: u64 = place.trim().parse().map_err(|_| InvalidFeedPosition)?;
            if i64::try_from(place).is_err() {
                return Err(InvalidFeedPosition);
            }
            position.reach(Seq::from_raw(place));
        }
        Ok(position)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedEntry {
    /// Its place in the log.
    pub seq: Seq,
    /// Its time, in microseconds since 1970.
    pub at_us: u64,
    pub what: FeedChange,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedChange {
    /// A session started or was resumed. Contains its row id.
    SessionStarted(i64),
    /// The user submitted a prompt.
    Prompt(MemoryId),
    /// A tool use that may become a memory.
    ToolUsed {
        /// Row id of the session.
        session: i64,
        tool: String,
        /// The number of the prompt in the session.
        prompt_number: u32,
    },
    /// Memories were made: observations, then the summary.
    Memories(Vec<MemoryId>),
    /// A session ended. Contains its row id.
    SessionEnded(i64),
    /// Something was forgotten, or a forgetting was undone.
    Forgotten(Id),
    /// The visible memories changed: a reprocessing became current, projects were merged, a reply
    /// corrected an earlier one, or one was revised.
    MemoriesReplaced,
}

impl Store {
    /// The changes later than `after` on all machines, at most `limit` events of each log, and the
    /// position after them. Forgotten events are left out.
    pub fn changes_after(
        &self,
        after: &FeedPosition,
        limit: u32,
    ) -> Result<(Vec<FeedEntry>, FeedPosition)> {
        let sql = "select seq, kind, at_us, session, event from events
                   where seq > ?1 and seq < ?2 and forgotten_by is null order by seq limit ?3";
        let mut statement = self.connection.prepare_cached(sql)?;
        let (mut news, mut until) = (Vec::new(), after.clone());
        for log in self.logs()? {
            let mut rows = statement.query((after.of(log), end(log), limit))?;
            while let Some(row) = rows.next()? {
                let place: i64 = row.get(0)?;
                let seq = Seq::from_raw(place as u64);
                until.reach(seq);
                let session: Option<i64> = row.get(3)?;
                let at_us = number(row, 2)?;
                let what = self.happened(place, row.get(1)?, session, row.get(4)?)?;
                news.extend(what.map(|what| FeedEntry { seq, at_us, what }));
                if self.has_corrected(place)? {
                    news.push(FeedEntry { seq, at_us, what: FeedChange::MemoriesReplaced });
                }
            }
        }
        Ok((news, until))
    }

    /// The number of events later than `after`. Counting stops at `max` events per log.
    pub fn changes_count_after(&self, after: &FeedPosition, max: u32) -> Result<u64> {
        let sql =
            "select count(*) from (select 1 from events where seq > ?1 and seq < ?2 limit ?3)";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut count = 0;
        for log in self.logs()? {
            count += statement.query_row((after.of(log), end(log), max), |row| number(row, 0))?;
        }
        Ok(count)
    }

    /// The position after the last folded event of each log.
    pub fn feed_end(&self) -> Result<FeedPosition> {
        let sql = "select coalesce(max(seq), ?1) from events where seq >= ?1 and seq < ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut position = FeedPosition::default();
        for log in self.logs()? {
            let last = statement.query_row((start(log), end(log)), |row| number(row, 0))?;
            position.reach(Seq::from_raw(last));
        }
        Ok(position)
    }

    /// Our own log, and those of the visible hosts.
    fn logs(&self) -> Result<Vec<u8>> {
        let sql = "select 0 union all select log from hosts where not is_hidden";
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.query_map((), |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
    }

    fn happened(
        &self,
        seq: i64,
        kind: u16,
        session: Option<i64>,
        event: [u8; 16],
    ) -> Result<Option<FeedChange>> {
        Ok(match Event::name_of(kind) {
            "SessionStarted" => session.map(FeedChange::SessionStarted),
            "SessionEnded" => session.map(FeedChange::SessionEnded),
            "PromptSubmitted" => self.prompt_at(seq)?.map(FeedChange::Prompt),
            // Progress on another machine is not shown; its results are.
            "ToolUsed" if seq < FIRST_FOREIGN_SEQ => self.used_at(seq, session)?,
            "AgentReplied" | "MemoryAdded" | "Imported" => {
                let names = self.memories_of_reply(seq)?;
                (!names.is_empty()).then_some(FeedChange::Memories(names))
            }
            "ReprocessFinished" | "ProjectMerged" | "MemoryRevised" => {
                Some(FeedChange::MemoriesReplaced)
            }
            "Forgotten" => Some(FeedChange::Forgotten(Id::from_bytes(event))),
            _ => None,
        })
    }

    /// True if the reply at this position corrects an earlier memory.
    fn has_corrected(&self, seq: i64) -> Result<bool> {
        let sql = "select exists (select 1 from corrections where seq = ?1 and target is not null)";
        Ok(self.connection.prepare_cached(sql)?.query_row([seq], |row| row.get(0))?)
    }

    fn prompt_at(&self, seq: i64) -> Result<Option<MemoryId>> {
        let sql = "select id from visible_prompts where seq = ?1";
        let mut rows = self.connection.prepare_cached(sql)?;
        let mut rows = rows.query([seq])?;
        Ok(match rows.next()? {
            Some(row) => Some(MemoryId { kind: Kind::Prompt, id: row.get(0)? }),
            None => None,
        })
    }

    fn used_at(&self, seq: i64, session: Option<i64>) -> Result<Option<FeedChange>> {
        let sql = "select coalesce(tool, ''), prompt_number from tool_uses where seq = ?1";
        let mut rows = self.connection.prepare_cached(sql)?;
        let mut rows = rows.query([seq])?;
        let (Some(row), Some(session)) = (rows.next()?, session) else { return Ok(None) };
        Ok(Some(FeedChange::ToolUsed { session, tool: row.get(0)?, prompt_number: row.get(1)? }))
    }
}

/// The lowest place of this host's log.
fn start(log: u8) -> i64 {
    i64::from(log) << HOST_SHIFT
}

/// The end of the places of this host's log.
fn end(log: u8) -> i64 {
    (i64::from(log) + 1).checked_mul(FIRST_FOREIGN_SEQ).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::{TestLog, titled};
    use claude_mem_events::{Forgotten, SessionEnded, SessionStarted};

    fn described(news: &[FeedEntry]) -> Vec<String> {
        let one = |news: &FeedEntry| match &news.what {
            FeedChange::SessionStarted(id) => format!("started {id}"),
            FeedChange::SessionEnded(id) => format!("ended {id}"),
            FeedChange::Prompt(name) => name.to_string(),
            FeedChange::ToolUsed { tool, .. } => tool.clone(),
            FeedChange::Memories(names) => {
                names.iter().map(ToString::to_string).collect::<Vec<_>>().join("+")
            }
            FeedChange::Forgotten(_) => "forgotten".into(),
            FeedChange::MemoriesReplaced => "redrawn".into(),
        };
        news.iter().map(one).collect()
    }

    #[test]
    fn the_feed_contains_every_change_since_a_position_in_order_and_once() {
        let mut scene = TestLog::new();
        scene.add(SessionStarted::default());
        scene.prompt("go");
        let tool = scene.tool("Bash", "{}");
        scene.stop();
        scene.reply(&[tool], &(titled("a") + "<summary><request>go</request></summary>"));
        scene.add(SessionEnded::default());
        let store = scene.fold();
        let (all, until) = store.changes_after(&FeedPosition::default(), 100).unwrap();
        let expected = ["started 1", "P1", "Bash", "1+S1", "ended 1"];
        assert_eq!(described(&all), expected);
        let mut last = FeedPosition::default();
        last.reach(scene.events[5].seq);
        assert_eq!((&until, &store.feed_end().unwrap()), (&last, &last));
        let (mut read, mut place) = (Vec::new(), FeedPosition::default());
        while store.changes_count_after(&place, 10).unwrap() > 0 {
            let (news, until) = store.changes_after(&place, 1).unwrap();
            read.extend(news);
            place = until;
        }
        assert_eq!(read, all);
    }

    #[test]
    fn forgotten_events_are_not_in_the_feed() {
        let mut scene = TestLog::new();
        let tool = scene.tool("Bash", "{}");
        scene.reply(&[tool], &titled("a"));
        scene.add(Forgotten { events: vec![tool], ..Forgotten::default() });
        let (news, _) = scene.fold().changes_after(&FeedPosition::default(), 100).unwrap();
        assert_eq!(described(&news), ["forgotten"]);
    }

    #[test]
    fn a_position_survives_being_written_as_text() {
        let text = format!("4711,{}", (3_u64 << HOST_SHIFT) + 12);
        let position: FeedPosition = text.parse().unwrap();
        assert_eq!(
            (position.of(0), position.of(1), position.of(3)),
            (4711, 1 << 55, (3 << 55) + 12)
        );
        assert_eq!(position.to_string(), text);
        for wrong in ["", "x", "1,", "-1", "1;2", &u64::MAX.to_string()] {
            assert_eq!(wrong.parse::<FeedPosition>(), Err(InvalidFeedPosition), "{wrong}");
        }
    }
}
