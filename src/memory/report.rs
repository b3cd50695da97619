//! Requests, results, failures, open work, commits and costs of a time range, without a model.
//!
//! Every number is a count or a sum over events of the log; nothing is estimated.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use claude_mem_core::{
    app::App,
    failure::Failure,
    time_arg::{local, rfc3339},
};
use claude_mem_events::{Event, Recorded};
use claude_mem_projections::{
    EventFilter, Store,
    report::{ReportPlace, ReportRows, ReportSession, ReportToolUse},
};
use serde::Serialize;

use crate::{
    shell_commits::{Commit, commits, first_error, shell_command},
    store,
};

/// How a report is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    Project,
    /// The branch of a session is the one at its last event.
    Branch,
    /// In the user's time zone.
    Day,
}

#[derive(Debug, Serialize)]
pub struct Report {
    pub total: Totals,
    pub groups: Vec<Group>,
}

/// One project, branch or day.
#[derive(Debug, Default, Serialize)]
pub struct Group {
    /// For people: `shop`, `shop, branch main`, `2026-03-01`.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    pub total: Totals,
    /// One entry per session, newest first, like all lists.
    pub asked: Vec<SessionPrompts>,
    pub done: Vec<Statement>,
    pub failed: Vec<FailedCommand>,
    /// The next steps at the end of each session.
    pub open: Vec<Statement>,
    pub commits: Vec<CommitMade>,
}

/// The numbers of a group.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize)]
pub struct Totals {
    /// Sessions with a prompt or a tool use.
    pub sessions: usize,
    pub prompts: usize,
    pub tool_uses: usize,
    /// Excluding those that the user interrupted.
    pub failed_tool_uses: usize,
    /// Number of distinct files.
    pub files_edited: usize,
    pub commits: usize,
    /// Input and output tokens of requests to the provider.
    pub tokens: u64,
    pub cost_usd: f64,
}

#[derive(Debug, Serialize)]
pub struct SessionPrompts {
    pub session: String,
    /// The first prompt.
    pub id: String,
    pub created_at: String,
    pub at_us: u64,
    pub text: String,
    pub more_prompts: usize,
}

/// A part of a summary.
#[derive(Debug, Serialize)]
pub struct Statement {
    /// The summary.
    pub id: String,
    pub created_at: String,
    pub at_us: u64,
    pub text: String,
}

/// A shell command that failed.
#[derive(Debug, Serialize)]
pub struct FailedCommand {
    pub command: String,
    /// The first line of the last error.
    pub error: String,
    /// Number of failures.
    pub count: usize,
    /// The last failure.
    pub created_at: String,
    pub at_us: u64,
    /// Whether the same command passed after that.
    pub has_passed_since: bool,
}

/// A commit that was made in a session.
#[derive(Debug, Serialize)]
pub struct CommitMade {
    /// The hash, as git printed it. Empty after a quiet commit in an imported transcript.
    pub id: String,
    pub branch: String,
    /// Empty if git did not print it.
    pub subject: String,
    pub created_at: String,
    pub at_us: u64,
}

impl Group {
    fn is_empty(&self) -> bool {
        self.total == Totals::default() && self.done.is_empty() && self.open.is_empty()
    }
}

/// A group under construction.
#[derive(Default)]
struct GroupDraft {
    group: Group,
    sessions: BTreeSet<i64>,
    files: BTreeSet<(i64, String)>,
    /// Position in `asked`, by session.
    asked: HashMap<Option<i64>, usize>,
    /// Position in `failed`, by project and command.
    failed: HashMap<(i64, String), usize>,
    cost_micros: u64,
}

