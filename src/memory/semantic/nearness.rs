//! Ranking by meaning: the vector of a query, and its similarity to memories.
//!
//! The vector file stays open for the next search of the process. A query is embedded on a separate
//! thread, while the index is searched for its words.

use std::{
    cell::LazyCell,
    io,
    panic::resume_unwind,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use claude_mem_core::{
    app::App,
    diagnostics::{self, Level},
    failure::Failure,
};
use claude_mem_embed::Role;
use claude_mem_projections::{
    Error, Store,
    search::{Kind, Meaning, MemoryId, Query},
};
use claude_mem_vectors::{MemoryKey, Scan, Vectors, file};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    EmbeddingModel, current_digests, key, open_model, open_vectors,
    related::{first_vector, similarity},
    unreadable,
};

/// The basis of a ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ranking {
    /// By the words of the query and by its meaning.
    WordsAndMeaning,
    /// By words: the query asks for them, or the model knows neither its language nor any of its
    /// words.
    #[default]
    Words,
    /// By words, because no memory has a vector yet, or because the file of vectors cannot be read.
    WordsWithoutVectors,
    /// By words, because the embedding endpoint failed.
    WordsWithoutEndpoint,
    /// By words, because search by meaning is switched off.
    WordsOnly,
}

/// The vector file of the last use.
static OPEN: Mutex<Option<(PathBuf, Arc<Vectors>)>> = Mutex::new(None);

/// More words of a query take more time and add little meaning.
pub(crate) const QUERY_WORDS_MAX: usize = 64;

/// Runs `work` with the similarity of memories to the first words of a text, and returns the
/// ranking that was possible. Without vectors, or without a model that can read the text, `work`
/// gets no similarity.
pub(crate) fn with_meaning<T>(
    app: &App,
    store: &Store,
    text: &str,
    words_max: usize,
    work: impl FnOnce(Option<&dyn Meaning>) -> T,
) -> (T, Ranking) {
    let text = beginning(text, words_max);
    let (model, vectors) = match prepare(app, text) {
        Ok(Ok(prepared)) => prepared,
        Ok(Err(ranking)) => return (work(None), ranking),
        Err(failure) => {
            diagnostics::record(&app.paths.data, Level::Warn, failure.in_one_line());
            return (work(None), Ranking::WordsWithoutVectors);
        }
    };
    // An endpoint can fail, which changes the ranking, so its request is sent first.
    let of_endpoint = match model {
        EmbeddingModel::Local(_) => None,
        EmbeddingModel::Endpoint(_) => match query_vector(model, text) {
            Ok(vector) => Some(vector),
            Err(failure) => {
                diagnostics::record(&app.paths.data, Level::Warn, failure.in_one_line());
                return (work(None), Ranking::WordsWithoutEndpoint);
            }
        },
    };
    let embed = || {
        let vector = of_endpoint.map_or_else(|| query_vector(model, text), Ok)?;
        Embedded::new(model, &vectors, &vector).map_err(|error| unreadable(app, model, &error))
    };
    thread::scope(|scope| {
        let thread = scope.spawn(embed);
        let wait = || thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        let meaning = QueryMeaning {
            model,
            store,
            vectors: &vectors,
            embedded: LazyCell::new(Box::new(wait)),
        };
        let done = work(Some(&meaning));
        match &*meaning.embedded {
            Ok(_) => (done, Ranking::WordsAndMeaning),
            Err(failure) => {
                diagnostics::record(&app.paths.data, Level::Warn, failure.in_one_line());
                (done, Ranking::WordsWithoutVectors)
            }
        }
    })
}

fn query_vector(model: &EmbeddingModel, text: &str) -> Result<Vec<f32>, Failure> {
    let found = model.embed_all(&[text], Role::Query)?;
    Ok(found.into_iter().next().unwrap_or_default())
}

/// The model and vectors to compare a text with, or the ranking without them.
fn prepare(
    app: &App,
    text: &str,
) -> Result<Result<(&'static EmbeddingModel, Arc<Vectors>), Ranking>, Failure> {
    let Some(model) = open_model(app)? else { return Ok(Err(Ranking::WordsOnly)) };
    // Stop words have no meaning of their own.
    let has_meaning =
        |text: &str| Query::parse(text).terms.iter().any(|term| model.knows_a_word(&term.text));
    if !model.can_read(text) || !has_meaning(text) {
        return Ok(Err(Ranking::Words));
    }
    let vectors = opened(app, model)?.filter(|vectors| !vectors.is_empty());
    Ok(vectors.map(|vectors| (model, vectors)).ok_or(Ranking::WordsWithoutVectors))
}

fn beginning(text: &str, words_max: usize) -> &str {
    let end = text.split_whitespace().nth(words_max);
    &text[..end.map_or(text.len(), |word| word.as_ptr().addr() - text.as_ptr().addr())]
}

