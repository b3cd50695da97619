//! Patterns for folders: `*` within a name, `**` across folders, `?` one character, `~` home.

use std::path::Path;

use claude_mem_core::os::comparable;

/// Whether the pattern matches this folder or one above it. It is safer to exclude too much, so
/// `~/private` also matches everything below, and a pattern without a slash matches any folder of
/// that name.
pub(crate) fn means(pattern: &str, folder: &Path, home: Option<&Path>) -> bool {
    let pattern = expanded(pattern, home);
    let pattern = comparable(&pattern);
    let pattern = pattern.trim_end_matches('/');
    if pattern.is_empty() {
        return false;
    }
    let tokens = parse(pattern);
    folder.ancestors().any(|folder| {
        let text =
            if pattern.contains('/') { Some(folder.as_os_str()) } else { folder.file_name() };
        text.is_some_and(|text| matches(&tokens, &comparable(&text.to_string_lossy())))
    })
}

fn expanded(pattern: &str, home: Option<&Path>) -> String {
    match (pattern.strip_prefix('~'), home) {
        (Some(rest), Some(home))
            if rest.is_empty() || rest.starts_with(std::path::is_separator) =>
        {
            format!("{}{rest}", home.display())
        }
        _ => pattern.into(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Token {
    Exactly(char),
    OneCharacter,
    WithinName,
    AcrossFolders,
    /// Before `AcrossFolders` and a slash, which are both optional: `a/**/b` also matches `a/b`.
    MaybeFolders,
}

fn parse(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = pattern;
    while let Some(character) = rest.chars().next() {
        let is_at_start = matches!(tokens.last(), None | Some(Token::Exactly('/')));
        let across = rest.trim_start_matches('*');
        if rest.len() - across.len() >= 2 {
            if is_at_start && across.starts_with('/') {
                tokens.push(Token::MaybeFolders);
            }
            tokens.push(Token::AcrossFolders);
            rest = across;
            continue;
        }
        tokens.push(match character {
            '*' => Token::WithinName,
            '?' => Token::OneCharacter,
            exactly => Token::Exactly(exactly),
        });
        rest = &rest[character.len_utf8()..];
    }
    tokens
}

/// Follows all paths through the pattern at once, so that the time is at most text times pattern.
/// Backtracking would take exponential time on `*a*a*a*a*b`.
fn matches(tokens: &[Token], text: &str) -> bool {
    let mut reached = vec![false; tokens.len() + 1];
    reached[0] = true;
    pass_over(tokens, &mut reached);
    for character in text.chars() {
        let mut next = vec![false; tokens.len() + 1];
        for (at, token) in tokens.iter().enumerate().filter(|(at, _)| reached[*at]) {
            match token {
                Token::Exactly(exactly) => next[at + 1] |= *exactly == character,
                Token::OneCharacter => next[at + 1] |= character != '/',
                Token::WithinName => next[at] |= character != '/',
                Token::AcrossFolders => next[at] = true,
                Token::MaybeFolders => {}
            }
        }
        pass_over(tokens, &mut next);
        reached = next;
    }
    reached[tokens.len()]
}

/// Skips pattern parts that can match nothing.
fn pass_over(tokens: &[Token], reached: &mut [bool]) {
    for (at, token) in tokens.iter().enumerate() {
        if !reached[at] {
            continue;
        }
        match token {
            Token::WithinName | Token::AcrossFolders => reached[at + 1] = true,
            Token::MaybeFolders => {
                reached[at + 1] = true;
                reached[at + 3] = true;
            }
            Token::Exactly(_) | Token::OneCharacter => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_the_expected_folders() {
        let cases = [
            ("/a/b", "/a/b", true),
            ("/a/b", "/a/b/c/d", true),
            ("/a/b", "/a/bc", false),
            ("/a/b/", "/a/b", true),
            ("/a/*", "/a", false),
            ("/a/*/c", "/a/b/c", true),
            ("/a/*/c", "/a/b/x/c", false),
            ("/a/**/c", "/a/b/x/c", true),
            ("/a/**/c", "/a/c", true),
            ("/a/**/c", "/a/bc", false),
            ("**/secret", "/x/y/secret/z", true),
            ("**/secret", "/x/y/secrets", false),
            ("/a/?", "/a/b", true),
            ("/a/?", "/a/bb", false),
            ("/ä/?", "/ä/ü", true),
            ("~/private", "/home/ada/private/notes", true),
            ("~", "/home/ada/x", true),
            ("~bob/x", "/home/ada/x", false),
            ("secret-*", "/x/secret-one/y", true),
            ("secret-*", "/x/not-secret-one", false),
            ("", "/x", false),
            ("/", "/x", false),
            ("**", "/x", true),
        ];
        for (pattern, folder, expected) in cases {
            let found = means(pattern, Path::new(folder), Some(Path::new("/home/ada")));
            assert_eq!(found, expected, "{pattern} {folder}");
        }
    }

    #[test]
    fn a_hostile_pattern_takes_steps_in_proportion_to_its_length() {
        let pattern = format!("/{}b", "*a**?".repeat(200));
        assert!(!means(&pattern, Path::new(&format!("/{}", "a".repeat(4000))), None));
    }
}
