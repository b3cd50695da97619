//! The figures of vectors: the comparison of one query with every record of the file.

use std::path::Path;

use claude_mem_tools::random::Random;
use claude_mem_vectors::{MemoryKey, VectorWriter, Vectors, Window, digest, file};

use super::{
    BenchResult, Contestant, Figure, Group, Row, Scratch, Settings, Verdict, contest, report, time,
};

pub(super) const VECTORS: Group = Group {
    name: "vectors",
    about: "The exact scan: a query of 384 dimensions is compared with every record, and the 200 \
        nearest memories are chosen. The vectors are random; a scan does the same work for all. \
        The file is in the page cache.",
    figures: &[("scan", scan), ("million", scan_million)],
};

const MODEL: [u8; 16] = [1; 16];
const DIMENSIONS: usize = 384;
const NEAREST: usize = 200;

fn scan(settings: Settings, scratch: &Scratch) -> BenchResult<Vec<Figure>> {
    measure(settings.size(100_000, 1_000), 4, settings, scratch)
}

fn scan_million(settings: Settings, scratch: &Scratch) -> BenchResult<Vec<Figure>> {
    measure(settings.size(1_000_000, 2_000), 30, settings, scratch)
}

fn measure(
    count: u64,
    wanted_millis: u64,
    settings: Settings,
    scratch: &Scratch,
) -> BenchResult<Vec<Figure>> {
    let path = file(&scratch.place(&format!("vectors-{count}")), &MODEL);
    let center = vec![0.02; DIMENSIONS];
    let mut random = Random::new(1);
    fill(&path, &center, count, &mut random)?;
    let opened = || -> BenchResult<Vectors> {
        Vectors::open(&path, MODEL, &center)?.ok_or_else(|| "the file cannot be used".into())
    };
    let mut vectors = opened()?;
    let queries: Vec<Vec<f32>> = (0..16).map(|_| unit_vector(&mut random)).collect();
    let mut next = queries.iter().cycle();
    let bytes_in_memory = std::fs::read(&path)?;
    let mut contestants = [
        Contestant::new("read as many bytes from memory once", || {
            let (taken, sum) = time(|| Ok(sum(&bytes_in_memory)))?;
            std::hint::black_box(sum);
            Ok(taken)
        }),
        Contestant::new("scan and choose", || {
            let query = next.next().ok_or("there are queries")?;
            let (taken, best) = time(|| Ok(vectors.query(query)?.best(NEAREST)))?;
            assert_eq!(best.len(), NEAREST);
            Ok(taken)
        }),
        Contestant::new("open the file: check and group all records", || Ok(time(opened)?.0)),
    ];
    let samples = contest(settings.size(200, 3), &mut contestants)?;
    drop(contestants);
    let refreshed = time(|| Ok(vectors.refresh()?))?.0;
    let rows = samples.iter().map(|one| {
        let times = [one.min(), one.median(), one.at(0.95), one.max()];
        Row::new(&one.name, times.map(report::show).to_vec())
    });
    let (ratio, p95) = (samples[1].times_min(&samples[0]), samples[1].at(0.95));
    let bytes = std::fs::metadata(&path)?.len();
    std::fs::remove_file(&path)?;
    Ok(vec![Figure {
        title: format!("Scan of {count} records"),
        about: format!(
            "{bytes} bytes. Checking for appended or erased records takes {}.",
            report::show(refreshed)
        ),
        columns: vec!["fastest", "p50", "p95", "longest"],
        rows: rows.collect(),
        verdict: Some(Verdict {
            target: format!("p95 at most {wanted_millis} ms"),
            reached: format!(
                "{}; {ratio:.1} × reading the bytes, by the fastest turns",
                report::show(p95)
            ),
            is_met: p95.as_millis() < u128::from(wanted_millis),
        }),
    }])
}

/// Adds up all words: the lower bound for a scan.
fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(8).filter_map(|word| word.first_chunk().copied());
    words.map(u64::from_le_bytes).fold(0, u64::wrapping_add)
}

/// Writes records of random vectors, one per memory.
fn fill(path: &Path, center: &[f32], count: u64, random: &mut Random) -> BenchResult<()> {
    let mut writer =
        VectorWriter::open(path, MODEL, center)?.ok_or("another process writes there")?;
    for row in 0..count as i64 {
        let digest = digest(&MODEL, &row.to_string());
        let window = Window { digest, vector: Some(unit_vector(random)) };
        writer.put(MemoryKey { kind: 0, row }, &[window], || true)?;
    }
    Ok(())
}

/// A random vector of length 1.
pub(super) fn unit_vector(random: &mut Random) -> Vec<f32> {
    let mut component = || (random.bits() >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
    let values: Vec<f32> = (0..DIMENSIONS).map(|_| component()).collect();
    let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
    values.iter().map(|value| value / length).collect()
}
