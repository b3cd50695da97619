//! The input of a hook could not be parsed.

use serde::{Deserialize, Serialize};

/// The input of a hook could not be parsed. It is recorded, so that nothing is lost.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct InputUnreadable {
    /// The hook command: `save`.
    pub hook: String,
    /// The parse error.
    pub error: String,
    /// The input as text, with secrets redacted; long input is cut in the middle.
    pub text: String,
    /// The length of the input.
    pub bytes: u64,
}

define_event! {
    InputUnreadable = 13 { 1 => Self }
    texts {
        hook: text, error: text, text: text, bytes: none,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define_event::assert_bytes;

    #[test]
    fn v1_bytes_are_fixed() {
        let event =
            InputUnreadable { hook: "save".into(), error: "e".into(), text: "{".into(), bytes: 1 };
        assert_bytes(&event, r"\x04save\x01e\x01{\x01");
    }
}
