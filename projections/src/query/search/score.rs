//! Scores rows with BM25 and a bonus for adjacent words.

use super::{
    query::{Query, Shape},
    tokens,
};
use serde::Serialize;
use std::ops::Range;

/// BM25's k1. Measured, like the others, in `tools/results/retrieval.md`.
const SATURATION: f64 = 1.2;
/// BM25's b.
const LENGTH: f64 = 0.75;
/// The weight of a word in the title; in the text it is 1.
const NAME: f64 = 2.0;
/// The bonus for two adjacent words of the query, as a share of the rarer one's weight.
const TOGETHER: f64 = 0.5;
/// The penalty for missing words, by their weight: five different words are better evidence than
/// one of them five times.
const MISSED: f64 = 0.2;
/// The bonus for containing all of several words.
const COMPLETE: f64 = 0.1;
/// Words further apart than this are not adjacent.
const APART_MAX: usize = 4;
/// A row with this many of a query's rarest words covers it: no memory contains all words of a long
/// prompt, and some of them are unrelated to its subject.
const COVERING_TERMS: usize = 4;

/// The score of a row, and its parts.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Score {
    /// The total: of the words, or of words and meaning.
    pub total: f64,
    /// The score of the words.
    pub words: f64,
    /// The score of each term.
    pub terms: Vec<f64>,
    /// The bonus for adjacent words.
    pub together: f64,
    /// The factor for the share of words that are present.
    pub met: f64,
    /// That share, by the weight of the words.
    pub share: f64,
    /// How much of the query's subject the row contains, from 0 to 1.
    #[serde(skip)]
    pub(super) covered: f64,
    /// Number of words of the row.
    #[serde(skip)]
    pub length: u32,
    /// How near the row is to the query by meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cosine: Option<f64>,
    /// How much of the query's subject the best rows contain, if meaning is used. The weight of the
    /// words is proportional to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f64>,
}

/// Scores rows for one query.
#[derive(Debug)]
pub(crate) struct Scorer<'a> {
    query: &'a Query,
    /// The weight of each term.
    worths: Vec<f64>,
    /// The weight of the terms that cover the query.
    covering: f64,
    average_words: f64,
    matcher: Matcher<'a>,
}

/// One text of a row.
pub(crate) struct Column<'a> {
    pub(crate) text: &'a str,
    pub(crate) role: Role,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    MemoryId,
    Text,
    /// Parts of names that are in another column already: they count neither for length nor for
    /// adjacency.
    Parts,
}

impl<'a> Scorer<'a> {
    pub(crate) fn new(query: &'a Query, worths: Vec<f64>, average_words: f64) -> Self {
        let mut heaviest = worths.clone();
        heaviest.sort_by(|left, right| right.total_cmp(left));
        let covering = heaviest.iter().take(COVERING_TERMS).sum();
        Self { query, worths, covering, average_words, matcher: Matcher::new(query) }
    }

    pub(crate) fn score(&self, columns: &[Column<'_>]) -> Score {
        let mut counts = vec![0.0; self.worths.len()];
        let mut words = 0;
        let mut together = 0.0;
        for column in columns {
            let seen = self.matcher.look(column.text);
            let weight = if column.role == Role::MemoryId { NAME } else { 1.0 };
            for (term, count) in counts.iter_mut().enumerate() {
                *count += weight * self.count(term, &seen, column) as f64;
            }
            if column.role != Role::Parts {
                words += seen.words;
                together += self.together(&seen.stems);
            }
        }
        let length = 1.0 - LENGTH + LENGTH * f64::from(words) / self.average_words;
        let worth = |(count, worth): (&f64, &f64)| {
            worth * count * (SATURATION + 1.0) / (count + SATURATION * length)
        };
        let terms: Vec<f64> = counts.iter().zip(&self.worths).map(worth).collect();
        let all: f64 = self.worths.iter().sum();
        let there = counts.iter().zip(&self.worths).filter(|(count, _)| **count > 0.0);
        let there: f64 = there.map(|(_, worth)| worth).sum();
        let share = there / all.max(f64::MIN_POSITIVE);
        let covered = (there / self.covering.max(f64::MIN_POSITIVE)).min(1.0);
        let is_complete = counts.len() > 1 && counts.iter().all(|count| *count > 0.0);
        let met = 1.0 - MISSED + MISSED * share + if is_complete { COMPLETE } else { 0.0 };
        let total = (terms.iter().sum::<f64>() + together) * met;
        Score {
            total,
            words: total,
            terms,
            together,
            met,
            share,
            covered,
            length: words,
            ..Score::default()
        }
    }

    fn count(&self, term: usize, seen: &TextMatches, column: &Column<'_>) -> usize {
        let term = &self.query.terms[term];
        if term.shape == Shape::Characters {
            return if column.role == Role::Parts {
                0
            } else {
                column.text.matches(&term.text).count()
            };
        }
        let wanted = self.matcher.stems_of(term.stems.as_slice(), term.shape);
        seen.phrases(&wanted).count()
    }

    /// Adjacent words of different terms, each pair once.
    fn together(&self, stems: &[(u32, usize)]) -> f64 {
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        let mut together = 0.0;
        for window in stems.windows(2) {
            let [(first, left), (second, right)] = *window else { continue };
            let distance = (second - first) as usize;
            let (left, right) = (self.matcher.stems[left].term, self.matcher.stems[right].term);
            if left == right
                || distance == 0
                || distance > APART_MAX
                || pairs.contains(&(left, right))
            {
                continue;
            }
            pairs.push((left, right));
            together += TOGETHER * self.worths[left].min(self.worths[right]) / distance as f64;
        }
        together
    }
}

/// Finds the words of a query in texts.
#[derive(Debug)]
pub(crate) struct Matcher<'a> {
    stems: Vec<Stem<'a>>,
    /// First bytes of the stems: stemming all other words would be most of the work.
    first_bytes: [bool; 256],
}

