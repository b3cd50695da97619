//! The figures of recall: the time to find the right memory among many.

mod meaning;
pub(super) mod sample;
mod search;

use super::Group;

pub(super) const RECALL: Group = Group {
    name: "recall",
    about: "Finding one memory among many. Words are distributed as in a natural language: the \
            most frequent are in every other memory, most are in very few. A query is five random \
            words of one memory between stop words; one query in ten has only words that are in \
            thousands of memories. The database is a file in the page cache, opened once.",
    figures: &[
        ("search", search::measure_search),
        ("million", search::measure_million),
        ("meaning", meaning::measure_meaning),
        ("meaning-million", meaning::measure_million),
    ],
};
