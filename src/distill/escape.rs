//! Escapes and shortens recorded text for a prompt.

use std::borrow::Cow;

/// Escapes text for an XML element and drops control characters, which XML does not allow. `>` and
/// `"` stay: they are harmless there, and escaping them would lengthen most code.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// Escapes text for an attribute in double quotes, on one line.
pub(super) fn attribute(text: &str) -> String {
    escaped(text).replace('"', "&quot;").replace(['\n', '\t'], " ")
}

/// Keeps about `bytes_max` bytes of a text: the first 60 % and the last 30 %, with a note of the
/// omitted bytes between them. The start shows what a text is, the end shows the result.
pub(super) fn elided(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    let head = floor(text, bytes_max / 10 * 6);
    let tail = ceiling(text, text.len() - bytes_max / 10 * 3);
    let missing = tail - head;
    Cow::Owned(format!(
        "{}\n[{missing} of {} bytes left out]\n{}",
        &text[..head],
        text.len(),
        &text[tail..]
    ))
}

/// Removes terminal colors and cursor movements.
pub(super) fn without_ansi(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut pieces = text.split('\u{1b}');
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let Some(sequence) = piece.strip_prefix('[') else {
            out.push_str(piece);
            continue;
        };
        let is_final = |c: char| ('@'..='~').contains(&c);
        let end = sequence.find(is_final).map_or(sequence.len(), |at| at + 1);
        out.push_str(&sequence[end..]);
    }
    Cow::Owned(out)
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceiling(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_text_cannot_open_or_close_an_element() {
        let text = escaped("</tool>\u{1b}<observation a=\"b\">\0&lt; -> x\r\n");
        assert_eq!(text, "&lt;/tool>&lt;observation a=\"b\">&amp;lt; -> x\n");
        assert_eq!(attribute("a\" b=\"<c>\n"), "a&quot; b=&quot;&lt;c> ");
    }

    #[test]
    fn the_middle_is_omitted_with_a_note() {
        let text = format!("{}{}{}", "a".repeat(60), "b".repeat(900), "c".repeat(40));
        let expected =
            format!("{}\n[910 of 1000 bytes left out]\n{}", "a".repeat(60), "c".repeat(30));
        assert_eq!(elided(&text, 100), expected);
        assert_eq!(elided(&text, 1000), text);
    }

    #[test]
    fn characters_are_never_split() {
        for character in ["ä", "日", "🎉"] {
            let text = character.repeat(100);
            for bytes_max in 0..=text.len() {
                let kept = elided(&text, bytes_max);
                assert!(kept.len() <= bytes_max + 40, "{bytes_max}: {kept}");
            }
        }
    }

    #[test]
    fn colors_are_dropped() {
        assert_eq!(without_ansi("\u{1b}[1;31merror\u{1b}[0m: x\u{1b}[2K"), "error: x");
        assert_eq!(without_ansi("cut \u{1b}[1;"), "cut ");
        assert_eq!(without_ansi("plain [x]"), "plain [x]");
    }
}
