//! Text of contexts: sizes, budgets, and lines.

use claude_mem_core::safe_text::without_tags;
use claude_mem_projections::search::sentences;
use jiff::{Timestamp, tz::TimeZone};

/// Maximum length of a title on the page.
pub(super) const TITLE_CHARS_MAX: usize = 130;

/// Approximate token count: four letters per token, one token per character of other scripts.
pub(super) fn tokens(text: &str) -> usize {
    let (plain, other) = text.chars().fold((0, 0), |(plain, other), letter| {
        if letter.is_ascii() { (plain + 1, other) } else { (plain, other + 1) }
    });
    usize::div_ceil(plain, 4) + other
}

/// UTF-16 units of a text as a JSON string.
pub(super) fn units(text: &str) -> usize {
    text.chars()
        .map(|letter| match letter {
            '"' | '\\' | '\n' | '\r' | '\t' => 2,
            control if control < ' ' => 6,
            letter if letter.is_ascii() => 1,
            // At least one token per character, so that a token budget is respected as well.
            letter => letter.len_utf16().max(2),
        })
        .sum()
}

#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
}

impl Budget {
    pub(super) fn of_tokens(tokens_max: usize) -> Self {
        Self { left: tokens_max.saturating_mul(4) }
    }

    pub(super) fn left(&self) -> usize {
        self.left
    }

    pub(super) fn reserve(&mut self, units: usize) {
        self.left = self.left.saturating_sub(units);
    }

    pub(super) fn put_back(&mut self, rest: &Self) {
        self.left += rest.left;
    }

    pub(super) fn put_back_units(&mut self, units: usize) {
        self.left += units;
    }

    pub(super) fn take(&mut self, text: &str) -> bool {
        let cost = units(text) + 2;
        let fits = cost <= self.left;
        if fits {
            self.left -= cost;
        }
        fits
    }

    /// A part of the remaining budget; the unused rest is returned later.
    pub(super) fn share(&mut self, share: f64) -> Self {
        let part = (self.left as f64 * share) as usize;
        self.left -= part;
        Self { left: part }
    }
}

/// The sentences that neither the page nor an earlier part of the text contains.
pub(super) fn without_repeats(parts: &[&str], shown: &str) -> String {
    let mut new = String::new();
    for sentence in parts.iter().flat_map(|part| sentences(part)) {
        let bare = without_tags(sentence.trim_end_matches(['.', '!', ':', '。', '…']));
        let is_repeated = bare.chars().count() >= REPEATED_CHARS_MIN
            && (shown.contains(&bare) || new.contains(&bare));
        if !is_repeated {
            let between = if new.is_empty() { "" } else { " " };
            new = format!("{new}{between}{sentence}");
        }
    }
    new
}

/// Shorter sentences may repeat.
const REPEATED_CHARS_MIN: usize = 20;

/// One line of at most `chars_max` characters, cut between words.
pub(super) fn clipped(text: &str, chars_max: usize) -> String {
    let line = in_line(text);
    if line.chars().count() <= chars_max {
        return line;
    }
    let head: String = line.chars().take(chars_max.saturating_sub(1)).collect();
    let end = head.rfind(' ').filter(|end| *end > head.len() / 2).unwrap_or(head.len());
    format!("{}…", head[..end].trim_end_matches([',', ';', ':', '.']))
}

/// Joins lines and list items into one line.
fn in_line(text: &str) -> String {
    let mut line = String::new();
    for part in text.lines() {
        let part = part.trim().trim_start_matches(['-', '*', '•']).trim_start();
        if part.is_empty() {
            continue;
        }
        match line.chars().last() {
            None => {}
            Some('.' | ',' | ';' | ':' | '!' | '?') => line.push(' '),
            Some(_) => line.push_str("; "),
        }
        line.push_str(&part.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    line
}

pub(super) fn moment(at_us: u64, zone: &TimeZone) -> jiff::Zoned {
    let moment = Timestamp::from_microsecond(at_us.cast_signed()).unwrap_or_default();
    moment.to_zoned(zone.clone())
}

pub(super) fn day(at_us: u64, zone: &TimeZone) -> String {
    moment(at_us, zone).strftime("%b %-d").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sentence_is_told_twice() {
        let chose = "Chose max(1, n) instead of an error.";
        let parts = [chose, "It is fast.", &format!("{chose} It is fast. It is fast.")];
        let all = format!("{chose} It is fast. It is fast. It is fast.");
        assert_eq!(without_repeats(&parts, ""), all, "short ones may repeat");
        let page = "- #3 Chose max(1, n) instead of an error";
        assert_eq!(without_repeats(&parts[..2], page), "It is fast.");
    }

    #[test]
    fn texts_are_cut_between_words() {
        assert_eq!(clipped("one two  three", 100), "one two three");
        assert_eq!(
            clipped("Left to do:\n- one\n\n- two.\nthree", 100),
            "Left to do: one; two. three"
        );
        assert_eq!(clipped("one two, three four", 12), "one two…");
        assert_eq!(clipped("aaaaaaaaaaaaaaaaaaaaaaaa", 8), "aaaaaaa…");
    }
}