/// Collects the rows of a range into groups.
pub fn report(
    app: &App,
    store: &Store,
    filter: &EventFilter,
    by: GroupBy,
) -> Result<Report, Failure> {
    let rows = store.report_rows(filter)?;
    let groups = Groups::new(&rows, by);
    let mut drafts: BTreeMap<String, GroupDraft> = BTreeMap::new();
    let mut whole = GroupDraft::default();
    for prompt in &rows.prompts {
        for draft in [groups.of(&mut drafts, prompt.place), &mut whole] {
            draft.group.total.prompts += 1;
            draft.sessions.extend(prompt.place.session);
        }
        let session = groups.session(prompt.place);
        let asked = SessionPrompts {
            session: session.map(|session| session.session.clone()).unwrap_or_default(),
            id: prompt.name.to_string(),
            created_at: rfc3339(prompt.place.at_us),
            at_us: prompt.place.at_us,
            text: prompt.text.clone(),
            more_prompts: 0,
        };
        groups.of(&mut drafts, prompt.place).ask(prompt.place.session, asked);
    }
    for used in &rows.tool_uses {
        for draft in [groups.of(&mut drafts, used.place), &mut whole] {
            draft.group.total.tool_uses += 1;
            draft.group.total.failed_tool_uses += usize::from(used.has_failed);
            draft.sessions.extend(used.place.session);
            let files = used.files_written.iter();
            draft.files.extend(files.map(|file| (used.place.project, file.clone())));
        }
    }
    for spent in &rows.spending {
        for draft in [groups.of(&mut drafts, spent.place), &mut whole] {
            draft.group.total.tokens += spent.tokens;
            draft.cost_micros += spent.cost_micros;
        }
    }
    add_summaries(&rows, &groups, &mut drafts);
    add_commands(app, &rows, &groups, &mut drafts, &mut whole)?;
    let groups = drafts.into_values().map(GroupDraft::finish);
    // Distilling older sessions without a model leaves nothing to report.
    let groups = groups.filter(|group| !group.is_empty()).collect();
    Ok(Report { total: whole.finish().total, groups })
}

/// Adds completed work without duplicates, and the open work at the end of each session.
fn add_summaries(
    rows: &ReportRows,
    groups: &Groups<'_>,
    drafts: &mut BTreeMap<String, GroupDraft>,
) {
    let mut seen = HashSet::new();
    let mut last: HashMap<i64, usize> = HashMap::new();
    for (at, summary) in rows.summaries.iter().enumerate() {
        last.extend(summary.place.session.map(|session| (session, at)));
    }
    for (at, summary) in rows.summaries.iter().enumerate() {
        let place = summary.place;
        let statement = |text: &str| Statement {
            id: summary.name.to_string(),
            created_at: rfc3339(place.at_us),
            at_us: place.at_us,
            text: text.to_owned(),
        };
        let draft = groups.of(drafts, place);
        if let Some(text) = &summary.completed
            && seen.insert((place.project, text))
        {
            draft.group.done.push(statement(text));
        }
        let is_last = place.session.is_none_or(|session| last.get(&session) == Some(&at));
        if let Some(text) = summary.next_steps.as_ref().filter(|_| is_last) {
            draft.group.open.push(statement(text));
        }
    }
}

/// Adds failed commands and commits, which only the log contains in full.
fn add_commands(
    app: &App,
    rows: &ReportRows,
    groups: &Groups<'_>,
    drafts: &mut BTreeMap<String, GroupDraft>,
    whole: &mut GroupDraft,
) -> Result<(), Failure> {
    let log = store::open_log(app)?;
    let mut heads: HashMap<i64, String> = HashMap::new();
    let mut seen = HashSet::new();
    for used in rows.tool_uses.iter().filter(|used| used.tool == "Bash") {
        // Only the row of an erased event is left.
        let Some(recorded) = store::event_at(&log, used.seq)? else { continue };
        let Recorded { envelope, event: Event::ToolUsed(body), .. } = &recorded else { continue };
        let Some(command) = shell_command(&body.input) else { continue };
        let draft = groups.of(drafts, used.place);
        draft.run(used, &command, || first_error(&body.error));
        let session = groups.session(used.place);
        let head = heads.entry(used.place.session.unwrap_or_default()).or_insert_with(|| {
            session.map(|session| session.first_commit.clone()).unwrap_or_default()
        });
        for commit in commits(&command, body, envelope, head) {
            let id = if commit.id.is_empty() { &commit.subject } else { &commit.id };
            if id.is_empty() || seen.insert((used.place.project, id.clone())) {
                draft.group.total.commits += 1;
                whole.group.total.commits += 1;
                draft.group.commits.push(commit_made(used.place, commit));
            }
        }
        if !envelope.commit.is_empty() {
            head.clone_from(&envelope.commit);
        }
    }
    Ok(())
}

