//! Counts how often parsers of untrusted text look at a byte, a tag or a word, so that tests can
//! require linear time.

use std::cell::Cell;

thread_local!(static COUNT: Cell<usize> = const { Cell::new(0) });

/// Hostile fragments: the start of each construct that a parser knows.
const FRAGMENTS: &str = include_str!("../../tests/fixtures/fragments.json");
const FRAGMENTS_MIN: usize = 118;
/// Up to the longest reply that a provider may give.
const SIZES: [usize; 3] = [128 << 10, 512 << 10, 2 << 20];

pub(crate) fn add(looks: usize) {
    COUNT.set(COUNT.get() + looks);
}

/// Counts the steps of a function.
pub(crate) fn count(read: impl FnOnce()) -> usize {
    let before = COUNT.get();
    read();
    COUNT.get() - before
}

/// Fails if four times the text takes more than four times the steps, plus a margin.
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
