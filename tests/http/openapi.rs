//! The OpenAPI description, checked against the worker by Schemathesis.

use std::process::Command;

use claude_mem_tools::client::schemathesis;

use super::Site;

/// The checks that every response must pass.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,ignored_auth,\
                      unsupported_method";

#[test]
fn every_response_matches_the_api_description() {
    let schemathesis = schemathesis().unwrap_or_else(|error| panic!("{error}"));
    let site = Site::new();
    site.remember_turn("s1", "fix the cart", "cart.rs");
    let mut run = Command::new(schemathesis);
    run.arg("run").arg(format!("http://{}/api/openapi.json", site.authority()));
    run.args(["--header", &format!("Authorization: Bearer {}", site.token())]);
    // A stream does not end.
    run.args(["--exclude-path", "/stream", "--checks", CHECKS, "--max-examples", "10"]);
    run.args(["--phases", "examples,coverage,fuzzing", "--seed", "7", "--no-color"]);
    run.current_dir(site.sandbox.home()).env("HYPOTHESIS_STORAGE_DIRECTORY", site.sandbox.home());
    let output = run.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains("Tested: "), "{printed}");
    assert_eq!(site.get("/health")["status"], "ok", "it is healthy after all of that");
}
