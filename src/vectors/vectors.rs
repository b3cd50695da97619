//! An opened vector file: its mapping, and which records belong to which memory.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use memmap2::Mmap;

use crate::{
    Digest, MemoryKey, ModelId,
    format::{HEADER_BYTES, Header, Record, encode_record, product},
};

/// The memory of a record that does not count.
pub(crate) const NONE: u32 = u32::MAX;

/// An opened vector file.
#[derive(Debug)]
pub struct Vectors {
    path: PathBuf,
    model: ModelId,
    pub(crate) center: Vec<f32>,
    file: File,
    map: Mmap,
    header: Header,
    /// In the order of their keys.
    pub(crate) memories: Vec<Memory>,
    /// Numbers of the records, sorted by memory.
    order: Vec<u32>,
    /// The index in `memories` of each record in the file, or [`NONE`].
    pub(crate) memory_of: Vec<u32>,
}

/// Records that [`Vectors::sample`] reads.
const SAMPLED_RECORDS: usize = 256;

/// What some vectors have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Their mean.
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
    /// Opens the file of a model. `None` if there is none, or if it is of another model, of other
    /// dimensions or no vector file at all. An empty center stands for zeros in as many dimensions
    /// as the file has.
    pub fn open(path: &Path, model: ModelId, center: &[f32]) -> io::Result<Option<Self>> {
        let Some((file, header)) = open(path, &model, center.len())? else { return Ok(None) };
        let map = map(&file, &header)?;
        let mut vectors = Self {
            path: path.into(),
            model,
            center: if center.is_empty() { vec![0.0; header.dimensions] } else { center.into() },
            file,
            map,
            header,
            memories: Vec::new(),
            order: Vec::new(),
            memory_of: Vec::new(),
        };
        vectors.index(0);
        Ok(Some(vectors))
    }

    /// Reads what was appended or erased since. A file that is gone has no memories.
    pub fn refresh(&mut self) -> io::Result<()> {
        let Some((file, header)) = open(&self.path, &self.model, self.center.len())? else {
            self.memories.clear();
            self.order.clear();
            self.memory_of.fill(NONE);
            return Ok(());
        };
        let is_same = header == self.header;
        let map = map(&file, &header)?;
        if is_same && map.len() == self.map.len() && !self.memories.is_empty() {
            return Ok(());
        }
        let known = if is_same { self.memory_of.len().min(count(&map, &header)) } else { 0 };
        (self.file, self.map, self.header) = (file, map, header);
        self.index(known);
        Ok(())
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
    pub fn digests(&self, key: MemoryKey) -> impl Iterator<Item = Digest> {
        self.records_of(key).iter().map(|number| self.record(*number as usize).digest())
    }

    /// The vector of one text of a memory. `None` if it has none.
    pub fn vector(&self, key: MemoryKey, digest: &Digest) -> Option<Vec<f32>> {
        let numbers = if self.is_readable() { self.records_of(key) } else { &[] };
        let mut records = numbers.iter().map(|number| self.record(*number as usize));
        let record = records.find(|record| record.digest() == *digest)?;
        Some(record.vector(&self.center))
    }

    /// The length of a vector.
    pub fn dimensions(&self) -> usize {
        self.center.len()
    }

    /// Some vectors, spread over all.
    pub fn sample(&self) -> Sample {
        let numbers = if self.is_readable() { &self.order[..] } else { &[] };
        let numbers = numbers.iter().step_by(numbers.len().div_ceil(SAMPLED_RECORDS).max(1));
        let (mut mean, mut count) = (vec![0.0; self.center.len()], 0.0);
        for number in numbers {
            let vector = self.record(*number as usize).vector(&self.center);
            for (sum, value) in mean.iter_mut().zip(&vector) {
                *sum += value;
            }
            count += 1.0;
        }
        for sum in &mut mean {
            *sum /= f32::max(count, 1.0);
        }
        // The square of the mean has also the products of each vector with itself, which are 1.
        let cosine = (count * product(&mean, &mean) - 1.0) / f32::max(count - 1.0, 1.0);
        Sample { mean, cosine: cosine.max(0.0) }
    }

    /// Whether the record of a memory's text has exactly this vector.
    pub fn is_vector_of(&self, key: MemoryKey, digest: &Digest, vector: &[f32]) -> bool {
        let numbers = if self.is_readable() { self.records_of(key) } else { &[] };
        let mut records = numbers.iter().map(|number| self.record(*number as usize));
        let mut expected = Vec::new();
        encode_record(&mut expected, key, 0, digest, vector, &self.center);
        let expected = Record::unchecked(&expected);
        records.any(|record| record.digest() == *digest && record.has_vector_of(expected))
    }

    /// Whether the mapping can be read: somebody else may have truncated the file, and then reading
    /// would end the process.
    pub(crate) fn is_readable(&self) -> bool {
        self.file.metadata().is_ok_and(|found| found.len() >= self.map.len() as u64)
    }

    /// The bytes of all records.
    pub(crate) fn records(&self) -> impl Iterator<Item = &[u8]> {
        self.map[HEADER_BYTES..].chunks_exact(self.header.record_bytes())
    }

    /// A record that was checked when the file was read.
    pub(crate) fn record(&self, number: usize) -> Record<'_> {
        let length = self.header.record_bytes();
        Record::unchecked(&self.map[HEADER_BYTES + number * length..][..length])
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

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// How many records the file has, and how many of them count.
    pub(crate) fn used(&self) -> (usize, usize) {
        (self.memory_of.len(), self.order.len())
    }

    /// Groups records by memory. The first `known` ones were checked before.
    fn index(&mut self, known: usize) {
        let mut found: Vec<(MemoryKey, u32)> = Vec::with_capacity(self.memory_of.len());
        for (number, bytes) in self.records().enumerate() {
            // A record that was half written when it was read may be whole now.
            let record = match number < known && self.memory_of[number] != NONE {
                true => Some(Record::unchecked(bytes)).filter(|record| !record.is_erased()),
                false => Record::decode(bytes),
            };
            found.extend(record.map(|record| (record.key(), number as u32)));
        }
        found.sort();
        self.memories.clear();
        self.memory_of.clear();
        self.memory_of.resize(count(&self.map, &self.header), NONE);
        for (at, (key, number)) in found.iter().enumerate() {
            if self.memories.last().is_none_or(|last| last.key != *key) {
                self.memories.push(Memory { key: *key, start: at as u32 });
            }
            self.memory_of[*number as usize] = self.memories.len() as u32 - 1;
        }
        self.order = found.into_iter().map(|(_, number)| number).collect();
    }
}

/// Opens a file if it has the vectors of this model. No dimensions stand for any number of them.
fn open(path: &Path, model: &ModelId, dimensions: usize) -> io::Result<Option<(File, Header)>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = [0; HEADER_BYTES];
    match file.read_exact(&mut bytes) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let header = Header::decode(&bytes);
    let header = header.filter(|header| {
        header.model == *model && (dimensions == 0 || header.dimensions == dimensions)
    });
    Ok(header.map(|header| (file, header)))
}

/// Maps the header and all whole records.
fn map(file: &File, header: &Header) -> io::Result<Mmap> {
    let records = (file.metadata()?.len() as usize).saturating_sub(HEADER_BYTES);
    let length = HEADER_BYTES + records - records % header.record_bytes();
    #[expect(unsafe_code, reason = "reading the file at every search takes twice as long")]
    // SAFETY: processes of ours never shorten the file. They overwrite records with zeros and
    // append others, and any bytes make a valid record: at worst, one score of one search is wrong.
    unsafe {
        memmap2::MmapOptions::new().len(length).map(file)
    }
}

fn count(map: &Mmap, header: &Header) -> usize {
    (map.len() - HEADER_BYTES) / header.record_bytes()
}
