//! The result of comparing one query with all records.

use std::{io, num::NonZero, panic::resume_unwind, thread};

use crate::{
    Digest, MemoryKey, Vectors, dot,
    format::{Record, product, quantize},
    vectors::NONE,
};

/// Threads that compare records. One thread cannot use the full memory bandwidth.
const THREADS_MAX: usize = 4;
/// Minimum number of records per thread.
const THREAD_RECORDS_MIN: usize = 4_000;

/// The similarity of each memory to a query: that of its most similar window.
///
/// A cosine is `(q−c)·(x−c) + c·x + c·q − c·c` for the center `c`. Only the first product is
/// computed on bytes.
#[derive(Debug)]
pub struct Scan<'a> {
    vectors: &'a Vectors,
    query: Vec<i8>,
    scale: f32,
    constant: f32,
    /// By the index in `Vectors::memories`. Negative infinity: the memory has no valid record.
    cosines: Vec<f32>,
}

impl Vectors {
    /// Compares a unit vector with all records. Fails if the file was truncated after it was
    /// opened.
    pub fn query(&self, vector: &[f32]) -> io::Result<Scan<'_>> {
        let center = &self.center;
        let (scale, query) = quantize(vector, center);
        let constant = product(vector, center) - product(center, center);
        let cosines = vec![f32::NEG_INFINITY; self.memories.len()];
        let mut scan = Scan { vectors: self, query, scale, constant, cosines };
        if vector.len() == center.len() {
            scan.run()?;
        }
        Ok(scan)
    }
}

impl Scan<'_> {
    fn run(&mut self) -> io::Result<()> {
        let vectors = self.vectors;
        let count = vectors.memory_of.len();
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = (count / THREAD_RECORDS_MIN).clamp(1, processors.min(THREADS_MAX));
        let part_length = count.div_ceil(threads).max(1);
        let mut of_records = vec![f32::NEG_INFINITY; count];
        let scan = &*self;
        thread::scope(|scope| {
            let parts = of_records.chunks_mut(part_length).enumerate();
            let threads: Vec<_> = parts
                .map(|(part, cosines)| {
                    scope.spawn(move || scan.compare(part * part_length, cosines))
                })
                .collect();
            let mut results = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
            results.try_for_each(|result| result)
        })?;
        for (memory, cosine) in vectors.memory_of.iter().zip(of_records) {
            if *memory != NONE {
                let best = &mut self.cosines[*memory as usize];
                *best = best.max(cosine);
            }
        }
        Ok(())
    }

    /// Fills in the cosines of consecutive records.
    fn compare(&self, first: usize, cosines: &mut [f32]) -> io::Result<()> {
        let records = &self.vectors.records;
        let length = records.header.record_bytes();
        records.each_piece(first..first + cosines.len(), |number, bytes| {
            let records = || bytes.chunks_exact(length).map(Record::unchecked);
            let mut compared = cosines[number - first..].iter_mut().zip(records());
            dot::for_each_dot_product(
                &self.query,
                records().map(Record::components),
                |_, product| {
                    if let Some((found, record)) = compared.next() {
                        *found = cosine(record, product, self.scale, self.constant);
                    }
                },
            );
            Ok(())
        })
    }

    /// The nearest memories and their cosines, nearest first. Equal ones come in the order of their
    /// keys.
    pub fn best(&self, count: usize) -> Vec<(MemoryKey, f32)> {
        self.best_of(count, |_| true)
    }

    /// Like [`best`](Self::best), among the memories that `accept` returns true for. It is called
    /// only for similar ones.
    pub fn best_of(
        &self,
        count: usize,
        mut accept: impl FnMut(MemoryKey) -> bool,
    ) -> Vec<(MemoryKey, f32)> {
        let nearest_first =
            |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        // Keeps twice the number of results, so that the list is sorted rarely.
        let mut kept: Vec<(u32, f32)> = Vec::new();
        let mut least = f32::NEG_INFINITY;
        for (memory, cosine) in self.cosines.iter().enumerate() {
            if *cosine <= least || !accept(self.vectors.memories[memory].key) {
                continue;
            }
            kept.push((memory as u32, *cosine));
            if kept.len() >= count.max(32).saturating_mul(2) {
                kept.select_nth_unstable_by(count, nearest_first);
                kept.truncate(count);
                least = kept.iter().map(|(_, cosine)| *cosine).fold(f32::INFINITY, f32::min);
            }
        }
        kept.sort_by(nearest_first);
        kept.truncate(count);
        kept.iter()
            .map(|(memory, cosine)| (self.vectors.memories[*memory as usize].key, *cosine))
            .collect()
    }

    /// The cosine of one memory. `None` without a vector.
    pub fn cosine(&self, key: MemoryKey) -> Option<f32> {
        let at = self.vectors.memories.binary_search_by_key(&key, |memory| memory.key).ok()?;
        Some(self.cosines[at]).filter(|cosine| cosine.is_finite())
    }

    /// The digests of a memory's embedded texts, with their cosines. The caller must ignore
    /// outdated texts.
    pub fn digests(&self, key: MemoryKey) -> io::Result<Vec<(Digest, f32)>> {
        let numbers = match self.cosine(key) {
            Some(_) => self.vectors.records_of(key),
            None => &[],
        };
        let mut found = Vec::with_capacity(numbers.len());
        self.vectors.records.each(numbers, |record| {
            dot::for_each_dot_product(
                &self.query,
                [record.components()].into_iter(),
                |_, product| {
                    let cosine = cosine(record, product, self.scale, self.constant);
                    found.push((record.digest(), cosine));
                },
            );
        })?;
        found.retain(|(_, cosine)| cosine.is_finite());
        Ok(found)
    }
}

/// The cosine of one record from its product with the query. Negative infinity if it was erased
/// meanwhile.
#[inline]
fn cosine(record: Record<'_>, product: i32, query_scale: f32, constant: f32) -> f32 {
    match record.scale() {
        0.0 => f32::NEG_INFINITY,
        scale => query_scale * scale * product as f32 + record.center_product() + constant,
    }
}
