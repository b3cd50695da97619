//! Embeds memories that lack a vector, newest first.

use std::{
    collections::HashSet,
    panic::resume_unwind,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use claude_mem_core::{app::App, failure::Failure};
use claude_mem_embed::Role;
use claude_mem_projections::{Store, search::MemoryId};
use claude_mem_vectors::{Digest, MemoryKey, Put, VectorWriter, Vectors, Window, directory, erase};

use super::{EmbeddingModel, VectorCounts, current_digests, key, open_model, windows};

/// How thoroughly to search for missing vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Memories without any vector: takes a fraction of a second for 100,000 memories.
    Rows,
    /// Also memories whose texts changed since, by a rebuild or on another machine. Reads all
    /// texts.
    Texts,
}

/// Memories that are embedded together, if there are several threads: the weights are read once for
/// all their texts.
const TOGETHER: usize = 4;
/// Memories that each thread embeds before they are written.
const PER_THREAD: usize = 24;

/// Memories whose texts are sent to an endpoint together.
const PER_REQUEST: usize = 24;

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Embedded {
    /// Memories that got their vectors.
    pub embedded: usize,
    /// The counts after the run.
    pub counts: VectorCounts,
    /// Whether another process is embedding now.
    pub is_claimed: bool,
}

/// Embeds missing memories, and erases vectors of memories that are no longer visible. `None`
/// without a model.
///
/// Before each batch, `should_continue` gets the number of memories done and to do in this run, and the
/// counts. It can wait, or return `false` to end the run. A run also ends when the database or the
/// vector file is replaced; the next run continues.
pub fn embed_missing(
    app: &App,
    store: &Store,
    depth: Depth,
    threads: usize,
    mut should_continue: impl FnMut(usize, usize, VectorCounts) -> bool,
) -> Result<Option<Embedded>, Failure> {
    let Some(model) = open_model(app)? else { return Ok(None) };
    let path = claude_mem_vectors::file(&app.paths.data, &model.id());
    let names = store.embeddable_memories()?;
    if names.is_empty() && !path.exists() {
        return Ok(Some(Embedded::default()));
    }
    let center = center(model, &path)?;
    let opened = VectorWriter::open(&path, model.id(), &center).map_err(|error| failed(&error))?;
    let Some(mut writer) = opened else {
        let counts = super::count(app, store)?.unwrap_or_default();
        return Ok(Some(Embedded { counts, is_claimed: true, ..Embedded::default() }));
    };
    erase_others(app, &writer, &names)?;
    let missing = missing(model, store, &writer, &names, depth)?;
    let mut done = Embedded {
        counts: VectorCounts { total: names.len(), missing: missing.len() },
        ..Embedded::default()
    };
    let (threads, together) = match model {
        EmbeddingModel::Local(_) => (threads, TOGETHER),
        EmbeddingModel::Endpoint(_) => (1, PER_REQUEST),
    };
    let turn = match (model, threads) {
        (EmbeddingModel::Local(_), 1) => 1,
        _ => threads * PER_THREAD,
    };
    for (turns, names) in missing.chunks(turn).enumerate() {
        if !should_continue(turns * turn, missing.len(), done.counts) || store.is_replaced() {
            break;
        }
        let texts = read(store, &writer, names)?;
        for (memory, windows) in embed(model, &texts, threads, together)? {
            has_dimensions(&windows, center.len(), &path)?;
            match put(store, &mut writer, memory, &windows)? {
                Put::Done => done.embedded += 1,
                Put::Outdated => {}
                Put::Replaced => return Ok(Some(done)),
            }
        }
        done.counts.missing -= names.len();
    }
    Ok(Some(done))
}

/// The text of a memory, and which of its windows have a vector.
struct Unembedded {
    name: MemoryId,
    texts: Vec<String>,
    known: Vec<Digest>,
}

/// The texts of the memories that still exist.
fn read(
    store: &Store,
    writer: &VectorWriter,
    names: &[MemoryId],
) -> Result<Vec<Unembedded>, Failure> {
    let mut found = Vec::new();
    for name in names {
        if let Some(texts) = store.embedding_texts(*name)? {
            let known = writer.vectors().digests(key(*name)).map_err(|error| failed(&error))?;
            found.push(Unembedded { name: *name, texts, known });
        }
    }
    Ok(found)
}

