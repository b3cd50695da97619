//! Tables on a terminal: the widest column shrinks until a row fits. Elsewhere nothing is cut.

use claude_mem_core::{
    app::{App, Output},
    failure::Failure,
    wrap::{fit, width},
};

use super::hit_labels::plain;

/// Space between two columns.
pub(super) const GAP: usize = 2;
/// A column does not shrink below this.
const COLUMN_MIN: usize = 8;

#[derive(Debug, Clone)]
pub(super) struct Column {
    title: String,
    is_number: bool,
}

impl Column {
    /// Text, which may be cut.
    pub(super) fn text(title: impl Into<String>) -> Self {
        Self { title: title.into(), is_number: false }
    }

    /// Aligned to the right, and never cut.
    pub(super) fn number(title: impl Into<String>) -> Self {
        Self { title: title.into(), is_number: true }
    }
}

/// Rows of text below a line of titles.
#[derive(Debug)]
pub(super) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new() }
    }

    /// Adds a row, with a cell for each column.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = impl AsRef<str>>) {
        self.rows.push(cells.into_iter().map(|cell| plain(cell.as_ref())).collect());
    }

    /// Prints the titles dimmed, then the rows.
    pub(super) fn print(&self, app: &mut App) -> Result<(), Failure> {
        self.lines(&app.output).into_iter().try_for_each(|line| app.output.line(line))
    }

    fn lines(&self, output: &Output) -> Vec<String> {
        let widest = |(at, column): (usize, &Column)| {
            let cells = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| width(cell));
            cells.chain([width(&column.title)]).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = self.columns.iter().enumerate().map(widest).collect();
        if let Some(columns) = output.columns() {
            let gaps = widths.len().saturating_sub(1) * GAP;
            let can_shrink: Vec<bool> = self.columns.iter().map(|c| !c.is_number).collect();
            shrink(&mut widths, &can_shrink, columns.saturating_sub(gaps));
        }
        let titles: Vec<String> = self.columns.iter().map(|column| column.title.clone()).collect();
        let head = output.dim(&self.line(&titles, &widths));
        [head].into_iter().chain(self.rows.iter().map(|row| self.line(row, &widths))).collect()
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let cells = self.columns.iter().zip(cells).zip(widths);
        let cells = cells.map(|((column, cell), columns)| match column.is_number {
            true => format!("{}{cell}", " ".repeat(columns.saturating_sub(width(cell)))),
            false => fit(cell, *columns),
        });
        cells.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_owned()
    }
}

/// Shrinks the widest columns until they take at most `available` together, or none can shrink
/// further.
pub(super) fn shrink(widths: &mut [usize], can_shrink: &[bool], available: usize) {
    let mut excess = widths.iter().sum::<usize>().saturating_sub(available);
    while excess > 0 {
        let columns = widths.iter_mut().zip(can_shrink);
        let shrinkable = columns.filter(|(width, can_shrink)| **can_shrink && **width > COLUMN_MIN);
        let Some((widest, _)) = shrinkable.max_by_key(|(width, _)| **width) else { return };
        *widest -= 1;
        excess -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_columns_shrink_first() {
        let mut widths = [30, 5, 20];
        shrink(&mut widths, &[true, true, true], 45);
        assert_eq!(widths, [20, 5, 20]);
        shrink(&mut widths, &[true, true, false], 10);
        assert_eq!(widths, [COLUMN_MIN, 5, 20]);
    }
}
