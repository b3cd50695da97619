//! Other log engines, filled and read in the same way as ours, each with its best settings.
//!
//! `claude-mem-peers fill ENGINE DIR RECORDS BYTES` creates a log. `claude-mem-peers read ENGINE
//! DIR` opens it, reads every payload with every check of the engine, and prints `NANOSECONDS
//! RECORDS BYTES`. The time does not include the start of this program.

mod commitlog;
mod fjall;
mod okaywal;

use std::{env, error::Error, path::Path, process::ExitCode, time::Instant};

/// The totals of a read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sum {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

impl Sum {
    pub(crate) fn add(&mut self, payload: &[u8]) {
        self.records += 1;
        self.bytes += payload.len() as u64;
    }
}

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

trait Peer {
    /// Creates a log with these payloads.
    fn fill(&self, dir: &Path, payloads: &mut dyn Iterator<Item = Vec<u8>>) -> Outcome<()>;
    /// Opens the log, and reads and checks all records.
    fn read(&self, dir: &Path) -> Outcome<Sum>;
}

fn peer(name: &str) -> Outcome<&'static dyn Peer> {
    match name {
        "commitlog" => Ok(&commitlog::Commitlog),
        "fjall" => Ok(&fjall::Fjall),
        "okaywal" => Ok(&okaywal::Okaywal),
        _ => Err(format!("no peer is called {name}").into()),
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Outcome<()> {
    match *words {
        ["fill", name, dir, records, bytes] => {
            let (records, bytes) = (records.parse()?, bytes.parse()?);
            peer(name)?.fill(Path::new(dir), &mut payloads(records, bytes))
        }
        ["read", name, dir] => {
            let peer = peer(name)?;
            let start = Instant::now();
            let sum = peer.read(Path::new(dir))?;
            println!("{} {} {}", start.elapsed().as_nanos(), sum.records, sum.bytes);
            Ok(())
        }
        _ => Err("usage: fill ENGINE DIR RECORDS BYTES | read ENGINE DIR".into()),
    }
}

/// Incompressible bytes (xorshift).
fn payloads(records: u64, bytes: usize) -> impl Iterator<Item = Vec<u8>> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut word = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..records).map(move |_| {
        let mut payload: Vec<u8> = (0..bytes.div_ceil(8)).flat_map(|_| word()).collect();
        payload.truncate(bytes);
        payload
    })
}
