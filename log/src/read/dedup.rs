//! Which records of a segment a reader has met, so that one that is there twice is read once.

use crate::Id;
use std::{
    collections::HashSet,
    hash::{BuildHasherDefault, Hasher},
};

/// The ids met in this segment. A misdirected write of the disk can put a whole record there twice.
///
/// Almost every id is later than all before it, and then it cannot have been met. Such ids are only kept
/// in a list, which is in order by that, so that it can be searched when an id does come late. Hashing
/// each id instead made up a third of the time of reading a log of 1 KB records.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Those that were later than all before them, in order.
    rising: Vec<Id>,
    /// The rest: from another process that was a moment slower, or with another clock.
    late: HashSet<Id, BuildHasherDefault<IdHasher>>,
}

impl Seen {
    /// Says whether it is new.
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

    /// Goes on to another segment.
    pub(crate) fn clear(&mut self) {
        self.rising.clear();
        self.late.clear();
    }
}

/// Whether a list in order has this id. What is late is late by little, so it is looked for near the end.
fn is_in(rising: &[Id], id: Id) -> bool {
    let mut near = 1;
    while near < rising.len() && rising[rising.len() - near] > id {
        near *= 4;
    }
    rising[rising.len().saturating_sub(near)..].binary_search(&id).is_ok()
}

/// Ids are random already, so they need little mixing; but those made for an import may differ in any of
/// their bytes alone, so all count.
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
            // The upper half is needed as well: a product's lower bits know nothing of the higher ones.
            self.0 = (mixed >> 64) as u64 ^ mixed as u64;
        }
    }

    /// The length of the id, which is always the same.
    fn write_usize(&mut self, _: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_new_once_whatever_the_order() {
        let mut seen = Seen::default();
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
        let mut seen = Seen::default();
        for time_us in 0..1000 {
            assert!(seen.insert(Id::new(2 * time_us, 1)));
        }
        for time_us in 0..1000 {
            assert!(!seen.insert(Id::new(2 * time_us, 1)), "{time_us}");
            assert!(seen.insert(Id::new(2 * time_us, 2000)), "{time_us}");
        }
    }
}
