//! Finding bytes, without asking the processor what it can do unless that pays.
//!
//! `memchr` is fastest with instructions that not every processor has, and asks for them once. Under a
//! hypervisor each such question takes several microseconds, and there are half a dozen of them: a
//! twentieth of what a hook takes in all. Nearly all inputs are so short that any way to search them is
//! over before the first answer.

use crate::work;

/// From here on the questions pay.
const LONG_BYTES: usize = 32 << 10;
/// As many bytes as are compared at a time.
const STEP_BYTES: usize = 32;

/// Where the first such byte is.
pub(super) fn memchr(one: u8, bytes: &[u8]) -> Option<usize> {
    let found =
        if bytes.len() < LONG_BYTES { first(bytes, [one]) } else { memchr::memchr(one, bytes) };
    counted(found, bytes)
}

/// Where the first one of two is.
pub(super) fn memchr2(one: u8, two: u8, bytes: &[u8]) -> Option<usize> {
    let found = if bytes.len() < LONG_BYTES {
        first(bytes, [one, two])
    } else {
        memchr::memchr2(one, two, bytes)
    };
    counted(found, bytes)
}

/// Where the first one of four is, for searches that are short in nearly all texts.
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
    // Compilers turn a whole step into a few instructions.
    let is_it = |byte: &u8| wanted.iter().fold(false, |any, one| any | (byte == one));
    let has_none = |step: &&[u8]| !step.iter().fold(false, |any, byte| any | is_it(byte));
    let passed = bytes.chunks_exact(STEP_BYTES).take_while(has_none).count() * STEP_BYTES;
    bytes[passed..].iter().position(is_it).map(|at| passed + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_one_is_found_wherever_it_is() {
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
