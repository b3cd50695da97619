//! Conventions of the repository: crate metadata, pinned actions, the oldest supported Rust, the
//! changelog.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

#[test]
fn every_crate_has_metadata() {
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 3);
    for package in packages {
        for field in ["description", "license", "readme", "rust_version"] {
            assert!(package[field].is_string(), "{} has no {field}", package["name"]);
        }
        for field in ["keywords", "categories"] {
            assert_ne!(package[field], Value::Array(Vec::new()), "{} {field}", package["name"]);
        }
    }
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
