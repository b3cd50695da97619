//! Sessions in a temporary memory: imported, distilled, and queried as of an earlier time.

use std::{
    collections::HashMap,
    env, fs,
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
    time::Duration,
};

use claude_mem_events::{EventLog, Id};
use claude_mem_log::Options;
use claude_mem_projections::{
    Store,
    search::{Kind, MemoryId, Search},
};
use jiff::{SignedDuration, civil::DateTime, tz::TimeZone};
use regex::Regex;
use serde_json::Value;

use crate::commands::index::embed;
use claude_mem_capture::{clients::claude_code::CONTEXT_MAX, redaction};
use claude_mem_core::{
    app::App,
    failure::Failure,
    format::count,
    paths::{Paths, create_private},
    safe_text::clean,
    settings::ProviderName,
    time_arg::When,
};
use claude_mem_distill::{self, RunOptions, prompts::adopt};
use claude_mem_import::{self, From, Scope, Sink, transcript_files};
use claude_mem_memory::{
    context::{ContextMoment, Recipient, Request, compose, for_prompt, rank_by_meaning},
    memory_json::DetailsJson,
    resolve,
    search::{ProjectScope, search},
    semantic::Depth,
    store,
};

/// As long as `claude-mem distill` waits for a provider that does not respond.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// A memory in a temporary directory, which is deleted on drop.
pub(super) struct Sessions {
    app: App,
    store: Store,
    began: HashMap<String, When>,
    _dir: TemporaryDir,
    /// The provider and model that distilled.
    pub(super) provider: String,
    pub(super) model: String,
}

/// The provider and the instructions.
#[derive(Debug)]
pub(super) struct DistillOptions<'a> {
    pub(super) provider: ProviderName,
    pub(super) model: Option<&'a str>,
    pub(super) prompt: Option<&'a Path>,
}

/// A memory of a session.
pub(super) struct Row {
    pub(super) kind: Kind,
    pub(super) at_us: u64,
    pub(super) title: String,
    /// Every text in it.
    pub(super) text: String,
}

impl Sessions {
    /// Imports and distills the transcripts below a folder. Reads the user's settings, prompts and
    /// modes, and nothing else from the user's data directory.
    pub(super) fn load(
        user: &mut App,
        transcripts: &Path,
        options: &DistillOptions<'_>,
    ) -> Result<Self, Failure> {
        let began = beginnings(transcripts).map_err(|error| {
            Failure::new(format!("{} cannot be read: {error}", transcripts.display()))
        })?;
        if began.is_empty() {
            return Err(Failure::new(format!("no transcripts in {}", transcripts.display()))
                .meaning(
                    "sessions of Claude Code are files that end in `.jsonl`; archives are not read",
                )
                .remedy("name the folder that holds them, such as `~/.claude/projects`"));
        }
        let dir = TemporaryDir::new()?;
        dir.copy_settings(&user.paths, options)?;
        let paths = Paths { home: user.paths.home.clone(), data: dir.0.clone() };
        let mut app = App::new(user.environment.clone(), paths);
        let events = import(&mut app, transcripts)?;
        user.output.say(format_args!(
            "{} of {} imported; distilling",
            count(events, "event"),
            count(began.len(), "session")
        ));
        let run_options = RunOptions {
            provider: Some(options.provider),
            model: options.model.map(str::to_owned),
            wait_max: WAIT_MAX,
            ..RunOptions::default()
        };
        let distilled = claude_mem_distill::distill(&mut app, &run_options)?;
        if let Some(stopped) = &distilled.report.stopped {
            return Err(Failure::new(format!(
                "{} is unavailable: {}",
                distilled.provider,
                stopped.message()
            ))
            .meaning("the sessions were not distilled completely, so nothing was measured"));
        }
        if distilled.report.parked > 0 {
            let parked = count(distilled.report.parked, "request");
            user.output
                .say(format_args!("warning: {parked} failed; their events are not distilled"));
        }
        let (store, _) = store::open_whole(&mut app)?;
        embed(&app, &store, Depth::Rows, Duration::MAX)?;
        let (provider, model) = (distilled.provider, distilled.model);
        Ok(Self { app, store, began, _dir: dir, provider, model })
    }

