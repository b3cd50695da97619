//! `size`: lines of Rust per room, next to the budgets in ARCHITECTURE.md.

use std::{
    error::Error,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// The heading of the budgets in ARCHITECTURE.md.
const HEADING: &str = "## Line budgets";

/// Show the lines of Rust per room and the budget of each
///
/// Reads the budgets from the table in ARCHITECTURE.md of this folder. It is a report: a room over its budget is
/// marked, and the exit code stays 0.
#[derive(Debug, clap::Args)]
pub(crate) struct Size;

/// One row of the table: folders that share a budget.
#[derive(Debug, PartialEq)]
struct Room {
    folders: Vec<String>,
    budget: usize,
    lines: usize,
}

impl Size {
    pub(crate) fn run() -> Result<ExitCode, Box<dyn Error>> {
        let mut rooms = rooms(&fs::read_to_string("ARCHITECTURE.md")?)?;
        let mut files = Vec::new();
        rust_files(Path::new("."), &mut files)?;
        let mut outside = 0;
        for file in files {
            let lines = fs::read_to_string(&file)?.lines().count();
            let path = file.strip_prefix(".")?.to_string_lossy();
            match room_of(&mut rooms, &path) {
                Some(room) => room.lines += lines,
                None => outside += lines,
            }
        }
        super::say(&report(&rooms, outside))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The rows of the table below the heading.
fn rooms(page: &str) -> Result<Vec<Room>, Box<dyn Error>> {
    let (_, rest) = page.split_once(HEADING).ok_or("ARCHITECTURE.md has no line budgets")?;
    let rows = rest.split("\n## ").next().unwrap_or_default().lines();
    rows.filter(|row| row.starts_with("| `"))
        .map(|row| {
            let mut cells = row.trim_matches(['|', ' ']).split('|');
            let folders = cells.next().unwrap_or_default().split('`').skip(1).step_by(2);
            let budget = cells.next().unwrap_or_default().trim().replace(',', "");
            let folders = folders.map(str::to_owned).collect();
            Ok(Room { folders, budget: budget.parse()?, lines: 0 })
        })
        .collect()
}

/// The room with the longest folder that contains the file.
fn room_of<'a>(rooms: &'a mut [Room], path: &str) -> Option<&'a mut Room> {
    let depth = |room: &Room| {
        let inside = room.folders.iter().filter(|folder| path.starts_with(folder.as_str()));
        inside.map(String::len).max()
    };
    rooms.iter_mut().filter(|room| depth(room).is_some()).max_by_key(|room| depth(room))
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if kind.is_dir() && name != "target" && !name.starts_with('.') {
            rust_files(&path, files)?;
        } else if kind.is_file() && name.ends_with(".rs") {
            files.push(path);
        }
    }
    Ok(())
}

fn report(rooms: &[Room], outside: usize) -> String {
    let mut text = format!("{:<60} {:>7} {:>7}\n", "room", "lines", "budget");
    for Room { folders, budget, lines } in rooms {
        let mark = if lines > budget { " over" } else { "" };
        let _ = writeln!(text, "{:<60} {lines:>7} {budget:>7}{mark}", folders.join(" "));
    }
    let sum = |of: fn(&Room) -> usize| rooms.iter().map(of).sum::<usize>();
    let lines = sum(|room| room.lines) + outside;
    let _ = write!(text, "{:<60} {lines:>7} {:>7}", "all", sum(|room| room.budget));
    if outside > 0 {
        let _ = write!(text, "\n{outside} lines are in no room");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_counts_for_the_deepest_room_that_contains_it() {
        let page = format!(
            "# Page\n{HEADING}\n\n| room | lines |\n|---|---|\n| `src/` | 1,200 |\n\
             | `src/a/`, `src/b/` | 30 |\n\n## Next\n| `docs/` | 7 |\n"
        );
        let mut rooms = rooms(&page).unwrap();
        for (path, lines) in [("src/main.rs", 5), ("src/b/x.rs", 31), ("src/bc.rs", 1)] {
            room_of(&mut rooms, path).unwrap().lines += lines;
        }
        assert!(room_of(&mut rooms, "docs/x.rs").is_none());
        let report = report(&rooms, 0);
        let rows: Vec<Vec<&str>> =
            report.lines().map(|row| row.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["src/", "6", "1200"]);
        assert_eq!(rows[2], ["src/a/", "src/b/", "31", "30", "over"]);
        assert_eq!(rows[3], ["all", "37", "1230"]);
    }
}
