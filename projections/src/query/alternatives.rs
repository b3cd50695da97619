//! Alternatives to a memory: the memories of other generations for the same events.

use crate::{
    Store,
    error::Result,
    query::search::{Kind, MemoryId},
    store::sql_values::number,
};

/// A reply about the events that a memory was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alternative {
    /// 0 for the initial distillation; else the number of the reprocessing.
    pub generation: u32,
    /// Time of the reply, in microseconds since 1970.
    pub at_us: u64,
    pub provider: String,
    pub model: String,
    /// The hash of the prompt texts.
    pub prompt_version: String,
    /// Whether its memories are the visible ones.
    pub is_current: bool,
    /// Its observations and summaries.
    pub memories: Vec<MemoryId>,
}

impl Store {
    /// Every reply about any of the events that the memory was made of, by generation. Empty for a
    /// memory that no agent made.
    pub fn alternatives(&self, name: MemoryId) -> Result<Vec<Alternative>> {
        if name.kind == Kind::Prompt {
            return Ok(Vec::new());
        }
        let sql = format!(
            "select seq, generation, at_us, provider, model, prompt_version, is_current from replies
             where seq in (select its.reply from answers
                     join answers its on its.source = answers.source
                     where answers.reply = (select seq from {} where id = ?1))
             order by generation, seq limit 100",
            name.kind.table()
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let found = statement.query_map([name.id], |row| {
            let alternative = Alternative {
                generation: row.get(1)?,
                at_us: number(row, 2)?,
                provider: row.get(3)?,
                model: row.get(4)?,
                prompt_version: row.get(5)?,
                is_current: row.get(6)?,
                memories: Vec::new(),
            };
            Ok((row.get::<_, i64>(0)?, alternative))
        })?;
        let mut alternatives = Vec::new();
        for found in found {
            let (seq, mut alternative) = found?;
            alternative.memories = self.memories_of_reply(seq)?;
            alternatives.push(alternative);
        }
        Ok(alternatives)
    }

    /// The observations, then the summaries, of the event at this place, visible or not.
    pub(crate) fn memories_of_reply(&self, seq: i64) -> Result<Vec<MemoryId>> {
        let mut names = Vec::new();
        for kind in [Kind::Observation, Kind::Summary] {
            let sql = format!("select id from {} where seq = ?1 order by number", kind.table());
            let mut statement = self.connection.prepare_cached(&sql)?;
            let mut rows = statement.query([seq])?;
            while let Some(row) = rows.next()? {
                names.push(MemoryId { kind, id: row.get(0)? });
            }
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::{TestLog, titled};

    #[test]
    fn generations_of_the_same_events_are_listed_together() {
        let mut scene = TestLog::new();
        let tools = ["x", "y"].map(|_| scene.tool("Bash", "{}"));
        scene.reply(&tools[..1], &titled("a0"));
        scene.reply(&tools[1..], &titled("b0"));
        scene.start(1, "v1");
        scene.reply_in(1, "v1", &tools[..1], &(titled("a1") + &titled("a2")));
        scene.finish(1, true);
        let store = scene.fold();
        let alternatives_of = |name: &str| {
            let alternatives = store.alternatives(name.parse().unwrap()).unwrap();
            let one = |alternative: &Alternative| {
                let names: Vec<_> = alternative.memories.iter().map(ToString::to_string).collect();
                format!("{} {} {}", alternative.generation, alternative.is_current, names.join(","))
            };
            alternatives.iter().map(one).collect::<Vec<_>>()
        };
        assert_eq!(alternatives_of("1"), ["0 false 1", "1 true 3,4"]);
        assert_eq!(alternatives_of("4"), alternatives_of("1"));
        assert_eq!(alternatives_of("2"), ["0 true 2"]);
        assert_eq!(alternatives_of("P1"), [""; 0]);
    }
}
