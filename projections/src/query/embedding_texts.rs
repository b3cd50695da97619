//! The texts of memories that get vectors.

use crate::{
    Store,
    error::Result,
    query::search::{Kind, MemoryId},
    store::sql_values::items,
};
use rusqlite::{OptionalExtension, Row};

/// A shorter prompt is an answer such as `yes, go on`, which is meaningless without its context.
const PROMPT_CHARS_MIN: u32 = 20;
/// More texts of one memory are left out.
const TEXTS_MAX: usize = 16;

/// The rows of each kind that get vectors.
const OBSERVATIONS: &str = "observations where is_visible
    and trim(coalesce(title, '') || coalesce(subtitle, '') || coalesce(narrative,
    '') || coalesce(facts, '')) != ''";
const SUMMARIES: &str = "summaries where is_visible
    and trim(coalesce(request, '') || coalesce(investigated, '') || coalesce(learned, '')
        || coalesce(completed, '') || coalesce(next_steps, '') || coalesce(notes, '')) != ''";

fn prompts() -> String {
    format!("visible_prompts where length(trim(text)) >= {PROMPT_CHARS_MIN}")
}

impl Store {
    /// All memories that should have a vector: observations first, then summaries, then prompts,
    /// each newest first. Hidden ones are left out, and prompts that are short answers.
    pub fn embeddable_memories(&self) -> Result<Vec<MemoryId>> {
        let sql = format!(
            "select 0, id, at_us from {OBSERVATIONS} union all
             select 1, id, at_us from {SUMMARIES} union all
             select 2, id, at_us from {} order by 1, 3 desc, 2 desc",
            prompts()
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let found = statement.query_map((), |row| Ok((row.get::<_, u8>(0)?, row.get(1)?)))?;
        let mut memories = Vec::new();
        for found in found {
            let (kind, id) = found?;
            memories.extend(Kind::of_number(kind).map(|kind| MemoryId { kind, id }));
        }
        Ok(memories)
    }

    /// The texts of a memory, each embedded separately: an observation's title and narrative, then
    /// each fact. `None` if the memory should have no vector.
    pub fn embedding_texts(&self, name: MemoryId) -> Result<Option<Vec<String>>> {
        let sql = match name.kind {
            Kind::Observation => {
                format!("select facts, title, subtitle, narrative from {OBSERVATIONS} and id = ?1")
            }
            Kind::Summary => format!(
                "select request, completed, learned, investigated, next_steps, notes from \
                 {SUMMARIES} and id = ?1"
            ),
            Kind::Prompt => format!("select text from {} and id = ?1", prompts()),
        };
        let mut statement = self.connection.prepare_cached(&sql)?;
        let texts = statement.query_row([name.id], |row| texts(row, name.kind)).optional()?;
        Ok(texts)
    }
}

fn texts(row: &Row<'_>, kind: Kind) -> rusqlite::Result<Vec<String>> {
    let columns = |range: std::ops::Range<usize>| -> rusqlite::Result<Vec<String>> {
        let texts: rusqlite::Result<Vec<Option<String>>> = range.map(|at| row.get(at)).collect();
        Ok(texts?.into_iter().flatten().collect())
    };
    let (first, others) = match kind {
        Kind::Observation => (columns(1..4)?, items(row.get::<_, Option<String>>(0)?.as_deref())),
        Kind::Summary => (columns(0..2)?, columns(2..6)?),
        Kind::Prompt => (columns(0..1)?, Vec::new()),
    };
    let mut texts = vec![first.join("\n")];
    texts.extend(others);
    texts.retain(|text| !text.trim().is_empty());
    texts.truncate(TEXTS_MAX);
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use crate::test_log::TestLog;

    #[test]
    fn visible_memories_are_listed_newest_first_with_their_texts() {
        let mut scene = TestLog::new();
        scene.prompt("yes");
        scene.prompt("fix the login of the shop, please");
        let tool = scene.tool("Edit", "{}");
        let reply = "\
            <observation><type>bugfix</type><title>Fixed</title><subtitle>Login</subtitle>\
            <narrative>The cookie expired.</narrative><facts><fact>It lasts a day.</fact><fact> \
            </fact></facts></observation><observation><type>change</type></observation><summary>\
            <request>Fix it</request><completed>Done</completed><learned>Cookies</learned>\
            </summary>";
        scene.reply(&[tool], reply);
        let store = scene.fold();
        let names = store.embeddable_memories().unwrap();
        let shown: Vec<String> = names.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["1", "S1", "P2"]);
        let texts: Vec<_> =
            names.iter().map(|name| store.embedding_texts(*name).unwrap().unwrap()).collect();
        assert_eq!(texts[0], ["Fixed\nLogin\nThe cookie expired.", "It lasts a day."]);
        assert_eq!(texts[1], ["Fix it\nDone", "Cookies"]);
        assert_eq!(texts[2], ["fix the login of the shop, please"]);
        let unknown = ["7", "P1", "S9"].map(|name| name.parse().unwrap());
        for name in unknown {
            assert_eq!(store.embedding_texts(name).unwrap(), None);
        }
    }
}
