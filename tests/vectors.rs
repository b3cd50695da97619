//! Vectors of memories: when they are made, and that they are erased with their text.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use claude_mem_embed::{Model, Role};
use claude_mem_vectors::{
    MemoryKey, Put, VectorWriter, Vectors, Window, directory, erase, file, format::Record,
};
use serde_json::{Value, json};

use crate::{
    folders::{files_below, files_with},
    sandbox::{Run, Sandbox},
    serving::{Serving, until},
};

/// Other tests run without vectors.
pub(crate) const SEMANTIC: (&str, &str) = ("CLAUDE_MEM_SEMANTIC", "on");

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Run {
    sandbox.run_with(arguments, &[SEMANTIC], "")
}

fn model() -> Model<'static> {
    Model::parse(claude_mem_model::bytes()).unwrap()
}

/// The vectors of the built-in model.
fn vectors(data: &Path) -> Option<Vectors> {
    let model = model();
    Vectors::open(&file(data, &model.id().0), model.id().0, &model.center()).unwrap()
}

/// Asserts that no vector in any file is the vector of one of these texts, or nearly so.
pub(crate) fn assert_no_vector_of(data: &Path, texts: &[&str]) {
    let Some(vectors) = vectors(data) else { return };
    let model = model();
    for text in texts {
        let digest = claude_mem_vectors::digest(&model.id().0, text);
        let scan = vectors.query(&model.embed(text, Role::Memory)).unwrap();
        for (key, cosine) in scan.best(usize::MAX) {
            assert!(cosine < 0.99, "{text:?} is as good as in the vector of {key:?}");
            assert!(!vectors.digests(key).unwrap().contains(&digest), "{text:?} is {key:?}");
        }
    }
}

/// The vector counts in `status`: memories, and how many have none.
fn counts(sandbox: &Sandbox) -> (u64, u64) {
    let status: Value = serde_json::from_str(&run(sandbox, &["status", "--json"]).ok()).unwrap();
    let vectors = &status["memory"]["vectors"];
    (vectors["total"].as_u64().unwrap(), vectors["missing"].as_u64().unwrap())
}

/// The records of all files, in any order.
fn records(data: &Path) -> BTreeSet<Vec<u8>> {
    let model = model();
    let bytes = fs::read(file(data, &model.id().0)).unwrap();
    let records = bytes[64..].chunks(40 + model.dimensions());
    records.filter(|record| Record::decode(record).is_some()).map(<[u8]>::to_vec).collect()
}

const LIMITER: &str = "Each address may try five passwords a minute; then it gets status 429.";
const COLOUR: &str = "The headline of the invoice is printed in dark green.";

fn two_notes() -> Sandbox {
    let sandbox = Sandbox::new();
    for note in [LIMITER, COLOUR] {
        sandbox.run(&["remember", note]).ok();
    }
    sandbox
}

#[test]
fn index_computes_missing_vectors_and_they_can_be_deleted() {
    let sandbox = two_notes();
    assert_eq!(counts(&sandbox), (2, 2));
    let shown = run(&sandbox, &["status"]).ok();
    assert!(shown.contains("2 of 2 missing; `claude-mem index` adds them"), "{shown}");
    let printed = run(&sandbox, &["index"]).ok();
    assert!(printed.contains("2 embedded; 0 of 2 vectors missing"), "{printed}");
    assert_eq!(counts(&sandbox), (2, 0));
    let printed = run(&sandbox, &["index"]).ok();
    assert!(printed.contains("0 embedded"), "{printed}");

    let model = model();
    let found = vectors(&sandbox.data()).unwrap();
    let question = "how do we keep people from logging in too often";
    let best = found.query(&model.embed(question, Role::Query)).unwrap().best(2);
    assert_eq!(best[0].0.row, 1, "{best:?}");

    let before = records(&sandbox.data());
    assert_eq!(before.len(), 2);
    fs::remove_dir_all(directory(&sandbox.data())).unwrap();
    assert_eq!(counts(&sandbox), (2, 2));
    let found = run(&sandbox, &["search", "passwords"]).ok();
    assert!(found.contains("passwords"), "{found}");
    run(&sandbox, &["index"]).ok();
    assert_eq!(records(&sandbox.data()), before);

    let checked = "vectors of 2 memories: computed again and compared";
    assert!(run(&sandbox, &["verify"]).ok().contains(checked));
    exchange_vector(&sandbox.data(), best[0].0);
    let failed = run(&sandbox, &["verify"]).fails(1);
    assert!(failed.contains("the vectors of 1 do not match their texts"), "{failed}");
}

