//! The figures of recall: the time to find the right memory among many.

mod meaning;
mod rival;
pub(super) mod sample;
mod search;

use super::Group;

pub(super) const GROUP: Group = Group {
    name: "recall",
    about: "Finding one memory among many. Memories are made up of words as uneven as those of a language: the \
            most frequent are in every other memory, most are in very few. A question is five words of one \
            memory, drawn as they come, between words that say nothing; one question in ten has nothing but \
            words that are in thousands of memories. The database is a file in the page cache, opened once.",
    figures: &[
        ("search", search::measure),
        ("million", search::measure_million),
        ("meaning", meaning::measure),
        ("meaning-million", meaning::measure_million),
    ],
};
