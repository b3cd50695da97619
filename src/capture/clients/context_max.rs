//! The maximum size of memory in one response to a client.

/// The longest text that a client passes on unchanged. The client shortens a longer one to a part
/// and a file name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextMax {
    /// No limit is known.
    Unlimited,
    Bytes(usize),
    /// UTF-16 units of the text in JSON, including the JSON around it, because it is unclear what
    /// the client counts.
    JsonUnits(usize),
}

/// Size of the JSON around the text of a response.
const FRAME_UNITS: usize = 400;

impl ContextMax {
    /// The number of tokens of about four bytes that fit.
    pub fn tokens(self) -> usize {
        match self {
            Self::Unlimited => usize::MAX,
            Self::Bytes(max) => max / 4,
            Self::JsonUnits(max) => max.saturating_sub(FRAME_UNITS) / 4,
        }
    }

    /// Whether the text is within the limit.
    pub fn holds(self, text: &str) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Bytes(max) => text.len() <= max,
            Self::JsonUnits(max) => json_units(text) + FRAME_UNITS <= max,
        }
    }

    /// The limit minus this text.
    #[must_use]
    pub fn after(self, text: &str) -> Self {
        match self {
            Self::Unlimited => self,
            Self::Bytes(max) => Self::Bytes(max.saturating_sub(text.len())),
            Self::JsonUnits(max) => Self::JsonUnits(max.saturating_sub(json_units(text))),
        }
    }
}

fn json_units(text: &str) -> usize {
    let units = |letter: char| match letter {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        control if control < ' ' => 6,
        letter => letter.len_utf16(),
    };
    text.chars().map(units).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_uses_the_unit_of_its_client() {
        // Two letters of three bytes and one unit each, one of four bytes and two units.
        let text = "文件🦀";
        assert!(ContextMax::Bytes(10).holds(text) && !ContextMax::Bytes(9).holds(text));
        let [exact, less] = [404, 403].map(ContextMax::JsonUnits);
        assert!(exact.holds(text) && !less.holds(text));
        assert!(!exact.holds("a\nbc"), "a line end has two units in JSON");
        assert_eq!(ContextMax::Bytes(12).after(text), ContextMax::Bytes(2));
        assert_eq!(ContextMax::Bytes(2).after(text).tokens(), 0);
        assert!(ContextMax::Unlimited.after(text).holds(text));
    }
}
