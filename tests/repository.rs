//! Conventions of the repository: pinned actions, the oldest supported Rust, the changelog.

use std::{fs, path::Path};

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

#[test]
fn every_action_is_pinned_by_its_commit() {
    let mut pinned = 0;
    for workflow in [".github/workflows/ci.yml", ".github/workflows/release.yml"] {
        for line in read(workflow).lines().filter(|line| line.contains("uses: ")) {
            let (_, reference) = line.split_once('@').unwrap();
            let (commit, version) = reference.split_once(" # ").unwrap_or((reference, ""));
            let is_commit = commit.len() == 40 && commit.chars().all(|c| c.is_ascii_hexdigit());
            assert!(is_commit && !version.is_empty(), "{workflow}: {line}");
            pinned += 1;
        }
    }
    assert!(pinned > 8, "{pinned}");
}

#[test]
fn ci_builds_with_the_oldest_supported_rust() {
    let manifest = read("Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap();
    assert!(read(".github/workflows/ci.yml").contains(&format!("toolchain: {version}\n")));
    assert!(read("README.md").contains(&format!("Rust {} or newer", version.trim_matches('"'))));
}

#[test]
fn the_changelog_has_this_version_with_a_date_and_the_usual_headings() {
    let changelog = read("CHANGELOG.md");
    let prefix = format!("## {} (20", env!("CARGO_PKG_VERSION"));
    assert!(changelog.lines().any(|line| line.starts_with(&prefix)), "no {prefix}..");
    for heading in changelog.lines().filter_map(|line| line.strip_prefix("### ")) {
        assert!(["Added", "Changed", "Fixed", "Removed"].contains(&heading), "{heading}");
    }
}
