//! Counts the characters and words that the rules examine. Tests use the count to prove that the
//! work grows linearly with the text.

use std::cell::Cell;

thread_local!(static COUNT: Cell<usize> = const { Cell::new(0) });

/// Hostile fragments: the start of each construct that the parsers handle.
const FRAGMENTS: &str = include_str!("../../../../tests/fixtures/fragments.json");
const FRAGMENTS_MIN: usize = 118;

pub(super) fn add(looks: usize) {
    COUNT.set(COUNT.get() + looks);
}

/// Fails if four times the text takes more than five times the steps, plus a constant. Tests sizes
/// up to `bytes_max`, and larger texts that are truncated to it.
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
