//! Text functions: normalizing, clipping, joining and matching phrases.

/// Longer titles are too long for lists.
pub(super) const TITLE_CHARS_MAX: usize = 120;

/// A longer sentence becomes a title only if none of its clauses fits.
const TITLE_CHARS_GOOD: usize = 90;

// Lists of words and phrases are strings with `|` as the separator. An array would take one line
// per entry.

/// The entries of a list.
pub(super) fn alternatives(list: &str) -> std::str::Split<'_, char> {
    list.split('|')
}

/// Whether the text contains an entry of the list.
pub(super) fn contains_any(text: &str, list: &str) -> bool {
    alternatives(list).any(|mark| text.contains(mark))
}

/// Whether the text starts with an entry of the list.
pub(super) fn starts_with_any(text: &str, list: &str) -> bool {
    alternatives(list).any(|mark| text.starts_with(mark))
}

/// Whether the word is an entry of the list.
pub(super) fn is_among(word: &str, list: &str) -> bool {
    alternatives(list).any(|mark| word == mark)
}

/// Separates words by single spaces, with a space before and after, so that ` word ` matches whole
/// words. A comma becomes a separate word.
pub(super) fn padded(lower: &str) -> String {
    let mut out = String::with_capacity(lower.len() + 2);
    out.push(' ');
    for c in lower.chars() {
        let is_word = c.is_alphanumeric() || matches!(c, '\'' | '_' | '-' | '#');
        if is_word {
            out.push(c);
        } else {
            if !out.ends_with(' ') {
                out.push(' ');
            }
            if c == ',' {
                out.push_str(", ");
            }
        }
    }
    if !out.ends_with(' ') {
        out.push(' ');
    }
    out
}

/// Collapses white space into single spaces.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Clips a text to one line of at most `chars_max` characters, at a word boundary if there is one.
pub(super) fn clip(text: &str, chars_max: usize) -> String {
    let text = one_line(text);
    let Some((end, _)) = text.char_indices().nth(chars_max) else { return text };
    let limit = text.char_indices().nth(chars_max.saturating_sub(1)).map_or(0, |(at, _)| at);
    let kept = &text[..limit];
    // No word is split if a space follows, or in scripts without spaces.
    let whole = text[limit..end].starts_with(' ');
    let cut = kept.rfind(' ').filter(|at| !whole && *at > limit / 2).unwrap_or(limit);
    let kept = kept[..cut].trim_end_matches(|c: char| c.is_whitespace() || ",;:–—-(".contains(c));
    let open = if kept.matches('`').count() % 2 == 1 { "`" } else { "" };
    format!("{kept}…{open}")
}

/// A title from any sentence: a clause that fits, or else as many words as fit. Never ends with an
/// ellipsis.
pub(super) fn title(sentence: &str) -> String {
    fitting_title(sentence).unwrap_or_else(|| {
        let bare = bare_title(sentence);
        let end = bare.char_indices().nth(TITLE_CHARS_MAX).map_or(bare.len(), |(at, _)| at);
        let kept = &bare[..end];
        let cut = kept.rfind(' ').filter(|at| end < bare.len() && *at > end / 2).unwrap_or(end);
        without_loose_end(&kept[..cut])
    })
}

/// A title from the sentence, or from its first clause, if one fits. Without full stop and label,
/// and capitalized.
pub(super) fn fitting_title(sentence: &str) -> Option<String> {
    let sentence = bare_title(sentence);
    let chars = sentence.chars().count();
    if chars <= TITLE_CHARS_GOOD {
        return Some(sentence).filter(|sentence| !sentence.is_empty());
    }
    let fitting = |marks: &str, chars_max: usize| {
        let is_fit = |end: &usize| {
            let head = &sentence[..*end];
            (35..=chars_max).contains(&head.chars().count())
                && head.matches('`').count().is_multiple_of(2)
                && head.matches('(').count() == head.matches(')').count()
                && head.matches('"').count().is_multiple_of(2)
        };
        let ends = alternatives(marks).flat_map(|mark| {
            sentence.match_indices(mark).map(|(at, _)| at).take_while(|at| *at < 4 * chars_max)
        });
        ends.filter(is_fit).max()
    };
    let clause = fitting(CLAUSES, TITLE_CHARS_GOOD);
    let whole = (chars <= TITLE_CHARS_MAX).then_some(sentence.len());
    let end = clause.or(whole).or_else(|| fitting(CLAUSES, TITLE_CHARS_MAX));
    let end = end.or_else(|| fitting(PHRASES, TITLE_CHARS_MAX))?;
    Some(without_loose_end(&sentence[..end]))
}

