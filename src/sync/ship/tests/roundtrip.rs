//! A restored log is equal to the shipped one.

use claude_mem_log::{CompactionPolicy, Compactor, Entry, Options, Packing, RecordAction};
use claude_mem_tools::bucket::Faults;

use super::*;

#[test]
fn logs_round_trip_whenever_they_are_shipped() {
    let mut machine = Machine::new();
    for count in [1, 3, 0, 9, 1, 40, 2, 1, 1, 7] {
        machine.record(count);
        machine.ship().unwrap();
        machine.check();
    }
}

#[test]
fn a_running_shipper_uploads_one_small_object_for_new_records() {
    let mut machine = Machine::new();
    machine.record(1);
    let mut shipper = machine.shipper();
    wait(async {
        shipper.ship().await.unwrap();
        machine.record(1);
        let done = shipper.ship().await.unwrap();
        assert_eq!((done.objects, done.log_bytes), (1, 40 + text(2).len() as u64));
        let nothing = shipper.ship().await.unwrap();
        assert_eq!(nothing, Shipped::default());
    });
    machine.check();
}

#[test]
fn shipping_is_idempotent() {
    let mut machine = Machine::new();
    machine.record(30);
    machine.ship().unwrap();
    let before = machine.objects();
    assert_eq!(machine.ship().unwrap(), Shipped::default());
    assert_eq!(machine.objects(), before);
}

#[test]
fn hundreds_of_increments_are_merged_into_manifests() {
    let mut machine = Machine::new();
    // One segment, so that only their number ends a run of increments.
    let put_bytes = machine.record_and_ship_each(300, 6);
    let objects = machine.objects().len();
    assert!(objects < 100, "{objects} objects");
    let log_bytes = machine.head().bytes();
    assert!(put_bytes * 10 < log_bytes * 6, "{put_bytes} bytes put for {log_bytes}");
    machine.check();
}

#[test]
fn increments_are_downloaded_in_parallel() {
    let bucket = Bucket::start().unwrap();
    let mut machine = Machine::with_bucket(&bucket);
    machine.record(60);
    machine.ship().unwrap();
    machine.record_and_ship_each(0x30, 1);
    assert!(machine.head().increments.len() > 0x20, "{:?}", machine.head());
    // The server responds only if requests arrive in parallel.
    for together in [("/seg/", 8), ("/chain/000000000000001", 12)] {
        bucket.inject(Faults {
            together: Some((together.0.into(), together.1)),
            ..Faults::default()
        });
        machine.check();
    }
}

