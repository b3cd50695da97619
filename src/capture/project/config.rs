//! Reads the remote and the working tree from a git configuration.

/// Values of the sections `remote` and `core`.
#[derive(Debug, Default, PartialEq)]
pub(super) struct GitConfig {
    remotes: Vec<(String, String)>,
    worktree: Option<String>,
}

impl GitConfig {
    /// Parses the file; invalid lines are skipped.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).replace("\\\r\n", "").replace("\\\n", "");
        let mut config = Self::default();
        let mut section = Section::Other;
        for line in text.trim_start_matches('\u{feff}').lines().map(str::trim) {
            let assignment = match line.strip_prefix('[').and_then(header) {
                Some((found, rest)) => {
                    section = found;
                    rest
                }
                None => line,
            };
            config.take(&section, assignment);
        }
        config
    }

    /// The URL of `origin`, or else of the first remote.
    pub(super) fn remote_url(&self) -> Option<&str> {
        let origin = self.remotes.iter().find(|(name, _)| name == "origin");
        origin.or(self.remotes.first()).map(|(_, url)| url.as_str())
    }

    /// The path of the working tree, for a repository kept elsewhere.
    pub(super) fn worktree(&self) -> Option<&str> {
        self.worktree.as_deref()
    }

    fn take(&mut self, section: &Section, assignment: &str) {
        let Some((key, written)) = assignment.split_once('=') else { return };
        let key = key.trim();
        match section {
            Section::Remote(name) if key.eq_ignore_ascii_case("url") => {
                self.remotes.push((name.clone(), value(written)));
            }
            Section::Core if key.eq_ignore_ascii_case("worktree") => {
                self.worktree = Some(value(written));
            }
            _ => {}
        }
    }
}

#[derive(Debug)]
enum Section {
    Remote(String),
    Core,
    Other,
}

/// The section named between the brackets, and the rest of the line.
fn header(inside: &str) -> Option<(Section, &str)> {
    let (kind, rest) = inside.split_at(inside.find(['"', ']', ' ', '\t'])?);
    let rest = rest.trim_start();
    let Some(quoted) = rest.strip_prefix('"') else {
        let section =
            if kind.eq_ignore_ascii_case("core") { Section::Core } else { Section::Other };
        return Some((section, rest.strip_prefix(']')?.trim()));
    };
    let mut name = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => {
                let is_remote = kind.eq_ignore_ascii_case("remote");
                let section = if is_remote { Section::Remote(name) } else { Section::Other };
                return Some((section, quoted[at + 1..].trim_start().strip_prefix(']')?.trim()));
            }
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            plain => name.push(plain),
        }
    }
    None
}

/// A value without quotes, escapes and the comment after it.
fn value(written: &str) -> String {
    let mut value = String::new();
    let mut is_quoted = false;
    let mut characters = written.trim().chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => is_quoted = !is_quoted,
            '#' | ';' if !is_quoted => break,
            '\\' => value.extend(characters.next()),
            plain => value.push(plain),
        }
    }
    value.trim_end().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_is_preferred_over_other_remotes() {
        let config = GitConfig::parse(
            b"[core]\n\tbare = false\n[remote \"fork\"]\n\turl = https://b/c\n\tfetch = +refs/*\n\
              [Remote \"origin\"]\n\tURL = \"https://a/b\" ; mine\n[branch \"url\"]\n\turl = no\n",
        );
        assert_eq!(config.remote_url(), Some("https://a/b"));
        let config = GitConfig::parse(b"[remote \"fork\"] url = https://b/c # theirs\r\n");
        assert_eq!(config.remote_url(), Some("https://b/c"));
    }

    #[test]
    fn invalid_lines_are_skipped() {
        for nonsense in [
            &b"\xff\xfe\x00[remote"[..],
            b"[remote \"orig",
            b"[remote \"origin\\",
            b"url = x",
            b"[]\n=\n[\"\"]",
            b"[remote \"origin\"\nurl = x",
        ] {
            assert_eq!(GitConfig::parse(nonsense), GitConfig::default(), "{nonsense:?}");
        }
    }
}
