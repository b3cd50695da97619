//! Hooks that add memories to a prompt, a file use or a failure, compared with one that only
//! records.

use std::{cell::Cell, io::Write as _, process::Command, time::Duration};

use claude_mem_events::{AgentReplied, Envelope, Event, Project};
use serde_json::{Value, json};

use super::world::{self, World};
use crate::bench::{
    BenchResult, Contestant, Figure, Group, Row, Samples, Scratch, Settings, Verdict, contest,
    recall::sample, report,
};

pub(in crate::bench) const ADDED: Group = Group {
    name: "added",
    about: "The cost of looking for memories in a hook. Each turn starts a process, pipes the \
            input to it, reads its answer and waits for its exit, as Claude Code does. All \
            memories are in the project of the session, the database is in the page cache, and \
            each turn is a new session. The words of memories are distributed as in a natural \
            language.",
    figures: &[("added", measure)],
};

/// Observations per turn.
const PER_REPLY: u64 = 5;
/// Files of memories: twenty memories of each among 100,000.
const FILES: u64 = 5000;
/// The maximum ratio to a hook that only records.
const MORE_MAX: Duration = Duration::from_millis(15);

/// Makes the input of a hook for the given round.
type Input<'a> = Box<dyn Fn(usize) -> Value + 'a>;

fn measure(settings: Settings, scratch: &Scratch) -> BenchResult<Vec<Figure>> {
    let (plain, world) = (World::new(scratch, "plain")?, World::new(scratch, "added")?);
    let memories = settings.size(100_000, 500);
    fill(&world, memories)?;
    let rounds = settings.size(200, 2);
    let questions = sample::questions(memories, rounds + 1);
    let long = |at: usize| {
        let near = (0..60).map(|step| &questions[(at + step) % questions.len()].text);
        near.cloned().collect::<Vec<_>>().join(" ")
    };
    let save = world::input(4 << 10);
    let hooks: Vec<(&str, Input<'_>)> = vec![
        ("new, a prompt about a memory", Box::new(|at| prompt(&questions[at].text))),
        ("new, a prompt about nothing", Box::new(|_| prompt("thanks, that looks good to me"))),
        ("new, a prompt of 4 KB", Box::new(|at| prompt(&long(at)))),
        ("file with memories", Box::new(|at| file(&format!("file_{}.rs", at as u64 % FILES)))),
        ("file without memories", Box::new(|_| file("none.rs"))),
        ("failure like an earlier one", Box::new(|at| failure(&questions[at].text))),
        ("failure like no other", Box::new(|_| failure("error: no space left on device"))),
    ];
    for (name, input) in &hooks {
        let given = answer(&world, &in_session(input(0), name))?;
        let is_silent =
            name.contains("nothing") || name.contains("without") || name.contains("no other");
        if given.contains("additionalContext") == is_silent {
            return Err(format!("{name}: {given}").into());
        }
    }
    let session = Cell::new(0_u64);
    let mut contestants = vec![
        Contestant::new("save, 4 KB", || plain.turn(&plain.hook, "default", &save)),
        Contestant::new("new, without recall", || {
            let mut command = hook(&plain);
            command.env("CLAUDE_MEM_CONTEXT_PROMPT_TOKENS_MAX", "0");
            world::run(&mut command, &in_session(prompt("why did we do that?"), "s"))
        }),
    ];
    for (name, input) in &hooks {
        let (world, session, mut turns) = (&world, &session, 0);
        contestants.push(Contestant::new(*name, move || {
            session.set(session.get() + 1);
            turns += 1;
            let input = in_session(input(turns % rounds as usize), &session.get().to_string());
            world::run(&mut hook(world), &input)
        }));
    }
    let samples = contest(rounds, &mut contestants)?;
    drop(contestants);
    Ok(judge(&samples, memories))
}

fn judge(samples: &[Samples], memories: u64) -> Vec<Figure> {
    let p95 = |one: &Samples| one.at(0.95);
    let row = |one: &Samples| {
        let more = p95(one).saturating_sub(p95(&samples[0]));
        Row::new(
            &one.name,
            vec![report::show(one.median()), report::show(p95(one)), report::show(more)],
        )
    };
    let figure = |one: &Samples| {
        let more = p95(one).saturating_sub(p95(&samples[0]));
        Figure {
            title: one.name.clone(),
            about: format!("{memories} memories."),
            columns: vec!["p50", "p95", "p95, more than the first"],
            rows: vec![row(&samples[0]), row(one)],
            verdict: Some(Verdict {
                target: format!("p95 at most {} more than save", report::show(MORE_MAX)),
                reached: report::show(more),
                is_met: more <= MORE_MAX,
            }),
        }
    };
    samples[1..].iter().map(figure).collect()
}

fn hook(world: &World) -> Command {
    let mut command = world.command_of("hook", &world.hook, "default");
    command.args(["--client", "claude-code"]);
    command
}

fn prompt(text: &str) -> Value {
    json!({"hook_event_name": "UserPromptSubmit", "prompt": text})
}

fn file(name: &str) -> Value {
    json!({"hook_event_name": "PreToolUse", "tool_name": "Read", "tool_input": {"file_path": name}})
}

fn failure(error: &str) -> Value {
    json!({"hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "tool_use_id": "t",
        "tool_input": {"command": "cargo test --workspace"}, "error": format!("Exit code 1\n{error}")})
}

fn in_session(mut input: Value, session: &str) -> Vec<u8> {
    input["session_id"] = json!(session);
    input.to_string().into_bytes()
}

/// The response of the hook. Its working directory is the project.
fn answer(world: &World, input: &[u8]) -> BenchResult<String> {
    let mut child = hook(world).spawn()?;
    child.stdin.take().ok_or("stdin is a pipe")?.write_all(input)?;
    Ok(String::from_utf8(child.wait_with_output()?.stdout)?)
}

fn fill(world: &World, memories: u64) -> BenchResult<()> {
    world.fill(memories / PER_REPLY, |number| {
        let project = Project {
            label: "shop".into(),
            root: String::new(),
            key: "example.com/ada/shop".into(),
        };
        let envelope = Envelope {
            host: "here".into(),
            platform: "claude-code".into(),
            session: format!("session-{}", number / 4),
            project,
            ..Envelope::default()
        };
        (envelope, reply(number))
    })
}

fn reply(number: u64) -> Event {
    let observation = |place| {
        // Memories of the sample are numbered from 1.
        let which = number * PER_REPLY + place + 1;
        let (title, text) = sample::texts(which);
        let kind = ["bugfix", "feature", "decision", "discovery", "change"][(which % 5) as usize];
        let concept = ["gotcha", "problem-solution", "how-it-works"][(which % 3) as usize];
        format!(
            "<observation><type>{kind}</type><title>{title}</title><narrative>{text}</narrative>\
             <concepts><concept>{concept}</concept></concepts>\
             <files_read><file>file_{}.rs</file></files_read></observation>",
            which / 5 % FILES
        )
    };
    AgentReplied {
        provider: "extract".into(),
        model: "rules".into(),
        prompt_version: "1".into(),
        reply: (0..PER_REPLY).map(observation).collect(),
        ..AgentReplied::default()
    }
    .into()
}
