//! Byte search that counts the bytes it reads; see `work.rs`.

use crate::work;

/// The offset of the first match.
pub(super) fn memchr(one: u8, bytes: &[u8]) -> Option<usize> {
    counted(memchr::memchr(one, bytes), bytes)
}

/// The offset of the first of two bytes.
pub(super) fn memchr2(one: u8, two: u8, bytes: &[u8]) -> Option<usize> {
    counted(memchr::memchr2(one, two, bytes), bytes)
}

/// The offset of the first of four bytes, for searches that are short in nearly all texts.
pub(super) fn memchr4(wanted: [u8; 4], bytes: &[u8]) -> Option<usize> {
    counted(bytes.iter().position(|byte| wanted.contains(byte)), bytes)
}

#[inline]
fn counted(found: Option<usize>, bytes: &[u8]) -> Option<usize> {
    work::count(found.unwrap_or(bytes.len()) + 1);
    found
}