#[test]
fn without_compression_the_overhead_is_small() {
    let mut machine = Machine::new();
    fs::write(machine.paths.settings(), r#"{"CLAUDE_MEM_SHIP_COMPRESS": "false"}"#).unwrap();
    let put_bytes = machine.record_and_ship_each(300, 20);
    let log_bytes = machine.head().bytes();
    assert!(put_bytes * 10 <= log_bytes * 11, "{put_bytes} bytes put for {log_bytes}");
    machine.check();
}

#[test]
fn a_new_generation_replaces_the_old_one_completely() {
    let mut machine = Machine::new();
    machine.record(40);
    machine.ship().unwrap();
    let old: Vec<PathBuf> = machine.objects().into_keys().collect();
    let sealed = machine.compact();
    machine.record(1);
    machine.ship().unwrap();
    let segments = machine.head().segments();
    assert_eq!((segments[0].generation, segments[0].number_last), (1, sealed.len() as u64));
    let new = machine.objects();
    let stayed = old
        .iter()
        .filter(|path| path.to_string_lossy().contains(".g00/") && new.contains_key(*path));
    // Only parts of the segment that was not compacted.
    assert_eq!(stayed.count(), 1);
    machine.check();
    assert_eq!(numbers(&machine.log()), ((1..=41).collect(), false));
}

/// Erases the event with this number.
struct Erase(u64);

impl CompactionPolicy for Erase {
    fn concerns(&mut self, head: &claude_mem_log::Head) -> bool {
        head.id.time_us() == self.0 * 1_000_000
    }

    fn judge(&mut self, _: &Entry<'_>) -> RecordAction {
        RecordAction::Erase(Vec::new())
    }
}

#[test]
fn erased_events_leave_the_remote_with_the_next_ship() {
    let mut machine = Machine::new();
    machine.record(40);
    machine.ship().unwrap();
    let reveals_text = |machine: &Machine, number: u64| {
        let words = format!("event number {number},");
        machine.objects().into_values().any(|object| {
            // The body starts after the header of the object, compressed or not.
            let body = &object[32.min(object.len())..];
            let unpacked = zstd::stream::decode_all(body).unwrap_or_else(|_| body.to_vec());
            memchr::memmem::find(&unpacked, words.as_bytes()).is_some()
        })
    };
    assert!(
        reveals_text(&machine, 5) && reveals_text(&machine, 6),
        "otherwise this test could not fail"
    );
    let log = Log::open(&machine.log(), Options::default()).unwrap();
    let compactor =
        Compactor::begin(&machine.log(), &Options::default(), Packing::default()).unwrap().unwrap();
    for segment in log.segments().unwrap().into_iter().filter(|segment| segment.seal.is_some()) {
        compactor.rewrite(&[segment], &mut Erase(5)).unwrap().unwrap();
    }
    machine.ship().unwrap();
    assert!(!reveals_text(&machine, 5) && reveals_text(&machine, 6));
    machine.check();
}

#[test]
fn a_restored_log_continues_shipping() {
    let mut machine = Machine::new();
    machine.record(20);
    machine.ship().unwrap();
    machine.restore("again", None, false).unwrap();
    fs::remove_dir_all(machine.log()).unwrap();
    fs::rename(machine.restored("again"), machine.log()).unwrap();
    machine.record(20);
    machine.ship().unwrap();
    machine.check();
    assert_eq!(numbers(&machine.log()), ((1..=40).collect(), false));
}

#[test]
fn a_restore_stops_at_a_time_or_an_event() {
    let mut machine = Machine::new();
    machine.record(40);
    machine.ship().unwrap();
    for last in 1..=40_u64 {
        let name = format!("event {last}");
        machine
            .restore(&name, Some(RestoreEnd::Event(Id::new(last * 1_000_000, last))), false)
            .unwrap();
        assert_eq!(numbers(&machine.restored(&name)), ((1..=last).collect(), false), "{name}");
        let name = format!("time {last}");
        machine.restore(&name, Some(RestoreEnd::Time(last * 1_000_000 + 1)), false).unwrap();
        let log = machine.restored(&name);
        assert_eq!(numbers(&log), ((1..=last).collect(), false), "{name}");
        // Shipping continues from there.
        let mut appender = Appender::open(&log, Machine::options()).unwrap();
        let record =
            Record { id: Id::new(77_000_000, 1), kind: 7, schema: 1, codec: 0, payload: b"next" };
        appender.append(&record).unwrap();
        let all: Vec<u64> = (1..=last).chain([77]).collect();
        assert_eq!(numbers(&log), (all, false), "{name}");
        assert!(!claude_mem_log::verify(&log, &Options::default()).unwrap().is_damaged(), "{name}");
    }
    let unknown = RestoreEnd::Event(Id::new(5, 5));
    assert!(machine.restore("unknown", Some(unknown), false).is_err());
    assert!(!machine.restored("unknown").exists());
}

#[test]
fn segments_deleted_locally_stay_in_the_remote() {
    let mut machine = Machine::new();
    machine.record(30);
    machine.ship().unwrap();
    let segments = Log::open(&machine.log(), Options::default()).unwrap().segments().unwrap();
    fs::remove_file(&segments[0].path).unwrap();
    machine.record(5);
    machine.ship().unwrap();
    machine.restore("again", None, false).unwrap();
    assert_eq!(numbers(&machine.restored("again")), ((1..=35).collect(), false));
}
