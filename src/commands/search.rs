//! `claude-mem search`: find memories.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use claude_mem_projections::search::{
    self as query, Explanation, Hit, InvalidMemoryId, Kind, SearchResults, has_several_clients,
};
use jiff::Timestamp;
use serde::Serialize;

use super::{
    hit_labels::{ago, colour, label, marked},
    memory_rows::{MemoryRow, memory_lines},
    table::GAP,
};
use claude_mem_core::{app::App, failure::Failure, format::count, time_arg::TimeRange};
use claude_mem_memory::{
    memory_json::HitJson,
    resolve,
    search::{ProjectScope, matches, search},
    semantic::Ranking,
    store,
};

/// Find memories by their words and by meaning
///
/// Searches observations, summaries and prompts of all projects. Ranks by matching words, where
/// rare words count more, and by meaning. Natural questions work. `"two words"` is a phrase,
/// `+word` is required, `-word` is excluded, `migr*` matches any word that starts with migr; with
/// any of these, and for a name alone, only words count. A single word that no memory contains
/// matches words that start with it. A text of more than eight words has no operators. Each
/// turn is listed once, by the fullest of its best observations. Without words, lists the newest
/// memories that pass the filters.
#[derive(Debug, Args)]
pub(crate) struct Search {
    /// Words to look for
    #[arg(value_name = "QUERY")]
    query: Vec<String>,
    #[command(flatten)]
    filters: Filters,
    /// Maximum number of results
    #[arg(long, short = 'n', value_name = "N", default_value_t = 40)]
    limit: usize,
    /// Skip this many results
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: usize,
    /// Order of results
    #[arg(long, value_enum, default_value_t = Order::Relevance)]
    order: Order,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    /// Show how the query was parsed and how scores are computed
    #[arg(long)]
    explain: bool,
}

#[derive(Debug, Args)]
struct Filters {
    /// Only this project: its name or key
    #[arg(long)]
    project: Option<String>,
    /// Only the project of this folder
    #[arg(long, conflicts_with_all = ["project", "all_projects"])]
    here: bool,
    /// All projects, which is the default
    #[arg(long, conflicts_with = "project")]
    all_projects: bool,
    /// Only observations of this type, such as `bugfix`; can be repeated
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Only observations with this concept; can be repeated
    #[arg(long = "concept", value_name = "CONCEPT")]
    concepts: Vec<String>,
    /// Only memories about this file or folder; the end of the path is enough; can be repeated
    #[arg(long = "file", value_name = "PATH")]
    files: Vec<String>,
    #[command(flatten)]
    between: TimeRange,
    /// Only this session; a prefix of its ID is enough
    #[arg(long)]
    session: Option<String>,
    /// Only sessions of this client, such as `codex`
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
    /// Only observations, summaries or prompts; can be repeated
    #[arg(long = "kind", value_name = "KIND", value_parser = kind)]
    kinds: Vec<Kind>,
}

fn kind(text: &str) -> Result<Kind, String> {
    text.parse()
        .map_err(|_: InvalidMemoryId| "expected `observation`, `summary` or `prompt`".into())
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Order {
    /// Best matches first
    Relevance,
    /// Best matches, newest first
    Newest,
    /// Best matches, oldest first
    Oldest,
}

impl Search {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let store = store::read_folded(app)?;
        let (is_json, is_explained) = (self.json, self.explain);
        resolve::check_filter(&store, self.filters.project.as_deref())?;
        let scope = match self.filters.here {
            true => ProjectScope::Current,
            false => ProjectScope::Requested,
        };
        let response = search(app, &store, scope, &self.into_request(app.clock.now()))?;
        let found = response.results;
        let ranking = response.ranking;
        let hint = found.hint.clone();
        let is_by_meaning_alone = found.matched == 0 && found.near > 0;
        let is_empty = found.hits.is_empty();
        match is_json {
            true => print_json(app, found)?,
            false => print(app, &found, is_explained)?,
        }
        if is_empty {
            app.output.say("no memory matches");
        }
        if is_by_meaning_alone && !is_json {
            app.output.say("note: no memory contains these words; these are near by meaning");
        }
        if let Some(hint) = hint {
            app.output.say(format_args!("hint: {hint}"));
        }
        // Without memories there is nothing to prepare.
        let lacks_vectors = is_empty && store.first_observation_us()?.is_some();
        match ranking {
            Ranking::WordsWithoutVectors if lacks_vectors => app.output.say(
                "note: searched by words alone; `claude-mem index` prepares the search by meaning",
            ),
            Ranking::WordsWithoutEndpoint => app.output.say(
                "note: searched by words alone, because the embedding endpoint failed; \
                 `claude-mem doctor` says why",
            ),
            _ => {}
        }
        Ok(())
    }

    fn into_request(self, now: Timestamp) -> query::Search {
        let filters = self.filters;
        query::Search {
            query: self.query.join(" "),
            is_typing: false,
            project: filters.project,
            kinds: filters.kinds,
            types: filters.types,
            concepts: filters.concepts,
            files: filters.files,
            since_us: filters.between.since.map(|when| when.start_us(now)),
            until_us: filters.between.until.map(|when| when.end_us(now)),
            session: filters.session,
            host: None,
            client: filters.client,
            limit: self.limit,
            offset: self.offset,
            order: match self.order {
                Order::Relevance => query::Order::Relevance,
                Order::Newest => query::Order::Newest,
                Order::Oldest => query::Order::Oldest,
            },
            is_explained: self.explain,
        }
    }
}

