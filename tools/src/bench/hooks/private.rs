//! Redaction of input that consists of secrets and private text.

use super::world::{self, World};
use crate::bench::{BenchResult, Contestant, Figure, Scratch, Settings, Verdict, contest, report};

const BYTES: usize = 10 << 20;
const LIMIT_MS: f64 = 50.0;

pub(super) fn measure_private(settings: Settings, scratch: &Scratch) -> BenchResult<Vec<Figure>> {
    let world = World::new(scratch, "private")?;
    let bytes = settings.size(BYTES as u64, 1 << 20) as usize;
    let of = |unit: &str| world::input_of(&unit.repeat(bytes / unit.len()));
    let inputs = [
        ("save, 10 MB of output", world::input(bytes)),
        ("save, 10 MB of `<private>`", of("<private>")),
        ("save, 10 MB of `<private>x</private>`", of("<private>x</private>")),
    ];
    let mut contestants: Vec<_> = inputs
        .iter()
        .map(|(name, input)| Contestant::new(*name, || world.turn(&world.hook, "default", input)))
        .collect();
    let samples = contest(settings.size(30, 2), &mut contestants)?;
    drop(contestants);
    let slowest = samples[1].min().max(samples[2].min()).as_secs_f64() * 1e3;
    Ok(vec![Figure {
        title: "10 MB of private text".into(),
        about: "The whole hook, including its start and the input through the pipe; by the \
                fastest turns, and by the slower of two kinds of private text."
            .into(),
        columns: report::TIMES.to_vec(),
        rows: report::against_first(&samples),
        verdict: Some(Verdict {
            target: format!("below {LIMIT_MS} ms"),
            reached: format!("{slowest:.1} ms"),
            is_met: slowest < LIMIT_MS,
        }),
    }])
}
