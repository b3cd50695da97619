//! A session began or was resumed.

use serde::{Deserialize, Serialize};

/// A session of the assistant began or was resumed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SessionStarted {
    /// `startup`, `resume`, `clear`, `compact`, `fork`; `import` if a transcript was imported.
    pub source: String,
    /// The client's working directory.
    pub cwd: String,
    /// The model, if the client reports it; often empty.
    pub model: String,
    /// The client's transcript of the session.
    pub transcript_path: String,
    /// Unknown fields of the hook's JSON, as a JSON object; empty if there are none.
    pub extra: String,
}

define_event! {
    SessionStarted = 1 { 1 => Self }
    texts {
        source: text, cwd: text, model: text, transcript_path: text, extra: json,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define_event::assert_bytes;

    #[test]
    fn v1_bytes_are_fixed() {
        let event = SessionStarted {
            source: "startup".into(),
            cwd: "/p".into(),
            model: "m".into(),
            transcript_path: "/t".into(),
            extra: "{}".into(),
        };
        assert_bytes(&event, r"\x07startup\x02/p\x01m\x02/t\x02{}");
    }
}
