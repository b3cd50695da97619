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

/// Every use of a phrase, as `path: phrase: write ...`. A phrase may be broken by a line end.
fn findings(path: &str, text: &str, phrases: &[Phrase]) -> Vec<String> {
    let marker = ['/', '!', '#', '*', '-', '>', ' '];
    let lines = text.lines().map(|line| line.trim_start_matches(marker).trim().to_lowercase());
    let joined = format!(" {} ", lines.collect::<Vec<_>>().join(" "));
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let has = |phrase: &str| {
        joined.match_indices(phrase).any(|(at, _)| {
            let after = joined[at + phrase.len()..].chars().next();
            !joined[..at].ends_with(is_word) && !after.is_some_and(is_word)
        })
    };
    let applies = |phrase: &&Phrase| phrase.in_source_code || is_documentation(path);
    let used = phrases.iter().filter(applies).filter(|phrase| has(&phrase.text));
    used.map(|phrase| format!("{path}: \"{}\": write {}", phrase.text, phrase.write)).collect()
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
fn a_planted_phrase_is_found_across_lines() {
    let phrase = Phrase { in_source_code: true, text: "xyzzy plugh".into(), write: "go".into() };
    let text = "/// A xyzzy\n/// plugh.\n";
    assert_eq!(findings("x.rs", text, &[phrase]), ["x.rs: \"xyzzy plugh\": write go"]);
}
