//! The recording of one tool use, compared with a program that does nothing.

use std::process::{Command, Stdio};

use super::world::{self, World};
use crate::bench::{
    BenchResult, Contestant, Figure, Samples, Scratch, Settings, Verdict, contest, report,
};

pub(super) fn measure_save(settings: Settings, scratch: &Scratch) -> BenchResult<Vec<Figure>> {
    let world = World::new(scratch, "save")?;
    let (small, large) = (world::input(4 << 10), world::input(1 << 20));
    let hook = |name: &str, sync: &'static str, input| {
        let world = &world;
        Contestant::new(name, move || world.turn(&world.hook, sync, input))
    };
    let mut contestants = vec![
        Contestant::new("the empty program, 4 KB", || world.turn(&world.empty, "default", &small)),
        hook("save, 4 KB", "default", &small),
        hook("save, 4 KB, synced", "always", &small),
        hook("save, 1 MB", "default", &large),
    ];
    if let Some(node) = world::node() {
        let input = &small;
        contestants.push(Contestant::new("Node doing nothing, 4 KB", move || {
            let mut command = Command::new(&node);
            command.args(["-e", "0"]).stdin(Stdio::piped()).stdout(Stdio::piped());
            world::run(&mut command, input)
        }));
    }
    let hooks = 3;
    contest(1, &mut contestants)?;
    let rounds = settings.size(200, 2);
    let samples = contest(rounds, &mut contestants)?;
    drop(contestants);
    let recorded = world.recorded()?;
    if recorded as u64 != hooks * (rounds + 1) {
        return Err(format!("{recorded} events recorded by {} hooks", hooks * (rounds + 1)).into());
    }
    Ok(judge(&samples))
}

fn judge(samples: &[Samples]) -> Vec<Figure> {
    let about = "From before the start of the process to after its exit. The project has a git \
                 directory and a remote, and there are no settings.";
    let mut figures = vec![Figure {
        title: "A tool use recorded, all".into(),
        about: about.into(),
        columns: report::TIMES.to_vec(),
        rows: report::against_first(samples),
        verdict: None,
    }];
    let limits = [(1, 1.6), (2, 2.5), (3, 6.0)];
    figures.extend(limits.into_iter().map(|(at, limit)| against_empty(samples, at, limit)));
    figures.extend(samples.get(4).map(|node| beside_node(&samples[1], node)));
    figures
}

pub(super) fn against_empty(samples: &[Samples], at: usize, limit: f64) -> Figure {
    let times = samples[at].times_min(&samples[0]);
    Figure {
        title: format!("{} against the empty program", samples[at].name),
        about: "By the fastest turns.".into(),
        columns: report::TIMES.to_vec(),
        rows: report::against_first(&[samples[0].clone(), samples[at].clone()]),
        verdict: Some(Verdict {
            target: format!("at most {limit} ×"),
            reached: format!(
                "{times:.2} × (median {:.2} ×)",
                samples[at].times_median(&samples[0])
            ),
            is_met: times <= limit,
        }),
    }
}

fn beside_node(save: &Samples, node: &Samples) -> Figure {
    let times = node.times_min(save);
    Figure {
        title: "Node doing nothing against save, 4 KB".into(),
        about: "The cost of a hook in JavaScript before its first line runs.".into(),
        columns: report::TIMES.to_vec(),
        rows: report::against_first(&[save.clone(), node.clone()]),
        verdict: Some(Verdict {
            target: "at least 50 ×".into(),
            reached: format!("{times:.1} × (median {:.1} ×)", node.times_median(save)),
            is_met: times >= 50.0,
        }),
    }
}