/// Labels before a statement: `Fix:`, `Problem:`, `Bug 1 —`.
const LABELS: &str = "\
    fix|fixed|problem|bug|issue|root cause|cause|summary|result|done|finding|note|change|changes|\
    step|what changed|what i did|tl;dr|short answer|answer|update|\
    важно|итог|\
    özet|sonuç|\
    总结|结论";

/// Introductions before a colon.
const INTRODUCTIONS: &str =
    "i found |i've found |i have found |found the |based on |after investigating |here's |here is ";
const SHORT_INTRODUCTIONS: &str = "\
    the fix |the issue |the problem |the cause |the root cause |the reason |the answer |\
    the short answer ";
const INTRODUCTION_WORDS_MAX: usize = 16;
const SHORT_INTRODUCTION_WORDS_MAX: usize = 4;

/// Whether a text only introduces the next one: "I've found the cause of the redirect:" or "The fix
/// is simple:".
pub(super) fn is_introduction(text: &str) -> bool {
    let Some(head) = text.strip_suffix([':', '：']) else { return false };
    let (lower, count) = (head.to_lowercase(), words(head));
    starts_with_any(&lower, INTRODUCTIONS) && count <= INTRODUCTION_WORDS_MAX
        || starts_with_any(&lower, SHORT_INTRODUCTIONS) && count <= SHORT_INTRODUCTION_WORDS_MAX
}

fn without_introduction(text: &str) -> &str {
    let end = text.find(": ").map_or(0, |at| at + 1);
    let rest = text[end..].trim_start();
    if is_introduction(&text[..end]) && words(rest) >= 4 { rest } else { text }
}

/// The sentence on one line, without label, introduction, numbering and full stop.
fn bare_title(sentence: &str) -> String {
    let sentence = one_line(sentence);
    let ends = ['.', '。', ':', ';', ',', '!', '：', '—', '–', ' '];
    let mut text = sentence.trim_end_matches(ends).trim();
    let label_end = text.char_indices().take(24).find_map(|(at, c)| {
        let rest = &text[at + c.len_utf8()..];
        let is_end = c == ':' && rest.starts_with(' ') || c == '：' || "—–".contains(c);
        is_end.then(|| (at, rest.trim_start()))
    });
    if let Some((at, rest)) = label_end {
        let label = text[..at].trim().to_lowercase();
        let name = label.trim_end_matches(|c: char| c.is_ascii_digit() || " #.()".contains(c));
        if is_among(name, LABELS) && words(rest) >= 3 {
            text = rest;
        }
    }
    let text = without_introduction(text);
    // A sentence that ends with a colon announces a list.
    let is_open = sentence.ends_with([':', '：']);
    sentence_case(&if is_open { without_loose_end(text) } else { text.to_owned() })
}

/// Removes an open bracket, or a last word that requires another one after it.
fn without_loose_end(text: &str) -> String {
    const LOOSE: &str = "\
        with|including|and|or|the|a|an|of|to|in|on|for|by|from|at|as|that|which|is|are|so|but|\
        via|into|not|containing|covering|like|because|where|when|while|than|using";
    let mut text = text.trim_end_matches(|c: char| " ,;:–—-(.".contains(c));
    while let Some((head, last)) = text.rsplit_once(' ') {
        if !is_among(last, LOOSE) {
            break;
        }
        text = head.trim_end_matches(|c: char| " ,;:–—-(.".contains(c));
    }
    let open = if text.matches('`').count() % 2 == 1 { "`" } else { "" };
    format!("{text}{open}")
}

/// Where a long sentence can be shortened: preferably between clauses, or else before a detail.
const CLAUSES: &str = "\
    : | — | – |; |, so |, which |, because | because |, and |, but | so that |\
    。|，|\
    , since | since ";
const PHRASES: &str = " with | when | after | through | (|, | while | by | instead of ";

/// Capitalizes the first letter, unless the first word is an identifier such as `iPhone` or `x_y`.
pub(super) fn sentence_case(text: &str) -> String {
    let first = text.split(' ').next().unwrap_or_default();
    let is_plain = first.chars().all(|c| c.is_lowercase() || ",:'’".contains(c));
    let mut chars = text.chars();
    match chars.next() {
        Some(c) if is_plain => c.to_uppercase().chain(chars).collect(),
        _ => text.to_owned(),
    }
}

