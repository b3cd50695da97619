//! The time of a search, at the 95th percentile.

use super::sample::{Question, fill_sample, questions};
use crate::bench::{BenchResult, Figure, Row, Scratch, Settings, Verdict, report::show, time};
use claude_mem_projections::{
    Store,
    search::{Kind, Search},
};
use std::time::Duration;

/// Returns the memories for a query.
type Ask<'a> = dyn Fn(&Question) -> BenchResult<Vec<i64>> + 'a;

/// One way to search.
pub(super) struct Way<'a> {
    name: &'static str,
    ask: Box<Ask<'a>>,
    times: Vec<Duration>,
    found: usize,
    asked: usize,
}

impl<'a> Way<'a> {
    pub(super) fn new(
        name: &'static str,
        ask: impl Fn(&Question) -> BenchResult<Vec<i64>> + 'a,
    ) -> Self {
        Self { name, ask: Box::new(ask), times: Vec::new(), found: 0, asked: 0 }
    }

    fn turn(&mut self, question: &Question, has_answer: bool) -> BenchResult<()> {
        let (took, ids) = time(|| (self.ask)(question))?;
        self.times.push(took);
        if has_answer {
            self.asked += 1;
            self.found += usize::from(ids.contains(&question.answer));
        }
        Ok(())
    }

    pub(super) fn at(&mut self, share: f64) -> Duration {
        self.times.sort();
        self.times[((self.times.len() - 1) as f64 * share) as usize]
    }

    fn recall(&self) -> f64 {
        self.found as f64 / self.asked.max(1) as f64
    }

    fn row(&mut self) -> Row {
        let recall = format!("{:.3}", self.recall());
        Row::new(
            self.name,
            vec![show(self.at(0.5)), show(self.at(0.95)), show(self.at(1.0)), recall],
        )
    }
}

const COLUMNS: &[&str] = &["p50", "p95", "longest", "recall@10"];

pub(super) fn measure_search(settings: Settings, scratch: &Scratch) -> BenchResult<Vec<Figure>> {
    measure_among(settings.size(100_000, 1000), Duration::from_millis(15), settings, scratch)
}

pub(super) fn measure_million(settings: Settings, scratch: &Scratch) -> BenchResult<Vec<Figure>> {
    measure_among(settings.size(1_000_000, 2000), Duration::from_millis(100), settings, scratch)
}

fn measure_among(
    memories: u64,
    limit: Duration,
    settings: Settings,
    scratch: &Scratch,
) -> BenchResult<Vec<Figure>> {
    let store = fill_sample(&scratch.place(&format!("{memories}.db")), memories)?;
    let mut ways = [
        Way::new("search", |question| search(&store, question, None)),
        Way::new("search within one project", |question| {
            search(&store, question, Some(question.project.clone()))
        }),
    ];
    ask(&mut ways, memories, settings.size(200, 20))?;
    let p95 = ways[0].at(0.95);
    let verdict = Verdict {
        target: format!("p95 below {} ms", limit.as_millis()),
        reached: show(p95),
        is_met: p95 < limit,
    };
    Ok(vec![figure(format!("Search among {memories} memories"), &mut ways, verdict)])
}

pub(super) fn figure(title: String, ways: &mut [Way<'_>], verdict: Verdict) -> Figure {
    Figure {
        title,
        about: "Every query is sent to each of them in turn. Recall counts queries with at least \
                one rare word: those have one right answer."
            .into(),
        columns: COLUMNS.to_vec(),
        rows: ways.iter_mut().map(Way::row).collect(),
        verdict: Some(verdict),
    }
}

/// The first queries are for warming up, and do not count.
pub(super) fn ask(ways: &mut [Way<'_>], memories: u64, asked: u64) -> BenchResult<()> {
    let all = questions(memories, asked + asked / 10);
    let (warm, counted) = all.split_at((asked / 10) as usize);
    for question in warm {
        for way in &mut *ways {
            (way.ask)(question)?;
        }
    }
    for (at, question) in counted.iter().enumerate() {
        let has_answer = (at + warm.len()) % 10 != 9;
        for way in &mut *ways {
            way.turn(question, has_answer)?;
        }
    }
    Ok(())
}

pub(super) fn search(
    store: &Store,
    question: &Question,
    project: Option<String>,
) -> BenchResult<Vec<i64>> {
    let search = Search {
        query: question.text.clone(),
        kinds: vec![Kind::Observation],
        project,
        limit: 10,
        ..Search::default()
    };
    Ok(store.search(&search)?.hits.into_iter().map(|hit| hit.name.id).collect())
}
