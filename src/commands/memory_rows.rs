//! Memories in a list: one format for all commands that list them.

use claude_mem_core::{
    app::Output,
    wrap::{cut, fit, width},
};

use super::{
    hit_labels::plain,
    table::{GAP, shrink},
};

/// One memory: `12  3d  shop  bugfix  title`.
#[derive(Debug, Default)]
pub(super) struct MemoryRow {
    /// An ID, or a sign.
    pub(super) id: String,
    pub(super) time: String,
    pub(super) project: String,
    /// Empty unless the list has memories of several clients.
    pub(super) client: String,
    /// Its type or kind, and the colour of that.
    pub(super) label: String,
    pub(super) colour: &'static str,
    pub(super) title: String,
    /// An excerpt, if it adds to the title.
    pub(super) snippet: String,
}

/// With less space than this next to the other columns, titles get a separate line.
const TITLE_COLUMNS_MIN: usize = 60;

/// The lines of each row for a terminal of this width. `mark` highlights parts of titles and
/// snippets.
pub(super) fn memory_lines(
    output: &Output,
    columns: Option<usize>,
    rows: &[MemoryRow],
    mark: impl Fn(&MemoryRow, &str) -> String,
) -> Vec<Vec<String>> {
    let widest = |of: fn(&MemoryRow) -> &String| {
        rows.iter().map(|row| width(&plain(of(row)))).max().unwrap_or(0)
    };
    let mut widths = [
        widest(|row| &row.id),
        widest(|row| &row.time),
        widest(|row| &row.project),
        widest(|row| &row.client),
        widest(|row| &row.label),
    ];
    if let Some(columns) = columns {
        let gaps = if widths[3] > 0 { 4 * GAP } else { 3 * GAP };
        shrink(&mut widths, &[false, false, true, true, true], columns.saturating_sub(gaps));
    }
    let indent = widths[0] + GAP;
    let taken: usize = widths.iter().filter(|width| **width > 0).map(|width| width + GAP).sum();
    let left = columns.map_or(usize::MAX, |columns| columns.saturating_sub(taken));
    let below = columns.map_or(usize::MAX, |columns| columns.saturating_sub(indent));
    let is_below =
        left < TITLE_COLUMNS_MIN && rows.iter().any(|row| width(&plain(&row.title)) > left);
    let lines = |row: &MemoryRow| {
        let title = cut(plain(&row.title).trim(), if is_below { below } else { left });
        let id = plain(&row.id);
        let id = format!("{}{id}", " ".repeat(widths[0].saturating_sub(width(&id))));
        let cells = [
            output.paint("1", &id),
            output.dim(&format!("{:>1$}", row.time, widths[1])),
            output.dim(&fit(&plain(&row.project), widths[2])),
            output.dim(&fit(&plain(&row.client), widths[3])),
            output.paint(row.colour, &fit(&plain(&row.label), widths[4])),
        ];
        let cells = cells.into_iter().zip(widths).filter(|(_, width)| *width > 0);
        let mut first = cells.map(|(cell, _)| cell).collect::<Vec<_>>();
        let mut lines = Vec::new();
        let indented = |text: &str| format!("{}{}", " ".repeat(indent), mark(row, text));
        if is_below {
            lines.push(first.join("  ").trim_end().to_owned());
            lines.push(indented(&title));
        } else {
            first.push(mark(row, &title));
            lines.push(first.join("  ").trim_end().to_owned());
        }
        if let Some(more) = beyond(&title, plain(&row.snippet).trim()) {
            lines.push(indented(&cut(&more, below)));
        }
        lines
    };
    rows.iter().map(lines).collect()
}

/// A row on one line, with its title cut at this width.
pub(super) fn memory_line(
    output: &Output,
    columns: usize,
    row: &MemoryRow,
    mark: impl Fn(&str) -> String,
) -> String {
    let mut cells = [&row.id, &row.time, &row.project, &row.label].map(|cell| plain(cell));
    if !cells[2].is_empty() {
        cells[2].push_str(&" ".repeat(GAP));
    }
    let taken: usize = cells.iter().map(|cell| width(cell)).sum::<usize>() + 3 * GAP;
    let title = cut(plain(&row.title).trim(), columns.saturating_sub(taken));
    let [id, time, project, label] = cells;
    let (id, time, project) = (output.paint("1", &id), output.dim(&time), output.dim(&project));
    format!("{id}  {time}  {project}{}  {}", output.paint(row.colour, &label), mark(&title))
}

/// The part of a snippet that the shown title does not contain. The text of a prompt is both.
fn beyond(shown_title: &str, snippet: &str) -> Option<String> {
    let start = shown_title.strip_suffix('…').unwrap_or(shown_title);
    if start.starts_with(snippet.strip_suffix('…').unwrap_or(snippet)) {
        return None;
    }
    match snippet.strip_prefix(start) {
        Some("…") => None,
        Some(rest) if !start.is_empty() => Some(format!("…{rest}")),
        _ => Some(snippet.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_does_not_repeat_the_title() {
        assert_eq!(beyond("Fix the login", "Fix the login"), None);
        assert_eq!(beyond("Fix the…", "Fix the login, please"), Some("… login, please".into()));
        assert_eq!(beyond("Fix the login, please", "Fix the login…"), None);
        assert_eq!(beyond("Fix", "a snippet"), Some("a snippet".into()));
        assert_eq!((beyond("", ""), beyond("", "text")), (None, Some("text".into())));
    }
}
