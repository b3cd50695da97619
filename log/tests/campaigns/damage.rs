//! The golden log with every bit flipped, every length cut, every sector zeroed, copied and
//! swapped.

use crate::{golden, sim::Sim};
use claude_mem_log::{Appender, Item, Log, Options, Record, verify};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

const DIR: &str = "/disk/v1";
const SECTOR: usize = 512;

/// The golden log in memory, which is damaged and restored.
struct Patient {
    sim: Sim,
    options: Options,
    files: Vec<(PathBuf, Vec<u8>)>,
    /// The position of each record: number, file, bytes.
    records: Vec<(u64, PathBuf, std::ops::Range<usize>)>,
}

impl Patient {
    fn new() -> Self {
        let sim = Sim::new();
        let mut files = Vec::new();
        for entry in fs::read_dir(golden::fixture()).unwrap() {
            let path = entry.unwrap().path();
            let there = Path::new(DIR).join(path.file_name().unwrap());
            files.push((there, fs::read(&path).unwrap()));
        }
        files.sort();
        for (path, content) in &files {
            sim.put(path, content);
        }
        let options = Options { disk: Arc::new(sim.clone()), ..golden::options() };
        let mut patient = Self { sim, options, files, records: Vec::new() };
        patient.records = patient.places();
        patient
    }

    fn places(&self) -> Vec<(u64, PathBuf, std::ops::Range<usize>)> {
        let log = self.log();
        let paths: Vec<_> = log.segments().unwrap();
        let mut reader = log.read_from_start();
        let mut places = Vec::new();
        let mut start = 64;
        let mut segment = 1;
        while let Some(item) = reader.next().unwrap() {
            let Item::Record(entry) = item else { panic!("{item:?}") };
            let number = golden::number(entry.id);
            let end = reader.position();
            if end.segment() != segment {
                (segment, start) = (end.segment(), 64);
            }
            let path = paths[segment as usize - 1].path.clone();
            places.push((number, path, start..end.offset() as usize));
            start = end.offset() as usize;
        }
        assert_eq!(places.len() as u64, golden::COUNT);
        places
    }

    fn log(&self) -> Log {
        Log::open(Path::new(DIR), self.options.clone()).unwrap()
    }

    /// The golden records that are lost, and the number of others. None may be wrong or duplicated,
    /// and every loss must be reported, by the reader and by `verify`.
    #[track_caller]
    fn examine(&self, what: impl Fn() -> String) -> (BTreeSet<u64>, usize) {
        let mut reader = self.log().read_from_start();
        let mut read = BTreeSet::new();
        let (mut gaps, mut others) = (0, 0);
        while let Some(item) = reader.next().unwrap() {
            match item {
                Item::Record(entry) if entry.codec == 9 => {
                    let number = golden::number(entry.id);
                    assert_eq!(entry.payload, golden::payload(number), "{}", what());
                    assert_eq!(entry.id, golden::id(number), "{}", what());
                    assert!(read.insert(number), "{number} twice: {}", what());
                }
                Item::Record(_) => others += 1,
                Item::Gap(_) => gaps += 1,
            }
        }
        let lost: BTreeSet<u64> = (0..golden::COUNT).filter(|n| !read.contains(n)).collect();
        let report = verify(Path::new(DIR), &self.options).unwrap();
        if !lost.is_empty() && others == 0 {
            assert!(gaps > 0, "lost {lost:?} and no gap: {}", what());
            let results = report.gaps().count() + report.missing.len();
            assert!(results > 0, "lost {lost:?}, and verify knows nothing: {}", what());
        }
        (lost, others)
    }

    /// All sectors of segments: file and offset.
    fn sectors(&self) -> Vec<(usize, usize)> {
        let is_segment =
            |path: &Path| path.extension().is_some_and(|end| end == "seg" || end == "log");
        let mut sectors = Vec::new();
        for (file, (path, content)) in self.files.iter().enumerate() {
            if is_segment(path) {
                sectors.extend((0..content.len()).step_by(SECTOR).map(|at| (file, at)));
            }
        }
        sectors
    }

    fn sector(&self, (file, at): (usize, usize)) -> &[u8] {
        let content = &self.files[file].1;
        &content[at..content.len().min(at + SECTOR)]
    }

    /// The records that have bytes in this sector.
    fn touched(&self, (file, at): (usize, usize)) -> BTreeSet<u64> {
        let path = &self.files[file].0;
        let touches = |range: &std::ops::Range<usize>| range.start < at + SECTOR && at < range.end;
        let records = self.records.iter().filter(|(_, own, range)| own == path && touches(range));
        records.map(|(number, ..)| *number).collect()
    }

    fn overwrite(&self, (file, at): (usize, usize), with: &[u8]) {
        let (path, content) = &self.files[file];
        let mut content = content.clone();
        let len = with.len().min(content.len() - at);
        content[at..at + len].copy_from_slice(&with[..len]);
        self.sim.put(path, &content);
    }

    fn swap(&self, one: (usize, usize), other: (usize, usize)) {
        let len = self.sector(one).len().min(self.sector(other).len());
        let mut contents: Vec<_> = self.files.iter().map(|(_, content)| content.clone()).collect();
        contents[one.0][one.1..one.1 + len].copy_from_slice(&self.sector(other)[..len]);
        contents[other.0][other.1..other.1 + len].copy_from_slice(&self.sector(one)[..len]);
        for file in [one.0, other.0] {
            self.sim.put(&self.files[file].0, &contents[file]);
        }
    }

