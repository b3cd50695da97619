//! Finds the words of a query in texts that no index contains: FTS5 itself splits and stems them,
//! in a table in memory.

use super::{Query, Shape, Term};
use crate::{error::Result, fts_terms};
use rusqlite::Connection;
use std::{collections::BTreeSet, ops::Range};

/// Marks the start and the end of a match. Recorded texts do not contain them.
const MARKS: [char; 2] = ['\u{FDD2}', '\u{FDD3}'];

thread_local! {
    static TEXTS: rusqlite::Result<Connection> = open();
}

fn open() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(
        "create virtual table texts using fts5
             (text, identifiers, grams, tokenize = 'porter unicode61 remove_diacritics 2')",
    )?;
    Ok(connection)
}

/// Runs `read` with the texts in the table `texts`: their row ids are their positions.
fn with_texts<T>(
    texts: &[&str],
    read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> Result<T> {
    TEXTS.with(|connection| {
        let connection = match connection {
            Ok(connection) => connection,
            Err(error) => return Err(rusqlite::Error::InvalidPath(error.to_string().into()).into()),
        };
        // Nothing is committed, so the table stays empty.
        let texts_only = connection.unchecked_transaction()?;
        let sql = "insert into texts (rowid, text, identifiers, grams) values (?1, ?2, ?3, ?4)";
        let mut statement = texts_only.prepare_cached(sql)?;
        for (at, text) in texts.iter().enumerate() {
            let terms = fts_terms::of([*text]);
            statement.execute((at as i64, text, terms.identifiers, terms.grams))?;
        }
        let found = read(&texts_only)?;
        drop(statement);
        texts_only.rollback()?;
        Ok(found)
    })
}

/// The positions of the terms that each text contains.
pub(super) fn terms_in(texts: &[&str], terms: &[Term]) -> Result<Vec<BTreeSet<usize>>> {
    with_texts(texts, |connection| {
        let mut found = vec![BTreeSet::new(); texts.len()];
        let mut statement =
            connection.prepare_cached("select rowid from texts where texts match ?1")?;
        for (at, term) in terms.iter().enumerate() {
            let mut rows = statement.query([term.expression()])?;
            while let Some(row) = rows.next()? {
                found[row.get::<_, i64>(0)? as usize].insert(at);
            }
        }
        Ok(found)
    })
}

impl Query {
    /// The positions of the query's words in a text, for highlighting.
    pub fn marks(&self, text: &str) -> Vec<Range<usize>> {
        let (characters, words): (Vec<&Term>, Vec<&Term>) =
            self.terms.iter().partition(|term| term.shape == Shape::Characters);
        let mut marks: Vec<_> = characters
            .iter()
            .flat_map(|term| text.match_indices(&term.text))
            .map(|(at, found)| at..at + found.len())
            .collect();
        let words: Vec<String> = words.into_iter().map(Term::expression).collect();
        if !words.is_empty() {
            let sql = "select highlight(texts, 0, ?1, ?2) from texts where texts match ?3";
            let [start, end] = MARKS.map(String::from);
            let expression = format!("text : ({})", words.join(" OR "));
            let highlighted = with_texts(&[text], |connection| {
                let mut statement = connection.prepare_cached(sql)?;
                let mut rows = statement.query((start, end, expression))?;
                rows.next()?.map(|row| row.get::<_, String>(0)).transpose()
            });
            // Marks are an addition: without them, the text is shown as it is.
            marks.extend(ranges(&highlighted.ok().flatten().unwrap_or_default()));
        }
        marks.sort_by_key(|mark| (mark.start, mark.end));
        marks.dedup_by(|next, before| {
            let overlaps = next.start < before.end;
            before.end = if overlaps { before.end.max(next.end) } else { before.end };
            overlaps
        });
        marks
    }
}

/// Where the marked parts are in the text without marks.
fn ranges(highlighted: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut at = 0;
    for (number, part) in highlighted.split(MARKS).enumerate() {
        if number % 2 == 1 {
            ranges.push(at..at + part.len());
        }
        at += part.len();
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_cover_the_words_that_match() {
        let query = Query::parse("naive reading 日本語 +\"torn log\"");
        let text = "Naïve code reads 日本語, and a torn log; torn.";
        let marked: Vec<_> = query.marks(text).into_iter().map(|mark| &text[mark]).collect();
        assert_eq!(marked, ["Naïve", "reads", "日本語", "torn log"]);
        assert_eq!(query.marks("nothing"), []);
    }

    #[test]
    fn texts_contain_words_in_other_forms_phrases_and_parts_of_names() {
        let query = Query::parse("failing \"torn log\" reply migr* 記憶");
        let texts = ["it fails in readReply", "a torn log", "the log was torn", "Migrations 記憶"];
        let found = terms_in(&texts, &query.terms).unwrap();
        let found: Vec<Vec<usize>> = found.into_iter().map(Vec::from_iter).collect();
        assert_eq!(found, [vec![0, 2], vec![1], vec![], vec![3, 4]]);
    }
}
