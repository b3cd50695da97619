//! Patterns for folders: `*` within a name, `**` across folders, `?` one character, `~` home.

use std::path::{Path, is_separator};

use crate::project::resolved;

/// Whether the pattern matches this folder or one above it. It is safer to exclude too much:
///
/// - `~/private` and `~/private/**` match the folder and everything below
/// - a name or relative path matches anywhere
/// - case does not matter
/// - if the pattern leads through symbolic links, their targets match, too
/// - without a home directory, a pattern with `~` matches everything
pub(crate) fn means(pattern: &str, folder: &Path, home: Option<&Path>) -> bool {
    let Some(pattern) = expanded(pattern, home) else { return true };
    let text = comparable(&folder.to_string_lossy());
    let is_match = |pattern: &str| matches(&parse(&anchored(&comparable(pattern))), &text);
    is_match(&pattern) || target(&pattern).is_some_and(|target| is_match(&target))
}

/// The pattern with the home directory in place of `~`; `None` if that is unknown.
fn expanded(pattern: &str, home: Option<&Path>) -> Option<String> {
    match pattern.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with(is_separator) => {
            home.map(|home| format!("{}{rest}", home.display()))
        }
        _ => Some(pattern.into()),
    }
}

/// The pattern with symbolic links resolved, if there are any before the first wildcard.
fn target(pattern: &str) -> Option<String> {
    let wildcard = pattern.find(['*', '?']).unwrap_or(pattern.len());
    let end = match &pattern[..wildcard] {
        all if wildcard == pattern.len() => all.len(),
        before => before.rfind(is_separator)?,
    };
    let (folder, rest) = pattern.split_at(end);
    let folder = Path::new(folder);
    let found = folder.is_absolute().then(|| resolved(folder))?;
    (found != folder).then(|| format!("{}{rest}", found.display()))
}

/// In lower case, with one `/` between folders and none at the end. Recorded paths can be those of another system.
fn comparable(path: &str) -> String {
    let mut text = path.replace('\\', "/").to_lowercase();
    while text.contains("//") {
        text = text.replace("//", "/");
    }
    text.truncate(text.trim_end_matches('/').len());
    text
}

/// Without `**` at the end, which adds nothing, and with `**/` before a relative path.
fn anchored(pattern: &str) -> String {
    let mut pattern = pattern;
    while let Some(shorter) = pattern.strip_suffix("/**") {
        pattern = shorter;
    }
    match pattern.is_empty() || pattern.starts_with('/') {
        true => pattern.into(),
        false => format!("**/{pattern}"),
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

/// Whether the tokens match the text or the path of a folder above it. Follows all ways through
/// the pattern at once, so that the time is at most text times pattern. Backtracking would take
/// exponential time on `*a*a*a*a*b`.
fn matches(tokens: &[Token], text: &str) -> bool {
    let mut reached = vec![false; tokens.len() + 1];
    let mut next = reached.clone();
    reached[0] = true;
    pass_over(tokens, &mut reached);
    for character in text.chars() {
        if character == '/' && reached[tokens.len()] {
            return true;
        }
        next.fill(false);
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
        std::mem::swap(&mut reached, &mut next);
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
            ("/a//b", "/a/b", true),
            ("/a/**", "/a", true),
            ("/a/**", "/a/b/c", true),
            ("/a/**", "/ab", false),
            ("/a/**/**/", "/a", true),
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
            ("secret-*", "/x/secret-one/y", true),
            ("secret-*", "/x/not-secret-one", false),
            ("secret", "/x/secretly", false),
            ("work/secret", "/home/ada/work/secret/x", true),
            ("work/secret", "/home/ada/homework/secret", false),
            ("home/ada", "/home/ada", true),
            ("*/secret", "/home/ada/secret", true),
            ("~/Private", "/home/Ada/private", true),
            ("C:/Users/ada", r"c:\users\ada\x", true),
            ("ada", r"C:\Users\ada", true),
            ("/", "/x", true),
            ("//", "/x", true),
            ("**", "/x", true),
            ("/**", "/x", true),
            ("**/", "/x/y", true),
        ];
        for (pattern, folder, expected) in cases {
            let found = means(pattern, Path::new(folder), Some(Path::new("/home/ada")));
            assert_eq!(found, expected, "{pattern} {folder}");
        }
    }

    #[test]
    fn without_a_home_directory_a_pattern_with_one_excludes_everything() {
        assert!(means("~/private", Path::new("/x"), None));
        assert!(!means("/private", Path::new("/x"), None));
    }

    #[test]
    fn the_target_of_a_link_is_excluded_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let home = std::fs::canonicalize(dir.path()).unwrap();
        let target = home.join("disk/target");
        std::fs::create_dir_all(target.join("inside")).unwrap();
        std::os::unix::fs::symlink(&target, home.join("link")).unwrap();
        for (pattern, folder, expected) in [
            ("~/link", "", true),
            ("~/link/**", "inside", true),
            ("~/link/*", "", false),
            ("~/link/in*", "inside", true),
            ("~/link/missing", "missing/x", true),
            ("~/link/missing", "inside", false),
        ] {
            let found = means(pattern, &target.join(folder), Some(&home));
            assert_eq!(found, expected, "{pattern} {folder}");
        }
    }

    #[test]
    fn a_hostile_pattern_takes_steps_in_proportion_to_its_length() {
        let pattern = format!("/{}b", "*a**?".repeat(200));
        assert!(!means(&pattern, Path::new(&format!("/{}", "a".repeat(4000))), None));
    }
}
