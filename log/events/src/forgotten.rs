//! Something is forgotten.

use serde::{Deserialize, Serialize};

/// Everything that matches all given conditions is forgotten. Or a forgetting is undone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Forgotten {
    /// These events, and the memories made of them.
    pub events: Vec<[u8; 16]>,
    /// These memories, each as the id of the reply, a slash, and the number in the reply.
    pub rows: Vec<String>,
    /// This session; empty for any.
    pub session: String,
    /// This project, by key; empty for any.
    pub project: String,
    /// From this time on.
    pub since_us: Option<u64>,
    /// Before this time.
    pub until_us: Option<u64>,
    /// Everything that reads, writes or names this file; empty for any.
    pub file: String,
    /// A hash of the forgotten text, never the text itself; empty for any.
    pub text: String,
    /// The forgetting that is undone.
    pub undoes: Option<[u8; 16]>,
    /// The reason given by the user; may be empty.
    pub reason: String,
}

define_event! {
    Forgotten = 11 { 1 => Self }
    texts {
        events: none, rows: text, session: text, project: text, since_us: none, until_us: none,
        file: text, text: text, undoes: none, reason: text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define_event::assert_bytes;

    #[test]
    fn v1_bytes_are_fixed() {
        let event = Forgotten {
            events: vec![[1; 16]],
            rows: vec!["r/1".into()],
            session: "s".into(),
            project: "p".into(),
            since_us: Some(5),
            until_us: None,
            file: "f".into(),
            text: "h".into(),
            undoes: Some([2; 16]),
            reason: "w".into(),
        };
        assert_bytes(
            &event,
            r"\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x03r/1\x01s\x01p\x01\x05\x00\x01f\x01h\x01\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x01w",
        );
    }
}
