//! Counts the bytes that redaction reads, and stops it at a limit.
//!
//! Each reader takes linear time, and the count lets a test prove it. The limit is the second line of defence: a rule that
//! is slow on some text after all costs a field its end, never the hook its time and the event its place in the log.

use std::{cell::Cell, fmt::Write as _};

thread_local! {
    static BYTES_READ: Cell<u64> = const { Cell::new(0) };
    static LIMIT: Cell<u64> = const { Cell::new(u64::MAX) };
    static FIELDS_CUT: Cell<u64> = const { Cell::new(0) };
}

/// What one event may cost: several times what 64 MB of the slowest text take, and less than a second.
pub const EVENT_BYTES_MAX: u64 = 1 << 30;

/// Limits what this thread may read until it is dropped. A scope within another one can only be tighter.
#[derive(Debug)]
pub struct Scope {
    outer_limit: u64,
    bytes_read_at_start: u64,
    fields_cut_at_start: u64,
}

impl Scope {
    /// Allows this many bytes to be read, each as often as it is looked at.
    pub fn new(bytes_max: u64) -> Self {
        let (outer_limit, bytes_read_at_start) = (LIMIT.get(), BYTES_READ.get());
        LIMIT.set(outer_limit.min(bytes_read_at_start.saturating_add(bytes_max)));
        Self { outer_limit, bytes_read_at_start, fields_cut_at_start: FIELDS_CUT.get() }
    }

    /// How many bytes were read in this scope, each as often as it was looked at.
    pub fn bytes_read(&self) -> u64 {
        BYTES_READ.get() - self.bytes_read_at_start
    }

    /// How many fields have lost their end in this scope.
    pub fn fields_cut(&self) -> u64 {
        FIELDS_CUT.get() - self.fields_cut_at_start
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        LIMIT.set(self.outer_limit);
    }
}

/// Counts bytes that were read.
#[inline]
pub(super) fn count(bytes: usize) {
    BYTES_READ.set(BYTES_READ.get().wrapping_add(bytes as u64));
}

/// Whether the limit is reached: what was not read yet must not be kept.
#[inline]
pub(super) fn is_over() -> bool {
    BYTES_READ.get() > LIMIT.get()
}

/// What stands for the rest of a field that was not read.
pub(super) fn cut_note(bytes: usize) -> String {
    FIELDS_CUT.set(FIELDS_CUT.get() + 1);
    let mut note = String::new();
    let _ = write!(note, "[not read: {bytes} bytes, redaction reached its work limit]");
    note
}
