//! Counts how often the rules look at a character or a word: the tests that this grows with the
//! text only.

use std::cell::Cell;

thread_local!(static COUNT: Cell<usize> = const { Cell::new(0) });

/// Hostile fragments: the start of each construct a reader knows.
const FRAGMENTS: &str = include_str!("../../../../tests/fixtures/fragments.json");
const FRAGMENTS_MIN: usize = 118;

/// Counts looks.
pub(super) fn add(looks: usize) {
    COUNT.set(COUNT.get() + looks);
}

/// Fails if four times as much of a fragment takes more than four times as many looks, and some: of
/// texts that are read to their end, and of such as are longer than `bytes_max` and cut.
pub(super) fn assert_linear(bytes_max: usize, read: impl Fn(&str)) {
    let fragments: Vec<String> = serde_json::from_str(FRAGMENTS).unwrap();
    assert!(fragments.len() >= FRAGMENTS_MIN);
    let mut wrong = Vec::new();
    for sizes in [[bytes_max / 16, bytes_max / 4, bytes_max], [256 << 10, 1 << 20, 4 << 20]] {
        for fragment in &fragments {
            let counts = sizes.map(|size| {
                let before = COUNT.get();
                read(&fragment.repeat(size / fragment.len()));
                COUNT.get() - before
            });
            if counts.windows(2).any(|pair| pair[1] > 5 * pair[0] + bytes_max / 16) {
                wrong.push(format!("{fragment:?}: {counts:?} of {sizes:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
