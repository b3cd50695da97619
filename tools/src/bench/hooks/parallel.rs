//! Eight hooks at the same moment, as several sessions bring them. Every session is a process of its own:
//! threads of one process that start programs wait for one another, whatever they start.

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
const BYTES: usize = 4 << 10;
/// How long before their moment sessions hear of it, so that all are waiting for it.
const NOTICE: Duration = Duration::from_millis(3);
/// How long after their moment sessions answer: while a hook runs, nobody but hooks shall.
const ANSWER: Duration = Duration::from_millis(12);

pub(super) fn measure(settings: &Settings, scratch: &Scratch) -> Outcome<Vec<Figure>> {
    let world = World::new(scratch, "parallel")?;
    let mut sessions = (0..HOOKS).map(|_| Session::begin(&world)).collect::<Outcome<Vec<_>>>()?;
    let (mut alone, mut half, mut together) = (Vec::new(), Vec::new(), Vec::new());
    let (mut empty_alone, mut empty_together) = (Vec::new(), Vec::new());
    for _ in 0..settings.size(150, 2) {
        alone.extend(all_at_once(&mut sessions[..1], &world.hook)?);
        half.extend(all_at_once(&mut sessions[..HOOKS / 2], &world.hook)?);
        together.extend(all_at_once(&mut sessions, &world.hook)?);
        empty_alone.extend(all_at_once(&mut sessions[..1], &world.empty)?);
        empty_together.extend(all_at_once(&mut sessions, &world.empty)?);
    }
    for session in sessions {
        session.end()?;
    }
    for times in [&mut alone, &mut half, &mut together, &mut empty_alone, &mut empty_together] {
        times.sort();
    }
    let at = |times: &[Duration], share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let ratio = |together: &[Duration], alone: &[Duration]| {
        at(together, 0.99).as_secs_f64() / at(alone, 0.5).as_secs_f64()
    };
    let times = ratio(&together, &alone);
    let times_half = ratio(&half, &alone);
    let times_empty = ratio(&empty_together, &empty_alone);
    let row = |name: &str, times: &[Duration]| {
        let shares = [0.0, 0.5, 0.99].map(|share| report::show(at(times, share)));
        Row::new(name, shares.to_vec())
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    Ok(vec![Figure {
        title: "Eight hooks in parallel".into(),
        about: format!(
            "Eight sessions start one `save` of 4 KB each at the same moment, on {processors} processors, which \
             alone makes the last of them wait for {} others; then one runs alone; and so on in turns. Eight empty \
             programs, started in the same way, come to {times_empty:.2} × the median of one of theirs: that much is the \
             system's. Four hooks, as many for each processor as eight have on {}, come to {times_half:.2} ×.",
            (HOOKS / processors).saturating_sub(1),
            2 * processors
        ),
        columns: vec!["fastest", "median", "99 of 100 are faster"],
        rows: vec![
            row("one alone", &alone),
            row("each of four", &half),
            row("each of eight", &together),
            row("one empty program alone", &empty_alone),
            row("each of eight empty programs", &empty_together),
        ],
        verdict: Some(Verdict {
            target: format!("99 of 100 within {LIMIT} × the median of one"),
            reached: format!("{times:.2} ×"),
            is_met: times <= LIMIT,
        }),
    }])
}

/// A session: a process of its own, which starts hooks when it is told to.
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

/// Has every session start `program` at the same moment.
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

/// What a session does: a line says when to start which program, and is answered with how long it took.
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
