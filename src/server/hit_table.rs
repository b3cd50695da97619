//! Hits as a table for a model: by day and file, few tokens, IDs first.

use std::fmt::Write as _;

use claude_mem_core::time_arg::local;
use claude_mem_projections::{
    search::{Hit, MemoryId, has_several_clients},
    text::{one_line, truncate},
    timeline::TimelineWindow,
};

/// Maximum length of a title.
const TITLE_CHARS_MAX: usize = 140;

/// Type of an observation, else the kind of memory.
pub(crate) fn label(hit: &Hit) -> &str {
    hit.type_.as_deref().unwrap_or(hit.kind.name())
}

/// Text of a table cell.
pub(crate) fn cell(text: &str) -> String {
    truncate(one_line(text), TITLE_CHARS_MAX)
}

/// A heading per day and per file, a line per hit. Days and files are in the order of their first
/// hit, so the best one comes first; hits without a file are above the first file. The columns are
/// named once. The project and the client are columns only if there are several.
pub(crate) fn hit_table(hits: &[Hit]) -> String {
    let columns = Columns::of(hits);
    let mut text = columns.heading();
    for (day, hits) in grouped(hits, |hit| local(hit.at_us, "%Y-%m-%d")) {
        let _ = writeln!(text, "### {day}");
        let mut files = grouped(hits, |hit| hit.file.clone());
        files.sort_by_key(|(file, _)| file.is_some());
        for (file, hits) in files {
            if let Some(file) = file {
                let _ = writeln!(text, "**{}**", cell(&file));
            }
            for hit in hits {
                columns.write_line(&mut text, hit);
            }
        }
    }
    text
}

/// The same table in the order of time: a heading wherever the day or the file changes. The anchor
/// is marked, if it is a memory; else a line shows where it is.
pub(crate) fn timeline_table(found: &TimelineWindow) -> String {
    let columns = Columns::of(&found.moments);
    let mut text = columns.heading();
    let mut place = (String::new(), None);
    let mut is_passed = found.anchor.is_some();
    for hit in &found.moments {
        if !is_passed && hit.at_us >= found.at_us {
            is_passed = true;
            let _ = writeln!(text, "--- {}", local(found.at_us, "%Y-%m-%d %H:%M"));
        }
        let (day, file) = (local(hit.at_us, "%Y-%m-%d"), hit.file.as_deref());
        let is_same_day = day == place.0;
        if !is_same_day {
            let _ = writeln!(text, "### {day}");
        }
        if file != if is_same_day { place.1 } else { None } {
            let _ = writeln!(text, "**{}**", file.map_or("no file".into(), cell));
        }
        place = (day, file);
        columns.write_line(&mut text, hit);
        if Some(hit.name) == found.anchor {
            text.insert_str(text.len() - 1, " ← anchor");
        }
    }
    text
}

/// Which columns the table has, in addition to those of every table.
#[derive(Clone, Copy)]
struct Columns {
    project: bool,
    client: bool,
}

impl Columns {
    fn of(hits: &[Hit]) -> Self {
        Self {
            project: hits.iter().any(|hit| hit.project != hits[0].project),
            client: has_several_clients(hits),
        }
    }

    fn heading(self) -> String {
        let project = if self.project { "project | " } else { "" };
        let client = if self.client { "client | " } else { "" };
        format!("ID | time | type | {project}{client}title | tokens\n")
    }

    fn write_line(self, text: &mut String, hit: &Hit) {
        let _ = write!(text, "{} | {} | {} | ", hit.name, local(hit.at_us, "%H:%M"), label(hit));
        if self.project {
            let _ = write!(text, "{} | ", cell(&hit.project));
        }
        if self.client {
            let _ = write!(text, "{} | ", cell(hit.client.as_deref().unwrap_or("-")));
        }
        *text += &cell(&hit.marked_title());
        if !hit.also.is_empty() {
            let also: Vec<String> = hit.also.iter().map(MemoryId::to_string).collect();
            let _ = write!(text, " (also {})", also.join(", "));
        }
        let _ = writeln!(text, " | {}", hit.tokens);
    }
}

