//! Steady load on a worker: nothing grows with use.

use claude_mem_tools::soak::{Soak, soak};

use crate::sandbox::{Sandbox, binary};

/// The runtime, the distill, append and embedding threads, eight blocking threads, and two for each
/// of two providers.
const THREADS_MAX: usize = 4 + 8 + 2 * 2;
/// SQLite keeps a descriptor open that is closed while another connection holds a lock, and reuses
/// it. A leak of one per round would be ten times as many. Embedding starts some seconds later,
/// with a database (3), the vector file and its locks (3), and the vector file of searches.
const DESCRIPTORS_SPARE: usize = 4 + 7;
/// Samples until all caches are filled.
const WARM: usize = 3;

#[test]
fn steady_load_leaves_no_descriptors_threads_or_entries_behind() {
    let sandbox = Sandbox::new();
    let report = soak(&Soak {
        binary: binary().to_path_buf(),
        home: sandbox.home(),
        rounds: 60,
        sample_rounds: 5,
    });
    let report = report.unwrap_or_else(|error| panic!("{error}\n{}", sandbox.diagnostics()));
    assert!(report.streamed > report.events, "the stream had a listener: {report:?}");
    let warm = &report.samples[WARM];
    for sample in &report.samples[WARM..] {
        assert!(sample.descriptors <= warm.descriptors + DESCRIPTORS_SPARE, "{report:?}");
        assert!(sample.threads <= THREADS_MAX, "{report:?}");
        for table in ["projects", "databases", "links", "keys", "deleted_sessions"] {
            assert_eq!(sample.tables[table], warm.tables[table], "{report:?}");
        }
        // The events of the last rounds may not be indexed yet.
        assert!(sample.tables["unconfirmed_answers"].as_u64().unwrap() < 100, "{report:?}");
    }
}