    pub(super) fn began(&self, session: &str) -> Option<&When> {
        self.began.get(session)
    }

    /// A time in microseconds since 1970.
    pub(super) fn microseconds(&self, when: &When) -> u64 {
        when.end_us(self.app.clock.now())
    }

    /// The label of a session's project.
    pub(super) fn project_of(&self, session: &str) -> Result<Option<String>, Failure> {
        let request = Search { session: Some(session.into()), limit: 1, ..Search::default() };
        let found = search(&self.app, &self.store, ProjectScope::Requested, &request)?.results;
        Ok(found.hits.into_iter().next().map(|hit| hit.project))
    }

    /// Observations and summaries of a session.
    pub(super) fn rows_of_session(&self, session: &str) -> Result<Vec<Row>, Failure> {
        self.rows(&Search { session: Some(session.into()), ..distilled_rows(1000) })
    }

    /// Observations and summaries of a project.
    pub(super) fn rows_of_project(&self, project: &str) -> Result<Vec<Row>, Failure> {
        self.rows(&Search { project: Some(project.into()), ..distilled_rows(1_000_000) })
    }

    /// The text of everything that a search finds at that time.
    pub(super) fn found(
        &self,
        project: &str,
        until: &When,
        query: &str,
        limit: usize,
    ) -> Result<String, Failure> {
        let rows = self.rows(&Search {
            query: query.into(),
            project: Some(project.into()),
            until_us: Some(self.microseconds(until)),
            limit,
            ..Search::default()
        })?;
        Ok(rows.into_iter().map(|row| row.text).collect::<Vec<_>>().join("\n"))
    }

    fn rows(&self, request: &Search) -> Result<Vec<Row>, Failure> {
        let found = search(&self.app, &self.store, ProjectScope::Requested, request)?.results;
        let names: Vec<MemoryId> = found.hits.iter().map(|hit| hit.name).collect();
        let mut rows = Vec::new();
        for details in self.store.details(&names)? {
            let (kind, at_us) = (details.kind, details.at_us);
            let json = serde_json::to_value(DetailsJson::from(&details)).unwrap_or_default();
            let title = [&json["title"], &json["request"]].into_iter().find_map(Value::as_str);
            let title = title.unwrap_or_default().to_owned();
            let members = json.as_object().into_iter().flatten();
            let texts = members.filter(|(key, _)| *key != "provenance");
            let text = texts.map(|(_, value)| text_of(value)).collect::<Vec<_>>().join("\n");
            rows.push(Row { kind, at_us, title, text });
        }
        Ok(rows)
    }

    /// What `context --as-of` prints, with the memories of a first prompt if one is given.
    pub(super) fn page(
        &self,
        project: &str,
        as_of: &When,
        prompt: Option<&str>,
    ) -> Result<String, Failure> {
        let (store, settings) = (&self.store, &self.app.settings);
        let project = resolve::project(&self.app, store, Some(project))?;
        let now = as_of.end(self.app.clock.now());
        let moment = ContextMoment::Start;
        let request = Request {
            project: &project,
            now,
            moment,
            client: None,
            reads_auto_memory: true,
            budget: None,
            size_max: CONTEXT_MAX,
        };
        let page = compose(store, settings, &request)?;
        let given = || store.observation_refs(page.as_ref().map_or(&[], |page| &page.given));
        let root = project.root.to_string_lossy();
        let recipient = Recipient {
            project: &project.key,
            root: &root,
            session: "",
            now,
            size_max: CONTEXT_MAX,
            given: &given,
        };
        let with_prompt = match prompt {
            None => None,
            Some(prompt) => for_prompt(store, settings, &recipient, prompt, |recall| {
                rank_by_meaning(&self.app, store, recall)
            })?,
        };
        let texts = [page.map(|page| page.text), with_prompt.map(|context| context.text)];
        let texts: Vec<String> = texts.into_iter().flatten().collect();
        Ok(match texts.is_empty() {
            true => String::new(),
            false => clean(&texts.join("\n\n")).into_owned() + "\n",
        })
    }
}

fn distilled_rows(limit: usize) -> Search {
    Search { kinds: vec![Kind::Observation, Kind::Summary], limit, ..Search::default() }
}

