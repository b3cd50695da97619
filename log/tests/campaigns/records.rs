//! Records whose content is derived from their number, so that a wrong one is detected.

use claude_mem_log::{
    Appended, Appender, CompactionPolicy, Compactor, Damage, Entry, Error, Gap, Head, Id, Item,
    Log, Options, Packing, Record, RecordAction, SegmentInfo, SegmentState, verify,
};
use std::{collections::BTreeSet, path::Path};

const TIME_FIRST_US: u64 = 1_700_000_000_000_000;

pub fn id(number: u64) -> Id {
    Id::new(TIME_FIRST_US + number * 1000, number << 8 | 0x55)
}

pub fn number(id: Id) -> u64 {
    (id.time_us() - TIME_FIRST_US) / 1000
}

/// Of 0 to 210 bytes; each third one compresses well.
pub fn payload(number: u64) -> Vec<u8> {
    let len = (number * 97 % 211) as usize;
    let step = if number.is_multiple_of(3) { 0 } else { 7 };
    (0..len).map(|at| (number as usize + at * step + at * at * step / 3) as u8).collect()
}

pub fn append(appender: &mut Appender, numbers: &[u64]) -> Result<Appended, Error> {
    let payloads: Vec<Vec<u8>> = numbers.iter().map(|number| payload(*number)).collect();
    let records: Vec<Record<'_>> = numbers
        .iter()
        .zip(&payloads)
        .map(|(number, payload)| Record {
            id: id(*number),
            kind: (number % 5) as u16,
            schema: 1,
            codec: 1,
            payload,
        })
        .collect();
    match &records[..] {
        [record] => appender.append(record),
        records => appender.append_all(records),
    }
}

/// Whether compaction erases this record.
pub fn is_erased(number: u64) -> bool {
    number % 13 == 5
}

/// The remains of an erased record.
pub fn left_of(number: u64) -> Vec<u8> {
    format!("left of {number}").into_bytes()
}

/// Erases some records and keeps the others, and all damage.
pub struct Erasing;

impl CompactionPolicy for Erasing {
    fn concerns(&mut self, head: &Head) -> bool {
        is_erased(number(head.id)) && !head.is_tombstone
    }

    fn judge(&mut self, entry: &Entry<'_>) -> RecordAction {
        assert_eq!(entry.payload, payload(number(entry.id)));
        RecordAction::Erase(left_of(number(entry.id)))
    }

    fn damage(&mut self, _gap: &Gap) -> Damage {
        Damage::Keep
    }
}

/// The complete segments, in order, up to the first gap or incomplete one, in groups of this size.
pub fn groups(dir: &Path, options: &Options, size: usize) -> Result<Vec<Vec<SegmentInfo>>, Error> {
    let segments = Log::open(dir, options.clone())?.segments()?;
    let sealed = segments.into_iter().filter(|info| info.state == SegmentState::Sealed);
    let mut groups: Vec<Vec<SegmentInfo>> = Vec::new();
    for info in sealed {
        match groups.last_mut() {
            Some(group)
                if group.len() < size
                    && group.last().is_some_and(|last| last.number_last + 1 == info.number) =>
            {
                group.push(info);
            }
            _ => groups.push(vec![info]),
        }
    }
    Ok(groups)
}

/// Compacts every complete segment, in groups of this size. Returns the number of files written.
pub fn compact(dir: &Path, options: &Options, size: usize) -> Result<u64, Error> {
    let packing = Packing { bytes_min: 32, is_anew: size.is_multiple_of(2), ..Packing::default() };
    let Some(compactor) = Compactor::begin(dir, options, packing)? else { return Ok(0) };
    let mut count = 0;
    for group in groups(dir, options, size)? {
        count += u64::from(compactor.rewrite(&group, &mut Erasing)?.is_some());
    }
    Ok(count)
}

/// The result of reading the whole log: numbers in order, and gaps.
#[derive(Debug, Default)]
pub struct Reading {
    pub numbers: Vec<u64>,
    pub gaps: Vec<Gap>,
}

impl Reading {
    pub fn set(&self) -> BTreeSet<u64> {
        self.numbers.iter().copied().collect()
    }

    /// Adds an item; panics if a record has the wrong content.
    pub fn take(&mut self, item: &Item<'_>) {
        match item {
            Item::Record(entry) => {
                let number = number(entry.id);
                assert_eq!(entry.id, id(number), "an id that was never written");
                match entry.is_tombstone {
                    true => {
                        assert_eq!(entry.payload, left_of(number), "{number} left something else");
                    }
                    false => assert_eq!(entry.payload, payload(number), "record {number} is wrong"),
                }
                assert_eq!(u64::from(entry.kind), number % 5);
                self.numbers.push(number);
            }
            Item::Gap(gap) => self.gaps.push(*gap),
        }
    }

    #[track_caller]
    pub fn assert_no_repetition(&self) {
        assert_eq!(self.set().len(), self.numbers.len(), "given twice: {:?}", self.numbers);
    }
}

/// Reads everything forwards; nothing may be wrong or duplicated.
#[track_caller]
pub fn read(dir: &Path, options: &Options) -> Reading {
    let mut reader = Log::open(dir, options.clone()).unwrap().read_from_start();
    let mut reading = Reading::default();
    while let Some(item) = reader.next().unwrap() {
        reading.take(&item);
    }
    reading.assert_no_repetition();
    reading
}

/// Reads everything backwards.
#[track_caller]
pub fn read_backwards(dir: &Path, options: &Options) -> Reading {
    let mut reader = Log::open(dir, options.clone()).unwrap().read_backwards(None).unwrap();
    let mut reading = Reading::default();
    while let Some(item) = reader.next().unwrap() {
        reading.take(&item);
    }
    reading.assert_no_repetition();
    reading
}

/// Checks a log after a fault: it can be read both ways, verified, and appended to.
#[track_caller]
pub fn assert_still_works(dir: &Path, options: &Options, wanted: &BTreeSet<u64>, new: u64) {
    let before = read(dir, options).set();
    assert_eq!(before, read_backwards(dir, options).set(), "the two directions differ");
    verify(dir, options).unwrap();
    let after = assert_takes_more(dir, options, wanted, new);
    assert!(after.is_superset(&before), "what could be read no longer can");
}

/// Appends to a log after a fault. `wanted` and the new records must then be there exactly once,
/// after spilled records are merged.
#[track_caller]
pub fn assert_takes_more(
    dir: &Path,
    options: &Options,
    wanted: &BTreeSet<u64>,
    new: u64,
) -> BTreeSet<u64> {
    let mut appender = Appender::open(dir, options.clone()).unwrap();
    for number in new..new + 3 {
        append(&mut appender, &[number]).unwrap();
    }
    appender.sync().unwrap();
    drop(appender);
    claude_mem_log::maintain(dir, options).unwrap();
    let after = read(dir, options);
    let expected = wanted.iter().copied().chain(new..new + 3);
    let missing: Vec<u64> = expected.filter(|number| !after.set().contains(number)).collect();
    assert!(missing.is_empty(), "lost {missing:?}, gaps {:?}", after.gaps);
    after.set()
}
