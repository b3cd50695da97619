//! The figures of embedding: time per text, and memory.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use claude_mem_embed::{Model, Role};

use super::{
    Contestant, Figure, Group, Outcome, Row, Scratch, Settings, Verdict, contest, report, time,
};

pub(super) const GROUP: Group = Group {
    name: "embed",
    about: "The built-in embedding model on one thread. The weights are in memory. Times are \
        processor time, because an embedding thread has the lowest priority and waits for all \
        others.",
    figures: &[("speed", speed), ("memory", memory)],
};

/// The system counts processor time in steps of some milliseconds.
const TEXTS_PER_TURN: u32 = 10;
const SENTENCE: &str =
    "Login requests are limited to five per minute and address; further ones get status 429. ";

fn speed(settings: &Settings, _: &Scratch) -> Outcome<Vec<Figure>> {
    let bytes = fs::read(model_file())?;
    let model = Model::parse(&bytes)?;
    let observation =
        "Login requests are limited to five per minute and address; others get status 429.";
    let (note, _) = SENTENCE.trim_end().rsplit_once(' ').unwrap_or_default();
    let note = SENTENCE.repeat(9) + note;
    let query = "how do we keep people from logging in too often at the office today";
    let embed = |text: &str, role| {
        let start = processor_time()?;
        for _ in 0..TEXTS_PER_TURN {
            model.embed(text, role);
        }
        Ok((processor_time()?.saturating_sub(start)) / TEXTS_PER_TURN)
    };
    // Title and narrative, and five facts.
    let texts =
        [&SENTENCE.repeat(5), SENTENCE, SENTENCE, SENTENCE, &SENTENCE[..30], &SENTENCE[..50]];
    let memory = |embed: &dyn Fn()| {
        let start = processor_time()?;
        embed();
        Ok(processor_time()?.saturating_sub(start))
    };
    let mut contestants = [
        Contestant::new("query of 24 tokens, prefix included", || embed(query, Role::Query)),
        Contestant::new("memory of 20 tokens", || embed(observation, Role::Memory)),
        Contestant::new("memory of 189 tokens", || embed(&note, Role::Memory)),
        Contestant::new("memory of six texts, one after the other", || {
            memory(&|| {
                for text in texts {
                    model.embed(text, Role::Memory);
                }
            })
        }),
        Contestant::new("memory of six texts, together", || {
            memory(&|| drop(model.embed_all(&texts, Role::Memory)))
        }),
    ];
    let samples = contest(settings.size(20, 1), &mut contestants)?;
    let parsed = time(|| Ok(Model::parse(&bytes)?.id()))?.0;
    let rows = samples.iter().map(|one| {
        let per_second = format!("{:.1}", 1.0 / one.min().as_secs_f64().max(1e-9));
        let times = [one.min(), one.median(), one.max()].map(report::show);
        Row::new(&one.name, [&times[..], &[per_second]].concat())
    });
    let query = samples[0].median();
    Ok(vec![Figure {
        title: "Embedding a text".into(),
        about: format!(
            "{TEXTS_PER_TURN} texts per turn. Opening the model takes {}.",
            report::show(parsed)
        ),
        columns: vec!["fastest", "median", "slowest", "per second of a processor, by the fastest"],
        rows: rows.collect(),
        verdict: Some(Verdict {
            target: "a query in at most 18 ms".into(),
            reached: report::show(query),
            is_met: query.as_millis() < 18,
        }),
    }])
}

fn memory(_: &Settings, _: &Scratch) -> Outcome<Vec<Figure>> {
    let bytes = fs::read(model_file())?;
    let before = kilobytes("VmRSS:")?;
    // From here on, the peak is that of the embedding.
    fs::write("/proc/self/clear_refs", "5")?;
    let model = Model::parse(&bytes)?;
    model.embed(&SENTENCE.repeat(60), Role::Memory);
    let (peak, after) = (kilobytes("VmHWM:")?, kilobytes("VmRSS:")?);
    let megabytes =
        |kilobytes: u64| format!("{:.1} MB", kilobytes.saturating_sub(before) as f64 / 1024.0);
    Ok(vec![Figure {
        title: "Memory for the model".into(),
        about: "Resident memory beyond the model file, while and after the longest text that the \
            model reads (512 tokens) is embedded. The file is mapped by the executable, and its \
            pages can be dropped at any time."
            .into(),
        columns: vec!["megabytes"],
        rows: vec![
            Row::new("most while embedding", vec![megabytes(peak)]),
            Row::new("afterwards", vec![megabytes(after)]),
            Row::new("model file", vec![format!("{:.1} MB", bytes.len() as f64 / 1e6)]),
        ],
        verdict: Some(Verdict {
            target: "at most 10 MB afterwards".into(),
            reached: megabytes(after),
            is_met: after.saturating_sub(before) <= 10 * 1024,
        }),
    }])
}

fn model_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/model/arctic-embed-s.bin")
}

/// The processor time of this thread.
fn processor_time() -> Outcome<Duration> {
    let statistics = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = statistics.split(' ').next().ok_or("no statistics")?;
    Ok(Duration::from_nanos(nanos.parse()?))
}

fn kilobytes(name: &str) -> Outcome<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("no such line")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
