//! `claude-mem import` and `export`.

mod clients;
mod cursor;
mod export;
mod transcripts;
pub(crate) mod upstream;

use claude_mem_projections::Store;
use serde_json::Value;

use crate::sandbox::Sandbox;

/// Imports, and returns the report.
fn import(sandbox: &Sandbox, arguments: &[&str]) -> Value {
    let mut all = vec!["import", "--json"];
    all.extend(arguments);
    serde_json::from_str(&sandbox.run(&all).ok()).unwrap()
}

/// The number of added events in a report.
fn added(report: &Value) -> u64 {
    report["added"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
}

/// Rows of a query.
fn rows(sandbox: &Sandbox, sql: &str) -> String {
    store(sandbox).dump(sql).unwrap()
}

fn store(sandbox: &Sandbox) -> Store {
    Store::open_read_only(&sandbox.data().join("memory.db")).unwrap().unwrap()
}
