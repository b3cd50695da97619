//! Patterns for folders: `*` within a name, `**` across folders, `?` one character, `~` home.

use std::{
    fs,
    path::{Path, PathBuf, is_separator},
};

use unicode_normalization::UnicodeNormalization as _;

use crate::project::resolved;
use claude_mem_core::os;

/// Whether the pattern matches this folder or one above it. It is safer to exclude too much:
///
/// - `~/private` and `~/private/**` match the folder and everything below
/// - a name or relative path matches anywhere
/// - case does not matter
/// - if the pattern leads through symbolic links, their targets match, too
/// - the same folder under another path matches: a bind mount, `/proc/1/root`
/// - without a home directory, a pattern with `~` matches everything
pub(crate) fn matches(pattern: &str, folder: &Path, home: Option<&Path>) -> bool {
    let Some(pattern) = expanded(pattern, home) else { return true };
    let text = comparable(&folder.to_string_lossy());
    let is_match = |pattern: &str| matches_tokens(&parse(&anchored(&comparable(pattern))), &text);
    is_match(&pattern)
        || targets(&pattern).iter().any(|target| is_match(target))
        || is_same_folder(&pattern, folder)
}

/// Whether the pattern is the path of this folder or of one above it, under another name.
fn is_same_folder(pattern: &str, folder: &Path) -> bool {
    let path = Path::new(pattern.trim_end_matches(['*', '/']));
    if pattern.contains('?') || path.to_string_lossy().contains('*') || !path.is_absolute() {
        return false;
    }
    // `~/a/*` means the folders in it.
    let ends_in_star = pattern.ends_with("/*");
    let Some(excluded) = os::file_id(path) else { return false };
    let above = folder.ancestors().skip(usize::from(ends_in_star));
    above.filter_map(os::file_id).any(|found| found == excluded)
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

/// The pattern with symbolic links resolved, up to and including its first name with a wildcard.
fn targets(pattern: &str) -> Vec<String> {
    const ENTRIES_MAX: usize = 10_000;
    let wildcard = pattern.find(['*', '?']).unwrap_or(pattern.len());
    let end = match &pattern[..wildcard] {
        all if wildcard == pattern.len() => all.len(),
        before => before.rfind(is_separator).unwrap_or(0),
    };
    let (folder, rest) = pattern.split_at(end);
    let folder = Path::new(folder);
    if !folder.is_absolute() {
        return Vec::new();
    }
    let found = resolved(folder);
    let mut targets: Vec<String> = Vec::new();
    if found != folder {
        targets.push(format!("{}{rest}", found.display()));
    }
    let name_end = rest[rest.len().min(1)..].find(is_separator).map_or(rest.len(), |end| end + 1);
    let (name, rest) = rest.split_at(name_end);
    let name = parse(&comparable(name));
    let is_link = |entry: &fs::DirEntry| {
        entry.file_type().is_ok_and(|kind| kind.is_symlink())
            && matches_tokens(&name, &comparable(&format!("/{}", entry.file_name().display())))
    };
    if !name.is_empty()
        && let Ok(entries) = fs::read_dir(&found)
    {
        let entries = entries.take(ENTRIES_MAX).filter_map(Result::ok);
        let links: Vec<PathBuf> =
            entries.filter(is_link).map(|entry| resolved(&entry.path())).collect();
        targets.extend(links.iter().map(|target| format!("{}{rest}", target.display())));
    }
    targets
}

/// In lower case and one form of Unicode, with one `/` between folders and none at the end. Recorded
/// paths can be those of another system.
fn comparable(path: &str) -> String {
    let mut text = path.replace('\\', "/").to_lowercase();
    if !text.is_ascii() {
        text = text.nfc().collect();
    }
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
fn matches_tokens(tokens: &[Token], text: &str) -> bool {
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
            let found = matches(pattern, Path::new(folder), Some(Path::new("/home/ada")));
            assert_eq!(found, expected, "{pattern} {folder}");
        }
    }

    #[test]
    fn without_a_home_directory_a_pattern_with_one_excludes_everything() {
        assert!(matches("~/private", Path::new("/x"), None));
        assert!(!matches("/private", Path::new("/x"), None));
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
            ("~/li*", "inside", true),
            ("~/li*/in*", "inside", true),
            ("~/li*/in*", "other", false),
            ("~/x*", "inside", false),
        ] {
            let found = matches(pattern, &target.join(folder), Some(&home));
            assert_eq!(found, expected, "{pattern} {folder}");
        }
    }

    #[test]
    fn the_same_folder_is_excluded_under_every_path() {
        let dir = tempfile::tempdir().unwrap();
        let home = std::fs::canonicalize(dir.path()).unwrap();
        std::fs::create_dir_all(home.join("secret/inside")).unwrap();
        let other = Path::new("/proc/self/root").join(home.strip_prefix("/").unwrap());
        for (pattern, folder, expected) in [
            ("~/secret", "secret/inside", true),
            ("~/secret/**", "secret", true),
            ("~/secret/*", "secret", false),
            ("~/secret/*", "secret/inside", true),
            ("~/secret/inside", "secret", false),
        ] {
            assert_eq!(matches(pattern, &other.join(folder), Some(&home)), expected, "{pattern}");
        }
        assert!(matches("~/caf\u{e9}", &home.join("cafe\u{301}"), Some(&home)));
    }

    #[test]
    fn a_hostile_pattern_takes_steps_in_proportion_to_its_length() {
        let pattern = format!("/{}b", "*a**?".repeat(200));
        assert!(!matches(&pattern, Path::new(&format!("/{}", "a".repeat(4000))), None));
    }
}
