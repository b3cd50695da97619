//! The word pieces, sorted, so that a search needs no table in memory.

use std::ops::Range;

use crate::{
    InvalidModel,
    format::{Header, Reader, invalid},
};

/// First the pieces that begin a word, then those that continue one, each sorted by their bytes.
#[derive(Debug)]
pub(crate) struct Vocabulary<'a> {
    beginnings: usize,
    /// Where the text of a piece starts, and its token.
    pieces: &'a [[[u8; 4]; 2]],
    text: &'a [u8],
    unknown: u32,
}

impl<'a> Vocabulary<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>, header: &Header<'_>) -> Result<Self, InvalidModel> {
        let beginnings = reader.number()? as usize;
        let text = reader.number()? as usize;
        let pieces = reader.aligned(header.pieces * 8)?.as_chunks().0.as_chunks().0;
        let text = reader.aligned(text)?;
        let vocabulary = Self { beginnings, pieces, text, unknown: header.unknown_token };
        let starts = || (0..pieces.len()).map(|piece| vocabulary.start(piece));
        let in_order = starts().is_sorted() && starts().all(|start| start <= text.len());
        let known =
            (0..pieces.len()).all(|piece| (vocabulary.token(piece) as usize) < pieces.len());
        if !in_order || !known || beginnings > pieces.len() {
            return Err(invalid("its vocabulary is damaged"));
        }
        Ok(vocabulary)
    }

    /// The token of a word that cannot be split into pieces.
    pub(crate) fn unknown(&self) -> u32 {
        self.unknown
    }

    /// The longest piece that `text` begins with: its token and its length.
    ///
    /// Narrows the range of pieces byte by byte, so the time depends on the longest piece, not on
    /// `text`.
    pub(crate) fn longest(&self, text: &[u8], begins_word: bool) -> Option<(u32, usize)> {
        let mut range =
            if begins_word { 0..self.beginnings } else { self.beginnings..self.pieces.len() };
        let mut longest = None;
        for (at, byte) in text.iter().enumerate() {
            // A piece that ends here has no byte, and `None` sorts first.
            let start = self.first(range.clone(), |piece| piece.get(at) >= Some(byte));
            let end = self.first(start..range.end, |piece| piece.get(at) > Some(byte));
            if start == end {
                break;
            }
            range = start..end;
            if self.piece(start).len() == at + 1 {
                longest = Some((self.token(start), at + 1));
            }
        }
        longest
    }

    /// The first piece of a range that meets a condition. All later pieces must meet it, too.
    fn first(&self, mut range: Range<usize>, condition: impl Fn(&[u8]) -> bool) -> usize {
        while !range.is_empty() {
            let middle = usize::midpoint(range.start, range.end);
            if condition(self.piece(middle)) {
                range.end = middle;
            } else {
                range.start = middle + 1;
            }
        }
        range.start
    }

    fn piece(&self, piece: usize) -> &'a [u8] {
        let end =
            if piece + 1 < self.pieces.len() { self.start(piece + 1) } else { self.text.len() };
        &self.text[self.start(piece)..end]
    }

    fn start(&self, piece: usize) -> usize {
        u32::from_le_bytes(self.pieces[piece][0]) as usize
    }

    fn token(&self, piece: usize) -> u32 {
        u32::from_le_bytes(self.pieces[piece][1])
    }
}
