//! Tests of the vector file: writing, erasing, reading.

use std::{
    fs, io,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use crate::{MemoryKey, Put, VectorWriter, Vectors, Window, digest, erase, format::Record};

const MODEL: [u8; 16] = [7; 16];
const DIMENSIONS: usize = 384;

struct World {
    dir: tempfile::TempDir,
    center: Vec<f32>,
}

impl World {
    fn new() -> Self {
        let mut center = vec![0.0; DIMENSIONS];
        center[3] = 0.4;
        Self { dir: tempfile::tempdir().unwrap(), center }
    }

    fn path(&self) -> std::path::PathBuf {
        crate::file(self.dir.path(), &MODEL)
    }

    fn reader(&self) -> Option<Vectors> {
        Vectors::open(&self.path(), MODEL, &self.center).unwrap()
    }

    fn writer(&self) -> VectorWriter {
        VectorWriter::open(&self.path(), MODEL, &self.center).unwrap().unwrap()
    }

    /// Gives memories vectors that depend on their texts.
    fn put(&self, memories: &[(i64, &[&str])]) {
        let mut writer = self.writer();
        for (row, texts) in memories {
            let known: Vec<_> = writer.vectors().digests(observation(*row)).unwrap();
            let windows: Vec<Window> = texts
                .iter()
                .map(|text| {
                    let digest = digest(&MODEL, text);
                    let vector = (!known.contains(&digest)).then(|| vector(text));
                    Window { digest, vector }
                })
                .collect();
            assert_eq!(writer.put(observation(*row), &windows, || true).unwrap(), Put::Done);
        }
    }

    fn forget(&self, row: i64) -> u64 {
        let dir = crate::directory(self.dir.path());
        erase(&dir, |_, record| record.key() == observation(row)).unwrap()
    }
}

fn observation(row: i64) -> MemoryKey {
    MemoryKey { kind: 0, row }
}

/// A unit vector built from the text.
fn vector(text: &str) -> Vec<f32> {
    let mut bytes = vec![0; DIMENSIONS];
    let mut hasher = blake3::Hasher::new();
    hasher.update(text.as_bytes());
    hasher.finalize_xof().fill(&mut bytes);
    let mut values: Vec<f32> = bytes.iter().map(|byte| f32::from(*byte) - 127.5).collect();
    values[3] += 100.0;
    let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
    values.iter().map(|value| value / length).collect()
}

fn exact(one: &str, other: &str) -> f32 {
    vector(one).iter().zip(vector(other)).map(|(one, other)| one * other).sum()
}

#[test]
fn a_memory_is_as_near_as_its_nearest_window() {
    let world = World::new();
    assert!(world.reader().is_none());
    world.put(&[(5, &["a", "b", "c"]), (4, &["b", "d"]), (9, &["e"])]);
    let vectors = world.reader().unwrap();
    assert_eq!(vectors.len(), 3);
    let scan = vectors.query(&vector("b")).unwrap();
    let best = scan.best(10);
    // Equal ones in the order of their rows.
    assert_eq!(best.iter().map(|(key, _)| key.row).collect::<Vec<_>>(), [4, 5, 9]);
    assert_eq!(best[0].1.to_bits(), best[1].1.to_bits());
    assert!((best[0].1 - 1.0).abs() < 0.003, "{best:?}");
    assert!((best[2].1 - exact("b", "e")).abs() < 0.003, "{best:?}");
    assert_eq!(scan.best(1), best[..1]);
    assert_eq!(scan.best_of(5, |key| key.row == 9), best[2..]);
    assert_eq!(scan.cosine(observation(9)), Some(best[2].1));
    assert_eq!(scan.cosine(observation(1)), None);
    let digests = scan.digests(observation(4)).unwrap();
    assert_eq!(digests[0], (digest(&MODEL, "b"), best[0].1));
    assert_eq!((digests.len(), digests[1].0), (2, digest(&MODEL, "d")));
}

#[test]
fn the_nearest_of_many_are_those_of_a_full_sort() {
    let world = World::new();
    let texts: Vec<String> = (0..3000).map(|row| format!("text {}", row % 1000)).collect();
    let mut writer = world.writer();
    for (row, text) in texts.iter().enumerate() {
        let window = Window { digest: digest(&MODEL, text), vector: Some(vector(text)) };
        writer.put(observation(row as i64), &[window], || true).unwrap();
    }
    let vectors = world.reader().unwrap();
    let scan = vectors.query(&vector("text 7")).unwrap();
    let mut all: Vec<_> = vectors.keys().map(|key| (key, scan.cosine(key).unwrap())).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    for count in [0, 1, 3, 40, 500, 5000, usize::MAX] {
        assert_eq!(scan.best(count), all[..count.min(3000)]);
    }
}

#[test]
fn parts_of_a_large_file_are_compared_side_by_side() {
    let world = World::new();
    let text = |row: i64, window: usize| format!("text {row} {window}");
    let texts: Vec<Vec<String>> =
        (0..4).map(|row| (0..3000).map(|window| text(row, window)).collect()).collect();
    for (row, texts) in texts.iter().enumerate() {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        world.put(&[(row as i64, &texts)]);
    }
    let vectors = world.reader().unwrap();
    for (row, window) in [(0, 0), (1, 2999), (2, 1500), (3, 0), (3, 2999)] {
        let nearest = vectors.query(&vector(&text(row, window))).unwrap().best(1)[0];
        assert_eq!(nearest.0, observation(row));
        assert!((nearest.1 - 1.0).abs() < 0.01, "{nearest:?}");
    }
}

#[test]
fn a_reader_follows_what_is_appended_changed_and_erased() {
    let world = World::new();
    world.put(&[(1, &["a"])]);
    let mut vectors = world.reader().unwrap();
    world.put(&[(2, &["b", "c"]), (1, &["a", "new"])]);
    vectors.refresh().unwrap();
    assert_eq!(vectors.len(), 2);
    assert_eq!(vectors.digests(observation(1)).unwrap().len(), 2);

    world.put(&[(1, &["new"])]);
    assert_eq!(world.forget(2), 2);
    // Before it looks again, the erased ones are not found either.
    let scan = vectors.query(&vector("b")).unwrap();
    assert_eq!(scan.best(5).iter().map(|(key, _)| key.row).collect::<Vec<_>>(), [1]);
    assert!(scan.digests(observation(2)).unwrap().is_empty());
    vectors.refresh().unwrap();
    assert_eq!(vectors.keys().collect::<Vec<_>>(), [observation(1)]);
    assert_eq!(vectors.digests(observation(1)).unwrap(), [digest(&MODEL, "new")]);

    fs::remove_dir_all(crate::directory(world.dir.path())).unwrap();
    vectors.refresh().unwrap();
    assert!(vectors.is_empty() && vectors.query(&vector("new")).unwrap().best(5).is_empty());
    world.put(&[(1, &["new"])]);
    vectors.refresh().unwrap();
    assert_eq!(vectors.len(), 1);
}

#[test]
fn no_byte_of_an_erased_record_stays_in_any_file() {
    let world = World::new();
    world.put(&[(1, &["a"]), (2, &["secret"]), (3, &["b"])]);
    let dir = crate::directory(world.dir.path());
    let other_model = crate::file(world.dir.path(), &[9; 16]);
    let mut bytes = fs::read(world.path()).unwrap();
    bytes[16..32].fill(9);
    // A damaged record, and a torn one.
    let length = bytes.len();
    bytes[length - 10] ^= 1;
    bytes.extend(b"torn");
    fs::write(&other_model, &bytes).unwrap();
    fs::write(dir.join("0.new"), &bytes).unwrap();
    fs::write(dir.join("1.bin"), "no vector file").unwrap();
    assert_eq!(world.forget(2), 1 + 3);
    for (file, left) in [(world.path(), 2), (other_model, 1)] {
        let bytes = fs::read(file).unwrap();
        let records = bytes[64..].chunks(424).filter(|record| Record::decode(record).is_some());
        assert_eq!(records.count(), left);
        let zeros = bytes[64..].chunks(424).filter(|record| record.iter().all(|byte| *byte == 0));
        assert!(zeros.count() >= 1);
    }
    assert!(!dir.join("0.new").exists() && !dir.join("1.bin").exists());
}

#[cfg(unix)]
#[test]
fn a_fifo_in_place_of_the_file_blocks_nobody_and_is_replaced() {
    let world = World::new();
    let fifo = || {
        std::fs::create_dir_all(world.path().parent().unwrap()).unwrap();
        let made = std::process::Command::new("mkfifo").arg(world.path()).status().unwrap();
        assert!(made.success());
    };
    fifo();
    assert!(world.reader().is_none());
    assert_eq!(world.forget(1), 0);
    assert!(!world.path().exists());
    fifo();
    world.put(&[(1, &["text"])]);
    assert_eq!(world.reader().unwrap().len(), 1);
}

#[test]
fn damage_costs_the_damaged_record() {
    let world = World::new();
    world.put(&[(1, &["a"]), (2, &["b"]), (3, &["c"])]);
    let whole = fs::read(world.path()).unwrap();
    for at in (64 + 424..64 + 2 * 424).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(world.path(), &bytes).unwrap();
        let rows: Vec<i64> = world.reader().unwrap().keys().map(|key| key.row).collect();
        assert_eq!(rows, [1, 3], "byte {at}");
    }
    // The last write was torn at any byte. The next one overwrites what is left of it.
    for length in [64 + 2 * 424 + 1, 64 + 3 * 424 - 1] {
        fs::write(world.path(), &whole[..length]).unwrap();
        assert_eq!(world.reader().unwrap().len(), 2);
        world.put(&[(4, &["d"])]);
        assert_eq!(world.reader().unwrap().len(), 3);
    }
}

