//! Queries with known answers, made from the user's own memories.

use std::{collections::HashMap, ffi::OsStr};

use claude_mem_projections::{
    FetchedAfter, Store,
    details::{MemoryBody, MemoryDetails, ObservationBody},
    search::{Kind, MemoryId, Order, Search},
};

use super::set::{Document, EvalQuery, QuerySet};
use claude_mem_capture::project::ProjectId;
use claude_mem_core::{app::App, failure::Failure};
use claude_mem_memory::{git::git, resolve::current_project};

/// More queries would only take longer.
const QUERIES_MAX: usize = 500;
const MEMORIES_MAX: usize = 20_000;

/// Four kinds of queries: titles find texts, facts find the other texts, commits find sessions,
/// prompts find what was fetched.
pub(super) fn sets(store: &Store, app: &App) -> Result<Vec<QuerySet>, Failure> {
    let observations = all(store, Kind::Observation, None)?;
    let here = Some(current_project(app).key);
    let worked =
        [all(store, Kind::Observation, here.clone())?, all(store, Kind::Summary, here)?].concat();
    let fetched = store.fetched_after_prompts(MEMORIES_MAX)?;
    Ok(vec![
        titles(&observations),
        facts(&observations),
        commits(&sessions(&worked), &git_log(app)),
        prompts(&observations, &fetched),
    ])
}

fn all(store: &Store, kind: Kind, project: Option<String>) -> Result<Vec<MemoryDetails>, Failure> {
    let search = Search {
        kinds: vec![kind],
        project,
        limit: MEMORIES_MAX,
        order: Order::Newest,
        ..Search::default()
    };
    let names: Vec<MemoryId> =
        store.search(&search)?.hits.into_iter().map(|hit| hit.name).collect();
    Ok(store.details(&names)?)
}

fn titles(memories: &[MemoryDetails]) -> QuerySet {
    let mut set = QuerySet { name: "titles".into(), ..QuerySet::default() };
    for memory in memories {
        let Some(ObservationBody { title: Some(title), .. }) = memory.body.observation() else {
            continue;
        };
        let text = text(&memory.body, true);
        if !text.trim().is_empty() {
            set.add(memory, "", &text, [title.as_str()]);
        }
    }
    set.thin_out()
}

fn facts(memories: &[MemoryDetails]) -> QuerySet {
    let mut set = QuerySet { name: "facts".into(), ..QuerySet::default() };
    for memory in memories {
        let Some(ObservationBody { title: Some(title), facts, .. }) = memory.body.observation()
        else {
            continue;
        };
        set.add(memory, title, &text(&memory.body, false), facts.iter().map(String::as_str));
    }
    set.thin_out()
}

/// A prompt, after which the assistant fetched memories of one project: those are what it needed.
fn prompts(memories: &[MemoryDetails], fetched: &[FetchedAfter]) -> QuerySet {
    let mut set = QuerySet { name: "prompts".into(), ..QuerySet::default() };
    if fetched.is_empty() {
        return set;
    }
    let mut corpora = HashMap::new();
    for memory in memories {
        let Some(body) = memory.body.observation() else { continue };
        corpora.insert(memory.name.id, memory.project.clone());
        set.add(memory, body.title.as_deref().unwrap_or_default(), &text(&memory.body, true), []);
    }
    for FetchedAfter { prompt, observations } in fetched {
        let Some(corpus) = observations.iter().find_map(|id| corpora.get(id)) else { continue };
        let is_there = |id: &&i64| corpora.get(*id) == Some(corpus);
        let gold = observations.iter().filter(is_there).map(i64::to_string).collect();
        set.queries.push(EvalQuery { corpus: corpus.clone(), text: prompt.clone(), gold });
    }
    set.thin_out()
}

impl QuerySet {
    fn add<'a>(
        &mut self,
        memory: &MemoryDetails,
        title: &str,
        text: &str,
        queries: impl IntoIterator<Item = &'a str>,
    ) {
        let id = memory.name.to_string();
        for query in queries {
            let (corpus, text) = (memory.project.clone(), query.into());
            self.queries.push(EvalQuery { corpus, text, gold: vec![id.clone()] });
        }
        self.documents.push(Document {
            corpus: memory.project.clone(),
            id,
            title: title.into(),
            text: text.into(),
            ts: memory.at_us as f64 / 1e6,
        });
    }

    /// Keeps every nth query, so that the sample covers all times.
    fn thin_out(mut self) -> Self {
        let step = self.queries.len().div_ceil(QUERIES_MAX).max(1);
        self.queries = self.queries.into_iter().step_by(step).collect();
        self
    }
}

