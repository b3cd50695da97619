//! The context hook at the start of a session, compared with a program that does nothing.

use std::{fmt::Write as _, io};

use claude_mem_events::{AgentReplied, Envelope, Event, Project};
use serde_json::json;

use super::{
    save::against_empty,
    world::{self, FILES, World},
};
use crate::bench::{BenchResult, Contestant, Figure, Scratch, Settings, contest, report};

const PROJECTS: u64 = 50;
/// Observations per turn.
const PER_REPLY: u64 = 5;

pub(super) fn measure_context(settings: Settings, scratch: &Scratch) -> BenchResult<Vec<Figure>> {
    let world = World::new(scratch, "context")?;
    let observations = settings.size(100_000, 500);
    fill(&world, observations)?;
    let input = json!({
        "session_id": "977713de-060a-4749-8b22-2125d5a8195f", "transcript_path": "/none.jsonl",
        "cwd": "/home/ada/work/shop", "hook_event_name": "SessionStart", "source": "startup",
    })
    .to_string();
    let output_text = world.command_of("context", &world.hook, "default");
    check(output_text, input.as_bytes())?;
    let turn = |program| {
        world::run(&mut world.command_of("context", program, "default"), input.as_bytes())
    };
    let mut contestants = vec![
        Contestant::new("the empty program", || turn(&world.empty)),
        Contestant::new("context", || turn(&world.hook)),
    ];
    let samples = contest(settings.size(200, 2), &mut contestants)?;
    drop(contestants);
    let mut figure = against_empty(&samples, 1, 7.0);
    figure.about = format!(
        "{observations} observations in {PROJECTS} projects, all about files that are looked at. \
         By the fastest turns."
    );
    figure.columns = report::TIMES.to_vec();
    Ok(vec![figure])
}

/// A memory of many projects, one of which is that of the session.
fn fill(world: &World, observations: u64) -> BenchResult<()> {
    world.fill(observations / PER_REPLY, |number| (envelope(number), reply(number)))
}

fn envelope(number: u64) -> Envelope {
    let of = number % PROJECTS;
    let key =
        if of == 0 { "example.com/ada/shop".into() } else { format!("example.com/ada/p{of}") };
    Envelope {
        host: "here".into(),
        platform: "claude-code".into(),
        session: format!("session-{}", number / PROJECTS / 4 * PROJECTS + of),
        project: Project { label: "shop".into(), root: String::new(), key },
        ..Envelope::default()
    }
}

fn reply(number: u64) -> Event {
    let mut reply = String::new();
    for place in 0..PER_REPLY {
        let which = number * PER_REPLY + place;
        let kind = ["bugfix", "feature", "decision", "discovery", "change"][(which % 5) as usize];
        let file = which % FILES;
        let _ = write!(
            reply,
            "<observation><type>{kind}</type><title>The {which}th thing about rounding case \
             {}</title><narrative>What was found out about it, in a sentence or two, as an agent \
             does it, with the reasons and the consequences.</narrative><facts><fact>One fact, \
             {which}</fact></facts><files_read><file>file_{file}.rs</file></files_read>\
             </observation>",
            which * 7919 % 1009
        );
    }
    let _ = write!(
        reply,
        "<summary><request>Do thing {number}</request><completed>It was done</completed>\
         <next_steps>Do the next one</next_steps></summary>"
    );
    AgentReplied {
        provider: "extract".into(),
        model: "rules".into(),
        prompt_version: "1".into(),
        reply,
        ..AgentReplied::default()
    }
    .into()
}

/// Makes sure that the context is not empty, which would be fast.
fn check(mut command: std::process::Command, input: &[u8]) -> BenchResult<()> {
    let mut child = command.spawn()?;
    io::Write::write_all(&mut child.stdin.take().ok_or("stdin is a pipe")?, input)?;
    let output = child.wait_with_output()?;
    let output_text = String::from_utf8(output.stdout)?;
    if output_text.contains("about rounding case") {
        Ok(())
    } else {
        Err(format!("no context: {output_text}").into())
    }
}
