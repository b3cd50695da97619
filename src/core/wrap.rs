//! Fits text to the width of a terminal: measures, cuts and wraps it.
//!
//! A terminal breaks a long line anywhere, also within a word. Lines are wrapped here instead,
//! between words. A word wider than the terminal stays whole, so that a path or an ID can be
//! copied.

use unicode_width::UnicodeWidthChar;

/// Our colours: an escape sequence, or its placeholder until it is printed.
const STYLES: [(char, char); 2] = [('\x1b', 'm'), ('\u{fdd0}', '\u{fdd1}')];
/// Maximum width of a tab: the actual one depends on its position.
const TAB_COLUMNS: usize = 8;

/// The columns that a line takes on a terminal. Colours take none.
pub fn width(line: &str) -> usize {
    let mut style_end = None;
    line.chars().map(|character| columns_of(character, &mut style_end)).sum()
}

/// The start of a line, in at most this many columns; `…` stands for the rest.
pub fn cut(line: &str, columns: usize) -> String {
    if width(line) <= columns {
        return line.into();
    }
    let (mut taken, mut style_end) = (0, None);
    let is_in = |character: &char| {
        taken += columns_of(*character, &mut style_end);
        taken < columns
    };
    line.chars().take_while(is_in).chain(['…']).collect()
}

/// The line cut or padded to exactly this many columns.
pub fn fit(line: &str, columns: usize) -> String {
    let line = cut(line, columns);
    let missing = columns.saturating_sub(width(&line));
    line + &" ".repeat(missing)
}

/// Breaks lines between words. The rest of a line starts below its first word.
pub fn wrap(text: &str, columns: usize) -> String {
    let lines = text.split('\n').map(|line| {
        let words = line.trim_start_matches(' ');
        let bullet = if words.starts_with("- ") { 2 } else { 0 };
        wrap_line(line, columns, line.len() - words.len() + bullet)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Breaks lines between words. The rest of a line is indented by this many columns.
pub fn wrap_hanging(text: &str, columns: usize, indent: usize) -> String {
    let lines = text.split('\n').map(|line| wrap_line(line, columns, indent));
    lines.collect::<Vec<_>>().join("\n")
}

fn wrap_line(line: &str, columns: usize, indent: usize) -> String {
    if width(line) <= columns {
        return line.into();
    }
    // On a narrow terminal, a deep indent would leave no space for words.
    let indent = if indent > columns / 2 { 2 } else { indent };
    let mut wrapped = String::with_capacity(line.len() + line.len() / 8);
    let (mut taken, mut has_word, mut spaces) = (0, false, 0);
    for word in line.split(' ') {
        let word_columns = width(word);
        if word.is_empty() {
            spaces += 1;
            continue;
        }
        // A break directly after a bullet gains nothing.
        if taken + spaces > indent && has_word && taken + spaces + word_columns > columns {
            wrapped.push('\n');
            // A long word may fit if it starts further left.
            taken = indent.min(columns.saturating_sub(word_columns));
            wrapped.push_str(&" ".repeat(taken));
        } else {
            wrapped.push_str(&" ".repeat(spaces));
            taken += spaces;
        }
        wrapped.push_str(word);
        taken += word_columns;
        (has_word, spaces) = (true, 1);
    }
    wrapped
}

/// The columns of a character. `style_end` is the end of the colour that we are in.
fn columns_of(character: char, style_end: &mut Option<char>) -> usize {
    if let Some(end) = *style_end {
        if character == end {
            *style_end = None;
        }
        return 0;
    }
    if let Some((_, end)) = STYLES.iter().find(|(start, _)| *start == character) {
        *style_end = Some(*end);
        return 0;
    }
    if character == '\t' { TAB_COLUMNS } else { character.width().unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_keep_their_indent() {
        let text = format!("  - {}\nshort", "word ".repeat(40).trim_end());
        let wrapped = wrap(&text, 30);
        let lines: Vec<&str> = wrapped.lines().collect();
        assert!(lines.iter().all(|line| width(line) <= 30), "{wrapped}");
        assert!(lines[0].starts_with("  - word") && lines[1].starts_with("    word"), "{wrapped}");
        assert_eq!(wrapped.matches("word").count(), 40);
        assert_eq!(lines.last(), Some(&"short"));
        assert_eq!(wrap("a  b   c", 80), "a  b   c");
    }

    #[test]
    fn a_long_word_stays_whole_on_its_own_line() {
        let path = "/a".repeat(30);
        assert_eq!(wrap(&format!("see {path} for it"), 20), format!("see\n{path}\nfor it"));
        assert_eq!(wrap_hanging("one two three", 9, 4), "one two\n    three");
        assert_eq!(wrap(&format!("- {path}"), 20), format!("- {path}"));
    }

    #[test]
    fn colours_take_no_columns_and_wide_letters_take_two() {
        assert_eq!(width("\x1b[31mred\x1b[0m \u{fdd0}id31\u{fdd1}x"), 5);
        assert_eq!(
            (width("世界"), cut("世界人", 5), fit("世", 4)),
            (4, "世界…".into(), "世  ".into())
        );
        assert_eq!(cut("\x1b[31mabcde", 4), "\x1b[31mabc…");
        assert_eq!((cut("abcd", 4), cut("abcde", 4)), ("abcd".into(), "abc…".into()));
        assert_eq!(wrap("\x1b[1mone two\x1b[0m three", 7), "\x1b[1mone two\x1b[0m\nthree");
    }
}
