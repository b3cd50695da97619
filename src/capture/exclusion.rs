//! Projects that settings exclude from recording.

use std::path::{Path, is_separator};

use serde_json::Value;

use crate::{
    glob,
    project::{ProjectId, resolved},
};
use claude_mem_core::settings::{
    AnySetting, Settings,
    table::{DISABLED_PROJECTS, ENABLED, EXCLUDED_PROJECTS},
};

/// The reason given when the exclusions are unknown.
const FILE: &str = "settings.json";

/// The setting that excludes this session, or `None` if it may be recorded. One excluded folder of
/// the session is enough: a worktree of an excluded repository is excluded, wherever it is located.
pub fn excluded_by(
    settings: &Settings,
    project: &ProjectId,
    cwd: &Path,
    home: Option<&Path>,
) -> Option<&'static str> {
    if settings.is_unknown() {
        return Some(FILE);
    }
    let lists: [&dyn AnySetting; 2] = [&EXCLUDED_PROJECTS, &DISABLED_PROJECTS];
    for setting in lists {
        if settings.is_doubtful(setting) {
            return Some(setting.name());
        }
    }
    if !settings.get(&ENABLED) {
        return Some(ENABLED.name);
    }
    if settings.get(&DISABLED_PROJECTS).contains(&project.key) {
        return Some(DISABLED_PROJECTS.name);
    }
    let patterns = settings.get(&EXCLUDED_PROJECTS);
    let folders = [Some(project.root.as_path()), project.common_dir.as_deref(), Some(cwd)];
    let is_excluded = patterns.iter().any(|pattern| {
        folders.iter().flatten().any(|folder| glob::matches(pattern.as_str(), folder, home))
    });
    is_excluded.then_some(EXCLUDED_PROJECTS.name)
}

/// Whether a tool uses a file of an excluded folder. Names and commands are searched for paths, but
/// not the texts that a tool writes.
pub(crate) fn names_excluded_file(
    settings: &Settings,
    input: &str,
    cwd: &Path,
    home: Option<&Path>,
) -> bool {
    const VALUE_BYTES_MAX: usize = 8 << 10;
    const PATHS_MAX: usize = 100;
    let patterns = settings.get(&EXCLUDED_PROJECTS);
    if patterns.is_empty() {
        return false;
    }
    let Ok(Value::Object(members)) = serde_json::from_str(input) else { return false };
    let values = members.values().flat_map(|value| match value {
        Value::Array(items) => items.iter().collect::<Vec<_>>(),
        value => vec![value],
    });
    let texts = values.filter_map(Value::as_str).filter(|text| text.len() <= VALUE_BYTES_MAX);
    let between = |c: char| c.is_whitespace() || "\"'`;|&<>()=,".contains(c);
    let words = texts.flat_map(|text| std::iter::once(text).chain(text.split(between)));
    let paths = words.filter(|word| word.contains(is_separator) && !word.contains('\n'));
    paths.take(PATHS_MAX).any(|word| {
        let path = match (word.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => cwd.join(word.strip_prefix("file://").unwrap_or(word)),
        };
        let paths = [resolved(&path), path];
        patterns
            .iter()
            .any(|pattern| paths.iter().any(|path| glob::matches(pattern.as_str(), path, home)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use claude_mem_core::{environment::Environment, paths::Paths};

    fn settings(environment: &[(&str, &str)]) -> Settings {
        let paths = Paths { home: None, data: "/nowhere".into() };
        Settings::load(&paths, &Environment::fixed(environment))
    }

    /// A worktree below `/tmp` of a repository below `~/work`.
    fn worktree() -> ProjectId {
        ProjectId {
            key: "github.com/ada/shop".into(),
            label: "shop".into(),
            root: "/tmp/fix-1".into(),
            remote: Some("github.com/ada/shop".into()),
            common_dir: Some("/home/ada/work/shop/.git".into()),
            git_dir: Some("/home/ada/work/shop/.git".into()),
        }
    }

    #[test]
    fn one_excluded_folder_is_enough() {
        let cases = [
            ("", None),
            ("~/work", Some("CLAUDE_MEM_EXCLUDED_PROJECTS")),
            ("~/home/[x]", Some("CLAUDE_MEM_EXCLUDED_PROJECTS")),
            ("~/home, /tmp/*", Some("CLAUDE_MEM_EXCLUDED_PROJECTS")),
            ("inside", Some("CLAUDE_MEM_EXCLUDED_PROJECTS")),
            ("~/works,/tmp/fix", None),
        ];
        for (patterns, expected) in cases {
            let settings = settings(&[("CLAUDE_MEM_EXCLUDED_PROJECTS", patterns)]);
            let home = Some(Path::new("/home/ada"));
            let found = excluded_by(&settings, &worktree(), Path::new("/tmp/fix-1/inside"), home);
            assert_eq!(found, expected, "{patterns}");
        }
    }

    #[test]
    fn a_file_of_an_excluded_folder_is_excluded_wherever_it_is_used() {
        let settings = settings(&[("CLAUDE_MEM_EXCLUDED_PROJECTS", "~/clients/**")]);
        let home = Some(Path::new("/home/ada"));
        for (input, expected) in [
            (r#"{"file_path": "/home/ada/clients/x/plan.md"}"#, true),
            (r#"{"file_path": "~/clients/x/plan.md"}"#, true),
            (r#"{"path": "../clients/x"}"#, true),
            (r#"{"paths": ["a", "file:///home/ada/clients/x"]}"#, true),
            (r#"{"command": "cd ~/work && cat '/home/ada/clients/x/plan.md'|wc"}"#, true),
            (r#"{"file_path": "/home/ada/work/clients.md"}"#, false),
            (r#"{"command": "ls /home/ada"}"#, false),
            ("[]", false),
        ] {
            let found = names_excluded_file(&settings, input, Path::new("/home/ada/work"), home);
            assert_eq!(found, expected, "{input}");
        }
    }

    #[test]
    fn a_project_can_be_switched_off_by_its_key_and_everything_at_once() {
        let found = |environment| {
            excluded_by(&settings(environment), &worktree(), Path::new("/tmp/fix-1"), None)
        };
        let off = [("CLAUDE_MEM_DISABLED_PROJECTS", "x,github.com/ada/shop")];
        assert_eq!(found(&off), Some("CLAUDE_MEM_DISABLED_PROJECTS"));
        assert_eq!(found(&[("CLAUDE_MEM_ENABLED", "off")]), Some("CLAUDE_MEM_ENABLED"));
        assert_eq!(found(&[("CLAUDE_MEM_DISABLED_PROJECTS", "github.com/ada")]), None);
    }
}