#[derive(Debug, PartialEq, Eq)]
struct Stem<'a> {
    text: &'a str,
    is_beginning: bool,
    /// The first term with this stem.
    term: usize,
}

/// A word of a text, stemmed and not.
#[derive(Default)]
struct Folded {
    stem: String,
    word: String,
}

/// Matches in a text.
struct TextMatches {
    words: u32,
    /// Position and number of each stem, in order.
    stems: Vec<(u32, usize)>,
}

impl<'a> Matcher<'a> {
    pub(crate) fn new(query: &'a Query) -> Self {
        let mut matcher = Self { stems: Vec::new(), first_bytes: [false; 256] };
        for (number, term) in query.terms.iter().enumerate() {
            let is_words = term.shape != Shape::Characters;
            for (at, text) in term.stems.iter().enumerate().filter(|_| is_words) {
                let is_beginning = term.shape == Shape::Beginning && at + 1 == term.stems.len();
                if matcher.number(text, is_beginning).is_none() {
                    matcher.stems.push(Stem { text, is_beginning, term: number });
                    matcher.first_bytes[usize::from(text.as_bytes()[0])] = true;
                }
            }
        }
        matcher
    }

    fn number(&self, text: &str, is_beginning: bool) -> Option<usize> {
        self.stems.iter().position(|stem| stem.text == text && stem.is_beginning == is_beginning)
    }

    fn stems_of(&self, stems: &[String], shape: Shape) -> Vec<usize> {
        let is_beginning = |at| shape == Shape::Beginning && at + 1 == stems.len();
        let number = |(at, text): (usize, &String)| self.number(text, is_beginning(at));
        stems.iter().enumerate().filter_map(number).collect()
    }

    /// The stems that equal a word of a text, or are its prefix.
    fn meets(&self, word: &str, folded: &mut Folded) -> impl Iterator<Item = usize> {
        let first = word.as_bytes()[0].to_ascii_lowercase();
        let is_possible = !first.is_ascii() || self.first_bytes[usize::from(first)];
        if is_possible {
            tokens::fold(word, &mut folded.stem);
            if self.stems.iter().any(|stem| stem.is_beginning) {
                tokens::fold_unstemmed(word, &mut folded.word);
            }
        }
        let folded: &Folded = folded;
        let is_met = move |stem: &Stem<'_>| match stem.is_beginning {
            true => folded.word.starts_with(stem.text),
            false => folded.stem == stem.text,
        };
        let stems = if is_possible { self.stems.as_slice() } else { &[] };
        stems.iter().enumerate().filter(move |(_, stem)| is_met(stem)).map(|(at, _)| at)
    }

    fn look(&self, text: &str) -> TextMatches {
        let mut seen = TextMatches { words: 0, stems: Vec::new() };
        let mut folded = Folded::default();
        for (_, word) in tokens::words_without_placeholders(text) {
            #[cfg(test)]
            crate::scan_counter::add(word.len());
            seen.stems.extend(self.meets(word, &mut folded).map(|stem| (seen.words, stem)));
            seen.words += 1;
        }
        seen
    }

    /// The terms whose words a text contains, some of them several times.
    pub(crate) fn terms_in(&self, text: &str) -> impl Iterator<Item = usize> {
        self.look(text).stems.into_iter().map(|(_, stem)| self.stems[stem].term)
    }

    /// The positions of the query's words in a text.
    pub(crate) fn marks(&self, query: &Query, text: &str) -> Vec<Range<usize>> {
        let mut folded = Folded::default();
        let is_met =
            |(_, word): &(Range<usize>, &str)| self.meets(word, &mut folded).next().is_some();
        let mut marks: Vec<_> = tokens::words_without_placeholders(text)
            .filter(is_met)
            .map(|(range, _)| range)
            .collect();
        for term in query.terms.iter().filter(|term| term.shape == Shape::Characters) {
            marks.extend(text.match_indices(&term.text).map(|(at, found)| at..at + found.len()));
        }
        marks.sort_by_key(|mark| (mark.start, mark.end));
        marks.dedup_by(|next, before| {
            let overlaps = next.start < before.end;
            before.end = if overlaps { before.end.max(next.end) } else { before.end };
            overlaps
        });
        marks
    }
}

