//! Counts how often readers of untrusted text look at a byte, a tag or a word: the tests that this grows with the text
//! only.

use std::cell::Cell;

thread_local!(static COUNT: Cell<usize> = const { Cell::new(0) });

/// Hostile fragments: the start of each construct a reader knows.
const FRAGMENTS: &str = include_str!("../../tests/fixtures/fragments.json");
const FRAGMENTS_MIN: usize = 118;
const SIZES: [usize; 3] = [256 << 10, 1 << 20, 4 << 20];

/// Counts looks.
pub(crate) fn add(looks: usize) {
    COUNT.set(COUNT.get() + looks);
}

/// Counts the work of a function.
pub(crate) fn count(read: impl FnOnce()) -> usize {
    let before = COUNT.get();
    read();
    COUNT.get() - before
}

/// Fails if four times as much of a fragment takes more than four times as many looks, and some.
pub(crate) fn assert_linear(read: impl Fn(&str, usize)) {
    let fragments: Vec<String> = serde_json::from_str(FRAGMENTS).unwrap();
    assert!(fragments.len() >= FRAGMENTS_MIN);
    let mut wrong = Vec::new();
    for fragment in fragments {
        let counts = SIZES.map(|size| count(|| read(&fragment, size)));
        if counts.windows(2).any(|pair| pair[1] > 5 * pair[0] + (64 << 10)) {
            wrong.push(format!("{fragment:?}: {counts:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