fn commit_made(place: ReportPlace, commit: Commit) -> CommitMade {
    let Commit { id, branch, subject } = commit;
    CommitMade { id, branch, subject, created_at: rfc3339(place.at_us), at_us: place.at_us }
}

impl GroupDraft {
    fn ask(&mut self, session: Option<i64>, asked: SessionPrompts) {
        let list = &mut self.group.asked;
        if let Some(at) = self.asked.get(&session) {
            list[*at].more_prompts += 1;
        } else {
            self.asked.insert(session, list.len());
            list.push(asked);
        }
    }

    /// Records that a command ran.
    fn run(&mut self, used: &ReportToolUse, command: &str, error: impl FnOnce() -> String) {
        let key = (used.place.project, command.to_owned());
        let list = &mut self.group.failed;
        let at_us = used.place.at_us;
        match self.failed.get(&key) {
            Some(at) if used.has_failed => {
                let failed = &mut list[*at];
                (failed.error, failed.count) = (error(), failed.count + 1);
                (failed.created_at, failed.at_us) = (rfc3339(at_us), at_us);
                failed.has_passed_since = false;
            }
            Some(at) => list[*at].has_passed_since = true,
            None if used.has_failed => {
                self.failed.insert(key, list.len());
                list.push(FailedCommand {
                    command: command.to_owned(),
                    error: error(),
                    count: 1,
                    created_at: rfc3339(at_us),
                    at_us,
                    has_passed_since: false,
                });
            }
            None => {}
        }
    }

    fn finish(self) -> Group {
        let Self { mut group, sessions, files, cost_micros, .. } = self;
        group.total.sessions = sessions.len();
        group.total.files_edited = files.len();
        group.total.cost_usd = cost_micros as f64 / 1e6;
        group.asked.reverse();
        group.done.reverse();
        group.open.reverse();
        group.commits.reverse();
        // Those that still fail come first.
        group.failed.sort_by_key(|failed| (failed.has_passed_since, u64::MAX - failed.at_us));
        group
    }
}

/// Finds the group of a row.
struct Groups<'a> {
    by: GroupBy,
    sessions: HashMap<i64, &'a ReportSession>,
    projects: HashMap<i64, (&'a str, &'a str)>,
}

impl<'a> Groups<'a> {
    fn new(rows: &'a ReportRows, by: GroupBy) -> Self {
        let sessions = rows.sessions.iter().map(|session| (session.id, session)).collect();
        let projects = rows.projects.iter();
        let projects = projects.map(|(id, key, label)| (*id, (&key[..], &label[..]))).collect();
        Self { by, sessions, projects }
    }

    fn session(&self, place: ReportPlace) -> Option<&'a ReportSession> {
        self.sessions.get(&place.session?).copied()
    }

    fn of<'d>(
        &self,
        drafts: &'d mut BTreeMap<String, GroupDraft>,
        place: ReportPlace,
    ) -> &'d mut GroupDraft {
        let (key, label) = self.projects.get(&place.project).copied().unwrap_or_default();
        let branch = self.session(place).map_or("", |session| session.branch.as_str());
        let mut group = Group { name: label.to_owned(), ..Group::default() };
        let sorted = match self.by {
            GroupBy::Project => {
                group.project = Some(label.to_owned());
                format!("{label}\0{key}")
            }
            GroupBy::Branch => {
                group.project = Some(label.to_owned());
                group.branch = (!branch.is_empty()).then(|| branch.to_owned());
                group.name.push_str(if branch.is_empty() { ", no branch" } else { ", branch " });
                group.name.push_str(branch);
                format!("{label}\0{key}\0{branch}")
            }
            GroupBy::Day => {
                group.name = local(place.at_us, "%Y-%m-%d");
                group.day = Some(group.name.clone());
                group.name.clone()
            }
        };
        drafts.entry(sorted).or_insert_with(|| GroupDraft { group, ..GroupDraft::default() })
    }
}
