//! A search hit.

use super::{Kind, MemoryId, Query, score::Score};
use crate::{
    Store,
    error::Result,
    query::marks::Marks,
    store::sql_values::number,
    text::{first_line, one_line},
};
use rusqlite::OptionalExtension;

/// Maximum length of the snippet.
const SNIPPET_CHARS_MAX: usize = 200;

/// A search hit.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Its id: `12`, `S3`, `P9`.
    pub name: MemoryId,
    pub kind: Kind,
    /// The type of an observation, such as `bugfix`.
    pub type_: Option<String>,
    /// Its time, in microseconds since 1970.
    pub at_us: u64,
    /// The name of its project.
    pub project: String,
    /// The client's id of its session.
    pub session: Option<String>,
    /// The client of its session, such as `codex`.
    pub client: Option<String>,
    /// The machine, if it is another one.
    pub host: Option<String>,
    /// Its title, the request that it summarizes, or the first line of the prompt.
    pub title: String,
    /// The part of its text with most of the words.
    pub snippet: String,
    /// Whether it is pinned, edited, wrong or superseded.
    pub marks: Marks,
    /// The first file that it changed or read.
    pub file: Option<String>,
    /// About how many tokens it takes to read it.
    pub tokens: usize,
    /// Other memories of the same turn that match.
    pub also: Vec<MemoryId>,
    /// Its score; 0 without a query.
    pub score: f64,
    /// How the score was computed, if requested.
    pub explanation: Option<Score>,
}

impl Store {
    /// The memory as a hit; `None` if it does not exist.
    pub(crate) fn hit(&self, name: MemoryId, query: &Query) -> Result<Option<Hit>> {
        let (type_, title, text, file) = match name.kind {
            Kind::Observation => (
                "row.type",
                "coalesce(row.title, row.subtitle, row.narrative)",
                "concat_ws(char(10), row.subtitle, row.narrative,
                     (select group_concat(value, char(10)) from json_each(row.facts)))",
                "coalesce(row.files_modified ->> 0, row.files_read ->> 0)",
            ),
            Kind::Summary => (
                "null",
                "coalesce(row.request, row.completed, row.learned, row.notes)",
                "concat_ws(char(10), row.completed, row.learned, row.investigated, \
                 row.next_steps, row.notes)",
                "coalesce(row.files_edited ->> 0, row.files_read ->> 0)",
            ),
            Kind::Prompt => ("null", "row.text", "row.text", "null"),
        };
        let sql = format!(
            "select {type_}, row.at_us, coalesce(owners.label, owners.key), sessions.session,
             {title}, {text},
                 row.host, {file}, sessions.client
             from visible_{} row join projects on projects.id = row.project
                 join projects owners on owners.id = projects.owner
                 left join sessions on sessions.id = row.session
             where row.id = ?1",
            name.kind.table()
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut log = 0;
        let hit = statement.query_row([name.id], |row| {
            let title = row.get::<_, Option<String>>(4)?.unwrap_or_default();
            let text = row.get::<_, Option<String>>(5)?.unwrap_or_default();
            let is_all_title = name.kind == Kind::Prompt;
            log = row.get(6)?;
            Ok(Hit {
                name,
                kind: name.kind,
                type_: row.get(0)?,
                at_us: number(row, 1)?,
                project: row.get(2)?,
                session: row.get(3)?,
                client: row.get(8)?,
                host: None,
                tokens: tokens(&text) + if is_all_title { 0 } else { tokens(&title) },
                title: first_line(&title).to_owned(),
                snippet: snippet(
                    query,
                    &if is_all_title { one_line(&text) } else { joined(&text) },
                ),
                file: row.get(7)?,
                also: Vec::new(),
                marks: Marks::default(),
                score: 0.0,
                explanation: None,
            })
        });
        let Some(hit) = hit.optional()? else { return Ok(None) };
        Ok(Some(Hit { host: self.host_name(log)?, marks: self.marks(name)?, ..hit }))
    }
}

/// Whether hits come from several clients, so that each should name its own.
pub fn has_several_clients(hits: &[Hit]) -> bool {
    hits.iter().any(|hit| hit.client != hits[0].client)
}

impl Hit {
    /// The title with its marks in front: `[wrong: the port is 8080] Uses port 80`.
    pub fn marked_title(&self) -> String {
        self.marks.before(&self.title)
    }
}

/// Four letters a token, and one for each character that is not ASCII.
fn tokens(text: &str) -> usize {
    let plain = text.bytes().filter(u8::is_ascii).count();
    plain.div_ceil(4) + text.chars().filter(|letter| !letter.is_ascii()).count()
}

/// Fields below each other as one line, with a mark between those that do not end like a sentence.
fn joined(fields: &str) -> String {
    let mut line = String::with_capacity(fields.len());
    for field in fields.lines().map(one_line).filter(|field| !field.is_empty()) {
        match line.chars().next_back() {
            None => {}
            Some('.' | '!' | '?' | ':' | ';' | ',' | '。') => line.push(' '),
            Some(_) => line.push_str(" · "),
        }
        line.push_str(&field);
    }
    line
}

/// The part of a line with the most matches.
fn snippet(query: &Query, text: &str) -> String {
    if text.chars().count() <= SNIPPET_CHARS_MAX {
        return text.to_owned();
    }
    let marks = query.marks(text);
    let within = |start: usize| {
        marks
            .iter()
            .filter(|mark| mark.start >= start && mark.end <= start + SNIPPET_CHARS_MAX)
            .count()
    };
    let first = marks.iter().map(|mark| mark.start).rev().max_by_key(|start| within(*start));
    let start = begin_before(text, first.unwrap_or(0));
    let end =
        start + text[start..].chars().take(SNIPPET_CHARS_MAX).map(char::len_utf8).sum::<usize>();
    let (before, after) =
        (if start > 0 { "…" } else { "" }, if end < text.len() { "…" } else { "" });
    format!("{before}{}{after}", text[start..end].trim_end())
}

/// The start of a few words before `at`, which is the start of a word.
fn begin_before(text: &str, at: usize) -> usize {
    const LEAD_CHARS: usize = 40;
    let lead = text[..at].char_indices().rev().take(LEAD_CHARS);
    let Some((from, _)) = lead.last().filter(|(from, _)| *from > 0) else { return 0 };
    text[from..at].find(' ').map_or(at, |space| from + space + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_marked_off_on_one_line() {
        let fields = "Said by the user\nThe user: “no”\n\nA sentence.\n  two\twords ";
        assert_eq!(joined(fields), "Said by the user · The user: “no” · A sentence. two words");
        assert_eq!((joined(""), joined("\n one")), (String::new(), "one".into()));
    }

    #[test]
    fn a_snippet_is_where_the_words_are() {
        let text =
            format!("{} the log was torn at the end {}", "before ".repeat(60), "after ".repeat(60));
        let shown = snippet(&Query::parse("torn log"), &text);
        assert!(shown.starts_with("…before") && shown.contains("the log was torn"), "{shown}");
        assert!(shown.ends_with('…') && shown.chars().count() <= SNIPPET_CHARS_MAX + 2, "{shown}");
        assert_eq!(snippet(&Query::parse("x"), "short text"), "short text");
        assert_eq!(snippet(&Query::parse("x"), &"語".repeat(400)).chars().count(), 201);
    }
}
