//! The time from a key in the interactive search to the finished screen.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    process::Child,
    time::{Duration, Instant},
};

use claude_mem_tools::{pseudo_terminal, worker_process::command};

use super::{WITHOUT_VECTORS, figure, home, sizes};
use crate::bench::{Figure, Outcome, Samples, Scratch, Settings, binary, fold::sample};

const LIMIT: Duration = Duration::from_millis(50);
/// Shows the cursor. The last part of a frame while a query is typed.
const FRAME_END: &str = "\x1b[?25h";
/// Erases the query.
const CONTROL_U: &str = "\x15";

pub(super) fn measure(settings: &Settings, scratch: &Scratch) -> Outcome<Vec<Figure>> {
    let queries = sample::queries(settings.size(60, 3));
    let mut samples = Vec::new();
    for observations in sizes(settings) {
        let mut typist = Typist::start(&home(scratch, observations)?)?;
        let mut times = Vec::new();
        for query in &queries {
            for at in 1..=query.len() {
                times.push(typist.press(&query[at - 1..at], &format!("> {}", &query[..at]))?);
            }
            typist.press(CONTROL_U, "type to search")?;
        }
        samples.push(Samples::new(format!("{observations} observations"), times));
    }
    let about = "\
        `claude-mem` in a terminal of 80 × 24. Each query is three words of some memories, typed \
        letter by letter. The time from a key until the last byte of the screen that shows it; \
        the next key follows at once.";
    Ok(vec![figure("A key in the interactive search", about, &samples, LIMIT)])
}

/// A terminal with the interactive search.
struct Typist {
    child: Child,
    screen: File,
}

impl Typist {
    fn start(home: &std::path::Path) -> Outcome<Self> {
        let mut search = command(&binary()?, home, &[]);
        search.env(WITHOUT_VECTORS.0, WITHOUT_VECTORS.1);
        let (child, screen) = pseudo_terminal::spawn(search, 80, 24)?;
        let mut typist = Self { child, screen };
        typist.read_frame("type to search")?;
        Ok(typist)
    }

    /// Presses a key, and waits for the screen with this text.
    fn press(&mut self, key: &str, text: &str) -> Outcome<Duration> {
        let start = Instant::now();
        self.screen.write_all(key.as_bytes())?;
        self.read_frame(text)?;
        Ok(start.elapsed())
    }

    fn read_frame(&mut self, text: &str) -> Outcome<()> {
        let (mut read, mut piece) = (Vec::new(), [0; 16384]);
        loop {
            let length = self.screen.read(&mut piece)?;
            read.extend_from_slice(&piece[..length]);
            let shown = String::from_utf8_lossy(&read);
            if shown.ends_with(FRAME_END) && shown.contains(text) {
                return Ok(());
            }
        }
    }
}

impl Drop for Typist {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
