//! `claude-mem eval`: measure search quality, and what is remembered of labelled sessions.

mod labels;
mod measure;
mod own_sets;
mod score;
mod sessions;
mod set;

use std::path::{Path, PathBuf};

use clap::Args;
use labels::Labels;
use measure::{Figures, measure};
use score::Score;
use sessions::{DistillOptions, Sessions};
use set::QuerySet;

use super::table::{Column, Table};
use claude_mem_core::{app::App, failure::Failure, settings::ProviderName};
use claude_mem_memory::store;

/// Measure search quality, and memory of labelled sessions
///
/// On your own memories: searches observations by their hidden titles and facts, by the prompts
/// after which Claude fetched them, and sessions by the subjects of their commits. Or on a
/// benchmark of yours, whose documents become observations in a temporary database. Recall is the
/// share of relevant documents among the first 5 or 10; MRR rates the rank of the first one, nDCG
/// the ranks of all.
///
/// With `--sessions` and `--labels`: imports transcripts into a temporary data directory, distills
/// them, and counts the labelled things that are remembered, found, and given to later sessions.
/// See docs/evaluation.md.
#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// Documents: lines of `{"corpus","id","title","text","ts"}`, plain or gzip
    #[arg(long, value_name = "FILE", requires = "queries")]
    docs: Option<PathBuf>,
    /// Queries: lines of `{"corpus","id","text","gold":[ids of documents]}`, plain or gzip
    #[arg(long, value_name = "FILE", requires = "docs")]
    queries: Option<PathBuf>,
    /// Rank by meaning, too: embed the documents, and keep their vectors in this folder for the
    /// next run
    #[arg(long, value_name = "DIR", conflicts_with = "sessions")]
    vectors: Option<PathBuf>,
    /// A folder with transcripts of Claude Code
    #[arg(long, value_name = "DIR", requires = "labels", conflicts_with = "docs")]
    sessions: Option<PathBuf>,
    /// What should be remembered of these sessions, as JSON
    #[arg(long, value_name = "FILE", requires = "sessions")]
    labels: Option<PathBuf>,
    /// Distill the sessions with this provider
    #[arg(long, value_enum, requires = "sessions", default_value_t = ProviderName::Extract)]
    provider: ProviderName,
    /// Distill the sessions with this model
    #[arg(long, requires = "sessions")]
    model: Option<String>,
    /// Distill the sessions with the instructions in this file
    #[arg(long, value_name = "FILE", requires = "sessions")]
    prompt: Option<PathBuf>,
    /// List what was lost, false or not given
    #[arg(long, requires = "sessions")]
    verbose: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

impl Eval {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        if let (Some(sessions), Some(labels)) = (&self.sessions, &self.labels) {
            return self.score(app, sessions, labels);
        }
        let sets = match (&self.docs, &self.queries) {
            (Some(docs), Some(queries)) => vec![QuerySet::read(docs, queries)?],
            _ => own_sets::sets(&store::read_folded(app)?, app)?,
        };
        let mut figures = Vec::new();
        for set in sets.iter().filter(|set| !set.queries.is_empty()) {
            figures.push(measure(app, set, self.vectors.as_deref())?);
        }
        if figures.is_empty() {
            return Err(Failure::new("there is nothing to measure yet")
                .remedy("record some sessions first, or pass `--docs` and `--queries`"));
        }
        match self.json {
            true => figures.iter().try_for_each(|figures| app.output.json(figures)),
            false => print(app, &figures),
        }
    }

    fn score(&self, app: &mut App, sessions: &Path, labels: &Path) -> Result<(), Failure> {
        let labels = Labels::read(labels)?;
        let options = DistillOptions {
            provider: self.provider,
            model: self.model.as_deref(),
            prompt: self.prompt.as_deref(),
        };
        let sessions = Sessions::load(app, sessions, &options)?;
        let score = Score::of(&sessions, &labels, self.verbose)?;
        match self.json {
            true => app.output.json(&score),
            false => score.print(app),
        }
    }
}

fn print(app: &mut App, figures: &[Figures]) -> Result<(), Failure> {
    let titles =
        ["docs", "queries", "recall@5", "recall@10", "MRR@10", "nDCG@10", "p50 ms", "p95 ms"];
    let columns = [Column::text("set")].into_iter().chain(titles.map(Column::number));
    let mut table = Table::new(columns.collect::<Vec<_>>());
    for figures in figures {
        table.row([
            figures.set.clone(),
            figures.documents.to_string(),
            figures.queries.to_string(),
            format!("{:.3}", figures.recall_at_5),
            format!("{:.3}", figures.recall_at_10),
            format!("{:.3}", figures.mrr_at_10),
            format!("{:.3}", figures.ndcg_at_10),
            format!("{:.2}", figures.p50_ms),
            format!("{:.2}", figures.p95_ms),
        ]);
    }
    table.print(app)
}