/// The text of a memory without its title.
fn text(body: &MemoryBody, with_facts: bool) -> String {
    match body {
        MemoryBody::Observation(body) => {
            let facts = body.facts.iter().filter(|_| with_facts);
            let parts = body.subtitle.iter().chain(&body.narrative).chain(facts);
            let parts = parts.chain(&body.files_read).chain(&body.files_modified);
            parts.map(String::as_str).collect::<Vec<_>>().join("\n")
        }
        MemoryBody::Summary(body) => {
            let request = [&body.request, &body.investigated, &body.learned];
            let parts = request.into_iter().chain([&body.completed, &body.next_steps, &body.notes]);
            parts.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join("\n")
        }
        MemoryBody::Prompt { text } => text.clone().unwrap_or_default(),
    }
}

/// A session as one document, with its start and end.
struct Session {
    document: Document,
    began: f64,
    ended: f64,
}

impl Session {
    fn new(id: &str, at: f64) -> Self {
        let (corpus, title, text) = (String::new(), String::new(), String::new());
        Self {
            document: Document { corpus, id: id.into(), title, text, ts: at },
            began: at,
            ended: at,
        }
    }
}

/// A commit follows the work it contains.
const COMMIT_SECONDS_MAX: f64 = 1800.0;

fn sessions(memories: &[MemoryDetails]) -> Vec<Session> {
    let mut sessions: Vec<Session> = Vec::new();
    for memory in memories {
        let Some(id) = &memory.session else { continue };
        let at = memory.at_us as f64 / 1e6;
        let known = sessions.iter().position(|session| session.document.id == *id);
        let known = known.unwrap_or_else(|| {
            sessions.push(Session::new(id, at));
            sessions.len() - 1
        });
        let session = &mut sessions[known];
        session.began = session.began.min(at);
        session.ended = session.ended.max(at);
        if let Some(title) = memory.body.observation().and_then(|body| body.title.as_ref()) {
            session.document.text.push_str(title);
            session.document.text.push('\n');
        }
        session.document.text.push_str(&text(&memory.body, true));
        session.document.text.push('\n');
    }
    sessions
}

fn commits(sessions: &[Session], log: &str) -> QuerySet {
    let mut set = QuerySet { name: "commits".into(), ..QuerySet::default() };
    for line in log.lines() {
        let Some((time, subject)) = line.split_once('\t') else { continue };
        let Ok(time) = time.parse::<f64>() else { continue };
        let within = |session: &&Session| {
            session.began <= time && time <= session.ended + COMMIT_SECONDS_MAX
        };
        let gold: Vec<String> =
            sessions.iter().filter(within).map(|session| session.document.id.clone()).collect();
        if !gold.is_empty() {
            set.queries.push(EvalQuery { corpus: String::new(), text: subject.into(), gold });
        }
    }
    set.documents = sessions.iter().map(|session| session.document.clone()).collect();
    set.thin_out()
}

/// Times and subjects of the commits in this folder; empty without git.
fn git_log(app: &App) -> String {
    let folder = std::env::current_dir().unwrap_or_default();
    let arguments = ["log", "-n", "5000", "--format=%ct%x09%s"].map(OsStr::new);
    git(&app.environment, &ProjectId::of(&folder), &folder, &arguments).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_belong_to_the_sessions_they_were_made_in() {
        let session = |id: &str, began, ended| {
            let text = String::from("text");
            let document = Document {
                corpus: String::new(),
                id: id.into(),
                title: String::new(),
                text,
                ts: began,
            };
            Session { document, began, ended }
        };
        let sessions = [session("a", 100.0, 200.0), session("b", 9000.0, 9100.0)];
        let set = commits(
            &sessions,
            "150\tin a\n1900\tsoon after a\n5000\tin none\n9050\tin b\nnonsense\n",
        );
        let asked: Vec<(&str, &str)> =
            set.queries.iter().map(|query| (query.text.as_str(), query.gold[0].as_str())).collect();
        assert_eq!(asked, [("in a", "a"), ("soon after a", "a"), ("in b", "b")]);
        assert_eq!(set.documents.len(), 2);
    }
}
