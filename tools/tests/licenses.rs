//! Every dependency comes from the package registry, under a license that `deny.toml` allows.
//!
//! `cargo deny check` also knows the advisories. Building it takes two processors two minutes, so
//! only CI runs it, which installs it ready-made.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{fs, path::Path, process::Command};

use serde_json::Value;
use spdx::{Expression, Licensee, ParseMode};
use toml_edit::DocumentMut;

#[test]
fn dependencies_have_allowed_licenses_and_come_from_the_registry() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let allowed = allowed(workspace);
    let dependencies = dependencies(workspace);
    assert!(dependencies.len() > 200, "there are more than {}", dependencies.len());
    let faults: Vec<String> =
        dependencies.iter().filter_map(|dependency| fault(dependency, &allowed)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn another_license_or_source_is_a_fault() {
    let allowed = [Licensee::parse("MIT").unwrap()];
    let fault = |license: &str, source: &str| {
        let package = serde_json::json!({"name": "x", "version": "1.0.0", "license": license, "source": source});
        fault(&package, &allowed)
    };
    let registry = "registry+https://example.com/index";
    assert_eq!(fault("MIT OR GPL-3.0", registry), None);
    assert_eq!(fault("GPL-3.0/MIT", registry), None);
    assert!(fault("MIT AND GPL-3.0", registry).unwrap().contains("x 1.0.0"));
    assert!(fault("", registry).is_some());
    assert!(fault("MIT", "git+https://example.com/x").is_some());
}

/// Why a package must not be used.
fn fault(package: &Value, allowed: &[Licensee]) -> Option<String> {
    let text = |name: &str| package[name].as_str().unwrap_or_default();
    let (license, source) = (text("license"), text("source"));
    let expression = Expression::parse_mode(license, ParseMode::LAX);
    let is_allowed = expression.is_ok_and(|expression| {
        expression.evaluate(|needed| allowed.iter().any(|license| license.satisfies(needed)))
    });
    if is_allowed && source.starts_with("registry+") {
        return None;
    }
    Some(format!("{} {}: license `{license}`, from {source}", text("name"), text("version")))
}

fn allowed(workspace: &Path) -> Vec<Licensee> {
    let text = fs::read_to_string(workspace.join("deny.toml")).unwrap();
    let settings: DocumentMut = text.parse().unwrap();
    let names = settings["licenses"]["allow"].as_array().unwrap();
    names.iter().map(|name| Licensee::parse(name.as_str().unwrap()).unwrap()).collect()
}

/// All packages but our own, for every platform.
fn dependencies(workspace: &Path) -> Vec<Value> {
    let arguments = ["metadata", "--format-version", "1", "--locked"];
    let output =
        Command::new(env!("CARGO")).args(arguments).current_dir(workspace).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages.filter(|package| !package["source"].is_null()).cloned().collect()
}
