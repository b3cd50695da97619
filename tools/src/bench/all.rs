//! One table of all figures with a bound, next to the previous results.

use std::{collections::BTreeMap, fmt::Write, fs, path::Path};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{GROUPS, Outcome};

/// The file name of the table, without its extension.
const NAME: &str = "all";

/// One bound and its result.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Line {
    group: String,
    figure: String,
    target: String,
    reached: String,
    is_met: bool,
    /// The result in the previous table, if it had this figure.
    #[serde(default)]
    before: Option<String>,
}

/// Renders the table from the reports in `dir`, compares it with the previous one, and saves it
/// there.
pub(crate) fn draw(dir: &Path) -> Outcome<String> {
    let before: Vec<Line> = match fs::read_to_string(dir.join(format!("{NAME}.json"))) {
        Ok(kept) => serde_json::from_str(&kept)?,
        Err(_) => Vec::new(),
    };
    let before = before.into_iter().map(|line| ((line.group, line.figure), line.reached));
    let before: BTreeMap<(String, String), String> = before.collect();
    let mut lines = Vec::new();
    let mut absent = Vec::new();
    for group in GROUPS {
        match fs::read_to_string(dir.join(format!("{}.json", group.name))) {
            Ok(report) => lines.extend(judged(group.name, &serde_json::from_str(&report)?)),
            Err(_) => absent.push(group.name),
        }
    }
    for line in &mut lines {
        line.before = before.get(&(line.group.clone(), line.figure.clone())).cloned();
    }
    let text = shown(&lines, &absent);
    fs::write(dir.join(format!("{NAME}.md")), &text)?;
    fs::write(dir.join(format!("{NAME}.json")), serde_json::to_string_pretty(&lines)? + "\n")?;
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
            before: None,
        })
    };
    figures.iter().filter_map(line).collect()
}

fn shown(lines: &[Line], absent: &[&str]) -> String {
    let met = lines.iter().filter(|line| line.is_met).count();
    let mut text = format!(
        "# Every figure\n\n{met} of {} figures are met. Each is a ratio taken in one run, or a \
         size. The page of its group describes baseline and method.\n",
        lines.len()
    );
    if !absent.is_empty() {
        let _ = writeln!(text, "\nNot measured: {}.", absent.join(", "));
    }
    text.push_str("\n| | figure | to reach | reached | before | |\n|---|---|---|---|---|---|\n");
    for Line { group, figure, target, reached, is_met, before } in lines {
        let before = before.as_deref().unwrap_or("");
        let mark = if *is_met { "met" } else { "**missed**" };
        let _ = writeln!(
            text,
            "| [{group}]({group}.md) | {figure} | {target} | {reached} | {before} | {mark} |"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn keep(dir: &Path, reached: &str) {
        let report = json!({"figures": [
            {"title": "Space", "verdict": {"target": "at most 2", "reached": reached, "is_met": true}},
            {"title": "All of it", "verdict": null},
        ]});
        fs::write(dir.join("log.json"), report.to_string()).unwrap();
    }

    #[test]
    fn a_table_has_bounds_and_the_previous_figures() {
        let dir = tempfile::tempdir().unwrap();
        keep(dir.path(), "1.5");
        let first = draw(dir.path()).unwrap();
        let row = "| [log](log.md) | Space | at most 2 | 1.5 |  | met |\n";
        assert!(first.contains("1 of 1 figures are met") && first.ends_with(row), "{first}");
        assert!(first.contains("Not measured: hooks"), "{first}");

        keep(dir.path(), "1.25");
        let second = draw(dir.path()).unwrap();
        assert!(second.ends_with("| 1.25 | 1.5 | met |\n"), "{second}");
    }
}
