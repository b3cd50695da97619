//! Redaction, compiled apart from the binary: its tests read gigabytes, which only optimized code does in seconds.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a panic is how a test fails"))]

#[allow(dead_code, unused_imports, reason = "the binary uses the rest")]
#[path = "../../src/privacy/mod.rs"]
mod privacy;

use privacy::{Policy, clean_json, clean_text, work::Scope};

/// How many bytes are read to redact a text, each as often as it is looked at.
pub fn bytes_read_of_text(text: &str) -> u64 {
    let scope = Scope::new(u64::MAX);
    clean_text(text, Policy::default());
    scope.bytes_read()
}

/// How many bytes are read to redact what should be JSON.
pub fn bytes_read_of_json(json: &str) -> u64 {
    let scope = Scope::new(u64::MAX);
    clean_json(json, Policy::default());
    scope.bytes_read()
}
