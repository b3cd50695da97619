//! Folding that is killed hundreds of times gives the same rows as undisturbed folding.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod made;

use claude_mem_log::{Log, Options as LogOptions};
use claude_mem_projections::{FoldState, Options, Store, rebuild};
use made::{dump, fill};
use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

const DIR: &str = "CLAUDE_MEM_TEST_FOLD_DIR";
const REBUILDS: &str = "CLAUDE_MEM_TEST_REBUILDS";
const KILLS: usize = 300;

/// The child process: folds a few events at a time and prints a line after each batch.
#[test]
fn child() {
    let Some(dir) = env::var_os(DIR) else { return };
    let dir = Path::new(&dir);
    let log = Log::open(&dir.join("log"), LogOptions::default()).unwrap();
    let path = dir.join("memory.db");
    let options = Options { batch_events: 2, ..Options::default() };
    let mut out = std::io::stdout();
    if env::var_os(REBUILDS).is_some() {
        rebuild(&path, &log, &options, |_| drop(writeln!(out, "step"))).unwrap();
        return;
    }
    let mut store = Store::open(&path, options).unwrap();
    let folded = store
        .fold(&log, |_| {
            let _ = writeln!(out, "step");
            true
        })
        .unwrap();
    assert_eq!(folded.state, FoldState::Complete);
    let _ = writeln!(out, "complete");
}

fn start(dir: &Path, rebuilds: bool) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture"]).env(DIR, dir).stdout(Stdio::piped());
    if rebuilds {
        command.env(REBUILDS, "1");
    }
    command.spawn().unwrap()
}

/// Kills a child some time after it has reported `steps` batches. Returns whether it had finished
/// before.
fn kill_after(mut child: Child, steps: usize, more: Duration) -> bool {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut seen = 0;
    for line in lines {
        if line.contains("complete") {
            child.wait().unwrap();
            return true;
        }
        seen += usize::from(line.contains("step"));
        if seen >= steps {
            break;
        }
    }
    let begin = Instant::now();
    while begin.elapsed() < more {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    false
}

/// Pseudorandom numbers, the same in every run.
fn random(state: &mut u64, below: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state % below
}

#[test]
fn killing_the_fold_hundreds_of_times_gives_the_same_rows() {
    let dir = tempfile::tempdir().unwrap();
    let log = fill(&dir.path().join("log"), 60);
    let mut undisturbed = Store::in_memory().unwrap();
    undisturbed.fold(&log, |_| true).unwrap();
    let expected = dump(&undisturbed);
    let (mut state, mut kills, mut is_complete) = (0x9E37_79B9_7F4A_7C15, 0, false);
    while !is_complete || kills < KILLS {
        if is_complete {
            // Once more from the beginning.
            check(dir.path(), &expected);
            for suffix in ["", "-wal", "-shm"] {
                let _ = fs::remove_file(dir.path().join(format!("memory.db{suffix}")));
            }
        }
        // Also kills before the first batch; every ninth process rebuilds.
        let (steps, more) = (random(&mut state, 6) as usize, random(&mut state, 1500));
        let rebuilds = kills % 9 == 8;
        is_complete = kill_after(start(dir.path(), rebuilds), steps, Duration::from_micros(more));
        kills += usize::from(!is_complete);
    }
    check(dir.path(), &expected);
}

fn check(dir: &Path, expected: &str) {
    let store = Store::open(&dir.join("memory.db"), Options::default()).unwrap();
    assert_eq!(dump(&store), expected);
    assert_eq!(store.dump("pragma integrity_check").unwrap(), "ok\n");
}
