//! Finds the repository of a worktree from its path alone. Worktrees are removed when their branch
//! is merged, and their sessions are imported later, or on another machine.

const SEPARATORS: [char; 2] = ['/', '\\'];

/// The folder of the repository that a path in a worktree belongs to. Three layouts are recognized:
///
/// - `REPOSITORY/.claude/worktrees/NAME`, as created by Claude Code,
/// - `REPOSITORY/.worktrees/NAME`,
/// - `FOLDER/worktrees/REPOSITORY/NAME/REPOSITORY`, next to `FOLDER/REPOSITORY`.
pub(super) fn repository_of(path: &str) -> Option<String> {
    let mut parts: Vec<(usize, &str)> = Vec::new();
    let mut start = 0;
    for part in path.split(SEPARATORS) {
        parts.push((start, part));
        start += part.len() + 1;
    }
    let name = |at: usize| parts.get(at).map_or("", |(_, part)| *part);
    // The path up to the separator before a part.
    let before =
        |at: usize| parts.get(at).map_or("", |(start, _)| &path[..start.saturating_sub(1)]);
    let repository = |at: usize| match name(at) {
        _ if name(at + 1).is_empty() => None,
        "worktrees" if at > 1 && name(at - 1) == ".claude" => Some(before(at - 1).to_owned()),
        ".worktrees" => Some(before(at).to_owned()),
        "worktrees" if at > 0 && name(at + 1) == name(at + 3) => {
            let folder = before(at);
            let separator = &path[folder.len()..=folder.len()];
            Some(format!("{folder}{separator}{}", name(at + 1)))
        }
        _ => None,
    };
    (0..parts.len()).find_map(repository).filter(|folder| !folder.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_a_worktree_names_its_repository() {
        let table = [
            ("/w/shop/.claude/worktrees/calm-fox", Some("/w/shop")),
            ("/w/shop/.claude/worktrees/calm-fox/src", Some("/w/shop")),
            ("C:\\w\\shop\\.claude\\worktrees\\calm-fox", Some("C:\\w\\shop")),
            ("C:/w/shop/.worktrees/fix", Some("C:/w/shop")),
            ("/w/worktrees/shop/calm-fox/shop", Some("/w/shop")),
            ("/w/worktrees/shop/calm-fox/shop/src", Some("/w/shop")),
            ("/w/shop/.claude/worktrees/a/.claude/worktrees/b", Some("/w/shop")),
            ("/w/shop/.claude/worktrees", None),
            ("/w/shop/.claude/worktrees/", None),
            ("/w/worktrees/shop/calm-fox", None),
            ("/w/worktrees/shop", None),
            ("/.worktrees/fix", None),
            ("worktrees/shop/a/shop", None),
            ("", None),
        ];
        for (path, expected) in table {
            assert_eq!(repository_of(path).as_deref(), expected, "{path}");
        }
    }
}
