//! Generated memories with words of uneven frequency, and queries for them.

use crate::bench::BenchResult;
use claude_mem_events::{Envelope, Event, Id, MemoryAdded, Project, Recorded, Seq};
use claude_mem_projections::{Options, Store};
use claude_mem_tools::random::Random;
use std::path::Path;

const VOCABULARY: f64 = 50_000.0;
/// The offset in Zipf's law: with 10 the first words are about as frequent as in English, stop
/// words excluded.
const FLATNESS: f64 = 10.0;
const PROJECTS: u64 = 50;
const TITLE_WORDS: u64 = 8;
const TEXT_WORDS: u64 = 50;
/// Memories folded in one transaction.
const BATCH: u64 = 5000;

/// A query, and the memory it should find.
#[derive(Debug, Clone)]
pub(in crate::bench) struct Question {
    pub(in crate::bench) text: String,
    pub(super) answer: i64,
    pub(super) project: String,
}

/// Seeded by the number of a memory.
fn random_of(number: u64) -> Random {
    Random::new(number.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// A word by Zipf's law: the n-th is one n-th as frequent as the first.
fn word(dice: &mut Random) -> String {
    let share = (dice.bits() >> 11) as f64 / (1u64 << 53) as f64;
    let rank = FLATNESS * ((VOCABULARY / FLATNESS + 1.0).powf(share) - 1.0);
    spell(rank as u64)
}

/// A unique word for each number, in letters that no stemmer removes.
fn spell(number: u64) -> String {
    let mut rest = number;
    let mut word = String::new();
    for _ in 0..3 {
        word.push(char::from(b"bdfgklmnprstvz"[(rest % 14) as usize]));
        word.push(char::from(b"aou"[(rest / 14 % 3) as usize]));
        rest /= 42;
    }
    word + "k"
}

fn words(dice: &mut Random, count: u64) -> Vec<String> {
    (0..count).map(|_| word(dice)).collect()
}

/// Folds `count` memories into a new database, as the worker does.
pub(super) fn fill_sample(path: &Path, count: u64) -> BenchResult<Store> {
    let mut store = Store::open(path, Options::default())?;
    for first in (1..=count).step_by(BATCH as usize) {
        let numbers = first..(first + BATCH).min(count + 1);
        let events: Vec<Recorded> = numbers.map(memory).collect();
        store.fold_events(&events)?;
    }
    drop(store);
    let store = Store::open_read_only(path)?;
    store.ok_or_else(|| "the database is gone".into())
}

/// Title and text of a memory.
pub(in crate::bench) fn texts(number: u64) -> (String, String) {
    let mut dice = random_of(number);
    let title = words(&mut dice, TITLE_WORDS).join(" ");
    (title, words(&mut dice, TEXT_WORDS).join(" "))
}

fn memory(number: u64) -> Recorded {
    let (title, text) = texts(number);
    let label = label(number);
    let project = Project { key: label.clone(), label, ..Project::default() };
    Recorded {
        seq: Seq::new(1, number),
        id: Id::new(1_760_000_000_000_000 + number * 1_000_000, number << 2),
        envelope: Envelope { project, ..Envelope::default() },
        event: Event::from(MemoryAdded { title, text, ..MemoryAdded::default() }),
    }
}

fn label(number: u64) -> String {
    format!("project-{}", number % PROJECTS)
}

/// Queries for `count` memories.
pub(in crate::bench) fn questions(count: u64, asked: u64) -> Vec<Question> {
    (0..asked).map(|at| question(1 + at * (count - 1) / asked, at)).collect()
}

fn question(number: u64, at: u64) -> Question {
    let mut dice = random_of(number);
    let all = words(&mut dice, TITLE_WORDS + TEXT_WORDS);
    let mut words: Vec<String> = match at % 10 {
        9 => (0..4).map(|rank| spell(at % 7 + rank * 3)).collect(),
        _ => (0..5).map(|_| all[(dice.below(all.len() as u64)) as usize].clone()).collect(),
    };
    words.dedup();
    let text = format!("what was it about {} and why", words.join(" and the "));
    Question { text, answer: number as i64, project: label(number) }
}