/// One object per hit. With `--explain`, the parsed query comes first.
fn print_json(app: &mut App, found: SearchResults) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Explained<'a> {
        dropped: &'a [String],
        explanation: &'a [Explanation],
    }
    if !found.explanation.is_empty() {
        let (dropped, explanation) = (&found.query.dropped, &found.explanation);
        app.output.json(&Explained { dropped, explanation })?;
    }
    found.hits.into_iter().try_for_each(|hit| app.output.json(&HitJson::from(hit)))
}

fn print(app: &mut App, found: &SearchResults, is_explained: bool) -> Result<(), Failure> {
    for explanation in &found.explanation {
        print_explanation(app, explanation)?;
    }
    let now = app.clock.now();
    let has_clients = has_several_clients(&found.hits);
    let rows: Vec<MemoryRow> = found.hits.iter().map(|hit| row(hit, now, has_clients)).collect();
    let output = &app.output;
    let mark = |_: &MemoryRow, text: &str| marked(&found.query, text, output);
    let lines = memory_lines(output, output.columns(), &rows, mark);
    let indent = rows.iter().map(|row| row.id.len()).max().unwrap_or(0) + GAP;
    for (hit, lines) in found.hits.iter().zip(lines) {
        lines.into_iter().try_for_each(|line| app.output.line(line))?;
        if let Some(score) = hit.explanation.as_ref().filter(|_| is_explained) {
            let mut line = format!("{:indent$}score {:.2} = ", "", hit.score);
            if let Some(coverage) = score.coverage {
                let cosine = score.cosine.map(|cosine| format!("{cosine:.3}"));
                let cosine = cosine.unwrap_or_else(|| "not embedded yet".into());
                let _ = write!(line, "cosine {cosine}, coverage {coverage:.2}, words ");
            }
            let _ =
                write!(line, "bm25 {:.2}, {:.0} % of the words", score.bm25, score.share * 100.0);
            if hit.score < score.total {
                let _ = write!(line, "; × {:.2}: only its prompt matches", hit.score / score.total);
            }
            app.output.line(app.output.dim(&line))?;
        }
    }
    if !found.hits.is_empty() && found.has_more {
        let (shown, matches) = (count(found.hits.len(), "hit"), matches(found));
        app.output.say(format_args!("{shown} of {matches}; see more with `--limit` or `--offset`"));
    }
    Ok(())
}

fn print_explanation(app: &mut App, explanation: &Explanation) -> Result<(), Failure> {
    let kind = explanation.kind.name();
    app.output
        .line(format_args!("{kind}: {} match {}", explanation.matched, explanation.expression))?;
    for weighed in &explanation.terms {
        let (text, rows, worth) = (&weighed.term.text, weighed.rows, weighed.worth);
        app.output.line(app.output.dim(&format!("  {text}: in {rows:.0}, worth {worth:.2}")))?;
    }
    Ok(())
}

/// The project, and the host if it is not this one.
fn place(hit: &Hit) -> String {
    let host = hit.host.as_ref().map(|host| format!("@{host}")).unwrap_or_default();
    format!("{}{host}", hit.project)
}

fn row(hit: &Hit, now: Timestamp, has_clients: bool) -> MemoryRow {
    MemoryRow {
        id: hit.name.to_string(),
        time: ago(hit.at_us, now),
        project: place(hit),
        client: hit.client.clone().filter(|_| has_clients).unwrap_or_default(),
        label: label(hit).to_owned(),
        colour: colour(hit),
        title: hit.marked_title(),
        snippet: hit.snippet.clone(),
    }
}
