//! Byte search without CPU feature detection for short inputs.
//!
//! `memchr` detects CPU features on first use. In a virtual machine each `cpuid` takes several
//! microseconds, and there are six: 5 % of the time of a hook. Nearly all inputs are so short that
//! a simple search ends before the detection does.

use crate::work;

/// From this length on `memchr` is used.
const LONG_BYTES: usize = 32 << 10;
/// Bytes compared per step.
const STEP_BYTES: usize = 32;

/// The offset of the first match.
pub(super) fn memchr(one: u8, bytes: &[u8]) -> Option<usize> {
    let found =
        if bytes.len() < LONG_BYTES { first(bytes, [one]) } else { memchr::memchr(one, bytes) };
    counted(found, bytes)
}

/// The offset of the first of two bytes.
pub(super) fn memchr2(one: u8, two: u8, bytes: &[u8]) -> Option<usize> {
    let found = if bytes.len() < LONG_BYTES {
        first(bytes, [one, two])
    } else {
        memchr::memchr2(one, two, bytes)
    };
    counted(found, bytes)
}

/// The offset of the first of four bytes, for searches that are short in nearly all texts.
pub(super) fn memchr4(wanted: [u8; 4], bytes: &[u8]) -> Option<usize> {
    counted(first(bytes, wanted), bytes)
}

#[inline]
fn counted(found: Option<usize>, bytes: &[u8]) -> Option<usize> {
    work::count(found.unwrap_or(bytes.len()) + 1);
    found
}

#[inline]
#[expect(clippy::needless_bitwise_bool, reason = "leaving early is what must not happen")]
fn first<const COUNT: usize>(bytes: &[u8], wanted: [u8; COUNT]) -> Option<usize> {
    // The compiler vectorizes a whole step.
    let is_it = |byte: &u8| wanted.iter().fold(false, |any, one| any | (byte == one));
    let has_none = |step: &&[u8]| !step.iter().fold(false, |any, byte| any | is_it(byte));
    let passed = bytes.chunks_exact(STEP_BYTES).take_while(has_none).count() * STEP_BYTES;
    bytes[passed..].iter().position(is_it).map(|at| passed + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_match_is_found_at_any_offset() {
        for len in (0..200).chain([LONG_BYTES - 1, LONG_BYTES, LONG_BYTES + 1]) {
            let mut bytes = vec![b'.'; len];
            assert_eq!(memchr4(*b"abcd", &bytes), None);
            for at in (0..len.min(200)).rev() {
                bytes[at] = b"abcd"[at % 4];
                let found =
                    [memchr(b'a', &bytes), memchr2(b'a', b'b', &bytes), memchr4(*b"abcd", &bytes)];
                let expected = [b"a".as_slice(), b"ab", b"abcd"]
                    .map(|wanted| bytes.iter().position(|byte| wanted.contains(byte)));
                assert_eq!(found, expected, "{len} {at}");
            }
        }
    }
}