#[test]
fn a_file_of_something_else_is_ignored_and_replaced() {
    let world = World::new();
    world.put(&[(1, &["a"])]);
    let whole = fs::read(world.path()).unwrap();
    let with = |at: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        bytes
    };
    let others =
        [Vec::new(), whole[..63].to_vec(), with(0, 0), with(8, 2), with(12, 1), with(20, 8)];
    for other in others {
        fs::write(world.path(), other).unwrap();
        assert!(world.reader().is_none());
        world.put(&[(2, &["b"])]);
        assert_eq!(world.reader().unwrap().keys().collect::<Vec<_>>(), [observation(2)]);
    }
}

fn truncate(world: &World, records: u64) {
    let file = fs::File::options().write(true).open(world.path()).unwrap();
    file.set_len(64 + 424 * records).unwrap();
}

#[test]
fn a_truncated_file_is_an_error_until_it_is_read_again() {
    let world = World::new();
    let texts: Vec<String> = (0..100).map(|row| format!("text {row}")).collect();
    for (row, text) in texts.iter().enumerate() {
        world.put(&[(row as i64, &[text.as_str()])]);
    }
    let mut vectors = world.reader().unwrap();
    let scanned = world.reader().unwrap();
    let scan = scanned.query(&vector("text 50")).unwrap();
    truncate(&world, 1);
    let kinds = [
        vectors.query(&vector("text 50")).map(|_| ()),
        vectors.digests(observation(50)).map(|_| ()),
        vectors.vector(observation(50), &digest(&MODEL, "text 50")).map(|_| ()),
        vectors.is_vector_of(observation(50), &digest(&MODEL, "text 50"), &[]).map(|_| ()),
        vectors.sample().map(|_| ()),
        scan.digests(observation(50)).map(|_| ()),
    ]
    .map(|result| result.unwrap_err().kind());
    assert_eq!(kinds, [io::ErrorKind::UnexpectedEof; 6]);
    vectors.refresh().unwrap();
    assert_eq!(vectors.query(&vector("text 50")).unwrap().best(5).len(), 1);
}

