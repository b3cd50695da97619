//! Paging through all memories, newest first.
//!
//! A page starts after a cursor, not at an offset: every page costs the same, and new rows at the
//! top do not shift later pages.

use crate::{
    Store,
    error::Result,
    query::search::{Filter, Kind, MemoryId, Search},
};
use rusqlite::{params_from_iter, types::Value};
use std::{fmt, str::FromStr};

/// A position in the order of all memories. At the same time, a prompt comes before the memories
/// made of it, and a summary last; lists are in reverse order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageCursor {
    pub(crate) at_us: i64,
    pub(crate) rank: u8,
    pub(crate) id: i64,
}

/// A text that is not a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidPageCursor;

impl fmt::Display for PageCursor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.at_us, self.name())
    }
}

impl FromStr for PageCursor {
    type Err = InvalidPageCursor;

    fn from_str(text: &str) -> std::result::Result<Self, InvalidPageCursor> {
        let (at_us, name) = text.split_once('-').ok_or(InvalidPageCursor)?;
        let name: MemoryId = name.parse().map_err(|_| InvalidPageCursor)?;
        let at_us = at_us.parse().map_err(|_| InvalidPageCursor)?;
        Ok(Self::of(at_us, name))
    }
}

impl PageCursor {
    /// The cursor of a memory.
    pub(crate) fn of(at_us: i64, name: MemoryId) -> Self {
        Self { at_us, rank: rank(name.kind), id: name.id }
    }

    /// The memory at the cursor.
    pub fn name(&self) -> MemoryId {
        let kind = Kind::ALL.into_iter().find(|kind| rank(*kind) == self.rank);
        MemoryId { kind: kind.expect("every rank is a kind's"), id: self.id }
    }
}

pub(crate) fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::Prompt => 0,
        Kind::Observation => 1,
        Kind::Summary => 2,
    }
}

impl Store {
    /// The memories that match the filters of `search`, newest first, at most `limit` of them
    /// after `before`. The words of the query are ignored.
    pub fn page(&self, search: &Search, before: Option<PageCursor>) -> Result<Vec<PageCursor>> {
        let projects = match &search.project {
            None => vec![None],
            Some(name) => self.projects_named(name)?.into_iter().map(Some).collect(),
        };
        let wanted = search.offset.saturating_add(search.limit);
        let mut marks = Vec::new();
        for kind in Kind::ALL.into_iter().filter(|kind| search.kinds.contains(kind)) {
            let Some(filter) = Filter::of(search, kind) else { continue };
            // Each project separately, so that an index gives its newest rows without sorting.
            for project in &projects {
                self.page_of(kind, &filter, *project, before, wanted, &mut marks)?;
            }
        }
        marks.sort_unstable_by(|one, other| other.cmp(one));
        Ok(marks.into_iter().skip(search.offset).take(search.limit).collect())
    }

    fn page_of(
        &self,
        kind: Kind,
        filter: &Filter,
        project: Option<i64>,
        before: Option<PageCursor>,
        limit: usize,
        marks: &mut Vec<PageCursor>,
    ) -> Result<()> {
        let mut values = filter.values.clone();
        let mut conditions = filter.sql();
        if let Some(project) = project {
            conditions += " and row.project = ?";
            values.push(Value::Integer(project));
        }
        if let Some(before) = before {
            // Rows of the same time are ordered by kind, then by id.
            conditions += match rank(kind).cmp(&before.rank) {
                std::cmp::Ordering::Less => " and row.at_us <= ?",
                std::cmp::Ordering::Equal => " and (row.at_us, row.id) < (?, ?)",
                std::cmp::Ordering::Greater => " and row.at_us < ?",
            };
            values.push(Value::Integer(before.at_us));
            if rank(kind) == before.rank {
                values.push(Value::Integer(before.id));
            }
        }
        values.push(Value::Integer(i64::try_from(limit).unwrap_or(i64::MAX)));
        let sql = format!(
            "select row.at_us, row.id from visible_{} row where true{conditions}
             order by row.at_us desc, row.id desc limit ?",
            kind.table()
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut found = statement.query(params_from_iter(values))?;
        while let Some(row) = found.next()? {
            marks.push(PageCursor { at_us: row.get(0)?, rank: rank(kind), id: row.get(1)? });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::{TestLog, titled};

    fn scene() -> Store {
        let mut scene = TestLog::new();
        for turn in ["a", "b", "c"] {
            scene.prompt(turn);
            let tool = scene.tool("Read", "{}");
            let summary = format!("<summary><request>{turn}</request></summary>");
            scene.reply(&[tool], &(titled(turn) + &titled(turn) + &summary));
            scene.envelope.project.key = turn.into();
        }
        scene.fold()
    }

    fn names(marks: &[PageCursor]) -> Vec<String> {
        marks.iter().map(|mark| mark.name().to_string()).collect()
    }

    #[test]
    fn pages_of_any_size_give_every_memory_once_and_in_order() {
        let store = scene();
        let all = store.page(&Search { limit: 100, ..Search::default() }, None).unwrap();
        let expected = ["S3", "6", "5", "P3", "S2", "4", "3", "P2", "S1", "2", "1", "P1"];
        assert_eq!(names(&all), expected);
        for limit in 1..=12 {
            let (mut read, mut before) = (Vec::new(), None);
            loop {
                let page = store.page(&Search { limit, ..Search::default() }, before).unwrap();
                let Some(last) = page.last() else { break };
                before = Some(last.to_string().parse().unwrap());
                read.extend(page);
            }
            assert_eq!(names(&read), expected, "{limit}");
        }
        let offset = Search { limit: 2, offset: 3, ..Search::default() };
        assert_eq!(names(&store.page(&offset, None).unwrap()), ["P3", "S2"]);
    }

    #[test]
    fn a_page_can_be_of_one_kind_or_project() {
        let store = scene();
        let search = Search { kinds: vec![Kind::Summary], ..Search::default() };
        assert_eq!(names(&store.page(&search, None).unwrap()), ["S3", "S2", "S1"]);
        let search = Search { project: Some("a".into()), ..Search::default() };
        assert_eq!(names(&store.page(&search, None).unwrap()), ["S2", "4", "3", "P2"]);
        for (host, count) in [(0, 12), (1, 0)] {
            let search = Search { host: Some(host), ..Search::default() };
            assert_eq!(store.page(&search, None).unwrap().len(), count, "host {host}");
        }
        let search = Search { project: Some("unknown".into()), ..Search::default() };
        assert_eq!(names(&store.page(&search, None).unwrap()), [""; 0]);
        assert!("7".parse::<PageCursor>().is_err() && "x-3".parse::<PageCursor>().is_err());
    }
}
