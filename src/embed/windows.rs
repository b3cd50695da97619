//! Splits a long text into overlapping windows of words.

const WORDS: usize = 160;
const OVERLAP: usize = 40;
const WINDOWS_MAX: usize = 3;

/// The parts of a long text that get separate vectors: at most 3 windows of at most 160 words, each
/// starting with the last 40 words of the previous one. A text without words has none.
pub fn windows(text: &str) -> Vec<&str> {
    let read_max = WORDS + (WINDOWS_MAX - 1) * (WORDS - OVERLAP);
    let words: Vec<&str> = text.split_whitespace().take(read_max).collect();
    let start = |word: &str| word.as_ptr().addr() - text.as_ptr().addr();
    let mut windows = Vec::new();
    for first in (0..words.len()).step_by(WORDS - OVERLAP) {
        let last = words.len().min(first + WORDS) - 1;
        windows.push(&text[start(words[first])..start(words[last]) + words[last].len()]);
        if last + 1 == words.len() {
            break;
        }
    }
    windows
}
