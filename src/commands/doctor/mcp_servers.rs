//! Checks of our MCP server in clients that have no hooks: the entry, its program, and whether that
//! answers.

use std::{
    collections::HashMap,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use super::Finding;
use claude_mem_core::{
    NAME,
    app::App,
    os::{ProcessTree, output_within},
};
use claude_mem_install::{
    manifest::Manifest,
    mcp_only::{MCP_ONLY, McpOnly},
};

const CHECK: &str = "MCP servers";

/// Clients wait longer, but a server that takes more than this delays their start.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// One finding for each client that has our entry, or had it.
pub(super) fn all(app: &App) -> Vec<Finding> {
    let manifest = Manifest::load(&app.paths).unwrap_or_default();
    // Several clients start the same program.
    let mut answers: HashMap<String, Result<(), String>> = HashMap::new();
    let mut findings = Vec::new();
    for client in MCP_ONLY {
        let Some(file) = client.file(&app.environment, app.paths.home.as_deref()) else { continue };
        match client.registered_program(&file) {
            Some(program) => {
                let answer =
                    answers.entry(program).or_insert_with_key(|program| ask_server(program));
                findings.push(finding(client, &file, answer));
            }
            None if manifest.edited.iter().any(|edited| edited.file == file) => {
                let what = format!("{}: {} no longer has our entry", client.title, file.display());
                let name = client.name;
                let remedy = format!(
                    "add it with `claude-mem install --client {name}`, or remove it for good with \
                     `claude-mem uninstall --client {name}`"
                );
                findings.push(Finding::problem(CHECK, what, remedy));
            }
            None => {}
        }
    }
    findings
}

fn finding(client: &McpOnly, file: &Path, answer: &Result<(), String>) -> Finding {
    let (title, file) = (client.title, file.display());
    match answer {
        Ok(()) => Finding::fine(CHECK, format!("{title}: the server in {file} answers")),
        Err(why) => {
            let what = format!("{title}: the server in {file} {why}");
            let again = format!("`claude-mem install --client {}`", client.name);
            Finding::problem(CHECK, what, format!("register this program with {again}"))
        }
    }
}

/// Starts the server as a client does, and waits for its first answer.
fn ask_server(program: &str) -> Result<(), String> {
    if !Path::new(program).is_file() {
        return Err(format!("is {program}, which does not exist"));
    }
    let mut command = Command::new(program);
    command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let started = ProcessTree::start(&mut command);
    let (mut child, family) =
        started.map_err(|error| format!("is {program}, which cannot be run: {error}"))?;
    let request = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": NAME, "version": env!("CARGO_PKG_VERSION")}}});
    // The end of its input ends the server. One that does not read shows it by its answer.
    drop(child.stdin.take().map(|mut stdin| writeln!(stdin, "{request}")));
    let output = output_within(child, &family, ANSWER_TIME_MAX)
        .map_err(|error| format!("is {program}, which cannot be run: {error}"))?
        .ok_or_else(|| format!("is {program}, which does not answer"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let answer: Value =
        serde_json::from_str(text.lines().next().unwrap_or_default()).unwrap_or_default();
    match answer["result"]["serverInfo"]["name"] == NAME {
        true => Ok(()),
        false => Err(format!("is {program}, which answers something else ({})", output.status)),
    }
}
