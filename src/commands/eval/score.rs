//! The score of a memory: what is remembered of labelled sessions, and what later sessions were
//! given.

use std::collections::{BTreeMap, HashMap};

use claude_mem_core::{app::App, failure::Failure, progress::Progress, time_arg::When};
use claude_mem_projections::search::Kind;
use serde::Serialize;

use super::{
    labels::{Labels, NeededFact, Pattern, Recall},
    sessions::{Row, Sessions},
};

/// A share of a count.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub(super) struct Share {
    hits: usize,
    count: usize,
}

impl Share {
    fn add(&mut self, is_hit: bool) {
        self.count += 1;
        self.hits += usize::from(is_hit);
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.hits, self.count)?;
        match self.count {
            0 => Ok(()),
            count => write!(f, " ({:.0} %)", 100.0 * self.hits as f64 / count as f64),
        }
    }
}

/// Where a wanted memory was found.
#[derive(Debug, Default, Clone, Copy, Serialize)]
struct Places {
    observation: usize,
    /// Only in a summary.
    summary: usize,
    count: usize,
}

impl Places {
    fn add(&mut self, place: Option<Kind>) {
        self.count += 1;
        match place {
            Some(Kind::Observation) => self.observation += 1,
            Some(_) => self.summary += 1,
            None => {}
        }
    }

    fn in_observation(self) -> Share {
        Share { hits: self.observation, count: self.count }
    }

    fn anywhere(self) -> Share {
        Share { hits: self.observation + self.summary, count: self.count }
    }
}

/// Everything that is measured.
#[derive(Debug, Default, Serialize)]
pub(super) struct Score {
    provider: String,
    model: String,
    wanted: Places,
    wanted_by_kind: BTreeMap<String, Places>,
    false_statements: Share,
    user_rules: Share,
    next_session: NextSession,
    silent: Share,
    titles_cut: Share,
    titles_of_files: Share,
    /// Labels of sessions that are not among the transcripts.
    labels_without_session: usize,
    /// What was lost, false or not given, one line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missed: Vec<String>,
}

/// Facts that a session needed: what it was given, would have found, and could have been given.
#[derive(Debug, Default, Serialize)]
struct NextSession {
    page: Share,
    page_and_prompt: Share,
    search_5: Share,
    search_10: Share,
    stored: Share,
    page_chars: usize,
    page_and_prompt_chars: usize,
}

/// Fewer added characters count as silence.
const SILENT_CHARS: usize = 40;

impl Score {
    pub(super) fn of(
        sessions: &Sessions,
        labels: &Labels,
        is_verbose: bool,
    ) -> Result<Self, Failure> {
        let (provider, model) = (sessions.provider.clone(), sessions.model.clone());
        let mut score = Self { provider, model, ..Self::default() };
        let Labels { recall, user_rules, next_session, silent } = labels;
        let total = recall.len() + user_rules.len() + next_session.len() + silent.len();
        let progress = Progress::items("scoring", total);
        for recall in &labels.recall {
            progress.advance(1);
            score.add_recall(recall, &sessions.rows_of_session(&recall.session)?);
        }
        for rule in &labels.user_rules {
            progress.advance(1);
            let place = place(&sessions.rows_of_session(&rule.session)?, &[&rule.pattern]);
            score.user_rules.add(place == Some(Kind::Observation));
            if place != Some(Kind::Observation) {
                score.miss("rule", &rule.session, &rule.rule);
            }
        }
        score.add_next_sessions(sessions, &labels.next_session, &progress)?;
        for prompt in &labels.silent {
            progress.advance(1);
            let Some((project, began)) = score.origin(sessions, &prompt.session)? else { continue };
            let alone = sessions.page(&project, began, None)?.chars().count();
            let both = sessions.page(&project, began, Some(&prompt.prompt))?.chars().count();
            score.silent.add(both < alone + SILENT_CHARS);
            if both >= alone + SILENT_CHARS {
                score.miss("not silent", &prompt.session, &prompt.prompt);
            }
        }
        if !is_verbose {
            score.missed.clear();
        }
        Ok(score)
    }

    fn add_recall(&mut self, recall: &Recall, rows: &[Row]) {
        for wanted in &recall.wanted {
            let patterns: Vec<&Pattern> = wanted.match_all_in_one_row.iter().collect();
            let place = place(rows, &patterns);
            self.wanted.add(place);
            self.wanted_by_kind.entry(wanted.kind.clone()).or_default().add(place);
            if place.is_none() {
                let what = format!("{}: {}", wanted.kind, wanted.text);
                self.miss("lost", &recall.session, &what);
            }
        }
        let observations = || rows.iter().filter(|row| row.kind == Kind::Observation);
        for statement in &recall.false_if_said {
            let matching = observations().find(|row| statement.pattern.matches(&row.text));
            self.false_statements.add(matching.is_some());
            if let Some(row) = matching {
                self.miss("false", &recall.session, &row.title);
            }
        }
        for row in observations() {
            self.titles_cut.add(row.title.trim_end_matches('`').ends_with('…'));
            self.titles_of_files.add(names_only_files(&row.title));
        }
    }