/// Every scalar on a separate line.
fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(text_of).collect::<Vec<_>>().join("\n"),
        Value::Object(members) => members.values().map(text_of).collect::<Vec<_>>().join("\n"),
        scalar => scalar.to_string(),
    }
}

fn import(app: &mut App, transcripts: &Path) -> Result<u64, Failure> {
    let (store, _) = store::open_whole(app)?;
    let log = EventLog::open(&app.paths.log(), Options::default())?;
    let policy = redaction::policy(&app.settings);
    let mut sink = Sink::new(&store, log, Scope::default(), policy);
    claude_mem_import::import(app, &mut sink, From::Transcripts, transcripts)?;
    for damage in &sink.report.damage {
        app.output.say(format_args!("warning: {damage}"));
    }
    Ok(sink.report.added_total())
}

/// The beginning of a session is in the first rows of its transcript.
const ROWS_MAX: usize = 40;
const ROWS_BYTES_MAX: u64 = 64 << 20;

/// A second before each session began, by the name of its transcript.
fn beginnings(transcripts: &Path) -> io::Result<HashMap<String, When>> {
    let timestamp = Regex::new(r#""timestamp":\s*"([^"]+)""#).map_err(io::Error::other)?;
    let mut began = HashMap::new();
    for path in transcript_files(transcripts)? {
        let Some(session) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        let mut rows = BufReader::new(File::open(&path)?.take(ROWS_BYTES_MAX));
        let mut text = Vec::new();
        for _ in 0..ROWS_MAX {
            rows.read_until(b'\n', &mut text)?;
        }
        let text = String::from_utf8_lossy(&text);
        let first = timestamp
            .captures_iter(&text)
            .filter_map(|found| found.get(1))
            .min_by_key(regex::Match::as_str);
        let second = first.and_then(|first| first.as_str().get(..19)?.parse::<DateTime>().ok());
        let moment = second.and_then(|second| second.to_zoned(TimeZone::UTC).ok());
        let moment = moment.map(|moment| moment.timestamp() - SignedDuration::from_secs(1));
        if let Some(when) = moment.and_then(|moment| moment.to_string().parse().ok()) {
            began.insert(session.to_owned(), when);
        }
    }
    Ok(began)
}

/// A directory that only this user can read.
struct TemporaryDir(PathBuf);

impl TemporaryDir {
    fn new() -> Result<Self, Failure> {
        let dir = env::temp_dir().join(format!("claude-mem-eval-{}", Id::random(0)));
        create_private(&dir).map_err(|error| Failure::no_directory(&dir, &error))?;
        Ok(Self(dir))
    }

    /// Copies what distilling depends on. Keys are copied only for a model.
    fn copy_settings(&self, from: &Paths, options: &DistillOptions<'_>) -> Result<(), Failure> {
        let to = Paths { home: None, data: self.0.clone() };
        let mut copies = vec![(from.settings(), to.settings())];
        if options.provider != ProviderName::Extract {
            copies.push((from.credentials(), to.credentials()));
        }
        for folder in ["prompts", "modes"] {
            let files = fs::read_dir(from.data.join(folder)).into_iter().flatten().flatten();
            copies.extend(
                files.map(|file| (file.path(), to.data.join(folder).join(file.file_name()))),
            );
        }
        for folder in ["prompts", "modes"] {
            create_private(&to.data.join(folder))
                .map_err(|error| Failure::no_directory(&to.data, &error))?;
        }
        for (from, to) in copies {
            match fs::copy(&from, &to) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Failure::new(format!(
                        "{} cannot be read: {error}",
                        from.display()
                    )));
                }
                _ => {}
            }
        }
        let Some(prompt) = options.prompt else { return Ok(()) };
        let adopted = fs::read_to_string(prompt).and_then(|text| adopt(&to.data, Some(&text)));
        adopted
            .map_err(|error| Failure::new(format!("{} cannot be read: {error}", prompt.display())))
    }
}

impl Drop for TemporaryDir {
    fn drop(&mut self) {
        // If this fails, the system cleans its temporary directory sooner or later.
        let _ = fs::remove_dir_all(&self.0);
    }
}
