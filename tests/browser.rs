//! The viewer in a real browser: Chromium, driven by Playwright, with a real worker and real hooks.
//!
//! Each script in `tests/browser/` is one test. It gets a link from `claude-mem viewer`, runs hooks
//! as Claude Code does, and exits with an error if the page is wrong. Screenshots are kept in
//! `target/screenshots/`.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use claude_mem_tools::{
    client::{axe, playwright},
    model::{Answer, Gate, Request, Server, Usage},
};
use serde_json::Value;

use crate::{
    model::provider,
    sandbox::{Sandbox, binary},
};

#[test]
fn the_feed_grows_while_hooks_run() {
    plays("live.mjs");
}

#[test]
fn events_during_page_load_appear_exactly_once() {
    plays("between.mjs");
}

#[test]
fn a_search_shows_results_as_one_types_and_its_filters_are_in_the_address() {
    plays("search.mjs");
}

#[test]
fn a_session_is_shown_in_order_and_a_memory_shows_its_sources() {
    plays("story.mjs");
}

#[test]
fn forgotten_memories_are_hidden_until_undone() {
    plays("forget.mjs");
}

#[test]
fn a_memory_is_edited_pinned_and_marked_as_wrong() {
    plays("revise.mjs");
}

#[test]
fn a_replay_shows_its_estimate_progress_and_diff() {
    plays("replay.mjs");
}

#[test]
fn every_page_is_fit_to_be_seen_in_light_in_dark_and_on_a_phone() {
    plays("looks.mjs");
}

#[test]
fn every_page_can_be_used_with_the_keyboard() {
    plays("keyboard.mjs");
}

#[test]
fn recorded_text_stays_text_and_no_other_server_is_contacted() {
    plays("hostile.mjs");
}

#[test]
fn a_browser_gets_access_through_a_private_file_and_no_other_port_learns_the_key() {
    plays("access.mjs");
}

#[test]
fn killing_the_worker_loses_nothing_on_the_page() {
    plays("death.mjs");
}

#[test]
fn the_first_paint_is_light_and_long_lists_come_in_pieces() {
    plays("weight.mjs");
}

/// The prompts of the scripts' hooks, and the responses of the model.
const SCENE: &str = include_str!("browser/scene.json");

/// Runs one script against its own worker.
fn plays(script: &str) {
    let kit = BrowserTools::find();
    let gate = Gate::new();
    let server = model(&gate);
    let stage = ViewerHome::open(&server);
    let mut node = Command::new("node");
    node.arg(dir().join(script)).arg(stage.link());
    node.env("HOME", stage.sandbox.home()).env("CLAUDE_MEM_BINARY", binary());
    node.env("CHROMIUM", &kit.chromium).env("PLAYWRIGHT", &kit.playwright).env("AXE", &kit.axe);
    node.env("SCREENSHOTS", kit.screenshots).stdout(Stdio::piped()).stderr(Stdio::piped());
    for (name, _) in
        env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CLAUDE_MEM_"))
    {
        if name != "CLAUDE_MEM_BINARY" {
            node.env_remove(name);
        }
    }
    let mut child = node.spawn().unwrap();
    let mut output_lines = String::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap) {
        if line == "open the gate" {
            gate.open();
        }
        output_lines.push_str(&line);
        output_lines.push('\n');
    }
    gate.open();
    let output = child.wait_with_output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    let diagnostics = stage.sandbox.diagnostics();
    assert!(output.status.success(), "{script}\n{output_lines}\n{complaints}\n{diagnostics}");
}

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser")
}

/// The programs that open a page.
struct BrowserTools {
    chromium: PathBuf,
    playwright: PathBuf,
    axe: PathBuf,
    screenshots: PathBuf,
}

impl BrowserTools {
    /// Without them the page cannot be tested, and the test fails.
    fn find() -> Self {
        Self::try_find().unwrap_or_else(|error| panic!("the page needs a browser: {error}"))
    }

    fn try_find() -> Result<Self, String> {
        let places = env::var_os("PATH").unwrap_or_default();
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let found = env::split_paths(&places)
            .flat_map(|place| names.map(|name| place.join(name)))
            .find(|file| file.is_file());
        let chromium = found.ok_or("there is no Chromium on the PATH (Debian: chromium)")?;
        let screenshots = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/screenshots");
        fs::create_dir_all(&screenshots).map_err(|error| error.to_string())?;
        Ok(Self {
            chromium,
            playwright: playwright().map_err(|error| error.to_string())?,
            axe: axe().map_err(|error| error.to_string())?,
            screenshots,
        })
    }
}

/// A home directory with a worker.
struct ViewerHome {
    sandbox: Sandbox,
}

impl ViewerHome {
    fn open(server: &Server) -> Self {
        let mut variables = provider("anthropic", server);
        // A worker of another test may use the default port.
        variables.push(("CLAUDE_MEM_WORKER_PORT".into(), "0".into()));
        let sandbox = Sandbox::new();
        for (name, value) in variables {
            sandbox.run(&["settings", "set", &name, &value]).ok();
        }
        Self { sandbox }
    }

    /// `claude-mem viewer` starts the worker, which gets no variables from it.
    fn link(&self) -> String {
        let printed = self.sandbox.run(&["viewer", "--print"]).ok();
        let link = printed.trim().to_owned();
        assert!(link.starts_with("http://127.0.0.1:") && link.contains("/open#"), "{link}");
        link
    }
}

impl Drop for ViewerHome {
    fn drop(&mut self) {
        self.sandbox.run(&["worker", "stop"]);
    }
}

/// A model for the demo scene: it responds according to the prompt in a request. As the second
/// model it responds with other words, once the gate is open.
fn model(gate: &Gate) -> Server {
    let gate = gate.clone();
    let scene: Value = serde_json::from_str(SCENE).unwrap();
    Server::answering(move |request| {
        let usage = Usage { input: 4_812, output: 611, ..Usage::default() };
        let answer = Answer::text(reply(&scene, request)).usage(usage);
        if request.model().contains("sonnet") { answer.held_by(&gate) } else { answer }
    })
    .unwrap()
}

fn reply(scene: &Value, request: &Request) -> String {
    let text = request.last_user_text();
    let turns =
        scene.as_array().unwrap().iter().flat_map(|session| session["turns"].as_array().unwrap());
    // A request also contains earlier turns; its last prompt counts.
    let place =
        |turn: &&Value| text.rfind(turn["prompt"].as_str().unwrap().lines().next().unwrap());
    let turn = turns.filter(|turn| place(turn).is_some()).max_by_key(place);
    let reply = turn.map_or(
        "<observation><type>change</type><title>Worked on it</title></observation>",
        |turn| turn["reply"].as_str().unwrap(),
    );
    match request.model().contains("sonnet") {
        true => reply.replace("<title>", "<title>Seen again: "),
        false => reply.to_owned(),
    }
}
