//! Memories as Markdown, with a heading per project, day and memory.

use std::io::{self, Write};

use claude_mem_projections::{ExportBody, ExportEntry, ExportQuery, Store, text::one_line};
use jiff::{Timestamp, tz::TimeZone};

use super::{ExportCounts, ExportError};
use claude_mem_core::{progress::Progress, safe_text::clean};

pub(super) fn write_markdown(
    store: &Store,
    wanted: &ExportQuery,
    progress: Option<&Progress>,
    out: &mut dyn Write,
) -> Result<ExportCounts, ExportError> {
    let mut page = Page { out: Vec::new(), project: None, day: String::new() };
    let mut written = ExportCounts { what: "memories", ..ExportCounts::default() };
    store.export(wanted, |entry| {
        written.count += 1;
        if let Some(progress) = progress {
            progress.advance(1);
        }
        page.entry(&entry)?;
        out.write_all(clean(&String::from_utf8_lossy(&page.out)).as_bytes())?;
        page.out.clear();
        Ok::<(), ExportError>(())
    })?;
    Ok(written)
}

struct Page {
    out: Vec<u8>,
    project: Option<String>,
    day: String,
}

impl Page {
    fn entry(&mut self, entry: &ExportEntry) -> io::Result<()> {
        let (day, time) = moment(entry.at_us);
        if self.project.as_deref() != Some(&entry.project) {
            let gap = if self.project.is_some() { "\n" } else { "" };
            writeln!(self.out, "{gap}# {}", one_line(&entry.project))?;
            self.project = Some(entry.project.clone());
            self.day.clear();
        }
        if self.day != day {
            writeln!(self.out, "\n## {day}")?;
            self.day = day;
        }
        match &entry.body {
            ExportBody::Observation { kind, title, subtitle, narrative, facts, files } => {
                let kind = if kind.is_empty() { "observation" } else { kind };
                let heading = match title.is_empty() {
                    true => format!("A {kind} ({time}, {})", entry.name),
                    false => format!("{} ({kind}, {time}, {})", one_line(title), entry.name),
                };
                writeln!(self.out, "\n### {heading}\n")?;
                self.paragraphs(&[subtitle, narrative])?;
                self.list(facts, "")?;
                self.list(files, "`")
            }
            ExportBody::Summary(parts) => {
                writeln!(self.out, "\n### Summary ({time}, {})\n", entry.name)?;
                for (heading, text) in parts {
                    writeln!(self.out, "**{heading}:** {}\n", text.trim())?;
                }
                Ok(())
            }
        }
    }

    fn paragraphs(&mut self, texts: &[&String]) -> io::Result<()> {
        for text in texts.iter().filter(|text| !text.trim().is_empty()) {
            writeln!(self.out, "{}\n", text.trim())?;
        }
        Ok(())
    }

    fn list(&mut self, items: &[String], quote: &str) -> io::Result<()> {
        for item in items {
            writeln!(self.out, "- {quote}{}{quote}", one_line(item))?;
        }
        if items.is_empty() { Ok(()) } else { writeln!(self.out) }
    }
}

fn moment(at_us: u64) -> (String, String) {
    let time = Timestamp::from_microsecond(at_us.cast_signed()).unwrap_or(Timestamp::MIN);
    let time = time.to_zoned(TimeZone::system());
    (time.strftime("%Y-%m-%d").to_string(), time.strftime("%H:%M").to_string())
}
