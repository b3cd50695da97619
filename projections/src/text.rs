//! Text helpers, also used by the crates above.

/// Joins a text into one line: each run of white space becomes one space.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// The first line that is not blank, trimmed.
pub fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

/// The first `chars_max` characters, with an ellipsis if there are more.
pub fn truncate(mut text: String, chars_max: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(chars_max) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_joined_into_one_line_and_truncated() {
        assert_eq!(one_line("  a\n\tb  c "), "a b c");
        assert_eq!(first_line("\n  \n a b \nc"), "a b");
        assert_eq!(first_line(" \n"), "");
        assert_eq!(truncate("äöü".into(), 3), "äöü");
        assert_eq!(truncate("äöüß".into(), 3), "äöü…");
    }
}
