//! `agents`: sessions of real coding agents that the tests do not run.

use std::{
    collections::BTreeMap,
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use claude_mem_tools::{
    client::{AFTER, Agent, BEFORE, MORE_AGENTS},
    model::{Request, Server},
};

use super::say;

/// Run sessions in an older Codex, Kimi Code, Factory droid and Cline CLI with claude-mem
///
/// Installs each with npm, sets up claude-mem, works through a turn on a scripted model, distills
/// it, works through another one, and uninstalls claude-mem. Fails if a part of the turn is not
/// recorded in its place, if the second session is not given the memory of the first, or if a file is not
/// restored. Takes a minute, and 1.5 GB under `tools/.cache`.
#[derive(Debug, clap::Args)]
pub(crate) struct Agents {
    /// Only this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The binary to run
    #[arg(long, default_value = "target/debug/claude-mem")]
    binary: PathBuf,
}

const FILE: &str = "total.py";
const ANSWER: &str = "We keep the total in cents instead of floats, because floats lose cents.";

/// The expected parts of the log, in order, and the agents that have no event for them.
const RECORDED: [(&str, &[&str]); 7] = [
    ("\"prompt\":\"make total.py right\"", &["droid", "cline"]),
    ("\"tool\":\"Read\"", &["codex"]),
    ("\"old_string\":\"def total", &[]),
    ("\"error\":\"Exit code 3\\none failed\"", &[]),
    ("gone.py", &[]),
    ("echo all passed", &[]),
    ("\"last_assistant_message\":\"We keep the total in cents", &[]),
];

/// The agent that accepts no memory.
const NOT_GIVEN: &str = "cline";

impl Agents {
    pub(crate) fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let binary = fs::canonicalize(&self.binary)?;
        let is_chosen = |agent: &&Agent| self.agent.as_deref().is_none_or(|it| it == agent.name);
        let mut wrong = 0;
        for agent in MORE_AGENTS.iter().filter(is_chosen) {
            let problems = check(agent, &binary)?;
            wrong += problems.len();
            say(&format!(
                "{}: {}",
                agent.name,
                if problems.is_empty() { "fine" } else { "wrong" }
            ))?;
            for problem in problems {
                say(&format!("  {problem}"))?;
            }
        }
        Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn check(agent: &'static Agent, binary: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let world = tempfile::tempdir()?;
    let (home, project) = (world.path().join("home"), world.path().join("project"));
    fs::create_dir(&home)?;
    fs::create_dir(&project)?;
    let cwd = project.clone();
    let server = Server::answering(move |request: &Request| {
        agent.next_in_turn(request, &cwd, FILE, ANSWER)
    })?;
    let client = agent.prepare(&home, &project, &server.url())?;
    let ours = |arguments: &[&str]| -> Result<String, Box<dyn Error>> {
        let mut command = Command::new(binary);
        command.args(arguments).env_clear().env("HOME", &home).current_dir(&project);
        let output = command.env("PATH", "/usr/bin:/bin").output()?;
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout)?),
            false => Err(format!("{arguments:?}: {output:?}").into()),
        }
    };
    let files = || -> BTreeMap<&str, Option<String>> {
        agent.files().map(|file| (file, fs::read_to_string(home.join(file)).ok())).collect()
    };
    let mut before = files();
    ours(&["install", "--client", agent.name, "--trust"])?;
    // The agent itself may change its other files.
    let after = files();
    before.retain(|file, text| after.get(file) != Some(&*text));
    for (name, value) in [("PROVIDER", "extract"), ("WORKER_AUTOSTART", "false")] {
        ours(&["settings", "set", name, value])?;
    }
    let mut problems = Vec::new();
    let mut turn = |prompt: &str| -> Result<Vec<Request>, Box<dyn Error>> {
        fs::write(project.join(FILE), BEFORE)?;
        let asked = server.requests().len();
        let outcome = agent.prompt(&client, prompt)?;
        if !outcome.status.success() || fs::read_to_string(project.join(FILE))? != AFTER {
            problems.push(format!("the turn did not work: {outcome:?}"));
        }
        Ok(server.requests().split_off(asked))
    };
    turn("make total.py right")?;
    ours(&["distill"])?;
    let log = ours(&["log", "--json", "--raw"])?;
    let requests = turn("what about the total?")?;
    Agent::end_daemon(&project);
    let mut from = 0;
    for (part, _) in RECORDED.iter().filter(|(_, not_in)| !not_in.contains(&agent.name)) {
        match log[from..].find(part) {
            Some(at) => from += at,
            None => problems.push(format!("not recorded, or too early: {part}")),
        }
    }
    let is_given =
        requests.first().is_some_and(|request| request.body.to_string().contains(ANSWER));
    if is_given == (agent.name == NOT_GIVEN) {
        problems.push(format!("given the memory of the first session: {is_given}"));
    }
    let doctor = ours(&["doctor"])?;
    if !doctor.contains("all hooks are registered") {
        problems.push(doctor);
    }
    ours(&["uninstall"])?;
    let after = files();
    let changed = before.iter().filter(|(file, text)| after.get(*file) != Some(*text));
    problems.extend(changed.map(|(file, _)| format!("not restored: {file}")));
    let listed = ours(&["install", "--list"])?;
    let is_its = |line: &&str| line.contains(&format!(" {} ", agent.name));
    if listed.lines().filter(is_its).any(|line| line.contains("registered")) {
        problems.push("still registered".into());
    }
    if !problems.is_empty() {
        problems.push(log);
    }
    Ok(problems)
}
