//! Timelines: prompts, observations and summaries around a point in time.

use crate::{
    Store,
    error::Result,
    query::{
        page_cursor::{PageCursor, rank},
        search::{Hit, Kind, MemoryId, Query, Search},
    },
};
use rusqlite::{OptionalExtension, params_from_iter, types::Value};

/// A timeline request.
#[derive(Debug, Clone)]
pub struct TimelineQuery {
    /// The anchor in the middle.
    pub anchor: Anchor,
    /// Maximum number of memories before it.
    pub before: usize,
    /// Maximum number of memories after it.
    pub after: usize,
    /// The name or the key of a project; else the anchor's own.
    pub project: Option<String>,
    /// Whether to include other projects than the anchor's.
    pub is_everywhere: bool,
    /// Kinds of memories, in addition to `types`.
    pub kinds: Vec<Kind>,
    /// Types of observations. Without kinds and types, everything is included.
    pub types: Vec<String>,
}

/// The middle of a timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Anchor {
    Memory(MemoryId),
    /// A time, in microseconds since 1970.
    Time(u64),
    /// The best hit of a query.
    Query(String),
}

/// The memories around an anchor, in order of time.
#[derive(Debug, Clone, Default)]
pub struct TimelineWindow {
    /// The memory in the middle, if the anchor is one.
    pub anchor: Option<MemoryId>,
    /// The time in the middle.
    pub at_us: u64,
    /// The memories, including the anchor.
    pub moments: Vec<Hit>,
    /// Why there is nothing.
    pub hint: Option<String>,
}

impl Store {
    /// The memories around an anchor.
    pub fn timeline(&self, timeline: &TimelineQuery) -> Result<TimelineWindow> {
        let anchor = match &timeline.anchor {
            Anchor::Memory(name) => Some(*name),
            Anchor::Time(_) => None,
            Anchor::Query(query) => match self.best(query, timeline.project.as_ref())? {
                Ok(name) => Some(name),
                Err(hint) => {
                    return Ok(TimelineWindow { hint: Some(hint), ..TimelineWindow::default() });
                }
            },
        };
        let mut projects =
            timeline.project.as_deref().map(|name| self.projects_named(name)).transpose()?;
        let middle = match (anchor, &timeline.anchor) {
            (Some(name), _) => {
                let Some((place, owned)) = self.place(name)? else {
                    let hint = Some(format!("there is no memory `{name}`"));
                    return Ok(TimelineWindow { hint, ..TimelineWindow::default() });
                };
                if projects.is_none() && !timeline.is_everywhere {
                    projects = Some(owned);
                }
                place
            }
            (None, Anchor::Time(at_us)) => PageCursor { at_us: *at_us as i64, rank: 0, id: 0 },
            (None, _) => unreachable!("an anchor is a memory or a time"),
        };
        let mut places = self.around(middle, projects.as_deref(), timeline)?;
        places.sort_unstable();
        let query = Query::default();
        let moments =
            places.into_iter().filter_map(|place| self.hit(place.name(), &query).transpose());
        Ok(TimelineWindow {
            anchor,
            at_us: middle.at_us as u64,
            moments: moments.collect::<Result<_>>()?,
            hint: None,
        })
    }

    fn best(&self, query: &str, project: Option<&String>) -> Result<Result<MemoryId, String>> {
        let search = Search {
            query: query.into(),
            project: project.cloned(),
            limit: 1,
            ..Search::default()
        };
        let found = self.search(&search)?;
        let hint = found.hint.unwrap_or_default();
        Ok(found.hits.first().map(|hit| hit.name).ok_or(hint))
    }