#[test]
fn searches_survive_a_program_that_truncates_the_vectors() {
    let sandbox = two_notes();
    run(&sandbox, &["index"]).ok();
    let path = file(&sandbox.data(), &model().id().0);
    // Many records, so that a search takes as long as possible.
    let one = fs::read(&path).unwrap();
    let mut whole = one.clone();
    (0..50_000).for_each(|_| whole.extend(&one[64..]));
    fs::write(&path, &whole).unwrap();
    let is_over = AtomicBool::new(false);
    let found: Vec<Run> = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                fs::File::options().write(true).open(&path).unwrap().set_len(64 + 424).unwrap();
                fs::write(&path, &whole).unwrap();
            }
        });
        let search = || run(&sandbox, &["search", "how", "many", "passwords", "a", "minute"]);
        let found = (0..20).map(|_| search()).collect();
        is_over.store(true, Ordering::Relaxed);
        found
    });
    for found in found {
        assert!(found.ok().contains("may try five passwords"));
    }
    // What is missing is made again.
    fs::write(&path, &one[..64 + 424]).unwrap();
    run(&sandbox, &["index"]).ok();
    assert_eq!(counts(&sandbox), (2, 0));
}

/// Gives a memory the vector of another text.
fn exchange_vector(data: &Path, memory: MemoryKey) {
    let model = model();
    let digest = vectors(data).unwrap().digests(memory).unwrap()[0];
    erase(&directory(data), |_, record| record.key() == memory).unwrap();
    let path = file(data, &model.id().0);
    let mut writer = VectorWriter::open(&path, model.id().0, &model.center()).unwrap().unwrap();
    let window = Window { digest, vector: Some(model.embed(COLOUR, Role::Memory)) };
    assert_eq!(writer.put(memory, &[window], || true).unwrap(), Put::Done);
}

#[test]
fn a_forgotten_or_edited_memory_loses_its_vector_at_once() {
    let sandbox = two_notes();
    run(&sandbox, &["index"]).ok();
    sandbox.run(&["edit", "1", "--text", "The limit is ten a minute."]).ok();
    assert_eq!(records(&sandbox.data()).len(), 1);
    assert_no_vector_of(&sandbox.data(), &[LIMITER]);
    run(&sandbox, &["index"]).ok();
    assert_eq!((counts(&sandbox), records(&sandbox.data()).len()), ((2, 0), 2));

    // Forgetting works without a model.
    sandbox.run(&["forget", "2", "--yes"]).ok();
    assert_no_vector_of(&sandbox.data(), &[COLOUR]);
    assert_eq!((counts(&sandbox), records(&sandbox.data()).len()), ((1, 0), 1));
    sandbox.run(&["forget", "--undo"]).ok();
    assert_eq!(counts(&sandbox), (2, 1));
    sandbox.run(&["forget", "--text", "ten a minute", "--yes"]).ok();
    assert!(records(&sandbox.data()).is_empty());
}

#[test]
fn a_memory_redacted_later_loses_its_vector() {
    let sandbox = Sandbox::new();
    let key = format!("AKIA{}", "Q7ZP3M5R8T2V6W4X");
    let note = format!("The uploader logs in with {key}.");
    sandbox.run_with(&["remember", &note], &[("CLAUDE_MEM_REDACT_SECRETS", "false")], "").ok();
    sandbox.run(&["remember", COLOUR]).ok();
    run(&sandbox, &["index"]).ok();
    let before = records(&sandbox.data());
    run(&sandbox, &["redact", "--yes"]).ok();
    assert_no_vector_of(&sandbox.data(), &[&note]);
    let left = records(&sandbox.data());
    assert_eq!((left.len(), left.is_subset(&before)), (1, true));
    run(&sandbox, &["index"]).ok();
    assert_eq!((counts(&sandbox), records(&sandbox.data()).len()), ((2, 0), 2));
}