/// Formats `a, b and 3 more`.
pub(super) fn listing(items: &[String], shown_max: usize) -> String {
    let more = items.len().saturating_sub(shown_max);
    let shown = &items[..items.len() - more];
    match (shown, more) {
        ([], 0) => String::new(),
        (shown, 0) => match shown.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
            None => String::new(),
        },
        (shown, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Wraps a text in backticks, unless it contains some.
pub(super) fn code(text: &str) -> String {
    if text.contains('`') { text.to_owned() } else { format!("`{text}`") }
}

/// A path relative to `cwd`.
pub(super) fn relative<'p>(path: &'p str, cwd: &str) -> &'p str {
    let cwd = cwd.trim_end_matches(['/', '\\']);
    // Windows accepts both separators, and drive letters in either case.
    let is_separator = |byte: u8| byte == b'/' || byte == b'\\';
    let is_same = |(at, (a, b)): (usize, (u8, u8))| {
        a == b || is_separator(a) && is_separator(b) || at == 0 && a.eq_ignore_ascii_case(&b)
    };
    let is_inside = path.len() > cwd.len() + 1
        && is_separator(path.as_bytes()[cwd.len()])
        && path.bytes().zip(cwd.bytes()).enumerate().all(is_same);
    if cwd.is_empty() || !is_inside { path } else { &path[cwd.len() + 1..] }
}

/// Adds an item unless the list contains it or has `items_max` items.
pub(super) fn add(list: &mut Vec<String>, item: impl Into<String>, items_max: usize) {
    let item = item.into();
    if !item.is_empty() && list.len() < items_max && !list.contains(&item) {
        list.push(item);
    }
}

/// The number of words. In scripts without spaces, two characters count as one word.
pub(super) fn words(text: &str) -> usize {
    let wide = text.chars().filter(|c| is_wide(*c)).count();
    let spaced = text.split_whitespace().filter(|word| !word.chars().any(is_wide)).count();
    spaced + wide / 2
}

/// Chinese, Japanese and Korean characters, which are written without spaces.
pub(super) fn is_wide(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_words_and_never_inside_a_character() {
        assert_eq!(clip("one two  three", 20), "one two three");
        assert_eq!(clip("one two three", 10), "one two…");
        assert_eq!(clip("use `one two three`", 13), "use `one two…`");
        for text in ["äöü".repeat(50), "日本語".repeat(50), "🎉 🎊".repeat(50)] {
            for chars_max in 0..60 {
                assert!(clip(&text, chars_max).chars().count() <= chars_max.max(1) + 1);
            }
        }
    }

    #[test]
    fn a_long_sentence_ends_at_a_clause() {
        let long = "login now waits five minutes after three failed attempts, because the counter \
                    is kept in Redis instead of memory.";
        assert_eq!(title(long), "Login now waits five minutes after three failed attempts");
        assert_eq!(title("iPhone builds work."), "iPhone builds work");
    }

    #[test]
    fn an_introduction_is_not_a_title() {
        let long = "Based on what I read, I've found the cause: the cart is rounded twice.";
        assert_eq!(title(long), "The cart is rounded twice");
        assert_eq!(title("The fix is simple: round the total once."), "Round the total once");
        let stated = "The problem was the cart: it was rounded twice.";
        assert_eq!(title(stated), "The problem was the cart: it was rounded twice");
        assert_eq!(title("I found it: carts."), "I found it: carts");
    }

    #[test]
    fn a_title_has_no_label_and_no_loose_end() {
        assert_eq!(title("Problem: the cart rounds twice."), "The cart rounds twice");
        assert_eq!(title("Bug 1 — the cart rounds twice"), "The cart rounds twice");
        assert_eq!(title("`cart.rs`: rounds once"), "`cart.rs`: rounds once");
        let long = format!("The cart {} with the", "rounds each line ".repeat(8));
        assert!(!title(&long).contains('…') && !title(&long).ends_with(" the"), "{}", title(&long));
        assert_eq!(fitting_title(&long), None);
    }

    #[test]
    fn lists_show_how_many_items_are_omitted() {
        let items = ["a", "b", "c", "d"].map(String::from);
        assert_eq!(listing(&items, 2), "a, b and 2 more");
        assert_eq!(listing(&items[..3], 3), "a, b and c");
        assert_eq!(listing(&items[..1], 3), "a");
        assert_eq!(listing(&[], 3), "");
    }

    #[test]
    fn paths_are_relative_only_inside_the_project() {
        assert_eq!(relative("/p/src/a.rs", "/p/"), "src/a.rs");
        assert_eq!(relative("/project/a.rs", "/p"), "/project/a.rs");
        assert_eq!(relative("/a.rs", ""), "/a.rs");
        assert_eq!(relative(r"D:\shop\src\a.rs", r"d:\shop"), r"src\a.rs");
        assert_eq!(relative("D:/shop/src/a.rs", r"D:\shop\"), "src/a.rs");
        assert_eq!(relative(r"D:\shopping\a.rs", r"D:\shop"), r"D:\shopping\a.rs");
    }
}