    /// The position of a memory, and the projects merged with its own.
    fn place(&self, name: MemoryId) -> Result<Option<(PageCursor, Vec<i64>)>> {
        let sql = format!(
            "select row.at_us, projects.owner from visible_{} row
                 join projects on projects.id = row.project where row.id = ?1",
            name.kind.table()
        );
        let found: Option<(i64, i64)> = self
            .connection
            .prepare_cached(&sql)?
            .query_row([name.id], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((at_us, owner)) = found else { return Ok(None) };
        let siblings =
            self.rows("select id from projects where owner = ?1", [owner], |row| row.get(0))?;
        Ok(Some((PageCursor::of(at_us, name), siblings)))
    }

    fn around(
        &self,
        middle: PageCursor,
        projects: Option<&[i64]>,
        timeline: &TimelineQuery,
    ) -> Result<Vec<PageCursor>> {
        let mut before = Vec::new();
        let mut after = Vec::new();
        for kind in Kind::ALL {
            before.extend(self.neighbors(middle, kind, projects, Side::Before, timeline)?);
            after.extend(self.neighbors(middle, kind, projects, Side::After, timeline)?);
        }
        before.sort_unstable_by(|left, right| right.cmp(left));
        before.truncate(timeline.before);
        after.sort_unstable();
        after.truncate(timeline.after);
        before.extend(Some(middle).filter(|middle| middle.id > 0));
        before.extend(after);
        Ok(before)
    }

    fn neighbors(
        &self,
        middle: PageCursor,
        kind: Kind,
        projects: Option<&[i64]>,
        side: Side,
        timeline: &TimelineQuery,
    ) -> Result<Vec<PageCursor>> {
        let TimelineQuery { kinds, types, .. } = timeline;
        let is_all = kinds.contains(&kind) || kinds.is_empty() && types.is_empty();
        if !is_all && (kind != Kind::Observation || types.is_empty()) {
            return Ok(Vec::new());
        }
        // The first comparison lets the index find the rows, the second one is exact.
        let (about, exactly, order, rows_max) = match side {
            Side::Before => ("<=", "<", "desc", timeline.before),
            Side::After => (">=", ">", "asc", timeline.after),
        };
        let of_types = match is_all {
            true => String::new(),
            false => format!("and type in ({})", vec!["?"; types.len()].join(", ")),
        };
        let within = projects.map_or(String::new(), |ids| {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            format!("and project in ({})", ids.join(", "))
        });
        let rank = rank(kind);
        let sql = format!(
            "select at_us, id from visible_{} where at_us {about} ?1
                 and (at_us, {rank}, id) {exactly} (?1, ?2, ?3) {within} {of_types}
             order by at_us {order}, id {order} limit {rows_max}",
            kind.table()
        );
        let middle = [middle.at_us, i64::from(middle.rank), middle.id].map(Value::Integer);
        let types = types.iter().filter(|_| !is_all).cloned().map(Value::Text);
        self.rows(&sql, params_from_iter(middle.into_iter().chain(types)), |row| {
            Ok(PageCursor { at_us: row.get(0)?, rank, id: row.get(1)? })
        })
    }
}

#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::{BEGIN_US, TestLog, titled};

    /// Three turns in one project, and one in another in between.
    fn turns() -> Store {
        let mut scene = TestLog::new();
        for turn in ["alpha", "beta", "gamma"] {
            scene.prompt(turn);
            let tool = scene.tool("Read", "{}");
            let summary = format!("<summary><request>{turn}</request></summary>");
            scene.reply(&[tool], &(titled(turn) + &summary));
            if turn == "alpha" {
                let home = scene.envelope.clone();
                scene.envelope.project.key = "elsewhere".into();
                scene.envelope.session = "t".into();
                scene.prompt("elsewhere");
                scene.envelope = home;
            }
        }
        scene.fold()
    }

    fn around(store: &Store, anchor: Anchor, before: usize, after: usize) -> String {
        shown(store, &TimelineQuery { before, after, ..around_anchor(anchor) })
    }

    fn around_anchor(anchor: Anchor) -> TimelineQuery {
        TimelineQuery {
            anchor,
            before: 9,
            after: 9,
            project: None,
            is_everywhere: false,
            kinds: Vec::new(),
            types: Vec::new(),
        }
    }

    fn shown(store: &Store, timeline: &TimelineQuery) -> String {
        let found = store.timeline(timeline).unwrap();
        let name = |hit: &Hit| match Some(hit.name) == found.anchor {
            true => format!("[{}]", hit.name),
            false => hit.name.to_string(),
        };
        found.moments.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn everything_around_an_anchor_is_shown_in_order() {
        let store = turns();
        let memory = |name: &str| Anchor::Memory(name.parse().unwrap());
        assert_eq!(around(&store, memory("2"), 2, 2), "S1 P3 [2] S2 P4");
        assert_eq!(around(&store, memory("S1"), 9, 1), "P1 1 [S1] P3");
        assert_eq!(around(&store, memory("P4"), 0, 0), "[P4]");
        assert_eq!(around(&store, Anchor::Query("gamma".into()), 1, 9), "P4 [3] S3");
        assert_eq!(around(&store, Anchor::Time(BEGIN_US + 4_000_000), 2, 2), "1 S1 P2 P3");
        assert_eq!(around(&store, memory("99"), 2, 2), "");
    }

    #[test]
    fn other_projects_are_shown_only_on_request() {
        let store = turns();
        let anchor = Anchor::Memory("S1".parse().unwrap());
        let timeline =
            TimelineQuery { before: 0, after: 1, is_everywhere: true, ..around_anchor(anchor) };
        let found = store.timeline(&timeline).unwrap();
        assert_eq!(found.moments[1].title, "elsewhere");
    }

    #[test]
    fn only_some_kinds_and_types_are_shown_around_any_anchor() {
        let store = turns();
        let only = |kinds: &[Kind], types: &[&str]| {
            let types = types.iter().map(|type_| (*type_).to_owned()).collect();
            let anchor = around_anchor(Anchor::Memory("S2".parse().unwrap()));
            shown(&store, &TimelineQuery { kinds: kinds.to_vec(), types, ..anchor })
        };
        assert_eq!(only(&[], &["feature"]), "1 2 [S2] 3");
        assert_eq!(only(&[Kind::Prompt], &["feature"]), "P1 1 P3 2 [S2] P4 3");
        assert_eq!(only(&[Kind::Summary], &[]), "S1 [S2] S3");
        assert_eq!(only(&[], &["decision"]), "[S2]");
    }
}
