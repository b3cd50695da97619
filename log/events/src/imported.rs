//! One row of another store.

use serde::{Deserialize, Serialize};

/// One row of another store. Its id is derived from the row's own, so that a second import adds
/// nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Imported {
    /// The kind of store: `claude-mem-ts`, `transcript`, `export`.
    pub source: String,
    /// A fingerprint of the store.
    pub origin: String,
    /// The kind of row: `session`, `prompt`, `observation`, `summary`, `pending`.
    pub table: String,
    /// Its id there.
    pub row_id: String,
    /// The row, as JSON.
    pub row: String,
}

define_event! {
    Imported = 12 { 1 => Self }
    texts {
        source: text, origin: text, table: text, row_id: text, row: json,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define_event::assert_bytes;

    #[test]
    fn v1_bytes_are_fixed() {
        let event = Imported {
            source: "transcript".into(),
            origin: "o".into(),
            table: "prompt".into(),
            row_id: "9".into(),
            row: "{}".into(),
        };
        assert_bytes(&event, r"\ntranscript\x01o\x06prompt\x019\x02{}");
    }
}
