//! The time from the end of a turn to the request about it.

use std::{
    io::Write as _,
    process::Stdio,
    time::{Duration, Instant},
};

use claude_mem_tools::model::{Answer, Server};
use serde_json::{Value, json};

use super::serving::{Serving, command};
use crate::bench::{BenchResult, Figure, Row, Samples, Scratch, Settings, Verdict, report::show};

const LIMIT: Duration = Duration::from_millis(50);

pub(super) fn measure_latency(settings: Settings, scratch: &Scratch) -> BenchResult<Vec<Figure>> {
    let server = Server::answering(|_| Answer::text("<skip/>"))?;
    let url = server.url();
    let variables = [
        ("CLAUDE_MEM_PROVIDER", "anthropic"),
        ("CLAUDE_MEM_ANTHROPIC_API_KEY", "key"),
        ("CLAUDE_MEM_ANTHROPIC_BASE_URL", url.as_str()),
        ("CLAUDE_MEM_DAILY_TOKENS_MAX", "0"),
    ];
    let serving = Serving::start(scratch, "worker-latency", &variables)?;
    let (mut whole, mut behind) = (Vec::new(), Vec::new());
    for turn in 0..settings.size(40, 2) as usize {
        hook(&serving, "new", turn, &json!({"prompt": "do it"}))?;
        hook(
            &serving,
            "save",
            turn,
            &json!({"tool_name": "Bash", "tool_use_id": turn.to_string()}),
        )?;
        let start = Instant::now();
        hook(&serving, "summary", turn, &json!({"last_assistant_message": "done"}))?;
        let returned = Instant::now();
        server.wait_for_requests(turn + 1);
        whole.push(start.elapsed());
        behind.push(returned.elapsed());
        serving.wait_until_done()?;
    }
    let samples = [
        Samples::new("from the start of the hook of Stop".into(), whole),
        Samples::new("from its end".into(), behind),
    ];
    let row = |one: &Samples| {
        Row::new(&one.name, vec![show(one.min()), show(one.median()), show(one.max())])
    };
    let median = samples[0].median();
    Ok(vec![Figure {
        title: "From append to question".into(),
        about: "A turn of a prompt, a tool use and a stop, by the real hooks. The time from just \
                before the start of the Stop hook until the server of the model has the request; \
                it includes starting, appending and syncing."
            .into(),
        columns: vec!["fastest", "median", "slowest"],
        rows: samples.iter().map(row).collect(),
        verdict: Some(Verdict {
            target: format!("below {}", show(LIMIT)),
            reached: format!("{} in the median", show(median)),
            is_met: median < LIMIT,
        }),
    }])
}

fn hook(serving: &Serving, name: &str, turn: usize, fields: &Value) -> BenchResult<()> {
    let mut sent = json!({"session_id": format!("s{}", turn % 4), "cwd": serving.home});
    if let (Some(sent), Some(fields)) = (sent.as_object_mut(), fields.as_object()) {
        sent.extend(fields.clone());
    }
    let mut command = command(&serving.home, &[name], &[])?;
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    child.stdin.take().ok_or("stdin is a pipe")?.write_all(sent.to_string().as_bytes())?;
    match child.wait()?.success() {
        true => Ok(()),
        false => Err(format!("{name} failed").into()),
    }
}