impl TextMatches {
    /// Where the stems of the query follow each other.
    fn phrases(&self, wanted: &[usize]) -> impl Iterator<Item = u32> {
        let first = wanted.first().copied();
        self.stems.iter().filter(move |(_, stem)| Some(*stem) == first).map(|(at, _)| *at).filter(
            move |start| {
                // They are in order, and a long text has many of them.
                let stands = |(offset, stem): (usize, &usize)| {
                    #[cfg(test)]
                    crate::scan_counter::add(1);
                    self.stems.binary_search(&(start + offset as u32, *stem)).is_ok()
                };
                wanted.iter().enumerate().skip(1).all(stands)
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(query: &str, name: &str, text: &str) -> Score {
        let query = Query::parse(query);
        let scorer = Scorer::new(&query, vec![1.0; query.terms.len()], 4.0);
        let columns =
            [Column { text: name, role: Role::MemoryId }, Column { text, role: Role::Text }];
        scorer.score(&columns)
    }

    #[test]
    fn more_words_fewer_others_and_the_name_count_more() {
        let order = [
            scored("cache fail", "failing caches", ""),
            scored("cache fail", "", "failing caches"),
            scored("cache fail", "", "failing in all of the caches"),
            scored("cache fail", "", "failing"),
            scored("cache fail", "", "failing in many other ways than those"),
            scored("cache fail", "", "nothing of it"),
        ];
        assert!(order.is_sorted_by(|left, right| left.total > right.total), "{order:#?}");
        assert!(order[5].total <= 0.0);
    }

    #[test]
    fn four_words_cover_a_long_query_and_two_of_them_half_of_it() {
        let long = "can you please find out why the cache fails on the second login of a user";
        let covered = |query: &str, text: &str| scored(query, "", text).covered;
        assert!(covered(long, "cache fails on login of the user") >= 1.0);
        assert!((covered(long, "cache fails") - 0.5).abs() < 1e-9);
        assert!((covered("cache fails", "cache") - 0.5).abs() < 1e-9);
        assert!(covered(long, "nothing of it") <= 0.0);
    }

    #[test]
    fn phrases_beginnings_and_characters_are_counted() {
        assert!(scored("\"read the log\"", "", "we read the logs").total > 0.0);
        assert!(scored("\"read the log\"", "", "the log we read").total <= 0.0);
        assert!(scored("migr*", "", "Migrations").total > 0.0);
        assert!(scored("本語", "", "日本語").total > 0.0);
    }

    #[test]
    fn texts_of_hostile_fragments_are_scored_in_linear_time() {
        for fragment in ["a b ", "b a a ", "[redacted:a] ", "[redacted:", "ab", "日 本 "] {
            let work = [1 << 16, 1 << 18, 1 << 20].map(|size| {
                let query = Query::parse("\"a b\" \"b a\" a b ab redacted 日 本");
                let scorer = Scorer::new(&query, vec![1.0; query.terms.len()], 10.0);
                let text = fragment.repeat(size / fragment.len());
                let columns = [Column { text: &text, role: Role::Text }];
                crate::scan_counter::count(|| drop(scorer.score(&columns)))
            });
            assert!(work.windows(2).all(|pair| pair[1] <= 5 * pair[0]), "{fragment}: {work:?}");
        }
    }

    #[test]
    fn marks_cover_the_words_that_were_met() {
        let query = Query::parse("naive reading 日本語");
        let text = "Naïve code reads 日本語.";
        let marked: Vec<_> =
            Matcher::new(&query).marks(&query, text).into_iter().map(|mark| &text[mark]).collect();
        assert_eq!(marked, ["Naïve", "reads", "日本語"]);
    }
}
