//! The figures of shipping: bytes uploaded, and the time of a restore.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use claude_mem_log::{Appender, Item, Log, Options, Record};

use super::{
    Contestant, Figure, Group, Outcome, Row, Scratch, Settings, Verdict, binary, contest, fold,
    report, time,
};

pub(super) const GROUP: Group = Group {
    name: "ship",
    about: "Backups of the log, uploaded and restored by the program itself. The log is \
            generated: turns of a prompt, eight tool uses of about 1 KB, a stop and a reply. \
            Words are distributed as in a natural language.",
    figures: &[("bytes", bytes), ("restore", restore)],
};

/// Events per upload while a session is active.
const TOGETHER: usize = 4;

/// A machine with an empty data directory and a remote.
struct Machine {
    data: PathBuf,
    place: PathBuf,
    is_compressed: bool,
}

impl Machine {
    fn new(scratch: &Scratch, name: &str, is_compressed: bool) -> Outcome<Self> {
        let dir = scratch.place(name);
        let machine = Self { data: dir.join("data"), place: dir.join("place"), is_compressed };
        fs::create_dir_all(&machine.data)?;
        Ok(machine)
    }

    fn command(&self, words: &[&str]) -> Outcome<Command> {
        let mut command = Command::new(binary()?);
        command.args(words).env("CLAUDE_MEM_DATA_DIR", &self.data);
        command.env("CLAUDE_MEM_SHIP_COMPRESS", self.is_compressed.to_string());
        command.env("CLAUDE_MEM_SHIP_TO", &self.place);
        Ok(command)
    }

    fn ship(&self) -> Outcome<u64> {
        let output = self.command(&["ship", "--json"])?.stderr(Stdio::inherit()).output()?;
        put_bytes(&String::from_utf8(output.stdout)?)
    }
}

/// A `ship --follow` that reports every upload.
struct Follower {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Follower {
    fn start(machine: &Machine) -> Outcome<Self> {
        let words = ["ship", "--follow", "--json", "--every", "1"];
        let mut child = machine.command(&words)?.stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or("there is no stdout")?;
        Ok(Self { child, lines: BufReader::new(stdout) })
    }

