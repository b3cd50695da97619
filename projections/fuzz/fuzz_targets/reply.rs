//! Parses arbitrary bytes as a reply without a panic, and checks the invariants of the result.
#![no_main]

use claude_mem_projections::xml::{Verdict, read_reply};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let reply = read_reply(&String::from_utf8_lossy(bytes), &["bugfix", "feature", "change"]);
    let kept = reply.observations.len() + usize::from(reply.summary.is_some());
    assert_eq!(reply.verdict == Verdict::Answer, kept > 0);
    for observation in &reply.observations {
        assert!(["bugfix", "feature", "change"].contains(&observation.kind.as_str()));
        assert!(
            observation.facts.iter().chain(&observation.files_read).all(|item| item.trim() == item)
        );
    }
});
