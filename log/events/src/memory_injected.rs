//! A session was given memories.

use serde::{Deserialize, Serialize};

/// A session received memories. They are named, not repeated.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MemoryInjected {
    /// When in the session.
    pub moment: InjectionMoment,
    /// Observations that were given in full, in order.
    pub observations: Vec<ObservationRef>,
    /// Approximate size of the text, in tokens.
    pub tokens: u32,
}

/// When a session receives memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum InjectionMoment {
    /// At its start.
    #[default]
    SessionStart,
    /// With a prompt.
    Prompt,
    /// When the assistant fetched them over MCP.
    Fetch,
    /// Before a file was read or written.
    File,
    /// After a command failed.
    Failure,
}

/// An observation, by the event that contains it. Ids of rows are not stable between machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ObservationRef {
    /// The id of the reply, note or import.
    pub event: [u8; 16],
    /// Its number in that event, from 1.
    pub number: u32,
}

// Version 2 has more moments.
define_event! {
    MemoryInjected = 16 { 1 => Self, 2 => Self }
    texts {
        moment: none, observations: none, tokens: none,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Versioned as _, define_event::assert_bytes};

    #[test]
    fn v1_bytes_are_fixed() {
        let event = MemoryInjected {
            moment: InjectionMoment::Prompt,
            observations: vec![ObservationRef { event: *b"0123456789abcdef", number: 2 }],
            tokens: 300,
        };
        assert_bytes(&event, r"\x01\x010123456789abcdef\x02\xfb,\x01");
        let bytes = b"\x01\x010123456789abcdef\x02\xfb,\x01";
        assert_eq!(MemoryInjected::read(1, bytes), Ok(event));
    }

    #[test]
    fn v2_bytes_are_fixed() {
        let moments = [InjectionMoment::Fetch, InjectionMoment::File, InjectionMoment::Failure];
        for (moment, number) in moments.into_iter().zip(2_u8..) {
            let event = MemoryInjected { moment, ..MemoryInjected::default() };
            assert_bytes(&event, &format!(r"\x{number:02x}\x00\x00"));
        }
    }
}