    fn heal(&self) {
        for (path, content) in &self.files {
            self.sim.put(path, content);
        }
    }
}

#[test]
fn no_flipped_bit_loses_more_than_one_record_or_goes_unnoticed() {
    let patient = Patient::new();
    let (mut flips, mut losses) = (0, 0);
    for (path, content) in &patient.files {
        let mut damaged = content.clone();
        for bit in 0..content.len() * 8 {
            damaged[bit / 8] ^= 1 << (bit % 8);
            patient.sim.put(path, &damaged);
            let (lost, _) = patient.examine(|| format!("bit {bit} of {}", path.display()));
            assert!(lost.len() <= 1, "bit {bit} of {} lost {lost:?}", path.display());
            damaged[bit / 8] ^= 1 << (bit % 8);
            flips += 1;
            losses += lost.len();
        }
        patient.sim.put(path, content);
    }
    println!("{flips} bits flipped: {losses} lost their record, {} harmless", flips - losses);
    assert!(flips > 40_000);
}

#[test]
fn no_cut_loses_a_record_before_it_or_goes_unnoticed() {
    let patient = Patient::new();
    let mut cuts = 0;
    for (path, content) in &patient.files {
        for len in 0..content.len() {
            patient.sim.put(path, &content[..len]);
            let (lost, _) = patient.examine(|| format!("{} cut to {len}", path.display()));
            assert_eq!(lost, behind(&patient, path, len), "{} cut to {len}", path.display());
            cuts += 1;
        }
        patient.sim.put(path, content);
    }
    println!("{cuts} lengths");
}

fn behind(patient: &Patient, path: &Path, len: usize) -> BTreeSet<u64> {
    let cut = |range: &std::ops::Range<usize>| range.end > len;
    let mut lost: BTreeSet<u64> = patient
        .records
        .iter()
        .filter(|(_, own, range)| own == path && cut(range))
        .map(|(number, ..)| *number)
        .collect();
    // It was written again, later in the log.
    lost.remove(&0);
    lost
}

#[test]
fn a_truncated_log_accepts_new_records() {
    let patient = Patient::new();
    let (path, content) =
        patient.files.iter().find(|(path, _)| path.ends_with("active.log")).unwrap();
    for len in 0..content.len() {
        let copy = Patient { sim: patient.sim.copy(), ..Patient::new() };
        let options = Options { disk: Arc::new(copy.sim.clone()), ..copy.options.clone() };
        let copy = Patient { options, ..copy };
        copy.sim.put(path, &content[..len]);
        let mut appender = Appender::open(Path::new(DIR), copy.options.clone()).unwrap();
        for number in [100, 101] {
            let payload = golden::payload(number);
            let record =
                Record { id: golden::id(number), kind: 1, schema: 1, codec: 1, payload: &payload };
            appender.append(&record).unwrap();
        }
        let (lost, others) = copy.examine(|| format!("cut to {len}, then appended"));
        assert_eq!(others, 2, "cut to {len}");
        assert_eq!(lost, behind(&copy, path, len), "cut to {len}");
    }
}

#[test]
fn a_missing_file_is_detected() {
    for gone in 0..Patient::new().files.len() {
        let patient = Patient::new();
        let path = &patient.files[gone].0;
        claude_mem_log::disk::Disk::remove(&patient.sim, path).unwrap();
        patient.examine(|| format!("{} is gone", path.display()));
    }
}

#[test]
fn a_zeroed_sector_loses_only_its_records() {
    let patient = Patient::new();
    for sector in patient.sectors() {
        patient.overwrite(sector, &[0; SECTOR]);
        let (lost, _) = patient.examine(|| format!("sector {sector:?} zeroed"));
        let touched = patient.touched(sector);
        assert!(lost.is_subset(&touched), "sector {sector:?}: lost {lost:?} of {touched:?}");
        patient.heal();
    }
}

#[test]
fn a_misdirected_sector_loses_only_its_records() {
    let patient = Patient::new();
    let sectors = patient.sectors();
    let mut cases = 0;
    for from in &sectors {
        for to in sectors.iter().filter(|to| *to != from) {
            patient.overwrite(*to, patient.sector(*from));
            let (lost, _) = patient.examine(|| format!("sector {from:?} written over {to:?}"));
            let touched = patient.touched(*to);
            assert!(lost.is_subset(&touched), "{from:?} over {to:?}: {lost:?} of {touched:?}");
            patient.heal();
            cases += 1;
        }
    }
    println!("{cases} sectors written over others");
}

#[test]
fn swapped_sectors_lose_only_their_records() {
    let patient = Patient::new();
    let sectors = patient.sectors();
    let mut cases = 0;
    for (index, one) in sectors.iter().enumerate() {
        for other in &sectors[index + 1..] {
            patient.swap(*one, *other);
            let (lost, _) = patient.examine(|| format!("sectors {one:?} and {other:?} swapped"));
            let touched = &patient.touched(*one) | &patient.touched(*other);
            assert!(lost.is_subset(&touched), "{one:?}, {other:?}: {lost:?} of {touched:?}");
            patient.heal();
            cases += 1;
        }
    }
    println!("{cases} pairs of sectors swapped");
}
