//! Patterns of folders, checked so that none is stored that can never match.

use std::path::is_separator;

use super::value::{Kind, SettingValue};

/// A pattern of folders, such as `~/clients/*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderPattern(String);

impl FolderPattern {
    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it names exactly one path.
    pub fn is_plain_path(&self) -> bool {
        let is_from_root = self.0.starts_with('~') || std::path::Path::new(&self.0).is_absolute();
        is_from_root && !self.0.contains(['*', '?'])
    }

    fn parse(text: &str) -> Result<Self, String> {
        match fault(text) {
            None => Ok(Self(text.into())),
            Some(fault) => Err(format!("folders such as `~/clients/*`: in `{text}`, {fault}")),
        }
    }
}

impl SettingValue for Vec<FolderPattern> {
    type Spec = ();
    fn of_spec((): ()) -> Self {
        Self::new()
    }
    fn parse((): (), text: &str) -> Result<Self, String> {
        let patterns = <Vec<String> as SettingValue>::parse(&[], text)?;
        patterns.iter().map(|pattern| FolderPattern::parse(pattern)).collect()
    }
    fn to_text(&self) -> String {
        self.iter().map(FolderPattern::as_str).collect::<Vec<_>>().join(",")
    }
    fn kind((): ()) -> Kind {
        Kind::List
    }
}

/// Why a pattern would not match what its author expects. Any character of a name can be written as
/// `?`, so every folder still has a valid pattern.
fn fault(pattern: &str) -> Option<String> {
    let is_special = |c: &char| "[]{}\"".contains(*c) || *c == '\\' && !is_separator('\\');
    if let Some(special) = pattern.chars().find(is_special) {
        return Some(format!("`{special}` has no meaning; write `?` for any character"));
    }
    if let Some(first) = pattern.chars().next().filter(|first| "!#$%'".contains(*first)) {
        return Some(format!("the beginning `{first}` has no meaning"));
    }
    for (at, name) in pattern.split(is_separator).enumerate() {
        if matches!(name, "." | "..") {
            return Some(format!("`{name}` has no meaning; write the whole path"));
        }
        if name.starts_with('~') && (at == 0) == (name.len() > 1) {
            return Some("`~` is not the whole first name of the path".into());
        }
        let is_drive = at == 0 && name.len() == 2;
        if name.trim_end_matches('~').ends_with([' ', ';', ':']) && !is_drive {
            return Some("several folders are not separated by commas".into());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Option<String> {
        <Vec<FolderPattern> as SettingValue>::parse((), text).err()
    }

    #[test]
    fn patterns_that_can_match_are_accepted() {
        for text in [
            "",
            " , ",
            "/",
            "~",
            "~/a b/**, /c//d/ ,,e-*",
            "**/node_modules",
            "C:/Users/ada",
            "/x/~tmp",
            "/x/copy~",
            "/it's/100%/$x/#1/!",
            "notes; old/x",
        ] {
            assert_eq!(faults(text), None, "{text}");
        }
    }

    #[test]
    fn patterns_that_would_exclude_nothing_are_refused() {
        for (text, fault) in [
            ("~/[ab]", "`[` has no meaning; write `?` for any character"),
            ("~/{a,b}", "`{` has no meaning; write `?` for any character"),
            ("~/a,b}", "`}` has no meaning; write `?` for any character"),
            ("\"~/a\"", "`\"` has no meaning; write `?` for any character"),
            ("'~/a'", "the beginning `'` has no meaning"),
            ("!~/a", "the beginning `!` has no meaning"),
            ("$HOME/a", "the beginning `$` has no meaning"),
            ("%USERPROFILE%/a", "the beginning `%` has no meaning"),
            ("./a", "`.` has no meaning; write the whole path"),
            ("/a/../b", "`..` has no meaning; write the whole path"),
            ("~bob/a", "`~` is not the whole first name of the path"),
            ("/~/a", "`~` is not the whole first name of the path"),
            ("~/a:~/b", "several folders are not separated by commas"),
            ("~/a;~/b", "several folders are not separated by commas"),
            ("~/a; ~/b", "several folders are not separated by commas"),
            ("/a /b", "several folders are not separated by commas"),
            ("/a:/b", "several folders are not separated by commas"),
            ("file:///a", "several folders are not separated by commas"),
        ] {
            let found = faults(text).unwrap_or_default();
            assert!(found.ends_with(fault), "{text}: {found}");
        }
        let backslash = faults(r"~\a").is_some();
        assert_eq!(backslash, !is_separator('\\'));
    }
}
