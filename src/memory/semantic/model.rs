//! The embedding model: the built-in one, or the file that a setting names.

use std::{
    fs,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use claude_mem_core::{
    app::App,
    failure::Failure,
    paths::expand_tilde,
    settings::table::{EMBEDDING_MODEL, SEMANTIC},
};
use claude_mem_embed::Model;

/// A model that lives as long as the process.
pub type EmbeddingModel = Model<'static>;

/// Which model is open: a file and its time, or the built-in one.
type Source = Option<(PathBuf, Option<SystemTime>)>;

static OPEN: Mutex<Option<(Source, &'static EmbeddingModel)>> = Mutex::new(None);

/// The model of the settings. `None` if vectors are switched off, or if this program has no model built in and the settings
/// name none.
///
/// It is opened once per process and never freed: the built-in one is part of the program, and nobody changes the setting
/// often. A file is read, not mapped, because nothing keeps others from truncating it.
pub fn open_model(app: &App) -> Result<Option<&'static EmbeddingModel>, Failure> {
    if !app.settings.get(&SEMANTIC) {
        return Ok(None);
    }
    let path = app.settings.get(&EMBEDDING_MODEL);
    let path = path.map(|path| expand_tilde(&path, app.paths.home.as_deref()));
    let modified = |path: &PathBuf| fs::metadata(path).and_then(|found| found.modified()).ok();
    let source: Source = path.map(|path| (path.clone(), modified(&path)));
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, model)) = &*open
        && *known == source
    {
        return Ok(Some(model));
    }
    let bytes: Option<&'static [u8]> = match &source {
        Some((path, _)) => {
            let bytes = fs::read(path).map_err(|error| unusable(path, &error))?;
            Some(Vec::leak(bytes))
        }
        None => built_in(),
    };
    let Some(bytes) = bytes else { return Ok(None) };
    let model = Model::parse(bytes).map_err(|error| match &source {
        Some((path, _)) => unusable(path, &error),
        None => Failure::new(format!("the built-in embedding model is damaged: {error}"))
            .meaning("search goes by words alone")
            .remedy("install claude-mem again"),
    })?;
    let model: &'static EmbeddingModel = Box::leak(Box::new(model));
    *open = Some((source, model));
    Ok(Some(model))
}

fn unusable(path: &std::path::Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("the embedding model {} cannot be used: {error}", path.display()))
        .meaning("search goes by words alone")
        .remedy("correct the path, or use the built-in model: `claude-mem settings unset EMBEDDING_MODEL`")
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
