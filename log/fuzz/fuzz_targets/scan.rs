//! Compares the frame scanner with a slow implementation of the rules.
#![no_main]

#[path = "../checks.rs"]
#[expect(dead_code, reason = "each target calls one of them")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::scan(data));