#[test]
fn the_worker_embeds_automatically_and_reports_it() {
    let sandbox = Sandbox::new();
    let _serving = Serving::start(&sandbox, &[SEMANTIC]);
    sandbox.run(&["remember", LIMITER]).ok();
    until(|| counts(&sandbox) == (1, 0));
    until(|| {
        let status = run(&sandbox, &["worker", "status", "--json"]).ok();
        let status: Value = serde_json::from_str(&status).unwrap();
        status["vectors"]["missing"] == 0
    });
    let shown = run(&sandbox, &["doctor"]).stdout;
    assert!(shown.contains("all 1"), "{shown}");
}

#[test]
fn distill_embeds_where_no_worker_runs() {
    let sandbox = two_notes();
    run(&sandbox, &["distill"]).ok();
    assert_eq!(counts(&sandbox), (2, 0));
}

#[test]
fn memories_about_the_same_thing_are_related() {
    let sandbox = two_notes();
    let office = "Ten passwords a minute are allowed from addresses of the office.";
    sandbox.run(&["remember", office]).ok();
    let shown = run(&sandbox, &["show", "1"]).ok();
    assert!(!shown.contains("related"), "{shown}");
    run(&sandbox, &["index"]).ok();
    let shown = run(&sandbox, &["show", "1"]).ok();
    assert!(shown.contains(&format!("related:\n  - 3  {office}\n")), "{shown}");
    let shown: Value = serde_json::from_str(&run(&sandbox, &["show", "3", "--json"]).ok()).unwrap();
    assert_eq!(shown["related"], json!(["1"]), "{shown:#}");
    let shown = run(&sandbox, &["show", "2"]).ok();
    assert!(!shown.contains("related"), "{shown}");
    sandbox.run(&["wrong", "3", "--because", "five"]).ok();
    let shown = run(&sandbox, &["show", "1"]).ok();
    assert!(shown.contains(&format!("related:\n  - 3  [wrong: five] {office}\n")), "{shown}");
    // A forgotten memory is no longer related to anything.
    sandbox.run(&["forget", "1", "--yes"]).ok();
    let shown = run(&sandbox, &["show", "3"]).ok();
    assert!(!shown.contains("related"), "{shown}");
}

#[test]
fn an_unusable_model_is_reported_and_search_continues() {
    let sandbox = two_notes();
    let broken = sandbox.write("broken.bin", "no model");
    let other = [SEMANTIC, ("CLAUDE_MEM_EMBEDDING_MODEL", broken.to_str().unwrap())];
    let with = |arguments: &[&str]| sandbox.run_with(arguments, &other, "");
    for command in ["status", "doctor"] {
        let shown = with(&[command]).stdout;
        assert!(shown.contains("broken.bin cannot be used"), "{command}: {shown}");
    }
    let error = with(&["index"]).fails(1);
    assert!(error.contains("settings unset EMBEDDING_MODEL"), "{error}");
    let found = with(&["search", "headline"]).ok();
    assert!(found.contains("dark green"), "{found}");
    assert!(!directory(&sandbox.data()).exists());
}

#[test]
fn vectors_stay_on_this_machine() {
    let sandbox = two_notes();
    run(&sandbox, &["index"]).ok();
    let remote = sandbox.home().join("remote");
    run(&sandbox, &["ship", "--to", remote.to_str().unwrap()]).ok();
    let exported = run(&sandbox, &["export"]).ok();
    assert!(!exported.contains("CMVECTOR"));
    let files = files_below(&remote);
    let is_vectors = |path: &PathBuf| path.to_string_lossy().contains("vectors");
    assert!(!files.is_empty() && !files.iter().any(is_vectors), "{files:?}");
    assert_eq!(files_with(&remote, "CMVECTOR"), [] as [PathBuf; 0]);
}
