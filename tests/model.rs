//! Sessions to distill, a scripted model, and the resulting memories.

use std::path::Path;

use claude_mem_projections::Store;
use claude_mem_tools::model::{Answer, Request, Server};
use serde_json::json;

use crate::{
    hook_session::HookSession,
    sandbox::{Run, Sandbox},
};

/// An active session in the home directory of the sandbox.
pub(crate) struct Session<'a> {
    hooks: HookSession<'a>,
    id: String,
    tools: usize,
}

impl<'a> Session<'a> {
    pub(crate) fn start(sandbox: &'a Sandbox, id: &str) -> Self {
        let hooks = HookSession::new(sandbox, id);
        hooks.start();
        Self { hooks, id: id.to_owned(), tools: 0 }
    }

    /// A completed session with this many turns of three tool uses each.
    pub(crate) fn worked(sandbox: &'a Sandbox, id: &str, turns: usize) -> Self {
        let mut session = Self::start(sandbox, id);
        for turn in 1..=turns {
            session.prompt(&format!("work {turn} of {id}"));
            for _ in 0..3 {
                session.tool();
            }
            session.stop(&format!("done with {turn}"));
        }
        session
    }

    pub(crate) fn prompt(&self, text: &str) {
        self.hooks.prompt(text);
    }

    pub(crate) fn tool(&mut self) {
        self.tools += 1;
        let file = format!("{}-{}.rs", self.id, self.tools);
        let input = json!({"file_path": file, "content": "fn main() {}"});
        let response = json!({"type": "create", "filePath": file});
        self.hooks.tool(&format!("t{}", self.tools), "Write", &input, &response);
    }

    pub(crate) fn stop(&self, message: &str) {
        self.hooks.stop(message);
    }
}

/// The variables that configure a provider.
pub(crate) fn provider(name: &str, server: &Server) -> Vec<(String, String)> {
    provider_at(name, server.url())
}

/// The same with an address.
pub(crate) fn provider_at(name: &str, url: String) -> Vec<(String, String)> {
    let pairs = match name {
        "anthropic" => vec![
            ("CLAUDE_MEM_ANTHROPIC_API_KEY", "sk-test".to_owned()),
            ("CLAUDE_MEM_ANTHROPIC_BASE_URL", url),
            ("CLAUDE_MEM_MODEL", "claude-haiku-4-5".to_owned()),
        ],
        _ => vec![
            ("CLAUDE_MEM_OPENAI_API_KEY", "sk-test".to_owned()),
            ("CLAUDE_MEM_OPENAI_BASE_URL", format!("{url}/v1")),
            ("CLAUDE_MEM_OPENAI_MODEL", "gpt-4o-mini".to_owned()),
        ],
    };
    let named = ("CLAUDE_MEM_PROVIDER".to_owned(), name.to_owned());
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).chain([named]).collect()
}

/// Runs a command with these variables.
pub(crate) fn run(sandbox: &Sandbox, arguments: &[&str], variables: &[(String, String)]) -> Run {
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    sandbox.run_with(arguments, &variables, "")
}

/// A model that responds to each request with an observation, and a summary if requested. The title
/// has the number of the request and `word`.
pub(crate) fn answering(word: &'static str) -> Server {
    Server::answering(move |request| Answer::text(reply(word, request))).unwrap()
}

/// The response of [`answering`].
pub(crate) fn reply(word: &str, request: &Request) -> String {
    let text = request.last_user_text();
    let asked = text.split("<prompt").nth(1).unwrap_or_default();
    let asked = asked.lines().nth(1).unwrap_or("nothing");
    let summary = match text.contains("The turn is over") {
        true => format!("<summary><completed>{word} {asked}</completed></summary>"),
        false => String::new(),
    };
    format!("<observation><type>feature</type><title>{word} {asked}</title></observation>{summary}")
}

/// The titles of all memories.
pub(crate) fn titles(sandbox: &Sandbox) -> Vec<String> {
    let store = Store::open_read_only(&sandbox.data().join("memory.db")).unwrap().unwrap();
    let titles = store
        .dump("select title from visible_observations where not is_retired order by title")
        .unwrap();
    titles.lines().map(str::to_owned).collect()
}

/// Every table, as text.
pub(crate) fn dump(data: &Path) -> String {
    let store = Store::open_read_only(&data.join("memory.db")).unwrap().unwrap();
    let mut text = Vec::new();
    store.write_dump(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}
