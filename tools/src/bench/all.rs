//! One table of all figures with a bound.

use std::{fmt::Write, fs, path::Path};

use serde_json::Value;

use super::{BenchResult, GROUPS};

/// One bound and its result.
struct Line {
    group: String,
    figure: String,
    target: String,
    reached: String,
    is_met: bool,
}

/// Renders the table from the reports in `dir`, and saves it there.
pub(crate) fn draw_all(dir: &Path) -> BenchResult<String> {
    let mut lines = Vec::new();
    let mut absent = Vec::new();
    for group in GROUPS {
        match fs::read_to_string(dir.join(format!("{}.json", group.name))) {
            Ok(report) => lines.extend(judged(group.name, &serde_json::from_str(&report)?)),
            Err(_) => absent.push(group.name),
        }
    }
    let text = shown(&lines, &absent);
    fs::write(dir.join("all.md"), &text)?;
    Ok(text)
}

/// The figures of a report that have a bound.
fn judged(group: &str, report: &Value) -> Vec<Line> {
    let figures = report["figures"].as_array().map(Vec::as_slice).unwrap_or_default();
    let line = |figure: &Value| {
        let verdict = &figure["verdict"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(Line {
            group: group.to_owned(),
            figure: text(&figure["title"])?,
            target: text(&verdict["target"])?,
            reached: text(&verdict["reached"])?,
            is_met: verdict["is_met"].as_bool()?,
        })
    };
    figures.iter().filter_map(line).collect()
}

fn shown(lines: &[Line], absent: &[&str]) -> String {
    let met = lines.iter().filter(|line| line.is_met).count();
    let mut text = format!(
        "# Every figure\n\n{met} of {} figures are met. Each is a ratio taken in one run, or a \
         size. The page of its group describes baseline and method. Figures of deleted \
         benchmarks are in [once.md](once.md).\n",
        lines.len()
    );
    if !absent.is_empty() {
        let _ = writeln!(text, "\nNot measured: {}.", absent.join(", "));
    }
    text.push_str("\n| | figure | to reach | reached | |\n|---|---|---|---|---|\n");
    for Line { group, figure, target, reached, is_met } in lines {
        let mark = if *is_met { "met" } else { "**missed**" };
        let _ =
            writeln!(text, "| [{group}]({group}.md) | {figure} | {target} | {reached} | {mark} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_has_the_figures_with_bounds() {
        let dir = tempfile::tempdir().unwrap();
        let report = json!({"figures": [
            {"title": "Space", "verdict": {"target": "at most 2", "reached": "1.5", "is_met": true}},
            {"title": "All of it", "verdict": null},
        ]});
        fs::write(dir.path().join("log.json"), report.to_string()).unwrap();
        let first = draw_all(dir.path()).unwrap();
        let row = "| [log](log.md) | Space | at most 2 | 1.5 | met |\n";
        assert!(first.contains("1 of 1 figures are met") && first.ends_with(row), "{first}");
        assert!(first.contains("Not measured: hooks"), "{first}");
    }
}
