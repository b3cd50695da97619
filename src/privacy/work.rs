//! Counts the bytes that redaction reads, and enforces a limit.
//!
//! Every reader takes linear time, and the count lets a test prove it. The limit is a safeguard: if
//! a rule is still slow on some text, a field is truncated, but the hook stays fast and the event
//! is recorded.

use std::{cell::Cell, fmt::Write as _};

thread_local! {
    static BYTES_READ: Cell<u64> = const { Cell::new(0) };
    static LIMIT: Cell<u64> = const { Cell::new(u64::MAX) };
    static FIELDS_CUT: Cell<u64> = const { Cell::new(0) };
}

/// The work limit of one event: several times the cost of 64 MB of the slowest text, and below one
/// second.
pub const EVENT_BYTES_MAX: u64 = 1 << 30;

/// Limits the work of this thread until it is dropped. A nested scope can only be tighter.
#[derive(Debug)]
pub struct Scope {
    outer_limit: u64,
    bytes_read_at_start: u64,
    fields_cut_at_start: u64,
}

impl Scope {
    /// Allows reading this many bytes, counting repeated reads.
    pub fn new(bytes_max: u64) -> Self {
        let (outer_limit, bytes_read_at_start) = (LIMIT.get(), BYTES_READ.get());
        LIMIT.set(outer_limit.min(bytes_read_at_start.saturating_add(bytes_max)));
        Self { outer_limit, bytes_read_at_start, fields_cut_at_start: FIELDS_CUT.get() }
    }

    /// Bytes read in this scope, counting repeated reads.
    pub fn bytes_read(&self) -> u64 {
        BYTES_READ.get() - self.bytes_read_at_start
    }

    /// The number of truncated fields in this scope.
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

/// Whether the limit is reached: unread text must be dropped.
#[inline]
pub(super) fn is_over() -> bool {
    BYTES_READ.get() > LIMIT.get()
}

/// The placeholder for the unread rest of a field.
pub(super) fn cut_note(bytes: usize) -> String {
    FIELDS_CUT.set(FIELDS_CUT.get() + 1);
    let mut note = String::new();
    let _ = write!(note, "[not read: {bytes} bytes, redaction reached its work limit]");
    note
}
