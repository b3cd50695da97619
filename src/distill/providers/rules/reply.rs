//! Writes the reply in the format shared by all providers.

use std::fmt::Write as _;

use crate::escape::{attribute, escaped};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Observation {
    pub(super) kind: String,
    pub(super) title: String,
    pub(super) subtitle: String,
    pub(super) facts: Vec<String>,
    pub(super) narrative: String,
    pub(super) concepts: Vec<String>,
    pub(super) files_read: Vec<String>,
    pub(super) files_modified: Vec<String>,
    /// Titles of earlier observations of the session that this one replaces.
    pub(super) corrects: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) request: String,
    pub(super) investigated: String,
    pub(super) learned: String,
    pub(super) completed: String,
    pub(super) next_steps: String,
    pub(super) notes: String,
    pub(super) files_read: Vec<String>,
    pub(super) files_edited: Vec<String>,
}

/// Writes the reply. For a completed turn it contains a summary or the reason for omitting it.
pub(super) fn render(
    observations: &[Observation],
    withdrawn: &[String],
    summary: Option<&Summary>,
    is_over: bool,
) -> String {
    let mut out = String::new();
    for observation in observations {
        observation.write(&mut out);
    }
    for title in withdrawn {
        element(&mut out, "corrects", title);
    }
    if observations.is_empty() && summary.is_none() {
        out.push_str("<skip/>\n");
    }
    match summary {
        Some(summary) => summary.write(&mut out),
        None if is_over => line(&mut out, &skipped("nothing was done or learned")),
        None => {}
    }
    out
}

fn skipped(reason: &str) -> String {
    format!("<skip_summary reason=\"{}\"/>", attribute(reason))
}

impl Observation {
    fn write(&self, out: &mut String) {
        line(out, "<observation>");
        element(out, "type", &self.kind);
        element(out, "title", &self.title);
        element(out, "subtitle", &self.subtitle);
        list(out, ("facts", "fact"), &self.facts);
        element(out, "narrative", &self.narrative);
        list(out, ("concepts", "concept"), &self.concepts);
        list(out, ("files_read", "file"), &self.files_read);
        list(out, ("files_modified", "file"), &self.files_modified);
        for title in &self.corrects {
            element(out, "corrects", title);
        }
        line(out, "</observation>");
    }
}

impl Summary {
    fn write(&self, out: &mut String) {
        line(out, "<summary>");
        element(out, "request", &self.request);
        element(out, "investigated", &self.investigated);
        element(out, "learned", &self.learned);
        element(out, "completed", &self.completed);
        element(out, "next_steps", &self.next_steps);
        element(out, "notes", &self.notes);
        list(out, ("files_read", "file"), &self.files_read);
        list(out, ("files_edited", "file"), &self.files_edited);
        line(out, "</summary>");
    }
}

fn element(out: &mut String, name: &str, text: &str) {
    if !text.is_empty() {
        writeln!(out, "<{name}>{}</{name}>", escaped(text))
            .expect("writing to a string cannot fail");
    }
}

fn list(out: &mut String, (name, item): (&str, &str), items: &[String]) {
    if items.is_empty() {
        return;
    }
    line(out, &format!("<{name}>"));
    for text in items {
        element(out, item, text);
    }
    line(out, &format!("</{name}>"));
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}
