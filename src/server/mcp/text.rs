//! Memories as text for a model: few tokens, IDs first.

use std::fmt::Write as _;

use claude_mem_projections::{
    search::Hit,
    text::{one_line, truncate},
};

use super::arguments::Arguments;
use claude_mem_core::{
    failure::Failure,
    time_arg::{When, local},
};

/// Maximum length of a title.
const TITLE_CHARS_MAX: usize = 140;

/// Type of an observation, else the kind of memory.
pub(super) fn label(hit: &Hit) -> &str {
    hit.type_.as_deref().unwrap_or(hit.kind.name())
}

/// Text of a table cell.
pub(super) fn cell(text: &str) -> String {
    truncate(one_line(text), TITLE_CHARS_MAX)
}

/// Hits as a table. The project is a column only if there are several.
pub(super) fn table(hits: &[Hit]) -> String {
    let is_mixed = hits.iter().any(|hit| hit.project != hits[0].project);
    let mut text = String::from("ID | when | type | ");
    text += if is_mixed { "project | title\n" } else { "title\n" };
    for hit in hits {
        let when = local(hit.at_us, "%Y-%m-%d %H:%M");
        let _ = write!(text, "{} | {when} | {} | ", hit.name, label(hit));
        if is_mixed {
            let _ = write!(text, "{} | ", cell(&hit.project));
        }
        text += &cell(&hit.marked_title());
        text.push('\n');
    }
    text
}

/// A time argument: text, or a number since 1970.
pub(super) fn time(arguments: &Arguments, name: &str) -> Result<Option<When>, Failure> {
    let Some(text) = arguments.anchor(name) else { return Ok(None) };
    When::from_api(&text).map(Some).map_err(|error| {
        Failure::new(format!("`{name}` is not a time: `{}`", cell(&text))).remedy(error.to_string())
    })
}
