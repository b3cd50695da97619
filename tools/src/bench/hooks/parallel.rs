//! Eight hooks at the same moment, as parallel tools of several sessions bring them.

use std::{path::Path, sync::Barrier, thread, time::Duration};

use super::world::{self, World};
use crate::bench::{Figure, Outcome, Row, Scratch, Settings, Verdict, report};

const HOOKS: usize = 8;
const LIMIT: f64 = 4.0;

pub(super) fn measure(settings: &Settings, scratch: &Scratch) -> Outcome<Vec<Figure>> {
    let world = World::new(scratch, "parallel")?;
    let input = world::input(4 << 10);
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    let (mut empty_alone, mut empty_together) = (Vec::new(), Vec::new());
    for _ in 0..settings.size(150, 2) {
        alone.push(world.turn(&world.hook, "default", &input)?);
        together.extend(all_at_once(&world, &world.hook, &input)?);
        empty_alone.push(world.turn(&world.empty, "default", &input)?);
        empty_together.extend(all_at_once(&world, &world.empty, &input)?);
    }
    for times in [&mut alone, &mut together, &mut empty_alone, &mut empty_together] {
        times.sort();
    }
    let at = |times: &[Duration], share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let ratio = |together: &[Duration], alone: &[Duration]| {
        at(together, 0.99).as_secs_f64() / at(alone, 0.5).as_secs_f64()
    };
    let times = ratio(&together, &alone);
    let times_empty = ratio(&empty_together, &empty_alone);
    let row = |name: &str, times: &[Duration]| {
        let shares = [0.0, 0.5, 0.99].map(|share| report::show(at(times, share)));
        Row::new(name, shares.to_vec())
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    Ok(vec![Figure {
        title: "Eight hooks in parallel".into(),
        about: format!(
            "Eight threads start one `save` of 4 KB each at the same moment, on {processors} processors, which \
             alone makes the last of them wait for {} others; then one runs alone; and so on in turns. Eight empty \
             programs, started in the same way, come to {times_empty:.2} × the median of one of theirs: that much is the \
             system's.",
            HOOKS / processors - 1
        ),
        columns: vec!["fastest", "median", "99 of 100 are faster"],
        rows: vec![
            row("one alone", &alone),
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

fn all_at_once(world: &World, program: &Path, input: &[u8]) -> Outcome<Vec<Duration>> {
    let barrier = Barrier::new(HOOKS);
    thread::scope(|scope| {
        let running: Vec<_> = (0..HOOKS)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    world.turn(program, "default", input).map_err(|error| error.to_string())
                })
            })
            .collect();
        let ended = running.into_iter().map(|one| one.join().expect("a turn does not panic"));
        Ok(ended.collect::<Result<_, _>>()?)
    })
}
