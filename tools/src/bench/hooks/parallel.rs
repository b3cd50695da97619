//! Eight hooks at the same moment, as from several sessions. Each session is a process: threads of
//! one process that start programs block each other.

use std::{
    env,
    io::{self, BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, UNIX_EPOCH},
};

use super::world::{self, World};
use crate::bench::{Figure, Outcome, Row, Scratch, Settings, Verdict, report};

const HOOKS: usize = 8;
const LIMIT: f64 = 4.0;
const BLOCKS: usize = 5;
const BYTES: usize = 4 << 10;
/// Time between the command and the start, so that all sessions are ready.
const NOTICE: Duration = Duration::from_millis(3);
/// Time between the start and the response: while hooks run, nothing else does.
const ANSWER: Duration = Duration::from_millis(12);

pub(super) fn measure(settings: &Settings, scratch: &Scratch) -> Outcome<Vec<Figure>> {
    let world = World::new(scratch, "parallel")?;
    let mut sessions = (0..HOOKS).map(|_| Session::begin(&world)).collect::<Outcome<Vec<_>>>()?;
    let (mut hooks, mut empties) = (Crowds::default(), Crowds::default());
    for _ in 0..BLOCKS {
        hooks.begin_block();
        empties.begin_block();
        for _ in 0..settings.size(60, 2) {
            hooks.run(&mut sessions, &world.hook)?;
            empties.run(&mut sessions, &world.empty)?;
        }
    }
    for session in sessions {
        session.end()?;
    }
    let times = hooks.times(|block| &block.eight);
    let processors = thread::available_parallelism().map_or(1, usize::from);
    Ok(vec![Figure {
        title: "Eight hooks in parallel".into(),
        about: format!(
            "Eight sessions start one `save` of 4 KB each at the same moment on {processors} \
             processors, so the last one waits for {} others. Then one runs alone, and so on in \
             turns. The figure is the median of {BLOCKS} blocks, because other work of the \
             machine shows in the slowest percent. Eight empty programs, started in the same way, \
             take {:.2} × the median of one: this part is the system's. Four hooks, as many per \
             processor as eight on {}, take {:.2} ×.",
            (HOOKS / processors).saturating_sub(1),
            empties.times(|block| &block.eight),
            2 * processors,
            hooks.times(|block| &block.four),
        ),
        columns: vec!["fastest", "median", "99 of 100 are faster"],
        rows: vec![
            hooks.row("one alone", |block| &block.one),
            hooks.row("each of four", |block| &block.four),
            hooks.row("each of eight", |block| &block.eight),
            empties.row("one empty program alone", |block| &block.one),
            empties.row("each of eight empty programs", |block| &block.eight),
        ],
        verdict: Some(Verdict {
            target: format!("99 of 100 within {LIMIT} × the median of one"),
            reached: format!("{times:.2} ×"),
            is_met: times <= LIMIT,
        }),
    }])
}

/// The times of a program, alone and in parallel.
#[derive(Debug, Default)]
struct Block {
    one: Vec<Duration>,
    four: Vec<Duration>,
    eight: Vec<Duration>,
}

#[derive(Debug, Default)]
struct Crowds(Vec<Block>);

impl Crowds {
    fn begin_block(&mut self) {
        self.0.push(Block::default());
    }

    fn run(&mut self, sessions: &mut [Session], program: &Path) -> Outcome<()> {
        let block = self.0.last_mut().ok_or("a block has begun")?;
        block.one.extend(all_at_once(&mut sessions[..1], program)?);
        block.four.extend(all_at_once(&mut sessions[..HOOKS / 2], program)?);
        block.eight.extend(all_at_once(sessions, program)?);
        Ok(())
    }

    /// The ratio of the 99th percentile to a single run, in the median block.
    fn times(&self, crowd: impl Fn(&Block) -> &Vec<Duration>) -> f64 {
        let times =
            |block| share(crowd(block), 0.99).as_secs_f64() / share(&block.one, 0.5).as_secs_f64();
        let mut blocks: Vec<f64> = self.0.iter().map(times).collect();
        blocks.sort_by(f64::total_cmp);
        blocks[blocks.len() / 2]
    }

    fn row(&self, name: &str, crowd: impl Fn(&Block) -> &Vec<Duration>) -> Row {
        let all: Vec<Duration> =
            self.0.iter().flat_map(|block| crowd(block).iter().copied()).collect();
        let shares = [0.0, 0.5, 0.99].map(|part| report::show(share(&all, part)));
        Row::new(name, shares.to_vec())
    }
}

/// The time that this share of the runs does not exceed.
fn share(times: &[Duration], share: f64) -> Duration {
    let mut times = times.to_vec();
    times.sort();
    times[((times.len() - 1) as f64 * share) as usize]
}

/// A session: a process that starts hooks on command.
struct Session {
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Session {
    fn begin(world: &World) -> Outcome<Self> {
        let mut command = Command::new(env::current_exe()?);
        command.args(["bench", "--child", "session"]).arg(&world.home);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let orders = process.stdin.take().ok_or("stdin is a pipe")?;
        let answers = BufReader::new(process.stdout.take().ok_or("stdout is a pipe")?);
        Ok(Self { process, orders, answers })
    }

    fn end(mut self) -> Outcome<()> {
        drop(self.orders);
        let status = self.process.wait()?;
        if status.success() { Ok(()) } else { Err(format!("a session ended with {status}").into()) }
    }
}

/// Starts `program` in every session at the same moment.
fn all_at_once(sessions: &mut [Session], program: &Path) -> Outcome<Vec<Duration>> {
    let moment = UNIX_EPOCH.elapsed()? + NOTICE;
    for session in &mut *sessions {
        writeln!(session.orders, "{} {}", moment.as_nanos(), program.display())?;
    }
    let mut times = Vec::new();
    for session in sessions {
        let mut line = String::new();
        session.answers.read_line(&mut line)?;
        times.push(Duration::from_nanos(line.trim().parse()?));
    }
    Ok(times)
}

/// The main loop of a session: each input line has a time and a program, each output line the
/// duration.
pub(super) fn session(home: &Path) -> Outcome<()> {
    let input = world::input(BYTES);
    for line in io::stdin().lines() {
        let line = line?;
        let (moment, program) = line.split_once(' ').ok_or("no moment")?;
        let mut command = world::command_in(home, "save", program.as_ref(), "default");
        let moment = Duration::from_nanos(moment.parse()?);
        thread::sleep(moment.saturating_sub(UNIX_EPOCH.elapsed()?));
        let taken = world::run(&mut command, &input)?;
        thread::sleep((moment + ANSWER).saturating_sub(UNIX_EPOCH.elapsed()?));
        let mut answers = io::stdout();
        writeln!(answers, "{}", taken.as_nanos())?;
        answers.flush()?;
    }
    Ok(())
}
