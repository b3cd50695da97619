//! A memory was corrected by hand.

use crate::{ObservationRef, TextForm, VisitTexts};
use serde::{Deserialize, Serialize};

/// A user or a program edited, pinned or withdrew an observation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MemoryRevised {
    /// The observation. Its event may be in the log of another machine.
    pub target: ObservationRef,
    /// The change.
    pub revision: Revision,
    /// The interface: `cli`, `mcp`, `http`, `viewer`.
    pub via: String,
}

/// A change of an observation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Revision {
    /// It is neither wrong nor superseded. Undoes earlier marks.
    #[default]
    Restored,
    /// Parts of it have another text. `None` leaves a part as it is.
    Edited {
        /// The title.
        title: Option<String>,
        /// The text. It replaces the subtitle, the narrative and the facts.
        text: Option<String>,
        /// The type, such as `decision`.
        kind: Option<String>,
    },
    /// It comes first in the context, at any age.
    Pinned,
    /// It is no longer pinned.
    Unpinned,
    /// It is wrong.
    MarkedWrong {
        /// Why; may be empty.
        because: String,
    },
    /// Another observation replaces it.
    SupersededBy(ObservationRef),
}

impl MemoryRevised {
    /// The same change without its texts.
    pub(crate) fn blanked(&self) -> Self {
        let revision = match &self.revision {
            Revision::Edited { .. } => Revision::Edited { title: None, text: None, kind: None },
            Revision::MarkedWrong { .. } => Revision::MarkedWrong { because: String::new() },
            other => other.clone(),
        };
        Self { revision, ..self.clone() }
    }
}

impl VisitTexts for Revision {
    fn visit_texts(&mut self, visit: &mut dyn FnMut(TextForm, &mut String)) {
        match self {
            Self::Edited { title, text, kind } => {
                for part in [title, text, kind] {
                    part.visit_texts(visit);
                }
            }
            Self::MarkedWrong { because } => because.visit_texts(visit),
            Self::Restored | Self::Pinned | Self::Unpinned | Self::SupersededBy(_) => {}
        }
    }
}

define_event! {
    MemoryRevised = 17 { 1 => Self }
    texts {
        target: none, revision: text, via: text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define_event::assert_bytes;

    #[test]
    fn v1_bytes_are_fixed() {
        let target = ObservationRef { event: *b"0123456789abcdef", number: 2 };
        let by = ObservationRef { event: *b"fedcba9876543210", number: 1 };
        let edited = Revision::Edited { title: Some("t".into()), text: None, kind: None };
        for (revision, expected) in [
            (Revision::Restored, r"\x00"),
            (edited, r"\x01\x01\x01t\x00\x00"),
            (Revision::Pinned, r"\x02"),
            (Revision::Unpinned, r"\x03"),
            (Revision::MarkedWrong { because: "why".into() }, r"\x04\x03why"),
            (Revision::SupersededBy(by), r"\x05fedcba9876543210\x01"),
        ] {
            let event = MemoryRevised { target, revision, via: "cli".into() };
            assert_bytes(&event, &format!(r"0123456789abcdef\x02{expected}\x03cli"));
        }
    }
}
