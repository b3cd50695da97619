//! The embedding model: the built-in one, the file named by a setting, or the user's endpoint.

use std::{
    fs, io,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use claude_mem_core::{
    app::App,
    failure::Failure,
    paths::expand_tilde,
    settings::table::{
        EMBEDDING_API_KEY, EMBEDDING_BASE_URL, EMBEDDING_MODEL, REDACT_PERSONAL, SEMANTIC,
    },
};
use claude_mem_embed::{Model, Role};
use claude_mem_vectors::{ModelId, Vectors};

use super::endpoint::EmbeddingEndpoint;

/// The weight of words with an endpoint, the same as with the built-in model.
const ENDPOINT_WORDS_WEIGHT: f32 = 0.2;

/// The model that computes vectors. It is never freed.
#[derive(Debug)]
pub enum EmbeddingModel {
    /// The built-in model, or a file.
    Local(Model<'static>),
    /// A server of the user's.
    Endpoint(EmbeddingEndpoint),
}

impl EmbeddingModel {
    /// Names the vector file.
    pub fn id(&self) -> ModelId {
        match self {
            Self::Local(model) => model.id().0,
            Self::Endpoint(endpoint) => endpoint.id(),
        }
    }

    /// The center that records are relative to; empty for an endpoint, which has no known center.
    pub fn center(&self) -> Vec<f32> {
        match self {
            Self::Local(model) => model.center(),
            Self::Endpoint(_) => Vec::new(),
        }
    }

    /// The vector of an average text; with an endpoint, the mean of all its vectors.
    pub fn ordinary(&self, vectors: &Vectors) -> io::Result<Vec<f32>> {
        match self {
            Self::Local(model) => Ok(model.center()),
            Self::Endpoint(_) => Ok(vectors.sample()?.mean),
        }
    }

    /// The weight of words relative to meaning.
    pub fn words_weight(&self) -> f32 {
        match self {
            Self::Local(model) => model.words_weight(),
            Self::Endpoint(_) => ENDPOINT_WORDS_WEIGHT,
        }
    }

    /// Whether the vector of a text is meaningful. For an endpoint, the languages are the user's
    /// choice.
    pub fn can_read(&self, text: &str) -> bool {
        match self {
            Self::Local(model) => model.can_read(text),
            Self::Endpoint(endpoint) => endpoint.can_read(text),
        }
    }

    /// Whether one of the words has a meaning that a vector can express.
    pub fn knows_a_word(&self, text: &str) -> bool {
        match self {
            Self::Local(model) => model.knows_a_word(text),
            Self::Endpoint(_) => true,
        }
    }

    /// The vectors of texts, of unit length.
    pub fn embed_all(&self, texts: &[&str], role: Role) -> Result<Vec<Vec<f32>>, Failure> {
        match self {
            Self::Local(model) => Ok(model.embed_all(texts, role)),
            Self::Endpoint(endpoint) => endpoint.embed_all(texts, role),
        }
    }
}

/// The model that is open.
#[derive(PartialEq)]
enum Source {
    BuiltIn,
    /// A file and its modification time.
    File(PathBuf, Option<SystemTime>),
    Endpoint(EmbeddingEndpoint),
}

static OPEN: Mutex<Option<(Source, &'static EmbeddingModel)>> = Mutex::new(None);

/// The model of the settings. `None` if vectors are disabled, or if this program has no built-in
/// model and the settings name none.
///
/// It is opened once per process and never freed: the built-in one is part of the program, and the
/// setting rarely changes. A file is read, not mapped, because another program could truncate it.
/// No request is sent to an endpoint.
pub fn open_model(app: &App) -> Result<Option<&'static EmbeddingModel>, Failure> {
    if !app.settings.get(&SEMANTIC) {
        return Ok(None);
    }
    let source = source(app)?;
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, model)) = &*open
        && *known == source
    {
        return Ok(Some(model));
    }
    let model = match &source {
        Source::Endpoint(endpoint) => EmbeddingModel::Endpoint(endpoint.clone()),
        Source::File(path, _) => {
            let bytes = fs::read(path).map_err(|error| unusable(path, &error))?;
            let model = Model::parse(Vec::leak(bytes)).map_err(|error| unusable(path, &error))?;
            EmbeddingModel::Local(model)
        }
        Source::BuiltIn => {
            let Some(bytes) = built_in() else { return Ok(None) };
            EmbeddingModel::Local(Model::parse(bytes).map_err(|error| {
                Failure::new(format!("the built-in embedding model is damaged: {error}"))
                    .meaning("search uses words only")
                    .remedy("install claude-mem again")
            })?)
        }
    };
    let model: &'static EmbeddingModel = Box::leak(Box::new(model));
    *open = Some((source, model));
    Ok(Some(model))
}

fn source(app: &App) -> Result<Source, Failure> {
    let model = app.settings.get(&EMBEDDING_MODEL);
    let url = app.settings.get(&EMBEDDING_BASE_URL);
    if !url.is_empty() {
        let name = model.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let key = app.settings.get(&EMBEDDING_API_KEY);
        let redact_personal = app.settings.get(&REDACT_PERSONAL);
        return EmbeddingEndpoint::new(&app.paths.data, &url, name, key, redact_personal)
            .map(Source::Endpoint);
    }
    let Some(path) = model else { return Ok(Source::BuiltIn) };
    let path = expand_tilde(&path, app.paths.home.as_deref());
    let modified = fs::metadata(&path).and_then(|found| found.modified()).ok();
    Ok(Source::File(path, modified))
}

/// Why the last request to the embedding endpoint failed. `None` if it succeeded, or without an
/// endpoint.
pub fn endpoint_failure(app: &App) -> Option<String> {
    match open_model(app) {
        Ok(Some(EmbeddingModel::Endpoint(endpoint))) => endpoint.last_failure(),
        _ => None,
    }
}

fn unusable(path: &std::path::Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("the embedding model {} cannot be used: {error}", path.display()))
        .meaning("search uses words only")
        .remedy(
            "correct the path, or use the built-in model: `claude-mem settings unset \
             EMBEDDING_MODEL`",
        )
}

/// Without the feature `semantic`, only a model that the settings name is used.
#[cfg(feature = "semantic")]
#[expect(clippy::unnecessary_wraps, reason = "without the feature there is none")]
fn built_in() -> Option<&'static [u8]> {
    Some(claude_mem_model::bytes())
}

#[cfg(not(feature = "semantic"))]
fn built_in() -> Option<&'static [u8]> {
    None
}
