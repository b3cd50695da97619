//! An open vector file: maps records to memories.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{
    Digest, MemoryKey, ModelId,
    format::{Record, encode_record, product},
    records::Records,
};

/// The memory of an invalid record.
pub(crate) const NONE: u32 = u32::MAX;

/// An opened vector file.
#[derive(Debug)]
pub struct Vectors {
    path: PathBuf,
    model: ModelId,
    pub(crate) center: Vec<f32>,
    pub(crate) records: Records,
    /// In the order of their keys.
    pub(crate) memories: Vec<Memory>,
    /// Numbers of the records, sorted by memory.
    order: Vec<u32>,
    /// The index in `memories` of each record in the file, or [`NONE`].
    pub(crate) memory_of: Vec<u32>,
}

/// Records that [`Vectors::sample`] reads.
const SAMPLED_RECORDS: usize = 256;

/// Statistics of a sample of vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub mean: Vec<f32>,
    /// The usual cosine of two of them.
    pub cosine: f32,
}

/// A memory and where its records begin in `order`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) key: MemoryKey,
    start: u32,
}

impl Vectors {
    /// Opens the file of a model. `None` if it does not exist, belongs to another model, has other
    /// dimensions or is not a vector file. An empty center means zeros in all dimensions of the
    /// file.
    pub fn open(path: &Path, model: ModelId, center: &[f32]) -> io::Result<Option<Self>> {
        let Some(records) = Records::open(path, &model, center.len())? else { return Ok(None) };
        let dimensions = records.header.dimensions;
        let mut vectors = Self {
            path: path.into(),
            model,
            center: if center.is_empty() { vec![0.0; dimensions] } else { center.into() },
            records,
            memories: Vec::new(),
            order: Vec::new(),
            memory_of: Vec::new(),
        };
        vectors.index(0)?;
        Ok(Some(vectors))
    }

    /// Reads records that were appended or erased since. A deleted file has no memories.
    pub fn refresh(&mut self) -> io::Result<()> {
        let Some(found) = Records::open(&self.path, &self.model, self.center.len())? else {
            self.memories.clear();
            self.order.clear();
            self.memory_of.fill(NONE);
            return Ok(());
        };
        let is_same = found.header == self.records.header;
        if is_same && found.count == self.records.count && !self.memories.is_empty() {
            return Ok(());
        }
        let known = if is_same { self.memory_of.len().min(found.count) } else { 0 };
        self.records = found;
        self.index(known)
    }

    /// The number of memories that have a vector.
    pub fn len(&self) -> usize {
        self.memories.len()
    }

    /// Whether no memory has a vector.
    pub fn is_empty(&self) -> bool {
        self.memories.is_empty()
    }

    /// All memories that have a vector, by their keys.
    pub fn keys(&self) -> impl Iterator<Item = MemoryKey> {
        self.memories.iter().map(|memory| memory.key)
    }

    /// Whether a memory has a vector.
    pub fn has(&self, key: MemoryKey) -> bool {
        self.memories.binary_search_by_key(&key, |memory| memory.key).is_ok()
    }

    /// The digests of a memory's texts that have a vector.
    pub fn digests(&self, key: MemoryKey) -> io::Result<Vec<Digest>> {
        let mut found = Vec::new();
        self.records.each(self.records_of(key), |record| found.push(record.digest()))?;
        Ok(found)
    }

    /// The vector of one text of a memory. `None` if it has none.
    pub fn vector(&self, key: MemoryKey, digest: &Digest) -> io::Result<Option<Vec<f32>>> {
        let mut found = None;
        self.records.each(self.records_of(key), |record| {
            if record.digest() == *digest {
                found.get_or_insert_with(|| record.vector(&self.center));
            }
        })?;
        Ok(found)
    }

    /// The length of a vector.
    pub fn dimensions(&self) -> usize {
        self.center.len()
    }

    /// A sample of vectors, spread over the file.
    pub fn sample(&self) -> io::Result<Sample> {
        let step = self.order.len().div_ceil(SAMPLED_RECORDS).max(1);
        let numbers: Vec<u32> = self.order.iter().copied().step_by(step).collect();
        let count = numbers.len() as f32;
        let mut mean = vec![0.0; self.center.len()];
        self.records.each(&numbers, |record| {
            for (sum, value) in mean.iter_mut().zip(record.vector(&self.center)) {
                *sum += value;
            }
        })?;
        for sum in &mut mean {
            *sum /= f32::max(count, 1.0);
        }
        // The square of the mean includes the product of each vector with itself, which is 1.
        let cosine = (count * product(&mean, &mean) - 1.0) / f32::max(count - 1.0, 1.0);
        Ok(Sample { mean, cosine: cosine.max(0.0) })
    }

    /// Whether the record of a memory's text has exactly this vector.
    pub fn is_vector_of(
        &self,
        key: MemoryKey,
        digest: &Digest,
        vector: &[f32],
    ) -> io::Result<bool> {
        let mut expected = Vec::new();
        encode_record(&mut expected, key, 0, digest, vector, &self.center);
        let expected = Record::unchecked(&expected);
        let mut is_found = false;
        self.records.each(self.records_of(key), |record| {
            is_found |= record.digest() == *digest && record.has_vector_of(expected);
        })?;
        Ok(is_found)
    }

    /// The numbers of a memory's records.
    pub(crate) fn records_of(&self, key: MemoryKey) -> &[u32] {
        let Ok(at) = self.memories.binary_search_by_key(&key, |memory| memory.key) else {
            return &[];
        };
        let start = self.memories[at].start as usize;
        let end = self.memories.get(at + 1).map_or(self.order.len(), |next| next.start as usize);
        &self.order[start..end]
    }

    /// The number of records in the file, and of valid ones.
    pub(crate) fn used(&self) -> (usize, usize) {
        (self.memory_of.len(), self.order.len())
    }

    /// Groups records by memory. The first `known` ones were checked before.
    fn index(&mut self, known: usize) -> io::Result<()> {
        let mut found: Vec<(MemoryKey, u32)> = Vec::with_capacity(self.memory_of.len());
        let record_bytes = self.records.header.record_bytes();
        // After an error, there are no memories.
        self.memories.clear();
        self.order.clear();
        let was_counted = std::mem::take(&mut self.memory_of);
        self.records.each_piece(0..self.records.count, |first, bytes| {
            for (number, bytes) in (first..).zip(bytes.chunks_exact(record_bytes)) {
                // A record that was partially written before may be complete now.
                let record = match number < known && was_counted[number] != NONE {
                    true => Some(Record::unchecked(bytes)).filter(|record| !record.is_erased()),
                    false => Record::decode(bytes),
                };
                found.extend(record.map(|record| (record.key(), number as u32)));
            }
            Ok(())
        })?;
        found.sort();
        self.memory_of.resize(self.records.count, NONE);
        for (at, (key, number)) in found.iter().enumerate() {
            if self.memories.last().is_none_or(|last| last.key != *key) {
                self.memories.push(Memory { key: *key, start: at as u32 });
            }
            self.memory_of[*number as usize] = self.memories.len() as u32 - 1;
        }
        self.order = found.into_iter().map(|(_, number)| number).collect();
        Ok(())
    }
}