/// Computes the vectors of some memories, on this thread and others.
fn embed<'t>(
    model: &EmbeddingModel,
    memories: &'t [Unembedded],
    threads: usize,
    together: usize,
) -> Result<Vec<(&'t Unembedded, Vec<Window>)>, Failure> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(memories) =
            memories.chunks(together).nth(next.fetch_add(1, Ordering::Relaxed))
        {
            done.extend(memories.iter().zip(embed_windows(model, memories)?));
        }
        Ok::<_, Failure>(done)
    };
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut done = work()?;
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic))?);
        }
        Ok(done)
    })
}

/// The windows of each memory, with vectors for those that have none.
fn embed_windows(
    model: &EmbeddingModel,
    memories: &[Unembedded],
) -> Result<Vec<Vec<Window>>, Failure> {
    let windows: Vec<_> = memories.iter().map(|memory| windows(model, &memory.texts)).collect();
    let all = memories.iter().zip(&windows);
    let new: Vec<&str> = all
        .flat_map(|(memory, windows)| {
            let new = windows.iter().filter(|(digest, _)| !memory.known.contains(digest));
            new.map(|(_, text)| *text)
        })
        .collect();
    let mut vectors = model.embed_all(&new, Role::Memory)?.into_iter();
    let mut window = |memory: &Unembedded, digest: Digest| {
        let is_known = memory.known.contains(&digest);
        Window { digest, vector: if is_known { None } else { vectors.next() } }
    };
    let windows = memories.iter().zip(windows).map(|(memory, windows)| {
        windows.into_iter().map(|(digest, _)| window(memory, digest)).collect()
    });
    Ok(windows.collect())
}

/// The dimensions and center of a file. An endpoint's dimensions are known from its first vector,
/// and it has no center.
fn center(model: &EmbeddingModel, path: &Path) -> Result<Vec<f32>, Failure> {
    let EmbeddingModel::Endpoint(endpoint) = model else { return Ok(model.center()) };
    let known = Vectors::open(path, model.id(), &[]).map_err(|error| failed(&error))?;
    let dimensions = known.map_or_else(|| endpoint.dimensions(), |known| Ok(known.dimensions()))?;
    Ok(vec![0.0; dimensions])
}

/// Fails if the server uses another model under the same name.
fn has_dimensions(windows: &[Window], dimensions: usize, path: &Path) -> Result<(), Failure> {
    let mut vectors = windows.iter().filter_map(|window| window.vector.as_ref());
    match vectors.find(|vector| vector.len() != dimensions) {
        None => Ok(()),
        Some(other) => Err(Failure::new(format!(
            "the embedding endpoint gave {} dimensions instead of {dimensions}: its model was \
             replaced",
            other.len()
        ))
        .meaning("new memories get no vectors")
        .remedy(format!("make all of them again: `rm '{}'`", path.display()))),
    }
}

/// Stores the vectors of a memory, unless it was forgotten or changed meanwhile. That is checked
/// under the lock of the file.
fn put(
    store: &Store,
    writer: &mut VectorWriter,
    memory: &Unembedded,
    windows: &[Window],
) -> Result<Put, Failure> {
    let texts = Some(&memory.texts);
    let is_current = || store.embedding_texts(memory.name).is_ok_and(|now| now.as_ref() == texts);
    writer.put(key(memory.name), windows, is_current).map_err(|error| failed(&error))
}

fn missing(
    model: &EmbeddingModel,
    store: &Store,
    writer: &VectorWriter,
    names: &[MemoryId],
    depth: Depth,
) -> Result<Vec<MemoryId>, Failure> {
    let vectors = writer.vectors();
    let mut missing = Vec::new();
    for name in names {
        let is_missing = match depth {
            Depth::Rows => !vectors.has(key(*name)),
            Depth::Texts => {
                let current: HashSet<Digest> =
                    current_digests(model, store, *name)?.into_iter().collect();
                let known = vectors.digests(key(*name)).map_err(|error| failed(&error))?;
                current != known.into_iter().collect()
            }
        };
        if is_missing {
            missing.push(*name);
        }
    }
    Ok(missing)
}

/// Erases vectors of memories that are gone or hidden.
fn erase_others(app: &App, writer: &VectorWriter, names: &[MemoryId]) -> Result<(), Failure> {
    let visible: HashSet<MemoryKey> = names.iter().map(|name| key(*name)).collect();
    if writer.vectors().keys().any(|key| !visible.contains(&key)) {
        let dir = directory(&app.paths.data);
        erase(&dir, |_, record| !visible.contains(&record.key()))
            .map_err(|error| failed(&error))?;
    }
    Ok(())
}

fn failed(error: &std::io::Error) -> Failure {
    Failure::new(format!("vectors/ cannot be written: {error}"))
        .meaning("memories without a vector are found by their words")
}