#[test]
fn a_file_that_is_truncated_during_searches_is_at_worst_an_error() {
    let world = World::new();
    let texts: Vec<String> = (0..3000).map(|window| format!("text {window}")).collect();
    world.put(&[(1, &texts.iter().map(String::as_str).collect::<Vec<_>>())]);
    let whole = fs::read(world.path()).unwrap();
    let is_over = AtomicBool::new(false);
    let errors: Vec<io::Error> = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                truncate(&world, 1);
                fs::write(world.path(), &whole).unwrap();
            }
        });
        let mut errors = Vec::new();
        let mut vectors = None;
        for _ in 0..300 {
            // A file without a whole header is none.
            let Some(open) = &mut vectors else {
                vectors = Vectors::open(&world.path(), MODEL, &world.center).unwrap_or_default();
                continue;
            };
            errors.extend(open.query(&vector("text 7")).err());
            errors.extend(open.refresh().err());
        }
        is_over.store(true, Ordering::Relaxed);
        errors
    });
    for error in errors {
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}

#[test]
fn a_writer_of_a_truncated_file_overwrites_no_record_of_others() {
    let world = World::new();
    world.put(&[(1, &["a"]), (2, &["b"]), (3, &["c"])]);
    let mut writer = world.writer();
    truncate(&world, 1);
    let window = |text| Window { digest: digest(&MODEL, text), vector: Some(vector(text)) };
    assert_eq!(writer.put(observation(4), &[window("d")], || true).unwrap(), Put::Replaced);
    drop(writer);
    world.put(&[(2, &["b"]), (3, &["c"])]);
    assert_eq!(world.reader().unwrap().len(), 3);
}

