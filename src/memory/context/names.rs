//! Finds names in a text: files, identifiers, URLs, numbers. Sessions mostly search for these.

use std::borrow::Cow;

/// The names in a text, in lower case. A path is represented by its last part.
pub(super) fn names(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    text.split(is_between).filter_map(name)
}

fn is_between(letter: char) -> bool {
    match letter {
        '`' | '\'' | '"' | '“' | '”' | '‘' | '’' | '(' | ')' | '[' | ']' | '{' | '}' | '<'
        | '>' | '‹' | '›' | ',' | ';' | '=' | '|' | '→' | '…' => true,
        letter => letter.is_whitespace(),
    }
}

/// The name in a word, if it is something that does not occur in plain prose.
fn name(word: &str) -> Option<Cow<'_, str>> {
    if is_plain(word) {
        return None;
    }
    let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
    if is_plain(word) {
        return None;
    }
    let last = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let mut letters = last.chars();
    let has_inner_capital = letters.next().is_some()
        && last.chars().any(char::is_lowercase)
        && letters.any(char::is_uppercase);
    let digits = last.chars().filter(char::is_ascii_digit).count();
    let has_joint = last.contains(['_', '.', '-', ':']);
    let is_capitals = last.len() > 2 && last.chars().all(char::is_uppercase);
    let is_path = last.len() < word.len();
    let is_name = is_path || has_inner_capital || digits > 2 || has_joint || is_capitals;
    (is_name && last.chars().count() > 2).then(|| match last.contains(char::is_uppercase) {
        true => last.to_lowercase().into(),
        false => last.into(),
    })
}

/// Whether a word has only letters, at most the first a capital. Nearly all words do.
fn is_plain(word: &str) -> bool {
    word.bytes().skip(1).all(|byte| byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_identifiers_addresses_and_numbers_are_names() {
        let table = [
            ("Fixed the total in src/cart.rs.", "cart.rs"),
            ("`readReply` calls read_reply (twice)", "readreply read_reply"),
            ("ssh root@10.0.0.17, then /usr/local/go/bin", "root@10.0.0.17 bin"),
            ("see PR 7668 of the API", "7668 api"),
            ("The cache is slow again", ""),
            ("缓存很慢", ""),
        ];
        for (text, expected) in table {
            assert_eq!(names(text).collect::<Vec<_>>().join(" "), expected, "{text}");
        }
    }
}
