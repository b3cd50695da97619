//! Documents, and queries with known answers among them.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use flate2::read::MultiGzDecoder;
use serde::{Deserialize, de::DeserializeOwned};

use claude_mem_core::failure::Failure;

#[derive(Debug, Default)]
pub(super) struct QuerySet {
    pub(super) name: String,
    pub(super) documents: Vec<Document>,
    pub(super) queries: Vec<EvalQuery>,
}

/// A document, which becomes an observation.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Document {
    #[serde(default)]
    pub(super) corpus: String,
    pub(super) id: String,
    #[serde(default)]
    pub(super) title: String,
    #[serde(default)]
    pub(super) text: String,
    /// When it happened, in seconds since 1970.
    #[serde(default)]
    pub(super) ts: f64,
}

/// A query, and the documents that answer it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct EvalQuery {
    #[serde(default)]
    pub(super) corpus: String,
    pub(super) text: String,
    pub(super) gold: Vec<String>,
}

impl QuerySet {
    /// Reads documents and queries, one JSON object per line.
    pub(super) fn read(documents: &Path, queries: &Path) -> Result<Self, Failure> {
        let folder = documents.parent().and_then(Path::file_name);
        let name = folder.unwrap_or(documents.as_os_str()).to_string_lossy().into_owned();
        Ok(Self { name, documents: lines(documents)?, queries: lines(queries)? })
    }
}

fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, Failure> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Failure::new(format!("{} cannot be read: {error}", path.display()))
    };
    let mut file = BufReader::new(File::open(path).map_err(|error| unreadable(&error))?);
    let is_gzip = file.fill_buf().map_err(|error| unreadable(&error))?.starts_with(&[0x1F, 0x8B]);
    let mut text = String::new();
    let read = match is_gzip {
        true => MultiGzDecoder::new(file).read_to_string(&mut text),
        false => file.read_to_string(&mut text),
    };
    read.map_err(|error| unreadable(&error))?;
    let filled = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    filled
        .map(|(at, line)| {
            serde_json::from_str(line).map_err(|error| {
                Failure::new(format!("{} is invalid in line {}: {error}", path.display(), at + 1))
                    .remedy("see the format with `claude-mem eval --help`")
            })
        })
        .collect()
}