#[test]
fn one_writer_at_a_time_and_none_for_a_file_that_was_replaced() {
    let world = World::new();
    let mut writer = world.writer();
    assert!(VectorWriter::open(&world.path(), MODEL, &world.center).unwrap().is_none());
    let window = [Window { digest: digest(&MODEL, "a"), vector: Some(vector("a")) }];
    assert_eq!(writer.put(observation(1), &window, || false).unwrap(), Put::Outdated);
    assert!(world.reader().unwrap().is_empty());
    fs::remove_file(world.path()).unwrap();
    assert_eq!(writer.put(observation(1), &window, || true).unwrap(), Put::Replaced);
    drop(writer);
    world.put(&[(1, &["a"])]);
    assert_eq!(world.reader().unwrap().len(), 1);
}

#[test]
fn a_file_of_mostly_erased_records_is_rewritten() {
    let world = World::new();
    let texts: Vec<String> = (0..1000).map(|row| format!("text {row}")).collect();
    let memories: Vec<(i64, [&str; 1])> =
        texts.iter().enumerate().map(|(row, text)| (row as i64, [text.as_str()])).collect();
    let slices: Vec<(i64, &[&str])> =
        memories.iter().map(|(row, texts)| (*row, texts.as_slice())).collect();
    world.put(&slices);
    let mut vectors = world.reader().unwrap();
    let dir = crate::directory(world.dir.path());
    erase(&dir, |_, record| record.key().row % 2 == 0).unwrap();
    let before = fs::metadata(world.path()).unwrap().len();
    drop(world.writer());
    assert_eq!(fs::metadata(world.path()).unwrap().len(), 64 + 424 * 500);
    assert!(before > 64 + 424 * 500);
    vectors.refresh().unwrap();
    assert_eq!(vectors.len(), 500);
    let best = vectors.query(&vector("text 7")).unwrap().best(1);
    assert_eq!(best[0].0, observation(7));
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_vectors() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    world.put(&[(1, &["a"])]);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&world.path()), 0o600);
    assert_eq!(mode(&crate::directory(world.dir.path())), 0o700);
}
