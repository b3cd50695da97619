//! The report of a benchmark, as Markdown and as JSON.

use super::Samples;
use serde::Serialize;
use std::{fmt, time::Duration};

/// All figures of one group, from one run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) group: &'static str,
    pub(crate) about: &'static str,
    pub(crate) machine: String,
    /// Whether the sizes were tiny, so that the figures mean nothing.
    pub(crate) quick: bool,
    pub(crate) figures: Vec<Figure>,
}

/// One comparison.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) title: String,
    /// The method.
    pub(crate) about: String,
    pub(crate) columns: Vec<&'static str>,
    pub(crate) rows: Vec<Row>,
    pub(crate) verdict: Option<Verdict>,
}

/// One line of a figure's table.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) values: Vec<String>,
}

impl Row {
    pub(crate) fn new(name: impl Into<String>, values: Vec<String>) -> Self {
        Self { name: name.into(), values }
    }
}

/// The bound, and the result.
#[derive(Debug, Serialize)]
pub(crate) struct Verdict {
    pub(crate) target: String,
    pub(crate) reached: String,
    pub(crate) is_met: bool,
}

/// The columns of [`against_first`].
pub(crate) const TIMES: &[&str] = &["fastest", "median", "× first, fastest", "× first, median"];

/// A table of times, with their ratios to the first contestant.
pub(crate) fn against_first(samples: &[Samples]) -> Vec<Row> {
    let row = |one: &Samples| {
        let ratio = |times: f64| format!("{times:.2}");
        let values = vec![
            show(one.min()),
            show(one.median()),
            ratio(one.times_min(&samples[0])),
            ratio(one.times_median(&samples[0])),
        ];
        Row::new(&one.name, values)
    };
    samples.iter().map(row).collect()
}

/// A time with three digits, in a suitable unit.
pub(crate) fn show(time: Duration) -> String {
    let nanos = time.as_nanos() as f64;
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
    let (size, unit) = units.into_iter().find(|(size, _)| nanos >= *size).unwrap_or((1.0, "ns"));
    let value = nanos / size;
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {unit}")
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "# Figures: {}\n\n{}\n", self.group, self.about)?;
        writeln!(out, "Measured on: {}\n", self.machine)?;
        if self.quick {
            writeln!(out, "**A quick run: the sizes are tiny, and the figures mean nothing.**\n")?;
        }
        let judged =
            self.figures.iter().filter_map(|figure| Some((figure, figure.verdict.as_ref()?)));
        writeln!(out, "| figure | to reach | reached | |\n|---|---|---|---|")?;
        for (figure, Verdict { target, reached, is_met }) in judged {
            let mark = if *is_met { "met" } else { "**missed**" };
            writeln!(out, "| {} | {target} | {reached} | {mark} |", figure.title)?;
        }
        for figure in &self.figures {
            write!(out, "\n{figure}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "## {}\n\n{}\n", self.title, self.about)?;
        writeln!(out, "| | {} |", self.columns.join(" | "))?;
        writeln!(out, "|---|{}", "---|".repeat(self.columns.len()))?;
        for row in &self.rows {
            writeln!(out, "| {} | {} |", row.name, row.values.join(" | "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        let nanos = [7, 999, 1_234, 56_789, 123_456_789, 2_500_000_000].map(Duration::from_nanos);
        let shown = nanos.map(show);
        assert_eq!(shown, ["7.00 ns", "999 ns", "1.23 µs", "56.8 µs", "123 ms", "2.50 s"]);
    }

    #[test]
    fn a_missed_bound_is_marked() {
        let verdict = Verdict { target: "at most 1".into(), reached: "2".into(), is_met: false };
        let figure = Figure {
            title: "Space".into(),
            about: "Bytes.".into(),
            columns: vec!["bytes"],
            rows: vec![Row::new("ours", vec!["2".into()])],
            verdict: Some(verdict),
        };
        let report = Report {
            group: "log",
            about: "The log.",
            machine: "a machine".into(),
            quick: false,
            figures: vec![figure],
        };
        let expected = "# Figures: log\n\nThe log.\n\nMeasured on: a machine\n\n\
            | figure | to reach | reached | |\n|---|---|---|---|\n\
            | Space | at most 1 | 2 | **missed** |\n\n\
            ## Space\n\nBytes.\n\n| | bytes |\n|---|---|\n| ours | 2 |\n";
        assert_eq!(report.to_string(), expected);
    }
}
