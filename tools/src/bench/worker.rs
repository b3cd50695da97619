//! The figures of the worker: memory when idle and after a long day, processor time when idle.

use std::{fs, thread, time::Duration};

use serde_json::json;

use claude_mem_tools::worker_process::{WorkerProcess, wait_for};

use super::{BenchResult, Figure, Group, Row, Scratch, Settings, Verdict, binary};

pub(super) const WORKER: Group = Group {
    name: "worker",
    about: "The real worker in its own process and home, with programs that connect to it. The \
            provider is the built-in rules.",
    figures: &[("memory", measure_worker)],
};

/// Megabytes.
const IDLE_MAX: f64 = 20.0;
const BUSY_MAX: f64 = 80.0;
/// Percent of one processor.
const PERCENT_MAX: f64 = 0.2;
/// Tool uses in a turn.
const TURN: usize = 9;

fn measure_worker(settings: Settings, scratch: &Scratch) -> BenchResult<Vec<Figure>> {
    let events = settings.size(10_000, 50) as usize;
    let watched = Duration::from_secs(settings.size(30, 1));
    let worker = WorkerProcess::start(&binary()?, &scratch.place("worker-memory"), &[])?;
    wait_until_done(&worker)?;
    let idle = ResourceUse::of(worker.pid())?;
    let percent = percent(worker.pid(), watched)?;
    work(&worker, events)?;
    wait_until_done(&worker)?;
    let busy = ResourceUse::of(worker.pid())?;
    let verdict = |limit: f64, reached: f64, unit: &str| {
        Some(Verdict {
            target: format!("below {limit} {unit}"),
            reached: format!("{reached:.3} {unit}"),
            is_met: reached < limit,
        })
    };
    let rows = vec![
        Row::new("idle", vec![mb(idle.now), mb(idle.most)]),
        Row::new(format!("after {events} events"), vec![mb(busy.now), mb(busy.most)]),
    ];
    let about =
        "`VmRSS` and `VmHWM` of the process, including pages of its own file. The events are \
                 turns of nine tool uses of 1 KB and a stop, sent over the socket, and all are \
                 distilled by the rules."
            .to_owned();
    let columns = vec!["now", "most so far"];
    Ok(vec![
        Figure {
            title: "Memory of an idle worker".into(),
            about: about.clone(),
            columns: columns.clone(),
            rows: rows[..1].iter().map(|row| Row::new(&row.name, row.values.clone())).collect(),
            verdict: verdict(IDLE_MAX, idle.now, "MB"),
        },
        Figure {
            title: format!("Memory of a worker after {events} events"),
            about,
            columns,
            rows,
            verdict: verdict(BUSY_MAX, busy.now, "MB"),
        },
        Figure {
            title: "Processor time of an idle worker".into(),
            about: format!(
                "Run time of all its threads in {} seconds, by `/proc/PID/task/*/schedstat`.",
                watched.as_secs()
            ),
            columns: vec!["of one processor"],
            rows: vec![Row::new("idle", vec![format!("{percent:.4} %")])],
            verdict: verdict(PERCENT_MAX, percent, "%"),
        },
    ])
}

fn mb(megabytes: f64) -> String {
    format!("{megabytes:.1} MB")
}

struct ResourceUse {
    now: f64,
    most: f64,
}

impl ResourceUse {
    fn of(pid: u32) -> BenchResult<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let line = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let kilobytes =
                line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
            kilobytes.map(|kilobytes| kilobytes / 1024.0).ok_or("the process is there")
        };
        Ok(Self { now: line("VmRSS:")?, most: line("VmHWM:")? })
    }
}

/// The share of a processor it uses during this time.
fn percent(pid: u32, time: Duration) -> BenchResult<f64> {
    let before = ran_for(pid)?;
    thread::sleep(time);
    let after = ran_for(pid)?;
    Ok(after.saturating_sub(before).as_secs_f64() / time.as_secs_f64() * 100.0)
}

fn ran_for(pid: u32) -> BenchResult<Duration> {
    let mut nanos = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        nanos += text.split_whitespace().next().ok_or("it has a number")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanos))
}

/// Waits until no event is unindexed or pending.
fn wait_until_done(worker: &WorkerProcess) -> BenchResult<()> {
    let mut lines = worker.lines()?;
    wait_for("a worker without work", || {
        let health = lines.ask(&json!({"type": "health"})).ok()?;
        let is_none = |name: &str| health[name]["events"] == 0;
        (is_none("unfolded") && is_none("unanswered")).then_some(())
    })
}

/// Sends this many events of sessions with ten turns each.
fn work(worker: &WorkerProcess, events: usize) -> BenchResult<()> {
    let mut lines = worker.lines()?;
    for turn in 0..events / (TURN + 1) {
        let session = format!("s{}", turn / 10);
        let mut turn_lines: Vec<String> = (0..TURN)
            .map(|number| {
                let file = format!("/work/shop/src/file_{turn}_{number}.rs");
                json!({"type": "observation", "session_id": session, "tool_name": "Write",
                    "tool_use_id": format!("t{turn}-{number}"),
                    "tool_input": {"file_path": file, "content": "fn main() {}\n".repeat(60)},
                    "tool_response": {"type": "create", "filePath": file}})
                .to_string()
            })
            .collect();
        let stop = json!({"type": "summarize", "session_id": session,
            "last_assistant_message": format!("Turn {turn} is done: the files are written.")});
        turn_lines.push(stop.to_string());
        lines.record(&(turn_lines.join("\n") + "\n"), turn_lines.len())?;
    }
    Ok(())
}
