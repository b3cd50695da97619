//! `model-server`: the scripted model, for manual use and other languages.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use claude_mem_tools::model::{Script, Server};

use super::say;

/// Respond as a model from a script, over the real wire protocols
///
/// Serves the Anthropic Messages API, the chat completions and Responses APIs, and Gemini's, on
/// 127.0.0.1. The first line on stdout is the base URL; each request follows as one line of JSON.
/// Runs until it is killed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = SCRIPT_HELP)]
pub(crate) struct ModelServer {
    /// The script, a JSON file
    #[arg(long, value_name = "FILE")]
    script: PathBuf,

    /// Listen on this port; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
}

const SCRIPT_HELP: &str = r#"Script:
  {"rules": [{"when": {"model": "haiku", "text": "summary", "tool_result": false}, "answer": A}],
   "steps": [A, A, …],
   "otherwise": A}

  A request gets the answer of the first rule whose conditions all hold (model and text: contained
  in the name and in the last user message), else of the next step, else `otherwise`, else
  status 400. Each part may be left out. An answer is one of
    {"text": "Done."}                                            the text of the response
    {"text": "…", "tools": [{"name": "Bash", "input": {…}}]}     the tools that the model calls
    {"error": {"status": 429, "type": "rate_limit_error", "message": "…", "retry_after": 3}}
    {"hang": true}                                               no response
    {"malformed": true}                                          status 200, not JSON
  and may have
    "cut": true                       the connection closes half-way,
    "short": true                     or the response ends half-way, as if it were complete,
    "stall": true                     or nothing is sent after the first half
    "stop_reason": "max_tokens"       instead of end_turn or tool_use
    "slow_ms": 50                     the delay before each event
    "usage": {"input": 10, "output": 5, "cache_creation": 0, "cache_read": 0}"#;

impl ModelServer {
    pub(crate) fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let text = fs::read_to_string(&self.script)
            .map_err(|error| format!("cannot read {}: {error}", self.script.display()))?;
        let script = Script::from_json(&text)?;
        let server = Server::bind(self.port, move |request| script.answer(request))?;
        say(&server.url())?;
        let mut printed = 0;
        loop {
            let requests = server.wait_for_requests(printed + 1);
            for request in &requests[printed..] {
                say(&serde_json::to_string(request)?)?;
            }
            printed = requests.len();
        }
    }
}
