//! Deduplication: a record that is twice in a segment is returned once.

use crate::Id;
use std::{
    collections::HashSet,
    hash::{BuildHasherDefault, Hasher},
};

/// The ids seen in this segment. A misdirected write can put a complete record there twice.
///
/// Almost every id is higher than all earlier ones, and such an id is new. It is appended to a
/// list, which stays sorted and can be searched when a late id arrives. Hashing each id instead
/// took a third of the time of reading a log of 1 KB records.
#[derive(Debug, Default)]
pub(crate) struct SeenIds {
    /// Ids that were higher than all before them, sorted.
    rising: Vec<Id>,
    /// The rest: from a slower process, or with another clock.
    late: HashSet<Id, BuildHasherDefault<IdHasher>>,
}

impl SeenIds {
    /// Returns whether it is new.
    #[inline]
    pub(crate) fn insert(&mut self, id: Id) -> bool {
        if self.rising.last().is_none_or(|latest| id > *latest) {
            self.rising.push(id);
            return true;
        }
        self.insert_late(id)
    }

    #[cold]
    fn insert_late(&mut self, id: Id) -> bool {
        !is_in(&self.rising, id) && self.late.insert(id)
    }

    /// Starts with another segment.
    pub(crate) fn clear(&mut self) {
        self.rising.clear();
        self.late.clear();
    }
}

/// Whether a sorted list contains this id. Late ids are only a little late, so the search starts at
/// the end.
fn is_in(rising: &[Id], id: Id) -> bool {
    let mut near = 1;
    while near < rising.len() && rising[rising.len() - near] > id {
        near *= 4;
    }
    rising[rising.len().saturating_sub(near)..].binary_search(&id).is_ok()
}

/// Ids are random already, so they need little mixing; but ids of an import may differ in any
/// single byte, so all bytes are mixed in.
#[derive(Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let mixed = u128::from(self.0 ^ u64::from_le_bytes(word)) * 0x9E37_79B9_7F4A_7C15;
            // The lower bits of a product do not depend on the higher ones, so the upper half is
            // mixed in.
            self.0 = (mixed >> 64) as u64 ^ mixed as u64;
        }
    }

    /// The length of an id is always the same.
    fn write_usize(&mut self, _: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_new_once_in_any_order() {
        let mut seen = SeenIds::default();
        for time_us in [5, 9, 7, 8, 6, 10] {
            assert!(seen.insert(Id::new(time_us, 1)), "{time_us}");
        }
        for time_us in 5..=10 {
            assert!(!seen.insert(Id::new(time_us, 1)), "{time_us}");
            assert!(seen.insert(Id::new(time_us, 1000)), "{time_us}");
        }
        seen.clear();
        assert!(seen.insert(Id::new(5, 1)));
    }

    #[test]
    fn a_late_id_is_found_however_late() {
        let mut seen = SeenIds::default();
        for time_us in 0..1000 {
            assert!(seen.insert(Id::new(2 * time_us, 1)));
        }
        for time_us in 0..1000 {
            assert!(!seen.insert(Id::new(2 * time_us, 1)), "{time_us}");
            assert!(seen.insert(Id::new(2 * time_us, 2000)), "{time_us}");
        }
    }
}
