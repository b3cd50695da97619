//! Truncates long text: keeps its head and tail, with a note about the cut part.

use std::fmt::Write as _;

use blake3::{Hash, Hasher};

/// An upper bound of the length of the note.
const NOTE_BYTES_MAX: usize = 160;

/// The smallest limit. Below it, note, head and tail do not fit.
pub(super) const LIMIT_BYTES_MIN: usize = 256;

/// Collects a text in pieces. Memory stays within the limit.
pub(super) struct Clip {
    limit: usize,
    head: String,
    over: Option<OverLimit>,
}

/// State of a text that exceeds its limit.
struct OverLimit {
    hash: Hasher,
    bytes: usize,
    tail: String,
}

impl Clip {
    /// A text of at most `limit` bytes including the note; `expected` is the expected length.
    pub(super) fn new(limit: usize, expected: usize) -> Self {
        let limit = limit.max(LIMIT_BYTES_MIN);
        Self { limit, head: String::with_capacity(expected.min(limit)), over: None }
    }

    pub(super) fn push(&mut self, piece: &str) {
        if self.over.is_none() && self.head.len() + piece.len() <= self.limit {
            self.head.push_str(piece);
            return;
        }
        let side = side(self.limit);
        let over = self.over.get_or_insert_with(|| OverLimit::after(&mut self.head, piece, side));
        over.push(piece, side);
    }

    /// Returns the text, or head, note and tail.
    pub(super) fn finish(mut self) -> String {
        let side = side(self.limit);
        let Some(over) = self.over else { return self.head };
        let tail = &over.tail[ceil_boundary(&over.tail, over.tail.len().saturating_sub(side))..];
        let cut = over.bytes - self.head.len() - tail.len();
        self.head.push('\n');
        write_note(&mut self.head, cut, over.bytes, over.hash.finalize());
        self.head.push('\n');
        self.head.push_str(tail);
        self.head
    }
}

impl OverLimit {
    /// Switches to clipping: keeps the first `side` bytes. If fewer have arrived, the next piece
    /// fills them up.
    fn after(head: &mut String, piece: &str, side: usize) -> Self {
        let mut over = Self { hash: Hasher::new(), bytes: head.len(), tail: String::new() };
        over.hash.update(head.as_bytes());
        if head.len() < side {
            head.push_str(&piece[..floor_boundary(piece, side - head.len())]);
        } else {
            let cut = floor_boundary(head, side);
            over.tail.push_str(&head[cut..]);
            head.truncate(cut);
        }
        over
    }

    fn push(&mut self, piece: &str, side: usize) {
        self.hash.update(piece.as_bytes());
        self.bytes += piece.len();
        self.tail.push_str(&piece[ceil_boundary(piece, piece.len().saturating_sub(side))..]);
        // Trim occasionally, not for each piece, so that many small pieces take linear time.
        if self.tail.len() > 4 * side {
            let cut = ceil_boundary(&self.tail, self.tail.len() - side);
            self.tail.drain(..cut);
        }
    }
}

/// Writes the note: bytes cut, total bytes, and the hash of the whole text.
pub(super) fn write_note(out: &mut String, cut: usize, whole: usize, hash: Hash) {
    let _ = write!(out, "[cut: {cut} of {whole} bytes, blake3 {hash}]");
}

/// How many bytes to keep at each end.
pub(super) fn side(limit: usize) -> usize {
    (limit.max(LIMIT_BYTES_MIN) - NOTE_BYTES_MAX) / 2
}

pub(super) fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

pub(super) fn ceil_boundary(text: &str, at: usize) -> usize {
    (at..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clipped(pieces: &[&str], limit: usize) -> String {
        let mut clip = Clip::new(limit, 0);
        for piece in pieces {
            clip.push(piece);
        }
        clip.finish()
    }

    fn hash_of(text: &str) -> String {
        blake3::hash(text.as_bytes()).to_string()
    }

    #[test]
    fn a_text_at_the_limit_stays_whole() {
        let text = "x".repeat(300);
        assert_eq!(clipped(&[&text], 300), text);
        assert_eq!(clipped(&[&text[..100], &text[100..]], 300), text);
    }

    #[test]
    fn a_longer_text_keeps_both_ends_and_a_note() {
        let text = format!("{}{}{}", "a".repeat(400), "b".repeat(400), "c".repeat(400));
        let hash = hash_of(&text);
        let expected = format!(
            "{}\n[cut: 1060 of 1200 bytes, blake3 {hash}]\n{}",
            "a".repeat(70),
            "c".repeat(70)
        );
        assert_eq!(clipped(&[&text], 300), expected);
    }

    #[test]
    fn the_result_does_not_depend_on_the_pieces() {
        let text: String = (0..4000).map(|n| char::from(b'a' + (n % 26) as u8)).collect();
        let whole = clipped(&[&text], 1000);
        assert!(whole.len() <= 1000);
        for size in [1, 7, 333, 999, 1000, 1001, 2500] {
            let pieces: Vec<&str> =
                text.as_bytes().chunks(size).map(|piece| str::from_utf8(piece).unwrap()).collect();
            assert_eq!(clipped(&pieces, 1000), whole, "{size}");
        }
    }

    #[test]
    fn characters_are_never_cut_in_two() {
        for limit in 256..280 {
            let text = "äöü€𝄞".repeat(100);
            let clip = clipped(&[&text, &text], limit);
            assert!(clip.len() <= limit);
            assert!(clip.starts_with("äö") && clip.ends_with("€𝄞"));
        }
    }

    #[test]
    fn a_limit_too_small_for_a_note_is_raised() {
        assert!(clipped(&[&"x".repeat(1000)], 0).len() <= LIMIT_BYTES_MIN);
    }
}