    fn add_next_sessions(
        &mut self,
        sessions: &Sessions,
        facts: &[NeededFact],
        progress: &Progress,
    ) -> Result<(), Failure> {
        let mut given: HashMap<&str, [String; 4]> = HashMap::new();
        let mut rows: HashMap<String, Vec<Row>> = HashMap::new();
        for fact in facts {
            progress.advance(1);
            let Some((project, began)) = self.origin(sessions, &fact.session)? else { continue };
            if !given.contains_key(fact.session.as_str()) {
                let query = fact.query();
                let texts = [
                    sessions.page(&project, began, None)?,
                    sessions.page(&project, began, Some(&query))?,
                    sessions.found(&project, began, &query, 5)?,
                    sessions.found(&project, began, &query, 10)?,
                ];
                given.insert(&fact.session, texts);
            }
            let texts = &given[fact.session.as_str()];
            let hits = texts.each_ref().map(|text| fact.pattern.matches(text));
            let next = &mut self.next_session;
            let shares = [
                &mut next.page,
                &mut next.page_and_prompt,
                &mut next.search_5,
                &mut next.search_10,
            ];
            shares.into_iter().zip(hits).for_each(|(share, is_hit)| share.add(is_hit));
            if !rows.contains_key(&project) {
                rows.insert(project.clone(), sessions.rows_of_project(&project)?);
            }
            let before_us = sessions.microseconds(began);
            let is_stored = |row: &Row| row.at_us < before_us && fact.pattern.matches(&row.text);
            self.next_session.stored.add(rows[&project].iter().any(is_stored));
            if !hits[1] {
                self.miss("not given", &fact.session, &fact.need);
            }
        }
        let mean = |at: usize| {
            let chars = given.values().map(|texts| texts[at].chars().count());
            chars.sum::<usize>() / given.len().max(1)
        };
        self.next_session.page_chars = mean(0);
        self.next_session.page_and_prompt_chars = mean(1);
        Ok(())
    }

    /// The project and the beginning of a session, if it was imported.
    fn origin<'a>(
        &mut self,
        sessions: &'a Sessions,
        session: &str,
    ) -> Result<Option<(String, &'a When)>, Failure> {
        let origin = sessions.project_of(session)?.zip(sessions.began(session));
        self.labels_without_session += usize::from(origin.is_none());
        Ok(origin)
    }

    fn miss(&mut self, what: &str, session: &str, text: &str) {
        let session: String = session.chars().take(8).collect();
        let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        self.missed.push(format!("{what}  {session}  {text}"));
    }

    /// One figure per line, at most 80 columns.
    pub(super) fn print(&self, app: &mut App) -> Result<(), Failure> {
        let next = &self.next_session;
        let mut lines = vec![
            ("wanted: in an observation".into(), self.wanted.in_observation().to_string()),
            ("wanted: at all".into(), self.wanted.anywhere().to_string()),
        ];
        for (kind, Places { observation, summary, count }) in &self.wanted_by_kind {
            let kind: String = kind.chars().take(30).collect();
            lines.push((format!("  {kind}"), format!("{observation} + {summary} of {count}")));
        }
        let shares = [
            ("false statements remembered", self.false_statements),
            ("rules: in an observation", self.user_rules),
            ("next session: page", next.page),
            ("next session: page + prompt", next.page_and_prompt),
            ("next session: search 5", next.search_5),
            ("next session: search 10", next.search_10),
            ("next session: stored", next.stored),
        ];
        lines.extend(shares.map(|(name, share)| (name.into(), share.to_string())));
        lines.push(("  characters of a page".into(), next.page_chars.to_string()));
        lines.push(("  characters with the prompt".into(), next.page_and_prompt_chars.to_string()));
        let shares = [
            ("silent where nothing matters", self.silent),
            ("titles that are cut", self.titles_cut),
            ("titles that only name files", self.titles_of_files),
        ];
        lines.extend(shares.map(|(name, share)| (name.into(), share.to_string())));
        for missed in &self.missed {
            app.output.line(app.output.dim(missed))?;
        }
        for (name, value) in lines {
            app.output.line(format_args!("{name:34} {value}"))?;
        }
        if self.labels_without_session > 0 {
            let count = self.labels_without_session;
            app.output.say(format_args!(
                "note: {count} labels name a session that is not among the transcripts"
            ));
        }
        Ok(())
    }
}

/// The best kind of memory that matches all patterns.
fn place(rows: &[Row], patterns: &[&Pattern]) -> Option<Kind> {
    let matches = |row: &&Row| patterns.iter().all(|pattern| pattern.matches(&row.text));
    let mut kinds = rows.iter().filter(matches).map(|row| row.kind).collect::<Vec<_>>();
    kinds.sort_by_key(|kind| *kind != Kind::Observation);
    kinds.first().copied()
}

/// Whether a title is `Changed a.rs and b.rs` or the like.
fn names_only_files(title: &str) -> bool {
    let Some(rest) = title.strip_prefix("Changed ").or_else(|| title.strip_prefix("Created "))
    else {
        return false;
    };
    let name_end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (name, after) = rest.split_at(name_end);
    let is_last = after.is_empty() || after == "\n";
    // The name may contain a comma, if something is before it.
    let has_comma = name.chars().skip(1).any(|c| c == ',');
    !name.is_empty() && (is_last || has_comma || after.starts_with(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_that_only_name_files_are_counted() {
        for title in ["Changed a.rs", "Created a.rs, b.rs", "Changed a.rs and 3 more"] {
            assert!(names_only_files(title), "{title}");
        }
        for title in ["Changed a.rs to read twice", "Changed", "Changed  x", "Fixed a.rs"] {
            assert!(!names_only_files(title), "{title}");
        }
    }

    #[test]
    fn shares_are_rounded_and_an_empty_one_has_no_percentage() {
        assert_eq!(Share { hits: 250, count: 332 }.to_string(), "250/332 (75 %)");
        assert_eq!(Share::default().to_string(), "0/0");
    }
}
