//! `WordPiece` tokenization as in BERT: clean, split into words, split words into the longest known
//! pieces.
//!
//! One difference: BERT keeps spacing and enclosing marks (Indic vowel signs, keycaps) and drops
//! other combining marks; here all of them are dropped.

use unicode_normalization::char::{decompose_canonical, is_combining_mark};

use crate::{
    unicode::{is_dropped, is_ideograph, is_punctuation},
    vocabulary::Vocabulary,
};

/// Longer words are unknown as a whole.
const WORD_CHARS_MAX: usize = 100;

/// Appends the tokens of a text, up to `most` in total. Reads no further than necessary.
pub(crate) fn push_pieces(
    vocabulary: &Vocabulary<'_>,
    text: &str,
    most: usize,
    tokens: &mut Vec<u32>,
) {
    let mut word = Word::default();
    for c in text.chars().filter(|c| !is_dropped(*c)) {
        if tokens.len() >= most {
            break;
        }
        if c.is_whitespace() {
            word.end(vocabulary, tokens);
            continue;
        }
        let alone = is_ideograph(c);
        // Marks are dropped, so their order does not matter and each character can be decomposed by
        // itself.
        decompose_canonical(c, |part| {
            for lower in part.to_lowercase().filter(|part| !is_combining_mark(*part)) {
                let alone = alone || is_punctuation(lower);
                if alone {
                    word.end(vocabulary, tokens);
                }
                word.push(lower);
                if alone {
                    word.end(vocabulary, tokens);
                }
            }
        });
    }
    word.end(vocabulary, tokens);
    tokens.truncate(most);
}

/// A word as far as it was read.
#[derive(Default)]
struct Word {
    text: String,
    chars: usize,
}

impl Word {
    fn push(&mut self, c: char) {
        self.chars += 1;
        if self.chars <= WORD_CHARS_MAX {
            self.text.push(c);
        }
    }

    fn end(&mut self, vocabulary: &Vocabulary<'_>, tokens: &mut Vec<u32>) {
        let before = tokens.len();
        let mut rest = self.text.as_bytes();
        while !rest.is_empty() {
            let piece = vocabulary.longest(rest, tokens.len() == before);
            let Some((token, length)) = piece.filter(|_| self.chars <= WORD_CHARS_MAX) else {
                tokens.truncate(before);
                tokens.push(vocabulary.unknown());
                break;
            };
            tokens.push(token);
            rest = &rest[length..];
        }
        self.text.clear();
        self.chars = 0;
    }
}
