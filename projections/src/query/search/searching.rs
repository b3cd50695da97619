//! The state of a running search: its filters, and the rows scored so far.

use super::{
    Kind, MemoryId, Score, Search,
    filter::Filter,
    score::{Column, Role, Scorer},
};
use crate::{Store, error::Result, store::sql_values::number};
use std::collections::HashMap;

/// Scores that differ by less than this share count as equal: the newer row comes first.
const CLOSE: f64 = 0.01;

/// The state of a running search.
pub(super) struct Searching<'a> {
    pub(super) store: &'a Store,
    pub(super) search: &'a Search,
    pub(super) projects: Option<Vec<i64>>,
    pub(super) scored: HashMap<MemoryId, (Score, u64)>,
    /// The session and the turn of scored rows that have one.
    pub(super) turns: HashMap<MemoryId, (i64, i64)>,
}

impl<'a> Searching<'a> {
    pub(super) fn new(store: &'a Store, search: &'a Search, projects: Option<Vec<i64>>) -> Self {
        Self { store, search, projects, scored: HashMap::new(), turns: HashMap::new() }
    }

    pub(super) fn kinds(&self) -> Vec<(Kind, Filter)> {
        let kinds = Kind::ALL.into_iter().filter(|kind| self.search.kinds.contains(kind));
        kinds.filter_map(|kind| Some((kind, Filter::of(self.search, kind)?))).collect()
    }

    /// Scores rows that the index found.
    pub(super) fn score(&mut self, scorer: &Scorer<'_>, kind: Kind, ids: Vec<i64>) -> Result<()> {
        self.score_rows(scorer, kind, ids, true)
    }

    /// Scores rows that need not contain a word.
    pub(super) fn score_near(
        &mut self,
        scorer: &Scorer<'_>,
        kind: Kind,
        ids: Vec<i64>,
    ) -> Result<()> {
        self.score_rows(scorer, kind, ids, false)
    }

    fn score_rows(
        &mut self,
        scorer: &Scorer<'_>,
        kind: Kind,
        ids: Vec<i64>,
        must_have_words: bool,
    ) -> Result<()> {
        let columns = kind.columns();
        let turn = match kind {
            Kind::Prompt => "turn",
            // A prompt typed during a turn has a separate number.
            _ => {
                "coalesce((select max(turn) from prompts where prompts.session = row.session
                               and prompts.number = row.prompt_number), row.prompt_number)"
            }
        };
        let sql = format!(
            "select at_us, {}, identifiers, session, {turn} from {} row where id = ?1",
            columns.join(", "),
            kind.table()
        );
        let mut statement = self.store.connection.prepare_cached(&sql)?;
        // The index may contain a shorter stem than the word that is being typed.
        let is_typing = self.search.is_typing;
        for id in ids {
            let mut rows = statement.query([id])?;
            let Some(row) = rows.next()? else { continue };
            let mut texts = Vec::with_capacity(columns.len() + 1);
            for at in 0..=columns.len() {
                let role = match at {
                    0 if kind != Kind::Prompt => Role::MemoryId,
                    at if at == columns.len() => Role::Parts,
                    _ => Role::Text,
                };
                let text = row.get_ref(at + 1)?.as_str_or_null().map_err(rusqlite::Error::from)?;
                texts.extend(text.map(|text| Column { text, role }));
            }
            let score = scorer.score(&texts);
            // The index also contains the words of placeholders, which are not recorded text.
            let has_placeholder = || texts.iter().any(|column| column.text.contains("[redacted:"));
            let is_by_words = || score.total > 0.0 || !(is_typing || has_placeholder());
            if !must_have_words || is_by_words() {
                let name = MemoryId { kind, id };
                self.scored.insert(name, (score, number(row, 0)?));
                let turn = (row.get(columns.len() + 2)?, row.get(columns.len() + 3)?);
                if let (Some(session), Some(turn)) = turn {
                    self.turns.insert(name, (session, turn));
                }
            }
        }
        Ok(())
    }
}

pub(super) fn newer_first_where_close(
    order: &mut [(MemoryId, f64)],
    time: impl Fn(&MemoryId) -> u64,
) {
    let mut rest = order;
    while let Some((_, best)) = rest.first() {
        let least = best * (1.0 - CLOSE);
        let close = rest.iter().take_while(|(_, score)| *score >= least).count();
        let (group, after) = rest.split_at_mut(close.max(1));
        group.sort_by_key(|(name, _)| std::cmp::Reverse(time(name)));
        rest = after;
    }
}
