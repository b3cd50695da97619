//! Power loss at every call of a scenario, with many possible states of the disk each time.

use crate::{
    random::Random,
    records::{assert_still_works, assert_takes_more},
    scale,
    scenario::{CallResults, DIR, Shared, options, play},
    sim::Sim,
};
use std::{
    path::Path,
    sync::{Arc, Mutex, mpsc},
    thread,
};

const RECORDS: u64 = 200;
const STATES_PER_CALL: u64 = 8;

#[test]
fn synced_records_survive_a_loss_of_power_at_any_call() {
    let (sender, receiver) = mpsc::sync_channel::<(u64, Sim, CallResults)>(32);
    let receiver = Arc::new(Mutex::new(receiver));
    let mut states = 0;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let receiver = Arc::clone(&receiver);
                scope.spawn(move || examine_all(&receiver))
            })
            .collect();
        drop(receiver);
        let sim = Sim::new();
        let results = Shared::default();
        let seen = Arc::clone(&results);
        sim.before_each_call(move |sim, call| {
            let results = seen.lock().unwrap().clone();
            let _ = sender.send((call, sim.copy(), results));
        });
        play(&sim, &results, RECORDS);
        sim.no_hook();
        for worker in workers {
            states += worker.join().unwrap();
        }
        assert_eq!(results.lock().unwrap().errors, 0);
    });
    println!("{states} states examined at {} calls", states / STATES_PER_CALL);
    assert!(states >= 20_000, "only {states} states");
}

fn examine_all(receiver: &Mutex<mpsc::Receiver<(u64, Sim, CallResults)>>) -> u64 {
    let mut states = 0;
    loop {
        let next = receiver.lock().unwrap().recv();
        let Ok((call, sim, results)) = next else { return states };
        for state in 0..STATES_PER_CALL * scale() {
            let after = sim.lose_power(&mut Random::new(call << 16 | state));
            let examined = std::panic::catch_unwind(|| {
                let (dir, options) = (Path::new(DIR), options(&after));
                // A full check takes as long again, so only some states get one.
                match state % 4 {
                    0 => assert_still_works(dir, &options, &results.synced, 10_000),
                    _ => _ = assert_takes_more(dir, &options, &results.synced, 10_000),
                }
            });
            assert!(examined.is_ok(), "power lost before call {call}, state {state}");
            states += 1;
        }
    }
}