/// Groups by a key, in the order of the first of each.
fn grouped<'a, K: Eq>(
    hits: impl IntoIterator<Item = &'a Hit>,
    key: impl Fn(&Hit) -> K,
) -> Vec<(K, Vec<&'a Hit>)> {
    let mut groups: Vec<(K, Vec<&Hit>)> = Vec::new();
    for hit in hits {
        let key = key(hit);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, hits)) => hits.push(hit),
            None => groups.push((key, vec![hit])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use claude_mem_projections::{Marks, search::Kind};

    fn hit(id: i64, day: u64, file: Option<&str>) -> Hit {
        Hit {
            name: MemoryId { kind: Kind::Observation, id },
            kind: Kind::Observation,
            type_: Some("bugfix".into()),
            at_us: day * 86_400_000_000 + 43_200_000_000,
            project: "p".into(),
            session: None,
            client: None,
            host: None,
            title: format!("title {id}\nof it"),
            snippet: String::new(),
            file: file.map(Into::into),
            tokens: 40,
            marks: Marks::default(),
            also: if id == 1 { vec![MemoryId { kind: Kind::Prompt, id: 9 }] } else { Vec::new() },
            score: 0.0,
            explanation: None,
        }
    }

    /// Without times, which depend on the time zone.
    fn shown(table: &str) -> Vec<String> {
        let line = |line: &str| match line.split(" | ").collect::<Vec<_>>()[..] {
            [id, _, type_, ref rest @ ..] if id != "ID" => {
                format!("{id} {type_} {}", rest.join(" | "))
            }
            _ => line.split(' ').next().unwrap_or_default().to_owned(),
        };
        table.lines().map(line).collect()
    }

    #[test]
    fn hits_are_grouped_by_day_and_file_in_the_order_of_the_best() {
        let hits = [
            hit(1, 20, Some("a.rs")),
            hit(2, 10, Some("b.rs")),
            hit(3, 20, None),
            hit(4, 20, Some("a.rs")),
        ];
        let by_file = [
            "ID",
            "###",
            "3 bugfix title 3 of it | 40",
            "**a.rs**",
            "1 bugfix title 1 of it (also P9) | 40",
            "4 bugfix title 4 of it | 40",
            "###",
            "**b.rs**",
            "2 bugfix title 2 of it | 40",
        ];
        assert_eq!(shown(&hit_table(&hits)), by_file);
        let codex = Hit { client: Some("codex".into()), ..hit(6, 20, None) };
        let table = hit_table(&[hit(3, 20, None), codex]);
        assert!(table.starts_with("ID | time | type | client | title | tokens\n"), "{table}");
        assert!(table.contains(" | codex | title 6 of it | 40\n"), "{table}");
        let other = Hit { project: "q".into(), ..hit(5, 20, None) };
        let table = hit_table(&[hit(3, 20, None), other]);
        assert!(table.starts_with("ID | time | type | project | title | tokens\n"), "{table}");
        assert!(table.contains(" | q | title 5 of it | 40\n"), "{table}");
    }

    #[test]
    fn a_timeline_keeps_the_order_and_names_days_and_files() {
        let moments =
            vec![hit(2, 10, None), hit(3, 10, Some("a.rs")), hit(4, 10, None), hit(5, 20, None)];
        let at_us = moments[3].at_us;
        let mut found = TimelineWindow { at_us, moments, ..TimelineWindow::default() };
        let lines = [
            "ID",
            "###",
            "2 bugfix title 2 of it | 40",
            "**a.rs**",
            "3 bugfix title 3 of it | 40",
            "**no",
            "4 bugfix title 4 of it | 40",
            "---",
            "###",
            "5 bugfix title 5 of it | 40",
        ];
        assert_eq!(shown(&timeline_table(&found)), lines);
        found.anchor = Some(found.moments[1].name);
        let marked = "3 bugfix title 3 of it | 40 ← anchor";
        assert_eq!(shown(&timeline_table(&found))[4], marked);
    }
}
