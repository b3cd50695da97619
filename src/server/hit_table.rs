//! Hits as a table for a model: by day and file, few tokens, IDs first.

use std::fmt::Write as _;

use claude_mem_core::time_arg::local;
use claude_mem_projections::{
    search::{Hit, MemoryId, has_several_clients},
    text::{one_line, truncate},
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

/// The lines below the heading of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DayLayout {
    /// Hits without a file, then a heading per file.
    File,
    /// In the given order.
    Day,
}

/// A heading per day, a line per hit. Days and files are in the order of their first hit, so the
/// best one comes first. The columns are named once. The project and the client are columns only if
/// there are several.
pub(crate) fn hit_table(hits: &[Hit], within: DayLayout) -> String {
    let columns = Columns {
        project: hits.iter().any(|hit| hit.project != hits[0].project),
        client: has_several_clients(hits),
    };
    let mut text = String::from("ID | time | type | ");
    text += if columns.project { "project | " } else { "" };
    text += if columns.client { "client | " } else { "" };
    text += "title | tokens\n";
    for (day, hits) in grouped(hits, |hit| local(hit.at_us, "%Y-%m-%d")) {
        let _ = writeln!(text, "### {day}");
        let file = |hit: &Hit| hit.file.clone().filter(|_| within == DayLayout::File);
        let mut files = grouped(hits, file);
        files.sort_by_key(|(file, _)| file.is_some());
        for (file, hits) in files {
            if let Some(file) = file {
                let _ = writeln!(text, "**{}**", cell(&file));
            }
            for hit in hits {
                write_line(&mut text, hit, columns);
            }
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

fn write_line(text: &mut String, hit: &Hit, columns: Columns) {
    let _ = write!(text, "{} | {} | {} | ", hit.name, local(hit.at_us, "%H:%M"), label(hit));
    if columns.project {
        let _ = write!(text, "{} | ", cell(&hit.project));
    }
    if columns.client {
        let _ = write!(text, "{} | ", cell(hit.client.as_deref().unwrap_or("-")));
    }
    *text += &cell(&hit.marked_title());
    if !hit.also.is_empty() {
        let also: Vec<String> = hit.also.iter().map(MemoryId::to_string).collect();
        let _ = write!(text, " (also {})", also.join(", "));
    }
    let _ = writeln!(text, " | {}", hit.tokens);
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
    fn shown(hits: &[Hit], within: DayLayout) -> Vec<String> {
        let table = hit_table(hits, within);
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
        assert_eq!(shown(&hits, DayLayout::File), by_file);
        assert_eq!(shown(&hits[2..], DayLayout::Day)[2..].len(), 2);
        let codex = Hit { client: Some("codex".into()), ..hit(6, 20, None) };
        let table = hit_table(&[hit(3, 20, None), codex], DayLayout::File);
        assert!(table.starts_with("ID | time | type | client | title | tokens\n"), "{table}");
        assert!(table.contains(" | codex | title 6 of it | 40\n"), "{table}");
        let other = Hit { project: "q".into(), ..hit(5, 20, None) };
        let table = hit_table(&[hit(3, 20, None), other], DayLayout::File);
        assert!(table.starts_with("ID | time | type | project | title | tokens\n"), "{table}");
        assert!(table.contains(" | q | title 5 of it | 40\n"), "{table}");
    }
}
