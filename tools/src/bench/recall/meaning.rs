//! The time of a search by words and meaning in a process that keeps the vector file open, as the
//! worker does.

use super::{
    sample::{Question, fill_sample},
    search::{Way, ask, figure, search as search_words},
};
use crate::bench::{
    BenchResult, Figure, Scratch, Settings, Verdict, report::show, vectors::unit_vector,
};
use claude_mem_core::{app::App, environment::Environment, paths::Paths};
use claude_mem_memory::{
    search::{ProjectScope, search},
    semantic::{Ranking, key, open_model, windows},
};
use claude_mem_projections::{
    Store,
    search::{Kind, Search},
};
use claude_mem_tools::random::Random;
use claude_mem_vectors::{VectorWriter, Window, file};
use std::time::Duration;

pub(super) fn measure_meaning(settings: Settings, scratch: &Scratch) -> BenchResult<Vec<Figure>> {
    measure_among(settings.size(100_000, 1000), 30, settings, scratch)
}

pub(super) fn measure_million(settings: Settings, scratch: &Scratch) -> BenchResult<Vec<Figure>> {
    measure_among(settings.size(1_000_000, 2000), 60, settings, scratch)
}

fn measure_among(
    memories: u64,
    wanted_millis: u64,
    settings: Settings,
    scratch: &Scratch,
) -> BenchResult<Vec<Figure>> {
    let data = scratch.place(&format!("meaning-{memories}"));
    std::fs::create_dir_all(&data)?;
    let store = fill_sample(&data.join("memory.db"), memories)?;
    let app = App::new(Environment::of_process(), Paths { home: None, data });
    embed_at_random(&app, &store)?;
    let mut ways = [
        Way::new("search by words and meaning", |question| find(&app, &store, question)),
        Way::new("search by words", |question| search_words(&store, question, None)),
    ];
    ask(&mut ways, memories, settings.size(200, 20))?;
    let p95 = ways[0].at(0.95);
    let verdict = Verdict {
        target: format!("p95 at most {wanted_millis} ms"),
        reached: show(p95),
        is_met: p95 < Duration::from_millis(wanted_millis),
    };
    let title = format!("Search by words and meaning among {memories} memories");
    let mut figure = figure(title, &mut ways, verdict);
    figure.about += " The vectors are random, so a memory found by meaning is always a wrong one.";
    Ok(vec![figure])
}

/// Gives every memory a random vector: a search does the same work for all.
fn embed_at_random(app: &App, store: &Store) -> BenchResult<()> {
    let model = open_model(app).map_err(|failure| failure.in_one_line())?.ok_or("no model")?;
    let path = file(&app.paths.data, &model.id());
    let mut writer = VectorWriter::open(&path, model.id(), &model.center())?.ok_or("claimed")?;
    let mut random = Random::new(1);
    for name in store.embeddable_memories()? {
        let texts = store.embedding_texts(name)?.unwrap_or_default();
        let windows = windows(model, &texts).into_iter();
        let windows: Vec<Window> = windows
            .map(|(digest, _)| Window { digest, vector: Some(unit_vector(&mut random)) })
            .collect();
        writer.put(key(name), &windows, || true)?;
    }
    Ok(())
}

fn find(app: &App, store: &Store, question: &Question) -> BenchResult<Vec<i64>> {
    let request = Search {
        query: question.text.clone(),
        kinds: vec![Kind::Observation],
        limit: 10,
        ..Search::default()
    };
    let found = search(app, store, ProjectScope::Requested, &request);
    let found = found.map_err(|failure| failure.in_one_line())?;
    assert_eq!(found.ranking, Ranking::WordsAndMeaning);
    Ok(found.results.hits.into_iter().map(|hit| hit.name.id).collect())
}