    /// Waits for an upload, and returns its bytes.
    fn next(&mut self) -> Outcome<u64> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        put_bytes(&line)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn put_bytes(line: &str) -> Outcome<u64> {
    let report: serde_json::Value = serde_json::from_str(line)?;
    report["put_bytes"].as_u64().ok_or_else(|| format!("{line} has no bytes").into())
}

fn bytes(settings: &Settings, scratch: &Scratch) -> Outcome<Vec<Figure>> {
    let sample = scratch.place("ship-sample");
    fold::sample::fill(&sample, settings.size(4000, 200))?;
    let mut rows = Vec::new();
    let mut worst = [0.0_f64; 2];
    for is_compressed in [true, false] {
        let name = if is_compressed { "compressed" } else { "as it is" };
        let machine = Machine::new(scratch, &format!("ship-once-{is_compressed}"), is_compressed)?;
        copy(&sample, &machine.data.join("log"))?;
        let put = machine.ship()?;
        let log = log_bytes(&machine.data.join("log"))?;
        rows.push(row(&format!("all at once, {name}"), log, put));
        let ratio = put as f64 / log as f64;
        let machine = Machine::new(scratch, &format!("ship-live-{is_compressed}"), is_compressed)?;
        let (log, put) = live(&sample, &machine)?;
        rows.push(row(&format!("as recorded, {TOGETHER} events at a time, {name}"), log, put));
        worst[usize::from(!is_compressed)] = ratio.max(put as f64 / log as f64);
    }
    let [compressed, plain] = worst;
    Ok(vec![Figure {
        title: "Bytes shipped".into(),
        about: "Everything uploaded to a directory, including entries and manifests, per byte of \
                log. Increments that are merged later count twice."
            .into(),
        columns: vec!["bytes of log", "bytes put", "per byte"],
        rows,
        verdict: Some(Verdict {
            target: "at most 0.6 per byte compressed, 1.1 as it is".into(),
            reached: format!("{compressed:.3}, {plain:.3}"),
            is_met: compressed <= 0.6 && plain <= 1.1,
        }),
    }])
}

fn row(name: &str, log: u64, put: u64) -> Row {
    let ratio = format!("{:.3}", put as f64 / log as f64);
    Row::new(name, vec![log.to_string(), put.to_string(), ratio])
}

/// Records the sample a few events at a time, and ships each batch before the next.
fn live(sample: &Path, machine: &Machine) -> Outcome<(u64, u64)> {
    let dir = machine.data.join("log");
    let mut appender = Appender::open(&dir, Options::default())?;
    let mut reader = Log::open(sample, Options::default())?.read_from_start();
    let mut following = None;
    let mut put = 0;
    let mut waiting = 0;
    while let Some(item) = reader.next()? {
        let Item::Record(entry) = item else { return Err("the sample is damaged".into()) };
        let (id, kind, schema, codec) = (entry.id, entry.kind, entry.schema, entry.codec);
        appender.append(&Record { id, kind, schema, codec, payload: entry.payload })?;
        waiting += 1;
        if waiting == TOGETHER {
            waiting = 0;
            if following.is_none() {
                following = Some(Follower::start(machine)?);
            }
            put += following.as_mut().ok_or("it was started")?.next()?;
        }
    }
    drop(following);
    put += machine.ship()?;
    Ok((log_bytes(&dir)?, put))
}

fn restore(settings: &Settings, scratch: &Scratch) -> Outcome<Vec<Figure>> {
    let mut machines = Vec::new();
    let log = scratch.place("restore-log");
    fold::sample::fill(&log, settings.size(800_000, 500))?;
    for is_compressed in [true, false] {
        let machine = Machine::new(scratch, &format!("restore-{is_compressed}"), is_compressed)?;
        fs::rename(&log, machine.data.join("log"))?;
        machine.ship()?;
        fs::rename(machine.data.join("log"), &log)?;
        machines.push(machine);
    }
    let bytes = log_bytes(&log)?;
    let target = scratch.place("restored");
    let mut contestants = vec![Contestant::new("`cp -r` of the log, and `sync`", || {
        let run = || {
            ran(Command::new("cp").arg("-r").arg(&log).arg(&target))?;
            ran(Command::new("sync").arg("-f").arg(&target))
        };
        finished(&target, run)
    })];
    for machine in &machines {
        let name = if machine.is_compressed { "compressed" } else { "as it is" };
        let (target, log) = (&target, &log);
        contestants.push(Contestant::new(
            format!("`restore` from a directory, {name}"),
            move || {
                let into = target.to_str().ok_or("a path that is not UTF-8")?;
                let mut command = machine.command(&["restore", "--log-only", "--into", into])?;
                command.stdout(Stdio::null()).stderr(Stdio::null());
                let taken = time(|| ran(&mut command))?.0;
                if log_bytes(&target.join("log"))? != log_bytes(log)? {
                    return Err("the restored log differs".into());
                }
                fs::remove_dir_all(target)?;
                Ok(taken)
            },
        ));
    }
    let samples = contest(settings.size(5, 1), &mut contestants)?;
    drop(contestants);
    let slowest = samples[1..].iter().map(|one| one.times_min(&samples[0])).fold(0.0, f64::max);
    Ok(vec![Figure {
        title: "Restoring".into(),
        about: format!(
            "{bytes} bytes of log from a directory on the same disk, every object checked against \
             its checksum and every part of a segment against its hash in the manifest, all of it \
             synced. The database is not built."
        ),
        columns: report::TIMES.to_vec(),
        rows: report::against_first(&samples),
        verdict: Some(Verdict {
            target: "at least half the speed of a plain copy".into(),
            reached: format!("{:.2}", 1.0 / slowest),
            is_met: slowest <= 2.0,
        }),
    }])
}

/// The time of a restore, whose result is then deleted.
fn finished(target: &Path, run: impl FnOnce() -> Outcome<()>) -> Outcome<Duration> {
    let taken = time(run)?.0;
    fs::remove_dir_all(target)?;
    Ok(taken)
}

fn ran(command: &mut Command) -> Outcome<()> {
    match command.status()? {
        status if status.success() => Ok(()),
        status => Err(format!("{command:?} ended with {status}").into()),
    }
}

fn copy(from: &Path, to: &Path) -> Outcome<()> {
    ran(Command::new("cp").arg("-r").arg(from).arg(to))
}

fn log_bytes(log: &Path) -> Outcome<u64> {
    let segments = Log::open(log, Options::default())?.segments()?;
    Ok(segments.iter().map(|segment| segment.bytes).sum())
}
