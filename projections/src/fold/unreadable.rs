//! Events that could not be decoded.

use crate::{
    error::Result,
    fold::projection::{Projection, Rows},
    store::sql_values::some,
};
use claude_mem_events::{Event, Recorded};

/// Hooks with invalid input, and events of a newer version.
pub(crate) struct Unreadable;

impl Projection for Unreadable {
    fn name(&self) -> &'static str {
        "unreadable"
    }

    fn version(&self) -> u32 {
        1
    }

    fn apply(&self, rows: &Rows<'_>, event: &Recorded) -> Result<()> {
        let (version, hook, error, bytes) = match &event.event {
            Event::InputUnreadable(input) => {
                (None, some(&input.hook), some(&input.error), input.bytes)
            }
            Event::Unknown { version, payload, .. } => {
                (Some(*version), None, None, payload.len() as u64)
            }
            _ => return Ok(()),
        };
        let sql = "insert into unreadable (seq, event, at_us, kind, version, hook, error, bytes)
                   values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let (seq, at_us) = (event.seq.raw() as i64, event.at_us() as i64);
        let kind = event.event.kind();
        rows.run(sql, (seq, event.id.as_bytes(), at_us, kind, version, hook, error, bytes as i64))?;
        Ok(())
    }
}
