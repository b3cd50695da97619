//! Plain words: no tracked file uses a phrase of tests/words.txt.

use std::{fs, path::Path, process::Command};

/// One row of tests/words.txt.
struct Phrase {
    in_source_code: bool,
    /// Lower case, single spaces.
    text: String,
    /// What to write instead.
    write: String,
}

fn phrases() -> Vec<Phrase> {
    let rows = include_str!("words.txt").lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| {
        let columns: Vec<&str> = row.split(" | ").collect();
        let [scope, text, write] = columns[..] else { panic!("not three columns: {row}") };
        assert!(["docs", "all"].contains(&scope), "unknown scope: {row}");
        assert_eq!(text, text.to_lowercase(), "{row}");
        Phrase { in_source_code: scope == "all", text: text.into(), write: write.into() }
    })
    .collect()
}

/// Whether this is documentation rather than source code. Results are written by source code.
fn is_documentation(path: &str) -> bool {
    [".md", ".yml", ".toml"].iter().any(|ending| path.ends_with(ending))
        && !path.starts_with("tools/results/")
}

/// Every use of a phrase, as `path:line: phrase: write ...`.
fn findings(path: &str, text: &str, phrases: &[Phrase]) -> Vec<String> {
    // One line of lower-case text without comment markers, and where each line of the file starts
    // in it.
    let (mut joined, mut starts) = (String::new(), Vec::new());
    for line in text.lines() {
        starts.push(joined.len());
        let content = line.trim_start().trim_start_matches(['/', '!', '#', '*', '-', '>']);
        joined.push_str(&content.trim().to_lowercase());
        joined.push(' ');
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for phrase in phrases.iter().filter(|phrase| phrase.in_source_code || is_documentation(path)) {
        for (at, _) in joined.match_indices(&phrase.text) {
            let before = joined[..at].chars().next_back();
            let after = joined[at + phrase.text.len()..].chars().next();
            if !before.is_some_and(is_word) && !after.is_some_and(is_word) {
                let line = starts.partition_point(|start| *start <= at);
                found.push(format!("{path}:{line}: \"{}\": write {}", phrase.text, phrase.write));
            }
        }
    }
    found
}

#[test]
fn no_tracked_file_uses_a_phrase_to_avoid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed = Command::new("git").arg("ls-files").current_dir(root).output().unwrap().stdout;
    let listed = String::from_utf8(listed).unwrap();
    let endings = [".rs", ".md", ".js", ".mjs", ".html", ".sql", ".yml", ".toml"];
    let paths = listed.lines().filter(|path| endings.iter().any(|ending| path.ends_with(ending)));
    let (phrases, mut found, mut files) = (phrases(), Vec::new(), 0);
    for path in paths {
        // A file that is deleted and not yet committed is still listed.
        if let Ok(text) = fs::read_to_string(root.join(path)) {
            found.extend(findings(path, &text, &phrases));
            files += 1;
        }
    }
    assert!(files > 300, "only {files} files were read");
    assert!(found.is_empty(), "{} phrases to avoid:\n{}", found.len(), found.join("\n"));
}

#[test]
fn a_planted_phrase_is_found_with_its_line_and_its_replacement() {
    let phrases = phrases();
    assert!(phrases.len() > 50);
    for phrase in &phrases {
        let planted =
            format!("first line\n/// Text: {} end.\n", phrase.text.replace(' ', "\n/// "));
        let found = findings("docs/x.md", &planted, &phrases);
        let expected = format!("docs/x.md:2: \"{}\": write {}", phrase.text, phrase.write);
        assert!(found.contains(&expected), "{expected} is not in {found:?}");
        let in_code = findings("src/x.rs", &planted, &phrases);
        assert_eq!(in_code.iter().any(|line| line.contains(&phrase.text)), phrase.in_source_code);
    }
    assert!(findings("docs/x.md", "an_untold_story, sometimes", &phrases).is_empty());
}
