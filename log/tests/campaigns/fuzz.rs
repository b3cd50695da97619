//! The fuzz targets' checks over their corpus, and over thousands of mutations of it.

use crate::{random::Random, scale};
use std::{fs, path::Path};

#[path = "../../fuzz/checks.rs"]
mod checks;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut paths: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let contents: Vec<_> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    assert!(contents.len() > 3, "the corpus of {target} is there");
    contents
}

/// Flips, cuts, removes, repeats, and joins with another.
fn mutate(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        let end = (at + random.below(200)).min(bytes.len());
        match random.below(5) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            1 => bytes.truncate(at),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => {
                let other = &corpus[random.below(corpus.len())];
                bytes.extend_from_slice(&other[random.below(other.len())..]);
            }
        }
    }
    bytes
}

fn run(target: &str, check: fn(&[u8]), count: u64) {
    let corpus = corpus(target);
    for bytes in &corpus {
        check(bytes);
    }
    let mut random = Random::new(11);
    for _ in 0..count * scale() {
        check(&mutate(&mut random, &corpus));
    }
}

#[test]
fn the_scanner_follows_the_rules_for_any_bytes() {
    run("scan", checks::scan, 20_000);
}

#[test]
fn the_seal_decoder_accepts_any_bytes() {
    run("seal", checks::seal, 20_000);
}

#[test]
fn marks_and_headers_take_any_bytes() {
    run("marks", checks::marks, 20_000);
}