/// The vectors of this data directory and model, including recent additions. While another search
/// uses them, they stay unchanged.
pub(super) fn opened(app: &App, model: &EmbeddingModel) -> Result<Option<Arc<Vectors>>, Failure> {
    let path = file(&app.paths.data, &model.id());
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, vectors)) = open.as_mut().filter(|(known, _)| *known == path) {
        if let Some(vectors) = Arc::get_mut(vectors) {
            vectors.refresh().map_err(|error| unreadable(app, model, &error))?;
        }
        return Ok(Some(Arc::clone(vectors)));
    }
    let vectors = open_vectors(app, model)?.map(Arc::new);
    *open = vectors.clone().map(|vectors| (path, vectors));
    Ok(vectors)
}

/// A query, compared with all vectors.
struct Embedded<'a> {
    scan: Scan<'a>,
    noise: f64,
    /// Turns distances into those of the built-in model.
    scale: f64,
}

/// The cosine of two unrelated notes with the built-in model. Limits and weights were measured with
/// it.
const UNRELATED: f64 = 0.77;
/// If vectors are more similar than this, their distances carry no information.
const UNRELATED_MAX: f64 = 0.95;

impl<'a> Embedded<'a> {
    fn new(model: &EmbeddingModel, vectors: &'a Vectors, vector: &[f32]) -> io::Result<Self> {
        let ordinary = model.ordinary(vectors)?;
        let noise = vector.iter().zip(ordinary).map(|(left, right)| left * right).sum::<f32>();
        let scale = match model {
            EmbeddingModel::Local(_) => 1.0,
            EmbeddingModel::Endpoint(_) => {
                let unrelated = f64::from(vectors.sample()?.cosine).min(UNRELATED_MAX);
                (1.0 - UNRELATED) / (1.0 - unrelated)
            }
        };
        Ok(Self { scan: vectors.query(vector)?, noise: f64::from(noise), scale })
    }

    /// The cosine on the scale of the built-in model: 1 for the same text, about 0.77 for unrelated
    /// ones.
    fn cosine(&self, cosine: f64) -> f64 {
        1.0 - (1.0 - cosine) * self.scale
    }
}

struct QueryMeaning<'a> {
    model: &'static EmbeddingModel,
    store: &'a Store,
    vectors: &'a Vectors,
    /// The first access waits for the other thread.
    embedded: LazyCell<Compared<'a>, Box<dyn FnOnce() -> Compared<'a> + 'a>>,
}

type Compared<'a> = Result<Embedded<'a>, Failure>;

impl<'a> QueryMeaning<'a> {
    fn embedded(&self) -> Option<&Embedded<'a>> {
        self.embedded.as_ref().ok()
    }
}

impl Meaning for QueryMeaning<'_> {
    fn nearest(
        &self,
        count: usize,
        accept: &mut dyn FnMut(MemoryId) -> bool,
    ) -> Vec<(MemoryId, f64)> {
        let Some(embedded) = self.embedded() else { return Vec::new() };
        let name =
            |key: MemoryKey| Kind::of_number(key.kind).map(|kind| MemoryId { kind, id: key.row });
        let nearest = embedded.scan.best_of(count, |key| name(key).is_some_and(&mut *accept));
        nearest
            .into_iter()
            .filter_map(|(key, cosine)| Some((name(key)?, embedded.cosine(f64::from(cosine)))))
            .collect()
    }

    fn cosine(&self, memory: MemoryId) -> Result<Option<f64>, Error> {
        let Some(embedded) = self.embedded() else { return Ok(None) };
        // A file that was truncated since the scan has lost the vector.
        let found = embedded.scan.digests(key(memory)).unwrap_or_default();
        if found.is_empty() {
            return Ok(None);
        }
        // A vector of an outdated text is ignored.
        let current = current_digests(self.model, self.store, memory)?;
        let cosines = found.into_iter().filter(|(digest, _)| current.contains(digest));
        let best = cosines.map(|(_, cosine)| f64::from(cosine)).reduce(f64::max);
        Ok(best.map(|cosine| embedded.cosine(cosine)))
    }

    fn past_cosine(&self, memory: MemoryId) -> Option<f64> {
        let embedded = self.embedded()?;
        embedded.scan.cosine(key(memory)).map(|cosine| embedded.cosine(f64::from(cosine)))
    }

    fn similarity(&self, left: MemoryId, right: MemoryId) -> Result<Option<f64>, Error> {
        let vector = |name| first_vector(self.model, self.vectors, self.store, name);
        let (Some(left), Some(right)) = (vector(left)?, vector(right)?) else { return Ok(None) };
        let Ok(ordinary) = self.model.ordinary(self.vectors) else { return Ok(None) };
        Ok(Some(f64::from(similarity(&left, &right, &ordinary))))
    }

    fn noise(&self) -> f64 {
        self.embedded().map_or(0.0, |embedded| embedded.cosine(embedded.noise))
    }

    fn words_weight(&self) -> f64 {
        f64::from(self.model.words_weight())
    }
}
