//! Scores candidates: BM25, and the share of the query's words that they contain.

use super::{
    MemoryId, Query,
    candidates::{Candidates, TermRows},
    text_index,
    tokens::without_placeholders,
};
use crate::{Store, error::Result, store::sql_values::number};
use serde::Serialize;
use std::collections::BTreeSet;

/// The penalty for missing words, by their weight: five different words are better evidence than
/// one of them five times. Measured in `tools/results/retrieval.md`.
const MISSED: f64 = 0.6;
/// A row with this many of a query's rarest words covers it: no memory contains all words of a long
/// prompt, and some of them are unrelated to its subject.
const COVERING_TERMS: usize = 4;

/// The score of a row, and its parts.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Score {
    /// The total: of the words, or of words and meaning.
    pub total: f64,
    /// The score of the words: BM25, less if words are missing.
    pub words: f64,
    /// FTS5's BM25.
    pub bm25: f64,
    /// The share of the words that are present, by their weight.
    pub share: f64,
    /// How much of the query's subject the row contains, from 0 to 1.
    #[serde(skip)]
    pub(super) covered: f64,
    /// How near the row is to the query by meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cosine: Option<f64>,
    /// How much of the query's subject the best rows contain, if meaning is used. The weight of the
    /// words is proportional to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f64>,
}

impl Score {
    pub(super) fn new(terms: &[TermRows], met: &BTreeSet<usize>, bm25: f64) -> Self {
        let all: f64 = terms.iter().map(|term| term.worth).sum();
        let there: f64 = met.iter().map(|at| terms[*at].worth).sum();
        let mut heaviest: Vec<f64> = terms.iter().map(|term| term.worth).collect();
        heaviest.sort_by(|left, right| right.total_cmp(left));
        let covering: f64 = heaviest.iter().take(COVERING_TERMS).sum();
        let share = there / all.max(f64::MIN_POSITIVE);
        let covered = (there / covering.max(f64::MIN_POSITIVE)).min(1.0);
        let words = bm25 * (1.0 - MISSED + MISSED * share);
        Self { total: words, words, bm25, share, covered, ..Self::default() }
    }
}

/// A memory that may be a hit.
#[derive(Debug)]
pub(super) struct Scored {
    pub(super) id: MemoryId,
    pub(super) at_us: u64,
    /// The session and the turn, if it belongs to one.
    pub(super) turn: Option<(i64, i64)>,
    /// The length of its text.
    pub(super) chars: u64,
    /// The positions of the query's terms that it contains.
    pub(super) met: BTreeSet<usize>,
    /// Whether it is a note of another project that applies to this one.
    pub(super) is_elsewhere: bool,
    pub(super) score: Score,
}

/// The candidates, and memories with these row ids that need not contain a word.
pub(super) fn score(
    store: &Store,
    query: &Query,
    candidates: &Candidates,
    others: &[i64],
) -> Result<Vec<Scored>> {
    let kind = candidates.kind;
    let turn = match kind {
        super::Kind::Prompt => "turn",
        // A prompt typed during a turn has a separate number.
        _ => {
            "coalesce((select max(turn) from prompts where prompts.session = row.session
                           and prompts.number = row.prompt_number), row.prompt_number)"
        }
    };
    let text = kind.text();
    let sql = format!(
        "select at_us, session, {turn} as turn, length({text}) as chars,
             iif(instr({text}, '[redacted:'), {text}, null) as redacted
         from {} row where id = ?1",
        kind.table()
    );
    let mut statement = store.connection.prepare_cached(&sql)?;
    let rows = candidates.rows.iter().copied();
    let mut scored = Vec::new();
    for (id, bm25) in rows.chain(others.iter().map(|id| (*id, 0.0))) {
        let mut rows = statement.query([id])?;
        let Some(row) = rows.next()? else { continue };
        let has = |at: &usize| candidates.terms[*at].contains(id);
        let mut met: BTreeSet<usize> = (0..candidates.terms.len()).filter(has).collect();
        if let Some(text) = row.get::<_, Option<String>>("redacted")? {
            // The index also contains the words of placeholders, which are not recorded text.
            let text = without_placeholders(&text);
            met = text_index::terms_in(&[&text], &query.terms)?.pop().unwrap_or_default();
        }
        if met.is_empty() && bm25 > 0.0 {
            continue;
        }
        scored.push(Scored {
            id: MemoryId { kind, id },
            at_us: number(row, "at_us")?,
            turn: row.get::<_, Option<_>>("session")?.zip(row.get("turn")?),
            chars: number(row, "chars")?,
            score: Score::new(&candidates.terms, &met, bm25),
            met,
            is_elsewhere: false,
        });
    }
    Ok(scored)
}
