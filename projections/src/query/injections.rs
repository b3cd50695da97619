//! Reads which sessions received which observations.

use crate::{
    Store,
    error::Result,
    store::sql_values::{number, seq},
};
use claude_mem_events::{ObservationRef, Seq, SessionStarted, Versioned as _};
use rusqlite::OptionalExtension;
use serde::Serialize;

/// How often an observation was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Usage {
    /// Sessions that received it in full.
    pub sessions: u64,
    /// How often the assistant fetched it.
    pub fetches: u64,
}

/// The observations that the assistant fetched after a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedAfter {
    /// The text of the prompt.
    pub prompt: String,
    /// Row ids of the observations, in order.
    pub observations: Vec<i64>,
}

impl Store {
    /// References to these observations, in this order. Unknown ids are left out.
    pub fn observation_refs(&self, ids: &[i64]) -> Result<Vec<ObservationRef>> {
        let mut statement = self
            .connection
            .prepare_cached("select event, number from observations where id = ?1")?;
        let mut refs = Vec::with_capacity(ids.len());
        for id in ids {
            let found = statement.query_row([id], |row| {
                Ok(ObservationRef { event: row.get(0)?, number: row.get(1)? })
            });
            refs.extend(found.optional()?);
        }
        Ok(refs)
    }

    /// The observations that a session received in full after a position in the log, by the
    /// client's id of the session.
    pub fn injected_in(&self, session: &str, since: Seq) -> Result<Vec<ObservationRef>> {
        let sql = "select injections.event, injections.number from injections
                       join sessions on sessions.id = injections.session
                   where sessions.session = ?1 and sessions.log = 0 and injections.seq > ?2";
        self.rows(sql, (session, since.raw() as i64), |row| {
            Ok(ObservationRef { event: row.get(0)?, number: row.get(1)? })
        })
    }

    /// The last starts of a session in our log, latest first: also those after a compaction.
    pub fn session_starts(&self, session: &str, limit: u32) -> Result<Vec<Seq>> {
        let sql = "select events.seq from events join sessions on sessions.id = events.session
                   where sessions.session = ?1 and sessions.log = 0 and events.kind = ?2
                   order by events.seq desc limit ?3";
        let mut statement = self.connection.prepare_cached(sql)?;
        let values = (session, SessionStarted::KIND, limit);
        let starts = statement.query_map(values, |row| seq(row, 0))?;
        Ok(starts.collect::<rusqlite::Result<_>>()?)
    }

    /// The assistant's fetches, with the prompt before each: they show what a prompt needed. Reads
    /// the latest `limit` fetched observations.
    pub fn fetched_after_prompts(&self, limit: usize) -> Result<Vec<FetchedAfter>> {
        let sql = "select prompt, (select text from visible_prompts where id = prompt), id from (
                       select observations.id, injections.seq, injections.position,
                           (select visible_prompts.id from visible_prompts
                            where visible_prompts.session = injections.session
                                and visible_prompts.at_us <= injections.at_us
                            order by visible_prompts.at_us desc limit 1) as prompt
                       from injections join observations on observations.event = injections.event
                           and observations.number = injections.number
                       where moment = 'fetch' and is_visible order by injections.seq desc limit ?1)
                   where prompt is not null order by seq, position";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([limit as i64])?;
        let mut fetched: Vec<(i64, FetchedAfter)> = Vec::new();
        while let Some(row) = rows.next()? {
            let (id, observation) = (row.get(0)?, row.get(2)?);
            match fetched.iter_mut().find(|(prompt, _)| *prompt == id) {
                Some((_, after)) if after.observations.contains(&observation) => {}
                Some((_, after)) => after.observations.push(observation),
                None => {
                    let observations = vec![observation];
                    fetched.push((id, FetchedAfter { prompt: row.get(1)?, observations }));
                }
            }
        }
        Ok(fetched.into_iter().map(|(_, after)| after).collect())
    }

    /// How often an observation was given to sessions and fetched by them.
    pub(super) fn usage_of(&self, observation: i64) -> Result<Usage> {
        let sql = "select count(distinct injections.session) filter (where moment is not 'fetch'),
                       count(*) filter (where moment is 'fetch')
                   from observations join injections on injections.event = observations.event
                       and injections.number = observations.number
                   where observations.id = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let usage = statement.query_row([observation], |row| {
            Ok(Usage { sessions: number(row, 0)?, fetches: number(row, 1)? })
        });
        Ok(usage?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::{TestLog, titled};
    use claude_mem_events::{InjectionMoment, MemoryInjected};

    #[test]
    fn sessions_count_once_and_fetches_count_each_time() {
        let mut scene = TestLog::new();
        let tool = scene.tool("Bash", "{}");
        let event = scene.reply(&[tool], &titled("tests live in tests/"));
        let given = |moment| MemoryInjected {
            moment,
            observations: vec![ObservationRef { event, number: 1 }],
            tokens: 9,
        };
        for session in ["a", "a", "b", ""] {
            scene.envelope.session = session.into();
            if !session.is_empty() {
                scene.add(given(InjectionMoment::SessionStart));
            }
            scene.add(given(InjectionMoment::Fetch));
        }
        let store = scene.fold();
        assert_eq!(store.fetched_after_prompts(9).unwrap(), [], "no prompt");
        assert_eq!(store.usage_of(1).unwrap(), Usage { sessions: 2, fetches: 4 });
        assert_eq!(store.usage_of(2).unwrap(), Usage::default());
    }

    #[test]
    fn fetched_memories_belong_to_the_prompt_before() {
        let mut scene = TestLog::new();
        let tool = scene.tool("Bash", "{}");
        let event = scene.reply(&[tool], &(titled("one") + &titled("two")));
        let mut fetch = |session: &str, prompt: &str, numbers: &[u32]| {
            scene.envelope.session = session.into();
            if !prompt.is_empty() {
                scene.prompt(prompt);
            }
            let refs = numbers.iter().map(|number| ObservationRef { event, number: *number });
            let observations = refs.collect();
            let moment = InjectionMoment::Fetch;
            scene.add(MemoryInjected { moment, observations, tokens: 9 });
        };
        fetch("a", "first", &[2]);
        fetch("a", "", &[2, 1]);
        fetch("a", "second", &[1]);
        fetch("b", "", &[1]);
        let after = |prompt: &str, observations: &[i64]| FetchedAfter {
            prompt: prompt.into(),
            observations: observations.into(),
        };
        let found = scene.fold().fetched_after_prompts(9).unwrap();
        assert_eq!(found, [after("first", &[2, 1]), after("second", &[1])]);
    }
}
